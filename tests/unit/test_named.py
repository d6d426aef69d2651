"""Names of libraries that go, in the data and in the source of survivors: they warn, and never block."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from safe_uninstall.analysis import named
from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.model.elf import Abi, ElfObject
from safe_uninstall.model.environment import EnvironmentKind
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.plan import Code, Finding, Plan, Request, Rewrite, Severity, Verdict
from safe_uninstall.model.snapshot import Snapshot
from tests.support.fakes import (
    PREFIX,
    SITE,
    X86_64,
    Disk,
    Installed,
    Link,
    Row,
    at,
    distribution,
    elf,
    environment,
    snapshot,
)
from tests.support.wheels import FakeWheels, wheel

NCCL = "nvidia/nccl/lib/libnccl.so.2"
BOOST = "xgboost/lib/libxgboost.so"


def plan(snap: Snapshot, *names: str, accept: tuple[str, ...] = ()) -> Plan:
    """Plan a removal."""
    return make_plan(snap, Request(names=names, accepted_losses=accept))


def dlopens(found: Plan) -> list[Finding]:
    """Return the findings about what is opened by name."""
    return [item for item in found.findings if item.code is Code.DLOPEN_LOST]


def who(found: Plan) -> list[tuple[str | None, list[str]]]:
    """Return name and consumers, relative to site-packages, of each finding about what is opened by name."""
    return [
        (item.soname, [consumer.path.removeprefix(f"{SITE}/") for consumer in item.consumers])
        for item in dlopens(found)
    ]


def searched(snap: Snapshot) -> set[str]:
    """Return the files whose contents were searched, relative to site-packages."""
    assert isinstance(snap.evidence, Disk)
    return {path.removeprefix(f"{SITE}/") for path in snap.evidence.searched}


def nccl(
    *others: Installed,
    data: bytes = b"\x7fELF\0libnccl.so.2\0",
    source: bytes = b"",
    extra: Iterable[ElfObject] = (),
    provider: ElfObject | None = None,
    rpath: str | None = None,
    requires: tuple[str, ...] = (),
    disk: Mapping[str, bytes | Link | None] | None = None,
) -> Snapshot:
    """Return an environment where xgboost names a library that no search path of it leads to."""
    return snapshot(
        distribution("nvidia-nccl", claims={NCCL: b"\x7fELF"}),
        distribution("xgboost", claims={BOOST: data, "xgboost/core.py": source}, requires=requires),
        *others,
        objects=[
            provider or elf(at(NCCL), "libnccl.so.2"),
            elf(at(BOOST), "libxgboost.so", rpath=rpath),
            *extra,
        ],
        disk=disk,
    )


def test_a_name_in_the_data_of_a_survivor_warns() -> None:
    """Xgboost opens libnccl.so.2 by name, and runs without it."""
    found = plan(nccl(), "nvidia-nccl")
    assert found.verdict is Verdict.ALLOW
    (finding,) = found.findings
    assert (finding.code, finding.severity) == (Code.DLOPEN_LOST, Severity.WARNING)
    assert (finding.soname, finding.path) == ("libnccl.so.2", at(NCCL))
    (consumer,) = finding.consumers
    assert consumer.distribution is not None
    assert (consumer.distribution.name, consumer.path) == ("xgboost", at(BOOST))
    assert (consumer.strength, consumer.how) == (Strength.NAMED, "its data names it")
    assert finding.help == ()


def test_a_name_in_the_source_of_a_survivor_warns() -> None:
    """With the data of its library it is one finding; a comment would be none (see the evidence)."""
    snap = nccl(source=b"CDLL(base / 'libnccl.so.2')")
    assert who(plan(snap, "nvidia-nccl")) == [("libnccl.so.2", ["xgboost/core.py", BOOST])]
    only_source = nccl(data=b"\x7fELF", source=b"CDLL(base / 'libnccl.so.2')")
    (finding,) = dlopens(plan(only_source, "nvidia-nccl"))
    assert finding.consumers[0].how == "names it"


def test_what_nobody_names_is_no_loss() -> None:
    """Nor is what only the leaving distribution itself names."""
    assert plan(nccl(data=b"\x7fELF"), "nvidia-nccl").findings == ()
    assert plan(nccl(), "nvidia-nccl", "xgboost").findings == ()
    itself = nccl(data=b"\x7fELF", disk={NCCL: b"\x7fELF\0libnccl.so.2\0"})
    assert plan(itself, "nvidia-nccl").findings == ()


def test_metadata_and_texts_name_nothing() -> None:
    """RECORD, METADATA and documentation speak of libraries and open none."""
    texts = {f"doc/{name}": b"'libnccl.so.2'\0" for name in ("x.md", "x.txt", "x.json", "METADATA", "RECORD")}
    snap = nccl(distribution("doc", claims=texts), data=b"\x7fELF")
    assert plan(snap, "nvidia-nccl").findings == ()
    assert not searched(snap) & texts.keys()


def test_a_library_may_name_itself() -> None:
    """Twins in two directories: the one that stays is what its own name leads to."""
    other = elf(at("other/libnccl.so.2"), "libnccl.so.2")
    twin = distribution("twin", claims={"other/libnccl.so.2": b"\x7fELF\0libnccl.so.2\0"})
    assert plan(nccl(twin, data=b"\x7fELF", extra=[other]), "nvidia-nccl").findings == ()


def test_any_file_of_the_name_will_do_where_no_rule_led_to_it() -> None:
    """How it was found nobody knows, so that the other may be what is meant; a stub, or another ABI's, is not."""
    for path, abi, lost in (
        ("other/libnccl.so.2", X86_64, False),
        ("other/stubs/libnccl.so.2", X86_64, True),
        ("other/libnccl.so.2", Abi(32, True, 3), True),
    ):
        other = elf(at(path), "libnccl.so.2", abi=abi)
        snap = nccl(distribution("other", claims={path: b"\x7fELF"}), extra=[other])
        assert bool(plan(snap, "nvidia-nccl").findings) is lost, path


def test_what_the_opener_finds_elsewhere_is_no_loss() -> None:
    """Its search path leads to one file before, to another afterwards, or nowhere any more."""
    other = elf(at("else/libnccl.so.2"), "libnccl.so.2")
    twin = distribution("twin", claims={"else/libnccl.so.2": b"\x7fELF"})
    both = "$ORIGIN/../../nvidia/nccl/lib:$ORIGIN/../../else"
    assert plan(nccl(twin, extra=[other], rpath=both), "nvidia-nccl").findings == ()
    first = "$ORIGIN/../../nvidia/nccl/lib"
    # The other one is there, but not for this opener.
    assert who(plan(nccl(twin, extra=[other], rpath=first), "nvidia-nccl")) == [("libnccl.so.2", [BOOST])]


def test_what_a_wheel_brings_is_no_loss() -> None:
    """A name that comes again in another place is there; what a wheel writes is not searched, its bytes are others."""
    new = "nvidia/cu13/lib/libnccl.so.2"
    comer = wheel("nccl2", claims={new: b"new"}, objects=[elf(at(new), "libnccl.so.2")])
    snap = nccl()
    wheels = FakeWheels(snap, index={"nccl2": [comer]})
    found = make_plan(snap, Request(names=("nvidia-nccl",), install=("nccl2",)), wheels)
    assert (found.verdict, dlopens(found)) == (Verdict.ALLOW, [])


def test_the_interpreter_opens_what_python_source_names() -> None:
    """By its own search paths, inherited DT_RPATH included: found there before and gone after, or still there."""
    python = elf(f"{PREFIX}/bin/python3", rpath="$ORIGIN/../lib", interpreter="/ld.so")
    first = elf(f"{PREFIX}/lib/libtbb.so.12", "libtbb.so.12")
    second = elf("/usr/lib/libtbb.so.12", "libtbb.so.12")
    elsewhere = elf(at("x/libtbb.so.12"), "libtbb.so.12")
    for objects, lost in (([elsewhere], True), ([second], False)):
        snap = snapshot(
            distribution("tbb", claims={"../../libtbb.so.12": b"\x7fELF"}),
            distribution("numba", claims={"numba/p.py": b"CDLL('libtbb.so.12')"}),
            objects=[python, first, *objects],
            environment=environment(interpreter_path=python.path),
        )
        assert who(plan(snap, "tbb")) == ([("libtbb.so.12", ["numba/p.py"])] if lost else [])


def test_without_an_interpreter_the_names_count() -> None:
    """A directory filled by ``--target``: nobody knows the ABI either."""
    snap = nccl(data=b"\x7fELF", source=b"CDLL('libnccl.so.2')")
    target = environment(kind=EnvironmentKind.TARGET, python=None, abi=None)
    assert who(plan(replace(snap, environment=target), "nvidia-nccl")) == [("libnccl.so.2", ["xgboost/core.py"])]


def test_another_abi_opens_another_library() -> None:
    """What a 32-bit library names, a 64-bit one was not."""
    provider = elf(at(NCCL), "libnccl.so.2", abi=Abi(32, True, 3))
    assert plan(nccl(provider=provider), "nvidia-nccl").findings == ()


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("p/libx.so", True),
        ("p/libx.so.1.2", True),
        ("p/x.so.1", True),
        ("p/_C.so", False),
        ("p.libs/libgomp-a34b3233.so.1.0.0", False),
        ("p.libs/libopenblasp-r0-59ffcd50.3.15.so", False),
        ("p.libs/libgomp-a34b323.so.1.0.0", True),
        ("p/libx_plugin.cpython-311-x86_64-linux-gnu.so", False),
        ("p/data.bin", False),
        ("p/libcuda.so.1", False),
        ("p/stubs/libx.so", False),
    ],
)
def test_only_libraries_are_opened_by_a_bare_name(path: str, counts: bool) -> None:
    """Modules and plugins are opened by path, so is what a wheel vendors; stubs never; drivers are the host's."""
    name = path.rpartition("/")[2]
    snap = snapshot(
        distribution("p", claims={path: b"\x7fELF"}),
        distribution("c", claims={"c/c.so": f"\x7fELF\0{name}\0".encode(), "c/c.py": f"'{name}'".encode()}),
        objects=[elf(at(path)), elf(at("c/c.so"))],
    )
    assert bool(plan(snap, "p").findings) is counts


def test_static_programs_open_nothing_and_are_not_opened() -> None:
    """What has no dynamic segment takes no part."""
    assert plan(nccl(provider=elf(at(NCCL), is_dynamic=False)), "nvidia-nccl").findings == ()
    snap = nccl(extra=[elf(at("static"), is_dynamic=False)], disk={"static": b"\x7fELF\0libnccl.so.2\0"})
    assert who(plan(snap, "nvidia-nccl")) == [("libnccl.so.2", [BOOST])]


def test_a_soname_is_a_name_too() -> None:
    """And so is that of a link: each is told under the name that stands there."""
    provider = elf(at("p/libx-1a2b.so"), "libx.so.1")
    link = elf(at("p/libx.so"), "libx.so.1", real_path=provider.path, identity=provider.identity)
    snap = snapshot(
        distribution("p", claims={"p/libx-1a2b.so": b"\x7fELF", "p/libx.so": Link("libx-1a2b.so")}),
        distribution("c", claims={"c/c.so": b"\x7fELF\0libx.so.1\0", "c/d.so": b"\x7fELF\0libx.so\0"}),
        objects=[provider, link, elf(at("c/c.so")), elf(at("c/d.so"))],
    )
    assert sorted(who(plan(snap, "p"))) == [("libx.so", ["c/d.so"]), ("libx.so.1", ["c/c.so"])]
    assert {item.soname: item.path for item in dlopens(plan(snap, "p"))} == {
        "libx.so": at("p/libx.so"),
        "libx.so.1": at("p/libx-1a2b.so"),
    }


def test_a_link_to_a_survivors_library_is_searched_once() -> None:
    """The file that it leads to says the same."""
    link = elf(at("xgboost/lib/libx.so"), real_path=at(BOOST))
    snap = nccl(extra=[link], disk={"xgboost/lib/libx.so": Link("libxgboost.so")})
    assert who(plan(snap, "nvidia-nccl")) == [("libnccl.so.2", [BOOST])]
    assert "xgboost/lib/libx.so" not in searched(snap)


def test_what_is_lost_for_certain_is_not_searched_for() -> None:
    """It is told already, by whoever links it."""
    linked = elf(at("c/c.so"), None, "libnccl.so.2", rpath="$ORIGIN/../nvidia/nccl/lib")
    snap = nccl(distribution("c", claims={"c/c.so": b"\x7fELF"}), extra=[linked])
    found = plan(snap, "nvidia-nccl", accept=("libnccl.so.2",))
    assert [item.code for item in found.findings] == [Code.LIBRARY_LOST]
    assert searched(snap) == set()


def test_a_blocked_plan_searches_for_nothing() -> None:
    """It takes nothing; a name that is accepted must be known all the same."""
    snap = nccl(requires=("nvidia-nccl",))
    assert plan(snap, "nvidia-nccl").verdict is Verdict.BLOCK
    assert searched(snap) == set()
    found = plan(snap, "nvidia-nccl", accept=("libnccl.so.2",))
    assert (found.verdict, dlopens(found)) == (Verdict.BLOCK, [])
    assert plan(snap, "nvidia-nccl", accept=("libnccl.so.2", "xgboost")).verdict is Verdict.ALLOW
    with pytest.raises(UsageError, match=r"--accept-loss `libelse\.so`: this plan loses no such thing"):
        plan(snap, "nvidia-nccl", accept=("libelse.so",))


def test_a_rewrite_tells_what_it_takes() -> None:
    """What the plan does is searched for, not what was asked for: here the rewrite takes the consumer too."""
    snap = nccl(
        distribution("c", claims={"c/c.so": b"\x7fELF\0libnccl.so.2\0"}),
        extra=[elf(at("c/c.so"))],
        requires=("nvidia-nccl",),
    )
    found = make_plan(snap, Request(names=("nvidia-nccl",), rewrites=(Rewrite.CASCADE,)))
    assert (found.verdict, who(found)) == (Verdict.REWRITE, [("libnccl.so.2", ["c/c.so"])])


def test_where_no_library_goes_nothing_is_searched() -> None:
    """Pure Python costs nothing."""
    snap = nccl(distribution("pure", claims={"pure.py": b""}))
    assert plan(snap, "pure").findings == ()
    assert searched(snap) == set()


def test_linkage_of_other_systems_is_not_judged() -> None:
    """On musl a name says nothing that is understood."""
    snap = nccl()
    musl = replace(snap, system=replace(snap.system, libc="musl"))
    assert plan(musl, "nvidia-nccl").findings == ()


# What is searched.


def test_the_related_are_searched_whatever_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """What requires what goes under any marker, links it, or lies in its package; directories the user names, too."""
    monkeypatch.setattr(named, "_OBJECTS_BUDGET", 100)
    large = 1 << 30
    linking = elf(at("l/l.so"), None, "libnccl.so.2", size=large, rpath="$ORIGIN/../copy")
    objects = [
        *(elf(at(f"{name}.so"), size=large) for name in ("r/r", "nvidia/n/n", "o/o")),
        linking,
        elf(at("small/small.so"), size=60),
        elf(at("less/less.so"), size=41),
        elf(at("copy/libnccl.so.2"), "libnccl.so.2", size=large),
    ]
    snap = nccl(
        distribution("r", claims={"r/r.so": b""}, requires=("Nvidia.NCCL ; extra == 'gpu'", "? no requirement")),
        distribution("n", claims={"nvidia/n/n.so": b""}),
        distribution("l", claims={"l/l.so": b""}),
        distribution("o", claims={"o/o.so": b""}),
        distribution("small", claims={"small/small.so": b""}),
        distribution("less", claims={"less/less.so": b""}),
        distribution("copy", claims={"copy/libnccl.so.2": b""}),
        extra=objects,
        data=b"",
    )
    outside = elf("/cache/x.so", size=large)
    snap = replace(snap, outside={outside.path: outside})
    plan(snap, "nvidia-nccl")
    found = searched(snap)
    assert found & {item.path.removeprefix(f"{SITE}/") for item in (*objects, outside)} == {
        "r/r.so", "nvidia/n/n.so", "l/l.so", "less/less.so", "/cache/x.so"
    }  # fmt: skip


def test_related_sources_are_searched_whatever_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the others the smallest distributions; a row without a size counts as an ordinary source."""
    monkeypatch.setattr(named, "_SOURCES_BUDGET", 10)
    snap = nccl(
        distribution("r", claims={"r/r.py": b"r" * 100}, requires=("nvidia-nccl; extra == 'gpu'",)),
        distribution("n", claims={"nvidia/n/n.py": b"n" * 100}),
        distribution("o", claims={"o/o.py": b"o" * 100}),
        distribution("less", claims={"less/l.py": b"l" * 5}),
        distribution("unknown", claims={"u.py": Row(content=b"")}),
        source=b"x" * 6,
    )
    plan(snap, "nvidia-nccl")
    sources = {path for path in searched(snap) if path.endswith(".py")}
    assert sources == {"r/r.py", "nvidia/n/n.py", "less/l.py"}


def test_a_library_in_no_package_is_related_to_its_directory() -> None:
    """Intel's wheels share ``lib`` of the prefix; what lies below that is not related by it."""
    snap = snapshot(
        distribution("tbb", claims={"../../libtbb.so.12": b"\x7fELF"}),
        distribution("umf", claims={"../../libumf.so": b"\x7fELF\0libtbb.so.12\0"}),
        distribution("other", claims={"o/o.so": b"\x7fELF\0libtbb.so.12\0"}),
        objects=[
            elf(f"{PREFIX}/lib/libtbb.so.12", "libtbb.so.12"),
            elf(f"{PREFIX}/lib/libumf.so", size=1 << 40),
            elf(at("o/o.so"), size=1 << 40),
        ],
    )
    (finding,) = plan(snap, "tbb").findings
    assert [item.path for item in finding.consumers] == [f"{PREFIX}/lib/libumf.so"]


def test_files_of_nobody_name_libraries_too() -> None:
    """A survivor is whatever stays."""
    snap = nccl(data=b"", extra=[elf(at("mine.so"))], disk={"mine.so": b"\x7fELF\0libnccl.so.2\0"})
    (finding,) = dlopens(plan(snap, "nvidia-nccl"))
    assert [(item.distribution, item.path) for item in finding.consumers] == [(None, at("mine.so"))]
