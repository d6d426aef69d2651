"""What a change does: its losses, after all that wheels write."""

from typing import Any

import pytest

from safe_uninstall.analysis.change import Change, ChangeJudge, Judgement, as_distribution
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import Wheel
from tests.support.cases import CUDNN, TORCH, incident, lacking_symbols
from tests.support.fakes import SITE, Claim, Disk, Row, at, distribution, elf, record_hash, snapshot
from tests.support.wheels import wheel

CU12 = wheel("nvidia-cudnn-cu12", "9.10.2.21", {CUDNN: b"cu12", "nvidia/cudnn/h.h": b"12"},
             objects=[elf(at(CUDNN), "libcudnn.so.9")])  # fmt: skip


def judging(snap: Snapshot) -> ChangeJudge:
    """Return the judge of a snapshot."""
    return ChangeJudge(snap, Owners(snap.distributions), use_library_path=False)


def named(snap: Snapshot, *names: str) -> tuple[Distribution, ...]:
    """Return the distributions of some names."""
    return tuple(item for item in snap.distributions if item.name in names)


def judged(
    snap: Snapshot, *leaving: str, restored: tuple[Wheel, ...] = (), installed: tuple[Wheel, ...] = (), **more: Any
) -> Judgement:
    """Judge a change."""
    pairs = tuple((named(snap, item.name)[0], item) for item in restored)
    return judging(snap).judge(Change(leaving=named(snap, *leaving), restored=pairs, installed=installed, **more))


def test_a_removal_alone() -> None:
    """The survivor is overwritten, its consumer finds nothing."""
    found = judged(incident(), "nvidia-cudnn-cu13")
    assert [item.survivor.name for item in found.ownership.overwritten] == ["nvidia-cudnn-cu12"]
    assert [item.name for item in found.linkage.blocking] == ["libcudnn.so.9"]
    assert (found.is_clean, found.written) == (False, {})


def test_a_restoration_brings_files_and_libraries() -> None:
    """Nothing is lost, and what is written is known by its hash; wheels are those of survivors first."""
    new = wheel("new")
    found = judged(incident(), "nvidia-cudnn-cu13", restored=(CU12,), installed=(new,))
    assert found.is_clean
    assert found.written == {at(CUDNN): record_hash(b"cu12"), at("nvidia/cudnn/h.h"): record_hash(b"12")}
    assert found.change.wheels == (CU12, new)


def test_what_a_wheel_does_not_bring_is_lost_all_the_same() -> None:
    """A wheel that lacks a file of the RECORD, and a library that is not in it."""
    found = judged(
        incident(), "nvidia-cudnn-cu13", restored=(wheel("nvidia-cudnn-cu12", "9.10.2.21", {CUDNN: b"cu12"}),)
    )
    (overwritten,) = found.ownership.overwritten
    assert overwritten.paths == (at("nvidia/cudnn/h.h"),)
    assert [item.name for item in found.linkage.blocking] == ["libcudnn.so.9"]


def test_a_restored_library_is_taken_away_first() -> None:
    """Whoever loads a library that the reinstallation does not bring again loses it."""
    snap = snapshot(
        distribution("lib", claims={"l.so": b"l", "x": b"x"}),
        distribution("app", claims={"app.so": b"a"}),
        distribution("other", claims={"x": b"yy"}),
        objects=[elf(at("l.so"), "l.so"), elf(at("app.so"), None, "l.so", rpath="$ORIGIN")],
    )
    found = judged(snap, "other", restored=(wheel("lib", claims={"l.so": b"l", "x": b"x"}),))
    assert [item.name for item in found.linkage.blocking] == ["l.so"]


def test_the_same_bytes_from_another_wheel_are_no_loss() -> None:
    """Who writes them does not matter; other bytes do, and so do paths without a hash."""
    snap = snapshot(
        distribution("a", claims={"x": b"a", "y": Row(content=b"y")}), distribution("b", claims={"x": b"bb", "y": b"y"})
    )
    assert not judged(snap, "b").is_clean
    assert judged(snap, "b", installed=(wheel("new", claims={"x": b"a"}),)).is_clean
    assert not judged(snap, "b", installed=(wheel("new", claims={"x": b"new"}),)).is_clean


def test_a_script_of_the_own_wheel_is_its_own() -> None:
    """Installers write another first line, so that hashes of scripts differ between a wheel and a RECORD."""
    script = "../../../bin/tool"
    snap = snapshot(distribution("a", claims={script: b"#!/env/bin/python"}), distribution("b", claims={script: b"b"}))
    assert judged(snap, "b", restored=(wheel("a", claims={script: b"#!python"}),)).is_clean


def test_damage_and_edits_that_a_wheel_mends_are_no_news() -> None:
    """A note about a file is for one that stays as it is."""
    snap = snapshot(
        distribution("a", claims={"x": b"a", "e": b"a"}),
        distribution("c", claims={"x": b"cc"}),
        distribution("b", claims={"x": b"bb", "e": b"b"}),
        disk={"x": b"cc", "e": b"edited"},
    )
    before = judged(snap, "b").ownership
    assert [item.survivor.name for item in before.damaged] == ["a"]
    assert before.edited == (at("e"),)
    after = judged(snap, "b", restored=(wheel("a", claims={"x": b"a", "e": b"a"}),)).ownership
    assert (after.damaged, after.edited) == ((), ())


@pytest.mark.parametrize(
    ("brought", "lost"),
    [
        ({"x": b"new"}, [("good", (at("x"),))]),
        ({"x": b"new", "y": b"new", "z": b"z"}, [("good", (at("x"), at("y")))]),
        ({"x": b"good"}, []),
        ({"x.pyc": b"new"}, []),
        ({"free": b"new"}, []),
        ({"stale": b"new"}, []),
        ({"unhashed": b"new"}, []),
    ],
)
def test_collisions(brought: dict[str, bytes], lost: list[tuple[str, tuple[str, ...]]]) -> None:
    """Other bytes over a survivor's good file; byte code, files that were not good and rows without a hash are none."""
    good: dict[str, Claim] = {
        "x": b"good",
        "y": b"good",
        "x.pyc": b"code",
        "stale": b"good",
        "unhashed": Row(content=b"?"),
    }
    snap = snapshot(distribution("good", claims=good), distribution("old"), disk={"stale": b"edited"})
    found = judged(snap, "old", installed=(wheel("new", claims=brought),))
    assert [(item.survivor.name, item.paths) for item in found.collisions] == lost
    assert found.is_clean is not bool(lost)


def test_a_restored_survivor_is_whole_for_collisions() -> None:
    """Whatever was on disk: its own files are there now, and must stay; its own wheel is no danger to it."""
    snap = snapshot(distribution("a", claims={"x": b"a"}), distribution("b", claims={"x": b"bb"}))
    own = wheel("a", claims={"x": b"a"})
    found = judged(snap, "b", restored=(own,), installed=(wheel("new", claims={"x": b"new"}),))
    assert [(item.survivor.name, item.wheel.name) for item in found.collisions] == [("a", "new")]
    assert judged(snap, "b", restored=(own,)).collisions == ()


def test_wheels_may_overwrite_each_other() -> None:
    """The later one is told of, once; equal bytes are no news."""
    snap = snapshot(distribution("old"))
    first, second = wheel("a", claims={"x": b"a", "y": b"same"}), wheel("b", claims={"x": b"b", "y": b"same"})
    found = judged(snap, "old", installed=(first, second))
    assert [(item.survivor.name, item.wheel.name, item.paths) for item in found.collisions] == [("a", "b", (at("x"),))]


def test_who_yields_may_be_overwritten() -> None:
    """A repair has chosen."""
    snap = snapshot(distribution("a", claims={"x": b"a"}), distribution("b", claims={"x": b"bb"}))
    own = wheel("a", claims={"x": b"a"})
    assert [item.survivor.name for item in judged(snap, restored=(own,)).collisions] == ["b"]
    yielding = frozenset(item.metadata_path for item in named(snap, "b"))
    assert judged(snap, restored=(own,), yielding=yielding).is_clean


def test_requirements_of_survivors_and_of_newcomers() -> None:
    """Each is told once: what a survivor had, and what a newcomer lacks."""
    snap = snapshot(distribution("lib", "1"), distribution("app", requires=("lib",)))
    found = judged(snap, "lib", installed=(wheel("new", requires=("lib>=1", "app")),))
    assert [(item.dependent.name, item.requirement) for item in found.requirements] == [("app", "lib")]
    assert [(item.name, text) for item, text in found.unmet] == [("new", "lib>=1")]
    assert not found.is_clean
    replaced = judged(snap, "lib", installed=(wheel("lib", "2"), wheel("new", requires=("lib>=1",))))
    assert replaced.is_clean
    assert not judged(snap, installed=(wheel("new", requires=("absent",)),)).is_clean


def test_symbols_count_as_a_loss() -> None:
    """A provider that lacks what its consumer needs is none."""
    found = judged(lacking_symbols(), "first")
    assert (found.linkage.blocking, found.is_clean) == ((), False)


def test_the_same_question_is_answered_once() -> None:
    """By what goes, comes and yields; the order in which it is written does not matter."""
    snap = incident()
    judge = judging(snap)
    assert isinstance(snap.evidence, Disk)
    leaving = named(snap, "nvidia-cudnn-cu13", "torch")
    first = judge.judge(Change(leaving=leaving))
    asked = len(snap.evidence.hashed)
    assert judge.judge(Change(leaving=leaving[::-1])) is first
    assert len(snap.evidence.hashed) == asked
    assert judge.judge(Change(leaving=leaving, installed=(wheel("new"),))) is not first
    assert judge.judge(Change(leaving=leaving, yielding=frozenset({"x"}))) is not first


def test_a_wheel_as_the_distribution_that_it_makes() -> None:
    """With its claims and its requirements."""
    found = as_distribution(wheel("new", "2", {"x": b"x"}, requires=("lib",)), incident())
    assert (found.label, found.requires, found.site_packages) == ("new 2", ("lib",), SITE)
    assert found.metadata_path == at("new-2.dist-info")
    assert [row.path for row in found.record.rows] == [at("x")]
    assert TORCH not in str(found)


def test_a_newcomer_may_take_the_place_of_a_provider() -> None:
    """It is found first: the change is told, and its symbols are the probe's to check, not being on disk yet."""
    snap = snapshot(
        distribution("lib", claims={"second/l.so": b"l"}),
        distribution("app", claims={"app.so": b"a"}),
        objects=[
            elf(at("second/l.so"), "l.so"),
            elf(at("app.so"), None, "l.so", rpath="$ORIGIN/first:$ORIGIN/second"),
        ],
    )
    new = wheel("new", claims={"first/l.so": b"new"}, objects=[elf(at("first/l.so"), "l.so")])
    found = judged(snap, installed=(new,))
    (change,) = found.linkage.changes
    assert (change.before, change.after) == (at("second/l.so"), at("first/l.so"))
    assert found.is_clean
