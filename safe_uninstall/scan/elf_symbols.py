"""Dynamic symbols, symbol versions and dlopen notes of one ELF file: read only for the few files in question.

pyelftools knows the forms of version tables. The symbols themselves are unpacked in bulk: a large library has tens of
thousands, and at pyelftools' pace that is seconds. Everything starts from the program headers and PT_DYNAMIC.
"""

import os
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from safe_uninstall.model.elf import DlopenNote, SymbolTable
from safe_uninstall.scan.elf_file import DLOPEN_OWNER, NOTES_LIMIT, PT_NOTE, ElfError, ElfFile, open_elf

if TYPE_CHECKING:
    from elftools.elf.structs import ELFStructs

_DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_GNU_HASH = 4, 5, 6, 10, 0x6FFFFEF5
_DT_VERSYM, _DT_RELA, _DT_REL, _DT_JMPREL = 0x6FFFFFF0, 7, 17, 23
_DT_VERDEF, _DT_VERDEFNUM, _DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
_STB_GLOBAL, _STB_WEAK, _STB_GNU_UNIQUE = 1, 2, 10
_STV_DEFAULT, _STV_PROTECTED = 0, 3
_VER_FLG_BASE, _VER_FLG_WEAK = 1, 2
_VERSION_NUMBER = 0x7FFF
"""Bits of a version's number; the one above hides a symbol from those who ask for no version."""

_DLOPEN_TYPE = 0x407C0C0A
_PRIORITIES = ("required", "recommended", "suggested")

# In bytes, unless said otherwise.
_STRINGS_LIMIT = 256 << 20
_NAMES_LIMIT = 256 << 20
_SYMBOLS_LIMIT = 4 << 20
"""Entries."""
_VERSIONS_LIMIT = 1 << 12
"""Entries and auxiliary entries of one version table; the largest real ones have some hundred."""
_WINDOW = 1 << 16


def read_symbols(location: str) -> SymbolTable | None:
    """Return the dynamic symbols and versions of an ELF file.

    Args:
        location: where the host has it; links are followed.

    Returns:
        None when it is no ELF file, has no dynamic segment, or cannot be read.
    """
    try:
        file = open_elf(location)
        if file is None:
            return None
        with file:
            return _read_symbols(file)
    except ElfError:
        return None


def read_dlopen_notes(location: str) -> tuple[DlopenNote, ...]:
    """Return the entries of all ``.note.dlopen`` (UAPI.12) of an ELF file; those that cannot be read are left out."""
    try:
        file = open_elf(location)
        if file is None:
            return ()
        with file:
            return tuple(_read_notes(file))
    except ElfError:
        return ()


class _Tables:
    """Where PT_DYNAMIC says that the tables of a file are."""

    def __init__(self, file: ElfFile, values: dict[int, int]) -> None:
        self.file = file
        self.values = values
        start, end = self.place(_DT_STRTAB) or (0, 0)
        size = min(values.get(_DT_STRSZ, 0), end - start, _STRINGS_LIMIT)
        self.strings = file.read(start, size)

    def place(self, tag: int) -> tuple[int, int] | None:
        """Return where the table of a tag starts in the file, and where its segment ends there."""
        address = self.values.get(tag)
        return None if address is None else self.file.locate(address)

    def string(self, offset: int) -> str | None:
        end = self.strings.find(b"\0", offset) if offset < len(self.strings) else -1
        return None if end < 0 else os.fsdecode(self.strings[offset:end])


def _read_symbols(file: ElfFile) -> SymbolTable | None:
    dynamic = file.dynamic()
    if dynamic is None:
        return None
    tables = _Tables(file, dict(file.entries(dynamic)))
    exported: set[str] = set()
    undefined: set[str] = set()
    total = 0
    exported_versions: set[str] = set()
    undefined_versions: set[str] = set()
    definitions = tuple(_read_definitions(tables))
    requirements = tuple(_read_requirements(tables))
    named = {**dict(definitions), **_numbers(requirements)}
    for symbol, version in zip(_iterate_symbols(tables), _iterate_versions_of(tables), strict=False):
        binding = symbol.info >> 4
        name = tables.string(symbol.name)
        if name is None or total > _NAMES_LIMIT:
            raise ElfError("its symbol names lie outside of its string table")
        total += len(name)
        if symbol.section == 0:
            if binding == _STB_GLOBAL:
                undefined.add(name)
                if version in named:
                    undefined_versions.add(f"{name}@{named[version]}")
        elif binding in (_STB_GLOBAL, _STB_WEAK, _STB_GNU_UNIQUE) and symbol.other & 3 in (
            _STV_DEFAULT,
            _STV_PROTECTED,
        ):
            exported.add(name)
            if version in named:
                exported_versions.add(f"{name}@{named[version]}")
    return SymbolTable(
        exported=frozenset(exported - {""}),
        undefined=frozenset(undefined - {""}),
        versions_defined=frozenset(name for _, name in definitions),
        versions_needed=tuple(
            (item.file, frozenset(version.name for version in item.versions if not version.weak))
            for item in requirements
        ),
        exported_versions=frozenset(exported_versions),
        undefined_versions=frozenset(undefined_versions),
    )


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int


def _iterate_symbols(tables: _Tables) -> Iterator[_Symbol]:
    place = tables.place(_DT_SYMTAB)
    if place is None:
        return
    start, end = place
    order, wide = tables.file.byte_order, tables.file.abi.bits == 64
    # st_name, st_info, st_other and st_shndx; value and size are of no interest.
    entry = Struct(f"{order}IBBH16x" if wide else f"{order}I8xBBH")
    count = min(_count_symbols(tables, entry.size), (end - start) // entry.size)
    if count > _SYMBOLS_LIMIT:
        raise ElfError(f"it claims {count} symbols")
    data = tables.file.read(start, count * entry.size)
    for fields in entry.iter_unpack(data[: len(data) // entry.size * entry.size]):
        yield _Symbol(*fields)


def _count_symbols(tables: _Tables, size: int) -> int:
    """Return how many symbols there are: nothing says so but the hash tables."""
    count = _count_by_hash(tables)
    if count is None:
        count = _count_by_gnu_hash(tables)
    if count is not None:
        return count
    # A GNU hash table without defined symbols says nothing of the undefined ones, and without any hash table nobody
    # says anything: then the symbols end where the next table starts, as linkers lay them out.
    start = tables.values[_DT_SYMTAB]
    others = (_DT_STRTAB, _DT_VERSYM, _DT_VERNEED, _DT_VERDEF, _DT_RELA, _DT_REL, _DT_JMPREL, _DT_HASH, _DT_GNU_HASH)
    following = [tables.values[tag] for tag in others if tables.values.get(tag, 0) > start]
    return (min(following) - start) // size if following else 0


def _count_by_hash(tables: _Tables) -> int | None:
    place = tables.place(_DT_HASH)
    if place is None:
        return None
    data = tables.file.read(place[0], 8)
    return int(Struct(tables.file.byte_order + "4xI").unpack(data)[0]) if len(data) == 8 else None


def _count_by_gnu_hash(tables: _Tables) -> int | None:
    place = tables.place(_DT_GNU_HASH)
    if place is None:
        return None
    start, end = place
    order, word = tables.file.byte_order, Struct(tables.file.byte_order + "I")
    header = tables.file.read(start, 16)
    if len(header) < 16:
        return None
    bucket_count, first, bloom_size, _ = Struct(order + "IIII").unpack(header)
    start += 16 + bloom_size * tables.file.abi.bits // 8
    chains = start + 4 * bucket_count
    if chains > end:
        raise ElfError("its symbol hash table is larger than its segment")
    data = tables.file.read(start, 4 * bucket_count)
    last = max((entry[0] for entry in word.iter_unpack(data[: len(data) // 4 * 4])), default=0)
    if last < first:
        return None
    # The chain of the last bucket that has one ends with an odd hash; that is the last symbol.
    position = chains + 4 * (last - first)
    while position < end:
        data = tables.file.read(position, min(_WINDOW, end - position) // 4 * 4)
        for index, (hashed,) in enumerate(word.iter_unpack(data)):
            if hashed & 1:
                return int((position - chains) // 4 + index + first + 1)
        if not data:
            break
        position += len(data)
    raise ElfError("its symbol hash table has no end")


class _Version(NamedTuple):
    """A version that DT_VERNEED asks for."""

    number: int
    """By which DT_VERSYM refers to it."""
    name: str
    weak: bool


class _Requirement(NamedTuple):
    """What DT_VERNEED asks of one file."""

    file: str
    versions: tuple[_Version, ...]


def _read_definitions(tables: _Tables) -> Iterator[tuple[int, str]]:
    """Yield number and name of the versions of DT_VERDEF, that of the file itself left out."""
    for entry, auxiliaries in _iterate_versions(tables, _DT_VERDEF, _DT_VERDEFNUM, "vd"):
        if not entry["vd_flags"] & _VER_FLG_BASE:
            for auxiliary in auxiliaries:
                name = tables.string(auxiliary["vda_name"])
                if name is not None:
                    yield entry["vd_ndx"] & _VERSION_NUMBER, name
                # The first is the version's own name, the others those of its parents.
                break


def _read_requirements(tables: _Tables) -> Iterator[_Requirement]:
    for entry, auxiliaries in _iterate_versions(tables, _DT_VERNEED, _DT_VERNEEDNUM, "vn"):
        versions = []
        for item in auxiliaries:
            name = tables.string(item["vna_name"])
            if name is not None:
                number = item["vna_other"] & _VERSION_NUMBER
                versions.append(_Version(number, name, bool(item["vna_flags"] & _VER_FLG_WEAK)))
        file = tables.string(entry["vn_file"])
        if file is not None:
            yield _Requirement(file, tuple(versions))


def _numbers(requirements: Iterable[_Requirement]) -> dict[int, str]:
    return {version.number: version.name for item in requirements for version in item.versions}


def _iterate_versions_of(tables: _Tables) -> Iterator[int]:
    """Yield the number of each symbol's version (DT_VERSYM), 1 for those that have none, without end."""
    place = tables.place(_DT_VERSYM)
    if place is not None:
        start, end = place
        data = tables.file.read(start, min(end - start, 2 * _SYMBOLS_LIMIT))
        for (number,) in Struct(tables.file.byte_order + "H").iter_unpack(data[: len(data) // 2 * 2]):
            yield number & _VERSION_NUMBER
    while True:
        yield 1


def _iterate_versions(tables: _Tables, tag: int, count_tag: int, prefix: str) -> Iterator[tuple[Any, list[Any]]]:
    """Yield the entries of a version table, each with its auxiliary entries."""
    place = tables.place(tag)
    if place is None:
        return
    from elftools.common.exceptions import ELFParseError
    from elftools.common.utils import struct_parse

    structs = _structs(tables.file)
    entry_form, auxiliary_form = (
        (structs.Elf_Verdef, structs.Elf_Verdaux) if prefix == "vd" else (structs.Elf_Verneed, structs.Elf_Vernaux)
    )
    stream = cast("IO[bytes]", _Stream(tables.file))
    offset, read = place[0], 0
    try:
        for _ in range(tables.values.get(count_tag, 0)):
            entry = struct_parse(entry_form, stream, stream_pos=offset)
            auxiliaries = []
            position = offset + entry[f"{prefix}_aux"]
            for _ in range(entry[f"{prefix}_cnt"]):
                auxiliary = struct_parse(auxiliary_form, stream, stream_pos=position)
                auxiliaries.append(auxiliary)
                position += auxiliary[f"{prefix}a_next"]
                if not auxiliary[f"{prefix}a_next"] or len(auxiliaries) > _VERSIONS_LIMIT:
                    break
            read += 1 + len(auxiliaries)
            if read > _VERSIONS_LIMIT:
                raise ElfError("its version table has too many entries")
            yield entry, auxiliaries
            offset += entry[f"{prefix}_next"]
            if not entry[f"{prefix}_next"]:
                break
    except ELFParseError as error:
        raise ElfError("its version table leads out of the file") from error


def _read_notes(file: ElfFile) -> Iterator[DlopenNote]:
    header = Struct(file.byte_order + "III")
    for segment in file.segments:
        if segment.kind != PT_NOTE or segment.file_size > NOTES_LIMIT:
            continue
        data = file.read(segment.offset, segment.file_size)
        position = 0
        while position + header.size <= len(data):
            owner_size, size, kind = header.unpack_from(data, position)
            start = position + header.size
            # Owner and description are padded to four bytes; so is all that this note's form allows.
            description = start + (owner_size + 3) // 4 * 4
            if kind == _DLOPEN_TYPE and data[start : start + owner_size].rstrip(b"\0") == DLOPEN_OWNER:
                yield from _parse_dlopen(data[description : description + size])
            position = description + (size + 3) // 4 * 4


def _parse_dlopen(description: bytes) -> Iterator[DlopenNote]:
    """Parse the JSON array of one note (https://uapi-group.org/specifications/specs/elf_dlopen_metadata/)."""
    import json

    try:
        entries = json.loads(description.rstrip(b"\0"))
    except (ValueError, RecursionError):
        return
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        sonames = entry.get("soname")
        sonames = [sonames] if isinstance(sonames, str) else sonames
        if not isinstance(sonames, list) or not sonames or not all(isinstance(name, str) for name in sonames):
            continue
        priority = entry.get("priority")
        yield DlopenNote(
            sonames=tuple(sonames),
            priority=priority if priority in _PRIORITIES else "recommended",
            feature=_text(entry.get("feature")),
            description=_text(entry.get("description")),
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _structs(file: ElfFile) -> "ELFStructs":
    """Return pyelftools' forms for a file; what it makes of section headers plays no part."""
    from elftools.elf.structs import ELFStructs

    structs = ELFStructs(little_endian=file.abi.little_endian, elfclass=file.abi.bits)
    structs.create_basic_structs()
    structs.create_advanced_structs(e_type="ET_DYN", e_machine="EM_NONE", e_ident_osabi="ELFOSABI_SYSV")
    return structs


class _Stream:
    """A file as pyelftools wants to read it: many small pieces, close together."""

    def __init__(self, file: ElfFile) -> None:
        self._file = file
        self._position = 0
        self._start = 0
        self._window = b""

    def seek(self, position: int) -> int:
        self._position = position
        return position

    def read(self, size: int) -> bytes:
        size = max(0, min(size, self._file.size - self._position))
        if not self._start <= self._position <= self._start + len(self._window) - size:
            self._start = self._position
            self._window = self._file.read(self._position, max(size, _WINDOW))
        skipped = self._position - self._start
        self._position += size
        return self._window[skipped : skipped + size]
