"""The files that other tests write are real: the host's dynamic loader takes them."""

import ctypes
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.elf_writer import DT_FLAGS_1, ET_DYN, ET_EXEC, write_elf

LOADER = "/lib64/ld-linux-x86-64.so.2"

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or not os.path.exists(LOADER), reason="needs glibc on x86-64"
)


@pytest.mark.parametrize("hash_style", ["sysv", "gnu"])
def test_library_loads_and_its_symbols_bind(tmp_path: Path, hash_style: str) -> None:
    """A library with a needed, versioned neighbour loads by ctypes, and its exported function returns 0."""
    write_elf(
        tmp_path / "libb.so.1",
        soname="libb.so.1",
        exports=("plain", "versioned@B_2"),
        versions_defined=("B_1", "B_2"),
        hash_style=hash_style,
    )
    write_elf(
        tmp_path / "liba.so",
        needed=("libb.so.1", "libc.so.6"),
        runpath="$ORIGIN",
        imports=("plain", "versioned@B_2", "malloc@GLIBC_2.2.5"),
        weak_imports=("nowhere",),
        versions_needed={"libb.so.1": ("B_2", "B_9?"), "libc.so.6": ("GLIBC_2.2.5",)},
        exports=("answer",),
        data=b"constant",
        hash_style=hash_style,
    )
    assert ctypes.CDLL(str(tmp_path / "liba.so")).answer() == 0


def test_undefined_symbols_and_versions_are_enforced(tmp_path: Path) -> None:
    """The loader refuses a library whose symbol or version nobody defines: relocations and versions are in earnest."""
    write_elf(tmp_path / "libb.so", soname="libb.so", exports=("f@B_1",), versions_defined=("B_1",))
    write_elf(tmp_path / "symbol.so", needed=("libb.so",), runpath="$ORIGIN", imports=("nowhere",))
    with pytest.raises(OSError, match="undefined symbol: nowhere"):
        ctypes.CDLL(str(tmp_path / "symbol.so"))
    write_elf(
        tmp_path / "version.so",
        needed=("libb.so",),
        runpath="$ORIGIN",
        imports=("f@B_2",),
        versions_needed={"libb.so": ("B_2",)},
    )
    with pytest.raises(OSError, match="version `B_2' not found"):
        ctypes.CDLL(str(tmp_path / "version.so"))


@pytest.mark.parametrize(("elf_type", "flags_1"), [(ET_EXEC, 0), (ET_DYN, 0x08000000)])
def test_program_runs_and_can_be_traced(tmp_path: Path, elf_type: int, flags_1: int) -> None:
    """A program exits with 0, and LD_TRACE_LOADED_OBJECTS shows where its library comes from."""
    write_elf(tmp_path / "lib/libb.so", soname="libb.so")
    program = tmp_path / "program"
    write_elf(program, elf_type=elf_type, flags_1=flags_1, interpreter=LOADER, needed=("libb.so",), rpath="$ORIGIN/lib")
    assert subprocess.run([program], check=False).returncode == 0
    traced = subprocess.run(
        [LOADER, program], env={"LD_TRACE_LOADED_OBJECTS": "1"}, capture_output=True, text=True, check=True
    )
    assert f"libb.so => {tmp_path}/lib/libb.so" in traced.stdout


def test_library_without_anything_loads(tmp_path: Path) -> None:
    """The smallest file is valid too."""
    write_elf(tmp_path / "lib.so")
    code = f"import ctypes; ctypes.CDLL({str(tmp_path / 'lib.so')!r})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_further_dynamic_entries_reach_the_loader(tmp_path: Path) -> None:
    """A second DT_FLAGS_1 (DF_1_NOOPEN) is the one that counts: the loader refuses to dlopen the library."""
    write_elf(tmp_path / "lib.so", flags_1=1, extra_dynamic=((DT_FLAGS_1, 0x40),))
    with pytest.raises(OSError, match="cannot be dlopen"):
        ctypes.CDLL(str(tmp_path / "lib.so"))
