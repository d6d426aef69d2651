"""Programs that outlived the run that started them are ended, and no others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from safe_uninstall.execute import orphans
from safe_uninstall.execute.journal import Step, create_journal
from safe_uninstall.execute.orphans import VARIABLE, end_orphans, is_running, marked, this_process
from safe_uninstall.execute.recovery import recover
from safe_uninstall.model.errors import EnvironmentBusy

SLEEP = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]


def started(command: list[str] = SLEEP) -> "subprocess.Popen[bytes]":
    """Start a program and wait until it runs."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_only_programs_of_the_transaction_are_ended(tmp_path: Path) -> None:
    """With what these started in turn; those of another transaction, and unmarked ones, go on."""
    mine, other = str(tmp_path / "mine"), str(tmp_path / "other")
    with marked(mine):
        parent = started(
            [sys.executable, "-c", f"import subprocess; print(flush=True); subprocess.run({SLEEP!r}, stdout=-3)"]
        )
    with marked(other):
        neighbour = started()
    unmarked = started()
    assert VARIABLE not in os.environ
    try:
        while len([pid for pid in os.listdir("/proc") if pid.isdecimal() and _is_child_of(int(pid), parent.pid)]) < 1:
            pass
        assert end_orphans(mine) == 2
        assert parent.wait(10) == -9
        assert (neighbour.poll(), unmarked.poll()) == (None, None)
        assert end_orphans(mine) == 0
    finally:
        for process in (neighbour, unmarked):
            process.kill()
            process.wait()


def _is_child_of(pid: int, parent: int) -> bool:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) == parent
    except OSError:
        return False


def test_a_process_is_told_from_a_later_one_of_its_number(tmp_path: Path) -> None:
    """By its start and the boot; what is not known to run does not run."""
    me = this_process()
    assert is_running(me)
    assert not is_running({**me, "started": "0"})
    assert not is_running({**me, "boot": "another"})
    assert not is_running({**me, "pid": "1"})
    assert not is_running({**me, "started": None})
    assert not is_running({})
    process = subprocess.Popen(SLEEP, stdout=subprocess.DEVNULL)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    # It ended, and nobody waited for it yet.
    stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    assert not is_running({**me, "pid": process.pid, "started": stat[19]})
    process.wait()
    assert not is_running({**me, "pid": process.pid, "started": stat[19]})


def test_without_a_list_of_processes_nothing_happens(tmp_path: Path) -> None:
    """And nothing is known to run."""
    assert end_orphans("x", proc=str(tmp_path / "none")) == 0
    assert not is_running(this_process(), proc=str(tmp_path))


@pytest.mark.parametrize("error", [ProcessLookupError, PermissionError])
def test_a_process_that_cannot_be_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError]) -> None:
    """It went by itself, or is somebody else's: no reason to fail."""

    def refuse(_pid: int, _signal: int) -> None:
        raise error

    monkeypatch.setattr(os, "kill", refuse)
    (tmp_path / "4711").mkdir()
    (tmp_path / "4711" / "environ").write_bytes(f"A=b\0{VARIABLE}=/x\0".encode())
    assert end_orphans("/x", proc=str(tmp_path)) == 1


def test_a_process_that_does_not_go_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in the kernel's hands cannot be hurried."""
    monkeypatch.setattr(orphans, "_WAIT", 0.05)
    monkeypatch.setattr(os, "kill", lambda _pid, _signal: None)
    (tmp_path / "4711").mkdir()
    (tmp_path / "4711" / "environ").write_bytes(f"{VARIABLE}=/x".encode())
    (tmp_path / "4711" / "stat").write_text("4711 (a) b) D 1 1")
    assert end_orphans("/x", proc=str(tmp_path)) == 1


def test_recovery_ends_the_installer_of_a_run_that_is_gone(tmp_path: Path) -> None:
    """Even one that holds the environment's lock, as uv does."""
    journal = create_journal(str(tmp_path))
    journal.write(Step.PREPARED, process={**this_process(), "started": "0"})
    lock = "import fcntl, time; f = open({!r}, 'w'); fcntl.flock(f, 2); print(flush=True); time.sleep(60)"
    with marked(journal.directory):
        installer = started([sys.executable, "-c", lock.format(str(tmp_path / ".lock"))])
    assert [item.transaction for item in recover(str(tmp_path), lock_timeout=0.5)] == [journal.identifier]
    assert installer.wait(10) == -9


def test_recovery_leaves_a_run_alone_that_is_there_still(tmp_path: Path) -> None:
    """Its installer works, and holds the lock: busy."""
    journal = create_journal(str(tmp_path))
    journal.write(Step.PREPARED, process=this_process())
    lock = "import fcntl, time; f = open({!r}, 'w'); fcntl.flock(f, 2); print(flush=True); time.sleep(60)"
    with marked(journal.directory):
        installer = started([sys.executable, "-c", lock.format(str(tmp_path / ".lock"))])
    with pytest.raises(EnvironmentBusy):
        recover(str(tmp_path), lock_timeout=0.2)
    assert installer.poll() is None
    installer.kill()
    installer.wait()
