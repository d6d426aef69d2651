"""Rewrites: which change is the nearest that loses nothing, and why there is none."""

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Any

import pytest

from safe_uninstall.analysis import nearest
from safe_uninstall.analysis.change import Change, ChangeJudge
from safe_uninstall.analysis.conditions import Demands
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.presumed import NoWheels
from safe_uninstall.model.distribution import DirectUrl, Record, RecordState
from safe_uninstall.model.plan import Code, Finding, Plan, Rewrite, Severity, Verdict
from safe_uninstall.model.processes import Use, UseKind, Uses
from safe_uninstall.model.snapshot import Snapshot
from tests.support.cases import (
    CUDNN,
    HEADLESS,
    OPENCV,
    consumers,
    incident,
    lacking_symbols,
    opencv,
    outline,
    plan,
    reasons,
)
from tests.support.fakes import Installed, at, distribution, elf, environment, record_hash, snapshot
from tests.support.wheels import FakeWheels, wheel

RESTORE, SUBSTITUTE, KEEP, CASCADE = Rewrite
REWRITE = (RESTORE, SUBSTITUTE, KEEP)
CU12, CU13 = "nvidia-cudnn-cu12", "nvidia-cudnn-cu13"


def errors(found: Plan) -> list[Finding]:
    """Return what blocks."""
    assert found.verdict is Verdict.BLOCK
    return [item for item in found.findings if item.severity is Severity.ERROR]


def notes(found: Plan) -> list[str]:
    """Return what a blocked plan notes with its errors."""
    return [note for item in errors(found) for note in item.notes]


# Restore.


def test_the_incident_is_rewritten_by_restoring_the_survivor() -> None:
    """cu13 goes, cu12 gets every byte of its RECORD back, and nothing is lost."""
    snap = incident()
    wheels = FakeWheels(snap)
    found = plan(snap, CU13, rewrites=(RESTORE,), wheels=wheels)
    assert (found.verdict, found.findings) == (Verdict.REWRITE, ())
    assert outline(found) == [("uninstall", CU13), ("restore", CU12)]
    assert reasons(found)[CU12] == "its own files again, from presumed"
    assert found.prediction.written == {at(CUDNN): record_hash(b"cu12"), at("nvidia/cudnn/h.h"): record_hash(b"12")}
    assert found.prediction.deleted.isdisjoint(found.prediction.written)
    assert wheels.asked_to_restore == [CU12]


def test_without_its_wheel_nothing_is_restored_and_the_wheel_is_named() -> None:
    """Each error it would have avoided says what is missing and how to supply it; what failed is not offered again."""
    snap = incident()
    found = plan(snap, CU13, rewrites=(RESTORE,), wheels=FakeWheels(snap, restores={CU12: None}))
    assert {item.code for item in errors(found)} == {Code.LIBRARY_LOST, Code.FILE_LOST}
    for item in errors(found):
        assert f"no wheel for {CU12}==9.10.2.21: no network" in item.notes
        assert item.help == (f"pip download --no-deps {CU12}==9.10.2.21",)
    assert "--restore does not help: torch 2.9.1 needs libcudnn.so.9" in notes(found)
    assert f"--restore does not help: {CU12} 9.10.2.21 would lose 2 files" in notes(found)
    assert all(RESTORE not in item.rewrites for item in found.alternatives)


def test_without_a_source_of_wheels_nothing_is_restored() -> None:
    """It is said, as for any wheel that is missing."""
    snap = incident()
    found = plan(snap, CU13, rewrites=(RESTORE,), wheels=NoWheels())
    assert f"no wheel for {CU12}==9.10.2.21: there is no source of wheels" in notes(found)
    found = plan(substitutable(), "bad", rewrites=(SUBSTITUTE,), wheels=NoWheels())
    assert "no wheel for good==2: there is no source of wheels" in notes(found)


def test_a_wheel_without_the_library_restores_nothing() -> None:
    """What was presumed of the wheel does not count once the real one is there."""
    snap = incident()
    lacking = wheel(CU12, "9.10.2.21", {"nvidia/cudnn/h.h": b"12"})
    found = plan(snap, CU13, rewrites=(RESTORE,), wheels=FakeWheels(snap, restores={CU12: lacking}))
    assert "--restore does not help: torch 2.9.1 needs libcudnn.so.9" in notes(found)
    assert f"--restore does not help: {CU12} 9.10.2.21 would lose 1 file" in notes(found)
    # Nor is anything offered that would need it.
    assert found.alternatives == ()
    free = incident(distribution("free"))
    wheels = FakeWheels(free, restores={CU12: lacking})
    offered = plan(free, CU13, "free", rewrites=(RESTORE,), wheels=wheels).alternatives
    assert [item.summary for item in offered] == [f"remove free 1.0 and keep {CU13} 9.24.0.43"]


@pytest.mark.parametrize(
    ("url", "how"),
    [
        (DirectUrl(url="git+https://x/y", vcs="git"), "from a source tree"),
        (DirectUrl(url="file:///src/cudnn", editable=True, is_directory=True), "as an editable install"),
    ],
)
def test_what_has_no_wheel_anywhere_is_not_asked_for(url: DirectUrl, how: str) -> None:
    """An editable or VCS install is recognised before anything is fetched."""
    snap = snapshot(distribution("a", claims={"x": b"a"}, direct_url=url), distribution("b", claims={"x": b"bb"}))
    wheels = FakeWheels(snap)
    found = plan(snap, "b", rewrites=(RESTORE,), wheels=wheels)
    assert f"no wheel for a==1.0: it was installed {how}, {url.url}, which no index has" in notes(found)
    assert wheels.asked_to_restore == []


@pytest.mark.parametrize(
    "changes",
    [
        {"conda_package": "a-1.0-0"},
        {"owned_here": False},
        {"record": {"state": RecordState.LOCKED}},
    ],
)
def test_what_somebody_else_manages_is_not_restored(changes: dict[str, Any]) -> None:
    """Neither conda's, nor what is outside this environment, nor what is protected."""
    snap = snapshot(distribution("a", claims={"x": b"a"}, **changes), distribution("b", claims={"x": b"bb"}))
    wheels = FakeWheels(snap)
    found = plan(snap, "b", rewrites=(RESTORE,), wheels=wheels)
    assert [item.code for item in errors(found)] == [Code.FILE_LOST]
    assert (wheels.asked_to_restore, found.alternatives) == ([], ())


def test_what_the_tool_needs_is_restored_all_the_same() -> None:
    """It must not be removed; its own files it may have back."""
    own = (distribution("safe-uninstall", requires=("click",)), distribution("click", claims={"x": b"c"}))
    snap = snapshot(*own, distribution("b", claims={"x": b"bb"}))
    found = plan(snap, "b", rewrites=(RESTORE,), tool_prefix="/env")
    assert outline(found) == [("uninstall", "b"), ("restore", "click")]


def test_one_wheel_serves_two_that_were_overwritten_alike() -> None:
    """Twins that a third overwrote own the same bytes: it is enough that one brings them."""
    same = {"x": b"twin"}
    snap = snapshot(
        distribution("a", claims=same), distribution("b", claims=same), distribution("c", claims={"x": b"c"})
    )
    wheels = FakeWheels(snap, restores={"b": None})
    found = plan(snap, "c", rewrites=(RESTORE,), wheels=wheels)
    assert outline(found) == [("uninstall", "c"), ("restore", "a")]


def test_wheels_are_not_fetched_where_something_else_is_lost_anyhow() -> None:
    """What is hopeless is found out before hundreds of megabytes are."""
    snap = incident(distribution("app", requires=(CU13,)))
    wheels = FakeWheels(snap)
    found = plan(snap, CU13, rewrites=(RESTORE,), wheels=wheels)
    assert "--restore does not help: app 1.0 requires nvidia-cudnn-cu13" in notes(found)
    assert wheels.asked_to_restore == []


def test_private_twins() -> None:
    """Two copies of one soname in two directories: neither stands in for the other, and either can be restored."""
    claims = {"xgboost/lib/libxgboost.so": b"gpu", "xgboost.libs/libgomp.so.1": b"gomp"}
    cpu = {"xgboost/lib/libxgboost.so": b"cpu!", "xgboost_cpu.libs/libgomp.so.1": b"gomp"}
    snap = snapshot(
        distribution("xgboost", claims=claims),
        distribution("xgboost-cpu", claims=cpu),
        objects=[
            elf(at("xgboost.libs/libgomp.so.1"), "libgomp.so.1"),
            elf(at("xgboost_cpu.libs/libgomp.so.1"), "libgomp.so.1"),
            elf(at("xgboost/lib/libxgboost.so"), None, "libgomp.so.1", rpath="$ORIGIN/../../xgboost_cpu.libs"),
        ],
    )
    blocked = plan(snap, "xgboost-cpu")
    assert [item.code for item in errors(blocked)] == [Code.FILE_LOST]
    assert [item.rewrites for item in blocked.alternatives] == [(RESTORE,)]
    # The wheel brings a library that searches beside itself.
    own = elf(at("xgboost/lib/libxgboost.so"), None, "libgomp.so.1", rpath="$ORIGIN/../../xgboost.libs")
    whole = wheel("xgboost", "1.0", claims, objects=[own, elf(at("xgboost.libs/libgomp.so.1"), "libgomp.so.1")])
    found = plan(snap, "xgboost-cpu", rewrites=(RESTORE,), wheels=FakeWheels(snap, restores={"xgboost": whole}))
    assert (found.verdict, outline(found)) == (Verdict.REWRITE, [("uninstall", "xgboost-cpu"), ("restore", "xgboost")])


def builds(*more: Installed, own: bool = True, module: str = "cv2/cv2.abi3.so") -> Snapshot:
    """Return two builds of one package, each with a private copy of a chain of libraries that only its module loads.

    The libraries search nothing themselves: they inherit the RPATH of the module, which is the other build's.
    """
    installed, objects = [], [elf(at(module), None, "liba.so", rpath="$ORIGIN/../last.libs")]
    for name in ("first", "last"):
        libraries = dict.fromkeys(
            (f"{name}.libs/liba.so", f"{name}.libs/libb.so") if own or name == "last" else (), b""
        )
        installed.append(distribution(name, claims={module: name.encode(), **libraries}))
        objects += [
            elf(at(path), path.partition("/")[2], *(("libb.so",) if "liba" in path else ())) for path in libraries
        ]
    plugin = elf(at("plugin.so"), None, "libb.so")
    return snapshot(*installed, *more, objects=[*objects, *([plugin] if more else [])])


@pytest.mark.parametrize("module", ["cv2/cv2.abi3.so", "cv2/libcv2.so"])
def test_libraries_of_an_overwritten_build_are_no_consumers_of_the_other(module: str) -> None:
    """Nothing loads them until their module is back, and then they find each other: its files are all that is lost."""
    snap = builds(module=module)
    blocked = plan(snap, "last")
    assert [(item.code, item.severity) for item in blocked.findings] == [(Code.FILE_LOST, Severity.ERROR)]
    assert [item.rewrites for item in blocked.alternatives] == [(RESTORE,)]
    found = plan(snap, "last", rewrites=(RESTORE,))
    assert (outline(found), found.findings) == ([("uninstall", "last"), ("restore", "first")], ())
    # With what the wheel really holds, too.
    brought = {module: b"first", "first.libs/liba.so": b"", "first.libs/libb.so": b""}
    libraries = [snap.objects[at(path)] for path in list(brought)[1:]]
    for search, verdict in (("first", Verdict.REWRITE), ("last", Verdict.BLOCK)):
        own = elf(at(module), None, "liba.so", rpath=f"$ORIGIN/../{search}.libs")
        whole = wheel("first", claims=brought, objects=[own, *libraries])
        found = plan(snap, "last", rewrites=(RESTORE,), wheels=FakeWheels(snap, restores={"first": whole}))
        assert found.verdict is verdict


def test_others_may_still_need_what_the_module_loaded() -> None:
    """A plugin that searches nothing itself, and that whoever loads it has found everything for before."""
    snap = builds(distribution("other", claims={"plugin.so": b""}))
    lost = next(item for item in errors(plan(snap, "last")) if item.code is Code.LIBRARY_LOST)
    assert [item.distribution.name for item in lost.consumers if item.distribution] == ["other"]


def test_a_build_without_libraries_of_its_own_lacks_nothing() -> None:
    """What its module needs is unknown, and presumed to be met."""
    assert [item.rewrites for item in plan(builds(own=False), "last").alternatives] == [(RESTORE,)]


# Keep what is needed.


def test_what_is_needed_stays_and_it_is_said_who_needs_what() -> None:
    """By loader and by metadata, each consumer with what it needs; the rest of the request goes."""
    snap = consumers("a", "b", more=[distribution("free"), distribution("dep", requires=("provider>=1",))])
    found = plan(snap, "provider", "free", rewrites=(KEEP,))
    assert (found.verdict, outline(found)) == (Verdict.REWRITE, [("uninstall", "free"), ("keep", "provider")])
    assert reasons(found)["provider"] == (
        "still needed: a 1.0 needs libp.so; b 1.0 needs libp.so; dep 1.0 requires provider>=1"
    )


def test_what_is_kept_keeps_what_it_needs_in_turn() -> None:
    """A chain of requirements and libraries, all of it named: only its end can go."""
    snap = consumers(
        "middle",
        more=[
            distribution("top", requires=("middle",)),
            distribution("below", requires=("free",)),
            distribution("free"),
        ],
    )
    found = plan(snap, "provider", "middle", "below", "free", rewrites=(KEEP,))
    assert outline(found) == [("uninstall", "below"), ("uninstall", "free"), ("keep", "middle"), ("keep", "provider")]
    assert reasons(found)["middle"] == "still needed: top 1.0 requires middle"
    assert reasons(found)["provider"] == "still needed: middle 1.0 needs libp.so"


def test_all_that_was_named_may_stay() -> None:
    """Nothing goes, nothing is lost, and it is said why."""
    found = plan(consumers("a"), "provider", rewrites=(KEEP,))
    assert (found.verdict, outline(found)) == (Verdict.REWRITE, [("keep", "provider")])
    assert found.prediction.removed == frozenset()


def test_what_stays_of_the_request_is_restored_where_it_was_overwritten() -> None:
    """Both builds are named, one is required: it stays, with its own bytes, and the one that overwrote it goes."""
    found = plan(incident(), CU12, CU13, rewrites=REWRITE)
    assert outline(found) == [("uninstall", CU13), ("restore", CU12), ("keep", CU12)]
    assert reasons(found)[CU12] == (
        "still needed: torch 2.9.1 needs libcudnn.so.9; torch 2.9.1 requires nvidia-cudnn-cu12==9.10.2.21"
    )
    # Without restoring, both stay: its bytes are those that torch loads.
    found = plan(incident(), CU12, CU13, rewrites=(KEEP,))
    assert outline(found) == [("keep", CU12), ("keep", CU13)]
    assert f"{CU12} 9.10.2.21 would lose 2 files" in reasons(found)[CU13]


def test_any_of_several_that_hold_the_bytes_is_enough() -> None:
    """Two leaving twins hold what a survivor's consumer needs: one of them stays."""
    same = {"lib/libp.so": b"p"}
    snap = consumers("a", more=[distribution("twin", claims=same)])
    found = plan(snap, "provider", "twin", rewrites=(KEEP,))
    assert [kind for kind, _ in outline(found)] == ["uninstall", "release", "keep"]


def test_duplicates_of_a_name_stay_together() -> None:
    """Installers remove by name: one dist-info of it cannot go alone."""
    snap = snapshot(distribution("dup", "1.0"), distribution("dup", "2.0"), distribution("app", requires=("dup>=2",)))
    assert outline(plan(snap, "dup", rewrites=(KEEP,))) == [("keep", "dup"), ("keep", "dup")]


# Cascade.


def test_three_consumers_of_one_provider_go_each_with_its_own_reason() -> None:
    """All that would break go too, and nothing else."""
    snap = consumers("a", "b", "c", more=[distribution("other")])
    found = plan(snap, "provider", rewrites=(CASCADE,))
    assert (found.verdict, found.findings) == (Verdict.REWRITE, ())
    assert outline(found) == [("uninstall", name) for name in ("a", "b", "c", "provider")]
    assert reasons(found) == {name: f"would break: {name} 1.0 needs libp.so" for name in "abc"}
    assert [item.requested for item in found.actions] == [False, False, False, True]


def test_three_consumers_of_one_provider_and_it_stays() -> None:
    """The other way round: who needs it is told, each once."""
    found = plan(consumers("a", "b", "c"), "provider", rewrites=(KEEP,))
    assert outline(found) == [("keep", "provider")]
    assert reasons(found)["provider"] == ("still needed: a 1.0 needs libp.so; b 1.0 needs libp.so; c 1.0 needs libp.so")


def test_a_cascade_is_transitive() -> None:
    """What needs what goes goes too, to the end of the chain; each with what it would miss."""
    snap = consumers(
        "a",
        more=[
            distribution("b", requires=("a",)),
            distribution("c", requires=("b>=1",)),
            distribution("d", requires=("c; python_version < '3'",)),
        ],
    )
    found = plan(snap, "provider", rewrites=(CASCADE,))
    assert outline(found) == [("uninstall", name) for name in ("a", "b", "c", "provider")]
    assert reasons(found) == {
        "a": "would break: a 1.0 needs libp.so",
        "b": "would break: b 1.0 requires a",
        "c": "would break: c 1.0 requires b>=1",
    }


def test_rewrite_never_implies_a_cascade() -> None:
    """With all the other rewrites what needs the provider stays, and so does the provider."""
    found = plan(consumers("a"), "provider", rewrites=REWRITE)
    assert outline(found) == [("keep", "provider")]
    blocked = plan(consumers("a"), "provider", rewrites=(RESTORE, SUBSTITUTE))
    assert "--restore, --substitute do not help: a 1.0 needs libp.so" in notes(blocked)


def test_two_owners_of_a_consumer_go_together() -> None:
    """While one of them stays, so does the file."""
    snap = consumers("a", more=[distribution("twin", claims={"a/m.so": b"a"})])
    found = plan(snap, "provider", rewrites=(CASCADE,))
    assert outline(found) == [("uninstall", name) for name in ("a", "provider", "twin")]
    assert reasons(found)["a"] == reasons(found)["twin"] == "would break: a 1.0, twin 1.0 needs libp.so"


def test_a_consumer_of_nobody_cannot_go() -> None:
    """It is named by its path."""
    snap = snapshot(
        distribution("provider", claims={"lib/libp.so": b"p"}),
        objects=[elf(at("lib/libp.so"), "libp.so"), elf(at("mine.so"), None, "libp.so", runpath="$ORIGIN/lib")],
    )
    found = plan(snap, "provider", rewrites=(CASCADE,))
    assert notes(found) == [f"--cascade does not help: {at('mine.so')} needs libp.so"]


def test_a_survivor_that_was_overwritten_goes_where_nothing_may_be_restored() -> None:
    """It would lose files; with ``--restore`` it gets them back instead."""
    snap = opencv(OPENCV, distribution("app", requires=(OPENCV,)))
    found = plan(snap, OPENCV, rewrites=(CASCADE,))
    assert outline(found) == [("uninstall", "app"), ("uninstall", OPENCV), ("uninstall", HEADLESS)]
    assert reasons(found)[HEADLESS] == f"would break: {HEADLESS} 4.9 would lose 1 file"
    found = plan(snap, OPENCV, rewrites=(RESTORE, CASCADE))
    assert outline(found) == [("uninstall", "app"), ("uninstall", OPENCV), ("release", OPENCV), ("restore", HEADLESS)]


def test_a_wheel_that_cannot_be_had_never_turns_a_restoration_into_a_removal() -> None:
    """A network that is down must not cost a distribution that was to be restored."""
    snap = opencv(OPENCV, distribution("app", requires=(OPENCV,)))
    found = plan(snap, OPENCV, rewrites=(RESTORE, CASCADE), wheels=FakeWheels(snap, restores={HEADLESS: None}))
    assert f"no wheel for {HEADLESS}==4.9: no network" in notes(found)


def test_what_breaks_anyhow_is_not_restored_before() -> None:
    """Overwritten, and a consumer too: it goes."""
    snap = snapshot(distribution("a", claims={"x": b"a"}, requires=("b",)), distribution("b", claims={"x": b"bb"}))
    found = plan(snap, "b", rewrites=(RESTORE, CASCADE))
    assert outline(found) == [("uninstall", "a"), ("uninstall", "b")]


@pytest.mark.parametrize(
    "changes", [{"conda_package": "a-1.0-0"}, {"owned_here": False}, {"record": Record(state=RecordState.MISSING)}]
)
def test_what_must_not_be_removed_is_in_no_cascade(changes: dict[str, Any]) -> None:
    """What conda owns, what is outside, what has no RECORD: the request is blocked, and no cascade offered."""
    snap = snapshot(distribution("lib"), distribution("a", requires=("lib",), **changes))
    found = plan(snap, "lib", rewrites=(CASCADE,))
    assert notes(found) == ["--cascade does not help: a 1.0 requires lib"]
    assert plan(snap, "lib").alternatives == ()


def test_the_tool_itself_is_in_no_cascade() -> None:
    """Nor what it needs; from another environment both may go."""
    snap = snapshot(
        distribution("lib"),
        distribution("click", requires=("lib; extra == 'x'",)),
        distribution("safe-uninstall", requires=("click",)),
        distribution("asks", requires=("click[x]",)),
    )
    blocked = plan(snap, "lib", rewrites=(CASCADE,), tool_prefix="/env")
    assert notes(blocked) == ["--cascade does not help: click 1.0 requires lib"]
    assert plan(snap, "lib", tool_prefix="/env").alternatives == ()
    found = plan(snap, "lib", rewrites=(CASCADE,), tool_prefix="/elsewhere")
    assert ("uninstall", "safe-uninstall") in outline(found)


def test_lost_symbols_are_avoided_like_lost_libraries() -> None:
    """The first provider stays, or its consumer goes."""
    kept = plan(lacking_symbols(), "first", rewrites=(KEEP,))
    assert reasons(kept) == {"first": "still needed: app 1.0 needs the symbols of l.so"}
    cascaded = plan(lacking_symbols(), "first", rewrites=(CASCADE,))
    assert reasons(cascaded) == {"app": "would break: app 1.0 needs the symbols of l.so"}


# What comes with the request.


def test_what_is_installed_with_the_request_may_collide() -> None:
    """A wheel that overwrites a survivor's good files is no solution; a cascade removes the survivor."""
    snap = snapshot(distribution("old"), distribution("good", claims={"x": b"good"}))
    wheels = FakeWheels(snap, index={"new": [wheel("new", claims={"x": b"new"})]})
    found = plan(snap, "old", install=("new",), wheels=wheels)
    (lost,) = errors(found)
    assert lost.message == "installing new 1.0 would overwrite 1 file of `good` 1.0"
    assert [item.summary for item in found.alternatives] == ["remove it and install new 1.0 and remove good 1.0 too"]
    for rewrites in ((KEEP,), (RESTORE,), REWRITE):
        assert plan(snap, "old", install=("new",), wheels=wheels, rewrites=rewrites).verdict is Verdict.BLOCK
    found = plan(snap, "old", install=("new",), wheels=wheels, rewrites=(CASCADE,))
    assert reasons(found)["good"] == "would break: installing new 1.0 would overwrite 1 file of good 1.0"


def test_two_wheels_that_overwrite_each_other() -> None:
    """No rewrite helps: both were asked for."""
    snap = snapshot(distribution("old"))
    index = {name: [wheel(name, claims={"x": name.encode()})] for name in ("a", "b")}
    found = plan(snap, "old", install=("a", "b"), wheels=FakeWheels(snap, index=index), rewrites=(CASCADE,))
    assert [item.message for item in errors(found)] == ["installing b 1.0 would overwrite 1 file of `a` 1.0"]
    assert notes(found) == ["--cascade does not help: installing b 1.0 would overwrite 1 file of a 1.0"]


def test_a_newcomer_without_what_it_requires() -> None:
    """What goes with the request may be what it needs: then that stays, else nothing helps."""
    snap = snapshot(distribution("lib"), distribution("old"))
    wheels = FakeWheels(snap, index={"new": [wheel("new", requires=("lib", "python-dateutil; extra == 'x'"))]})
    found = plan(snap, "lib", "old", install=("new",), wheels=wheels)
    assert [item.message for item in errors(found)] == ["`new` 1.0 requires lib, which would not be installed"]
    found = plan(snap, "lib", "old", install=("new",), wheels=wheels, rewrites=(KEEP,))
    assert outline(found) == [("uninstall", "old"), ("install", "new"), ("keep", "lib")]
    assert reasons(found)["lib"] == "still needed: new 1.0 requires lib"
    absent = FakeWheels(snap, index={"new": [wheel("new", requires=("absent",))]})
    blocked = plan(snap, "old", install=("new",), wheels=absent, rewrites=(*REWRITE, CASCADE))
    assert notes(blocked) == ["--restore, --substitute, --keep-needed, --cascade do not help: new 1.0 requires absent"]


def test_another_version_takes_the_place_of_the_old() -> None:
    """The old one cannot be kept for those that require it; they may go."""
    snap = snapshot(distribution("lib", "1.0"), distribution("app", requires=("lib<2",)))
    wheels = FakeWheels(snap, index={"lib>=2": [wheel("lib", "2.0")]})
    blocked = plan(snap, install=("lib>=2",), wheels=wheels, rewrites=(KEEP,))
    assert notes(blocked) == ["--keep-needed does not help: app 1.0 requires lib<2"]
    assert [item.summary for item in blocked.alternatives] == ["install lib 2.0 and remove app 1.0 too"]
    found = plan(snap, install=("lib>=2",), wheels=wheels, rewrites=(CASCADE,))
    assert outline(found) == [("uninstall", "app"), ("uninstall", "lib"), ("install", "lib")]
    assert reasons(found)["lib"] == "from the index"


def test_restorations_that_overwrite_each_other_are_not_both_done() -> None:
    """Two survivors lost one path to a third: only one of them can have its bytes again."""
    snap = snapshot(
        distribution("a", claims={"x": b"a"}),
        distribution("b", claims={"x": b"bb"}),
        distribution("c", claims={"x": b"ccc"}),
    )
    blocked = plan(snap, "c", rewrites=(RESTORE,))
    assert [item.code for item in errors(blocked)] == [Code.FILE_LOST, Code.FILE_LOST]
    assert outline(plan(snap, "c", rewrites=(RESTORE, KEEP))) == [("keep", "c")]


def test_a_restoration_that_would_overwrite_a_survivor_is_not_done() -> None:
    """The wheel brings all its files: also one that a third ships with other bytes, and whose bytes are on disk."""
    snap = snapshot(
        distribution("x", claims={"p": b"x", "q": b"x"}),
        distribution("third", claims={"p": b"third"}),
        distribution("last", claims={"q": b"last"}),
    )
    assert plan(snap, "last", rewrites=(RESTORE,)).verdict is Verdict.BLOCK
    assert outline(plan(snap, "last", rewrites=(RESTORE, KEEP))) == [("keep", "last")]


def test_what_is_not_restored_cannot_be_overwritten() -> None:
    """A file that somebody edited is nobody's to lose, unless its distribution gets its own bytes again."""
    snap = snapshot(
        distribution("x", claims={"p": b"x", "q": b"x"}), distribution("last", claims={"q": b"last"}), disk={"p": b"!"}
    )
    wheels = FakeWheels(snap, index={"new": [wheel("new", claims={"p": b"new"})]})
    found = plan(snap, "last", install=("new",), rewrites=(RESTORE, KEEP), wheels=wheels)
    assert outline(found) == [("install", "new"), ("keep", "last")]


# Substitutes.

NEED = "p/lib/libp.so"


def substitutable() -> Snapshot:
    """Return an environment in which ``app`` requires ``good``, which is absent, and loads the library of ``bad``."""
    return snapshot(
        distribution("bad", claims={NEED: b"bad"}),
        distribution("app", claims={"app/m.so": b"m"}, requires=("good==2",)),
        objects=[elf(at(NEED), "libp.so"), elf(at("app/m.so"), None, "libp.so", rpath="$ORIGIN/../p/lib")],
    )


def good(path: str = NEED, **options: object) -> FakeWheels:
    """Return a source that has ``good``, with its library somewhere."""
    found = wheel("good", "2", {path: b"good"}, objects=[elf(at(path), "libp.so")])
    return FakeWheels(substitutable(), index={"good==2": [found]})


def test_a_substitute_is_what_a_consumer_requires_and_nobody_provides() -> None:
    """It comes in the same transaction, and it is said for whom."""
    wheels = good()
    found = plan(substitutable(), "bad", rewrites=(SUBSTITUTE,), wheels=wheels)
    assert outline(found) == [("uninstall", "bad"), ("install", "good")]
    assert reasons(found)["good"] == "from the index, since app 1.0 needs libp.so"
    assert wheels.asked_to_resolve == ["good==2"]


def test_a_substitute_is_accepted_only_if_its_library_is_where_it_is_looked_for() -> None:
    """The same soname elsewhere is no provider."""
    found = plan(substitutable(), "bad", rewrites=(SUBSTITUTE,), wheels=good("elsewhere/libp.so"))
    assert notes(found) == ["--substitute does not help: app 1.0 needs libp.so"]
    found = plan(substitutable(), "bad", rewrites=REWRITE, wheels=good("elsewhere/libp.so"))
    assert outline(found) == [("keep", "bad")]


def test_restoring_is_preferred_to_substitutes_and_these_to_keeping() -> None:
    """What changes the environment least: nothing is even resolved where a survivor can be restored."""
    snap = incident(distribution("more", requires=("absent",)))
    wheels = FakeWheels(snap)
    assert outline(plan(snap, CU13, rewrites=REWRITE, wheels=wheels)) == [("uninstall", CU13), ("restore", CU12)]
    assert wheels.asked_to_resolve == []
    found = plan(substitutable(), "bad", rewrites=REWRITE, wheels=good())
    assert outline(found) == [("uninstall", "bad"), ("install", "good")]


def test_a_substitute_that_cannot_be_had() -> None:
    """It is said; what remains is to keep what was to go."""
    wheels = FakeWheels(substitutable())
    found = plan(substitutable(), "bad", rewrites=(SUBSTITUTE,), wheels=wheels)
    assert "no wheel for good==2: no network" in notes(found)
    (lost,) = errors(found)
    assert lost.help == ("pip download --no-deps good==2",)
    assert outline(plan(substitutable(), "bad", rewrites=REWRITE, wheels=wheels)) == [("keep", "bad")]


def test_what_goes_is_no_substitute_for_itself() -> None:
    """A requirement that only the leaving one met was met: nothing is resolved."""
    snap = snapshot(
        distribution("provider", claims={"libp.so": b"p"}),
        distribution("app", claims={"a.so": b"a"}, requires=("provider",)),
        objects=[elf(at("libp.so"), "libp.so"), elf(at("a.so"), None, "libp.so", rpath="$ORIGIN")],
    )
    wheels = FakeWheels(snap)
    found = plan(snap, "provider", rewrites=(SUBSTITUTE,), wheels=wheels)
    assert (found.verdict, wheels.asked_to_resolve) == (Verdict.BLOCK, [])


def test_a_substitute_that_replaces_what_must_stay_is_none() -> None:
    """The old version of it belongs to conda."""
    snap = snapshot(
        distribution("bad", claims={NEED: b"bad"}),
        distribution("app", claims={"app/m.so": b"m"}, requires=("good==2",)),
        distribution("good", "1", conda_package="good-1-0"),
        objects=[elf(at(NEED), "libp.so"), elf(at("app/m.so"), None, "libp.so", rpath="$ORIGIN/../p/lib")],
    )
    found = plan(snap, "bad", rewrites=(SUBSTITUTE,), wheels=good())
    assert "--substitute does not help: `good` 1 was installed by conda" in notes(found)


def test_a_substitute_replaces_an_old_version() -> None:
    """Whoever required that very version would lose it: then it is no solution."""
    old = distribution("good", "1", {"good.py": b"1"})
    facts = [elf(at(NEED), "libp.so"), elf(at("app/m.so"), None, "libp.so", rpath="$ORIGIN/../p/lib")]
    app = distribution("app", claims={"app/m.so": b"m"}, requires=("good==2",))
    bad = distribution("bad", claims={NEED: b"bad"})
    found = plan(snapshot(bad, app, old, objects=facts), "bad", rewrites=(SUBSTITUTE,), wheels=good())
    assert outline(found) == [("uninstall", "bad"), ("uninstall", "good"), ("install", "good")]
    assert {item.reason for item in found.actions if item.distribution.name == "good"} == {
        "replaced by 2",
        "from the index, since app 1.0 needs libp.so",
    }
    # It is not restored before, though it was overwritten.
    library = {NEED: b"bad"}
    bad_too = distribution("bad", claims={**library, "good.py": b"bad"})
    found = plan(snapshot(old, app, bad_too, objects=facts), "bad", rewrites=(RESTORE, SUBSTITUTE), wheels=good())
    assert outline(found) == [("uninstall", "bad"), ("uninstall", "good"), ("install", "good")]
    strict = distribution("strict", requires=("good==1",))
    found = plan(snapshot(bad, app, old, strict, objects=facts), "bad", rewrites=REWRITE, wheels=good())
    assert outline(found) == [("keep", "bad")]


def test_a_substitute_that_collides_or_lacks_something_is_none() -> None:
    """It overwrites a survivor's good file; or what it requires in turn is not there."""
    snap = substitutable()
    more = snapshot(
        distribution("bad", claims={NEED: b"bad"}),
        distribution("app", claims={"app/m.so": b"m"}, requires=("good==2",)),
        distribution("third", claims={"third.py": b"3"}),
        objects=snap.objects.values(),
    )
    library = elf(at(NEED), "libp.so")
    colliding = wheel("good", "2", {NEED: b"good", "third.py": b"mine"}, objects=[library])
    wheels = FakeWheels(more, index={"good==2": [colliding]})
    assert plan(more, "bad", rewrites=(SUBSTITUTE,), wheels=wheels).verdict is Verdict.BLOCK
    # Nor does a cascade remove the third for it.
    found = plan(more, "bad", rewrites=(SUBSTITUTE, CASCADE), wheels=wheels)
    assert outline(found) == [("uninstall", "app"), ("uninstall", "bad")]
    lacking = wheel("good", "2", {NEED: b"good"}, objects=[library], requires=("absent",))
    wheels = FakeWheels(more, index={"good==2": [lacking]})
    assert plan(more, "bad", rewrites=(SUBSTITUTE,), wheels=wheels).verdict is Verdict.BLOCK


# Whatever else forbids a change.


def in_use(snap: Snapshot, path: str) -> Snapshot:
    """Return a snapshot in which a process uses a file."""
    process = Use(pid=7, command="python train.py", path=path, how=UseKind.MAPPED)
    return replace(snap, processes=Processes(process))


@dataclass(frozen=True)
class Processes:
    """Says who uses what."""

    use: Use

    def using(self, paths: Set[str]) -> Uses:
        """Return the one use there is."""
        return Uses(found=(self.use,) if self.use.path in paths else (), unreadable=0, asked_by_root=False)


def test_a_change_without_losses_may_be_forbidden_by_something_else() -> None:
    """Then another is sought: what is in use is not restored, but what overwrote it stays."""
    snap = in_use(incident(distribution("free")), at(CUDNN))
    found = plan(snap, CU13, "free", rewrites=(RESTORE,), refuse_in_use=True)
    assert "--restore does not help: 1 process uses a file that would be replaced" in notes(found)
    found = plan(snap, CU13, "free", rewrites=(RESTORE, KEEP), refuse_in_use=True)
    assert (found.verdict, outline(found)) == (Verdict.REWRITE, [("uninstall", "free"), ("keep", CU13)])
    # That it cannot be restored is no reason to keep what stays anyhow.
    found = plan(snap, CU12, CU13, rewrites=(RESTORE, KEEP), refuse_in_use=True)
    assert outline(found) == [("keep", CU12), ("keep", CU13)]
    assert "process" not in reasons(found)[CU12]


def test_a_consumer_with_several_files_is_named_once() -> None:
    """One demand for one distribution, whatever it loads the library from."""
    snap = snapshot(
        distribution("provider", claims={"libp.so": b"p"}),
        distribution("app", claims={"a.so": b"a", "b.so": b"b"}),
        objects=[
            elf(at("libp.so"), "libp.so"),
            elf(at("a.so"), None, "libp.so", rpath="$ORIGIN"),
            elf(at("b.so"), None, "libp.so", rpath="$ORIGIN"),
        ],
    )
    found = plan(snap, "provider", rewrites=(KEEP,))
    assert reasons(found) == {"provider": "still needed: app 1.0 needs libp.so"}
    owners = Owners(snap.distributions)
    judgement = ChangeJudge(snap, owners, use_library_path=False).judge(Change(leaving=snap.distributions[1:]))
    by_name = {item.name: (item,) for item in snap.distributions}
    demands = Demands(snapshot=snap, owners=owners, substitutes=(), by_name=by_name)
    assert [item.words for item in demands.of(judgement)] == ["app 1.0 needs libp.so"]


def test_the_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A problem that would take too long stays blocked, without a reason."""
    monkeypatch.setattr(nearest, "_ROUNDS", 1)
    found = plan(consumers("a"), "provider", rewrites=(CASCADE,))
    assert notes(found) == []


def test_an_environment_that_others_manage_is_not_rewritten() -> None:
    """An error that is no loss refuses the request as such: nothing is searched, nothing offered."""
    snap = consumers("a", environment=environment(externally_managed="no"))
    wheels = FakeWheels(snap)
    found = plan(snap, "provider", rewrites=(RESTORE, KEEP), wheels=wheels)
    assert {item.code for item in errors(found)} == {Code.EXTERNALLY_MANAGED, Code.LIBRARY_LOST}
    assert (found.alternatives, wheels.asked_to_restore) == ((), [])
