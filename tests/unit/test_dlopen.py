"""Libraries that are surely opened by name: what a note says, and siblings of one distribution."""

from collections.abc import Iterable

import pytest

from safe_uninstall.analysis.linkage import judge_linkage
from safe_uninstall.analysis.losses import LibraryLoss, LinkageJudgement
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.model.elf import Abi, DlopenNote, ElfObject
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.snapshot import Snapshot
from tests.support.fakes import SITE, Disk, Installed, Row, at, distribution, elf, snapshot

TAG = "cpython-311-x86_64-linux-gnu"
PLUGIN = "p/lib/libplugin.so.1"


def judge(snap: Snapshot, *leaving: str, added: Iterable[ElfObject] = ()) -> LinkageJudgement:
    """Judge the removal of distributions; what a survivor claims too stays."""
    going = tuple(item for item in snap.distributions if item.name in leaving)
    kept = {row.path for item in snap.distributions if item.name not in leaving for row in item.record.rows}
    return judge_linkage(
        snap,
        Owners(snap.distributions),
        deleted={row.path for item in going for row in item.record.rows} - kept,
        leaving=going,
        added={item.path: item for item in added},
    )


def told(found: LinkageJudgement) -> list[tuple[str, str, Strength, bool]]:
    """Return name, provider, strength of each loss, and whether it blocks."""
    return [(item.name, item.provider.removeprefix(f"{SITE}/"), item.strength, item.blocks) for item in found.losses]


def owned(name: str, *objects: ElfObject) -> Installed:
    """Return a distribution of ELF files."""
    return distribution(name, claims={item.path.removeprefix(f"{SITE}/"): b"\x7fELF" for item in objects})


def noted(
    *notes: DlopenNote, extra: Iterable[ElfObject] = (), rpath: str | None = "$ORIGIN/../p/lib", needed: str = ""
) -> Snapshot:
    """Return an environment where ``c`` says in notes what it opens, and ``p`` has it."""
    consumer = elf(at("c/libc.so"), None, *needed.split(), rpath=rpath, has_dlopen_notes=True)
    provider = elf(at(PLUGIN), "libplugin.so.1")
    others = list(extra)
    snap = snapshot(
        owned("p", provider),
        owned("c", consumer),
        *(owned(f"x{number}", item) for number, item in enumerate(others)),
        objects=[consumer, provider, *others],
    )
    assert isinstance(snap.evidence, Disk)
    snap.evidence.notes[consumer.path] = notes
    return snap


def note(*sonames: str, priority: str = "required", feature: str | None = None) -> DlopenNote:
    """Return an entry of a note."""
    return DlopenNote(sonames=sonames or ("libplugin.so.1",), priority=priority, feature=feature)


@pytest.mark.parametrize(("priority", "blocks"), [("required", True), ("recommended", False), ("suggested", False)])
def test_what_a_note_names_is_lost(priority: str, blocks: bool) -> None:
    """Only what is required blocks (UAPI.12); the note is the evidence."""
    found = judge(noted(note(priority=priority, feature="plugins")), "p")
    assert told(found) == [("libplugin.so.1", PLUGIN, Strength.NOTED, blocks)]
    (consumer,) = found.losses[0].consumers
    assert (consumer.path, consumer.how) == (at("c/libc.so"), f".note.dlopen: {priority}, for plugins")
    assert consumer.distribution is not None
    assert consumer.distribution.name == "c"


def test_one_alternative_is_enough() -> None:
    """A note is lost when no alternative is left; it is told under the one that was found before."""
    other = elf(at("q/libother.so.2"), "libother.so.2")
    either = note("libabsent.so", "libplugin.so.1", "libother.so.2")
    rpath = "$ORIGIN/../p/lib:$ORIGIN/../q"
    snap = noted(either, extra=[other], rpath=rpath)
    assert told(judge(snap, "p")) == []
    assert told(judge(snap, "p", "x0")) == [("libplugin.so.1", PLUGIN, Strength.NOTED, True)]
    assert told(judge(noted(note("libabsent.so")), "p")) == []


def test_what_is_found_from_above_is_found() -> None:
    """The library that opens has no search path of its own, and inherits DT_RPATH of what loads it (auditwheel)."""
    root = elf(at("r/root.so"), None, "libc.so", rpath="$ORIGIN/../c:$ORIGIN/../p/lib")
    snap = noted(note(), extra=[root], rpath=None)
    assert told(judge(snap, "p")) == [("libplugin.so.1", PLUGIN, Strength.NOTED, True)]
    elsewhere = elf(at("q/libplugin.so.1"), "libplugin.so.1")
    both = elf(at("r/root.so"), None, "libc.so", rpath="$ORIGIN/../c:$ORIGIN/../p/lib:$ORIGIN/../q")
    assert told(judge(noted(note(), extra=[both, elsewhere], rpath=None), "p")) == []
    # It is no load that brings the library in where the root finds another one.
    other = elf(at("q/libc.so"))
    wrong = elf(at("r/root.so"), None, "libc.so", rpath="$ORIGIN/../q:$ORIGIN/../p/lib")
    assert told(judge(noted(note(), extra=[wrong, other], rpath=None), "p")) == [
        ("libplugin.so.1", PLUGIN, Strength.NOTED, False)
    ]


def test_each_note_is_judged_by_itself() -> None:
    """The same library may be required for one thing and suggested for another: both are told, by how much each is."""
    found = judge(noted(note(feature="a"), note(priority="suggested", feature="b"), note("libelse.so")), "p")
    assert sorted(item.blocks for item in found.losses) == [False, True]


def test_what_a_host_provides_is_not_lost() -> None:
    """The driver is there or not, whatever wheels ship."""
    driver = elf(at("p/lib/libcuda.so.1"), "libcuda.so.1")
    snap = noted(note("libcuda.so.1"), extra=[driver])
    assert told(judge(snap, "x0")) == []


def test_a_need_that_is_lost_anyhow_is_told_once() -> None:
    """It is linked, too: that is the stronger need."""
    found = judge(noted(note(), needed="libplugin.so.1"), "p")
    assert told(found) == [("libplugin.so.1", PLUGIN, Strength.LINKED, True)]


def test_notes_of_what_goes_or_is_written_do_not_count() -> None:
    """Of a file that a wheel brings it is not known yet what it opens."""
    snap = noted(note())
    assert told(judge(snap, "p", "c")) == []
    assert told(judge(snap, "p", added=[snap.objects[at("c/libc.so")]])) == []


def test_what_an_import_loads_first_is_found_by_soname() -> None:
    """No path leads to it, but a module of its distribution has loaded it: without that it is lost."""
    module = elf(at(f"m.{TAG}.so"), None, "libplugin.so.1", rpath="$ORIGIN/p/lib")
    snap = noted(note(), extra=[module], rpath=None)
    assert told(judge(snap, "p", "x0")) == [("libplugin.so.1", PLUGIN, Strength.NOTED, True)]
    second = elf(at(f"n.{TAG}.so"), None, "libplugin.so.1", rpath="$ORIGIN/q")
    copy = elf(at("q/libplugin.so.1"), "libplugin.so.1")
    snap = noted(note(), extra=[module, second, copy], rpath=None)
    assert told(judge(snap, "p", "x0")) == []


def test_what_nothing_loads_was_perhaps_never_found() -> None:
    """It is there, and neither a path nor an import leads to it: even what is required only warns."""
    snap = noted(note(), rpath=None)
    assert told(judge(snap, "p")) == [("libplugin.so.1", PLUGIN, Strength.NOTED, False)]


# Siblings: one library in several files, some of which are opened by name.

SHIM, GRAPH = "nvidia/cudnn/lib/libcudnn.so.9", "nvidia/cudnn/lib/libcudnn_graph.so.9"


def cudnn(
    *,
    names: bytes = b"libcudnn_graph.so\0",
    survivor: Row | bytes | None = None,
    claims_graph: bool = False,
    extra: Iterable[ElfObject] = (),
    runpath: str | None = None,
    graph: str = GRAPH,
) -> Snapshot:
    """Return an environment where cu12 and cu13 claim the library, and cu13 another that the library opens.

    Args:
        names: what stands in the data of the library.
        survivor: cu12's claim of the library; by default one without a hash, so that nobody knows whose bytes it has.
        claims_graph: whether cu12 claims the other one, too.
        extra: more ELF files, each a distribution.
        runpath: of the library.
        graph: path of the other one.
    """
    bytes_ = b"\x7fELF\0" + names
    claim = Row(content=bytes_) if survivor is None else survivor
    objects = [elf(at(SHIM), "libcudnn.so.9", runpath=runpath), elf(at(graph), "libcudnn_graph.so.9"), *extra]
    return snapshot(
        distribution("cu13", claims={SHIM: bytes_, graph: b"\x7fELF graph"}),
        distribution("cu12", claims={SHIM: claim, **({GRAPH: Row()} if claims_graph else {})}),
        *(owned(f"x{number}", item) for number, item in enumerate(extra)),
        objects=objects,
        disk={SHIM: bytes_},
    )


@pytest.mark.parametrize("names", [b"libcudnn_graph.so\0", b"libcudnn_graph.so.9\0", b"../lib/libcudnn_graph.so.9\0"])
def test_a_sibling_that_goes_is_lost_to_the_library_that_stays(names: bytes) -> None:
    """CuDNN adds the version to the name itself."""
    found = judge(cudnn(names=names), "cu13")
    assert told(found) == [("libcudnn_graph.so.9", GRAPH, Strength.NAMED, True)]
    (consumer,) = found.losses[0].consumers
    assert (consumer.path, consumer.how) == (at(SHIM), "opens it by name, both of cu13")
    assert consumer.distribution is not None
    assert consumer.distribution.name == "cu12"


def test_a_sibling_may_have_no_version() -> None:
    """Then its name is all there is."""
    path = "nvidia/cudnn/lib/libcudnn_graph.so"
    found = judge(cudnn(graph=path), "cu13")
    assert told(found) == [("libcudnn_graph.so", path, Strength.NAMED, True)]


def test_siblings_that_are_not_named_go() -> None:
    """Nor do those count that lie elsewhere: whoever opens a sibling looks beside itself."""
    assert told(judge(cudnn(names=b"libcudnn_graph\0"), "cu13")) == []
    assert told(judge(cudnn(graph="nvidia/other/libcudnn_graph.so.9"), "cu13")) == []


def test_siblings_that_go_or_stay_together_are_no_loss() -> None:
    """Both are kept where a survivor owns both, and where all owners go nobody is left to open anything."""
    assert told(judge(cudnn(claims_graph=True), "cu13")) == []
    assert told(judge(cudnn(), "cu12", "cu13")) == []
    assert told(judge(cudnn(), "cu12")) == []


def test_a_library_that_is_a_survivors_own_may_lack_what_another_ships() -> None:
    """Its bytes are those that cu12 was built with, and cu12 never had the sibling: that only warns."""
    data = b"\x7fELF\0libcudnn_graph.so\0"
    assert told(judge(cudnn(survivor=data), "cu13")) == [("libcudnn_graph.so.9", GRAPH, Strength.NAMED, False)]
    edited = cudnn(survivor=b"other bytes")
    assert told(judge(edited, "cu13")) == [("libcudnn_graph.so.9", GRAPH, Strength.NAMED, True)]


def test_a_sibling_that_is_found_elsewhere_is_no_loss() -> None:
    """The search path of the library leads to another file of the name."""
    other = elf(at("else/libcudnn_graph.so.9"), "libcudnn_graph.so.9")
    snap = cudnn(extra=[other], runpath="$ORIGIN:$ORIGIN/../../../else")
    assert told(judge(snap, "cu13")) == []
    assert len(judge(snap, "cu13", "x0").losses) == 1


def test_a_sibling_that_is_linked_is_told_once() -> None:
    """Another survivor needs it, too: that it goes is told already."""
    consumer = elf(at("c.so"), None, "libcudnn_graph.so.9", rpath="$ORIGIN/nvidia/cudnn/lib")
    assert told(judge(cudnn(extra=[consumer]), "cu13")) == [("libcudnn_graph.so.9", GRAPH, Strength.LINKED, True)]


def test_a_sibling_of_a_host_library_is_the_hosts() -> None:
    """What is called libcuda.so.1 is no wheel's to provide."""
    driver = "nvidia/cudnn/lib/libcuda.so.1"
    assert told(judge(cudnn(names=b"libcuda.so.1\0", graph=driver), "cu13")) == []


def test_what_is_written_anew_is_judged_when_it_is_there() -> None:
    """A restoration brings the library with other bytes, and the sibling may come with it."""
    snap = cudnn()
    shim, graph = snap.objects[at(SHIM)], snap.objects[at(GRAPH)]
    assert told(judge(snap, "cu13", added=[shim])) == []
    assert told(judge(snap, "cu13", added=[graph])) == []


@pytest.mark.parametrize(
    ("strength", "certain", "blocks"),
    [
        (Strength.LINKED, None, True),
        (Strength.NOTED, None, True),
        (Strength.NAMED, None, False),
        (Strength.NAMED, True, True),
        (Strength.NOTED, False, False),
    ],
)
def test_strength_decides_where_nothing_else_is_known(strength: Strength, certain: bool | None, blocks: bool) -> None:
    """A note, or a sibling, knows better."""
    loss = LibraryLoss(name="l", provider="p", strength=strength, consumers=(), searched=(), certain=certain)
    assert loss.blocks is blocks
    assert LinkageJudgement(losses=(loss,)).blocking == ((loss,) if blocks else ())


def test_another_abi_is_another_library() -> None:
    """A note of a 32-bit object does not speak of what a 64-bit module loads."""
    module = elf(at(f"m.{TAG}.so"), None, "libplugin.so.1", rpath="$ORIGIN/p/lib")
    narrow = elf(at("narrow.so"), has_dlopen_notes=True, abi=Abi(32, True, 3), rpath="$ORIGIN/p/lib")
    snap = noted(extra=[module, narrow])
    assert isinstance(snap.evidence, Disk)
    snap.evidence.notes[narrow.path] = (note(),)
    assert told(judge(snap, "p", "x0")) == []


@pytest.mark.parametrize(("name", "soname"), [("libdep.so.2", "libdep.so.2"), ("libalias.so", "libreal.so.1")])
def test_what_is_loaded_already_is_opened(name: str, soname: str) -> None:
    """Under its soname, and under the name by which something needed it."""
    dep = elf(at(f"p/lib/{name}"), soname)
    assert told(judge(noted(note("libplugin.so.1", name), extra=[dep], needed=name), "p")) == []
