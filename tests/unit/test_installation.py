"""What a transaction installs can be taken away again, and nothing but what its wheels write is changed by it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.execute.installation import install_wheels, kept_paths, remove_what_is_new, what_will_be_new
from safe_uninstall.execute.installers import Installer, find_installer
from safe_uninstall.execute.journal import Journal, create_journal
from safe_uninstall.execute.stash import Stash
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.plan import Plan, Prediction, Request, Rewrite
from safe_uninstall.model.wheel import Wheel, WheelUnavailable
from safe_uninstall.scan.wheel import read_wheel
from tests.support.environments import EnvironmentBuilder, read_tree
from tests.support.wheel_files import put_wheel, write_wheel

BOTH = pytest.mark.parametrize("kind", list(InstallerKind), ids=lambda kind: kind.value)


class Files:
    """Implements ``WheelSource`` with wheel files that are at hand."""

    def __init__(self, builder: EnvironmentBuilder, *files: Path) -> None:
        """Read them once."""
        environment = builder.environment()
        self._wheels = tuple(read_wheel(str(file), environment, source="a test") for file in files)

    def restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        """Return the wheel of that name."""
        return next(wheel for wheel in self._wheels if wheel.name == distribution.name)

    def resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        """Return the wheels of these names, which need nothing."""
        return tuple(wheel for wheel in self._wheels if wheel.name in requirements)


class Stage:
    """An environment in which one survivor was overwritten, up to the moment of the installation."""

    def __init__(self, builder: EnvironmentBuilder, directory: Path) -> None:
        """Install ``own``, and ``other`` over it; both have a file, a script and an entry point of one name."""
        self.builder = builder
        tool = {"own-1.0.data/scripts/tool": "#!python\nprint('own')\n"}
        files = {"lib/shared.py": "x = 1\n", "lib/own.py": "y = 1\n", "lib/__init__.py": ""}
        self.own = write_wheel(directory, "own", files={**files, **tool}, scripts={"own": "lib:main"})
        self.other = write_wheel(directory, "other", files={"lib/shared.py": "x = 22\n"})
        metadata = {"REQUESTED": "", "direct_url.json": '{"url": "https://h/own.whl", "archive_info": {}}'}
        self.info = put_wheel(builder, self.own, installer="somebody", metadata=metadata)
        put_wheel(builder, self.other)
        cache = builder.site_packages / "lib" / "__pycache__"
        cache.mkdir()
        for name in ("shared", "gone"):
            (cache / f"{name}.cpython-311.pyc").write_text(name)
        self.plan = make_plan(
            builder.snapshot(), Request(names=("other",), rewrites=(Rewrite.RESTORE,)), Files(builder, self.own)
        )
        assert self.plan.prediction.restored == {str(self.info)}
        self.facts = what_will_be_new(self.plan.prediction)
        self.journal: Journal = create_journal(str(builder.prefix))
        self.stash = Stash(self.journal.stash_directory)
        self.keep(self.stash)
        self.output: list[str] = []

    def keep(self, stash: Stash) -> None:
        """Keep all that is there."""
        paths = [str(path) for path in sorted(self.builder.prefix.rglob("*")) if ".safe-uninstall" not in str(path)]
        stash.keep(paths, [path for path in paths if os.path.isdir(path) and not os.path.islink(path)])

    def installer(self, kind: InstallerKind) -> Installer:
        """Return a real one."""
        return find_installer(self.plan.environment, kind, has_own_pip=False)

    def install(self, installer: Installer, plan: Plan | None = None) -> str | None:
        """Install the wheels of the plan."""
        return install_wheels(plan or self.plan, installer, self.journal, self.stash, self.output)

    def tree(self) -> dict[str, object]:
        """Return what is there of the environment's own, byte code of written sources left out."""
        names = read_tree(self.builder.prefix, ignore=(".lock", ".safe-uninstall"))
        return {path: entry for path, entry in names.items() if "__pycache__/" not in path or "gone." in path}


@pytest.fixture
def stage(environment: EnvironmentBuilder, tmp_path: Path) -> Stage:
    """Return an environment up to the moment of the installation."""
    return Stage(environment, tmp_path / "wheels")


def program(path: Path, text: str) -> Installer:
    """Return an installer that is a shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return Installer(kind=InstallerKind.PIP, command=(str(path),), options=())


@BOTH
def test_only_what_the_wheel_writes_is_changed(stage: Stage, kind: InstallerKind) -> None:
    """The overwritten file is the wheel's again; metadata, scripts and other byte code are as before.

    So are scripts that the installer writes in another way than the one that installed them.
    """
    before = stage.tree()
    assert stage.install(stage.installer(kind)) is None
    after = stage.tree()
    shared = os.path.relpath(stage.builder.path("lib/shared.py"), stage.builder.prefix)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == {shared}
    assert Path(stage.builder.path("lib/shared.py")).read_text() == "x = 1\n"
    assert "own" in "\n".join(stage.output)
    assert (stage.info / "INSTALLER").read_text() == "somebody\n"


def test_a_script_that_is_gone_is_written_anew(stage: Stage) -> None:
    """What was damaged before is not brought back as it was; what nobody knows a hash of is not judged."""
    tool = stage.builder.bin / "tool"
    record = stage.info / "RECORD"
    rows = [row for row in record.read_text().splitlines() if not row.startswith("../../../bin/own,")]
    record.unlink()
    record.write_text("\n".join([*rows, "../../../bin/own,,", "../../../bin/gone,sha256=abc,1", "short", ""]))
    tool.unlink()
    stage.stash = Stash(str(stage.builder.prefix.parent / "fresh"))
    stage.keep(stage.stash)
    assert stage.install(stage.installer(InstallerKind.PIP)) is None
    assert tool.read_text().endswith("print('own')\n")
    assert not (stage.builder.bin / "gone").exists()


def test_an_installer_that_fails(stage: Stage, tmp_path: Path) -> None:
    """The status is told, what it said is kept, and nothing is put right: that is for the roll back."""
    (stage.info / "REQUESTED").unlink()
    reason = stage.install(program(tmp_path / "pip", "echo half-way; exit 7"))
    assert reason == "pip failed with status 7"
    assert stage.output == ["half-way"]
    assert not (stage.info / "REQUESTED").exists()


def test_the_installer_gets_pins_and_a_directory(stage: Stage, tmp_path: Path) -> None:
    """Wheels are found by name in a directory that has these and no others, so that none comes from elsewhere."""
    assert (
        stage.install(program(tmp_path / "pip", 'for word; do last="$word"; done; echo "$last"; ls "$6" || ls "$5"'))
        is None
    )
    (said,) = stage.output
    assert said.splitlines()[0] == "own==1.0"
    assert stage.own.name in said


def test_what_cannot_be_put_back_is_told(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is rolled back then, which tries again."""
    text = f"rm {stage.info}/direct_url.json"

    def rename(_source: str, _target: str) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "rename", rename)
        reason = stage.install(program(tmp_path / "pip", text))
    assert reason == f"{stage.info}/direct_url.json could not be put back: Input/output error"


def test_byte_code_of_other_sources_is_not_kept(stage: Stage) -> None:
    """What must be there afterwards as before: nothing that goes, nothing that is written, no byte code of that."""
    kept = {os.path.relpath(path, stage.builder.prefix) for path in kept_paths(stage.plan.prediction, stage.stash)}
    site = os.path.relpath(stage.builder.site_packages, stage.builder.prefix)
    assert f"{site}/lib/__pycache__/gone.cpython-311.pyc" in kept
    assert f"{site}/own-1.0.dist-info/RECORD" in kept
    assert f"{site}/lib/__pycache__/shared.cpython-311.pyc" not in kept
    assert f"{site}/lib/shared.py" not in kept
    assert f"{site}/lib" not in kept
    assert not any("other-1.0.dist-info" in path for path in kept)


def prediction(builder: EnvironmentBuilder, *written: str, installed: str | None = None) -> Prediction:
    """Return a prediction of paths that wheels write."""
    return Prediction(
        removed=frozenset(),
        deleted=frozenset(),
        released=frozenset(),
        written={str(builder.site_packages / path): "" for path in written},
        installed=frozenset() if installed is None else frozenset({str(builder.site_packages / installed)}),
    )


def test_what_is_new_goes_away_again(environment: EnvironmentBuilder) -> None:
    """Also what nobody could foresee: byte code, and new files of a dist-info that is restored."""
    environment.distribution("there", files={"pkg/a.py": "", "pkg/__pycache__/a.cpython-311.pyc": "old"})
    info = environment.distribution("restored", metadata={"licenses/LICENSE": ""})
    before = read_tree(environment.prefix)
    planned = prediction(
        environment,
        "pkg/a.py",
        "pkg/b.py",
        "new/deep/c.py",
        "top.py",
        "../../../share/x/y",
        installed="new-1.dist-info",
    )
    planned = Prediction(
        removed=planned.removed,
        deleted=planned.deleted,
        released=planned.released,
        written=planned.written,
        installed=planned.installed,
        restored=frozenset({str(info)}),
    )
    facts = what_will_be_new(planned)
    for path in (*planned.written, *(f"{item}/METADATA" for item in planned.installed)):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).touch()
    for path in ("pkg/__pycache__/b.cpython-311.pyc", "new/deep/__pycache__/c.pyc", "__pycache__/top.pyc"):
        os.makedirs(environment.site_packages / os.path.dirname(path), exist_ok=True)
        (environment.site_packages / path).touch()
    (info / "REQUESTED").touch()
    (info / "licenses/more").mkdir()
    (environment.site_packages / "pkg/__pycache__/link").symlink_to("/")
    assert remove_what_is_new(facts) == ()
    assert read_tree(environment.prefix) == before
    assert remove_what_is_new(facts) == ()
    assert remove_what_is_new({}) == ()


def test_directories_that_are_gone_have_nothing_new(environment: EnvironmentBuilder) -> None:
    """An installer that was stopped may have taken a whole directory; the stash has it."""
    environment.distribution("there", files={"pkg/a.py": "", "pkg/__pycache__/a.cpython-311.pyc": "old"})
    facts = what_will_be_new(prediction(environment, "pkg/a.py"))
    assert list(facts["listings"]) == [environment.path("pkg/__pycache__")]
    for name in ("__pycache__/a.cpython-311.pyc", "a.py"):
        (environment.site_packages / "pkg" / name).unlink()
    (environment.site_packages / "pkg/__pycache__").rmdir()
    assert remove_what_is_new(facts) == ()


def test_what_never_came_need_not_go(environment: EnvironmentBuilder) -> None:
    """A file in the place of a directory keeps an installer from creating anything below it."""
    (environment.site_packages / "pkg").write_text("in the way")
    facts = what_will_be_new(prediction(environment, "pkg/a.py"))
    assert remove_what_is_new(facts) == ()
    assert (environment.site_packages / "pkg").read_text() == "in the way"


def test_what_cannot_be_removed_is_told(environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """And everything else is removed all the same."""
    facts = what_will_be_new(prediction(environment, "a.py", "b.py", "c/d.py"))
    for path in ("a.py", "b.py"):
        (environment.site_packages / path).touch()
    (environment.site_packages / "c").mkdir()
    real: Callable[[str], None] = os.unlink

    def unlink(path: str) -> None:
        if path.endswith("a.py"):
            raise PermissionError(1, "Operation not permitted", path)
        real(path)

    with monkeypatch.context() as broken:
        broken.setattr(os, "unlink", unlink)
        problems = remove_what_is_new(facts)
    assert problems == (f"{environment.path('a.py')} could not be removed: Operation not permitted",)
    assert sorted(os.listdir(environment.site_packages)) == ["a.py"]
