"""Writes small ELF files without a compiler: header, program headers and what PT_DYNAMIC points to.

The x86-64 files load in glibc: three PT_LOAD segments (read-only, executable, writable), a dynamic symbol table with
either hash, symbol versions, relocations for undefined symbols, PT_INTERP and PT_NOTE. There are no section headers,
as in a stripped library. Addresses differ from file offsets, so that a reader which confuses them fails.
"""

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

ET_REL, ET_EXEC, ET_DYN, ET_CORE = 1, 2, 3, 4
EM_386, EM_PPC64, EM_S390, EM_ARM, EM_X86_64, EM_AARCH64 = 3, 21, 22, 40, 62, 183
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_PHDR = 1, 2, 3, 4, 6
PF_X, PF_W, PF_R = 1, 2, 4

DT_NULL, DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_RELAENT = 0, 1, 4, 5, 6, 7, 8, 9
DT_STRSZ, DT_SYMENT, DT_SONAME, DT_RPATH, DT_RUNPATH = 10, 11, 14, 15, 29
DT_GNU_HASH, DT_VERSYM, DT_FLAGS_1 = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFB
DT_AUXILIARY, DT_FILTER = 0x7FFFFFFD, 0x7FFFFFFF
DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF

VER_FLG_BASE, VER_FLG_WEAK = 1, 2
_ABSOLUTE_RELOCATION = {EM_X86_64: 1, EM_AARCH64: 257}
"""R_X86_64_64, R_AARCH64_ABS64."""

_RETURN_ZERO = bytes.fromhex("31c0c3")
"""x86-64: what every exported symbol is, a function that returns 0."""
_EXIT_ZERO = bytes.fromhex("31ffb83c0000000f05")
"""x86-64: what the entry point of an executable is, exit(0)."""


class Note(NamedTuple):
    """One entry of a PT_NOTE segment."""

    owner: str
    kind: int
    description: bytes


@dataclass(frozen=True, kw_only=True)
class ElfSpec:
    """What an ELF file is to hold; ``build`` makes the bytes of it."""

    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: str | None = None
    runpath: str | None = None
    flags_1: int = 0
    bits: int = 64
    little_endian: bool = True
    machine: int = EM_X86_64
    elf_type: int = ET_DYN
    interpreter: str | None = None
    exports: tuple[str, ...] = ()
    """Defined symbols: ``name``, or ``name@VERSION`` with a version of ``versions_defined``."""
    weak_exports: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    """Undefined symbols: ``name``, or ``name@VERSION`` with a version of ``versions_needed``. glibc must find them."""
    weak_imports: tuple[str, ...] = ()
    versions_defined: tuple[str, ...] = ()
    versions_needed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """File name to version names; a name that ends with ``?`` is a weak requirement."""
    data: bytes = b""
    """Read-only data, in a segment that is not executable."""
    text_data: bytes = b""
    """Read-only data in the executable segment, where older linkers put it."""
    writable_data: bytes = b""
    notes: tuple[Note, ...] = ()
    is_dynamic: bool = True
    hash_style: str = "sysv"
    """``sysv``, ``gnu`` or ``none``."""
    extra_dynamic: tuple[tuple[int, int], ...] = ()
    """Further dynamic entries, tag and value."""


def build(spec: ElfSpec) -> bytes:
    """Return the bytes of the file that is described."""
    return _Writer(spec).build()


def elf_bytes(**options: Any) -> bytes:
    """Return the bytes of an ELF file; the options are the fields of ``ElfSpec``."""
    return build(ElfSpec(**options))


def write_elf(path: str | os.PathLike[str], **options: Any) -> None:
    """Write an ELF file; the options are the fields of ``ElfSpec``. Directories above are made."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "wb") as file:
        file.write(elf_bytes(**options))
    os.chmod(path, 0o755)


class _Strings:
    """A string table that holds each string once."""

    def __init__(self) -> None:
        self.content = bytearray(b"\0")
        self._offsets = {"": 0}

    def add(self, text: str) -> int:
        if text not in self._offsets:
            self._offsets[text] = len(self.content)
            self.content += os.fsencode(text) + b"\0"
        return self._offsets[text]


class _Symbol(NamedTuple):
    name: str
    version: str | None
    defined: bool
    weak: bool


class _Writer:
    def __init__(self, spec: ElfSpec) -> None:
        self.spec = spec
        self.wide = spec.bits == 64
        self.order = "<" if spec.little_endian else ">"
        self.word = "Q" if self.wide else "I"
        self.page = 0x1000 if spec.machine in (EM_386, EM_X86_64) else 0x10000
        self.base = 0x400000 if spec.elf_type == ET_EXEC else 0x40000
        self.strings = _Strings()
        names = [(name, True, False) for name in spec.exports] + [(name, True, True) for name in spec.weak_exports]
        names = [(n, False, False) for n in spec.imports] + [(n, False, True) for n in spec.weak_imports] + names
        self.symbols = [
            _Symbol(name.partition("@")[0], name.partition("@")[2] or None, defined, weak)
            for name, defined, weak in names
        ]
        self.undefined = len(spec.imports) + len(spec.weak_imports)
        self.versioned = bool(spec.versions_defined or spec.versions_needed)
        # Version indices: 0 local, 1 global and the base definition, 2 and up the rest.
        self.version_index: dict[str | None, int] = {None: 1}
        for version in spec.versions_defined:
            self.version_index[version] = len(self.version_index) + 1
        for versions in spec.versions_needed.values():
            for version in versions:
                self.version_index.setdefault(version.rstrip("?"), len(self.version_index) + 1)

    def pack(self, layout: str, *values: int) -> bytes:
        return struct.pack(self.order + layout, *values)

    def build(self) -> bytes:
        spec, pack, word = self.spec, self.pack, self.word
        header_size, entry_size = (64, 56) if self.wide else (52, 32)
        segments = 3 + spec.is_dynamic + 2 * (spec.interpreter is not None) + bool(spec.notes)

        # The read-only segment starts with the headers and has the same relative addresses whatever follows.
        content = bytearray(header_size + segments * entry_size)
        places: dict[str, tuple[int, int]] = {}

        def place(name: str, part: bytes) -> int:
            content.extend(bytes(-len(content) % 8))
            places[name] = (len(content), len(part))
            content.extend(part)
            return self.base + places[name][0]

        if spec.interpreter is not None:
            place("interpreter", os.fsencode(spec.interpreter) + b"\0")
        if spec.notes:
            place("notes", b"".join(map(self.note, spec.notes)))
        entries: list[tuple[int, int]] = []
        text_part = _RETURN_ZERO + bytes(5) + _EXIT_ZERO + spec.text_data
        # Addresses of the later segments depend on how long this one gets, and the symbols and relocations in this one
        # on those addresses; all but the addresses is laid out first, with zeros for them.
        if spec.is_dynamic:
            for tag, string in (
                *((DT_NEEDED, name) for name in spec.needed),
                (DT_SONAME, spec.soname),
                (DT_RPATH, spec.rpath),
                (DT_RUNPATH, spec.runpath),
            ):
                if string is not None:
                    entries.append((tag, self.strings.add(string)))
            entries.append((DT_SYMTAB, place("symbols", self.symbol_table(0))))
            entries.append((DT_SYMENT, 24 if self.wide else 16))
            if spec.hash_style == "sysv":
                entries.append((DT_HASH, place("hash", self.sysv_hash())))
            elif spec.hash_style == "gnu":
                entries.append((DT_GNU_HASH, place("hash", self.gnu_hash())))
            if self.versioned:
                entries.append((DT_VERSYM, place("versym", self.version_symbols())))
            if spec.versions_defined:
                entries.append((DT_VERDEF, place("verdef", self.version_definitions())))
                entries.append((DT_VERDEFNUM, len(spec.versions_defined) + 1))
            if spec.versions_needed:
                entries.append((DT_VERNEED, place("verneed", self.version_needs())))
                entries.append((DT_VERNEEDNUM, len(spec.versions_needed)))
            relocations = self.relocations(0)
            if relocations:
                entries.append((DT_RELA, place("relocations", relocations)))
                entries.append((DT_RELASZ, len(relocations)))
                entries.append((DT_RELAENT, 24))
            entries.append((DT_STRTAB, place("strings", bytes(self.strings.content))))
            entries.append((DT_STRSZ, len(self.strings.content)))
            if spec.flags_1:
                entries.append((DT_FLAGS_1, spec.flags_1))
            entries += [*spec.extra_dynamic, (DT_NULL, 0)]
        if spec.data:
            place("data", spec.data)

        content.extend(bytes(-len(content) % 16))
        text = len(content)
        text_address = self.base + self.page + text
        content += text_part + bytes(-len(text_part) % 16)
        writable = len(content)
        writable_address = self.base + 2 * self.page + writable
        dynamic = b"".join(pack(word * 2, tag, value) for tag, value in entries)
        slots = bytes(8 * self.undefined)
        content += dynamic + slots + spec.writable_data

        if spec.is_dynamic:
            self.put(content, places["symbols"], self.symbol_table(text_address))
            if "relocations" in places:
                self.put(content, places["relocations"], self.relocations(writable_address + len(dynamic)))

        program: list[bytes] = [
            self.segment(PT_LOAD, PF_R, 0, self.base, text),
            self.segment(PT_LOAD, PF_R | PF_X, text, text_address, len(text_part)),
            self.segment(PT_LOAD, PF_R | PF_W, writable, writable_address, len(content) - writable),
        ]
        if spec.is_dynamic:
            program.append(self.segment(PT_DYNAMIC, PF_R | PF_W, writable, writable_address, len(dynamic), 8))
        if "interpreter" in places:
            offset, size = places["interpreter"]
            # Both must come before the first PT_LOAD (gABI); glibc takes an executable's load address from PT_PHDR.
            program.insert(0, self.segment(PT_INTERP, PF_R, offset, self.base + offset, size, 1))
            table = (header_size, self.base + header_size, segments * entry_size)
            program.insert(0, self.segment(PT_PHDR, PF_R, *table, 8))
        if "notes" in places:
            offset, size = places["notes"]
            program.append(self.segment(PT_NOTE, PF_R, offset, self.base + offset, size, 4))
        identification = b"\x7fELF" + bytes([2 if self.wide else 1, 1 if spec.little_endian else 2, 1]) + bytes(9)
        entry = text_address + 8 if spec.elf_type == ET_EXEC or spec.interpreter is not None else 0
        header = identification + pack(
            f"HHI{word}{word}{word}IHHHHHH",
            *(spec.elf_type, spec.machine, 1, entry, header_size, 0),
            *(0, header_size, entry_size, len(program), 0, 0, 0),
        )
        content[: header_size + segments * entry_size] = header + b"".join(program)
        return bytes(content)

    @staticmethod
    def put(content: bytearray, place: tuple[int, int], part: bytes) -> None:
        offset, size = place
        assert len(part) == size
        content[offset : offset + size] = part

    def segment(self, kind: int, flags: int, offset: int, address: int, size: int, align: int = 0) -> bytes:
        align = align or self.page
        if self.wide:
            return self.pack("IIQQQQQQ", kind, flags, offset, address, address, size, size, align)
        return self.pack("IIIIIIII", kind, offset, address, address, size, size, flags, align)

    def note(self, note: Note) -> bytes:
        owner = note.owner.encode() + b"\0"
        head = self.pack("III", len(owner), len(note.description), note.kind)
        return b"".join(
            (head, owner, bytes(-len(owner) % 4), note.description, bytes(-len(note.description) % 4)),
        )

    def symbol_table(self, address: int) -> bytes:
        table = [bytes(24 if self.wide else 16)]
        for symbol in self.symbols:
            name = self.strings.add(symbol.name)
            binding = 2 if symbol.weak else 1
            # STT_FUNC in a section that is not there: any index but SHN_UNDEF counts as defined.
            info, section = (binding << 4 | 2, 1) if symbol.defined else (binding << 4, 0)
            value, size = (address, len(_RETURN_ZERO)) if symbol.defined else (0, 0)
            if self.wide:
                table.append(self.pack("IBBHQQ", name, info, 0, section, value, size))
            else:
                table.append(self.pack("IIIBBH", name, value, size, info, 0, section))
        return b"".join(table)

    def sysv_hash(self) -> bytes:
        """One bucket that chains all symbols."""
        count = len(self.symbols) + 1
        chain = [0, *range(2, count), 0][:count]
        first = 1 if count > 1 else 0
        return self.pack(f"{3 + count}I", 1, count, first, *chain)

    def gnu_hash(self) -> bytes:
        """One bucket that holds all defined symbols, behind a Bloom filter that lets everything pass."""
        first = self.undefined + 1
        hashes = [_gnu_hash(symbol.name) & ~1 for symbol in self.symbols[self.undefined :]]
        if hashes:
            hashes[-1] |= 1
        head = self.pack("IIII", 1, first, 1, 0)
        bloom = self.pack(self.word, 2**self.spec.bits - 1)
        return head + bloom + self.pack(f"{1 + len(hashes)}I", first if hashes else 0, *hashes)

    def version_symbols(self) -> bytes:
        indices = [0, *(self.version_index[symbol.version] for symbol in self.symbols)]
        return self.pack(f"{len(indices)}H", *indices)

    def version_definitions(self) -> bytes:
        names = [self.spec.soname or "base", *self.spec.versions_defined]
        parts = []
        for index, name in enumerate(names, 1):
            following = 0 if index == len(names) else 28
            flags = VER_FLG_BASE if index == 1 else 0
            parts.append(self.pack("HHHHIII", 1, flags, index, 1, _elf_hash(name), 20, following))
            parts.append(self.pack("II", self.strings.add(name), 0))
        return b"".join(parts)

    def version_needs(self) -> bytes:
        parts = []
        for position, (file, versions) in enumerate(self.spec.versions_needed.items(), 1):
            following = 0 if position == len(self.spec.versions_needed) else 16 + 16 * len(versions)
            parts.append(self.pack("HHIII", 1, len(versions), self.strings.add(file), 16, following))
            for number, written in enumerate(versions, 1):
                name = written.rstrip("?")
                flags = VER_FLG_WEAK if written.endswith("?") else 0
                index, string = self.version_index[name], self.strings.add(name)
                following = 0 if number == len(versions) else 16
                parts.append(self.pack("IHHII", _elf_hash(name), flags, index, string, following))
        return b"".join(parts)

    def relocations(self, address: int) -> bytes:
        """One pointer per undefined symbol, so that the loader has to look each of them up."""
        kind = _ABSOLUTE_RELOCATION.get(self.spec.machine)
        if not self.wide or kind is None:
            return b""
        return b"".join(
            self.pack("QQq", address + 8 * index, (index + 1) << 32 | kind, 0) for index in range(self.undefined)
        )


def _elf_hash(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value


def _gnu_hash(name: str) -> int:
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value
