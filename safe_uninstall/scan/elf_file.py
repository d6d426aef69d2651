"""An open ELF file: header, program headers, PT_DYNAMIC and the strings it points to.

``struct`` and ``os.pread`` on one descriptor; a few kilobytes are read, whatever the size of the file. Every count and
length is bounded, and a file that contradicts itself is refused in words. Section headers are never consulted.

The rules are those of the gABI (https://gabi.xinuos.com) and of glibc (``elf/dl-load.c``, ``elf/get-dynamic-info.h``).
"""

import os
from collections.abc import Iterable
from errno import EISDIR, ELOOP, ENODEV, ENOENT, ENOTDIR, ENXIO
from struct import Struct
from typing import NamedTuple

from safe_uninstall.model.elf import ET_DYN, ET_EXEC, Abi, FileIdentity, Filter

MAGIC = b"\x7fELF"
PF_X, PF_W = 1, 2
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE = 1, 2, 3, 4

_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_SONAME, _DT_RPATH, _DT_RUNPATH, _DT_FLAGS_1 = 0, 1, 5, 14, 15, 29, 0x6FFFFFFB
_DT_AUXILIARY, _DT_FILTER = 0x7FFFFFFD, 0x7FFFFFFF
_PN_XNUM = 0xFFFF

_DEVICE_CODE = frozenset({190, 224, 247})
"""EM_CUDA, EM_AMDGPU, EM_BPF: loaded by drivers and by the kernel, in layouts of their own."""

# All in bytes.
_FIRST_READ = 1024
"""Holds the header and the program headers of nearly every file."""
_DYNAMIC_LIMIT = 1 << 20
"""Size of PT_DYNAMIC; large real ones have some 30 kB."""
_STRINGS_LIMIT = 4 << 20
"""All strings of one file together."""
_STRING_STEP = 256
"""Read at once while looking for the end of a string."""
_SPAN = 1 << 14
"""Strings that lie within this distance of each other are read together."""
_PATH_LIMIT = 4096
"""PATH_MAX: what the kernel accepts as PT_INTERP."""

DLOPEN_OWNER = b"FDO"
"""Of the notes in ``.note.dlopen`` (UAPI.12)."""
NOTES_LIMIT = 1 << 16
"""Size of a PT_NOTE segment that is read; real ones have some hundred."""
_BUILD_ID_NOTE = 36
"""A note with a build ID that is a SHA-1."""

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""O_NONBLOCK: opening a FIFO must not wait for its writer."""
_ABSENT = frozenset({ENOENT, ENOTDIR, ELOOP, EISDIR, ENXIO, ENODEV})
"""What opening says of something that is not there, or not a regular file."""
_TYPE, _TYPE_REGULAR = 0o170000, 0o100000


class ElfError(Exception):
    """An ELF file that cannot be read, or that contradicts itself."""

    def __init__(self, reason: str) -> None:
        """Keep the reason, in words that complete "cannot read FILE: …"."""
        super().__init__(reason)
        self.reason = reason


class Segment(NamedTuple):
    """One program header."""

    kind: int
    flags: int
    offset: int
    """Of the first byte, in the file."""
    address: int
    file_size: int
    memory_size: int


class _Layout(NamedTuple):
    """How one class and byte order lays out its integers."""

    bits: int
    little_endian: bool
    header_size: int
    header: Struct
    """What follows e_ident, up to and including ``e_phnum``."""
    program_header: Struct
    dynamic_entry: Struct


def _layout(elf_class: int, data: int) -> _Layout:
    order = "<" if data == 1 else ">"
    word, signed, program_header = ("I", "i", "IIIIIIII") if elf_class == 1 else ("Q", "q", "IIQQQQQQ")
    return _Layout(
        bits=32 * elf_class,
        little_endian=data == 1,
        header_size=52 if elf_class == 1 else 64,
        header=Struct(f"{order}HHI{word}{word}{word}IHHH"),
        program_header=Struct(order + program_header),
        dynamic_entry=Struct(order + signed + word),
    )


_LAYOUTS = {(elf_class, data): _layout(elf_class, data) for elf_class in (1, 2) for data in (1, 2)}
"""By EI_CLASS and EI_DATA."""


def open_elf(location: str) -> "ElfFile | None":
    """Open one ELF file and read its headers.

    Args:
        location: where the host has it; links are followed.

    Returns:
        None where ``read_elf`` returns None.

    Raises:
        ElfError: as ``read_elf`` does.
    """
    try:
        descriptor = os.open(location, _FLAGS)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise ElfError(_words(error)) from error
    try:
        status = os.fstat(descriptor)
        if status.st_mode & _TYPE == _TYPE_REGULAR:
            first = os.pread(descriptor, _FIRST_READ, 0)
            if first[:4] == MAGIC:
                return ElfFile(descriptor, status, first)
    except OSError as error:
        os.close(descriptor)
        raise ElfError(_words(error)) from error
    except ElfError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


class Names(NamedTuple):
    """What PT_DYNAMIC says that concerns finding libraries; see ``ElfObject`` for the meaning."""

    soname: str | None
    needed: tuple[str, ...]
    filters: tuple[Filter, ...]
    rpath: str | None
    runpath: str | None
    flags_1: int


class ElfFile:
    """An open ELF file whose header and program headers have been read and checked."""

    def __init__(self, descriptor: int, status: os.stat_result, first: bytes) -> None:
        """Read the headers.

        Args:
            descriptor: open for reading; closed at the end of a ``with`` block.
            status: of the open file.
            first: the first bytes of the file, or all of it.

        Raises:
            ElfError: as ``read_elf`` does.
        """
        size = status.st_size
        if len(first) < 16:
            raise ElfError(f"truncated within its header: {size} bytes")
        layout = _LAYOUTS.get((first[4], first[5]))
        if layout is None:
            raise ElfError(f"unknown ELF class {first[4]} or byte order {first[5]}")
        if len(first) < layout.header_size:
            raise ElfError(f"truncated within its header: {size} bytes")
        fields: tuple[int, ...] = layout.header.unpack_from(first, 16)
        self.elf_type, machine, version, _, table, _, _, _, entry_size, count = fields
        if version != 1 or first[6] != 1:
            raise ElfError(f"unknown ELF version {first[6] if version == 1 else version}")
        self.abi = Abi(layout.bits, layout.little_endian, machine)
        self.identity = FileIdentity(status.st_dev, status.st_ino)
        self.size = size
        self._descriptor = descriptor
        self._first = first
        self._layout = layout
        self.segments: tuple[Segment, ...] = ()
        if self.is_loadable:
            self.segments = self._read_segments(table, entry_size, count)

    def __enter__(self) -> "ElfFile":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        os.close(self._descriptor)

    @property
    def byte_order(self) -> str:
        """How ``struct`` spells the byte order."""
        return "<" if self.abi.little_endian else ">"

    @property
    def is_loadable(self) -> bool:
        """Whether the dynamic loader or the kernel could load it, as far as its type and machine tell."""
        return self.elf_type in (ET_EXEC, ET_DYN) and self.abi.machine not in _DEVICE_CODE

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes of the file, fewer only where it ends.

        Raises:
            ElfError: the file cannot be read.
        """
        if offset + size <= len(self._first):
            return self._first[offset : offset + size]
        if offset >= self.size:
            # It may be more than the kernel takes as an offset.
            return b""
        try:
            return os.pread(self._descriptor, min(size, self.size - offset), offset)
        except OSError as error:
            raise ElfError(_words(error)) from error

    def read_into(self, buffer: bytearray | memoryview, offset: int) -> int:
        """Fill a buffer with bytes of the file from ``offset`` on, and return how many there were."""
        try:
            return os.preadv(self._descriptor, [buffer], offset)
        except OSError as error:
            raise ElfError(_words(error)) from error

    def locate(self, address: int) -> tuple[int, int] | None:
        """Return where in the file an address is, and where the segment that holds it ends in the file."""
        for segment in self.segments:
            if segment.kind == PT_LOAD and 0 <= address - segment.address < segment.file_size:
                return address - segment.address + segment.offset, segment.offset + segment.file_size
        return None

    def dynamic(self) -> Segment | None:
        """Return the PT_DYNAMIC that the loader uses, None when there is none.

        It is the last one (glibc walks through all of them); one without bytes in the file is what ``objcopy
        --only-keep-debug`` leaves behind and doesn't count.
        """
        found = None
        for segment in self.segments:
            if segment.kind == PT_DYNAMIC and segment.file_size:
                found = segment
        return found

    def entries(self, dynamic: Segment) -> list[tuple[int, int]]:
        """Return tag and value of all entries before DT_NULL.

        Raises:
            ElfError: it is too large, cut off, or not where its address says.
        """
        if dynamic.file_size > _DYNAMIC_LIMIT:
            raise ElfError(f"its dynamic segment claims {dynamic.file_size} bytes")
        # The loader goes by the address, everybody else by the offset.
        place = self.locate(dynamic.address)
        if place is None or place[0] != dynamic.offset:
            raise ElfError("its dynamic segment is not where its address says")
        data = self.read(dynamic.offset, dynamic.file_size)
        size = self._layout.dynamic_entry.size
        found: list[tuple[int, int]] = []
        for entry in self._layout.dynamic_entry.iter_unpack(data[: len(data) // size * size]):
            if entry[0] == _DT_NULL:
                return found
            found.append(entry)
        raise ElfError("its dynamic segment has no end")

    def names(self) -> Names | None:
        """Return the names and search paths that it carries, None when it is not dynamic.

        Raises:
            ElfError: as ``entries`` does, or a string is not where it should be.
        """
        dynamic = self.dynamic()
        if dynamic is None:
            return None
        needed: list[int] = []
        filters: list[tuple[int, bool, int]] = []
        values: dict[int, int] = {}
        for tag, value in self.entries(dynamic):
            if tag == _DT_NEEDED:
                needed.append(value)
            elif tag in (_DT_AUXILIARY, _DT_FILTER):
                filters.append((value, tag == _DT_AUXILIARY, len(needed)))
            else:
                # Where a tag stands twice, glibc takes the last.
                values[tag] = value
        single = [values.get(tag, -1) for tag in (_DT_SONAME, _DT_RPATH, _DT_RUNPATH)]
        wanted = {*needed, *single, *(value for value, _, _ in filters)} - {-1}
        strings = self._read_strings(values.get(_DT_STRTAB), wanted) if wanted else {}
        return Names(
            soname=strings.get(single[0]),
            needed=tuple([strings[value] for value in needed]),
            filters=tuple([Filter(strings[value], optional, position) for value, optional, position in filters]),
            rpath=strings.get(single[1]),
            runpath=strings.get(single[2]),
            flags_1=values.get(_DT_FLAGS_1, 0),
        )

    def interpreter(self) -> str | None:
        """Return the path in PT_INTERP, None when there is none or it is not ended by NUL: nothing can run then."""
        for segment in self.segments:
            if segment.kind == PT_INTERP:
                text, end, _ = self.read(segment.offset, min(segment.file_size, _PATH_LIMIT)).partition(b"\0")
                return os.fsdecode(text) if end and text else None
        return None

    def has_note_of(self, owner: bytes) -> bool:
        """Return whether a note may be of that owner: the name, ended by NUL, stands in a PT_NOTE segment.

        Raises:
            ElfError: the file cannot be read.
        """
        for segment in self.segments:
            # Most files have a build ID there and nothing else.
            if (
                segment.kind == PT_NOTE
                and _BUILD_ID_NOTE < segment.file_size <= NOTES_LIMIT
                and owner + b"\0" in self.read(segment.offset, segment.file_size)
            ):
                return True
        return False

    def _read_segments(self, offset: int, entry_size: int, count: int) -> tuple[Segment, ...]:
        program_header = self._layout.program_header
        if count == 0:
            raise ElfError("it has no program headers")
        if count == _PN_XNUM:
            raise ElfError("it has more program headers than the loader reads")
        if entry_size != program_header.size:
            raise ElfError(f"its program headers claim {entry_size} bytes each, not {program_header.size}")
        if offset + count * entry_size > self.size:
            raise ElfError(f"truncated: its program headers end at byte {offset + count * entry_size} of {self.size}")
        entries = program_header.iter_unpack(self.read(offset, count * entry_size))
        if self._layout.bits == 64:
            segments = tuple(
                [
                    Segment(kind, flags, start, address, size, memory)
                    for kind, flags, start, address, _, size, memory, _ in entries
                ]
            )
        else:
            segments = tuple(
                [
                    Segment(kind, flags, start, address, size, memory)
                    for kind, start, address, _, size, memory, flags, _ in entries
                ]
            )
        loads = sorted([(item.address, item) for item in segments if item.kind == PT_LOAD])
        if not loads:
            raise ElfError("it has no loadable segment")
        reached = 0
        for address, segment in loads:
            if segment.offset + segment.file_size > self.size:
                raise ElfError(f"truncated: a segment ends at byte {segment.offset + segment.file_size} of {self.size}")
            if segment.file_size > segment.memory_size:
                raise ElfError("a segment is larger in the file than in memory")
            if address < reached:
                raise ElfError(f"its segments overlap at address {address:#x}")
            reached = address + segment.memory_size
        return segments

    def _read_strings(self, address: int | None, offsets: Iterable[int]) -> dict[int, str]:
        """Return the strings that start at ``offsets`` of the string table."""
        place = None if address is None else self.locate(address)
        if place is None:
            raise ElfError("its string table (DT_STRTAB) is in none of its segments")
        start, end = place
        ordered = sorted(offsets)
        low, high = ordered[0], ordered[-1]
        if start + high >= end:
            raise ElfError(f"a string lies outside of its string table (offset {high})")
        together = b""
        if high - low <= _SPAN:
            together = self.read(start + low, min(high - low + _STRING_STEP, end - start - low))
        found: dict[int, str] = {}
        total = 0
        for offset in ordered:
            stop = together.find(b"\0", offset - low)
            text = together[offset - low : stop] if stop >= 0 else self._read_string(start + offset, end)
            total += len(text)
            if total > _STRINGS_LIMIT:
                raise ElfError("its names and search paths are too long to be true")
            found[offset] = os.fsdecode(text)
        return found

    def _read_string(self, offset: int, end: int) -> bytes:
        parts: list[bytes] = []
        while offset < end:
            part = self.read(offset, min(_STRING_STEP, end - offset))
            text, stop, _ = part.partition(b"\0")
            parts.append(text)
            if stop:
                return b"".join(parts)
            if not part or len(parts) * _STRING_STEP > _STRINGS_LIMIT:
                break
            offset += len(part)
        raise ElfError("a string has no end")


def _words(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
