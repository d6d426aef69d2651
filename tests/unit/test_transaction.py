"""A run ends with the planned environment or with the old one, and says which."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.execute import installers, transaction
from safe_uninstall.execute.interrupts import Interrupted
from safe_uninstall.execute.journal import DIRECTORY, Step
from safe_uninstall.execute.processes import InstallerRun
from safe_uninstall.execute.stash import Stash
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import (
    EnvironmentBusy,
    EnvironmentNotFound,
    StalePlan,
    UnfinishedTransaction,
    UsageError,
)
from safe_uninstall.model.outcome import OutcomeState
from safe_uninstall.model.plan import Verdict
from tests.support.environments import EnvironmentBuilder, TreeEntry, library, read_tree
from tests.support.runs import build_twins, carry_out, plan_for

BOTH = pytest.mark.parametrize("kind", list(InstallerKind), ids=lambda kind: kind.value)
needs_no_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


def without(tree: dict[str, TreeEntry], *gone: str) -> dict[str, TreeEntry]:
    """Return a tree without some paths and what is below them."""
    return {
        path: entry
        for path, entry in tree.items()
        if not any(path == item or path.startswith(f"{item}/") for item in gone)
    }


@BOTH
def test_twins_end_as_planned(environment: EnvironmentBuilder, kind: InstallerKind) -> None:
    """What the survivor owns stays byte for byte, byte code beside it included; the rest is gone, and nothing else."""
    build_twins(environment)
    before = read_tree(environment.prefix)
    plan = plan_for(environment, "twin-cu11", installer=kind)
    outcome = carry_out(environment, plan)
    assert (outcome.state, outcome.mismatches, outcome.stash) == (OutcomeState.COMMITTED, (), None)
    site = os.path.relpath(environment.site_packages, environment.prefix)
    gone = ["twin_cu11-11.8.dist-info", "nvidia/nvtx/own11.py", "only11"]
    gone += ["nvidia/nvtx/__pycache__/own11.cpython-311.pyc"]
    ours = {".safe-uninstall", ".safe-uninstall/history", f".safe-uninstall/history/{outcome.transaction}.json"}
    after = read_tree(environment.prefix)
    assert {path for path in after if path.startswith(".safe-uninstall")} == ours
    assert without(after, ".safe-uninstall") == without(before, *(f"{site}/{path}" for path in gone))


@BOTH
def test_hard_links_are_never_written_through(
    environment: EnvironmentBuilder, tmp_path: Path, kind: InstallerKind
) -> None:
    """Files that are hard links into uv's cache keep their bytes there, RECORD too."""
    build_twins(environment)
    cache = tmp_path / "cache"
    subprocess.run(["cp", "-al", str(environment.prefix), str(cache)], check=True)
    before = read_tree(cache)
    outcome = carry_out(environment, plan_for(environment, "twin-cu11", installer=kind))
    assert outcome.state is OutcomeState.COMMITTED
    assert read_tree(cache) == before


@BOTH
def test_unsafe_rows_are_kept_from_the_installer(
    environment: EnvironmentBuilder, tmp_path: Path, kind: InstallerKind
) -> None:
    """A row that leads out of the environment is not touched, whatever the installer would do with it."""
    victim = tmp_path / "victim.txt"
    victim.write_text("precious")
    relative = os.path.relpath(victim, environment.site_packages)
    environment.distribution("evil", "1.0", {"evil.py": "1"}, extra_rows=[f"{relative},,", f"{victim},,"])
    outcome = carry_out(environment, plan_for(environment, "evil", installer=kind))
    assert outcome.state is OutcomeState.COMMITTED
    assert victim.read_text() == "precious"
    assert not (environment.site_packages / "evil.py").exists()


@BOTH
def test_duplicates_go_together(environment: EnvironmentBuilder, kind: InstallerKind) -> None:
    """Several dist-info of one name are all removed."""
    environment.distribution("dup", "1.0", {"dup/a.py": "1"})
    environment.distribution("dup", "2.0", {"dup/a.py": "2", "dup/b.py": "2"})
    outcome = carry_out(environment, plan_for(environment, "dup", installer=kind))
    assert outcome.state is OutcomeState.COMMITTED
    assert os.listdir(environment.site_packages) == []


@BOTH
def test_scripts_and_files_outside_site_packages_go(environment: EnvironmentBuilder, kind: InstallerKind) -> None:
    """Console scripts and ../../ rows are removed; a script of a survivor's entry point stays."""
    environment.distribution("one", "1.0", {"one.py": "1"}, scripts={"tool": "one:main"})
    environment.distribution(
        "two", "1.0", {"../../share/two/data.txt": "2"}, scripts={"tool": "one:main", "own": "two:m"}
    )
    outcome = carry_out(environment, plan_for(environment, "two", installer=kind))
    assert outcome.state is OutcomeState.COMMITTED
    assert sorted(os.listdir(environment.bin)) == ["python", "tool"]
    assert not (environment.prefix / "lib" / "share").exists()


@BOTH
def test_links_stay_links(environment: EnvironmentBuilder, tmp_path: Path, kind: InstallerKind) -> None:
    """Where files are links into a cache (UV_LINK_MODE=symlink) released links stay, and the cache is untouched."""
    build_twins(environment)
    cache = tmp_path / "cache"
    cache.mkdir()
    number = 0
    for path in sorted(environment.site_packages.rglob("*")):
        if path.is_file() and "dist-info" not in str(path) and "__pycache__" not in str(path):
            number += 1
            os.rename(path, cache / str(number))
            os.symlink(cache / str(number), path)
    before = read_tree(cache)
    outcome = carry_out(environment, plan_for(environment, "twin-cu11", installer=kind))
    assert outcome.state is OutcomeState.COMMITTED
    assert read_tree(cache) == before
    assert (environment.site_packages / "nvidia/nvtx/lib/libnvToolsExt.so.1").is_symlink()
    assert not (environment.site_packages / "nvidia/nvtx/own11.py").is_symlink()


def test_kept_backup_holds_the_files(environment: EnvironmentBuilder) -> None:
    """With keep_backup the outcome names a directory that still has what was removed."""
    environment.distribution("one", "1.0", {"one.py": "precious"})
    outcome = carry_out(environment, plan_for(environment, "one"), keep_backup=True)
    assert outcome.stash is not None
    kept = [path.read_bytes() for path in Path(outcome.stash).iterdir()]
    assert b"precious" in kept
    environment.distribution("two", "1.0", {"two.py": "2"})
    again = carry_out(environment, plan_for(environment, "two"))
    assert again.state is OutcomeState.COMMITTED, "a kept backup is no unfinished run"


def test_a_blocking_plan_is_refused(environment: EnvironmentBuilder) -> None:
    """A plan with the verdict block cannot be carried out."""
    build_twins(environment)
    plan = plan_for(environment, "twin-cu11", "twin-cu12")
    assert plan.verdict is Verdict.BLOCK
    with pytest.raises(UsageError):
        carry_out(environment, plan)


def test_a_stale_plan_is_refused_with_what_changed(environment: EnvironmentBuilder) -> None:
    """An environment that changed since the plan was made is not touched, and the error says what changed."""
    build_twins(environment)
    plan = plan_for(environment, "twin-cu11")
    environment.distribution("newcomer", "1.0", {"n.py": "1"})
    before = read_tree(environment.prefix)
    with pytest.raises(StalePlan) as caught:
        carry_out(environment, plan)
    assert caught.value.changes == ("distribution newcomer is new",)
    assert read_tree(environment.prefix) == before


def test_a_second_run_is_refused_while_the_first_holds_the_lock(environment: EnvironmentBuilder) -> None:
    """Two runs exclude each other by the file that uv locks, and the error names the process."""
    build_twins(environment)
    plan = plan_for(environment, "twin-cu11")
    lock = environment.prefix / ".lock"
    code = (
        f"import fcntl, os, time; file = os.open({str(lock)!r}, os.O_RDWR | os.O_CREAT);"
        " fcntl.flock(file, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        before = read_tree(environment.prefix)
        with pytest.raises(EnvironmentBusy) as caught:
            carry_out(environment, plan, lock_timeout=0.2)
        holder.kill()
    assert f"process {holder.pid}" in caught.value.message
    assert read_tree(environment.prefix) == before


def test_an_unfinished_run_must_be_recovered_first(environment: EnvironmentBuilder) -> None:
    """A journal without an end stops every further run."""
    build_twins(environment)
    plan = plan_for(environment, "twin-cu11", python="my env")
    (environment.prefix / DIRECTORY / "20200101T000000").mkdir(parents=True)
    with pytest.raises(UnfinishedTransaction) as caught:
        carry_out(environment, plan)
    assert caught.value.help[0].endswith(": safe-uninstall -p 'my env' recover")


Sabotage = Callable[[EnvironmentBuilder], InstallerRun]


def fails(_builder: EnvironmentBuilder) -> InstallerRun:
    """Fail before anything."""
    return InstallerRun(command=("pip",), returncode=1, output="no luck")


def fails_half_way(builder: EnvironmentBuilder) -> InstallerRun:
    """Delete some files, leave pip's temporary directory behind, then fail."""
    os.rename(builder.site_packages / "only11", builder.site_packages / "~nly11")
    (builder.site_packages / "~file").write_text("x")
    (builder.site_packages / "nvidia/nvtx/own11.py").unlink()
    return InstallerRun(command=("pip",), returncode=2, output="half")


def deletes_a_strangers_file(builder: EnvironmentBuilder) -> InstallerRun:
    """Remove a released library and a file of the survivor's, and claim success."""
    (builder.site_packages / "nvidia/nvtx/lib/libnvToolsExt.so.1").unlink()
    (builder.site_packages / "twin_cu11-11.8.dist-info/RECORD").unlink()
    return InstallerRun(command=("pip",), returncode=0, output="")


def raises(_builder: EnvironmentBuilder) -> InstallerRun:
    """Cannot even be started."""
    raise OSError(2, "No such file or directory")


def is_interrupted(_builder: EnvironmentBuilder) -> InstallerRun:
    """Get SIGTERM in the middle."""
    os.kill(os.getpid(), signal.SIGTERM)
    raise AssertionError("unreachable")


@pytest.mark.parametrize("sabotage", [fails, fails_half_way, raises, is_interrupted], ids=lambda item: item.__name__)
def test_a_failing_installer_is_rolled_back(
    environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch, sabotage: Sabotage
) -> None:
    """Whatever the installer did, every path is back with type, mode and bytes, and nothing of ours is left."""
    build_twins(environment)
    (environment.site_packages / "~old").mkdir()
    before = read_tree(environment.prefix)
    plan = plan_for(environment, "twin-cu11")
    monkeypatch.setattr(transaction, "run_installer", lambda *_: sabotage(environment))
    outcome = carry_out(environment, plan)
    assert outcome.state is OutcomeState.ROLLED_BACK
    assert outcome.reason
    assert read_tree(environment.prefix) == before


def test_released_paths_that_the_installer_took_come_back(
    environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trimming RECORD is the first net, the stash the second: a released file that went all the same is put back."""
    build_twins(environment)
    library_path = environment.site_packages / "nvidia/nvtx/lib/libnvToolsExt.so.1"
    inode = library_path.stat().st_ino
    real = installers.run_installer

    def greedy(*arguments: Any) -> InstallerRun:
        run = real(*arguments)
        library_path.unlink()
        return run

    monkeypatch.setattr(transaction, "run_installer", greedy)
    outcome = carry_out(environment, plan_for(environment, "twin-cu11"))
    assert outcome.state is OutcomeState.COMMITTED
    assert library_path.stat().st_ino == inode


def stranger_removes_a_survivors_file(builder: EnvironmentBuilder) -> None:
    """Something else deletes a survivor's own file meanwhile."""
    (builder.site_packages / "consumer/c.so").unlink()


def stranger_replaces_a_survivors_library(builder: EnvironmentBuilder) -> None:
    """Something else puts another library in the place of a survivor's."""
    builder.distribution("x", "1", {"consumer/c.so": library("other")}, record=None)
    import shutil

    shutil.rmtree(builder.site_packages / "x-1.dist-info")


def stranger_installs(builder: EnvironmentBuilder) -> None:
    """pip, which takes no lock, installs something meanwhile."""
    builder.distribution("newcomer", "1.0", {"n.py": "1"})


def stranger_removes(builder: EnvironmentBuilder) -> None:
    """Pip removes a survivor meanwhile."""
    import shutil

    shutil.rmtree(builder.site_packages / "twin_cu12-12.1.dist-info")


def stranger_changes(builder: EnvironmentBuilder) -> None:
    """Pip reinstalls a survivor meanwhile."""
    record = builder.site_packages / "consumer-1.0.dist-info/RECORD"
    text = record.read_text()
    record.unlink()
    record.write_text(text + "more.py,,\n")


@pytest.mark.parametrize(
    ("stranger", "expected"),
    [
        (stranger_removes_a_survivors_file, "consumer/c.so of consumer 1.0 is gone, and there is no copy of it"),
        (stranger_replaces_a_survivors_library, "consumer/c.so of consumer 1.0 is another file"),
        (stranger_installs, "newcomer 1.0 was installed by somebody else"),
        (stranger_removes, "METADATA of twin-cu12 12.1 is gone, and there is no copy of it"),
        (stranger_changes, "consumer 1.0 was changed by somebody else"),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_an_outcome_that_was_not_planned_is_rolled_back(
    environment: EnvironmentBuilder,
    monkeypatch: pytest.MonkeyPatch,
    stranger: Callable[[EnvironmentBuilder], None],
    expected: str,
) -> None:
    """The rescan finds what somebody else did meanwhile; our own part is undone, and the difference is named."""
    build_twins(environment)
    touched = {path for path in read_tree(environment.prefix) if "twin_cu11" in path or "own11" in path}
    before = {path: entry for path, entry in read_tree(environment.prefix).items() if path in touched}
    real = installers.run_installer

    def meanwhile(*arguments: Any) -> InstallerRun:
        stranger(environment)
        return real(*arguments)

    monkeypatch.setattr(transaction, "run_installer", meanwhile)
    outcome = carry_out(environment, plan_for(environment, "twin-cu11"))
    # What nobody was to touch is in no stash: its loss is said, and the environment is not called as it was.
    lost = expected.endswith("no copy of it")
    assert outcome.state is (OutcomeState.ROLLBACK_INCOMPLETE if lost else OutcomeState.ROLLED_BACK)
    assert any(item.endswith(expected) for item in outcome.mismatches), outcome.mismatches
    after = read_tree(environment.prefix)
    assert {path: after.get(path) for path in touched} == before


def test_an_installer_that_does_nothing_is_found_out(
    environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Success without effect on a distribution whose metadata reappears is a mismatch."""
    build_twins(environment)
    before = read_tree(environment.prefix)
    plan = plan_for(environment, "twin-cu11")
    monkeypatch.setattr(transaction, "run_installer", lambda *_: InstallerRun(command=(), returncode=0, output=""))
    monkeypatch.setattr(transaction, "_finish_deletion", lambda _plan: None)
    outcome = carry_out(environment, plan)
    assert outcome.state is OutcomeState.ROLLED_BACK
    assert "twin-cu11 11.8 is still installed" in outcome.mismatches
    assert any(item.endswith("own11.py is still there") for item in outcome.mismatches)
    assert read_tree(environment.prefix) == before


def test_many_mismatches_are_cut_short(environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of thousands helps nobody."""
    environment.distribution("many", "1.0", {f"many/{number}.txt": "x" for number in range(40)})
    plan = plan_for(environment, "many")
    monkeypatch.setattr(transaction, "run_installer", lambda *_: InstallerRun(command=(), returncode=0, output=""))
    monkeypatch.setattr(transaction, "_finish_deletion", lambda _plan: None)
    outcome = carry_out(environment, plan)
    assert len(outcome.mismatches) == 21
    assert outcome.mismatches[-1] == "and more"


def test_a_failed_put_back_rolls_back(environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A released file that cannot be put back where it was undoes the whole run."""
    build_twins(environment)
    before = read_tree(environment.prefix)
    blocked = environment.site_packages / "nvidia/nvtx/shared.py"

    def blocks(*_: Any) -> InstallerRun:
        blocked.unlink()
        blocked.mkdir()
        return InstallerRun(command=(), returncode=0, output="")

    monkeypatch.setattr(transaction, "run_installer", blocks)
    plan = plan_for(environment, "twin-cu11")
    outcome = carry_out(environment, plan)
    assert outcome.state is OutcomeState.ROLLBACK_INCOMPLETE
    assert outcome.stash is not None
    assert os.path.isdir(outcome.stash), "a failed restore never drops the stash"
    blocked.rmdir()
    from safe_uninstall.execute.recovery import recover

    assert [item.state for item in recover(str(environment.prefix))] == [OutcomeState.ROLLED_BACK]
    assert read_tree(environment.prefix) == before


def test_nothing_is_touched_when_the_stash_cannot_be_made(
    environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk before the first change is an error that names it, and leaves nothing behind."""
    build_twins(environment)
    before = read_tree(environment.prefix)
    plan = plan_for(environment, "twin-cu11")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(EnvironmentNotFound, match="No space left on device"):
        carry_out(environment, plan)
    assert read_tree(environment.prefix) == before


def test_an_interrupt_while_stashing_leaves_nothing(
    environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C before the first change ends the run and takes the stash away."""
    build_twins(environment)
    before = read_tree(environment.prefix)
    plan = plan_for(environment, "twin-cu11")
    monkeypatch.setattr(Stash, "keep", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Interrupted):
        carry_out(environment, plan)
    assert read_tree(environment.prefix) == before


def test_the_directory_for_the_journal_must_be_makeable(environment: EnvironmentBuilder) -> None:
    """A file in the place of our directory is an error, not a crash."""
    build_twins(environment)
    (environment.prefix / DIRECTORY).write_text("in the way")
    with pytest.raises(EnvironmentNotFound, match="cannot be prepared"):
        carry_out(environment, plan_for(environment, "twin-cu11"))


def test_a_directory_that_may_not_be_changed_is_named(
    environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing permission is found before anything changes."""
    build_twins(environment)
    plan = plan_for(environment, "twin-cu11")
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "only11" not in str(path) and real(path, mode))
    with pytest.raises(EnvironmentNotFound, match="only11/sub"):
        carry_out(environment, plan)


def test_an_installer_that_ignores_the_timeout_gets_the_lock(
    environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old uv would wait for our lock for ever: it is given back while uv runs, and taken again."""
    build_twins(environment)
    monkeypatch.setattr(installers, "_uv_version", lambda _uv: (0, 1))
    outcome = carry_out(environment, plan_for(environment, "twin-cu11", installer=InstallerKind.UV))
    assert outcome.state is OutcomeState.COMMITTED


def test_progress_tells_the_stages(environment: EnvironmentBuilder) -> None:
    """Each stage is announced when it begins."""
    environment.distribution("one", "1.0", {"one.py": "1"})
    told: list[str] = []
    carry_out(environment, plan_for(environment, "one"), progress=told.append)
    assert told == ["keeping what will be touched", "uninstalling", "verifying"]


def test_steps_that_end_are_final() -> None:
    """Only a commit and a complete roll back end a transaction."""
    assert {step for step in Step if step.is_final} == {Step.COMMITTED, Step.ROLLED_BACK}
