"""The environment's lock: ``.lock`` at its root, the file that uv locks too."""

import os
import time
from types import TracebackType

from safe_uninstall.model.errors import EnvironmentBusy, EnvironmentNotFound

LOCK_NAME = ".lock"
_INTERVAL = 0.1
"""Seconds between two attempts."""


class EnvironmentLock:
    """An exclusive flock(2) on an environment; a context manager.

    uv takes the same lock (``flock`` on ``.lock`` in the environment's root), so that uv and a run of ours wait for
    each other. pip takes none.
    """

    def __init__(self, prefix: str, *, timeout: float = 10.0) -> None:
        """Prepare to lock the environment at ``prefix``, waiting at most ``timeout`` seconds for another holder."""
        self._path = os.path.join(prefix, LOCK_NAME)
        self._timeout = timeout
        self._descriptor: int | None = None

    def __enter__(self) -> "EnvironmentLock":
        """Take the lock.

        Raises:
            EnvironmentBusy: another process holds it.
            EnvironmentNotFound: the environment cannot be written to.
        """
        import fcntl

        try:
            # uv creates the file with these permissions, so that other users of the environment can lock it too.
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            reason = error.strerror or str(error)
            raise EnvironmentNotFound(
                f"`{self._path}` cannot be opened for writing: {reason}",
                help=("run this as a user who may change the environment",),
            ) from None
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = _holder(descriptor)
                    os.close(descriptor)
                    raise EnvironmentBusy(
                        f"another process works on this environment and holds `{self._path}`{holder}",
                        help=("wait for it to end, then run this again",),
                    ) from None
                time.sleep(_INTERVAL)
            except OSError:
                # No locks on this file system (some network ones): better unlocked than unusable.
                break
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give the lock back; the file stays, as uv leaves it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _holder(descriptor: int) -> str:
    """Return ``, process 123 (uv)`` for the process that holds a lock, as /proc/locks tells it, or nothing."""
    status = os.fstat(descriptor)
    wanted = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        with open("/proc/locks") as file:
            for line in file:
                fields = line.split()
                if len(fields) > 5 and fields[1] == "FLOCK" and fields[5] == wanted:
                    return f", process {fields[4]}{_command(fields[4])}"
    except OSError:
        pass
    return ""


def _command(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/comm") as file:
            return f" ({file.read().strip()})"
    except OSError:
        return ""
