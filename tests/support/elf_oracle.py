"""The facts of an ELF file as pyelftools tells them, to hold our own reader against."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_E_MACHINE, ENUM_E_TYPE

from safe_uninstall.scan.elf import read_elf


class Facts(NamedTuple):
    """What both readers can tell of a file."""

    bits: int
    little_endian: bool
    machine: int
    elf_type: int
    soname: str | None
    needed: tuple[str, ...]
    rpath: str | None
    runpath: str | None
    flags_1: int


class Ambiguous(ValueError):
    """There are two string tables: glibc goes by the last, pyelftools by the first."""


def our_facts(path: str) -> Facts | None:
    """Return the facts by our reader, None for what is no ELF file."""
    found = read_elf(path)
    if found is None:
        return None
    return Facts(*found.abi, found.elf_type, found.soname, found.needed, found.rpath, found.runpath, found.flags_1)


def oracle_facts(path: str) -> Facts:
    """Return the facts by pyelftools; the last of repeated entries and segments counts, as in glibc."""
    with open(path, "rb") as stream:
        file = ELFFile(stream)
        dynamic = [item for item in file.iter_segments() if isinstance(item, DynamicSegment) and item["p_filesz"]]
        if dynamic and len(list(dynamic[-1].iter_tags("DT_STRTAB"))) > 1:
            raise Ambiguous
        values: dict[str, Any] = {}
        needed: list[str] = []
        for tag in dynamic[-1].iter_tags() if dynamic else ():
            name = str(tag.entry.d_tag)[3:].lower()
            if name == "needed":
                needed.append(getattr(tag, name))
            elif name == "flags_1":
                values[name] = tag.entry.d_val
            elif name in ("soname", "rpath", "runpath"):
                values[name] = getattr(tag, name)
        return Facts(
            bits=file.elfclass,
            little_endian=file.little_endian,
            machine=_number(ENUM_E_MACHINE, file["e_machine"]),
            elf_type=_number(ENUM_E_TYPE, file["e_type"]),
            soname=values.get("soname"),
            needed=tuple(needed),
            rpath=values.get("rpath"),
            runpath=values.get("runpath"),
            flags_1=values.get("flags_1", 0),
        )


def _number(names: Mapping[str, int], value: Any) -> int:
    """Return the number behind a name that pyelftools gave it, or the number that it had no name for."""
    return names[value] if isinstance(value, str) else int(value)


def is_ascii(facts: Facts) -> bool:
    """Return whether all strings are ASCII: pyelftools decodes the rest its own way."""
    strings = (facts.soname, *facts.needed, facts.rpath, facts.runpath)
    return all(os.fsencode(text).isascii() for text in strings if text is not None)
