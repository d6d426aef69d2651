"""A roll back ends with what was there before, or says what is missing and where it still is."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from safe_uninstall.execute.journal import Journal, Step, create_journal
from safe_uninstall.execute.rollback import roll_back
from safe_uninstall.execute.stash import TEMPORARY_SUFFIX, Stash
from tests.support.environments import EnvironmentBuilder, TreeEntry, read_tree


class Stopped:
    """A transaction that was stopped after its stash was complete."""

    def __init__(self, builder: EnvironmentBuilder) -> None:
        """Keep all files of two distributions."""
        builder.distribution("one", files={"one/a.py": "a", "one/sub/b.py": "b", "~old/c.py": "c"})
        builder.distribution("two", files={"two.py": "2"})
        self.builder = builder
        self.site = builder.site_packages
        self.before = self.tree()
        self.journal: Journal = create_journal(str(builder.prefix))
        self.journal.write(
            Step.PREPARED,
            leftovers=[str(self.site / "~old")],
            created=[str(self.site / "new.py"), str(self.site / "new")],
            listings={str(self.site / "one"): ["a.py", "sub"]},
        )
        self.stash = Stash(self.journal.stash_directory)
        paths = [str(path) for path in sorted(self.site.rglob("*"))]
        self.stash.keep(paths, [str(self.site), *(path for path in paths if os.path.isdir(path))])
        self.journal.write(Step.UNINSTALLING)

    def tree(self) -> dict[str, TreeEntry]:
        """Return what is there of the environment's own."""
        return read_tree(self.builder.prefix, ignore=(".lock", ".safe-uninstall"))


@pytest.fixture
def stopped(environment: EnvironmentBuilder) -> Stopped:
    """Return a transaction that was stopped."""
    return Stopped(environment)


def test_everything_is_as_before(stopped: Stopped) -> None:
    """What is gone comes back, what was changed is changed back, what is new goes; then the stash goes."""
    (stopped.site / "two.py").unlink()
    (stopped.site / "one/a.py").unlink()
    (stopped.site / "one/a.py").write_text("another")
    (stopped.site / "one/sub/b.py").unlink()
    (stopped.site / "one/sub").rmdir()
    (stopped.site / "new").mkdir()
    (stopped.site / "new/x.py").touch()
    (stopped.site / "new.py").touch()
    (stopped.site / "one/added.py").touch()
    assert roll_back(stopped.journal, stopped.stash) == ()
    assert stopped.tree() == stopped.before
    assert stopped.journal.last_step() is Step.ROLLED_BACK
    assert not os.path.exists(stopped.journal.stash_directory)


def test_leftovers_of_pip_and_of_ourselves_go(stopped: Stopped) -> None:
    """Directories into which pip moves files, and files of ours that were not renamed yet; older ones stay."""
    (stopped.site / "~ne").mkdir()
    (stopped.site / "~ne/a.py").touch()
    (stopped.site / "one" / f".a.py{TEMPORARY_SUFFIX}").touch()
    (stopped.site / "~link").symlink_to(stopped.site / "one")
    assert roll_back(stopped.journal, stopped.stash) == ()
    assert stopped.tree() == stopped.before
    assert (stopped.site / "~old/c.py").exists()


def fail(monkeypatch: pytest.MonkeyPatch, name: str, matching: str) -> None:
    """Let a function of ``os`` fail for some paths."""
    real: Callable[..., object] = getattr(os, name)

    def call(path: str, *rest: object, **options: object) -> object:
        if matching in str((path, *rest)):
            raise OSError(5, "Input/output error", str(path))
        return real(path, *rest, **options)

    monkeypatch.setattr(os, name, call)


@pytest.mark.parametrize(
    ("function", "path", "problem"),
    [
        ("rename", "two.py", "{site}/two.py: Input/output error"),
        ("unlink", "new.py", "{site}/new.py could not be removed: Input/output error"),
        ("unlink", "~link", "{site}/~link could not be removed: Input/output error"),
    ],
)
def test_what_cannot_be_brought_back_is_told(
    stopped: Stopped, monkeypatch: pytest.MonkeyPatch, function: str, path: str, problem: str
) -> None:
    """Everything else is brought back, and the stash is still there for another try, which then ends well."""
    (stopped.site / "two.py").unlink()
    (stopped.site / "one/a.py").unlink()
    (stopped.site / "new.py").touch()
    (stopped.site / "~link").symlink_to("one")
    with monkeypatch.context() as broken:
        fail(broken, function, path)
        assert roll_back(stopped.journal, stopped.stash) == (problem.format(site=stopped.site),)
    assert (stopped.site / "one/a.py").read_text() == "a"
    assert stopped.journal.last_step() is Step.ROLLING_BACK
    assert roll_back(stopped.journal, stopped.stash) == ()
    assert stopped.tree() == stopped.before


def test_what_differs_all_the_same_is_told(stopped: Stopped, monkeypatch: pytest.MonkeyPatch) -> None:
    """That every call went well is no proof; the files are looked at."""
    (stopped.site / "two.py").unlink()
    with monkeypatch.context() as broken:
        broken.setattr(os, "rename", lambda _source, _target: None)
        problems = roll_back(stopped.journal, stopped.stash)
    assert problems == (f"{stopped.site}/two.py is not as it was",)
    assert os.path.exists(stopped.journal.stash_directory)


def test_a_journal_that_cannot_be_written(stopped: Stopped, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk files come back nevertheless."""
    (stopped.site / "two.py").unlink()

    def write(_journal: Journal, _step: Step, **_facts: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(Journal, "write", write)
        assert roll_back(stopped.journal, stopped.stash) == ()
    assert stopped.tree() == stopped.before
    assert Path(stopped.journal.directory).is_dir()
