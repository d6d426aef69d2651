"""Writes what ``-o`` names: the whole of it or nothing."""

import os
import stat
import tempfile

from safe_uninstall.model.errors import UsageError


def save(text: str, path: str, *, what: str) -> None:
    """Write a text and a line end to a file; where it fails half-way, what was there before stays.

    Args:
        text: what to write.
        path: a file, which is replaced, or a device, which is written to.
        what: what it is, for the error: ``plan``.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text + "\n")
            return
        _replace(os.path.realpath(path), (text + "\n").encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise UsageError(f"the {what} cannot be saved as `{path}`: {error.strerror}") from None


def _replace(path: str, data: bytes) -> None:
    mode = stat.S_IMODE(os.stat(path).st_mode) if os.path.exists(path) else 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(prefix=f".{os.path.basename(path)[:40]}-", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    """Return the mode bits that new files do not get; asking for it means setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
