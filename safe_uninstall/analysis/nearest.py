"""Searches the change that comes nearest to a request and loses nothing.

Losses of the change at hand become conditions of a problem (``rewrite``), its solution the next change, until nothing
is lost or the conditions contradict each other. Only what a loss names ever enters the problem.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from safe_uninstall.analysis.change import Change, ChangeJudge, Judgement
from safe_uninstall.analysis.conditions import SUBSTITUTES, Demand, Demands
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.problem import Condition, Impossible, Option, Problem, State, holds
from safe_uninstall.analysis.requested import Asked, combine
from safe_uninstall.analysis.rewrite import solve
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.plan import Code, Rewrite
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import Wheel, WheelSource, WheelUnavailable

_ROUNDS = 100
"""Each round rules out the change of the one before, and most name what no round named before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What all searches of one plan have in common."""

    snapshot: Snapshot
    owners: Owners
    judge: ChangeJudge
    remaining: Callable[[Judgement], Judgement]
    """Leaves the losses out of a judgement that the user accepts."""
    refusals: Callable[[Distribution], frozenset[Code]]
    """Why a distribution must not be removed, whatever it would lose or save; nothing for most."""
    objections: Callable[[Judgement], tuple[str, ...]]
    """Errors of a plan without losses, in words: whatever else forbids it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """A change without losses."""

    judgement: Judgement
    kept: Mapping[str, tuple[str, ...]]
    """Requested distributions that stay (metadata path), each with what needs them, in words."""
    cascaded: Mapping[str, tuple[str, ...]]
    """Distributions that go though nobody named them (metadata path), each with what they would miss."""
    substituted: Mapping[str, tuple[str, ...]]
    """Wheels that nobody named (metadata path), each with what needs them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One of the conditions that contradict each other."""

    words: str
    subject: str
    """Soname, or name of the distribution, that the finding about it bears."""


@dataclass(slots=True)
class Search:
    """One search, over what some rewrites allow."""

    _ground: Ground
    _asked: Asked
    _rewrites: frozenset[Rewrite]
    _wheels: WheelSource
    _substitutes: tuple[Wheel, ...]
    _answers: dict[str, Wheel | WheelUnavailable]
    """What the source of wheels said, by metadata path."""
    _demands: dict[str, Demand] = field(default_factory=dict)
    """By a key that tells apart what is said in the same words; without the options that are no way out."""
    _affected: dict[str, Distribution] = field(default_factory=dict)
    _restorable: set[str] = field(default_factory=set)
    _breaking: set[str] = field(default_factory=set)
    _by_path: dict[str, Distribution] = field(default_factory=dict)
    _requested: frozenset[str] = frozenset()

    def run(self) -> Resolution | tuple[Cause, ...]:
        """Return the nearest change, or what contradicts each other."""
        distributions = self._ground.snapshot.distributions
        self._by_path = {item.metadata_path: item for item in distributions}
        self._affected = {item.metadata_path: item for item in self._asked.leaving}
        self._requested = frozenset(self._affected)
        demands = Demands(
            snapshot=self._ground.snapshot,
            owners=self._ground.owners,
            substitutes=self._substitutes,
            by_name=_together(distributions),
        )
        states = dict.fromkeys(self._affected, State.REMOVED)
        for _ in range(_ROUNDS):
            judgement = self._ground.judge.judge(self._change(states))
            open_ = self._ground.remaining(judgement)
            if open_.is_clean:
                objections = self._ground.objections(judgement)
                if not objections:
                    return self._resolution(judgement, states)
                self._add(_anything_else(objections[0], states), states)
            for demand in demands.of(open_):
                self._add(demand, states)
            solution = solve(self._problem())
            if isinstance(solution, Impossible):
                return self._causes(solution.causes)
            states = dict(solution.states)
        return ()

    def _causes(self, keys: Iterable[str]) -> tuple[Cause, ...]:
        """Return what contradicts each other, one cause for each subject."""
        by_subject: dict[str, Cause] = {}
        for demand in map(self._demands.__getitem__, keys):
            by_subject.setdefault(demand.subject, Cause(words=demand.words, subject=demand.subject))
        return tuple(by_subject.values())

    def _add(self, demand: Demand, states: Mapping[str, State]) -> None:
        """Add a demand as the condition that one of those of its options is taken which the change at hand lacks.

        What the change has already does evidently not meet it. Any loss may come of the substitutes.
        """
        options = []
        for option in (Option(requires=((SUBSTITUTES, frozenset({State.REMOVED})),)), *demand.options):
            if (SUBSTITUTES in dict(option.requires) and not self._substitutes) or self._is_taken(option, states):
                continue
            options.append(option)
            self._restorable.update(name for name, allowed in option.requires if allowed == {State.RESTORED})
            self._breaking.update(name for name, allowed in option.requires if allowed == {State.REMOVED})
        for option in (*options, *(() if demand.last is None else (demand.last,))):
            concerned = (name for name, _ in option.requires if name != SUBSTITUTES)
            self._affected.update((name, self._by_path[name]) for name in concerned)
        self._demands[f"{demand.words} {len(self._demands)}"] = replace(demand, options=tuple(options))

    def _is_taken(self, option: Option, states: Mapping[str, State]) -> bool:
        return holds(option, {**{name: self._usual(name) for name, _ in option.requires}, **states})

    def _usual(self, name: str) -> State:
        """Return what becomes of a distribution, or of the substitutes, where no condition says otherwise."""
        return State.REMOVED if name == SUBSTITUTES or name in self._requested else State.KEPT

    def _problem(self) -> Problem:
        states = {path: self._states(item) for path, item in self._affected.items()}
        if self._substitutes:
            states[SUBSTITUTES] = (State.REMOVED, State.INSTALLED)
        return Problem(states=states, conditions=tuple(self._conditions()))

    def _conditions(self) -> Iterator[Condition]:
        for key, demand in self._demands.items():
            options = demand.options
            if demand.last is not None and self._may_be_last(demand.last):
                options += (demand.last,)
            yield Condition(key=key, options=options)

    def _may_be_last(self, option: Option) -> bool:
        names = dict(option.requires).keys() - self._requested
        return Rewrite.RESTORE not in self._rewrites or names <= self._breaking

    def _states(self, item: Distribution) -> tuple[State, ...]:
        """Return the states that the allowed rewrites leave to a distribution, the preferred one first."""
        states = [State.KEPT]
        # A wheel is asked for only where it would help: it may have to be fetched.
        wanted = Rewrite.RESTORE in self._rewrites and item.metadata_path in self._restorable
        if wanted and self._wheel(item) is not None:
            states.append(State.RESTORED)
        if item.metadata_path not in self._requested:
            may_go = Rewrite.CASCADE in self._rewrites and not self._ground.refusals(item)
            return (*states, State.REMOVED) if may_go else tuple(states)
        # What an installation replaces goes nevertheless.
        return (State.REMOVED, *states) if Rewrite.KEEP_NEEDED in self._rewrites else (State.REMOVED,)

    def _wheel(self, item: Distribution) -> Wheel | None:
        if self._ground.refusals(item) - {Code.SELF_REMOVAL}:
            return None
        found = self._answers[item.metadata_path] = self._wheels.restore(item)
        return found if isinstance(found, Wheel) else None

    def _change(self, states: Mapping[str, State]) -> Change:
        leaving = []
        restored = [pair for pair in self._asked.restored if states.get(pair[0].metadata_path) is not State.REMOVED]
        for path, item in self._affected.items():
            if states.get(path) is State.REMOVED:
                leaving.append(item)
            elif states.get(path) is State.RESTORED and all(pair[0] is not item for pair in self._asked.restored):
                wheel = self._wheel(item)
                assert wheel is not None
                restored.append((item, wheel))
        more = self._substitutes if states.get(SUBSTITUTES) is State.INSTALLED else ()
        asked = combine(self._ground.snapshot, tuple(leaving), (*self._asked.installed, *more))
        # What a substitute replaces is not restored before.
        left = [pair for pair in restored if pair[0] not in asked.leaving]
        return Change(
            leaving=asked.leaving,
            restored=tuple(sorted(left, key=lambda pair: (pair[0].name, pair[0].metadata_path))),
            installed=asked.installed,
        )

    def _resolution(self, judgement: Judgement, states: Mapping[str, State]) -> Resolution:
        gone = {item.metadata_path: item for item in judgement.change.leaving}
        comers = {item.name for item in judgement.change.installed}
        cascaded = sorted(path for path, item in gone.items() if not (path in self._requested or item.name in comers))
        more = [item for item in judgement.change.installed if item in self._substitutes]
        reasons = self._reasons(states)
        return Resolution(
            judgement=judgement,
            kept={path: reasons[path] for path in sorted(self._requested - gone.keys())},
            cascaded={path: reasons[path] for path in cascaded},
            substituted={item.metadata_path: reasons[SUBSTITUTES] for item in more},
        )

    def _reasons(self, states: Mapping[str, State]) -> Mapping[str, tuple[str, ...]]:
        """Return for all that is done unasked, or not done, the conditions that are met by it."""
        words: dict[str, set[str]] = {name: set() for name in states}
        for condition in self._conditions():
            for option in condition.options:
                for name, allowed in option.requires if holds(option, states) else ():
                    # Why a distribution is restored is another question than why it stays.
                    if self._unasked(name) in allowed and self._usual(name) not in allowed:
                        words[name].add(self._demands[condition.key].words)
        return {name: tuple(sorted(told)) for name, told in words.items()}

    def _unasked(self, name: str) -> State:
        if name == SUBSTITUTES:
            return State.INSTALLED
        return State.KEPT if name in self._requested else State.REMOVED


def _anything_else(objection: str, states: Mapping[str, State]) -> Demand:
    """Return the demand that anything is done in another way."""
    options = (Option(requires=((name, frozenset(State) - {state}),)) for name, state in states.items())
    return Demand(words=objection, subject="", options=tuple(options))


def _together(distributions: Iterable[Distribution]) -> dict[str, tuple[Distribution, ...]]:
    """Return the distributions of each name; what the environment itself holds hides what it merely sees."""
    groups: dict[str, list[Distribution]] = {}
    for item in distributions:
        groups.setdefault(item.name, []).append(item)
    return {name: tuple([item for item in group if item.owned_here] or group) for name, group in groups.items()}
