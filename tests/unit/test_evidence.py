"""Facts about the contents of files: found where they stand, absent where a file cannot be read, and never an error."""

import base64
import glob
import hashlib
import json
import os
import struct
import sysconfig
import warnings
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from safe_uninstall.model.elf import DlopenNote, SymbolTable
from safe_uninstall.scan import elf_data, elf_symbols, evidence
from safe_uninstall.scan.disk import DiskFileSystem
from safe_uninstall.scan.evidence import DiskEvidence
from tests.support.elf_writer import (
    DT_GNU_HASH,
    DT_HASH,
    DT_STRSZ,
    DT_SYMTAB,
    DT_VERDEF,
    DT_VERNEED,
    ET_EXEC,
    Note,
    elf_bytes,
    write_elf,
)

CLASSES = [(64, True, 62), (64, False, 21), (32, True, 3), (32, False, 8)]
DT_INIT, DT_FINI = 12, 13
BASE = 0x40000
"""Address of the first byte of the files that the writer makes."""


@pytest.fixture
def facts() -> DiskEvidence:
    """Return evidence over the host's files, with nothing read yet."""
    return DiskEvidence(DiskFileSystem())


def put(tmp_path: Path, data: bytes, name: str = "libx.so") -> str:
    """Write a file and return its path."""
    (tmp_path / name).write_bytes(data)
    return str(tmp_path / name)


class TestSizeAndDigest:
    """What ownership compares."""

    def test_size_in_bytes_through_links(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """A link has the size of the file it leads to; what is no file has none."""
        path = put(tmp_path, b"12345")
        (tmp_path / "link").symlink_to("libx.so")
        (tmp_path / "dangling").symlink_to("nowhere")
        assert facts.size(path) == facts.size(str(tmp_path / "link")) == 5
        for name in (".", "missing", "dangling"):
            assert facts.size(str(tmp_path / name)) is None

    @pytest.mark.parametrize("algorithm", ["sha256", "sha512", "md5"])
    @pytest.mark.parametrize("size", [0, 100, (1 << 20) + 7])
    def test_digest_as_record_writes_it(self, tmp_path: Path, facts: DiskEvidence, algorithm: str, size: int) -> None:
        """URL-safe base64 without padding (PEP 376), of files larger than what is read at once, too."""
        data = bytes(range(256)) * (size // 256 + 1)
        path = put(tmp_path, data[:size])
        expected = base64.urlsafe_b64encode(hashlib.new(algorithm, data[:size]).digest()).rstrip(b"=").decode()
        assert facts.digest(path, algorithm) == expected

    def test_no_digest_without_algorithm_or_file(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """Neither an unknown algorithm nor one without a length of its own, nor a FIFO, nor a directory has one."""
        path = put(tmp_path, b"x")
        os.mkfifo(tmp_path / "fifo")
        assert facts.digest(path, "crc32") is None
        assert facts.digest(path, "shake_128") is None
        for name in ("fifo", "missing", "."):
            assert facts.digest(str(tmp_path / name), "sha256") is None

    def test_unreadable_file_has_no_digest(
        self, tmp_path: Path, facts: DiskEvidence, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file without permission answers with None."""

        def refuse(*_: object, **__: object) -> None:
            raise PermissionError

        monkeypatch.setattr("builtins.open", refuse)
        assert facts.digest(put_with_os(tmp_path, b"x"), "sha256") is None
        assert facts.sources_naming(frozenset({"x"}), [str(tmp_path / "libx.so")]) == {}

    def test_answers_are_kept(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """One snapshot tells one story: a file that changes afterwards does not change the answer."""
        path = put(tmp_path, b"before")
        before = (facts.size(path), facts.digest(path, "sha256"))
        put(tmp_path, b"afterwards")
        assert (facts.size(path), facts.digest(path, "sha256")) == before


def put_with_os(tmp_path: Path, data: bytes) -> str:
    """Write a file without the builtin ``open``."""
    path = str(tmp_path / "libx.so")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, data)
    os.close(descriptor)
    return path


class TestStrings:
    """Names in the strings of Python source."""

    @pytest.mark.parametrize(
        ("text", "stands"),
        [
            (b'CDLL("libx.so")', True),
            (b"CDLL(b'libx.so')", True),
            (b"f'{base}/libx.so'", True),
            (b"x = 'nvidia/lib/libx.so'", True),
            (b"def f():\n    'open it'\n    return ['libx.so']", True),
            (b"SOURCE = 'void *handle = dlopen(\"libx.so\", RTLD_LAZY);'", True),
            (b"x = 1  # libx.so", False),
            (b"'''Opens \"libx.so\" when asked.'''", False),
            (b"def f():\n    '''libx.so'''", False),
            (b"raise OSError('libx.so is missing')", False),
            (b"raise OSError('install libx.so')", False),
            (b"x = 'mylibx.so'", False),
            (b"x = 'libx.so.1'", False),
            (b"x = 'libx.so.*'", False),
            (b"libx.so", False),
            (b"x = '\\d'; y = 'libx.so'", True),
            (b"print 'this is Python 2, libx.so'", True),
            (b"x = 'libx.so'\0", True),
            (b"x = " + b"-" * 100_000 + b"'libx.so'", True),
        ],
    )
    def test_where_a_name_stands(self, tmp_path: Path, facts: DiskEvidence, text: bytes, stands: bool) -> None:
        """As a string, at the end of a path, or in quotes within one; what cannot be parsed is taken to hold it."""
        path = put(tmp_path, text, "x.py")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = facts.strings_naming(frozenset({"libx.so"}), [path])
        assert found == ({"libx.so": (path,)} if stands else {})

    def test_several_names_and_files(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """Answers are by name, sorted, and kept: a file that is gone still has what it had."""
        one = put(tmp_path, b"x = ['a.so', 'b.so']  # c.so", "1.py")
        two = put(tmp_path, b"y = 'a.so'", "2.py")
        names = frozenset({"a.so", "b.so", "c.so", "d.so"})
        expected = {"a.so": (one, two), "b.so": (one,)}
        assert facts.strings_naming(names, [two, one]) == expected
        os.unlink(one)
        assert facts.strings_naming(names, [one, two]) == expected

    def test_long_files_are_not_parsed(
        self, tmp_path: Path, facts: DiskEvidence, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A generated table of megabytes names what it holds as text."""
        monkeypatch.setattr(evidence, "_PARSED_LIMIT", 20)
        path = put(tmp_path, b"# libx.so" + bytes(20), "x.py")
        assert facts.strings_naming(frozenset({"libx.so"}), [path]) == {"libx.so": (path,)}

    def test_a_file_that_goes_in_between(
        self, tmp_path: Path, facts: DiskEvidence, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It held the name as text; what else it held nobody knows any more."""
        path = put(tmp_path, b"x = 'libx.so'", "x.py")
        assert facts.sources_naming(frozenset({"libx.so"}), [path]) == {"libx.so": (path,)}
        os.unlink(path)
        assert facts.strings_naming(frozenset({"libx.so"}), [path]) == {}


class TestSources:
    """Names in Python source."""

    @pytest.mark.parametrize(
        ("text", "stands"),
        [
            (b'CDLL("libx.so")', True),
            (b"libx.so", True),
            (b"'/usr/lib/libx.so'", True),
            (b"see libx.so.", True),
            (b'f"{base}libx.so"', True),
            (b"libx.so.1", False),
            (b"mylibx.so", False),
            (b"libx.sock", False),
            (b"libx_so", False),
            (b"libxyso", False),
            (b"libx.so.1 libx.so", True),
        ],
    )
    def test_a_name_stands_as_a_word_of_its_own(
        self, tmp_path: Path, facts: DiskEvidence, text: bytes, stands: bool
    ) -> None:
        """Neither a longer name nor another version of it counts."""
        path = put(tmp_path, b"import ctypes\n" + text + b"\n", "a.py")
        assert facts.sources_naming(frozenset({"libx.so"}), [path]) == ({"libx.so": (path,)} if stands else {})

    def test_attribute_of_a_module_counts(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """Package names are asked for too: what follows them is a dot and another name."""
        path = put(tmp_path, b"import rapids_logger\nrapids_logger.load_library()\n", "a.py")
        assert facts.sources_naming(frozenset({"rapids_logger"}), [path]) == {"rapids_logger": (path,)}

    def test_several_names_and_files_in_order(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """Each name comes with all files that hold it, sorted; files that are not there are passed over."""
        one, two = put(tmp_path, b"a.so b.so", "1.py"), put(tmp_path, b"b.so", "2.py")
        names = frozenset({"a.so", "b.so", "c.so"})
        found = facts.sources_naming(names, [two, str(tmp_path / "missing.py"), one, one])
        assert found == {"a.so": (one,), "b.so": (one, two)}

    def test_further_names_of_a_known_file(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """A file is read again for names not asked before, and only for those."""
        path = put(tmp_path, b"a.so b.so", "1.py")
        assert facts.sources_naming(frozenset({"a.so"}), [path]) == {"a.so": (path,)}
        assert facts.sources_naming(frozenset({"a.so", "b.so"}), [path]) == {"a.so": (path,), "b.so": (path,)}
        os.unlink(path)
        assert facts.sources_naming(frozenset({"a.so", "b.so"}), [path]) == {"a.so": (path,), "b.so": (path,)}

    @pytest.mark.parametrize("shift", range(-8, 2))
    def test_a_name_across_two_reads(self, tmp_path: Path, facts: DiskEvidence, shift: int) -> None:
        """Large sources are read piece by piece; a name on the border is found."""
        path = put(tmp_path, b" " * (evidence._CHUNK + shift) + b"libx.so " + b"#" * 100, "a.py")
        assert facts.sources_naming(frozenset({"libx.so"}), [path]) == {"libx.so": (path,)}


class TestData:
    """Names in the constants of ELF files."""

    def found(self, tmp_path: Path, facts: DiskEvidence, name: str = "libx.so.1", **options: Any) -> bool:
        """Return whether a name is found in a file with these contents."""
        return facts.data_naming(frozenset({name}), put(tmp_path, elf_bytes(**options))) == {name}

    @pytest.mark.parametrize("segment", ["data", "text_data"])
    def test_constants_in_either_segment(self, tmp_path: Path, facts: DiskEvidence, segment: str) -> None:
        """Newer linkers give constants a segment of their own, older ones put them beside the code."""
        options: dict[str, Any] = {segment: b"\0libx.so.1\0"}
        assert self.found(tmp_path, facts, **options)

    def test_writable_data_holds_no_constants(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """What a program may change is not what it was built to open."""
        assert not self.found(tmp_path, facts, writable_data=b"\0libx.so.1\0")

    def test_needed_names_are_not_data(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """DT_NEEDED, DT_SONAME and versions stand in the string table: they are needs of another strength."""
        assert not self.found(tmp_path, facts, needed=("libx.so.1",), data=b"\0libother.so\0")
        assert self.found(tmp_path, facts, "liby.so", needed=("libx.so.1",), data=b"\0liby.so\0")

    @pytest.mark.parametrize(
        ("data", "stands"),
        [
            (b"\0libx.so.1\0", True),
            (b"\0/opt/x/libx.so.1\0", True),
            (b"cannot open libx.so.1\0", True),
            (b"\0libx.so.1: cannot open\0", False),
            (b"\0libx.so.12\0", False),
            (b"\0mylibx.so.1\0", False),
            (b"\0other-libx.so.1\0", False),
            (b"\0libx.so.1", False),
        ],
    )
    def test_name_ends_with_nul_and_starts_as_a_name(
        self, tmp_path: Path, facts: DiskEvidence, data: bytes, stands: bool
    ) -> None:
        """A directory may come before it; a longer name is another one."""
        # The end of the segment is no NUL.
        assert self.found(tmp_path, facts, data=data + b"!" * 600) == stands

    def test_names_that_do_not_look_like_libraries(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """Plugins may be called anything."""
        path = put(tmp_path, elf_bytes(data=b"\0plugin.bin\0libx.so\0"))
        assert facts.data_naming(frozenset({"plugin.bin", "libx.so", "other.bin"}), path) == {"plugin.bin", "libx.so"}
        assert facts.data_naming(frozenset({"", "plugin.bin"}), path) == {"plugin.bin"}

    @pytest.mark.parametrize("shift", [-12, -9, -8, -1, 0, 1, 300])
    def test_a_name_across_two_reads(
        self, tmp_path: Path, facts: DiskEvidence, monkeypatch: pytest.MonkeyPatch, shift: int
    ) -> None:
        """Large files are read piece by piece: a name on the border is found, and no part of a longer one."""
        monkeypatch.setattr(elf_data, "_CHUNK", 4096)
        assert self.found(tmp_path, facts, data=b"\0" * (4096 + shift) + b"libx.so.1\0" + bytes(9000))
        for length in range(3570, 3590):
            path = put(tmp_path, elf_bytes(data=b"\0" * length + b"y" * 300 + b"libx.so.1\0"), f"{length}.so")
            assert not facts.data_naming(frozenset({"libx.so.1"}), path)

    def test_further_names_of_a_known_file(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """Answers are kept per name."""
        path = put(tmp_path, elf_bytes(data=b"\0a.so\0b.so\0"))
        assert facts.data_naming(frozenset({"a.so", "c.so"}), path) == {"a.so"}
        assert facts.data_naming(frozenset({"a.so", "b.so"}), path) == {"a.so", "b.so"}
        os.unlink(path)
        assert facts.data_naming(frozenset({"a.so", "b.so", "c.so"}), path) == {"a.so", "b.so"}

    @pytest.mark.parametrize("chunk", [1 << 20, 4096, 700])
    def test_device_code_is_passed_over(
        self, tmp_path: Path, facts: DiskEvidence, monkeypatch: pytest.MonkeyPatch, chunk: int
    ) -> None:
        """Containers of CUDA device code follow each other; names before and after them count, those within do not."""
        monkeypatch.setattr(elf_data, "_CHUNK", chunk)
        inside = container(b"\0libin.so\0" * 200) + container(b"\0libin.so\0" * 3)
        for shift in range(8):
            data = bytes(8 + shift) + b"libbefore.so\0" + bytes(600) + inside + b"libafter.so\0" + bytes(chunk)
            path = put(tmp_path, elf_bytes(data=data), f"{shift}.so")
            names = frozenset({"libbefore.so", "libin.so", "libafter.so"})
            assert facts.data_naming(names, path) == {"libbefore.so", "libafter.so"}

    def test_what_only_looks_like_device_code_is_searched(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """A container that would be larger than its segment is none."""
        claim = container(b"")[:8] + (1 << 60).to_bytes(8, "little")
        assert self.found(tmp_path, facts, data=claim + b"\0libx.so.1\0")
        assert self.found(tmp_path, facts, data=b"\0libx.so.1\0" + container(b"")[:8])

    @pytest.mark.parametrize(
        ("first", "last", "stands"),
        [("text", "end", False), ("end", "text", True), ("text", "read-only", True), ("text", None, True)],
    )
    def test_code_is_passed_over(
        self, tmp_path: Path, facts: DiskEvidence, first: str, last: str | None, stands: bool
    ) -> None:
        """What lies between DT_INIT and DT_FINI of one segment is code; without both of them it may be anything."""
        options: dict[str, Any] = {"text_data": b"\0libx.so.1\0" + bytes(50)}
        places = {"read-only": BASE, "text": 0, "end": 0}
        plain = elf_bytes(**options)
        for index in range(3):
            kind, flags, _, address, _, size = struct.unpack_from("<IIQQQQ", plain, 64 + 56 * index)
            if (kind, flags) == (1, 5):
                places |= {"text": address, "end": address + size - 1}
        tags = ((DT_INIT, places[first]),) + (() if last is None else ((DT_FINI, places[last]),))
        data = elf_bytes(**options, extra_dynamic=tags)
        assert (facts.data_naming(frozenset({"libx.so.1"}), put(tmp_path, data)) == {"libx.so.1"}) == stands

    def test_static_programs_have_data_too(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """There is no string table to leave out."""
        assert self.found(tmp_path, facts, is_dynamic=False, elf_type=ET_EXEC, data=b"\0libx.so.1\0")

    def test_what_cannot_be_read_names_nothing(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """Neither other files nor broken ones are searched."""
        for number, data in enumerate([b"\0libx.so.1\0", b"\x7fELF libx.so.1\0", elf_bytes(data=b"libx.so.1\0")[:-9]]):
            assert not facts.data_naming(frozenset({"libx.so.1"}), put(tmp_path, data, f"{number}.so"))
        assert not facts.data_naming(frozenset({"libx.so.1"}), str(tmp_path / "missing"))


def container(code: bytes) -> bytes:
    """Return CUDA device code as compilers pack it: magic, version, size of the header, size of what follows."""
    head = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(code))
    return head + code + bytes(-len(code) % 8)


class TestSymbols:
    """Dynamic symbols and versions."""

    @pytest.mark.parametrize(("bits", "little_endian", "machine"), CLASSES)
    @pytest.mark.parametrize("hash_style", ["sysv", "gnu", "none"])
    def test_symbols_and_versions(
        self, tmp_path: Path, facts: DiskEvidence, bits: int, little_endian: bool, machine: int, hash_style: str
    ) -> None:
        """Defined symbols are exported, weak ones too; undefined ones count when they are not weak; so do versions."""
        write_elf(
            tmp_path / "libx.so",
            bits=bits,
            little_endian=little_endian,
            machine=machine,
            hash_style=hash_style,
            soname="libx.so.1",
            exports=("plain", "versioned@X_2"),
            weak_exports=("weak",),
            imports=("needed", "bound@A_1"),
            weak_imports=("optional",),
            versions_defined=("X_1", "X_2"),
            versions_needed={"liba.so.1": ("A_1", "A_2?"), "libb.so": ("B_1", "B_2")},
        )
        assert facts.symbols(str(tmp_path / "libx.so")) == SymbolTable(
            exported=frozenset({"plain", "versioned", "weak"}),
            undefined=frozenset({"needed", "bound"}),
            versions_defined=frozenset({"X_1", "X_2"}),
            versions_needed=(("liba.so.1", frozenset({"A_1"})), ("libb.so", frozenset({"B_1", "B_2"}))),
            exported_versions=frozenset({"versioned@X_2"}),
            undefined_versions=frozenset({"bound@A_1"}),
        )

    def test_undefined_symbols_without_any_defined_one(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """A GNU hash table knows defined symbols only; where there are none, undefined ones are found all the same."""
        path = put(tmp_path, elf_bytes(imports=("a", "b", "c"), hash_style="gnu"))
        table = facts.symbols(path)
        assert table is not None
        assert (table.exported, table.undefined) == (frozenset(), frozenset({"a", "b", "c"}))

    def test_hidden_symbols_are_not_exported(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """Nobody else can bind to a hidden or local symbol; a unique one (C++ statics) binds as a global one."""
        data = elf_bytes(exports=("visible", "hidden", "protected", "local", "unique"))
        start = dynamic_value(data, DT_SYMTAB) - BASE
        data = change(data, start + 2 * 24 + 5, b"\2")
        data = change(data, start + 3 * 24 + 5, b"\3")
        data = change(data, start + 4 * 24 + 4, b"\x02")
        data = change(data, start + 5 * 24 + 4, b"\xa1")
        table = facts.symbols(put(tmp_path, data))
        assert table is not None
        assert table.exported == {"visible", "protected", "unique"}

    def test_files_without_symbols(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """A library may have no symbols; a static program has no table, and other files none either."""
        empty = SymbolTable(
            exported=frozenset(), undefined=frozenset(), versions_defined=frozenset(), versions_needed=()
        )
        assert facts.symbols(put(tmp_path, elf_bytes(), "a.so")) == empty
        assert facts.symbols(put(tmp_path, elf_bytes(elf_type=ET_EXEC, is_dynamic=False), "b.so")) is None
        assert facts.symbols(put(tmp_path, b"text", "c.so")) is None
        assert facts.symbols(put(tmp_path, b"\x7fELF", "d.so")) is None
        assert facts.symbols(str(tmp_path / "missing.so")) is None

    @pytest.mark.parametrize("tag", [DT_SYMTAB, DT_HASH, DT_VERDEF, DT_VERNEED])
    def test_tables_that_are_nowhere_are_empty(self, tmp_path: Path, facts: DiskEvidence, tag: int) -> None:
        """A table whose address is in no segment holds nothing; the others are read."""
        data = elf_bytes(exports=("f@X_1",), versions_defined=("X_1",), versions_needed={"a": ("A_1",)}, imports=("i",))
        table = facts.symbols(put(tmp_path, set_dynamic_value(data, tag, 1 << 40)))
        assert table is not None
        assert bool(table.versions_defined) == (tag != DT_VERDEF)
        assert bool(table.versions_needed) == (tag != DT_VERNEED)
        assert bool(table.exported) == (tag != DT_SYMTAB)

    def test_crafted_tables_are_refused(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """Tables that lead out of the file, have no end, or name nothing: no symbols are better than wrong ones."""
        gnu = elf_bytes(exports=("f", "g"), hash_style="gnu")
        start = dynamic_value(gnu, DT_GNU_HASH) - BASE
        versioned = elf_bytes(
            exports=("f@X_1",), versions_defined=("X_1",), versions_needed={"a": ("A_1", "A_2")}, data=bytes(4096)
        )
        need = dynamic_value(versioned, DT_VERNEED) - BASE
        crafted = {
            "buckets beyond the segment": change(gnu, start, struct.pack("<I", 0xFFFFFFFF)),
            "filter beyond the segment": change(gnu, start + 8, struct.pack("<I", 0xFFFFFFFF)),
            "chain without end": change(gnu, start + 16 + 8, struct.pack("<I", 0x0FFFFFFF)),
            "names beyond the string table": set_dynamic_value(gnu, DT_STRSZ, 1),
            "auxiliary entries beyond the file": change(versioned, need + 8, struct.pack("<I", 0xFFFFFF00)),
        }
        for name, data in crafted.items():
            assert facts.symbols(put(tmp_path, data, f"{name}.so")) is None, name

    @pytest.mark.parametrize("header", [(1, 0xFFFF, 4, 16, 0), (1, 0, 4, 16, 4)])
    def test_version_tables_are_bounded(
        self, tmp_path: Path, facts: DiskEvidence, header: tuple[int, int, int, int, int]
    ) -> None:
        """Thousands of entries, four bytes apart, are no version table: such a file has no symbols for us."""
        # Every word says "the next one starts four bytes on".
        table = struct.pack("<HHIII", *header) + b"\4\0\0\0" * 10_000
        tags = [(DT_VERNEED, 0), (0x6FFFFFFF, 0x7FFFFFFF)]
        start = elf_bytes(data=table, extra_dynamic=tuple(tags)).index(table)
        tags[0] = (DT_VERNEED, BASE + start)
        assert facts.symbols(put(tmp_path, elf_bytes(data=table, extra_dynamic=tuple(tags)))) is None

    def test_symbol_tables_are_bounded(
        self, tmp_path: Path, facts: DiskEvidence, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file with more symbols than any real one, or with longer names, has none for us."""
        path = put(tmp_path, elf_bytes(exports=("first", "second")))
        monkeypatch.setattr(elf_symbols, "_SYMBOLS_LIMIT", 2)
        assert facts.symbols(path) is None
        monkeypatch.setattr(elf_symbols, "_SYMBOLS_LIMIT", 3)
        monkeypatch.setattr(elf_symbols, "_NAMES_LIMIT", 4)
        assert DiskEvidence(DiskFileSystem()).symbols(path) is None
        monkeypatch.setattr(elf_symbols, "_NAMES_LIMIT", 5)
        assert DiskEvidence(DiskFileSystem()).symbols(path) is not None

    def test_agrees_with_pyelftools(self, facts: DiskEvidence) -> None:
        """Over extension modules and system libraries of this machine, both find the same symbols."""
        modules = sorted(glob.glob(os.path.join(sysconfig.get_path("platstdlib"), "lib-dynload", "*.so")))
        system = glob.glob("/usr/lib/*-linux-gnu*/lib[zm].so.[0-9]")
        compared = 0
        for path in modules[:25] + system:
            table = facts.symbols(path)
            assert table is not None
            with open(path, "rb") as stream:
                dynamic = next(item for item in ELFFile(stream).iter_segments() if isinstance(item, DynamicSegment))
                symbols = list(dynamic.iter_symbols())
            defined = {item.name for item in symbols if item["st_shndx"] != "SHN_UNDEF" and item.name}
            undefined = {item.name for item in symbols if item["st_shndx"] == "SHN_UNDEF"}
            strong = {item.name for item in symbols if item["st_info"]["bind"] == "STB_GLOBAL"}
            assert table.exported == defined, path
            assert table.undefined == undefined & strong, path
            compared += 1
        assert compared > 0


def dynamic_value(data: bytes, tag: int) -> int:
    """Return the value of a dynamic entry of a 64-bit little-endian file."""
    (value,) = struct.unpack_from("<Q", data, data.index(struct.pack("<q", tag), dynamic_start(data)) + 8)
    assert isinstance(value, int)
    return value


def dynamic_start(data: bytes) -> int:
    """Return the offset of PT_DYNAMIC."""
    for index in range(8):
        kind, _, offset = struct.unpack_from("<IIQ", data, 64 + 56 * index)
        if kind == 2:
            return int(offset)
    raise AssertionError("not dynamic")


def set_dynamic_value(data: bytes, tag: int, value: int) -> bytes:
    """Overwrite the value of a dynamic entry."""
    place = data.index(struct.pack("<q", tag), dynamic_start(data)) + 8
    return change(data, place, struct.pack("<Q", value))


def change(data: bytes, offset: int, part: bytes) -> bytes:
    """Overwrite bytes."""
    return data[:offset] + part + data[offset + len(part) :]


class TestDlopenNotes:
    """``.note.dlopen`` (UAPI.12)."""

    def notes(self, tmp_path: Path, facts: DiskEvidence, *texts: bytes, **options: Any) -> tuple[DlopenNote, ...]:
        """Return what is read of a file with these note texts."""
        notes = tuple(Note("FDO", 0x407C0C0A, text) for text in texts)
        return facts.dlopen_notes(put(tmp_path, elf_bytes(notes=notes, **options)))

    @pytest.mark.parametrize(("bits", "little_endian", "machine"), CLASSES)
    def test_entries_in_order(
        self, tmp_path: Path, facts: DiskEvidence, bits: int, little_endian: bool, machine: int
    ) -> None:
        """One note may hold several entries, one file several notes; NUL may end the text."""
        first = [
            {
                "feature": "bpf",
                "description": "filters",
                "priority": "suggested",
                "soname": ["libbpf.so.1", "libbpf.so.0"],
            },
            {"soname": ["liba.so"]},
        ]
        second = [{"priority": "required", "soname": ["libb.so"]}]
        found = self.notes(
            tmp_path,
            facts,
            json.dumps(first).encode() + b"\0",
            json.dumps(second).encode(),
            bits=bits,
            little_endian=little_endian,
            machine=machine,
        )
        assert found == (
            DlopenNote(
                sonames=("libbpf.so.1", "libbpf.so.0"), priority="suggested", feature="bpf", description="filters"
            ),
            DlopenNote(sonames=("liba.so",), priority="recommended"),
            DlopenNote(sonames=("libb.so",), priority="required"),
        )

    @pytest.mark.parametrize(
        "text",
        [
            b"",
            b"not json",
            b"\xff\xfe",
            b"{}",
            b"[1]",
            b"[" * 100_000,
            b'[{"soname": []}]',
            b'[{"soname": [1]}]',
            b'[{"priority": "required"}]',
        ],
    )
    def test_texts_that_say_nothing(self, tmp_path: Path, facts: DiskEvidence, text: bytes) -> None:
        """What does not follow the specification names no library; the notes after it are read."""
        found = self.notes(tmp_path, facts, text, b'[{"soname": "libx.so", "priority": "urgent", "feature": 1}]')
        expected = (DlopenNote(sonames=("libx.so",), priority="recommended"),)
        assert found == (expected if len(text) < 60_000 else ())

    def test_other_notes_are_passed_over(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """Owner and type must both fit."""
        text = b'[{"soname": ["libx.so"]}]'
        notes = (Note("GNU", 0x407C0C0A, text), Note("FDO", 0xCAFE1A7E, text), Note("GNU", 3, b"12345"))
        assert facts.dlopen_notes(put(tmp_path, elf_bytes(notes=notes))) == ()

    def test_files_without_notes(self, tmp_path: Path, facts: DiskEvidence) -> None:
        """Other files have none."""
        assert facts.dlopen_notes(put(tmp_path, elf_bytes(), "a.so")) == ()
        assert facts.dlopen_notes(put(tmp_path, b"text", "b.so")) == ()
        assert facts.dlopen_notes(put(tmp_path, b"\x7fELF", "c.so")) == ()
        assert facts.dlopen_notes(str(tmp_path / "missing")) == ()


def test_evidence_of_a_mounted_tree(tmp_path: Path) -> None:
    """Links are followed inside the tree, and paths that lead nowhere there answer with nothing."""
    write_elf(tmp_path / "opt/libx.so.1", exports=("f",), data=b"\0liby.so\0")
    (tmp_path / "libx.so").symlink_to("/opt/libx.so.1")
    facts = DiskEvidence(DiskFileSystem(str(tmp_path)))
    table = facts.symbols("/libx.so")
    assert table is not None
    assert table.exported == {"f"}
    assert facts.size("/libx.so") == (tmp_path / "opt/libx.so.1").stat().st_size
    assert facts.data_naming(frozenset({"liby.so"}), "/libx.so") == {"liby.so"}
    assert facts.sources_naming(frozenset({"liby.so"}), ["/libx.so"]) == {"liby.so": ("/libx.so",)}
    assert facts.symbols("/missing") is None
    assert facts.size("/missing") is None
    assert facts.digest("/missing", "sha256") is None
    assert facts.dlopen_notes("/missing") == ()
    assert facts.data_naming(frozenset({"liby.so"}), "/missing") == frozenset()
