"""One process at a time changes an environment."""

import builtins
import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.execute.lock import LOCK_NAME, EnvironmentLock
from safe_uninstall.model.errors import EnvironmentBusy, EnvironmentNotFound


def hold(prefix: Path) -> int:
    """Take the lock the way uv does."""
    descriptor = os.open(prefix / LOCK_NAME, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def is_free(prefix: Path) -> bool:
    """Return whether somebody else could take the lock."""
    descriptor = os.open(prefix / LOCK_NAME, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_it_is_held_and_given_back(tmp_path: Path) -> None:
    """The lock is the flock that uv takes too, and the file stays."""
    lock = EnvironmentLock(str(tmp_path))
    with lock:
        assert not is_free(tmp_path)
    assert is_free(tmp_path)
    assert (tmp_path / LOCK_NAME).exists()
    lock.__exit__(None, None, None)


def test_it_waits_for_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder that ends in time is waited for."""
    other = hold(tmp_path)
    monkeypatch.setattr("time.sleep", lambda _seconds: os.close(other))
    with EnvironmentLock(str(tmp_path), timeout=60):
        assert not is_free(tmp_path)


def test_the_holder_is_named(tmp_path: Path) -> None:
    """The error names the process and its command."""
    other = hold(tmp_path)
    with pytest.raises(EnvironmentBusy) as caught, EnvironmentLock(str(tmp_path), timeout=0):
        pass
    os.close(other)
    assert f", process {os.getpid()} (" in caught.value.message


@pytest.mark.parametrize("hidden", ["/proc/locks", "/comm"])
def test_without_proc_the_holder_stays_unnamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: str) -> None:
    """In a container without /proc, or with another user's process, the message is shorter."""
    other = hold(tmp_path)
    real = builtins.open

    def guarded(path: Any, *arguments: Any, **options: Any) -> Any:
        if str(path).endswith(hidden):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *arguments, **options)

    monkeypatch.setattr(builtins, "open", guarded)
    with pytest.raises(EnvironmentBusy) as caught, EnvironmentLock(str(tmp_path), timeout=0):
        pass
    monkeypatch.undo()
    os.close(other)
    assert caught.value.message.endswith("`" if hidden == "/proc/locks" else f"process {os.getpid()}")


def test_other_locks_in_proc_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a lock on this very file tells the holder."""
    listing = tmp_path / "locks"
    listing.write_text("1: POSIX ADVISORY WRITE 1 00:00:1 0 EOF\n2: FLOCK ADVISORY WRITE 2 00:00:1 0 EOF\nshort\n")
    other = hold(tmp_path)
    real = builtins.open
    monkeypatch.setattr(
        builtins, "open", lambda path, *a, **k: real(listing if path == "/proc/locks" else path, *a, **k)
    )
    with pytest.raises(EnvironmentBusy) as caught, EnvironmentLock(str(tmp_path), timeout=0):
        pass
    monkeypatch.undo()
    os.close(other)
    assert "process" in caught.value.message
    assert ", process" not in caught.value.message


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """A link in the place of the lock could make us create a file anywhere."""
    (tmp_path / LOCK_NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentNotFound, match="cannot be opened for writing"), EnvironmentLock(str(tmp_path)):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_system_without_locks_is_used_unlocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ENOLCK is no reason to refuse."""

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with EnvironmentLock(str(tmp_path)):
        pass
