"""Whatever bytes a file holds, the ELF reader answers or refuses, at once, and agrees with pyelftools.

Mutations are structured: numbers in the headers, the dynamic segment and the string table of a valid file are replaced
by the values that break readers, since random bytes hardly ever get past the magic.
"""

import os
import struct
import time
import tracemalloc
from pathlib import Path
from typing import NamedTuple

import pytest
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from safe_uninstall.scan.elf import ElfError
from safe_uninstall.scan.elf_data import names_in_data
from safe_uninstall.scan.elf_symbols import read_dlopen_notes, read_symbols
from tests.support.elf_oracle import is_ascii, oracle_facts, our_facts
from tests.support.elf_writer import Note, elf_bytes

LONGEST = 2.0
"""Seconds; far above what any file takes, so that only a hang or a blow-up gets there on a busy machine."""
MOST_MEMORY = 50 << 20
"""Bytes at any moment for one file."""

VALID = [
    elf_bytes(
        bits=bits,
        little_endian=little_endian,
        machine=machine,
        soname="libx.so.1",
        needed=("liba.so.1", "libb.so.2"),
        runpath="$ORIGIN/../lib",
        rpath="$ORIGIN",
        interpreter="/lib/ld.so",
        exports=("f@X_1", "g"),
        imports=("h@A_1", "i"),
        versions_defined=("X_1",),
        versions_needed={"liba.so.1": ("A_1",)},
        data=b"libplugin.so\0",
        notes=(Note("FDO", 0x407C0C0A, b'[{"soname":["libz.so.1"],"priority":"required"}]'),),
        hash_style=hash_style,
    )
    for bits, little_endian, machine in ((64, True, 62), (64, False, 21), (32, True, 3), (32, False, 8))
    for hash_style in ("sysv", "gnu", "none")
]


class Mutation(NamedTuple):
    """One change to a file."""

    kind: str
    position: float
    """Where, as a part of the file's length."""
    width: int
    value: int


def _interesting() -> st.SearchStrategy[int]:
    edges = [0, 1, 2, 3, 7, 8, 0x7F, 0xFF, 0xFFFE, 0xFFFF, 0x10000, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1]
    return st.sampled_from(edges) | st.integers(0, 0x50000) | st.integers(0, (1 << 64) - 1)


MUTATIONS = st.builds(
    Mutation,
    kind=st.sampled_from(["set", "set", "set", "set", "cut", "insert", "delete", "copy"]),
    # Headers fill the first part of these small files, so that it is changed more often than the rest.
    position=st.floats(0, 1) | st.floats(0, 0.25),
    width=st.sampled_from([1, 2, 4, 8]),
    value=_interesting(),
)


def mutate(data: bytes, mutations: list[Mutation]) -> bytes:
    """Return the bytes with all changes made, one after the other."""
    for kind, position, width, value in mutations:
        # Fields lie at multiples of their width.
        at = int(position * len(data)) // width * width
        if kind == "set":
            little = len(data) < 6 or data[5] != 2
            part = struct.pack(("<" if little else ">") + "Q", value)
            part = part[:width] if little else part[-width:]
            data = data[:at] + part[: len(data) - at] + data[at + width :]
        elif kind == "cut":
            data = data[:at]
        elif kind == "insert":
            data = data[:at] + bytes(value % 64) + data[at:]
        elif kind == "delete":
            data = data[:at] + data[at + width :]
        else:
            source = value % (len(data) + 1)
            data = data[:at] + data[source : source + 56] + data[at + 56 :]
    return data


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one file that all examples are written to."""
    return tmp_path_factory.mktemp("elf") / "libx.so"


@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(valid=st.sampled_from(VALID), mutations=st.lists(MUTATIONS, min_size=1, max_size=4))
def test_mutated_files_are_read_or_refused(path: Path, valid: bytes, mutations: list[Mutation]) -> None:
    """No exception but ElfError, no hang, bounded memory; where pyelftools reads the file too, the same facts."""
    path.write_bytes(mutate(valid, mutations))
    tracemalloc.start()
    start = time.monotonic()
    try:
        ours = our_facts(str(path))
    except ElfError:
        return
    finally:
        elapsed = time.monotonic() - start
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert elapsed < LONGEST
        assert peak < MOST_MEMORY
    if ours is None or ours.elf_type not in (2, 3) or not is_ascii(ours):
        return
    try:
        theirs = oracle_facts(str(path))
    except (ELFError, ConstructError, ValueError, TypeError, AssertionError, AttributeError, KeyError, OverflowError):
        # pyelftools reads on into section headers, which may be anything.
        return
    assert ours == theirs


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(valid=st.sampled_from(VALID), mutations=st.lists(MUTATIONS, min_size=1, max_size=4))
def test_symbols_notes_and_data_of_mutated_files(path: Path, valid: bytes, mutations: list[Mutation]) -> None:
    """The readers for the files in question answer as well, with nothing where there is nothing to be had."""
    path.write_bytes(mutate(valid, mutations))
    location = os.fspath(path)
    tracemalloc.start()
    start = time.monotonic()
    table = read_symbols(location)
    notes = read_dlopen_notes(location)
    found = names_in_data(location, frozenset({"libplugin.so", "libnothing.so"}))
    elapsed = time.monotonic() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert elapsed < LONGEST
    assert peak < MOST_MEMORY
    assert table is None or "" not in table.exported | table.undefined
    assert all(note.sonames for note in notes)
    assert found <= {"libplugin.so"}
