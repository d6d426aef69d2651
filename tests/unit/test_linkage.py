"""Linkage: the loader over the baseline held against the loader over the outcome, and what was loaded before."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from safe_uninstall.analysis.linkage import judge_linkage
from safe_uninstall.analysis.losses import LinkageJudgement
from safe_uninstall.analysis.names import is_host_library, is_stub
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.model.elf import Abi, ElfObject, Filter, SymbolTable
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.snapshot import Snapshot
from tests.support.fakes import PREFIX, SITE, Disk, Installed, Link, at, distribution, elf, environment, snapshot

TAG = "cpython-311-x86_64-linux-gnu"


def so(path: str, soname: str | None = None, *needed: str, **facts: Any) -> ElfObject:
    """Return a library at a path relative to site-packages."""
    return elf(at(path), soname, *needed, **facts)


def owned(name: str, *objects: ElfObject, sources: Mapping[str, bytes] | None = None) -> Installed:
    """Return a distribution of ELF files and Python sources."""
    claims = {item.path.removeprefix(f"{SITE}/"): b"\x7fELF" for item in objects}
    return distribution(name, claims={**claims, **(sources or {})})


def judge(
    snap: Snapshot, *leaving: str, deleted: Iterable[str] = (), added: Iterable[ElfObject] = ()
) -> LinkageJudgement:
    """Judge the removal of distributions, and of some more paths."""
    going = tuple(item for item in snap.distributions if item.name in leaving)
    paths = {row.path for item in going for row in item.record.rows}
    return judge_linkage(
        snap,
        Owners(snap.distributions),
        deleted=paths | {at(path) for path in deleted},
        leaving=going,
        added={item.path: item for item in added},
    )


def losses(found: LinkageJudgement) -> list[tuple[str, str, Strength, list[str]]]:
    """Return (name, provider, strength, consumers) with paths relative to site-packages."""
    return [
        (
            item.name,
            item.provider.removeprefix(f"{SITE}/"),
            item.strength,
            [consumer.path.removeprefix(f"{SITE}/") for consumer in item.consumers],
        )
        for item in found.losses
    ]


def test_a_need_that_was_met_and_no_longer_is() -> None:
    """By each consumer, the one that has the need itself first; with the chain that leads to it."""
    provider, direct = so("p/l.so", "l.so"), so("z/direct.so", None, "l.so", rpath="$ORIGIN/../p")
    root, inner = so("a/root.so", None, "inner.so", rpath="$ORIGIN:$ORIGIN/../p"), so("a/inner.so", "inner.so", "l.so")
    snap = snapshot(
        owned("p", provider), owned("a", root, inner), owned("z", direct), objects=[provider, direct, root, inner]
    )
    found = judge(snap, "p")
    assert losses(found) == [("l.so", "p/l.so", Strength.LINKED, ["z/direct.so", "a/inner.so"])]
    assert found.losses[0].consumers[0].context == (at("z/direct.so"),)
    assert found.losses[0].consumers[1].context == (at("a/root.so"), at("a/inner.so"))
    assert found.losses[0].searched == (at("p"), "ld.so.cache")


def test_nothing_is_judged_where_no_library_is_touched() -> None:
    """Text files bind nothing."""
    library = so("l.so", "l.so", "never.so")
    assert judge(snapshot(distribution("t", claims={"t.txt": b""}), objects=[library]), "t") == LinkageJudgement()


@pytest.mark.parametrize("is_optional", [True, False])
def test_what_an_object_filters(is_optional: bool) -> None:
    """DT_FILTER is lost as a need is; without what DT_AUXILIARY names the object serves alone. Either may move."""
    provider, deep = so("p/real.so", "real.so", "deep.so", rpath="$ORIGIN/../d"), so("d/deep.so", "deep.so")
    facade = so("a/facade.so", None, rpath="$ORIGIN/../p", filters=(Filter("real.so", is_optional, 0),))
    snap = snapshot(owned("p", provider), owned("d", deep), owned("a", facade), objects=[provider, deep, facade])
    lost = [] if is_optional else [("real.so", "p/real.so", Strength.LINKED, ["a/facade.so"])]
    assert losses(judge(snap, "p")) == lost
    assert losses(judge(snap, "d"))[0][3] == ["p/real.so"]
    assert judge(snap, "d").losses[0].consumers[0].path == at("p/real.so")


def test_what_was_missing_before_is_no_loss() -> None:
    """Only losses count; what a leaving consumer needs does not either."""
    provider, consumer = so("p/l.so", "l.so"), so("c.so", None, "l.so", "never.so", rpath="$ORIGIN/p")
    snap = snapshot(owned("p", provider), owned("c", consumer), objects=[provider, consumer])
    assert [item[0] for item in losses(judge(snap, "p"))] == ["l.so"]
    assert judge(snap, "p", "c") == LinkageJudgement()


@pytest.mark.parametrize(
    ("name", "host"),
    [("libcuda.so.1", True), ("libc.so.6", True), ("ld-linux-x86-64.so.2", True), ("libcudart.so.12", False)],
)
def test_host_libraries_are_not_a_wheels_to_provide(name: str, host: bool) -> None:
    """The driver and libc come from the host, whatever a wheel ships."""
    assert is_host_library(name) is host
    provider, consumer = so(f"p/{name}", name), so("c.so", None, name, rpath="$ORIGIN/p")
    snap = snapshot(owned("p", provider), owned("c", consumer), objects=[provider, consumer])
    assert bool(judge(snap, "p").losses) is not host


def test_stubs_provide_nothing() -> None:
    """What is there to link against is never meant to be loaded, not even where nothing loads it first."""
    assert is_stub("/x/stubs/l.so")
    assert not is_stub("/x/stubs/y/l.so")
    provider = so("p/stubs/l.so", "l.so")
    found, unfound = so("c.so", None, "l.so", rpath="$ORIGIN/p/stubs"), so("d.so", None, "l.so")
    snap = snapshot(owned("p", provider), owned("c", found), owned("d", unfound), objects=[provider, found, unfound])
    assert judge(snap, "p").losses == ()


def test_a_consumer_that_is_deleted_does_not_count() -> None:
    """Though it belongs to nobody that leaves."""
    provider, inner = so("p/l.so", "l.so"), so("x/inner.so", "inner.so", "l.so")
    root = so("x/root.so", None, "inner.so", rpath="$ORIGIN:$ORIGIN/../p")
    snap = snapshot(owned("p", provider), owned("x", inner, root), objects=[provider, inner, root])
    assert losses(judge(snap, "p", deleted=["x/inner.so"])) == [
        ("inner.so", "x/inner.so", Strength.LINKED, ["x/root.so"])
    ]


def test_a_restored_library_is_no_loss() -> None:
    """Deleted, then written anew: the outcome has it; another one in its place is no change to the consumer itself."""
    provider, consumer = so("p/l.so", "l.so"), so("c.so", None, "l.so", rpath="$ORIGIN/p")
    snap = snapshot(owned("p", provider), owned("c", consumer), objects=[provider, consumer])
    again = so("p/l.so", "l.so", size=200)
    assert judge(snap, "p", added=[again]).losses == ()


def test_an_added_library_whose_need_nothing_meets_breaks_what_loads_it() -> None:
    """The old one had no such need: whoever loads the new one fails."""
    old, new = so("inner.so", "inner.so"), so("inner.so", "inner.so", "l.so")
    root = so("root.so", None, "inner.so", rpath="$ORIGIN")
    snap = snapshot(owned("c", old, root), objects=[old, root])
    assert judge(snap).losses == ()
    found = judge(snap, added=[new])
    assert losses(found) == [("l.so", "", Strength.LINKED, ["inner.so"])]
    assert found.losses[0].consumers[0].how == "not found"


def test_a_lost_need_is_not_also_a_change() -> None:
    """One root finds another provider, another root none: the loss is told."""
    first, second = so("first/l.so", "l.so"), so("second/l.so", "l.so")
    inner = so("i/inner.so", "inner.so", "l.so")
    one = so("one.so", None, "inner.so", rpath="$ORIGIN/i:$ORIGIN/first:$ORIGIN/second")
    two = so("two.so", None, "inner.so", rpath="$ORIGIN/i:$ORIGIN/first")
    objects = [first, second, inner, one, two]
    snap = snapshot(owned("first", first), owned("rest", second, inner, one, two), objects=objects)
    found = judge(snap, "first")
    assert losses(found) == [("l.so", "first/l.so", Strength.LINKED, ["i/inner.so"])]
    assert found.changes == ()


def test_a_program_behind_a_link_starts_from_where_it_really_is() -> None:
    """The kernel follows the link, so that $ORIGIN is the file's own directory."""
    provider = so("real/lib/l.so", "l.so")
    program = so("real/run", None, "l.so", rpath="$ORIGIN/lib", interpreter="/ld.so")
    link = elf(f"{PREFIX}/bin/run", None, "l.so", rpath="$ORIGIN/lib", interpreter="/ld.so", real_path=program.path)
    snap = snapshot(
        owned("p", provider),
        owned("app", program),
        objects=[provider, program, link],
        disk={"../../../bin/run": Link(program.path)},
    )
    assert [item[:2] for item in losses(judge(snap, "p"))] == [("l.so", "real/lib/l.so")]


def test_the_interpreter_meets_needs_before() -> None:
    """What python itself has loaded is loaded for every root; another ABI's files are not its to open."""
    libpython = elf(f"{PREFIX}/lib/libpython3.so", "libpython3.so")
    main = elf(f"{PREFIX}/bin/python3", None, "libpython3.so", rpath="$ORIGIN/../lib", interpreter="/ld.so")
    provider, module = so("p/l.so", "l.so"), so(f"m.{TAG}.so", None, "libpython3.so", "l.so", rpath="$ORIGIN/p")
    foreign = so("f.so", None, "l.so", rpath="$ORIGIN/p", abi=Abi(32, True, 3))
    snap = snapshot(
        owned("p", provider),
        owned("m", module),
        owned("f", foreign),
        objects=[libpython, main, provider, module, foreign],
        environment=environment(interpreter_path=main.path),
    )
    found = judge(snap, "p")
    assert losses(found) == [("l.so", "p/l.so", Strength.LINKED, [f"m.{TAG}.so"])]
    assert found.losses[0].consumers[0].context == (at(f"m.{TAG}.so"),)


# What nothing finds by path, and something loaded before.


def preloaded(
    *extra: ElfObject,
    sources: Mapping[str, bytes] | None = None,
    others: Iterable[Installed] = (),
    provider: ElfObject | None = None,
) -> Snapshot:
    """Return an environment where a consumer has a need that no path meets, and ``p`` has a library of that name."""
    provider = provider or so("p/lib/l.so", "l.so")
    consumer = so("c/c.so", None, "l.so")
    return snapshot(
        owned("p", provider, sources=sources), owned("c", consumer), *others, objects=[provider, consumer, *extra]
    )


def test_nothing_is_known_to_load_it() -> None:
    """It exists in the environment and nothing reaches it: that is no binding, and warns."""
    assert losses(judge(preloaded(), "p")) == [("l.so", "p/lib/l.so", Strength.NAMED, ["c/c.so"])]


def test_its_own_distributions_source_loads_it() -> None:
    """``librmm`` opens its library by file name."""
    found = judge(preloaded(sources={"p/__init__.py": b"CDLL(here / 'l.so')"}), "p")
    assert losses(found) == [("l.so", "p/lib/l.so", Strength.PRELOADED, ["c/c.so"])]
    assert found.losses[0].consumers[0].how == "already loaded by p/__init__.py"


@pytest.mark.parametrize(
    ("source", "strength"),
    [
        (b"CDLL('p/lib/l.so')", Strength.PRELOADED),
        (b"CDLL('l.so')", Strength.NAMED),
        (b"import package_p", Strength.NAMED),
    ],
)
def test_another_distributions_source_must_name_the_directory_too(source: bytes, strength: Strength) -> None:
    """A bare file name finds nothing that lies outside the loader's path."""
    library = so("package_p/l.so", "l.so")
    text = source.replace(b"p/lib", b"package_p")
    snap = preloaded(provider=library, others=[owned("other", sources={"o.py": text})])
    assert [item[2] for item in losses(judge(snap, "p"))] == [strength]


@pytest.mark.parametrize("path", ["l.so", "../../../x/l.so"])
def test_a_library_in_no_package_is_not_named_by_others(path: str) -> None:
    """At the top of site-packages, or outside: there is no directory that a source could name."""
    library = elf(at(path), "l.so")
    claims = {path: b"\x7fELF"}
    consumer = so("c/c.so", None, "l.so")
    snap = snapshot(
        distribution("p", claims=claims),
        owned("c", consumer),
        owned("other", sources={"o.py": b"CDLL('l.so')"}),
        objects=[library, consumer],
    )
    assert [item[2] for item in losses(judge(snap, "p"))] == [Strength.NAMED]


def test_an_import_loads_it() -> None:
    """An extension module whose closure holds the library: torchvision needs what ``import torch`` loaded."""
    module = so(f"p/_C.{TAG}.so", None, "l.so", rpath="$ORIGIN/lib")
    snap = preloaded(module, others=[owned("module", module)])
    found = judge(snap, "p", "module")
    assert losses(found) == [("l.so", "p/lib/l.so", Strength.PRELOADED, ["c/c.so"])]
    assert found.losses[0].consumers[0].how == f"already loaded by import of p/_C.{TAG}.so"


@pytest.mark.parametrize(("symbol", "strength"), [("PyInit__C", Strength.PRELOADED), ("main", Strength.NAMED)])
def test_an_untagged_module_is_told_by_its_symbol(symbol: str, strength: Strength) -> None:
    """``_C.so`` is an extension module when it exports ``PyInit__C``."""
    module = so("p/_C.so", None, "l.so", rpath="$ORIGIN/lib")
    snap = preloaded(module, others=[owned("module", module)])
    assert isinstance(snap.evidence, Disk)
    snap.evidence.tables[module.path] = SymbolTable(
        exported=frozenset({symbol}), undefined=frozenset(), versions_defined=frozenset(), versions_needed=()
    )
    assert [item[2] for item in losses(judge(snap, "p", "module"))] == [strength]


def test_a_module_outside_the_environment_is_named_by_its_whole_path() -> None:
    """Directories that ``.pth`` files add lie anywhere."""
    module = elf(f"/srv/m.{TAG}.so", None, "l.so", rpath=at("p/lib"))
    found = judge(preloaded(module), "p", deleted=[f"../../../../srv/m.{TAG}.so"])
    assert found.losses[0].consumers[0].how == f"already loaded by import of /srv/m.{TAG}.so"


def test_another_bearer_that_is_loaded_too_still_serves() -> None:
    """Two libraries of that soname, both loaded by somebody: one may go."""
    second = so("q/l.so", "l.so")
    module = so(f"q/_Q.{TAG}.so", None, "l.so", rpath="$ORIGIN")
    snap = preloaded(second, module, sources={"p/a.py": b"l.so"}, others=[owned("q", second, module)])
    assert judge(snap, "p").losses == ()


def test_another_bearer_that_nothing_loads_is_as_good_as_before() -> None:
    """Nothing loaded the one that goes, and one stays: nothing changed."""
    second = so("q/l.so", "l.so")
    assert judge(preloaded(second, others=[owned("q", second)]), "p").losses == ()


def test_another_bearer_does_not_serve_when_only_the_one_that_goes_was_loaded() -> None:
    """The other is there, and nothing loads it."""
    second = so("q/l.so", "l.so")
    snap = preloaded(second, sources={"p/a.py": b"l.so"}, others=[owned("q", second)])
    assert [item[2] for item in losses(judge(snap, "p"))] == [Strength.PRELOADED]


def test_a_file_name_is_no_soname() -> None:
    """Glibc matches loaded objects by soname: a file of that name with another serves nobody."""
    library = so("p/lib/l.so", "other.so")
    assert judge(preloaded(provider=library, sources={"p/a.py": b"l.so"}), "p").losses == ()


def test_a_library_that_stays_is_lost_with_the_module_that_loaded_it() -> None:
    """Nothing deletes the library, but nothing loads it any more: the consumer's need is lost all the same."""
    module = so(f"m/_C.{TAG}.so", None, "l.so", rpath="$ORIGIN/../p/lib")
    snap = preloaded(module, others=[owned("m", module)])
    found = judge(snap, "m")
    assert losses(found) == [("l.so", "p/lib/l.so", Strength.PRELOADED, ["c/c.so"])]
    assert judge(snap, "m", "c").losses == ()


def test_what_a_path_meets_does_not_depend_on_the_module_that_goes() -> None:
    """A consumer with an RPATH of its own, and roots above it that leave, lose nothing."""
    module = so(f"m/_C.{TAG}.so", None, "l.so", rpath="$ORIGIN/../p/lib")
    bound = so("b/b.so", None, "l.so", rpath="$ORIGIN/../p/lib")
    provider = so("p/lib/l.so", "l.so")
    objects = [provider, module, bound]
    snap = snapshot(owned("p", provider), owned("m", module), owned("b", bound), objects=objects)
    assert judge(snap, "m").losses == ()


def test_a_closure_above_the_consumer_may_meet_its_need() -> None:
    """The consumer's own root finds nothing, a surviving root above it does: linked there, whatever else leaves."""
    module = so(f"m/_C.{TAG}.so", None, "l.so", rpath="$ORIGIN/../p/lib")
    inner = so("c/inner.so", "inner.so", "l.so")
    root = so("c/root.so", None, "inner.so", rpath="$ORIGIN:$ORIGIN/../p/lib")
    leaving_root = so("m/other.so", None, "inner.so", rpath="$ORIGIN/../c")
    provider = so("p/lib/l.so", "l.so")
    snap = snapshot(
        owned("p", provider),
        owned("m", module, leaving_root),
        owned("c", inner, root),
        objects=[provider, module, inner, root, leaving_root],
    )
    assert judge(snap, "m").losses == ()
