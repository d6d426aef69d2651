"""The order of the search: DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, cache, default directories."""

import pytest

from tests.loader.harness import Workshop, assert_agree, names

pytestmark = pytest.mark.loader


def test_rpath_comes_before_library_path(workshop: Workshop) -> None:
    """DT_RPATH is searched before LD_LIBRARY_PATH."""
    workshop.build("a/libx.so")
    workshop.build("b/libx.so")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/a")
    assert names(assert_agree(root, library_path=str(workshop.root / "b"))) == {"libx.so": "a"}


def test_runpath_comes_after_library_path(workshop: Workshop) -> None:
    """LD_LIBRARY_PATH is searched before DT_RUNPATH."""
    workshop.build("a/libx.so")
    workshop.build("b/libx.so")
    root = workshop.build("root.so", needs=["libx.so"], runpath="$ORIGIN/a")
    assert names(assert_agree(root, library_path=str(workshop.root / "b"))) == {"libx.so": "b"}


def test_library_path_is_split_at_colons_and_semicolons(workshop: Workshop) -> None:
    """LD_LIBRARY_PATH may separate its entries by either sign."""
    workshop.build("a/libx.so")
    workshop.build("b/liby.so")
    root = workshop.build("root.so", needs=["libx.so", "liby.so"])
    path = f"{workshop.root / 'none'}:{workshop.root / 'a'};{workshop.root / 'b'}"
    assert names(assert_agree(root, library_path=path)) == {"libx.so": "a", "liby.so": "b"}


def test_rpath_is_inherited(workshop: Workshop) -> None:
    """A need of an object without RUNPATH is searched along the DT_RPATH of those that led to it."""
    workshop.build("deep/libz.so")
    workshop.build("a/liby.so", needs=["libz.so"])
    workshop.build("a/libx.so", needs=["liby.so"], rpath="$ORIGIN")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/a:$ORIGIN/deep")
    assert names(assert_agree(root)) == {"libx.so": "a", "liby.so": "a", "libz.so": "deep"}


def test_runpath_is_not_inherited(workshop: Workshop) -> None:
    """DT_RUNPATH serves the needs of its own object alone."""
    workshop.build("a/liby.so")
    workshop.build("a/libx.so", needs=["liby.so"])
    root = workshop.build("root.so", needs=["libx.so"], runpath="$ORIGIN/a")
    assert assert_agree(root).missing == {"liby.so"}


def test_object_with_runpath_does_not_look_at_inherited_rpath(workshop: Workshop) -> None:
    """An object that has a DT_RUNPATH is not helped by the DT_RPATH of its loader."""
    workshop.build("a/liby.so")
    workshop.build("a/libx.so", needs=["liby.so"], runpath="$ORIGIN/none")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/a")
    assert assert_agree(root).missing == {"liby.so"}


def test_rpath_passes_through_an_object_with_runpath(workshop: Workshop) -> None:
    """A DT_RUNPATH in the middle of the chain does not stop the DT_RPATH above it from being inherited."""
    workshop.build("a/libz.so")
    workshop.build("b/liby.so", needs=["libz.so"])
    workshop.build("a/libx.so", needs=["liby.so"], runpath="$ORIGIN/../b")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/a")
    assert names(assert_agree(root)) == {"libx.so": "a", "liby.so": "b", "libz.so": "a"}


def test_own_rpath_comes_before_the_loaders(workshop: Workshop) -> None:
    """The nearest DT_RPATH wins."""
    workshop.build("far/liby.so")
    workshop.build("near/liby.so")
    workshop.build("near/libx.so", needs=["liby.so"], rpath="$ORIGIN")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/far:$ORIGIN/near")
    assert names(assert_agree(root))["liby.so"] == "near"


def test_inheritance_follows_the_first_loader(workshop: Workshop) -> None:
    """The chain of an object needed by two others is that of the one that came first in load order."""
    workshop.build("a/libshared.so", needs=["libdeep.so"])
    workshop.build("d1/libdeep.so")
    workshop.build("d2/libdeep.so")
    workshop.build("a/libone.so", needs=["libshared.so"], rpath="$ORIGIN:$ORIGIN/../d1")
    workshop.build("a/libtwo.so", needs=["libshared.so"], rpath="$ORIGIN:$ORIGIN/../d2")
    root = workshop.build("root.so", needs=["libtwo.so", "libone.so"], rpath="$ORIGIN/a")
    assert names(assert_agree(root))["libdeep.so"] == "d2"


def test_cache_and_default_directories_come_last(workshop: Workshop) -> None:
    """A library of the host is found without any path, and a copy on the path wins over it."""
    root = workshop.build("root.so", needs=["libm.so.6"])
    assert_agree(root)
    workshop.build("a/libm.so.6")
    root = workshop.build("root.so", needs=["libm.so.6"], runpath="$ORIGIN/a")
    assert names(assert_agree(root))["libm.so.6"] == "a"


def test_nodeflib_skips_cache_and_default_directories(workshop: Workshop) -> None:
    """DF_1_NODEFLIB: neither the default directories nor the cache's entries in them."""
    root = workshop.build("root.so", needs=["libm.so.6"], options=["-Wl,-z,nodefaultlib"])
    assert assert_agree(root).missing == {"libm.so.6"}


def test_empty_rpath_is_no_rpath(workshop: Workshop) -> None:
    """A wholly empty search path searches nothing, while an empty entry means the working directory."""
    workshop.build("libx.so")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/none:")
    assert names(assert_agree(root, directory=workshop.root)) == {"libx.so": workshop.root.name}


def test_relative_entry_starts_from_the_working_directory(workshop: Workshop) -> None:
    """A relative search path entry is taken from where the process runs."""
    workshop.build("a/libx.so")
    root = workshop.build("root.so", needs=["libx.so"], runpath="a")
    assert names(assert_agree(root, directory=workshop.root)) == {"libx.so": "a"}
    assert assert_agree(root, directory=workshop.root / "a").missing == {"libx.so"}


def test_empty_library_path_entry_is_the_working_directory(workshop: Workshop) -> None:
    """An empty entry of LD_LIBRARY_PATH means the working directory."""
    workshop.build("libx.so")
    root = workshop.build("sub/root.so", needs=["libx.so"])
    assert names(assert_agree(root, directory=workshop.root, library_path="/nowhere:")) == {
        "libx.so": workshop.root.name
    }


def test_empty_runpath_still_hides_rpath(workshop: Workshop) -> None:
    """A DT_RUNPATH that is empty searches nothing, and the object has no DT_RPATH all the same."""
    workshop.build("a/liby.so")
    workshop.build("a/libx.so", needs=["liby.so"], runpath="")
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN/a")
    assert_agree(root)


def test_empty_library_path_is_none(workshop: Workshop) -> None:
    """LD_LIBRARY_PATH that is set and empty is no search path."""
    workshop.build("libx.so")
    root = workshop.build("sub/root.so", needs=["libx.so"])
    assert assert_agree(root, directory=workshop.root, library_path="").missing == {"libx.so"}


def test_library_path_goes_before_inherited_runpath_and_after_inherited_rpath(workshop: Workshop) -> None:
    """The chain of DT_RPATH is searched before LD_LIBRARY_PATH, even for an object that carries none."""
    workshop.build("a/liby.so")
    workshop.build("b/liby.so")
    workshop.build("a/libx.so", needs=["liby.so"])
    by_rpath = workshop.build("one.so", needs=["libx.so"], rpath="$ORIGIN/a")
    assert names(assert_agree(by_rpath, library_path=str(workshop.root / "b")))["liby.so"] == "a"
    by_runpath = workshop.build("two.so", needs=["libx.so"], runpath="$ORIGIN/a")
    assert names(assert_agree(by_runpath, library_path=str(workshop.root / "b")))["liby.so"] == "b"


def test_nodeflib_searches_its_own_path(workshop: Workshop) -> None:
    """DF_1_NODEFLIB takes away the system's directories alone, and from one object alone."""
    workshop.build("a/libx.so", needs=["libm.so.6"])
    workshop.build("a/libdl.so.2")
    options = ["-Wl,-z,nodefaultlib"]
    root = workshop.build(
        "root.so", needs=["libdl.so.2", "librt.so.1", "libx.so"], runpath="$ORIGIN/a", options=options
    )
    loads = assert_agree(root)
    assert loads.missing == {"librt.so.1"}
    assert names(loads)["libdl.so.2"] == "a"
