"""Searches the constant data of an ELF file for file names: what it may hand to ``dlopen``."""

import os
import re
from collections.abc import Iterator

from safe_uninstall.scan.elf_file import PF_W, PT_LOAD, ElfError, ElfFile, open_elf

_DT_STRTAB, _DT_STRSZ = 5, 10
_CHUNK = 1 << 20
"""Bytes read at once. CUDA libraries hold a gigabyte of constant data."""
_LONGEST = 256
"""Bytes of a file name, its directory left out (NAME_MAX)."""
_OVERLAP = 2 * _LONGEST
_COMMON = b".so"
"""What nearly all library names share and hardly any other data holds: one search finds all of them."""
_LAST_COMPONENT = re.compile(rb"[\w.+-]*\Z")


def names_in_data(location: str, names: frozenset[str]) -> frozenset[str]:
    """Return which file names stand in the constant data of an ELF file.

    That is in the segments that are not writable, whether executable or not: linkers put constants into either. The
    dynamic string table is left out, since DT_NEEDED and symbol versions speak through it. A name counts when NUL
    ends it and nothing that a file name is made of comes before it; a directory may.

    Args:
        location: where the host has the file; links are followed.
        names: file names, without directory.

    Returns:
        The names found; none when the file cannot be read.
    """
    wanted = {os.fsencode(name): name for name in names if name}
    found: set[bytes] = set()
    try:
        file = open_elf(location)
        if file is None or not wanted:
            return frozenset()
        with file:
            for start, end in _constant_ranges(file):
                found |= _search(file, start, end, wanted.keys() - found)
    except ElfError:
        pass
    return frozenset(wanted[raw] for raw in found)


def _constant_ranges(file: ElfFile) -> Iterator[tuple[int, int]]:
    """Yield where in the file the constants are, as half-open ranges."""
    table = _string_table(file)
    for segment in file.segments:
        if segment.kind != PT_LOAD or segment.flags & PF_W:
            continue
        start, end = segment.offset, segment.offset + segment.file_size
        if table is not None and start <= table[0] < end:
            yield start, table[0]
            start = min(table[1], end)
        if start < end:
            yield start, end


def _string_table(file: ElfFile) -> tuple[int, int] | None:
    dynamic = file.dynamic()
    if dynamic is None:
        return None
    values = dict(file.entries(dynamic))
    place = file.locate(values.get(_DT_STRTAB, -1))
    return None if place is None else (place[0], place[0] + values.get(_DT_STRSZ, 0))


def _search(file: ElfFile, start: int, end: int, wanted: "set[bytes]") -> set[bytes]:
    """Return which names stand between two offsets of a file."""
    needles = [_COMMON] if all(_COMMON in name for name in wanted) else sorted(wanted)
    found: set[bytes] = set()
    buffer = bytearray(_CHUNK)
    position = start
    while position < end and len(found) < len(wanted):
        size = file.read_into(memoryview(buffer)[: min(_CHUNK, end - position)], position)
        for needle in needles:
            hit = buffer.find(needle, 0, size)
            while hit >= 0:
                name, complete = _name_around(buffer, hit, size)
                # A name cut off at the start of a chunk is whole in the chunk before.
                if name in wanted and (complete or position == start):
                    found.add(name)
                hit = buffer.find(needle, hit + 1, size)
        if size == 0 or position + size >= end:
            break
        position += max(size - _OVERLAP, 1)
    return found


def _name_around(buffer: bytearray, hit: int, size: int) -> tuple[bytes, bool]:
    """Return the NUL-terminated file name around an offset, and whether its start is in sight."""
    stop = buffer.find(b"\0", hit, min(hit + _LONGEST, size))
    if stop < 0:
        return b"", False
    first = max(hit - _LONGEST, 0)
    match = _LAST_COMPONENT.search(bytes(buffer[first:stop]))
    assert match is not None
    return match[0], first + match.start() > 0
