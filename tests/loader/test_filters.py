"""DT_FILTER and DT_AUXILIARY: what an object filters is loaded with it, and before it."""

import os
import subprocess
import sys

import pytest

from tests.loader.harness import Loads, Workshop, assert_agree, make_loader, read_object

pytestmark = pytest.mark.loader

FILTER, AUXILIARY = "-Wl,-F,", "-Wl,-f,"
both = pytest.mark.parametrize("kind", [FILTER, AUXILIARY])


def order(loads: Loads) -> list[str]:
    """Return the file names in load order."""
    return [os.path.basename(path) for path in loads.found]


@both
def test_filtered_file_comes_before_the_object(workshop: Workshop, kind: str) -> None:
    """It is searched for by the object's own path, and placed before it; its needs come first as well."""
    for name in ("libdeep.so", "libother.so"):
        workshop.build(name)
    workshop.build("a/libreal.so", needs=["libdeep.so"])
    workshop.build("libx.so", needs=["libother.so"], rpath="$ORIGIN/a", options=[f"{kind}libreal.so"])
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN")
    assert order(assert_agree(root)) == ["libreal.so", "libx.so", "libother.so", "libdeep.so"]


@both
def test_filtered_by_the_root(workshop: Workshop, kind: str) -> None:
    """What the main program filters stands before it, where names are not looked for: others load it anew."""
    workshop.build("libdeep.so")
    workshop.build("libreal.so", needs=["libdeep.so"])
    workshop.build("libx.so", needs=["libreal.so"])
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN", options=[f"{kind}libreal.so"])
    assert order(assert_agree(root)) == ["libx.so", "libdeep.so", "libreal.so"]


@both
def test_filtered_file_that_is_loaded_later_moves_up(workshop: Workshop, kind: str) -> None:
    """Loaded already, but behind the object: it is moved before it."""
    workshop.build("libreal.so")
    workshop.build("libx.so", options=[f"{kind}libreal.so"])
    root = workshop.build("root.so", needs=["libx.so", "libreal.so"], rpath="$ORIGIN")
    assert order(assert_agree(root)) == ["libreal.so", "libx.so"]


@both
def test_filtered_file_that_is_loaded_earlier_stays(workshop: Workshop, kind: str) -> None:
    """Loaded already, and before the object: it stays where it is."""
    workshop.build("libreal.so")
    workshop.build("libx.so", options=[f"{kind}libreal.so"])
    workshop.build("liby.so")
    root = workshop.build("root.so", needs=["libreal.so", "liby.so", "libx.so"], rpath="$ORIGIN")
    assert order(assert_agree(root)) == ["libreal.so", "liby.so", "libx.so"]


def test_several_and_nested(workshop: Workshop) -> None:
    """In the order of the dynamic segment, each before the object, and filters of what is filtered before that."""
    workshop.build("libinner.so")
    workshop.build("libone.so", options=[f"{AUXILIARY}libinner.so"])
    workshop.build("libtwo.so")
    workshop.build("libx.so", options=[f"{AUXILIARY}libone.so", f"{AUXILIARY}libtwo.so"])
    root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN")
    assert order(assert_agree(root)) == ["libinner.so", "libone.so", "libtwo.so", "libx.so"]


def test_missing_filtered_file(workshop: Workshop) -> None:
    """DT_FILTER is a need like any other; without what DT_AUXILIARY names the object serves alone."""
    for kind, is_lost in ((FILTER, True), (AUXILIARY, False)):
        library = workshop.build("libx.so", options=[f"{kind}libgone.so"])
        root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN")
        assert order(assert_agree(root)) == ["libx.so"]
        item = read_object(root)
        missing = [need.name for need in make_loader(item).trace(item).needs if need.provider is None]
        assert missing == (["libgone.so"] if is_lost else [])
        # The trace of the host's loader calls both "not found"; only a load tells them apart.
        command = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(library)!r})"]
        assert (subprocess.run(command, capture_output=True, check=False).returncode != 0) is is_lost


def test_missing_file_that_the_root_filters(workshop: Workshop) -> None:
    """The search for it takes place, whether it matters or not."""
    workshop.build("libx.so")
    for kind in (FILTER, AUXILIARY):
        root = workshop.build("root.so", needs=["libx.so"], rpath="$ORIGIN", options=[f"{kind}libgone.so"])
        assert order(assert_agree(root)) == ["libx.so"]
