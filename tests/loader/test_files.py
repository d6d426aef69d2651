"""Directories, links, tokens, and files that the loader passes over."""

import os
import struct
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.model.elf import Abi
from safe_uninstall.scan.system import read_system_libraries
from tests.loader.harness import Workshop, assert_agree, assert_refused, names
from tests.support.elf_writer import write_elf

pytestmark = pytest.mark.loader


def change_header(path: Path, offset: int, value: bytes) -> None:
    """Overwrite bytes of an ELF header."""
    data = bytearray(path.read_bytes())
    data[offset : offset + len(value)] = value
    path.write_bytes(data)


@pytest.mark.parametrize("token", ["$ORIGIN/a", "${ORIGIN}/a", "$ORIGIN//./a", "$ORIGIN/a/../a"])
def test_origin_is_the_directory_of_the_object(workshop: Workshop, token: str) -> None:
    """``$ORIGIN`` and ``${ORIGIN}`` mean the directory of the object itself."""
    workshop.build("a/libx.so")
    root = workshop.build("root.so", needs=["libx.so"], rpath=token)
    assert names(assert_agree(root)) == {"libx.so": "a"}


def test_token_ends_at_the_end_of_a_word(workshop: Workshop) -> None:
    """``$ORIGINAL`` is no token."""
    workshop.build("a/libx.so")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGINAL/a")
    assert assert_agree(root).missing == {"libx.so"}


@pytest.mark.parametrize("token", ["LIB", "PLATFORM"])
def test_lib_and_platform_expand(workshop: Workshop, token: str) -> None:
    """``$LIB`` and ``$PLATFORM`` expand to what this host's loader was built with."""
    abi = Abi(64, True, struct.unpack_from("<H", Path("/proc/self/exe").read_bytes()[:20], 18)[0])
    system = read_system_libraries([abi])
    value = (system.lib if token == "LIB" else system.platform)[abi]
    workshop.build(f"{value}/libx.so")
    root = workshop.build("root.so", needs=["libx.so"], rpath=f"$ORIGIN/${token}")
    assert len(assert_agree(root).found) == 1


def test_origin_of_a_link_is_the_directory_of_the_link(workshop: Workshop) -> None:
    """A library reached by a symbolic link searches beside the link, not beside the file it leads to."""
    workshop.build("store/libx.so", needs=["liby.so"], rpath="$ORIGIN")
    workshop.build("store/liby.so")
    workshop.build("site/liby.so")
    os.symlink("../store/libx.so", workshop.root / "site/libx.so")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/site")
    assert names(assert_agree(root)) == {"libx.so": "store", "liby.so": "site"}


def test_parent_of_a_linked_directory_is_the_targets_parent(workshop: Workshop) -> None:
    """``..`` after a linked directory leads to the parent of what the link points to (path_resolution(7))."""
    workshop.build("real/inner/libx.so")
    workshop.build("real/liby.so")
    workshop.build("liby.so")
    os.symlink("real/inner", workshop.root / "link")
    root = workshop.build("root.so", needs=["libx.so", "liby.so"], rpath="$ORIGIN/link:$ORIGIN/link/..")
    assert names(assert_agree(root)) == {"libx.so": "inner", "liby.so": "real"}


def test_dangling_link_is_no_file(workshop: Workshop) -> None:
    """A link that leads nowhere is passed over, and the search goes on."""
    workshop.build("b/libx.so")
    (workshop.root / "a").mkdir()
    os.symlink("gone.so", workshop.root / "a/libx.so")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/a:$ORIGIN/b")
    assert names(assert_agree(root)) == {"libx.so": "b"}


def test_links_in_a_circle_end_their_search_path(workshop: Workshop) -> None:
    """Links that lead to each other (ELOOP) end the search path they stand in; the next one is tried."""
    for name in ("b", "c"):
        workshop.build(f"{name}/libx.so")
    (workshop.root / "a").mkdir()
    os.symlink("two.so", workshop.root / "a/libx.so")
    os.symlink("libx.so", workshop.root / "a/two.so")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/a:$ORIGIN/b")
    assert assert_agree(root).missing == {"libx.so"}
    assert names(assert_agree(root, library_path=str(workshop.root / "c"))) == {"libx.so": "c"}


def test_directories_in_a_circle_are_no_directories(workshop: Workshop) -> None:
    """A search path entry that leads through links in a circle is passed over."""
    workshop.build("b/libx.so")
    os.symlink("c2", workshop.root / "c1")
    os.symlink("c1", workshop.root / "c2")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/c1:$ORIGIN/c1/x:$ORIGIN/b")
    assert names(assert_agree(root)) == {"libx.so": "b"}


def test_file_of_another_class_is_passed_over(workshop: Workshop) -> None:
    """A 32-bit file does not satisfy a 64-bit need; the search goes on."""
    (workshop.root / "a").mkdir()
    write_elf(workshop.root / "a/libx.so", bits=32, machine=3)
    workshop.build("b/libx.so")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/a:$ORIGIN/b")
    assert names(assert_agree(root)) == {"libx.so": "b"}


def test_file_of_another_machine_is_passed_over(workshop: Workshop) -> None:
    """A file for another machine does not satisfy a need; the search goes on."""
    change_header(workshop.build("a/libx.so"), 18, struct.pack("<H", 8))
    workshop.build("b/libx.so")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/a:$ORIGIN/b")
    assert names(assert_agree(root)) == {"libx.so": "b"}


@pytest.mark.parametrize("machine", [62, 22])
def test_file_of_another_byte_order_is_passed_over(workshop: Workshop, machine: int) -> None:
    """A big-endian file does not satisfy a little-endian need, whatever its machine; the search goes on."""
    write_elf(workshop.root / "a/libx.so", little_endian=False, machine=machine)
    workshop.build("b/libx.so")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/a:$ORIGIN/b")
    assert names(assert_agree(root)) == {"libx.so": "b"}


def test_hardware_capability_directory_comes_first(workshop: Workshop) -> None:
    """``glibc-hwcaps`` sub-directories that fit the processor win over the directory itself."""
    abi = Abi(64, True, 62)
    capabilities = read_system_libraries([abi]).hwcaps[abi]
    if not capabilities:
        pytest.skip("this processor has none of the x86-64 levels above the first")
    best, least = capabilities[0], "glibc-hwcaps/x86-64-v2"
    workshop.build("a/libx.so")
    workshop.build(f"a/{least}/libx.so")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/a")
    assert names(assert_agree(root)) == {"libx.so": os.path.basename(least)}
    workshop.build(f"a/{best}/libx.so")
    assert names(assert_agree(root)) == {"libx.so": os.path.basename(best)}


def test_unknown_capability_directory_is_ignored(workshop: Workshop) -> None:
    """Only names of ``glibc-hwcaps`` that the loader knows are tried."""
    workshop.build("a/libx.so")
    workshop.build("a/glibc-hwcaps/x86-64-v9/libx.so")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/a")
    assert names(assert_agree(root)) == {"libx.so": "a"}


@pytest.mark.parametrize("kind", ["directory", "text", "empty", "relocatable", "program", "no dynamic"])
@pytest.mark.parametrize("need", ["libx.so", "$ORIGIN/a/libx.so"])
def test_what_is_no_library_ends_the_load(workshop: Workshop, kind: str, need: str) -> None:
    """In place of a library these stop the loader, searched for or not: it does not look further."""
    workshop.build("b/libx.so")
    target = workshop.root / "a/libx.so"
    if kind == "directory":
        target.mkdir(parents=True)
    elif kind in ("text", "empty"):
        target.parent.mkdir()
        target.write_text("INPUT(libreal.so)\n" if kind == "text" else "")
    else:
        changes: dict[str, dict[str, Any]] = {
            "relocatable": {"elf_type": 1},
            "program": {"elf_type": 2},
            "no dynamic": {"is_dynamic": False},
        }
        write_elf(target, **changes[kind])
    assert_refused(workshop.build("root.so", needs=[need], rpath="$ORIGIN/a:$ORIGIN/b"), need)


def test_origin_of_a_root_behind_a_link_is_the_links_directory(workshop: Workshop) -> None:
    """Uv's symlink mode: what is opened is the link in site-packages, and its neighbours are found beside it."""
    workshop.build("store/root.so", needs=["libx.so"], rpath="$ORIGIN/libs")
    workshop.build("store2/libx.so", needs=["liby.so"], runpath="$ORIGIN")
    workshop.build("store3/liby.so")
    (workshop.root / "site/libs").mkdir(parents=True)
    os.symlink("../store/root.so", workshop.root / "site/root.so")
    os.symlink("../../store2/libx.so", workshop.root / "site/libs/libx.so")
    os.symlink(workshop.root / "store3/liby.so", workshop.root / "site/libs/liby.so")
    loads = assert_agree(workshop.root / "site/root.so")
    assert names(loads) == {"libx.so": "store2", "liby.so": "store3"}
    assert assert_agree(workshop.root / "store/root.so").missing == {"libx.so"}


def test_origin_through_a_linked_directory(workshop: Workshop) -> None:
    """A directory on the way that is a link keeps its own name in ``$ORIGIN``, and ``..`` leaves what it leads to."""
    workshop.build("real/deep/libx.so", needs=["liby.so", "libz.so"], rpath="$ORIGIN/../beside:$ORIGIN")
    workshop.build("real/deep/libz.so")
    workshop.build("real/beside/liby.so")
    workshop.build("beside/liby.so")
    os.symlink("real/deep", workshop.root / "link")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/link")
    assert names(assert_agree(root)) == {"libx.so": "deep", "liby.so": "beside", "libz.so": "deep"}
    assert str(workshop.root / "real/beside/liby.so") in assert_agree(root).found


def test_capability_directories_of_older_loaders(workshop: Workshop) -> None:
    """All sub-directories that the host's loader tries, each in its turn, and those of its LD_LIBRARY_PATH as well."""
    abi = Abi(64, True, 62)
    capabilities = read_system_libraries([abi]).hwcaps[abi]
    if not capabilities:
        pytest.skip("no sub-directories are tried for this processor")
    workshop.build("a/libx.so")
    root = workshop.build("root.so", needs=["libx.so"])
    for place in reversed(capabilities):
        workshop.build(f"a/{place}/libx.so")
        loads = assert_agree(root, library_path=str(workshop.root / "a"))
        assert loads.found == (str(workshop.root / "a" / place / "libx.so"),)
