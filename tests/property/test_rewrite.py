"""The solver agrees with brute force on small problems."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from safe_uninstall.analysis.problem import Condition, Impossible, Option, Problem, Solution, State
from safe_uninstall.analysis.rewrite import solve

NAMES = ["a", "b", "c", "d"]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Generate a problem over at most four distributions and five conditions."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    states = {
        name: tuple(draw(st.lists(st.sampled_from(list(State)), min_size=1, max_size=4, unique=True))) for name in names
    }
    allowed = st.frozensets(st.sampled_from(list(State)), min_size=1, max_size=3)
    options = st.dictionaries(st.sampled_from(names), allowed, max_size=3).map(
        lambda requires: Option(requires=tuple(sorted(requires.items())))
    )
    conditions = tuple(
        Condition(key=f"condition {number}", options=tuple(draw(st.lists(options, max_size=3))))
        for number in range(draw(st.integers(0, 5)))
    )
    return Problem(states=states, conditions=conditions)


def holds(problem: Problem, states: dict[str, State]) -> bool:
    """Return whether an assignment meets every condition."""
    return all(
        any(all(states[name] in allowed for name, allowed in option.requires) for option in condition.options)
        for condition in problem.conditions
    )


@given(problems())
@settings(max_examples=400, deadline=None)
def test_a_solution_is_found_exactly_when_there_is_one(problem: Problem) -> None:
    """Every solution meets all conditions with states that are allowed, and one is found if any exists."""
    names = sorted(problem.states)
    exists = any(
        holds(problem, dict(zip(names, states, strict=True)))
        for states in product(*(problem.states[name] for name in names))
    )
    found = solve(problem)
    if isinstance(found, Impossible):
        assert not exists
        return
    assert isinstance(found, Solution)
    assert holds(problem, dict(found.states))
    assert all(state in problem.states[name] for name, state in found.states.items())


@given(problems())
@settings(max_examples=200, deadline=None)
def test_nothing_is_moved_without_need(problem: Problem) -> None:
    """If every distribution in its preferred state meets all conditions, that is the solution."""
    preferred = {name: states[0] for name, states in problem.states.items()}
    if holds(problem, preferred):
        found = solve(problem)
        assert isinstance(found, Solution)
        # Another option may have been taken, but never at the price of a state that nobody prefers.
        assert dict(found.states) == preferred
