"""What the loader knows of an ELF file is read by the rules of the gABI and glibc, and nothing else is believed."""

import glob
import os
import struct
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from safe_uninstall.model.elf import DF_1_NODEFLIB, Abi, ElfObject, FileIdentity, Filter
from safe_uninstall.scan.elf import ElfError, read_elf
from tests.support.elf_oracle import oracle_facts, our_facts
from tests.support.elf_writer import (
    DT_AUXILIARY,
    DT_FILTER,
    DT_FLAGS_1,
    DT_NEEDED,
    DT_RUNPATH,
    DT_SONAME,
    DT_STRTAB,
    EM_386,
    EM_AARCH64,
    EM_PPC64,
    EM_X86_64,
    ET_CORE,
    ET_EXEC,
    ET_REL,
    PT_DYNAMIC,
    PT_LOAD,
    Note,
    elf_bytes,
    write_elf,
)

# Offsets in the 64-bit header and program header.
E_VERSION, E_PHOFF, E_PHENTSIZE, E_PHNUM = 20, 32, 54, 56
P_TYPE, P_OFFSET, P_VADDR, P_FILESZ, P_MEMSZ = 0, 8, 16, 32, 40


def read(tmp_path: Path, data: bytes, name: str = "libx.so") -> ElfObject | None:
    """Write bytes to a file and read it."""
    path = tmp_path / name
    path.write_bytes(data)
    return read_elf(str(path))


def read_valid(tmp_path: Path, data: bytes) -> ElfObject:
    """Write bytes to a file and read it; it is an ELF file."""
    found = read(tmp_path, data)
    assert found is not None
    return found


def patch(data: bytes, offset: int, form: str, value: int) -> bytes:
    """Return ``data`` with one little-endian number overwritten."""
    part = struct.pack("<" + form, value)
    return data[:offset] + part + data[offset + len(part) :]


def number(data: bytes, offset: int, form: str) -> int:
    """Return the little-endian number at an offset."""
    (value,) = struct.unpack_from("<" + form, data, offset)
    assert isinstance(value, int)
    return value


def header_of(data: bytes, kind: int, index: int = 0) -> int:
    """Return the offset of the ``index``-th program header of a kind, in a 64-bit little-endian file."""
    places = [64 + 56 * item for item in range(number(data, E_PHNUM, "H"))]
    return [place for place in places if number(data, place + P_TYPE, "I") == kind][index]


def entry_of(data: bytes, tag: int) -> int:
    """Return the offset of the first dynamic entry with a tag, in a 64-bit little-endian file."""
    start = number(data, header_of(data, PT_DYNAMIC) + P_OFFSET, "Q")
    while number(data, start, "q") != tag:
        start += 16
    return start


@pytest.mark.parametrize(
    ("bits", "little_endian", "machine"),
    [(64, True, EM_X86_64), (64, True, EM_AARCH64), (64, False, EM_PPC64), (32, True, EM_386), (32, False, 8)],
)
def test_every_field_in_every_class_and_byte_order(
    tmp_path: Path, bits: int, little_endian: bool, machine: int
) -> None:
    """Names, search paths, flags and interpreter come out as written, DT_NEEDED in the order of the file."""
    data = elf_bytes(
        bits=bits,
        little_endian=little_endian,
        machine=machine,
        soname="libx.so.1",
        needed=("libz.so.1", "liba.so.2", "libz.so.1"),
        rpath="$ORIGIN/a",
        runpath="$ORIGIN/b:/c",
        flags_1=DF_1_NODEFLIB,
        interpreter="/lib/ld.so",
        notes=(Note("GNU", 3, b"identity"),),
    )
    found = read_valid(tmp_path, data)
    path = os.path.realpath(tmp_path / "libx.so")
    status = os.stat(path)
    assert found == ElfObject(
        path=str(tmp_path / "libx.so"),
        real_path=path,
        identity=FileIdentity(status.st_dev, status.st_ino),
        size=len(data),
        abi=Abi(bits, little_endian, machine),
        elf_type=3,
        is_dynamic=True,
        soname="libx.so.1",
        needed=("libz.so.1", "liba.so.2", "libz.so.1"),
        rpath="$ORIGIN/a",
        runpath="$ORIGIN/b:/c",
        flags_1=DF_1_NODEFLIB,
        interpreter="/lib/ld.so",
    )


@pytest.mark.parametrize(
    ("notes", "has"),
    [
        ((Note("FDO", 0x407C0C0A, b'[{"soname":["libx.so"]}]'),), True),
        ((Note("GNU", 3, bytes(20)), Note("FDO", 0x407C0C0A, b"[]")), True),
        ((Note("GNU", 3, bytes(20)), Note("GNU", 5, bytes(64))), False),
        ((Note("FDO", 1, b""),), False),
        ((Note("GNU", 5, bytes(1 << 17)), Note("FDO", 0x407C0C0A, b"[]")), False),
        ((), False),
    ],
)
def test_notes_of_what_is_opened_are_noticed(tmp_path: Path, notes: tuple[Note, ...], has: bool) -> None:
    """They are read when somebody asks; a segment of a build ID alone, or one that is too large to be true, is none."""
    assert read_valid(tmp_path, elf_bytes(notes=notes)).has_dlopen_notes is has


def test_absent_entries_are_none(tmp_path: Path) -> None:
    """A library without soname, search paths and needs has none of them, rather than empty ones."""
    found = read_valid(tmp_path, elf_bytes())
    assert (found.soname, found.rpath, found.runpath, found.interpreter) == (None, None, None, None)
    assert (found.needed, found.flags_1, found.is_dynamic) == ((), 0, True)


@pytest.mark.parametrize("data", [b"", b"\x7fEL", b"#!/bin/sh\n", b"!<arch>\n" + bytes(100), b"MZ" + bytes(100)])
def test_without_the_magic_it_is_no_elf_file(tmp_path: Path, data: bytes) -> None:
    """Files are recognised by their first four bytes, whatever they are called."""
    assert read(tmp_path, data, "libx.so.1") is None


def test_name_and_mode_do_not_matter(tmp_path: Path) -> None:
    """An ELF file without suffix and without any mode bit but reading is one all the same."""
    path = tmp_path / "data"
    path.write_bytes(elf_bytes(soname="libx.so.1"))
    path.chmod(0o400)
    found = read_elf(str(path))
    assert found is not None
    assert found.soname == "libx.so.1"


def test_what_is_no_regular_file_is_none(tmp_path: Path) -> None:
    """Directories, FIFOs (which must not block), missing files, and links that dangle or go round are no ELF files."""
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "file").write_bytes(b"")
    for name in ("directory", "fifo", "missing", "dangling", "circle", "file/below"):
        assert read_elf(str(tmp_path / name)) is None, name


def test_link_has_its_own_path_and_the_identity_of_its_target(tmp_path: Path) -> None:
    """Two paths to one file are told apart by path, and known as one file by identity."""
    real = tmp_path / "libx.so.1.2"
    write_elf(real)
    (tmp_path / "libx.so").symlink_to("libx.so.1.2")
    link, target = read_elf(str(tmp_path / "libx.so")), read_elf(str(real))
    assert link is not None
    assert target is not None
    assert link.path == str(tmp_path / "libx.so")
    assert link.real_path == target.real_path == os.path.realpath(real)
    assert link.identity == target.identity


def test_location_is_where_the_file_is_opened(tmp_path: Path) -> None:
    """A file of a tree mounted elsewhere is known by its path inside the tree."""
    write_elf(tmp_path / "usr/lib/libx.so", soname="libx.so")
    found = read_elf("/usr/lib/libx.so", real_path="/usr/lib/libx.so", location=str(tmp_path / "usr/lib/libx.so"))
    assert found is not None
    assert (found.path, found.real_path, found.soname) == ("/usr/lib/libx.so", "/usr/lib/libx.so", "libx.so")


@pytest.mark.parametrize("elf_type", [ET_REL, ET_CORE])
def test_relocatable_files_and_core_dumps_are_recognised_and_left_alone(tmp_path: Path, elf_type: int) -> None:
    """They are never loaded: their program headers may say anything, and be cut off."""
    found = read_valid(tmp_path, patch(elf_bytes(elf_type=elf_type, soname="libx.so"), E_PHOFF, "Q", 1 << 60))
    assert (found.elf_type, found.is_dynamic, found.soname) == (elf_type, False, None)


def test_device_code_is_recognised_and_left_alone(tmp_path: Path) -> None:
    """Code for a GPU (EM_CUDA) is an ELF file that no dynamic loader opens: whatever is in it is no error."""
    found = read_valid(tmp_path, patch(elf_bytes(machine=190, elf_type=ET_EXEC), E_PHNUM, "H", 0))
    assert (found.abi.machine, found.is_dynamic) == (190, False)


def test_static_executable_is_not_dynamic(tmp_path: Path) -> None:
    """Without PT_DYNAMIC there are no needs."""
    found = read_valid(tmp_path, elf_bytes(elf_type=ET_EXEC, is_dynamic=False))
    assert (found.is_dynamic, found.elf_type, found.needed) == (False, ET_EXEC, ())


def test_last_of_repeated_entries_counts(tmp_path: Path) -> None:
    """The loader (glibc) fills a table by tag: the last DT_SONAME and DT_FLAGS_1 are what it knows."""
    data = elf_bytes(soname="libold.so", needed=("libnew.so",), flags_1=8, extra_dynamic=((DT_FLAGS_1, 1),))
    offset = number(data, entry_of(data, DT_NEEDED) + 8, "Q")
    data = elf_bytes(
        soname="libold.so", needed=("libnew.so",), flags_1=8, extra_dynamic=((DT_FLAGS_1, 1), (DT_SONAME, offset))
    )
    found = read_valid(tmp_path, data)
    assert (found.soname, found.flags_1) == ("libnew.so", 1)


def test_filters_stand_between_the_needs(tmp_path: Path) -> None:
    """DT_FILTER and DT_AUXILIARY keep their place among DT_NEEDED, which decides the order of loading."""
    extra = ((DT_FILTER, 1), (DT_NEEDED, 1), (DT_AUXILIARY, 1))
    found = read_valid(tmp_path, elf_bytes(needed=("libx.so",), extra_dynamic=extra))
    assert found.needed == ("libx.so", "libx.so")
    assert found.filters == (Filter("libx.so", False, 1), Filter("libx.so", True, 2))


def test_dynamic_segment_without_bytes_does_not_count(tmp_path: Path) -> None:
    """``objcopy --only-keep-debug`` leaves an empty PT_DYNAMIC: such a file has no needs, and is no error."""
    data = elf_bytes(needed=("liba.so",))
    data = patch(data, header_of(data, PT_DYNAMIC) + P_FILESZ, "Q", 0)
    assert not read_valid(tmp_path, data).is_dynamic


def test_last_dynamic_segment_counts(tmp_path: Path) -> None:
    """The loader (glibc) walks through all program headers, and the last PT_DYNAMIC is the one it keeps."""
    data = elf_bytes(needed=("liba.so",), notes=(Note("GNU", 3, b"identity"),))
    dynamic = header_of(data, PT_DYNAMIC)
    note = header_of(data, 4)
    assert note > dynamic
    # The second one starts an entry later, behind the need.
    moved = data[dynamic : dynamic + 56]
    for field in (P_OFFSET, P_VADDR):
        moved = patch(moved, field, "Q", number(moved, field, "Q") + 16)
    moved = patch(moved, P_FILESZ, "Q", number(moved, P_FILESZ, "Q") - 16)
    assert read_valid(tmp_path, data[:note] + moved + data[note + 56 :]).needed == ()


def test_strings_far_apart_and_long(tmp_path: Path) -> None:
    """Strings are found wherever they lie in the table, and whole however long they are."""
    long = "$ORIGIN/" + "x" * 5000 + ":/y"
    needed = tuple(f"lib{'a' * 200}{index}.so" for index in range(100))
    found = read_valid(tmp_path, elf_bytes(needed=needed, runpath=long, soname="libx.so"))
    assert (found.needed, found.runpath, found.soname) == (needed, long, "libx.so")
    found = read_valid(tmp_path, elf_bytes(needed=needed, runpath="$ORIGIN", soname=""))
    assert (found.needed, found.runpath, found.soname) == (needed, "$ORIGIN", "")


def test_names_that_are_not_utf_8_survive(tmp_path: Path) -> None:
    """Names are bytes; they come through as file names do (PEP 383)."""
    assert read_valid(tmp_path, elf_bytes(needed=("lib\udce9.so",))).needed == ("lib\udce9.so",)


def test_interpreter_without_end_is_none(tmp_path: Path) -> None:
    """A PT_INTERP that NUL does not end starts no program; it tells nothing, and does no harm to the rest."""
    data = elf_bytes(interpreter="/lib/ld.so", soname="libx.so")
    place = header_of(data, 3)
    data = patch(data, place + P_FILESZ, "Q", number(data, place + P_FILESZ, "Q") - 1)
    found = read_valid(tmp_path, data)
    assert (found.interpreter, found.soname) == (None, "libx.so")


@pytest.mark.parametrize("offset", [1 << 20, (1 << 64) - 1])
def test_interpreter_outside_of_the_file_is_none(tmp_path: Path, offset: int) -> None:
    """An offset past the end, or past what the kernel takes as one, holds no interpreter."""
    data = elf_bytes(interpreter="/lib/ld.so", soname="libx.so")
    found = read_valid(tmp_path, patch(data, header_of(data, 3) + P_OFFSET, "Q", offset))
    assert (found.interpreter, found.soname) == (None, "libx.so")


def test_little_is_read_of_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither data nor the rest of the string table is read: cost does not grow with the file."""
    path = tmp_path / "libx.so"
    write_elf(path, needed=("liba.so",), exports=tuple(f"symbol{n}" for n in range(20000)), data=bytes(1 << 20))
    asked = []
    original = os.pread

    def pread(descriptor: int, size: int, offset: int) -> bytes:
        data = original(descriptor, size, offset)
        asked.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", pread)
    found = read_elf(str(path))
    assert found is not None
    assert found.needed == ("liba.so",)
    assert sum(asked) < 4096


VALID = elf_bytes(soname="libx.so.1", needed=("liba.so",), runpath="$ORIGIN", data=b"constant")


def broken(change: Callable[[bytes], bytes]) -> bytes:
    """Return the valid file with one change."""
    data = change(VALID)
    assert data != VALID
    return data


def set_load(index: int, field: int, value: int) -> Callable[[bytes], bytes]:
    """Overwrite a field of a PT_LOAD."""
    return lambda data: patch(data, header_of(data, PT_LOAD, index) + field, "Q", value)


def set_dynamic(field: int, value: int) -> Callable[[bytes], bytes]:
    """Overwrite a field of PT_DYNAMIC."""
    return lambda data: patch(data, header_of(data, PT_DYNAMIC) + field, "Q", value)


def set_entry(tag: int, value: int) -> Callable[[bytes], bytes]:
    """Overwrite the value of a dynamic entry."""
    return lambda data: patch(data, entry_of(data, tag) + 8, "Q", value)


def end_early(data: bytes) -> bytes:
    """Let PT_DYNAMIC end before DT_NULL."""
    size = entry_of(data, 0) - number(data, header_of(data, PT_DYNAMIC) + P_OFFSET, "Q")
    return set_dynamic(P_FILESZ, size)(data)


def unterminated(data: bytes) -> bytes:
    """Let the segment that holds the string table end within the last string."""
    end = data.index(b"$ORIGIN\0") + 4
    data = set_load(0, P_FILESZ, end)(data)
    return set_load(0, P_MEMSZ, end)(data)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data[:10], "truncated within its header: 10 bytes"),
        (lambda data: data[:63], "truncated within its header: 63 bytes"),
        (lambda data: data[:100], r"truncated: its program headers end at byte \d+ of 100"),
        (lambda data: data[:-8], rf"truncated: a segment ends at byte {len(VALID)} of {len(VALID) - 8}"),
        (lambda data: patch(data, 4, "B", 3), "unknown ELF class 3"),
        (lambda data: patch(data, 5, "B", 0), "byte order 0"),
        (lambda data: patch(data, 6, "B", 2), "unknown ELF version 2"),
        (lambda data: patch(data, E_VERSION, "I", 7), "unknown ELF version 7"),
        (lambda data: patch(data, E_PHNUM, "H", 0), "no program headers"),
        (lambda data: patch(data, E_PHNUM, "H", 0xFFFF), "more program headers"),
        (lambda data: patch(data, E_PHNUM, "H", 0xFFFE), "truncated: its program headers"),
        (lambda data: patch(data, E_PHENTSIZE, "H", 32), "claim 32 bytes each, not 56"),
        (lambda data: patch(data, E_PHOFF, "Q", 1 << 63), "truncated: its program headers"),
        (
            lambda data: patch(data, E_PHNUM, "H", 0)[:E_PHNUM] + b"\1\0" + data[58:64] + bytes(56) + data[120:],
            "no load",
        ),
        (set_load(2, P_OFFSET, 1 << 63), "truncated: a segment ends"),
        (set_load(1, P_FILESZ, (1 << 64) - 1), "truncated: a segment ends"),
        (set_load(0, P_MEMSZ, 1), "larger in the file than in memory"),
        (set_load(1, P_VADDR, 0x40000), "segments overlap at address 0x40000"),
        (set_load(0, P_MEMSZ, 1 << 40), "segments overlap"),
        (set_dynamic(P_FILESZ, 1 << 30), "its dynamic segment claims 1073741824 bytes"),
        (set_dynamic(P_VADDR, 0), "not where its address says"),
        (set_dynamic(P_OFFSET, 64), "not where its address says"),
        (end_early, "its dynamic segment has no end"),
        (set_dynamic(P_FILESZ, 8), "its dynamic segment has no end"),
        (set_entry(DT_STRTAB, 0xDEAD0000), "string table .* in none of its segments"),
        (lambda data: patch(data, entry_of(data, DT_STRTAB), "q", 99), "string table .* in none of its segments"),
        (set_entry(DT_NEEDED, 1 << 40), r"outside of its string table \(offset 1099511627776\)"),
        (set_entry(DT_RUNPATH, (1 << 64) - 1), "outside of its string table"),
        (unterminated, "a string has no end"),
    ],
)
def test_contradictions_are_refused_in_words(tmp_path: Path, change: Callable[[bytes], bytes], reason: str) -> None:
    """A truncated or crafted file is an error with a reason: unknown is not "no needs"."""
    with pytest.raises(ElfError, match=reason) as caught:
        read(tmp_path, broken(change))
    assert caught.value.reason == str(caught.value)


def test_names_without_measure_are_refused(tmp_path: Path) -> None:
    """Overlapping strings could name gigabytes in a small file; their sum is bounded."""
    size = 8 << 10
    data = elf_bytes(needed=("x" * size,), extra_dynamic=tuple((DT_NEEDED, 1 + index) for index in range(1024)))
    with pytest.raises(ElfError, match="too long to be true"):
        read(tmp_path, data)


def test_a_single_string_without_measure_is_refused(tmp_path: Path) -> None:
    """A string that runs on for megabytes is no name."""
    with pytest.raises(ElfError, match="has no end"):
        read(tmp_path, elf_bytes(soname="x" * (5 << 20), needed=("y" * 300,)))


@pytest.mark.parametrize("function", ["open", "fstat", "pread"])
def test_failures_to_read_are_told_in_the_words_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    """A file that cannot be opened or read is not "no ELF file": it might be one."""
    write_elf(tmp_path / "libx.so")

    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(os, function, fail)
        with pytest.raises(ElfError) as caught:
            read_elf(str(tmp_path / "libx.so"), real_path="/x")
    assert caught.value.reason == "permission denied"


def test_later_failures_to_read_are_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An input error past the first kilobyte is an error, and the file is closed."""
    write_elf(tmp_path / "libx.so", needed=("liba.so",), notes=(Note("GNU", 3, bytes(4096)),))
    original = os.pread
    closed: list[int] = []
    original_close = os.close

    def pread(descriptor: int, size: int, offset: int) -> bytes:
        if offset:
            raise OSError(5, "Input/output error")
        return original(descriptor, size, offset)

    def close(descriptor: int) -> None:
        closed.append(descriptor)
        original_close(descriptor)

    monkeypatch.setattr(os, "pread", pread)
    monkeypatch.setattr(os, "close", close)
    with pytest.raises(ElfError, match="input/output error"):
        read_elf(str(tmp_path / "libx.so"))
    assert len(closed) == 1


def _sample() -> list[str]:
    """Return ELF files that are on any machine with a Python: the interpreter, its modules and system libraries."""
    modules = sorted(glob.glob(os.path.join(sysconfig.get_path("platstdlib"), "lib-dynload", "*.so")))
    system = sorted(glob.glob("/usr/lib/*-linux-gnu*/lib*.so*") or glob.glob("/usr/lib64/lib*.so*"))
    return [os.path.realpath(sys.executable), *modules, *system[:: max(1, len(system) // 60)]]


def test_agrees_with_pyelftools_on_what_is_installed_here() -> None:
    """Over the interpreter, its extension modules and system libraries, both readers tell the same facts."""
    compared = 0
    for path in _sample():
        ours = our_facts(path)
        if ours is not None:
            assert ours == oracle_facts(path), path
            compared += 1
    assert compared > 0
