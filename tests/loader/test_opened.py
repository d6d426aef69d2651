"""What ``dlopen`` gets by a bare name, called by an object of a running interpreter: ours against the real loader's."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from safe_uninstall.analysis.loader import Loader
from safe_uninstall.analysis.paths import View
from safe_uninstall.scan.disk import DiskFileSystem
from safe_uninstall.scan.system import read_system_libraries
from tests.loader.harness import Workshop, read_object

pytestmark = pytest.mark.loader

_CALLER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>

const char *opened(const char *name)
{
    struct link_map *map;
    void *handle = dlopen(name, RTLD_LAZY);
    if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map))
        return "";
    return map->l_name;
}
"""
_SCRIPT = """
import ctypes, sys
root, caller, name = sys.argv[1:]
ctypes.CDLL(root)
function = ctypes.CDLL(caller).opened
function.restype = ctypes.c_char_p
print(function(name.encode()).decode())
"""
_BY_PYTHON = """
import ctypes, sys
try:
    print(ctypes.CDLL(sys.argv[1])._name)
except OSError:
    print()
"""


def run(script: str, *words: Path | str) -> str:
    """Run a script and return what it prints."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("LD_")}
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)], env=variables, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def loader() -> Loader:
    """Return our loader for what this interpreter opens."""
    main = read_object(Path(os.path.realpath(sys.executable)))
    return Loader(View(DiskFileSystem()), read_system_libraries([main.abi]), main=main)


def assert_agree(root: Path, caller: Path, name: str) -> str | None:
    """Assert that both get the same file when ``caller``, brought in by ``root``, opens ``name``; return its name."""
    ours = loader()
    trace = ours.trace(read_object(root))
    item = next(item for item in trace.objects if item.real_path == os.path.realpath(caller))
    found = ours.opened(trace, item, name)
    real = run(_SCRIPT, root, caller, name)
    assert ("" if found is None else os.path.realpath(found)) == ("" if not real else os.path.realpath(real))
    return None if found is None else os.path.relpath(os.path.realpath(found), os.path.realpath(root.parent))


def build_caller(workshop: Workshop, path: str, *, rpath: str | None = None, runpath: str | None = None) -> Path:
    """Build a library that opens others by name."""
    return workshop.build(path, source=_CALLER, libc=True, options=["-ldl"], rpath=rpath, runpath=runpath)


@pytest.mark.parametrize(("rpath", "runpath"), [("$ORIGIN/a", None), (None, "$ORIGIN/a")])
def test_by_its_own_search_path(workshop: Workshop, rpath: str | None, runpath: str | None) -> None:
    """DT_RPATH and DT_RUNPATH of the caller are searched alike; a name that is nowhere there is not found."""
    workshop.build("a/libplugin.so")
    caller = build_caller(workshop, "libcaller.so", rpath=rpath, runpath=runpath)
    assert assert_agree(caller, caller, "libplugin.so") == "a/libplugin.so"
    assert assert_agree(caller, caller, "libabsent.so") is None


def test_without_a_search_path_only_the_system(workshop: Workshop) -> None:
    """What lies beside the caller is not found; what the cache knows is."""
    workshop.build("libplugin.so")
    caller = build_caller(workshop, "libcaller.so")
    assert assert_agree(caller, caller, "libplugin.so") is None
    assert assert_agree(caller, caller, "libc.so.6") is not None


@pytest.mark.parametrize(
    ("rpath", "runpath", "found"), [("$ORIGIN/a", None, "a/libplugin.so"), (None, "$ORIGIN/a", None)]
)
def test_by_the_search_path_of_what_loads_it(
    workshop: Workshop, rpath: str | None, runpath: str | None, found: str | None
) -> None:
    """DT_RPATH is inherited by the caller, DT_RUNPATH is not."""
    workshop.build("a/libplugin.so")
    caller = build_caller(workshop, "a/libcaller.so")
    root = workshop.build("root.so", needs=["libcaller.so"], rpath=rpath, runpath=runpath)
    assert assert_agree(root, caller, "libplugin.so") == found


def test_what_is_loaded_already_by_its_soname(workshop: Workshop) -> None:
    """No search leads to it, but the caller's own closure holds an object of that soname."""
    workshop.build("a/libinner-1a2b.so", soname="libinner.so.1")
    caller = build_caller(workshop, "libcaller.so")
    root = workshop.build("root.so", needs=["libinner-1a2b.so", "libcaller.so"], rpath="$ORIGIN/a:$ORIGIN")
    assert assert_agree(root, caller, "libinner.so.1") == "a/libinner-1a2b.so"


def test_what_is_loaded_already_by_the_name_it_was_needed_by(workshop: Workshop) -> None:
    """Without a soname an object is known by the name that led to it."""
    workshop.build("a/inner.so", soname=None)
    caller = build_caller(workshop, "libcaller.so")
    root = workshop.build("root.so", needs=["inner.so", "libcaller.so"], rpath="$ORIGIN/a:$ORIGIN")
    assert assert_agree(root, caller, "inner.so") == "a/inner.so"


def test_what_the_interpreter_has_loaded(workshop: Workshop) -> None:
    """Its own libraries are there for whatever it opens."""
    caller = build_caller(workshop, "libcaller.so")
    main = read_object(Path(os.path.realpath(sys.executable)))
    for name in main.needed:
        assert assert_agree(caller, caller, name) is not None


def test_python_itself(workshop: Workshop) -> None:
    """``ctypes.CDLL`` with a bare name finds what the system has, and nothing beside the script."""
    workshop.build("libplugin.so")
    assert ctypes.CDLL("libc.so.6")
    for name, there in (("libc.so.6", True), ("libplugin.so", False), ("libabsent.so", False)):
        assert bool(run(_BY_PYTHON, name)) is there
        assert (loader().opened_by_python(name) is not None) is there
