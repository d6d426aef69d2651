"""What the dynamic loader knows of an ELF file: identity, ABI, names and search paths."""

from dataclasses import dataclass
from typing import NamedTuple

DF_1_NODEFLIB = 0x800
"""Bit of DT_FLAGS_1: search neither the default directories nor their entries in ld.so.cache."""

DF_1_PIE = 0x08000000
"""Bit of DT_FLAGS_1: a position independent executable."""


ET_EXEC, ET_DYN = 2, 3
"""``e_type`` of what can be loaded: a program at a fixed address, and everything else."""


class FileIdentity(NamedTuple):
    """The two numbers that name a file whatever path led to it."""

    device: int
    inode: int


class Abi(NamedTuple):
    """What must be equal for one ELF file to satisfy another (glibc ``elf/dl-load.c``, ``open_verify``)."""

    bits: int
    """32 or 64 (EI_CLASS)."""
    little_endian: bool
    """EI_DATA."""
    machine: int
    """``e_machine``: 62 for x86-64, 183 for AArch64."""


class Filter(NamedTuple):
    """One DT_FILTER or DT_AUXILIARY: a file that is loaded before the object, and whose symbols win over its own."""

    name: str
    is_optional: bool
    """DT_AUXILIARY: without the file, the object serves alone."""
    position: int
    """How many DT_NEEDED entries stand before it: the loader takes all of them in the order of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfObject:
    """Header and dynamic segment of one ELF file, as read from one path.

    Everything here comes from the ELF header, the program headers, PT_INTERP, PT_DYNAMIC and the strings
    that it points to; section headers are never consulted (a stripped library loads without them).
    """

    path: str
    """Absolute path it was read by: directories resolved, the last component not."""
    real_path: str
    """Absolute path with every symbolic link resolved."""
    identity: FileIdentity
    """Device and inode of the file itself, after following links."""
    size: int
    """Bytes."""
    abi: Abi
    elf_type: int
    """``e_type``: 2 ET_EXEC, 3 ET_DYN; other types are never loaded."""
    is_dynamic: bool
    """Whether there is a PT_DYNAMIC segment."""
    soname: str | None = None
    needed: tuple[str, ...] = ()
    """DT_NEEDED, in the order of the file."""
    filters: tuple[Filter, ...] = ()
    """DT_FILTER and DT_AUXILIARY, in the order of the file."""
    rpath: str | None = None
    """DT_RPATH as written; glibc ignores it when there is a DT_RUNPATH."""
    runpath: str | None = None
    """DT_RUNPATH as written."""
    flags_1: int = 0
    """DT_FLAGS_1."""
    interpreter: str | None = None
    """PT_INTERP: the path of the dynamic loader that an executable asks for."""
    has_dlopen_notes: bool = False
    """Whether it may say in a ``.note.dlopen`` what it opens; ``Evidence.dlopen_notes`` reads it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolTable:
    """Dynamic symbols and symbol versions of one ELF file; read only for the files in question."""

    exported: frozenset[str]
    """Names of defined global or weak dynamic symbols, without version."""
    undefined: frozenset[str]
    """Names of undefined global (strong) dynamic symbols, without version."""
    versions_defined: frozenset[str]
    """DT_VERDEF names."""
    versions_needed: tuple[tuple[str, frozenset[str]], ...]
    """DT_VERNEED: (file name, version names that must be defined there); weak requirements left out."""
    exported_versions: frozenset[str] = frozenset()
    """``name@VERSION`` of the exported symbols that have a version."""
    undefined_versions: frozenset[str] = frozenset()
    """``name@VERSION`` of the undefined symbols that ask for a version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DlopenNote:
    """One entry of a ``.note.dlopen`` (UAPI.12: owner ``FDO``, type 0x407c0c0a)."""

    sonames: tuple[str, ...]
    """Alternatives, most preferred first."""
    priority: str
    """``required``, ``recommended`` or ``suggested``."""
    feature: str | None = None
    description: str | None = None
