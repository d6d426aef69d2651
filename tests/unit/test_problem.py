"""What of a problem leaves no choice."""

from safe_uninstall.analysis.problem import Condition, Impossible, Option, Problem, State, narrowed

KEPT, REMOVED, RESTORED = State.KEPT, State.REMOVED, State.RESTORED


def option(**states: tuple[State, ...]) -> Option:
    """Return an option."""
    return Option(requires=tuple((name, frozenset(allowed)) for name, allowed in states.items()))


def condition(key: str, *options: Option) -> Condition:
    """Return a condition."""
    return Condition(key=key, options=options)


def problem(*conditions: Condition, **states: tuple[State, ...]) -> Problem:
    """Return a problem."""
    return Problem(states=states, conditions=conditions)


def test_one_way_is_taken_and_what_it_decides_too() -> None:
    """In any order of the conditions, to the end of the chain."""
    chain = (
        condition("c needs b", option(b=(KEPT,)), option(c=(REMOVED,))),
        condition("b needs a", option(a=(KEPT,)), option(b=(REMOVED,))),
        condition("c stays", option(c=(KEPT,), d=(KEPT,))),
    )
    both = (REMOVED, KEPT)
    for order in (chain, chain[::-1]):
        found = narrowed(problem(*order, a=both, b=both, c=both, d=(KEPT,)))
        assert found == problem(a=(KEPT,), b=(KEPT,), c=(KEPT,), d=(KEPT,))


def test_what_holds_whatever_is_chosen_is_no_condition() -> None:
    """And a choice that is named twice is one."""
    choice = (option(a=(RESTORED,)), option(b=(KEPT,)))
    states = {"a": (KEPT, RESTORED), "b": (REMOVED, KEPT)}
    found = narrowed(
        problem(
            condition("one", *choice),
            condition("certain", option(a=(KEPT, RESTORED)), option(b=(KEPT,))),
            condition("two", *choice),
            **states,
        )
    )
    assert found == problem(condition("one", *choice), **states)


def test_ways_that_no_state_allows_are_none() -> None:
    """What is left of a choice may be one way."""
    found = narrowed(
        problem(condition("x", option(a=(RESTORED,)), option(b=(KEPT,))), a=(KEPT, REMOVED), b=(REMOVED, KEPT))
    )
    assert found == problem(a=(KEPT, REMOVED), b=(KEPT,))


def test_all_that_never_had_a_way_is_told() -> None:
    """Not only the first."""
    found = narrowed(
        problem(condition("x"), condition("y", option(a=(KEPT,))), condition("z", option(a=(RESTORED,))), a=(KEPT,))
    )
    assert found == Impossible(causes=("x", "z"))


def test_what_took_the_last_way_is_told() -> None:
    """Those that contradict each other, and no others."""
    found = narrowed(
        problem(
            condition("other", option(b=(KEPT,))),
            condition("stays", option(a=(KEPT,))),
            condition("goes", option(a=(REMOVED,))),
            a=(KEPT, REMOVED),
            b=(KEPT,),
        )
    )
    assert found == Impossible(causes=("goes", "stays"))
