"""Searches the constant data of an ELF file for file names: what it may hand to ``dlopen``."""

import os
import re
from collections.abc import Iterator

from safe_uninstall.scan.elf_file import PF_W, PT_LOAD, ElfError, ElfFile, open_elf

_DT_STRTAB, _DT_STRSZ, _DT_INIT, _DT_FINI = 5, 10, 12, 13
_CHUNK = 1 << 20
"""Bytes read at once. CUDA libraries hold a gigabyte of constant data."""
_LONGEST = 256
"""Bytes of a file name, its directory left out (NAME_MAX)."""
_OVERLAP = 2 * _LONGEST
_COMMON = re.compile(rb"\.so")
"""What nearly all library names share and hardly any other data holds: one search finds all of them."""
_LAST_COMPONENT = re.compile(rb"[\w.+-]*\Z")
_DEVICE_CODE = b"\x50\xed\x55\xba\x01\x00\x10\x00"
"""How a container of CUDA device code begins: magic, version 1, a header of 16 bytes; its size in bytes follows. Nine
tenths of a CUDA library are such containers, one after the other, and no device opens libraries."""
_DEVICE_CODE_HEADER = 16


def names_in_data(location: str, names: frozenset[str]) -> frozenset[str]:
    """Return which file names stand in the constant data of an ELF file.

    That is in the segments that are not writable, whether executable or not: linkers put constants into either. The
    dynamic string table is left out, since DT_NEEDED and symbol versions speak through it; so are code and CUDA device
    code, which hold no names. A name counts when NUL ends it and nothing that a file name is made of comes before it; a
    directory may.

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
            ranges = list(_constant_ranges(file))
            buffer = bytearray(min(_CHUNK, max((end - start for start, end in ranges), default=0)))
            for start, end in ranges:
                found |= _search(file, start, end, wanted.keys() - found, buffer)
    except ElfError:
        pass
    return frozenset(wanted[raw] for raw in found)


def _constant_ranges(file: ElfFile) -> Iterator[tuple[int, int]]:
    """Yield where in the file the constants are, as half-open ranges."""
    holes = _holes(file)
    for segment in file.segments:
        if segment.kind != PT_LOAD or segment.flags & PF_W:
            continue
        start, end = segment.offset, segment.offset + segment.file_size
        for hole_start, hole_end in holes:
            if start <= hole_start < end:
                yield start, hole_start
                start = min(hole_end, end)
        if start < end:
            yield start, end


def _holes(file: ElfFile) -> list[tuple[int, int]]:
    """Return where in the file the dynamic string table and the code are, sorted.

    All linkers put the code between ``.init`` and ``.fini``, and constants before or after these.
    """
    dynamic = file.dynamic()
    if dynamic is None:
        return []
    values = dict(file.entries(dynamic))
    holes = []
    table = file.locate(values.get(_DT_STRTAB, -1))
    if table is not None:
        holes.append((table[0], table[0] + values.get(_DT_STRSZ, 0)))
    first, last = (file.locate(values.get(tag, -1)) for tag in (_DT_INIT, _DT_FINI))
    # Both places know the end of their segment.
    if first is not None and last is not None and first[1] == last[1] and first[0] < last[0]:
        holes.append((first[0], last[0]))
    return sorted(holes)


def _search(file: ElfFile, start: int, end: int, wanted: "set[bytes]", buffer: bytearray) -> set[bytes]:
    """Return which names stand between two offsets of a file, read through ``buffer``."""
    # A pattern that begins with a character is found twice as fast as ``bytearray.find`` finds it.
    patterns = [_COMMON] if all(b".so" in name for name in wanted) else [re.compile(re.escape(one)) for one in wanted]
    found: set[bytes] = set()
    position = start
    while position < end and len(found) < len(wanted):
        size = file.read_into(memoryview(buffer)[: min(len(buffer), end - position)], position)
        device = buffer.find(_DEVICE_CODE, 0, size)
        searched = size if device < 0 else device
        for pattern in patterns:
            for match in pattern.finditer(buffer, 0, searched):
                name, complete = _name_around(buffer, match.start(), searched)
                # A name cut off at the start of a chunk is whole in the chunk before.
                if name in wanted and (complete or position == start):
                    found.add(name)
        if device >= 0:
            start = position = _after_device_code(file, position + device, end)
            continue
        if size == 0 or position + size >= end:
            break
        position += max(size - _OVERLAP, 1)
    return found


def _after_device_code(file: ElfFile, position: int, end: int) -> int:
    """Return where a row of containers of device code ends."""
    while position < end:
        header = file.read(position, _DEVICE_CODE_HEADER)
        if not header.startswith(_DEVICE_CODE):
            break
        size = int.from_bytes(header[len(_DEVICE_CODE) :], "little")
        if size > end - position:
            # It is no container but looks like one.
            return position + len(_DEVICE_CODE)
        # Containers are aligned to eight bytes.
        position += (_DEVICE_CODE_HEADER + size + 7) // 8 * 8
    return position


def _name_around(buffer: bytearray, hit: int, size: int) -> tuple[bytes, bool]:
    """Return the NUL-terminated file name around an offset, and whether its start is in sight."""
    stop = buffer.find(b"\0", hit, min(hit + _LONGEST, size))
    if stop < 0:
        return b"", False
    first = max(hit - _LONGEST, 0)
    match = _LAST_COMPONENT.search(bytes(buffer[first:stop]))
    assert match is not None
    return match[0], first + match.start() > 0
