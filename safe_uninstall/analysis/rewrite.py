"""Chooses the smallest change to a request that leaves no loss: the only user of resolvelib.

The terms are resolvelib's. An *identifier* is an affected distribution or an affected condition (a need, a claim or a
requirement of a survivor); a *candidate* is a state of that distribution, or one way of meeting that condition; each
way *requires* distributions to be in certain states. Nothing that is not affected enters, since the resolver's work
grows with the square of what it is fed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from safe_uninstall.analysis.problem import Condition, Impossible, Option, Problem, Solution, State, holds, narrowed


def solve(problem: Problem) -> Solution | Impossible:
    """Return the preferred assignment, or why there is none.

    Args:
        problem: the affected distributions and conditions.

    Returns:
        A solution in which every condition has an option whose distributions are all in an allowed state, and no
        distribution alone could be in a state that is preferred to its own.
    """
    left = narrowed(problem)
    if isinstance(left, Impossible):
        return left
    states = {name: allowed[0] for name, allowed in left.states.items()}
    if left.conditions:
        chosen = _choose(left)
        if isinstance(chosen, Impossible):
            return chosen
        states.update(chosen)
    return Solution(states=_settled(problem, states))


def _choose(problem: Problem) -> dict[str, State] | Impossible:
    """Let the resolver choose; return the states of the distributions that it had to look at."""
    from resolvelib import BaseReporter, ResolutionImpossible, Resolver

    root = [
        _Requirement(_CONDITION + condition.key, tuple(str(number) for number in range(len(condition.options))))
        for condition in problem.conditions
    ]
    rounds = 1000 + 100 * (len(problem.states) + len(problem.conditions)) ** 2
    resolver: Any = Resolver(_make_provider(problem), BaseReporter())
    try:
        mapping = resolver.resolve(root, max_rounds=rounds).mapping
    except ResolutionImpossible as error:
        met = [item.identifier for cause in error.causes for item in (cause.requirement, cause.parent) if item]
        keys = (identifier[len(_CONDITION) :] for identifier in met if identifier.startswith(_CONDITION))
        return Impossible(causes=tuple(dict.fromkeys(keys)))
    return {
        identifier[len(_DISTRIBUTION) :]: State(candidate.choice)
        for identifier, candidate in mapping.items()
        if identifier.startswith(_DISTRIBUTION)
    }


_DISTRIBUTION = "distribution:"
_CONDITION = "condition:"


@dataclass(frozen=True, slots=True)
class _Requirement:
    identifier: str
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    identifier: str
    choice: str
    dependencies: tuple[_Requirement, ...] = field(default=(), compare=False)


def _names(states: Iterable[State]) -> tuple[str, ...]:
    return tuple(state.value for state in states)


def _candidates(problem: Problem) -> dict[str, tuple[_Candidate, ...]]:
    candidates = {
        _DISTRIBUTION + name: tuple(_Candidate(_DISTRIBUTION + name, state.value) for state in states)
        for name, states in problem.states.items()
    }
    for condition in problem.conditions:
        identifier = _CONDITION + condition.key
        candidates[identifier] = tuple(
            _Candidate(
                identifier,
                str(number),
                tuple(_Requirement(_DISTRIBUTION + name, _names(states)) for name, states in option.requires),
            )
            for number, option in sorted(enumerate(condition.options), key=lambda item: _cost(problem, item[1]))
        )
    return candidates


def _make_provider(problem: Problem) -> Any:
    """Build the provider here, so that resolvelib is imported only when something is to be rewritten."""
    from resolvelib import AbstractProvider

    table = _candidates(problem)

    class Provider(AbstractProvider):  # type: ignore[misc, type-arg, unused-ignore]
        """Answers the resolver from a finite table; every hook costs at most the size of one row."""

        def identify(self, requirement_or_candidate: Any) -> str:
            """Return the distribution or condition that a requirement or candidate is about."""
            identifier: str = requirement_or_candidate.identifier
            return identifier

        def get_preference(
            self,
            identifier: str,
            resolutions: Mapping[str, Any],  # noqa: ARG002 - resolvelib's signature
            candidates: Mapping[str, Iterator[Any]],
            information: Mapping[str, Iterator[Any]],  # noqa: ARG002
            backtrack_causes: Sequence[Any],
        ) -> tuple[bool, int, bool, str]:
            """Take first what a conflict was about, then what has the fewest ways left, conditions before states."""
            in_conflict = any(cause.requirement.identifier == identifier for cause in backtrack_causes)
            left = sum(1 for _ in candidates[identifier])
            return (not in_conflict, left, identifier.startswith(_DISTRIBUTION), identifier)

        def find_matches(
            self,
            identifier: str,
            requirements: Mapping[str, Iterator[Any]],
            incompatibilities: Mapping[str, Iterator[Any]],
        ) -> list[_Candidate]:
            """Return the candidates that every requirement allows and no conflict has ruled out, preferred first."""
            allowed = [set(requirement.choices) for requirement in requirements[identifier]]
            excluded = set(incompatibilities[identifier])
            return [
                candidate
                for candidate in table[identifier]
                if candidate not in excluded and all(candidate.choice in choices for choices in allowed)
            ]

        def is_satisfied_by(self, requirement: Any, candidate: Any) -> bool:
            """Return whether a candidate is one of those that a requirement allows."""
            return candidate.choice in requirement.choices

        def get_dependencies(self, candidate: Any) -> tuple[_Requirement, ...]:
            """Return the states that a way of meeting a condition requires."""
            dependencies: tuple[_Requirement, ...] = candidate.dependencies
            return dependencies

    return Provider()


def _cost(problem: Problem, option: Option) -> tuple[int, int]:
    """Return how much an option changes: the kind of its greatest change, and how many distributions it moves."""
    moves = []
    for name, allowed in option.requires:
        preferred = problem.states[name][0]
        if preferred not in allowed:
            moves.append(min(_kind(preferred, state) for state in allowed))
    return max(moves, default=0), len(moves)


def _kind(preferred: State, state: State) -> int:
    """Return how great a change it is to move a distribution from its preferred state to another."""
    if preferred is State.REMOVED:
        return 1 if state is State.INSTALLED else 2
    return 3 if state is State.REMOVED else 0


def _settled(problem: Problem, states: dict[str, State]) -> dict[str, State]:
    """Take back what turned out not to be needed: one distribution may serve two conditions, and another then none.

    The greatest changes are taken back first.
    """
    concerned: dict[str, list[Condition]] = {}
    for condition in problem.conditions:
        for name in {name for option in condition.options for name, _ in option.requires}:
            concerned.setdefault(name, []).append(condition)

    def moved() -> list[str]:
        names = [name for name, allowed in problem.states.items() if states[name] is not allowed[0]]
        return sorted(names, key=lambda name: (-_kind(problem.states[name][0], states[name]), name))

    def may_be(name: str, state: State) -> bool:
        tried = {**states, name: state}
        return all(any(holds(option, tried) for option in item.options) for item in concerned.get(name, ()))

    again = True
    while again:
        again = False
        for name in moved():
            allowed = problem.states[name]
            better = next((item for item in allowed[: allowed.index(states[name])] if may_be(name, item)), None)
            if better is not None:
                states[name] = better
                again = True
    return states
