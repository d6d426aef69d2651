"""The solver: what it prefers, and what it takes back."""

from safe_uninstall.analysis.problem import Condition, Impossible, Option, Problem, Solution, State
from safe_uninstall.analysis.rewrite import solve

KEPT, REMOVED, RESTORED, INSTALLED = State

SURVIVOR = (KEPT, RESTORED, REMOVED)
REQUESTED = (REMOVED, KEPT, RESTORED)
ABSENT = (REMOVED, INSTALLED)


def option(**states: State | tuple[State, ...]) -> Option:
    """Return an option."""
    sets = {name: {item} if isinstance(item, State) else {*item} for name, item in states.items()}
    return Option(requires=tuple((name, frozenset(allowed)) for name, allowed in sets.items()))


def solved(*conditions: tuple[Option, ...], **states: tuple[State, ...]) -> dict[str, State]:
    """Solve, and return what is not in its preferred state."""
    numbered = tuple(Condition(key=str(number), options=options) for number, options in enumerate(conditions))
    found = solve(Problem(states=states, conditions=numbered))
    assert isinstance(found, Solution)
    return {name: state for name, state in found.states.items() if state is not states[name][0]}


def test_without_conditions_everything_is_as_preferred() -> None:
    """What was named goes, the rest stays."""
    assert solved(a=REQUESTED, b=SURVIVOR) == {}


def test_the_smallest_kind_of_change_comes_first() -> None:
    """Restore, install, keep, remove: whatever the order in which they are given."""
    ways = [option(d=REMOVED), option(c=KEPT), option(b=INSTALLED), option(a=RESTORED)]
    states = {"a": SURVIVOR, "b": ABSENT, "c": REQUESTED, "d": SURVIVOR}
    expected = [{"a": RESTORED}, {"b": INSTALLED}, {"c": KEPT}]
    for left, wanted in zip((4, 3, 2), expected, strict=True):
        assert solved(tuple(ways[:left]), **states) == wanted


def test_of_one_kind_the_fewest_distributions_are_moved() -> None:
    """Then the order decides; what holds anyway costs nothing."""
    states = dict.fromkeys("abc", REQUESTED)
    assert solved((option(a=KEPT, b=KEPT), option(c=KEPT)), **states) == {"c": KEPT}
    assert solved((option(b=KEPT), option(a=KEPT)), **states) == {"b": KEPT}
    assert solved((option(a=KEPT), option(b=REMOVED, c=(REMOVED, KEPT))), **states) == {}


def test_the_kind_counts_more_than_the_number() -> None:
    """Two restorations are less of a change than to keep what the user wants to be rid of."""
    assert solved((option(c=KEPT), option(a=RESTORED, b=RESTORED)), a=SURVIVOR, b=SURVIVOR, c=REQUESTED) == {
        "a": RESTORED,
        "b": RESTORED,
    }


def test_what_turned_out_not_to_be_needed_is_taken_back() -> None:
    """A restoration is chosen for one condition; the other can only be met by what meets the first too."""
    both = (option(a=RESTORED), option(c=KEPT))
    assert solved(both, (option(c=KEPT), option(c=KEPT, a=KEPT)), a=SURVIVOR, c=REQUESTED) == {"c": KEPT}


def test_what_is_kept_is_restored_only_for_a_reason() -> None:
    """Staying as it is comes before being restored."""
    assert solved((option(a=(KEPT, RESTORED)),), a=REQUESTED) == {"a": KEPT}
    assert solved((option(a=(KEPT, RESTORED)),), (option(a=RESTORED),), a=REQUESTED) == {"a": RESTORED}


def test_choices_that_contradict_each_other() -> None:
    """No single condition is without a way; together they have none, and their keys say so."""
    a, not_a, b, not_b = option(a=KEPT), option(a=REMOVED), option(b=KEPT), option(b=REMOVED)
    ways = [(a, b), (a, not_b), (not_a, b), (not_a, not_b)]
    conditions = tuple(Condition(key="xyzw"[number], options=options) for number, options in enumerate(ways))
    found = solve(Problem(states={"a": REQUESTED, "b": REQUESTED}, conditions=conditions))
    assert isinstance(found, Impossible)
    assert set(found.causes) <= set("xyzw")
    assert len(found.causes) > 1


def test_a_chain_of_choices() -> None:
    """The first way leads into a dead end three steps later: it is left again."""
    links = [(option(**{f"n{number}": KEPT}), option(**{f"n{number + 1}": KEPT})) for number in range(3)]
    dead = ((option(n0=REMOVED), option(n9=KEPT)), (option(n9=REMOVED),))
    states = {f"n{number}": (REMOVED, KEPT) for number in (0, 1, 2, 3, 9)}
    found = solved(*links, *dead, **states)
    assert "n0" not in found
    assert found.keys() >= {"n1"}
