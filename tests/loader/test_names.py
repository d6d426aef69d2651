"""What a needed name can be, and what is loaded already."""

import os

import pytest

from safe_uninstall.model.linkage import How
from safe_uninstall.scan.system import read_system_libraries
from tests.loader.harness import Workshop, assert_agree, make_loader, names, read_object
from tests.support.tracing import dynamic_loader

pytestmark = pytest.mark.loader


def test_loaded_object_is_reused_by_soname(workshop: Workshop) -> None:
    """A need that equals the soname of a loaded object is met by it, whatever its file is called."""
    workshop.build("a/other-name.so", soname="libx.so.1")
    workshop.build("a/liby.so", needs=["libx.so.1"])
    root = workshop.build("root.so", needs=["other-name.so", "liby.so"], rpath="$ORIGIN/a")
    # The linker would write the soname; the stub gives the file's name instead.
    loads = assert_agree(root)
    assert names(loads) == {"other-name.so": "a", "liby.so": "a"}
    assert not loads.missing


def test_object_without_soname_is_not_met_by_another_name(workshop: Workshop) -> None:
    """Without DT_SONAME an object answers only to the name it was asked for by."""
    workshop.build("a/x1.so", soname=None)
    workshop.build("a/liby.so", needs=["x2.so"])
    root = workshop.build("root.so", needs=["x1.so", "liby.so"], rpath="$ORIGIN/a")
    assert assert_agree(root).missing == {"x2.so"}


def test_file_found_under_two_names_is_loaded_once(workshop: Workshop) -> None:
    """Files are told apart by device and inode: a symbolic or hard link to a loaded file is that file."""
    target = workshop.build("a/libx.so", soname=None)
    os.symlink("libx.so", target.parent / "libx-link.so")
    os.link(target, target.parent / "libx-hard.so")
    root = workshop.build("root.so", needs=["libx.so", "libx-link.so", "libx-hard.so"], rpath="$ORIGIN/a")
    assert len(assert_agree(root).found) == 1


def test_absolute_need_is_opened_as_it_stands(workshop: Workshop) -> None:
    """A name with a slash is a path; no search takes place."""
    target = workshop.build("a/libx.so")
    root = workshop.build("root.so", needs=[str(target)])
    assert names(assert_agree(root)) == {"libx.so": "a"}


def test_absolute_need_expands_origin(workshop: Workshop) -> None:
    """``$ORIGIN`` expands in a name with a slash too."""
    workshop.build("a/libx.so")
    root = workshop.build("root.so", needs=["$ORIGIN/a/libx.so"])
    assert names(assert_agree(root)) == {"libx.so": "a"}


def test_absolute_need_that_is_gone_is_missing(workshop: Workshop) -> None:
    """A path that leads nowhere is not searched for elsewhere."""
    workshop.build("a/libx.so")
    root = workshop.build("root.so", needs=["/nowhere/libx.so"], rpath="$ORIGIN/a")
    assert assert_agree(root).missing == {"/nowhere/libx.so"}


def test_tokens_expand_in_a_need_without_a_slash(workshop: Workshop) -> None:
    """``$PLATFORM`` in a name: the expanded name is searched for, and is what others may ask for."""
    root = workshop.build("root.so", needs=["lib-$PLATFORM.so", "libgone-${PLATFORM}.so"], rpath="$ORIGIN/a")
    item = read_object(root)
    platform = read_system_libraries([item.abi]).platform[item.abi]
    workshop.build(f"a/lib-{platform}.so", soname=None, needs=[f"lib-{platform}.so", "lib-$PLATFORM.so"])
    loads = assert_agree(root)
    assert len(loads.found) == 1
    assert loads.missing == {f"libgone-{platform}.so"}


def test_root_is_met_by_its_own_soname(workshop: Workshop) -> None:
    """A need of the main program's soname is met by the main program, whatever lies on the path."""
    workshop.build("a/libroot.so.1")
    workshop.build("a/libx.so", needs=["libroot.so.1"])
    root = workshop.build("root.so", soname="libroot.so.1", needs=["libx.so"], rpath="$ORIGIN/a")
    assert names(assert_agree(root)) == {"libx.so": "a"}


def test_first_of_two_objects_of_one_soname_is_reused(workshop: Workshop) -> None:
    """Two files may bear one soname; a later need of it gets the one that was loaded first."""
    workshop.build("a/one.so", soname="libx.so.1")
    workshop.build("a/two.so", soname="libx.so.1")
    workshop.build("a/liby.so", needs=["libx.so.1"])
    root = workshop.build("root.so", needs=["two.so", "one.so", "liby.so"], rpath="$ORIGIN/a")
    assert [os.path.basename(path) for path in assert_agree(root).found] == ["two.so", "one.so", "liby.so"]


def test_missing_name_is_searched_for_again(workshop: Workshop) -> None:
    """What one object cannot find, the next may: its own search path counts."""
    workshop.build("b/libx.so")
    workshop.build("a/libone.so", needs=["libx.so"])
    workshop.build("a/libtwo.so", needs=["libx.so"], rpath="$ORIGIN/../b")
    root = workshop.build("root.so", needs=["libone.so", "libtwo.so"], runpath="$ORIGIN/a")
    loads = assert_agree(root)
    assert loads.missing == {"libx.so"}
    assert names(loads)["libx.so"] == "b"


def test_need_of_the_loader_itself(workshop: Workshop) -> None:
    """The dynamic loader is in every process already."""
    root = workshop.build("root.so", needs=[os.path.basename(dynamic_loader()), "libm.so.6"])
    assert not assert_agree(root).missing


def test_load_order_is_breadth_first(workshop: Workshop) -> None:
    """All needs of the root come before the needs of the first of them."""
    workshop.build("libd.so")
    workshop.build("libc1.so", needs=["libd.so"])
    workshop.build("liba.so", needs=["libc1.so"])
    workshop.build("libb.so", needs=["libd.so"])
    root = workshop.build("root.so", needs=["liba.so", "libb.so"], rpath="$ORIGIN")
    assert [os.path.basename(path) for path in assert_agree(root).found] == [
        "liba.so",
        "libb.so",
        "libc1.so",
        "libd.so",
    ]


def test_cycles_end(workshop: Workshop) -> None:
    """Objects that need each other, or themselves, are loaded once."""
    workshop.build("liba.so", needs=["libb.so"], rpath="$ORIGIN")
    workshop.build("libb.so", needs=["liba.so", "libb.so"], rpath="$ORIGIN")
    root = workshop.build("root.so", needs=["liba.so"], rpath="$ORIGIN")
    assert len(assert_agree(root).found) == 2


def test_bindings_say_how_each_need_was_met(workshop: Workshop) -> None:
    """Every binding remembers the step of the search, the entry that led there and what was tried before."""
    workshop.build("a/libx.so")
    root = workshop.build(
        "root.so", needs=["libx.so", "libm.so.6", "gone.so"], rpath="$ORIGIN/none:$ORIGIN/b:$ORIGIN/a"
    )
    (workshop.root / "b").mkdir()
    item = read_object(root)
    found, host, gone = make_loader(item).bindings(item)
    assert (found.how, found.via, found.provider) == (How.RPATH, "$ORIGIN/a", str(workshop.root / "a/libx.so"))
    assert found.searched == (str(workshop.root / "b"),)
    assert host.how is How.CACHE
    assert host.searched == (str(workshop.root / "b"), str(workshop.root / "a"))
    assert (gone.how, gone.provider) == (How.MISSING, None)
    assert "ld.so.cache" in gone.searched
