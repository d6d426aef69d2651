"""Chooses the smallest change to a request that leaves no loss: the only user of resolvelib.

The terms are resolvelib's. An *identifier* is an affected distribution or an affected condition (a need, a claim or a
requirement of a survivor); a *candidate* is a state of that distribution, or one way of meeting that condition; each
way *requires* distributions to be in certain states. Nothing that is not affected enters, since the resolver's work
grows with the square of what it is fed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class State(Enum):
    """What becomes of a distribution."""

    KEPT = "kept"
    REMOVED = "removed"
    RESTORED = "restored"
    INSTALLED = "installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way of meeting a condition: every distribution named must be in one of the states given."""

    requires: tuple[tuple[str, frozenset[State]], ...]
    """(distribution, allowed states), each distribution once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Something that must hold in the outcome: a need, a claim or a requirement of a survivor."""

    key: str
    """Unique; says in words what it is about, for the explanation of a block."""
    options: tuple[Option, ...]
    """Those that move the fewest distributions are tried first, among equals in this order. None at all: it cannot
    be met."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is affected by a request, and what may be done about it."""

    states: Mapping[str, tuple[State, ...]]
    """Distribution to the states it may end in, most preferred first."""
    requested: tuple[str, ...]
    """Distributions that the request names."""
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A state for every affected distribution, all conditions met."""

    states: Mapping[str, State]


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """No assignment meets all conditions."""

    causes: tuple[str, ...]
    """Keys of the conditions and names of the distributions that contradict each other, as the resolver met them."""


def solve(problem: Problem) -> Solution | Impossible:
    """Return the preferred assignment, or why there is none.

    Args:
        problem: the affected distributions and conditions.

    Returns:
        A solution in which every condition has an option whose distributions are all in an allowed state, and every
        distribution that no condition moves is in its most preferred state.
    """
    from resolvelib import BaseReporter, ResolutionImpossible, Resolver

    provider = _make_provider(problem)
    root = [_Requirement(_DISTRIBUTION + name, _names(problem.states[name])) for name in problem.requested]
    root += [
        _Requirement(_CONDITION + condition.key, tuple(str(number) for number in range(len(condition.options))))
        for condition in problem.conditions
    ]
    rounds = 1000 + 100 * (len(problem.states) + len(problem.conditions)) ** 2
    resolver: Any = Resolver(provider, BaseReporter())
    try:
        result = resolver.resolve(root, max_rounds=rounds)
    except ResolutionImpossible as error:
        causes: dict[str, None] = {}
        for cause in error.causes:
            causes.setdefault(cause.requirement.identifier.partition(":")[2])
            if cause.parent is not None:
                causes.setdefault(cause.parent.identifier.partition(":")[2])
        return Impossible(causes=tuple(causes))
    states = {name: allowed[0] for name, allowed in problem.states.items()}
    for identifier, candidate in result.mapping.items():
        if identifier.startswith(_DISTRIBUTION):
            states[identifier[len(_DISTRIBUTION) :]] = State(candidate.choice)
    return Solution(states=states)


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
            for number, option in sorted(enumerate(condition.options), key=lambda item: _moves(problem, item[1]))
        )
    return candidates


def _moves(problem: Problem, option: Option) -> int:
    """Return how many distributions an option takes out of their preferred state."""
    return sum(1 for name, allowed in option.requires if problem.states[name][0] not in allowed)


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
