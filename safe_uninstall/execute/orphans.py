"""Ends installers that outlived the run that started them: nothing may go on while files are put back.

A run that is killed with SIGKILL cannot end its installer, which then goes on removing files. Every program that a
transaction starts carries the transaction in a variable, and the journal says which process runs it.
"""

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

VARIABLE = "SAFE_UNINSTALL_TRANSACTION"
"""Holds the directory of the transaction, in every program that it starts."""

_WAIT = 10.0
"""Seconds for a killed process to be gone."""
_INTERVAL = 0.02


@contextmanager
def marked(directory: str) -> Iterator[None]:
    """Mark every program that is started meanwhile as one of a transaction."""
    os.environ[VARIABLE] = directory
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)


def this_process(proc: str = "/proc") -> dict[str, Any]:
    """Return what tells this process from any other, also from a later one of the same number."""
    return {"pid": os.getpid(), "started": _started(os.getpid(), proc), "boot": _boot(proc)}


def is_running(process: Mapping[str, Any], proc: str = "/proc") -> bool:
    """Return whether a process that ``this_process`` described is there still; what cannot be known is a no."""
    pid, started = process.get("pid"), process.get("started")
    if not isinstance(pid, int) or not isinstance(started, str) or process.get("boot") != _boot(proc):
        return False
    return _started(pid, proc) == started


def end_orphans(directory: str, proc: str = "/proc") -> int:
    """Kill the programs that a transaction started and that are still there; return how many there were.

    Args:
        directory: of the transaction, whose own process is gone.
        proc: where processes are listed (proc(5)); nothing happens where there is none.
    """
    wanted = f"{VARIABLE}={directory}".encode("utf-8", "surrogateescape")
    found = [pid for pid in _processes(proc) if pid != os.getpid() and wanted in _variables(pid, proc)]
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    deadline = time.monotonic() + _WAIT
    while time.monotonic() < deadline and any(_is_alive(pid, proc) for pid in found):
        time.sleep(_INTERVAL)
    return len(found)


def _processes(proc: str) -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir(proc) if name.isdecimal())
    except OSError:
        return []


def _variables(pid: int, proc: str) -> tuple[bytes, ...]:
    try:
        with open(f"{proc}/{pid}/environ", "rb") as file:
            return tuple(file.read().split(b"\0"))
    except OSError:
        return ()


def _is_alive(pid: int, proc: str) -> bool:
    """Return whether a process runs: one that ended and that nobody waited for does not."""
    fields = _status(pid, proc)
    return bool(fields) and fields[0] not in ("Z", "X")


def _started(pid: int, proc: str) -> str | None:
    """Return the start time of a process in clock ticks since boot: field 22 of ``/proc/<pid>/stat`` (proc(5))."""
    fields = _status(pid, proc)
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else None


def _status(pid: int, proc: str) -> list[str]:
    """Return the fields of ``/proc/<pid>/stat`` behind the name of the program, which may hold anything."""
    try:
        with open(f"{proc}/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _boot(proc: str) -> str | None:
    try:
        with open(f"{proc}/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None
