"""Reads RECORD: which files a distribution says are its own (PyPA specification "Recording installed projects").

Parsed here rather than by ``importlib.metadata``, which is slow and, from Python 3.12 on, hides missing files.
"""

import os
import posixpath
from collections.abc import Iterable, Iterator
from functools import partial

from safe_uninstall.model.distribution import Record, RecordRow, RecordState
from safe_uninstall.scan.disk import DiskFileSystem

LOCKED_NAME = "RECORD.safe-uninstall-locked"
"""What RECORD is renamed to where our own protection keeps installers from touching a distribution."""

_SIZE_LIMIT = 512 << 20
"""Bytes; 500,000 rows have some 60 MB."""
_PROBLEMS_SHOWN = 5
_NO_NAMES = frozenset({"", ".", ".."})
_make_row = partial(tuple.__new__, RecordRow)
"""``RecordRow._make`` without its check of the length."""


def read_record(metadata_path: str, site_packages: str, prefix: str, disk: DiskFileSystem) -> Record:
    """Read the RECORD of one dist-info directory.

    Args:
        metadata_path: the dist-info directory.
        site_packages: what relative rows are relative to.
        prefix: root of the environment; a row that leads out of it is unsafe.
        disk: resolves directories.

    Returns:
        The rows inside the environment; state MISSING where there is no file. Never raises for what the file holds.
    """
    state = RecordState.PRESENT
    path = f"{metadata_path}/RECORD"
    if disk.entry(metadata_path, "RECORD") is None:
        state = RecordState.LOCKED
        path = f"{metadata_path}/{LOCKED_NAME}"
        if disk.entry(metadata_path, LOCKED_NAME) is None:
            return Record(state=RecordState.MISSING)
    try:
        data = _read(disk.location(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return Record(state=RecordState.MALFORMED, path=path, problems=(f"RECORD cannot be read: {reason}",))
    entries, problems = parse_record(data)
    if not entries and not problems:
        # Not even RECORD itself: an install that was cut off, and an installer would find nothing to uninstall.
        problems = ("RECORD is empty",)
    return make_record(
        entries, problems, state=state, path=path, site_packages=site_packages, prefix=prefix, disk=disk, data=data
    )


def make_record(
    entries: Iterable[tuple[str, str, str]],
    problems: tuple[str, ...],
    *,
    state: RecordState,
    path: str | None,
    site_packages: str,
    prefix: str,
    disk: DiskFileSystem,
    data: bytes,
) -> Record:
    """Turn (path as written, hash, size) entries into rows with canonical paths, each path once.

    Args:
        entries: as ``parse_record`` returns them.
        problems: what could not be read; any makes a PRESENT record MALFORMED.
        state: PRESENT or LOCKED.
        path: the file they came from.
        site_packages: what relative paths are relative to.
        prefix: root of the environment; site_packages counts as inside too.
        disk: resolves directories.
        data: the bytes of the file, for the digest.
    """
    import hashlib

    # Tens of thousands of rows: the loop does the least it can for each.
    directories: dict[str, str | None] = {}
    rows: dict[str, RecordRow] = {}
    unsafe: dict[str, None] = {}
    roots = (_with_slash(prefix), _with_slash(site_packages))
    for written, hash_, size in entries:
        head, _, name = written.rpartition("/")
        try:
            directory = directories[head]
        except KeyError:
            directory = directories[head] = _directory(head, written, site_packages, disk, roots)
        if directory is None or name in _NO_NAMES:
            canonical = _unplaced(written, site_packages, disk, roots)
            if canonical is None:
                unsafe.setdefault(written)
                continue
        else:
            canonical = directory + name
        if canonical not in rows:
            rows[canonical] = _make_row((canonical, hash_, int(size) if size.isdecimal() else None))
    return Record(
        state=RecordState.MALFORMED if problems and state is RecordState.PRESENT else state,
        path=path,
        rows=tuple(rows.values()),
        unsafe=tuple(unsafe),
        problems=problems,
        digest=hashlib.sha256(_without_script_hashes(data)).hexdigest(),
    )


def _without_script_hashes(data: bytes) -> bytes:
    """Return a RECORD without the hashes and sizes of scripts.

    Their first line names the interpreter, so that they differ between environments that are the same but for the
    prefix; and a digest of RECORD must not.
    """
    data = b"\n" + data
    kept = []
    position = 0
    while (start := data.find(b"\n../", position)) != -1:
        end = data.find(b"\n", start + 1)
        end = len(data) if end == -1 else end
        path, _, _ = data[start:end].partition(b",")
        kept += [data[position:start], path if b"/bin/" in path else data[start:end]]
        position = end
    return b"".join([*kept, data[position:]])


def parse_record(data: bytes) -> tuple[list[tuple[str, str, str]], tuple[str, ...]]:
    """Split the bytes of a RECORD into (path, hash, size) entries as written.

    Tolerates a byte order mark, CRLF, blank lines, rows of one or two columns and names that are no UTF-8 (kept
    by surrogateescape, PEP 383).

    Returns:
        The entries, and what could not be read, in words with line numbers.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    text = data.decode("utf-8", "surrogateescape")
    if '"' not in text:
        # Inside quotes a line end would be part of the path.
        text = text.replace("\r\n", "\n")
    if '"' not in text and "\r" not in text and "\0" not in text:
        plain = [tuple(line.split(",")) for line in text.split("\n") if line]
        if all(len(columns) == 3 and columns[0] for columns in plain):
            return plain, ()  # type: ignore[return-value]
    entries: list[tuple[str, str, str]] = []
    bad: list[tuple[int, str]] = []
    lines = _split_quoted(text, bad) if '"' in text else _split_plain(text)
    for number, columns in enumerate(lines, 1):
        count = len(columns)
        if count == 0 or (count == 1 and not columns[0].strip()):
            continue
        path = columns[0]
        if not path:
            bad.append((number, "has no path"))
        elif "\0" in path or "\n" in path or "\r" in path:
            bad.append((number, "has a path with control characters"))
        elif count > 3 and any(column.strip() for column in columns[3:]):
            bad.append((number, f"has {count} columns"))
        else:
            hash_ = columns[1].strip() if count > 1 else ""
            size = columns[2].strip() if count > 2 else ""
            entries.append((path, hash_, size))
    problems = [f"RECORD line {number} {what}" for number, what in bad[:_PROBLEMS_SHOWN]]
    if len(bad) > _PROBLEMS_SHOWN:
        problems.append(f"{len(bad) - _PROBLEMS_SHOWN} more lines of RECORD cannot be read")
    return entries, tuple(problems)


def _split_plain(text: str) -> Iterator[list[str]]:
    """Split lines without any quoting: what csv would do, several times faster."""
    for line in text.split("\n"):
        yield line.rstrip("\r").split(",")


def _split_quoted(text: str, bad: list[tuple[int, str]]) -> Iterator[list[str]]:
    import csv
    from io import StringIO

    reader = csv.reader(StringIO(text, newline=""))
    try:
        yield from reader
    except csv.Error as error:
        bad.append((reader.line_num, f"is no CSV, nor is anything after it read: {error}"))


def _read(location: str | None) -> bytes:
    if location is None:
        raise ValueError("it is a link that leads nowhere")
    with open(location, "rb") as file:
        if os.fstat(file.fileno()).st_size > _SIZE_LIMIT:
            raise ValueError(f"it is larger than {_SIZE_LIMIT >> 20} MiB")
        return file.read()


def _directory(head: str, written: str, site_packages: str, disk: DiskFileSystem, roots: tuple[str, ...]) -> str | None:
    """Return the canonical directory, with a slash, of rows that begin with ``head``; None when absent or outside."""
    if not head:
        return None if written.startswith("/") else _with_slash(site_packages)
    found = disk.real_directory(posixpath.join(site_packages, head))
    return _with_slash(found) if found is not None and _with_slash(found).startswith(roots) else None


def _unplaced(written: str, site_packages: str, disk: DiskFileSystem, roots: tuple[str, ...]) -> str | None:
    """Return a canonical path for a row whose directory is not there, None when the row leaves the environment.

    The nearest directory that exists decides: what lies below a directory that does not exist is not reached by
    any link.
    """
    path = posixpath.join(site_packages, written)
    if posixpath.basename(path.rstrip("/")) in ("", ".", ".."):
        real = disk.real_directory(path)
        return real if real is not None and real.startswith(roots) else None
    path = path.rstrip("/")
    below = [posixpath.basename(path)]
    parent = posixpath.dirname(path)
    while (real := disk.real_directory(parent)) is None:
        if parent in ("", "/"):
            return None
        below.append(posixpath.basename(parent))
        parent = posixpath.dirname(parent)
    if ".." in below:
        # Behind a directory that does not exist ".." leads nowhere for the kernel, but uv and pip resolve it as text.
        joined = posixpath.normpath(posixpath.join(real, *reversed(below)))
    else:
        joined = posixpath.join(real, *reversed(below))
    return joined if joined.startswith(roots) else None


def _with_slash(path: str) -> str:
    return path if path.endswith("/") else path + "/"
