"""Consumers outside of the environment: directories that the user names, and caches of compiled libraries."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from safe_uninstall.analysis.audit import audit
from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.graph import build_graph
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.analysis.why import explain_name
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.jit_caches import JitCache, NoCaches
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.plan import Code, Finding, Plan, Request, Severity, Verdict
from safe_uninstall.model.snapshot import Snapshot
from tests.support.fakes import SITE, Disk, Installed, at, distribution, elf, snapshot

TAG = "cpython-311-x86_64-linux-gnu"
LIBRARY = "torch/lib/libtorch.so"
LIB = at("torch/lib")


def torch(*more: Installed, extra: Iterable[ElfObject] = (), module: bool = True, **changes: Any) -> Snapshot:
    """Return an environment with a library that, maybe, an extension module of the same distribution loads."""
    objects = [elf(at(LIBRARY), "libtorch.so")]
    if module:
        objects.append(elf(at(f"torch/_C.{TAG}.so"), None, "libtorch.so", rpath="$ORIGIN/lib"))
    claims = {item.path.removeprefix(f"{SITE}/"): b"\x7fELF" for item in objects}
    return snapshot(distribution("torch", claims=claims), *more, objects=[*objects, *extra], **changes)


def beside(snap: Snapshot, *objects: ElfObject) -> Snapshot:
    """Return a snapshot with consumers outside, which are on disk."""
    assert isinstance(snap.files, Disk)
    files = Disk({**snap.files.files, **{item.path: b"\x7fELF" for item in objects}},
                 {**snap.files.objects, **{item.path: item for item in objects}})  # fmt: skip
    return replace(snap, outside={item.path: item for item in objects}, files=files, evidence=files)


def plan(snap: Snapshot, *names: str, **options: Any) -> Plan:
    """Plan a removal."""
    return make_plan(snap, Request(names=names, **options))


def lost(found: Plan) -> list[tuple[str | None, Strength, list[str]]]:
    """Return soname, strength and consumers of each library that is lost."""
    return [
        (item.soname, item.consumers[0].strength, [consumer.path for consumer in item.consumers])
        for item in found.findings
        if item.code in (Code.LIBRARY_LOST, Code.DLOPEN_LOST)
    ]


# Directories that the user names.


def test_a_consumer_outside_blocks() -> None:
    """It is nobody's, and its search path leads into the environment."""
    item = elf("/cache/x.so", None, "libtorch.so", rpath=LIB)
    found = plan(beside(torch(module=False), item), "torch")
    assert found.verdict is Verdict.BLOCK
    assert lost(found) == [("libtorch.so", Strength.LINKED, ["/cache/x.so"])]
    assert found.findings[0].consumers[0].distribution is None
    assert item.path not in found.prediction.deleted
    assert plan(torch(module=False), "torch").verdict is Verdict.ALLOW


def test_a_chain_may_begin_outside() -> None:
    """The root of the load is outside, what it loads inside, and that finds what goes by the root's DT_RPATH only."""
    inner = elf(at("v/libvision.so"), "libvision.so", "libtorch.so")
    item = elf("/cache/x.so", None, "libvision.so", rpath=f"{at('v')}:{LIB}")
    snap = torch(distribution("v", claims={"v/libvision.so": b"v"}), extra=[inner], module=False)
    found = plan(beside(snap, item), "torch")
    assert lost(found) == [("libtorch.so", Strength.LINKED, [inner.path])]
    assert found.findings[0].consumers[0].context == (item.path, inner.path)


def test_what_an_import_loads_first_is_lost_to_it() -> None:
    """Extensions that torch compiles have no search path: ``import torch`` came first."""
    found = plan(beside(torch(), elf("/cache/x.so", None, "libtorch.so")), "torch")
    assert lost(found) == [("libtorch.so", Strength.PRELOADED, ["/cache/x.so"])]


def test_it_is_no_provider() -> None:
    """A copy outside bears no name for anybody inside, and a module outside loads nothing for them."""
    consumer = elf(at("v/v.so"), None, "libtorch.so")
    snap = torch(distribution("v", claims={"v/v.so": b"v"}), extra=[consumer])
    copy = elf("/cache/libtorch.so", "libtorch.so")
    module = elf(f"/cache/x.{TAG}.so", None, "libtorch.so", rpath="$ORIGIN")
    found = plan(beside(snap, copy, module), "torch")
    assert lost(found) == [("libtorch.so", Strength.PRELOADED, [consumer.path])]
    bare = torch(distribution("v", claims={"v/v.so": b"v"}), extra=[consumer], module=False)
    # Its need is met by its own directory; inside nothing loads the library.
    assert lost(plan(beside(bare, copy, module), "torch")) == [("libtorch.so", Strength.NAMED, [consumer.path])]


def test_what_only_a_leaving_module_brought_in_is_lost_outside_too() -> None:
    """The library stays, but what loaded it first goes."""
    module = elf(at(f"m.{TAG}.so"), None, "libtorch.so", rpath="$ORIGIN/torch/lib")
    snap = torch(distribution("m", claims={f"m.{TAG}.so": b"m"}), extra=[module], module=False)
    found = plan(beside(snap, elf("/cache/x.so", None, "libtorch.so")), "m")
    assert lost(found) == [("libtorch.so", Strength.PRELOADED, ["/cache/x.so"])]


def test_check_tells_what_is_missing_outside() -> None:
    """What nothing provides is a note, what an installed distribution should provide an error."""
    snap = beside(torch(), elf("/cache/x.so", None, "libelse.so"), elf("/cache/y.so", None, "libgone.so"))
    gone = distribution("gone", claims={"gone/libgone.so": None})
    snap = replace(snap, distributions=(*snap.distributions, gone.distribution))
    found = audit(snap, Commands(snap, InstallerKind.PIP))
    told = {item.severity: [one.path for one in item.consumers] for item in found if item.code is Code.LIBRARY_LOST}
    assert told == {Severity.ERROR: ["/cache/y.so"], Severity.NOTE: ["/cache/x.so"]}


def test_why_tells_of_users_outside() -> None:
    """They are nobody's; their path stands as it is."""
    snap = beside(torch(), elf("/cache/x.so", None, "libtorch.so", rpath=LIB))
    owners = Owners(snap.distributions)
    (provider,) = explain_name(snap, build_graph(snap, owners), owners, "libtorch.so").providers
    assert ("/cache/x.so", None) in [(item.path, item.distribution) for item in provider.users]


# Caches.


@dataclass
class Caches:
    """Caches that count how often they are read."""

    caches: tuple[JitCache, ...]
    asked: int = 0

    def read(self) -> tuple[JitCache, ...]:
        """Return the caches."""
        self.asked += 1
        return self.caches


def cached(snap: Snapshot, *objects: ElfObject, name: str = "torch_extensions", is_whole: bool = True) -> Snapshot:
    """Return a snapshot with a cache."""
    assert isinstance(snap.files, Disk)
    snap.files.objects.update((item.path, item) for item in objects)
    cache = JitCache(name=name, directory="/cache", objects={item.path: item for item in objects}, is_whole=is_whole)
    return replace(snap, caches=Caches((cache,)))


def notes(found: Plan) -> list[Finding]:
    """Return the notes about libraries."""
    return [item for item in found.findings if item.code is Code.LIBRARY_LOST]


def asked(snap: Snapshot) -> int:
    """Return how often the caches were read."""
    assert isinstance(snap.caches, Caches)
    return snap.caches.asked


def test_a_cache_that_needs_what_goes_is_a_note() -> None:
    """One finding for all of its files, whatever strength their needs have; it does not block."""
    linked = elf("/cache/b.so", None, "libtorch.so", rpath=LIB)
    preloaded = elf("/cache/a.so", None, "libtorch.so", "libother.so")
    unrelated = elf("/cache/c.so", None, "libother.so")
    found = plan(cached(torch(), linked, preloaded, unrelated), "torch")
    assert found.verdict is Verdict.ALLOW
    (finding,) = found.findings
    assert (finding.code, finding.severity) == (Code.LIBRARY_LOST, Severity.NOTE)
    assert finding.message == "2 files that torch_extensions compiled need libtorch.so"
    assert (finding.soname, finding.path, finding.notes) == ("libtorch.so", None, ())
    assert [(item.path, item.strength) for item in finding.consumers] == [
        ("/cache/a.so", Strength.PRELOADED),
        ("/cache/b.so", Strength.LINKED),
    ]
    assert finding.help == ("what is still used is compiled anew; delete /cache to be rid of the rest",)


def test_one_file_of_many_names() -> None:
    """Three names are told, and that there are more; and that not all of a large cache was looked at."""
    names = [f"lib{letter}.so" for letter in "abcde"]
    libraries = [elf(at(f"p/{name}"), name) for name in names]
    snap = snapshot(distribution("p", claims={f"p/{name}": b"" for name in names}), objects=libraries)
    (finding,) = notes(plan(cached(snap, elf("/cache/x.so", None, *names, rpath=at("p")), is_whole=False), "p"))
    assert finding.message == "1 file that torch_extensions compiled needs liba.so, libb.so, libc.so and 2 more"
    assert finding.notes == ("/cache is large: only part of it was looked at",)


def test_a_cache_that_finds_it_elsewhere_is_no_news() -> None:
    """Nor is one that never found it, or whose files are part of the environment."""
    copy = elf("/other/libtorch.so", "libtorch.so")
    snap = torch(extra=[], module=False)
    assert isinstance(snap.files, Disk)
    files = Disk({**snap.files.files, copy.path: b""}, {**snap.files.objects, copy.path: copy})
    snap = replace(snap, files=files, evidence=files)
    elsewhere = elf("/cache/x.so", None, "libtorch.so", rpath=f"/other:{LIB}")
    assert notes(plan(cached(snap, elsewhere), "torch")) == []
    inside = elf(at("cache/x.so"), None, "libtorch.so", rpath=LIB)
    found = plan(cached(torch(module=False, extra=[inside]), inside), "torch")
    assert [item.severity for item in notes(found)] == [Severity.ERROR]


def test_a_library_path_that_binds_binds_for_caches_too() -> None:
    """What is found along LD_LIBRARY_PATH is lost only where that counts."""
    library = elf("/opt/libx.so", "libx.so")
    for use, expected in ((True, [Strength.LINKED]), (False, [Strength.NAMED])):
        snap = snapshot(
            distribution("p", claims={"../../../../opt/libx.so": b"x"}), objects=[library], library_path=("/opt",)
        )
        (finding,) = notes(plan(cached(snap, elf("/cache/x.so", None, "libx.so")), "p", use_library_path=use))
        assert [item.strength for item in finding.consumers] == expected


def test_caches_are_read_only_where_a_library_goes() -> None:
    """Neither for pure Python nor for a plan that does nothing."""
    snap = cached(torch(distribution("pure", claims={"pure.py": b""})))
    plan(snap, "pure")
    assert asked(snap) == 0
    plan(snap, "torch")
    assert asked(snap) == 1
    blocked = cached(torch(distribution("app", requires=("torch",))))
    assert plan(blocked, "torch").verdict is Verdict.BLOCK
    assert asked(blocked) == 0


def test_what_stays_in_place_is_needed_by_nobody_anew() -> None:
    """A library that another owner keeps does not go: nothing is read."""
    twin = distribution("twin", claims={LIBRARY: b"\x7fELF"})
    snap = cached(torch(twin, module=False), elf("/cache/x.so", None, "libtorch.so", rpath=LIB))
    assert plan(snap, "torch").findings == ()
    assert asked(snap) == 0


def test_losses_of_the_environment_itself_are_not_the_caches() -> None:
    """Only what is in the cache is told of with it."""
    consumer = elf(at("v/v.so"), None, "libtorch.so", rpath="$ORIGIN/../torch/lib")
    snap = torch(distribution("v", claims={"v/v.so": b"v"}), extra=[consumer])
    found = plan(
        cached(snap, elf("/cache/x.so", None, "libtorch.so", rpath=LIB)), "torch", accepted_losses=("libtorch.so",)
    )
    environment, cache = notes(found)
    assert [item.path for item in environment.consumers] == [consumer.path]
    assert [item.path for item in cache.consumers] == ["/cache/x.so"]


def test_without_caches_there_is_nothing_to_read() -> None:
    """A mounted tree has none of this user's."""
    assert NoCaches().read() == ()
