"""Writes ld.so.cache files in the forms of glibc's ``elf/cache.c``."""

import os
import struct
from typing import NamedTuple

X86_64_FLAGS, I386_FLAGS, AARCH64_FLAGS = 0x0303, 0x0003, 0x0A03


class Library(NamedTuple):
    """One entry."""

    name: str
    path: str
    flags: int = X86_64_FLAGS
    hwcap: int = 0
    """Legacy capabilities."""
    hwcap_name: str | None = None


def old_cache(libraries: tuple[Library, ...], *, little_endian: bool = True) -> bytes:
    """Return a cache in the form of glibc before 2.2."""
    order = "<" if little_endian else ">"
    strings = bytearray()
    entries = b""
    for item in libraries:
        offsets = []
        for text in (item.name, item.path):
            offsets.append(len(strings))
            strings += os.fsencode(text) + b"\0"
        entries += struct.pack(order + "iII", item.flags, *offsets)
    return b"ld.so-1.7.0\0" + struct.pack(order + "I", len(libraries)) + entries + bytes(strings)


def new_cache(
    libraries: tuple[Library, ...], *, little_endian: bool = True, endian_flag: int | None = None, generator: str = ""
) -> bytes:
    """Return a cache in today's form.

    Args:
        libraries: entries, in the order in which they will stand there.
        little_endian: byte order.
        endian_flag: value of the header's byte order flag; the right one when None, 0 as glibc before 2.33 wrote it.
        generator: text of the generator section, which comes before that of the hwcaps.
    """
    order = "<" if little_endian else ">"
    names = sorted({item.hwcap_name for item in libraries if item.hwcap_name is not None})
    start = 48 + 24 * len(libraries)
    strings = bytearray()

    def add(text: str) -> int:
        strings.extend(os.fsencode(text) + b"\0")
        return start + len(strings) - len(os.fsencode(text)) - 1

    entries = b""
    for item in libraries:
        hwcap = item.hwcap if item.hwcap_name is None else 1 << 62 | names.index(item.hwcap_name)
        entries += struct.pack(order + "iIIIQ", item.flags, add(item.name), add(item.path), 0, hwcap)
    offsets = [add(name) for name in names]
    used = len(strings)
    strings.extend(bytes(-len(strings) % 4))
    extension = start + len(strings) if names or generator else 0
    tail = b""
    if extension:
        sections = 2 if generator else 1
        data = extension + 8 + 16 * sections
        tail = struct.pack(order + "II", 0xEAA42174, sections)
        text = generator.encode() + bytes(-len(generator) % 4)
        if generator:
            tail += struct.pack(order + "IIII", 0, 0, data, len(generator))
        tail += struct.pack(order + "IIII", 1, 0, data + len(text), 4 * len(names))
        tail += text + struct.pack(f"{order}{len(names)}I", *offsets)
    flag = (2 if little_endian else 3) if endian_flag is None else endian_flag
    header = b"glibc-ld.so.cache1.1" + struct.pack(order + "IIB3xI12x", len(libraries), used, flag, extension)
    return header + entries + bytes(strings) + tail


def combined_cache(
    libraries: tuple[Library, ...], *, alignment: int = 8, old: tuple[Library, ...] | None = None
) -> bytes:
    """Return an old cache with a new one behind it, as glibc 2.2 to 2.31 wrote them.

    Args:
        libraries: of the new part.
        alignment: bytes, of a 64-bit integer: 4 on i386, 8 elsewhere.
        old: of the old part, the same when None.
    """
    entries = libraries if old is None else old
    head = b"ld.so-1.7.0\0" + struct.pack("<I", len(entries)) + struct.pack("<iII", 3, 0, 0) * len(entries)
    return head + bytes(-len(head) % alignment) + new_cache(libraries, endian_flag=0)
