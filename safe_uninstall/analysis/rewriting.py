"""Finds the change that comes nearest to a request and loses nothing, by the rewrites that are allowed.

Losses of the change at hand become conditions of a problem (``rewrite``), its solution the next change, until nothing
is lost or the conditions contradict each other. Only what a loss names ever enters the problem.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from safe_uninstall.analysis.change import Change, ChangeJudge, Judgement
from safe_uninstall.analysis.metadata import unmet_requirements
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.requested import Asked, combine
from safe_uninstall.analysis.rewrite import Condition, Impossible, Option, Problem, State, solve
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.plan import Rewrite
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import Wheel, WheelSource, WheelUnavailable

_ROUNDS = 50
"""Each round adds conditions about distributions that no round named before; chains are far shorter."""

_KEPT = frozenset({State.KEPT})
_REMOVED = frozenset({State.REMOVED})
_RESTORED = frozenset({State.RESTORED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """A change without losses."""

    judgement: Judgement
    kept: Mapping[str, tuple[str, ...]]
    """Requested distributions that stay (metadata path), each with what needs them, in words."""
    cascaded: Mapping[str, tuple[str, ...]]
    """Distributions that go though nobody named them (metadata path), each with what they would miss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """No allowed change is without losses."""

    judgement: Judgement
    """Of the request as it stands."""
    causes: tuple[str, ...] = ()
    """What contradicts each other, in words."""
    unavailable: tuple[WheelUnavailable, ...] = ()
    """Wheels that would have been needed."""


def rewrite(
    snapshot: Snapshot,
    owners: Owners,
    judge: ChangeJudge,
    asked: Asked,
    *,
    rewrites: frozenset[Rewrite],
    wheels: WheelSource | None,
) -> Resolution | Unresolved:
    """Return the nearest change to a request by the rewrites that are allowed, substitutes included.

    A substitute is what an affected consumer's own Requires-Dist names and nobody provides. It is tried where the
    other rewrites find nothing, and accepted only if nothing is lost with it: if its libraries are where they are
    looked for.

    Args:
        snapshot: the baseline.
        owners: who claims which path.
        judge: judges changes of the baseline.
        asked: the request, resolved.
        rewrites: what may be done.
        wheels: where wheels come from.
    """
    found = resolve(
        snapshot,
        owners,
        judge,
        leaving=asked.leaving,
        installed=asked.installed,
        rewrites=rewrites,
        wheels=wheels,
    )
    if isinstance(found, Resolution) or Rewrite.SUBSTITUTE not in rewrites or wheels is None:
        return found
    wanted = _missing_requirements(snapshot, found.judgement)
    if not wanted:
        return found
    substitutes = wheels.resolve(wanted)
    if isinstance(substitutes, WheelUnavailable):
        return Unresolved(judgement=found.judgement, causes=found.causes, unavailable=(*found.unavailable, substitutes))
    more = combine(snapshot, asked.leaving, (*asked.installed, *substitutes))
    with_them = resolve(
        snapshot,
        owners,
        judge,
        leaving=more.leaving,
        installed=more.installed,
        rewrites=rewrites,
        wheels=wheels,
    )
    return with_them if isinstance(with_them, Resolution) else found


def _missing_requirements(snapshot: Snapshot, judgement: Judgement) -> tuple[str, ...]:
    """Return what the consumers of lost libraries require and do not have, sorted."""
    names = {
        consumer.distribution.name
        for loss in judgement.linkage.blocking
        for consumer in loss.consumers
        if consumer.distribution is not None
    }
    gone = {item.metadata_path for item in judgement.change.leaving}
    staying = [item for item in snapshot.distributions if item.metadata_path not in gone]
    affected = [item for item in staying if item.name in names]
    unmet = unmet_requirements(affected, staying, snapshot.environment.markers)
    return tuple(sorted({requirement for _, requirement in unmet}))


def resolve(
    snapshot: Snapshot,
    owners: Owners,
    judge: ChangeJudge,
    *,
    leaving: tuple[Distribution, ...],
    installed: tuple[Wheel, ...] = (),
    rewrites: frozenset[Rewrite] = frozenset(),
    wheels: WheelSource | None = None,
) -> Resolution | Unresolved:
    """Return the nearest change without losses, or why there is none.

    Args:
        snapshot: the baseline.
        owners: who claims which path.
        judge: judges changes of the baseline.
        leaving: the distributions that the request names, and old versions of ``installed``.
        installed: wheels that come with the request.
        rewrites: what may be done to avoid a loss.
        wheels: where wheels come from; needed for restore.
    """
    return _Search(snapshot, owners, judge, leaving, installed, rewrites, wheels).run()


@dataclass(slots=True)
class _Search:
    _snapshot: Snapshot
    _owners: Owners
    _judge: ChangeJudge
    _leaving: tuple[Distribution, ...]
    _installed: tuple[Wheel, ...]
    _rewrites: frozenset[Rewrite]
    _wheels: WheelSource | None
    _conditions: dict[str, Condition] = field(default_factory=dict)
    _affected: dict[str, Distribution] = field(default_factory=dict)
    _restorable: set[str] = field(default_factory=set)
    _unavailable: dict[str, WheelUnavailable] = field(default_factory=dict)

    def run(self) -> Resolution | Unresolved:
        self._affected = {item.metadata_path: item for item in self._leaving}
        first = self._judge.judge(Change(leaving=self._leaving, installed=self._installed))
        judgement = first
        seen: set[frozenset[tuple[str, State]]] = set()
        while not judgement.is_clean and len(seen) < _ROUNDS:
            self._add_conditions(judgement)
            solution = solve(self._problem())
            if isinstance(solution, Impossible):
                return Unresolved(
                    judgement=first, causes=solution.causes, unavailable=tuple(self._unavailable.values())
                )
            assignment = frozenset(solution.states.items())
            if assignment in seen:
                break
            seen.add(assignment)
            judgement = self._judge.judge(self._change(solution.states))
        if not judgement.is_clean:
            return Unresolved(judgement=first, unavailable=tuple(self._unavailable.values()))
        gone = {item.metadata_path for item in judgement.change.leaving}
        requested = {item.metadata_path for item in self._leaving}
        return Resolution(
            judgement=judgement,
            kept={path: self._reasons(path, State.KEPT) for path in sorted(requested - gone)},
            cascaded={path: self._reasons(path, State.REMOVED) for path in sorted(gone - requested)},
        )

    def _add_conditions(self, judgement: Judgement) -> None:
        """Turn every loss into the condition that it does not happen, with all ways of seeing to that."""
        gone = {item.metadata_path for item in judgement.change.leaving}
        by_name: dict[str, list[Distribution]] = {}
        for item in self._snapshot.distributions:
            by_name.setdefault(item.name, []).append(item)
        for overwritten in judgement.ownership.overwritten:
            survivor = overwritten.survivor
            self._add(
                f"{survivor.label} keeps its files",
                [
                    self._all(overwritten.by, _KEPT),
                    self._all([survivor], _RESTORED),
                    self._all([survivor], _REMOVED),
                ],
            )
        for loss in judgement.linkage.blocking:
            claimed = self._owners.of(loss.provider)
            consumers = [
                item
                for consumer in loss.consumers
                if consumer.distribution is not None
                for item in by_name.get(consumer.distribution.name, ())
            ]
            options = [self._all([item for item in claimed if item.metadata_path in gone], _KEPT)]
            options += [self._all([item], _RESTORED) for item in claimed if item.metadata_path not in gone]
            if all(consumer.distribution is not None for consumer in loss.consumers):
                options.append(self._all(consumers, _REMOVED))
            needing = ", ".join(sorted({item.label for item in consumers})) or loss.consumers[0].path
            self._add(f"{needing} finds {loss.name}", options)
        for change in judgement.linkage.incompatible:
            owners = [item for item in self._owners.of(change.before) if item.metadata_path in gone]
            consumer = change.consumer.distribution
            options = [self._all(owners, _KEPT)]
            if consumer is not None:
                options.append(self._all(by_name.get(consumer.name, ()), _REMOVED))
            who = change.consumer.path if consumer is None else consumer.label
            self._add(f"{who} finds the symbols of {change.name}", options)
        for lost in judgement.requirements:
            self._add(
                f"{lost.dependent.label} has {lost.requirement}",
                [self._all([lost.by], _KEPT), self._all([lost.dependent], _REMOVED)],
            )
        for collision in judgement.collisions:
            wheel = collision.wheel
            self._add(
                f"{wheel.name} {wheel.version} and {collision.survivor.label} do not overwrite each other",
                [
                    self._all(by_name.get(wheel.name, ()), frozenset({State.KEPT, State.REMOVED})),
                    self._all([collision.survivor], _REMOVED),
                ]
                if all(wheel is not item for item in self._installed)
                else [self._all([collision.survivor], _REMOVED)],
            )
        for comer, requirement in judgement.unmet:
            # What comes with the request cannot be changed, and nothing here can provide what it lacks.
            self._add(f"{comer.label} has {requirement}", [])

    def _add(self, key: str, options: Iterable[Option | None]) -> None:
        self._conditions[key] = Condition(key=key, options=tuple(item for item in options if item is not None))

    def _all(self, distributions: Iterable[Distribution], states: frozenset[State]) -> Option | None:
        """Return the option that all of some distributions are in given states; None when there are none of them."""
        requires = {}
        for item in distributions:
            self._affected[item.metadata_path] = item
            requires[item.metadata_path] = states
            if State.RESTORED in states:
                self._restorable.add(item.metadata_path)
        return Option(requires=tuple(sorted(requires.items()))) if requires else None

    def _problem(self) -> Problem:
        requested = {item.metadata_path for item in self._leaving}
        return Problem(
            states={path: self._states(item, path in requested) for path, item in self._affected.items()},
            requested=tuple(sorted(requested)),
            conditions=tuple(self._conditions[key] for key in sorted(self._conditions)),
        )

    def _states(self, item: Distribution, requested: bool) -> tuple[State, ...]:
        """Return the states that the allowed rewrites leave to a distribution, the preferred one first."""
        if requested:
            replaced = any(wheel.name == item.name for wheel in self._installed)
            keep = Rewrite.KEEP_NEEDED in self._rewrites and not replaced
            return (State.REMOVED, State.KEPT) if keep else (State.REMOVED,)
        states = [State.KEPT]
        # A wheel is asked for only where it would help: it may have to be fetched.
        wanted = Rewrite.RESTORE in self._rewrites and item.metadata_path in self._restorable
        if wanted and self._wheel(item) is not None:
            states.append(State.RESTORED)
        if Rewrite.CASCADE in self._rewrites and item.owned_here and item.conda_package is None:
            states.append(State.REMOVED)
        return tuple(states)

    def _wheel(self, item: Distribution) -> Wheel | None:
        if self._wheels is None or not item.owned_here:
            return None
        found = self._wheels.restore(item)
        if isinstance(found, WheelUnavailable):
            self._unavailable[item.metadata_path] = found
            return None
        return found

    def _change(self, states: Mapping[str, State]) -> Change:
        leaving = [self._affected[path] for path, state in states.items() if state is State.REMOVED]
        restored = []
        for path, state in states.items():
            if state is State.RESTORED:
                wheel = self._wheel(self._affected[path])
                assert wheel is not None
                restored.append((self._affected[path], wheel))
        return Change(
            leaving=tuple(sorted(leaving, key=lambda item: (item.name, item.metadata_path))),
            restored=tuple(sorted(restored, key=lambda pair: pair[0].name)),
            installed=self._installed,
        )

    def _reasons(self, path: str, state: State) -> tuple[str, ...]:
        """Return the conditions that put a distribution into a state nobody asked for."""
        return tuple(
            key
            for key in sorted(self._conditions)
            if any(
                path == name and state in states
                for option in self._conditions[key].options
                for name, states in option.requires
            )
        )


@dataclass(slots=True)
class PresumedWheels:
    """Stands for the wheels of survivors before any is fetched: what their RECORD says, libraries as they are now.

    Good enough to say which rewrites would work; the run itself reads the real wheels.
    """

    _snapshot: Snapshot
    _known: dict[str, Wheel | WheelUnavailable] = field(default_factory=dict)

    def restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        """Return what a distribution's wheel must hold, or why it cannot come from anywhere."""
        path = distribution.metadata_path
        if path not in self._known:
            self._known[path] = self._presume(distribution)
        return self._known[path]

    def _presume(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        url = distribution.direct_url
        pin = f"{distribution.name}=={distribution.version}"
        if url is not None and (url.editable or url.vcs is not None or url.is_directory):
            return WheelUnavailable(requirement=pin, reason=f"{distribution.label} was installed from {url.url}")
        info = distribution.metadata_path + "/"
        rows = tuple(row for row in distribution.record.rows if row.hash and not row.path.startswith(info))
        objects = self._snapshot.objects
        return Wheel(
            name=distribution.name,
            version=distribution.version,
            file="",
            sha256="",
            size=0,
            installed_size=sum(row.size or 0 for row in rows),
            source="presumed",
            metadata_path=distribution.metadata_path,
            rows=rows,
            objects={row.path: objects[row.path] for row in rows if row.path in objects},
            requires=distribution.requires,
            provides_extra=distribution.provides_extra,
        )

    def resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        """Presume nothing about what is not installed."""
        return WheelUnavailable(requirement=" ".join(requirements), reason="not looked for")
