"""The terms in which a rewrite is sought, and what of a problem leaves no choice.

Most conditions can be met in one way only; deciding these here leaves the resolver what it is for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum


class State(Enum):
    """What becomes of a distribution."""

    KEPT = "kept"
    REMOVED = "removed"
    RESTORED = "restored"
    """Kept, with its own files again."""
    INSTALLED = "installed"
    """Not there in the baseline."""


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
    """None at all: it cannot be met. Tried first is what changes the environment least: restoring survivors, then
    installing what is missing, then keeping what was to go, then removing what was to stay; among equals, what moves
    the fewest distributions; and then the order given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is affected by a request, and what may be done about it."""

    states: Mapping[str, tuple[State, ...]]
    """Distribution to the states it may end in, most preferred first."""
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A state for every affected distribution, all conditions met."""

    states: Mapping[str, State]


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """No assignment meets all conditions."""

    causes: tuple[str, ...]
    """Keys of the conditions that contradict each other."""


def holds(option: Option, states: Mapping[str, State]) -> bool:
    """Return whether all distributions of an option are in a state that it allows."""
    return all(states[name] in allowed for name, allowed in option.requires)


def narrowed(problem: Problem) -> Problem | Impossible:
    """Decide what leaves no choice.

    Args:
        problem: the affected distributions and conditions.

    Returns:
        The states that are left, with the conditions that still leave a choice, each choice once; or, where a condition
        has no way left, that condition and those that took its ways from it. Conditions that never had one come all.
    """
    hopeless = tuple(item.key for item in problem.conditions if not _possible(item.options, problem.states))
    if hopeless:
        return Impossible(causes=hopeless)
    states = dict(problem.states)
    narrowed_by: dict[str, list[str]] = {}
    waiting = problem.conditions
    decided = True
    while decided:
        decided = False
        left: dict[tuple[Option, ...], Condition] = {}
        for condition in waiting:
            options = _possible(condition.options, states)
            if not options:
                concerned = sorted({name for option in condition.options for name, _ in option.requires})
                causes = (key for name in concerned for key in narrowed_by.get(name, ()))
                return Impossible(causes=tuple(dict.fromkeys((condition.key, *causes))))
            if any(_is_certain(option, states) for option in options):
                continue
            if len(options) > 1:
                left.setdefault(options, replace(condition, options=options))
                continue
            for name, allowed in options[0].requires:
                if not allowed.issuperset(states[name]):
                    states[name] = tuple(state for state in states[name] if state in allowed)
                    narrowed_by.setdefault(name, []).append(condition.key)
            decided = True
        waiting = tuple(left.values())
    return Problem(states=states, conditions=waiting)


def _possible(options: tuple[Option, ...], states: Mapping[str, tuple[State, ...]]) -> tuple[Option, ...]:
    """Return the options that the states allow."""
    return tuple(item for item in options if all(allowed & {*states[name]} for name, allowed in item.requires))


def _is_certain(option: Option, states: Mapping[str, tuple[State, ...]]) -> bool:
    """Return whether an option holds whatever is chosen."""
    return all(allowed.issuperset(states[name]) for name, allowed in option.requires)
