"""Finds wheels in pip's cache: those that it built, and the answers of servers that it keeps.

pip itself asks the index for a name before it looks there, so that without a network it does not see what it has. Its
answers have no names; what they are is in the archives. Layouts: ``http`` up to pip 23.2 (the answer within a message),
``http-v2`` since (the answer alone, in ``*.body``), ``wheels`` for what was built.
"""

from __future__ import annotations

import os
import posixpath
import zipfile
from typing import TYPE_CHECKING

from safe_uninstall.execute.processes import run_program
from safe_uninstall.execute.wheel_tags import parse_tags, wheel_file_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from safe_uninstall.model.distribution import Distribution

_START = b"PK\x03\x04"
"""How a zip archive begins (its first local header)."""
_END = b"PK\x05\x06"
"""How its end record begins, which is 22 bytes long and followed by a comment, whose length is the last of them."""
_END_LENGTH = 22
_HEAD = 64
"""Bytes within which an archive begins in an answer: what is before it says how long it is."""
_COMMENT_LIMIT = 1 << 16
_CHUNK = 1 << 20
_RECORD = ".dist-info/RECORD"


def cache_directory(pip: tuple[str, ...], settings: Mapping[str, str]) -> str | None:
    """Return the absolute path of pip's cache, None where there is none.

    Args:
        pip: its command up to the sub-command.
        settings: the user's.
    """
    run = run_program((*pip, "cache", "dir"), settings=settings)
    return run.output if run.returncode == 0 and os.path.isabs(run.output) else None


class PipCache:
    """One cache, which is looked through once, when it is first asked for something."""

    def __init__(self, root: str | None) -> None:
        """Look into ``root``; None: there is no cache."""
        self._root = root
        self._archives: dict[str, list[str]] | None = None

    def wheels(self, distribution: Distribution, directory: str) -> Iterator[str]:
        """Yield wheel files of one name and version; whether they are the right build is checked afterwards.

        Args:
            distribution: what to look for.
            directory: where files go that are not wheel files in the cache.

        Raises:
            OSError: a file cannot be written there.
        """
        if self._archives is None:
            self._archives = {} if self._root is None else _archives(self._root)
        info = posixpath.basename(distribution.metadata_path)
        for number, path in enumerate(self._archives.get(info, ())):
            place = posixpath.join(directory, str(number))
            os.mkdir(place)
            found = _taken_out(path, info, place)
            if found is not None:
                yield found


def _archives(root: str) -> dict[str, list[str]]:
    """Return the archives of a cache by the name of their dist-info directory."""
    found: dict[str, list[str]] = {}
    for bucket in ("wheels", "http-v2", "http"):
        for directory, names, files in os.walk(posixpath.join(root, bucket)):
            names.sort()
            for name in sorted(files):
                path = posixpath.join(directory, name)
                info = _dist_info(path)
                if info is not None:
                    found.setdefault(info, []).append(path)
    return found


def _dist_info(path: str) -> str | None:
    """Return the name of the dist-info directory in a file, None when it is no wheel."""
    try:
        with open(path, "rb") as file:
            if _START not in file.read(_HEAD):
                return None
            with zipfile.ZipFile(file) as archive:
                names = [name for name in archive.namelist() if name.endswith(_RECORD) and name.count("/") == 1]
    except Exception:
        # Whatever is in a cache, a file that is no archive after all is none.
        return None
    return posixpath.dirname(names[0]) if len(names) == 1 else None


def _taken_out(path: str, info: str, directory: str) -> str | None:
    """Make a wheel file of an archive in a cache, with the name that it must have; None when it is gone or damaged."""
    if path.endswith(".whl"):
        return path
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            tags = parse_tags(archive.read(f"{info}/WHEEL").decode("utf-8", "replace"))
            start = min(item.header_offset for item in archive.infolist())
            end = _end(path)
    except Exception:
        return None
    target = posixpath.join(directory, wheel_file_name(info, tags))
    if (start, end) == (0, os.path.getsize(path)):
        os.symlink(path, target)
        return target
    with open(path, "rb") as file, open(target, "wb") as wheel:
        file.seek(start)
        left = end - start
        while left and (part := file.read(min(left, _CHUNK))):
            wheel.write(part)
            left -= len(part)
    return target


def _end(path: str) -> int:
    """Return where the archive in a file ends."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        first = max(0, size - _COMMENT_LIMIT - _END_LENGTH)
        file.seek(first)
        tail = file.read()
    record = tail.rindex(_END)
    comment = int.from_bytes(tail[record + _END_LENGTH - 2 : record + _END_LENGTH], "little")
    return first + record + _END_LENGTH + comment
