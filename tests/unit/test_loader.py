"""Loader rules that need neither gcc nor the real loader: the cache, memoised searches, words for bindings.

What the real loader does with real files is compared in ``tests/loader``.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from safe_uninstall.analysis.loader import Loader
from safe_uninstall.analysis.paths import View
from safe_uninstall.model.elf import DF_1_NODEFLIB, Abi, ElfObject, Filter
from safe_uninstall.model.linkage import Binding, How
from safe_uninstall.model.system import CacheEntry, SystemLibraries
from tests.support.fakes import X86_64, Disk, Link, elf, snapshot

I386 = Abi(32, True, 3)
FLAGS = 0x303


def system(*entries: tuple[str, str, int, str | None], **changes: Any) -> SystemLibraries:
    """Return the host's part with a cache of (name, path, flags, hwcap)."""
    cache: dict[str, tuple[CacheEntry, ...]] = {}
    for name, path, flags, hwcap in entries:
        cache[name] = (*cache.get(name, ()), CacheEntry(path, flags, hwcap))
    facts = {
        "cache": cache,
        "hwcaps": {X86_64: ("glibc-hwcaps/x86-64-v2",)},
        "default_directories": {X86_64: ("/lib",)},
    }
    return replace(snapshot().system, **{**facts, **changes})


def disk(*objects: ElfObject, others: Mapping[str, bytes | Link] | None = None) -> Disk:
    """Return a disk with ELF files and others."""
    facts = {item.path: item for item in objects}
    return Disk({**dict.fromkeys(facts, b"\x7fELF"), **(others or {})}, facts)


def bind(root: ElfObject, *objects: ElfObject, host: SystemLibraries | None = None, **options: Any) -> Binding:
    """Return the binding of a root's first need."""
    others = options.pop("others", None)
    loader = Loader(View(disk(root, *objects, others=others)), host or system(), **options)
    return loader.bindings(root)[0]


ROOT = elf("/app/a.so", None, "l.so")


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ((("l.so", "/opt/l.so", FLAGS, None),), "/opt/l.so"),
        ((("l.so", "/opt/l.so", 0x3, None),), None),
        ((("l.so", "/opt32/l.so", 0x3, None), ("l.so", "/opt/l.so", FLAGS, None)), "/opt/l.so"),
        ((("l.so", "/v2/l.so", FLAGS, "x86-64-v2"), ("l.so", "/opt/l.so", FLAGS, None)), "/v2/l.so"),
        ((("l.so", "/v4/l.so", FLAGS, "x86-64-v4"), ("l.so", "/opt/l.so", FLAGS, None)), "/opt/l.so"),
        ((("l.so", "/gone/l.so", FLAGS, None), ("l.so", "/opt/l.so", FLAGS, None)), None),
        ((("l.so", "/opt/text", FLAGS, None),), None),
        ((("l.so", "/opt32/l.so", FLAGS, None),), None),
    ],
    ids=[
        "plain",
        "other flags",
        "next flags",
        "capability",
        "no such processor",
        "best is gone",
        "no ELF",
        "other ABI",
    ],
)
def test_the_cache(entries: tuple[tuple[str, str, int, str | None], ...], found: str | None) -> None:
    """The first entry whose flags and capabilities fit is taken; the loader does not come back for another."""
    objects = [elf("/opt/l.so", "l.so"), elf("/v2/l.so", "l.so"), elf("/v4/l.so", "l.so")]
    objects.append(elf("/opt32/l.so", "l.so", abi=I386))
    binding = bind(ROOT, *objects, host=system(*entries), others={"/opt/text": b"text"})
    assert (binding.provider, binding.how) == (found, How.MISSING if found is None else How.CACHE)


def test_a_cache_entry_is_opened_by_its_path_with_the_directory_resolved() -> None:
    """``/lib -> usr/lib``: providers are told by canonical paths."""
    library = elf("/usr/lib/x/l.so", "l.so")
    binding = bind(ROOT, library, host=system(("l.so", "/lib/x/l.so", FLAGS, None)), others={"/lib": Link("usr/lib")})
    assert binding.provider == "/usr/lib/x/l.so"


def test_without_default_directories_their_cache_entries_end_the_search() -> None:
    """DF_1_NODEFLIB: an entry in a default directory is not taken, one elsewhere is."""
    root = replace(ROOT, flags_1=DF_1_NODEFLIB)
    libraries = [elf("/lib/l.so", "l.so"), elf("/opt/l.so", "l.so")]
    assert bind(root, *libraries, host=system(("l.so", "/lib/l.so", FLAGS, None))).provider is None
    assert bind(root, *libraries, host=system(("l.so", "/opt/l.so", FLAGS, None))).provider == "/opt/l.so"
    assert bind(ROOT, *libraries).provider == "/lib/l.so"


@pytest.mark.parametrize(
    ("name", "directory", "found"),
    [
        ("/opt/l.so", None, "/opt/l.so"),
        ("$ORIGIN/../opt/l.so", None, "/opt/l.so"),
        ("opt/l.so", None, None),
        ("opt/l.so", "/", "/opt/l.so"),
        ("/opt/gone.so", None, None),
        ("/opt32/l.so", None, None),
    ],
)
def test_needs_with_a_slash_are_paths(name: str, directory: str | None, found: str | None) -> None:
    """No search; a relative one depends on where the process starts, which nobody knows."""
    root = replace(ROOT, needed=(name,))
    libraries = [elf("/opt/l.so", "l.so"), elf("/opt32/l.so", "l.so", abi=I386)]
    binding = bind(root, *libraries, working_directory=directory)
    assert (binding.provider, binding.how) == (found, How.MISSING if found is None else How.ABSOLUTE)


def test_words_for_a_binding_name_the_directories_tried_before() -> None:
    """Those searched in vain, each once, in order; nothing where nothing was searched."""
    root = elf("/app/a.so", None, "l.so", "l.so", rpath="/one:/two:/one")
    others = {"/one/x": b"", "/two/x": b""}
    loader = Loader(View(disk(root, elf("/lib/l.so", "l.so"), others=others)), system())
    first, second = loader.bindings(root)
    assert (first.provider, first.how, first.searched) == ("/lib/l.so", How.DEFAULT, ("/one", "/two", "ld.so.cache"))
    assert (second.provider, second.how, second.searched) == ("/lib/l.so", How.LOADED, ())
    assert loader.bindings(root) == (first, second), "memoised searches answer alike"


def test_what_the_cache_found_ends_the_list_of_directories() -> None:
    """Default directories come behind it."""
    root = replace(ROOT, runpath="/one")
    binding = bind(
        root, elf("/opt/l.so", "l.so"), host=system(("l.so", "/opt/l.so", FLAGS, None)), others={"/one/x": b""}
    )
    assert (binding.how, binding.searched) == (How.CACHE, ("/one",))


def test_links_in_a_circle_end_one_search_path_only() -> None:
    """ELOOP: the rest of this RUNPATH is skipped, the default directories are not."""
    root = replace(ROOT, runpath="/one:/two")
    others = {"/one/l.so": Link("l.so"), "/two/x": b""}
    binding = bind(root, elf("/two/l.so", "l.so"), elf("/lib/l.so", "l.so"), others=others)
    assert (binding.provider, binding.searched) == ("/lib/l.so", ("/one", "ld.so.cache"))


def test_a_closure_is_listed_in_load_order() -> None:
    """Breadth first, the root first, with the bindings of every object."""
    root = elf("/app/a.so", None, "b.so", "c.so", rpath="$ORIGIN")
    objects = [elf("/app/b.so", "b.so", "d.so"), elf("/app/c.so", "c.so"), elf("/app/d.so", "d.so", "a.so")]
    closure = Loader(View(disk(root, *objects)), system()).closure(root)
    assert closure.objects == ("/app/a.so", "/app/b.so", "/app/c.so", "/app/d.so")
    assert [(item.consumer, item.name, item.how) for item in closure.bindings] == [
        ("/app/a.so", "b.so", How.RPATH),
        ("/app/a.so", "c.so", How.RPATH),
        ("/app/b.so", "d.so", How.RPATH),
        ("/app/d.so", "a.so", How.RPATH),
    ]
    assert closure.bindings[-1].provider == "/app/a.so"


def test_filters_are_placed_before_the_object() -> None:
    """DT_FILTER and DT_AUXILIARY, in the order of the dynamic segment; what is there is a need, found by its path."""
    root = elf("/app/a.so", None, "b.so", "x.so", rpath="$ORIGIN")
    both = (Filter("one.so", False, 1), Filter("two.so", True, 1), Filter("none.so", True, 2))
    filtering = elf("/app/b.so", "b.so", "c.so", "x.so", rpath="$ORIGIN", filters=both)
    objects = [filtering, *(elf(f"/app/{name}.so", f"{name}.so") for name in ("c", "x", "one", "two"))]
    trace = Loader(View(disk(root, *objects)), system()).trace(root)
    assert [item.object.soname for item in trace.objects] == [None, "one.so", "two.so", "b.so", "x.so", "c.so"]
    assert [need.name for need in trace.needs] == ["b.so", "x.so", "c.so", "one.so", "two.so", "x.so"]
    assert [need.name for need in trace.absent] == ["none.so"]


@pytest.mark.parametrize("is_optional", [True, False])
def test_a_filtered_file_that_is_gone(is_optional: bool) -> None:
    """Of DT_FILTER it is missing; of DT_AUXILIARY nothing is."""
    root = elf("/app/a.so", None, filters=(Filter("one.so", is_optional, 0),))
    trace = Loader(View(disk(root)), system()).trace(root)
    assert [need.name for need in trace.needs] == ([] if is_optional else ["one.so"])
    assert [item.path for item in trace.objects] == ["/app/a.so"]


def test_a_filtered_file_moves_up_but_never_back() -> None:
    """Loaded behind the object it is moved before it; loaded before, or by the interpreter, it stays."""
    one = elf("/app/one.so", "one.so")
    python = elf("/py/bin/python", None, "one.so", rpath="/app", interpreter="/ld.so")
    filtering = elf("/app/b.so", "b.so", filters=(Filter("one.so", True, 0),))
    for names, order in ((("b.so", "one.so"), ["one.so", "b.so"]), (("one.so", "b.so"), ["one.so", "b.so"])):
        root = elf("/app/a.so", None, *names, rpath="$ORIGIN")
        trace = Loader(View(disk(root, filtering, one)), system()).trace(root)
        assert [item.object.soname for item in trace.objects[1:]] == order
    opened = Loader(View(disk(root, filtering, one, python)), system(), main=python).trace(root)
    assert [item.object.soname for item in opened.objects[1:]] == ["b.so"]


def test_what_a_program_filters_is_not_found_by_name() -> None:
    """It stands before the main program, where the loader does not look; a module's is found as any other."""
    one, library = elf("/app/one.so", "one.so"), elf("/app/b.so", "b.so", "one.so")
    root = elf("/app/a.so", None, "b.so", rpath="$ORIGIN", filters=(Filter("one.so", True, 1),))
    python = elf("/py/bin/python", None, interpreter="/ld.so")
    for main, times in ((None, 2), (python, 1)):
        trace = Loader(View(disk(root, library, one, python)), system(), main=main).trace(root)
        assert [item.object.soname for item in trace.objects].count("one.so") == times


def test_an_entry_that_expands_to_nothing_is_no_directory() -> None:
    """``$PLATFORM`` of an unknown processor: skipped, where an empty entry is the working directory."""
    host = system(platform={X86_64: ""})
    for written, found in (("$PLATFORM", None), ("", "/here/l.so"), ("/none:", "/here/l.so")):
        root = replace(ROOT, runpath=f"/none:{written}")
        assert bind(root, elf("/here/l.so"), host=host, working_directory="/here").provider == found


@pytest.mark.parametrize("changes", [{"elf_type": 2}, {"elf_type": 1}, {"is_dynamic": False}])
def test_what_is_no_library_ends_the_load(changes: Mapping[str, Any]) -> None:
    """A program, a relocatable object, a file without a dynamic segment: in the cache too, nothing further is tried."""
    wrong, right = elf("/opt/l.so", "l.so", **changes), elf("/lib/l.so", "l.so")
    assert bind(ROOT, wrong, right, host=system(("l.so", "/opt/l.so", FLAGS, None))).provider is None
    assert bind(replace(ROOT, runpath="/opt"), wrong, right).provider is None
    assert bind(replace(ROOT, needed=("/opt/l.so",)), wrong, right).provider is None


MAIN = elf("/py/bin/python", None, "libpython3.so", "gone.so", rpath="$ORIGIN/../lib", interpreter="/ld.so")


def test_a_root_that_the_main_program_loaded_brings_nothing_in() -> None:
    """Dlopen of what is there already."""
    libpython = elf("/py/lib/libpython3.so", "libpython3.so")
    loader = Loader(View(disk(MAIN, libpython)), system(), main=MAIN)
    trace = loader.trace(libpython)
    assert (trace.root.path, trace.objects, trace.needs) == ("/py/lib/libpython3.so", (), ())


@pytest.mark.parametrize("with_libpython", [True, False])
def test_the_main_programs_rpath_is_searched_for_what_it_opens(with_libpython: bool) -> None:
    """Conda's python carries one; through libpython, which calls dlopen, or without one."""
    objects = [MAIN, ROOT, elf("/py/lib/l.so", "l.so")]
    if with_libpython:
        objects.append(elf("/py/lib/libpython3.so", "libpython3.so"))
    loader = Loader(View(disk(*objects)), system(), main=MAIN)
    (binding,) = loader.bindings(ROOT)
    assert (binding.provider, binding.how, binding.via) == ("/py/lib/l.so", How.RPATH, "$ORIGIN/../lib")
    without = Loader(View(disk(*objects)), system(), main=replace(MAIN, rpath=None))
    assert without.bindings(ROOT)[0].provider is None


def test_the_origin_of_the_library_path_is_the_main_programs() -> None:
    """LD_LIBRARY_PATH belongs to the process: its program's directory, or that of the root of a process of its own."""
    far = elf("/far/b.so", "b.so", "l.so")
    root = elf("/app/a.so", None, "b.so", rpath="/far")
    objects = [root, far, elf("/app/l/l.so", "l.so"), elf("/py/bin/l/l.so", "l.so"), MAIN]
    alone = Loader(View(disk(*objects)), system(), library_path=("$ORIGIN/l",))
    assert alone.closure(root).bindings[-1].provider == "/app/l/l.so"
    opened = Loader(View(disk(*objects)), system(), main=MAIN, library_path=("$ORIGIN/l",))
    assert opened.closure(root).bindings[-1].provider == "/py/bin/l/l.so"


@pytest.mark.parametrize(
    ("dynamic_loader", "met"),
    [(elf("/ld.so", "ld.so"), True), (elf("/ld.so", "ld.so", abi=I386), False), (None, False)],
)
def test_the_dynamic_loader_is_in_every_process(dynamic_loader: ElfObject | None, met: bool) -> None:
    """A need of it is met by the one that runs, found by PT_INTERP; one of another ABI, or none, meets nothing."""
    program = elf("/app/run", None, "ld.so", interpreter="/ld.so")
    objects = [] if dynamic_loader is None else [dynamic_loader]
    binding = bind(program, *objects, host=system(default_directories={X86_64: ()}))
    assert (binding.provider, binding.how) == (("/ld.so", How.LOADED) if met else (None, How.MISSING))


def test_a_link_through_more_links_than_the_kernel_follows_leads_nowhere() -> None:
    """path_resolution(7): forty, those in the directories on the way counted too."""
    others: dict[str, bytes | Link] = {f"/d{number}": Link(f"d{number + 1}/s") for number in range(50)}
    others["/d50/s/f"] = b""
    assert View(disk(others=others)).real_path("/d0/f") is None
    short = {f"/d{number}": Link(f"d{number + 1}") for number in range(30)}
    assert View(disk(others={**short, "/d30/f": b""})).real_path("/d0/f") == "/d30/f"
