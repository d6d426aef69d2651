"""What a needed name can be, and what is loaded already."""

import os

import pytest

from safe_uninstall.model.linkage import How
from tests.loader.harness import Workshop, assert_agree, make_loader, names, read_object

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
