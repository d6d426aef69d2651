"""Parses ``/etc/ld.so.cache``: the formats that glibc's ``elf/cache.c`` writes and ``elf/dl-cache.c`` reads.

Three forms exist: the old one (``ld.so-1.7.0``), the new one (``glibc-ld.so.cache1.1``), and an old one with a new one
behind it. The loader binds by the new one where there is one. A file that does not hold together yields no entries, as
it does in glibc.
"""

from struct import Struct
from struct import error as StructError
from typing import NamedTuple

_OLD_MAGIC = b"ld.so-1.7.0"
_OLD_HEADER_SIZE = 16
_NEW_MAGIC = b"glibc-ld.so.cache1.1"
_NEW_HEADER_SIZE = 48
_NEW_ENTRY_SIZE = 24
_EXTENSION_MAGIC = 0xEAA42174
_EXTENSION_HWCAPS = 1
"""Tag of the section with the names of glibc-hwcaps sub-directories; tag 0 names the generator."""
_HWCAP_NAMED = 1 << 30
"""Bit of the upper half of an entry's ``hwcap``: the lower half is an index into the hwcaps section."""
_LITTLE_ENDIAN, _BIG_ENDIAN = 2, 3
"""Values of the low two bits of the header's ``flags``; 0 in files of glibc before 2.33."""
_COUNT_LIMIT = 1 << 20


class RawEntry(NamedTuple):
    """One entry, in the order of the file."""

    name: str
    path: str
    flags: int
    hwcap: int
    """Legacy hardware capabilities, a bit mask; 0 for a plain entry or a named one."""
    hwcap_name: str | None
    """The glibc-hwcaps sub-directory it lies in."""


def parse_cache(data: bytes, *, little_endian: bool = True) -> tuple[RawEntry, ...]:
    """Return the entries of a cache file, none when it is malformed or of the other byte order.

    Args:
        data: the whole file.
        little_endian: byte order of the loader that would read it.
    """
    order = "<" if little_endian else ">"
    try:
        if data.startswith(_NEW_MAGIC):
            return _parse_new(data, order)
        if not data.startswith(_OLD_MAGIC):
            return ()
        return _parse_old(data, order)
    except (StructError, ValueError, IndexError):
        # Counts, offsets or strings that lead out of the file.
        return ()


def _parse_old(data: bytes, order: str) -> tuple[RawEntry, ...]:
    (count,) = Struct(order + "I").unpack_from(data, 12)
    entry = Struct(order + "iII")
    end = _OLD_HEADER_SIZE + count * entry.size
    # The new form follows at the alignment of a 64-bit integer, which is 4 on i386 and 8 elsewhere.
    for start in (-(-end // 8) * 8, -(-end // 4) * 4):
        if data.startswith(_NEW_MAGIC, start):
            return _parse_new(data[start:], order)
    if count > _COUNT_LIMIT or end > len(data):
        return ()
    strings = data[end:]
    return tuple(
        RawEntry(_string(strings, key), _string(strings, value), flags, 0, None)
        for flags, key, value in entry.iter_unpack(data[_OLD_HEADER_SIZE:end])
    )


def _parse_new(data: bytes, order: str) -> tuple[RawEntry, ...]:
    count, _, flags, extension = Struct(order + "IIB3xI").unpack_from(data, len(_NEW_MAGIC))
    if flags & 3 not in (0, _LITTLE_ENDIAN if order == "<" else _BIG_ENDIAN):
        return ()
    end = _NEW_HEADER_SIZE + count * _NEW_ENTRY_SIZE
    if count > _COUNT_LIMIT or end > len(data):
        return ()
    names = _hwcap_names(data, order, extension)
    found = []
    # Flags, name, path, an OS version that nobody writes any more, hwcap; offsets count from the header.
    for flags, key, value, _, hwcap in Struct(order + "iIIIQ").iter_unpack(data[_NEW_HEADER_SIZE:end]):
        name = None
        if hwcap >> 32 & _HWCAP_NAMED:
            name, hwcap = names[hwcap & 0xFFFFFFFF], 0
        found.append(RawEntry(_string(data, key), _string(data, value), flags, hwcap, name))
    return tuple(found)


def _hwcap_names(data: bytes, order: str, offset: int) -> tuple[str, ...]:
    if offset == 0:
        return ()
    word = Struct(order + "I")
    magic, count = Struct(order + "II").unpack_from(data, offset)
    if magic != _EXTENSION_MAGIC:
        return ()
    section = Struct(order + "IIII")
    for index in range(min(count, 16)):
        tag, _, start, size = section.unpack_from(data, offset + 8 + index * section.size)
        if tag == _EXTENSION_HWCAPS and start + size <= len(data):
            return tuple(_string(data, entry[0]) for entry in word.iter_unpack(data[start : start + size]))
    return ()


def _string(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode("utf-8", "surrogateescape")
