"""Whatever the environment and the request: a plan that is not blocked loses nothing, and an offered rewrite works.

Losses are found by a model of its own, which shares no code with the analysis: a table of files, RPATH alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from safe_uninstall.analysis.change import Change, ChangeJudge
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.analysis.presumed import PresumedWheels
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.plan import ActionKind, Plan, Request, Rewrite, Verdict
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import Wheel
from tests.support.fakes import SITE, Disk, at, distribution, elf, record_hash, snapshot
from tests.support.wheels import FakeWheels, wheel

NAMES = ("d0", "d1", "d2", "d3", "d4")
LIBRARIES = tuple(f"{directory}/lib{number}.so" for directory in ("a", "b") for number in (0, 1))
CONSUMERS = ("c/m0.so", "c/m1.so")
FILES = ("f0.py", "f1.py")
PATHS = (*LIBRARIES, *CONSUMERS, *FILES)
SONAMES = ("lib0.so", "lib1.so")


@dataclass(frozen=True)
class Case:
    """An environment, a request, and what wheels there are."""

    snapshot: Snapshot
    request: Request
    wheels: FakeWheels

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Let Hypothesis show what a failure needs, and no more."""
        brought: list[Distribution | Wheel] = [*self.snapshot.distributions, *self.wheels.index["new"]]
        lines = [f"{item.name} {item.version} {rows(item)} requires {item.requires}" for item in brought]
        lines += [f"{item.path} needs {item.needed}, RPATH {item.rpath}" for item in self.snapshot.objects.values()]
        assert isinstance(self.snapshot.files, Disk)
        lines += [str(self.snapshot.files.files), f"no wheels: {list(self.wheels.restores)}", str(self.request)]
        printer.text("\n".join(lines).replace(f"{SITE}/", ""))


claims = st.dictionaries(st.sampled_from(PATHS), st.sampled_from([b"1", b"2", b"33"]), max_size=5)
needs = st.lists(st.sampled_from(SONAMES), max_size=2, unique=True)
rpaths = st.sampled_from([None, "$ORIGIN/../a", "$ORIGIN/../b", "$ORIGIN/../a:$ORIGIN/../b"])
rewrites = st.lists(st.sampled_from(list(Rewrite)), unique=True).map(tuple)


@st.composite
def cases(draw: st.DrawFn, *, most: int = 5, plain: bool = False) -> Case:
    """Draw a case; distributions are installed in the order of their numbers, each over what is there.

    Args:
        draw: Hypothesis.
        most: distributions at most.
        plain: whether nothing is installed and nothing accepted.
    """
    names = NAMES[: draw(st.integers(1, most))]
    wanted = st.sampled_from([*names, *(f"{name}>=2" for name in names), "new"])
    requirements = st.lists(wanted, max_size=2, unique=True).map(tuple)
    versions = st.sampled_from(["1", "2"])
    installed = [distribution(name, draw(versions), draw(claims), requires=draw(requirements)) for name in names]
    written = {path for item in installed for path in item.written}
    missing = draw(st.lists(st.sampled_from(PATHS), max_size=1))
    facts = {at(path): elf(at(path), None if path in CONSUMERS else path[2:], *draw(needs), rpath=draw(rpaths))
             for path in (*LIBRARIES, *CONSUMERS)}  # fmt: skip
    snap = snapshot(
        *installed,
        disk=dict.fromkeys(missing),
        objects=[item for path, item in facts.items() if path in written and path not in map(at, missing)],
    )
    comers = []
    for name in draw(st.sampled_from([["new"], ["new", "more"], [names[0]]])):
        brought = draw(claims)
        objects = [facts[at(path)] for path in brought if at(path) in facts]
        comers.append(wheel(name, "3", brought, requires=draw(requirements), objects=objects))
    accepted = st.lists(st.sampled_from(["lib0.so", *names]), max_size=1).map(tuple)
    request = Request(
        names=tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))),
        rewrites=draw(rewrites),
        install=("new",) if not plain and draw(st.booleans()) else (),
        accepted_losses=() if plain else draw(accepted),
    )
    restores: dict[str, Wheel | None] = {}
    for item in draw(st.lists(st.sampled_from(installed), max_size=1)):
        there = item.distribution
        whole = PresumedWheels(snap).restore(there)
        assert isinstance(whole, Wheel)
        lacking = draw(st.sampled_from(["", *rows(whole)]))
        held = {path: found for path, found in whole.objects.items() if path != lacking}
        less = replace(whole, rows=tuple(row for row in whole.rows if row.path != lacking), objects=held)
        restores[there.name] = less if lacking else None
    return Case(snap, request, FakeWheels(snap, restores=restores, index={"new": comers}))


def planned(case: Case, request: Request) -> Plan:
    """Plan a request; one whose accepted loss is none counts for nothing."""
    try:
        return make_plan(case.snapshot, request, case.wheels)
    except UsageError as error:
        assume("loses no such thing" not in error.message)
        raise


# The model.


@dataclass(frozen=True)
class World:
    """One state of an environment."""

    files: Mapping[str, str]
    """Path to the hash of its bytes."""
    facts: Mapping[str, ElfObject]
    """Of the ELF files among them."""
    there: Mapping[str, Distribution | Wheel]
    """By metadata path."""

    def load(self, root: str) -> dict[tuple[str, str], str | None]:
        """Return what a load binds: (consumer, needed name) to the provider."""
        searched = {root: self._directories(root)}
        named = {root.rpartition("/")[2]: root} if self.facts[root].soname else {}
        bound: dict[tuple[str, str], str | None] = {}
        waiting = [root]
        while waiting:
            consumer = waiting.pop(0)
            for name in self.facts[consumer].needed:
                if name not in named:
                    found = [f"{place}/{name}" for place in searched[consumer] if f"{place}/{name}" in self.facts]
                    if found:
                        named[name] = found[0]
                        # A library is searched for in the RPATH of its loaders too.
                        searched[found[0]] = (*self._directories(found[0]), *searched[consumer])
                        waiting.append(found[0])
                bound[consumer, name] = named.get(name)
        return bound

    def _directories(self, path: str) -> tuple[str, ...]:
        rpath = self.facts[path].rpath
        return () if rpath is None else tuple(rpath.replace("$ORIGIN/..", SITE).split(":"))

    def meets(self, requirement: str) -> bool:
        """Return whether a distribution satisfies a requirement."""
        name, _, least = requirement.partition(">=")
        return any(item.name == name and int(item.version) >= int(least or 0) for item in self.there.values())

    def owners(self, path: str | None) -> set[str]:
        """Return the names of those that claim a path."""
        return {item.name for item in self.there.values() if path in rows(item)}


def rows(item: Distribution | Wheel) -> dict[str, str]:
    """Return the claims that have a hash."""
    listed = item.rows if isinstance(item, Wheel) else item.record.rows
    return {row.path: row.hash for row in listed if row.hash}


def baseline(snap: Snapshot) -> World:
    """Return the environment as it is."""
    assert isinstance(snap.files, Disk)
    files = {path: record_hash(data) for path, data in snap.files.files.items() if isinstance(data, bytes)}
    return World(files, snap.objects, {item.metadata_path: item for item in snap.distributions})


def outcome(before: World, plan: Plan) -> World:
    """Return the environment after an installer removed what goes, released paths were put back, and wheels written."""
    files = dict(before.files)
    facts = dict(before.facts)
    there = dict(before.there)
    for path in plan.prediction.removed:
        item = there.pop(path)
        assert isinstance(item, Distribution)
        for row in item.record.rows:
            if row.path not in plan.prediction.released:
                files.pop(row.path, None)
    for brought in plan.wheels:
        files.update(rows(brought))
        facts.update(brought.objects)
        there.setdefault(brought.metadata_path, brought)
    return World(files, {path: item for path, item in facts.items() if path in files}, there)


def losses(before: World, after: World, fresh: tuple[Wheel, ...]) -> Iterator[tuple[str, set[str]]]:
    """Yield what was so before and is not so after: in words, with the names by which it could be accepted.

    Args:
        before: the baseline.
        after: the outcome.
        fresh: what was installed.
    """
    for path, item in after.there.items():
        if path not in before.there:
            yield from ((f"{item.name} lacks {text}", {item.name}) for text in item.requires if not after.meets(text))
            continue
        for text in item.requires:
            if before.meets(text) and not after.meets(text):
                yield f"{item.name} misses {text}", {item.name, text.partition(">=")[0]}
        for claim, digest in rows(item).items():
            held, holds = before.files.get(claim), after.files.get(claim)
            if holds != digest if held == digest else held is not None and holds is None:
                yield f"{item.name} loses {claim}", {item.name, claim.rpartition("/")[2]}
    written = {claim: digest for item in fresh for claim, digest in rows(item).items()}
    for brought in fresh:
        for claim, digest in rows(brought).items():
            if after.files[claim] != digest:
                yield f"{brought.name} overwrites {claim} for another", {brought.name, claim.rpartition("/")[2]}
    for root in before.facts.keys() & after.facts.keys():
        bound = before.load(root)
        for need, provider in after.load(root).items():
            if provider is None and bound.get(need, "new") is not None and not (root in written and need not in bound):
                concerned = before.owners(need[0]) | before.owners(bound.get(need))
                yield f"{root}: {need[0]} misses {need[1]}", concerned | {need[1], need[0].rpartition("/")[2]}


@given(cases())
@settings(max_examples=250, deadline=None)
def test_a_plan_that_is_not_blocked_loses_nothing(case: Case) -> None:
    """No file, no library, no requirement; and nothing is done that the rewrites do not allow."""
    plan = planned(case, case.request)
    request = case.request
    if plan.verdict is Verdict.BLOCK:
        return
    before = baseline(case.snapshot)
    after = outcome(before, plan)
    prediction = plan.prediction
    assert prediction.deleted == before.files.keys() - after.files.keys()
    accepted = set(request.accepted_losses)
    assert [words for words, names in losses(before, after, plan.wheels) if not names & accepted] == []

    named = {item.metadata_path for item in case.snapshot.distributions if item.name in request.names}
    replaced = {
        item.metadata_path for item in case.snapshot.distributions if item.name in {new.name for new in plan.wheels}
    } - prediction.restored
    assert named <= prediction.removed or Rewrite.KEEP_NEEDED in request.rewrites
    assert prediction.removed <= named | replaced or Rewrite.CASCADE in request.rewrites
    assert not prediction.restored or Rewrite.RESTORE in request.rewrites
    assert not prediction.installed or request.install or Rewrite.SUBSTITUTE in request.rewrites
    if plan.verdict is Verdict.ALLOW:
        assert prediction.removed == named | replaced


@given(cases())
@settings(max_examples=200, deadline=None)
def test_every_rewrite_that_is_offered_works(case: Case) -> None:
    """Planned as a request of its own it is not blocked, and does what was offered."""
    plan = planned(case, case.request)
    for offered in plan.alternatives:
        assert plan.verdict is Verdict.BLOCK
        # Wheels are presumed to be had.
        known = FakeWheels(case.snapshot, index=case.wheels.index)
        request = replace(case.request, rewrites=(*case.request.rewrites, *offered.rewrites))
        again = planned(replace(case, wheels=known), request)
        assert again.verdict is Verdict.REWRITE
        if Rewrite.SUBSTITUTE not in request.rewrites:
            done = [(item.kind, item.distribution, item.requested) for item in again.actions]
            assert done == [(item.kind, item.distribution, item.requested) for item in offered.actions]
        assert any(item.kind in (ActionKind.UNINSTALL, ActionKind.INSTALL) for item in again.actions)


@given(cases(most=4, plain=True))
@settings(max_examples=120, deadline=None)
def test_what_is_blocked_has_no_way_out(case: Case) -> None:
    """No allowed combination of states is without losses: brute force over all of them agrees."""
    request = replace(case.request, rewrites=tuple(set(case.request.rewrites) - {Rewrite.SUBSTITUTE}))
    plan = planned(case, request)
    if plan.verdict is not Verdict.BLOCK:
        return
    judge = ChangeJudge(case.snapshot, Owners(case.snapshot.distributions), use_library_path=False)
    for change in changes(case, request):
        assert not judge.judge(change).is_clean or not all(
            breaks(judge, change, item) for item in change.leaving if item.name not in request.names
        )


def breaks(judge: ChangeJudge, change: Change, item: Distribution) -> bool:
    """Return whether a distribution would need in vain what a change removes, if it stayed."""
    left = judge.judge(replace(change, leaving=tuple(other for other in change.leaving if other is not item)))
    found = left.linkage
    consumers = [consumer for loss in found.blocking for consumer in loss.consumers]
    consumers += [changed.consumer for changed in found.incompatible]
    names = {consumer.distribution.name for consumer in consumers if consumer.distribution is not None}
    return item.name in names or any(lost.dependent is item for lost in left.requirements)


def changes(case: Case, request: Request) -> Iterator[Change]:
    """Yield all changes that a request allows."""
    states: list[Iterable[str]] = []
    for item in case.snapshot.distributions:
        kept = ["kept"]
        if Rewrite.RESTORE in request.rewrites and isinstance(case.wheels.restore(item), Wheel):
            kept.append("restored")
        if item.name in request.names:
            states.append(["removed", *(kept if Rewrite.KEEP_NEEDED in request.rewrites else ())])
        else:
            states.append([*kept, *(["removed"] if Rewrite.CASCADE in request.rewrites else ())])
    for chosen in product(*states):
        pairs = list(zip(case.snapshot.distributions, chosen, strict=True))
        restored = [(item, case.wheels.restore(item)) for item, state in pairs if state == "restored"]
        yield Change(
            leaving=tuple(item for item, state in pairs if state == "removed"),
            restored=tuple((item, found) for item, found in restored if isinstance(found, Wheel)),
        )
