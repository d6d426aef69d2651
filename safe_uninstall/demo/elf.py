"""Writes the smallest shared libraries that the dynamic loader accepts, for the machine that runs this."""

import struct
import sys

_DT = {"needed": 1, "hash": 4, "strtab": 5, "symtab": 6, "strsz": 10, "syment": 11, "soname": 14, "rpath": 15}
_HEADER, _PROGRAM_HEADER, _SYMBOL = 64, 56, 24


def shared_library(
    soname: str, *, needed: tuple[str, ...] = (), rpath: str | None = None, filler: bytes = b""
) -> bytes:
    """Return the bytes of a 64-bit little-endian ET_DYN file without code, loadable by glibc.

    Args:
        soname: DT_SONAME.
        needed: DT_NEEDED entries.
        rpath: DT_RPATH.
        filler: bytes that nobody reads, so that two libraries of one soname differ.
    """
    strings = b"\0"
    offsets: dict[str, int] = {}
    for text in (soname, *needed, *(() if rpath is None else (rpath,))):
        if text not in offsets:
            offsets[text] = len(strings)
            strings += text.encode() + b"\0"
    strings_at = _HEADER + 3 * _PROGRAM_HEADER
    symbols_at = _aligned(strings_at + len(strings))
    hash_at = symbols_at + _SYMBOL
    dynamic_at = _aligned(hash_at + 16)
    entries = [(_DT["needed"], offsets[name]) for name in needed]
    entries += [(_DT["soname"], offsets[soname])]
    if rpath is not None:
        entries.append((_DT["rpath"], offsets[rpath]))
    entries += [
        (_DT["hash"], hash_at),
        (_DT["strtab"], strings_at),
        (_DT["symtab"], symbols_at),
        (_DT["strsz"], len(strings)),
        (_DT["syment"], _SYMBOL),
        (0, 0),
    ]
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    size = dynamic_at + len(dynamic)
    # One segment holds everything; it is writable, since the loader relocates the dynamic section in place.
    headers = struct.pack("<IIQQQQQQ", 1, 6, 0, 0, 0, size, size, 0x1000)
    headers += struct.pack("<IIQQQQQQ", 2, 6, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8)
    headers += struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)
    image = bytearray(size)
    image[:_HEADER] = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01",
        3,
        _machine(),
        1,
        0,
        _HEADER,
        0,
        0,
        _HEADER,
        _PROGRAM_HEADER,
        3,
        0,
        0,
        0,
    )
    image[_HEADER:strings_at] = headers
    image[strings_at : strings_at + len(strings)] = strings
    image[hash_at : hash_at + 16] = struct.pack("<IIII", 1, 1, 0, 0)
    image[dynamic_at:] = dynamic
    return bytes(image) + filler


def _machine() -> int:
    """Return ``e_machine`` of the running interpreter."""
    with open(sys.executable, "rb") as file:
        header = file.read(20)
    machine: int = struct.unpack_from("<H", header, 18)[0]
    return machine


def _aligned(offset: int) -> int:
    return (offset + 7) & ~7
