"""Accepted losses: by which names, how far, and what a rewrite makes of them."""

import pytest

from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.plan import Code, Plan, Rewrite, Severity, Verdict
from tests.support.cases import CUDNN, consumers, incident, lacking_symbols, outline, plan
from tests.support.fakes import at, distribution, elf, snapshot
from tests.support.wheels import FakeWheels, wheel

RESTORE, SUBSTITUTE, KEEP, CASCADE = Rewrite
CU12, CU13 = "nvidia-cudnn-cu12", "nvidia-cudnn-cu13"


def codes(found: Plan, *, accepted: bool) -> list[Code]:
    """Return the codes of the losses that are accepted, or of the errors that are not."""
    wanted = Severity.WARNING if accepted else Severity.ERROR
    return [item.code for item in found.findings if item.severity is wanted and item.accepted is accepted]


@pytest.mark.parametrize("name", ["lib", "Lib", "app", "APP"])
def test_a_requirement_by_who_has_it_and_by_who_met_it(name: str) -> None:
    """Both the dependent and the distribution that goes stand for it."""
    snap = snapshot(distribution("lib"), distribution("app", requires=("lib>=1",)))
    found = plan(snap, "lib", accepted_losses=(name,))
    assert (found.verdict, codes(found, accepted=True)) == (Verdict.ALLOW, [Code.REQUIREMENT_LOST])
    assert found.request.accepted_losses == (name,)


def test_one_requirement_of_two() -> None:
    """By the distribution that goes only that one is accepted, by the dependent both."""
    snap = snapshot(distribution("a"), distribution("b"), distribution("app", requires=("a", "b")))
    found = plan(snap, "a", "b", accepted_losses=("a",))
    assert (codes(found, accepted=True), codes(found, accepted=False)) == (
        [Code.REQUIREMENT_LOST],
        [Code.REQUIREMENT_LOST],
    )
    assert plan(snap, "a", "b", accepted_losses=("app",)).verdict is Verdict.ALLOW


def test_a_requirement_of_a_newcomer_and_an_overwritten_file() -> None:
    """By the newcomer; by the file or by whose it is."""
    snap = snapshot(distribution("lib"), distribution("good", claims={"d/x": b"good"}))
    wheels = FakeWheels(snap, index={"new": [wheel("new", claims={"d/x": b"new"}, requires=("lib",))]})
    for name in ("d/x", "x", "good", at("d/x")):
        found = plan(snap, "lib", install=("new",), wheels=wheels, accepted_losses=("new", name))
        assert found.verdict is Verdict.ALLOW
        assert codes(found, accepted=True) == [Code.FILE_LOST, Code.REQUIREMENT_LOST]


@pytest.mark.parametrize(
    ("names", "unknown"),
    [
        (("libcudnn.so.8",), "`libcudnn.so.8`"),
        (("cudnn.so.9",), "`cudnn.so.9`"),
        (("torch", "a", "b", "a"), "`a`, `b`"),
        ((CU13 + "x",), f"`{CU13}x`"),
        (("libtorch_cuda.so",), "`libtorch_cuda.so`"),
    ],
)
def test_a_name_that_is_no_loss_is_an_error_that_says_what_is(names: tuple[str, ...], unknown: str) -> None:
    """Exact names, whole components of paths: a typing error must not pass for consent."""
    with pytest.raises(UsageError) as caught:
        plan(incident(), CU13, accepted_losses=names)
    assert caught.value.message == f"--accept-loss {unknown}: this plan loses no such thing"
    assert caught.value.help == (f"what it loses: libcudnn.so.9, {CU12}",)


def test_where_nothing_is_lost_nothing_can_be_accepted() -> None:
    """A stale script shows up."""
    with pytest.raises(UsageError) as caught:
        plan(snapshot(distribution("a")), "a", accepted_losses=("a",))
    assert caught.value.help == ("it loses nothing: leave the option out",)


def test_a_requirement_is_offered_by_what_goes() -> None:
    """It is shorter than the dependents, of which there may be many."""
    snap = snapshot(distribution("lib"), distribution("a", requires=("lib",)), distribution("b", requires=("lib",)))
    with pytest.raises(UsageError) as caught:
        plan(snap, "lib", accepted_losses=("typo",))
    assert caught.value.help == ("what it loses: lib",)


# With rewrites.


def test_what_is_accepted_is_no_reason_to_rewrite() -> None:
    """The library may go, the other file may not: only that is a reason. Accepted in full, nothing is rewritten."""
    found = plan(incident(), CU13, rewrites=(KEEP,), accepted_losses=("libcudnn.so.9",))
    (keep,) = found.actions
    assert keep.reason == f"still needed: {CU12} 9.10.2.21 would lose 1 file"
    snap = incident()
    wheels = FakeWheels(snap)
    found = plan(snap, CU13, rewrites=(RESTORE,), accepted_losses=("libcudnn.so.9", CU12), wheels=wheels)
    assert (found.verdict, outline(found), wheels.asked_to_restore) == (Verdict.ALLOW, [("uninstall", CU13)], [])


def test_what_is_accepted_stays_accepted_when_a_rewrite_is_taken() -> None:
    """One need is accepted, the other makes a cascade: the plan goes ahead and shows the warning."""
    snap = incident(distribution("lib"), distribution("app", requires=("lib",)))
    found = plan(snap, CU13, "lib", rewrites=(CASCADE,), accepted_losses=("torch", "h.h", CUDNN))
    assert outline(found) == [("uninstall", "app"), ("uninstall", "lib"), ("uninstall", CU13)]
    assert found.verdict is Verdict.REWRITE
    assert codes(found, accepted=True) == [Code.LIBRARY_LOST, Code.FILE_LOST]


def test_of_several_consumers_those_that_are_not_accepted_go() -> None:
    """What was accepted of one is not what breaks the other."""
    found = plan(consumers("a", "b"), "provider", rewrites=(CASCADE,), accepted_losses=("a",))
    assert outline(found) == [("uninstall", "b"), ("uninstall", "provider")]
    (warning,) = found.findings
    assert warning.accepted
    assert [item.distribution.name for item in warning.consumers if item.distribution] == ["a"]


def test_part_of_the_files_is_accepted() -> None:
    """The rest still is to be restored."""
    found = plan(incident(), CU13, rewrites=(KEEP,), accepted_losses=("h.h", "torch"))
    assert found.actions[0].reason == f"still needed: {CU12} 9.10.2.21 would lose 1 file"


@pytest.mark.parametrize(
    ("name", "kept"), [("l.so", "lib"), ("app", "lib"), ("first/l.so", "lib"), ("lib", "first"), ("user", "first")]
)
def test_symbols_and_requirements_are_accepted_apart(name: str, kept: str) -> None:
    """Each loss by its own names: what was not accepted is kept."""
    snap = lacking_symbols(distribution("lib"), distribution("user", requires=("lib",)))
    found = plan(snap, "first", "lib", rewrites=(KEEP,), accepted_losses=(name,))
    assert [item for kind, item in outline(found) if kind == "keep"] == [kept]


def test_a_newcomers_needs_and_collisions_are_no_conditions_when_accepted() -> None:
    """What else is lost is avoided."""
    snap = snapshot(
        distribution("lib"),
        distribution("good", claims={"x": b"good"}),
        distribution("dep"),
        distribution("app", requires=("dep",)),
    )
    wheels = FakeWheels(snap, index={"new": [wheel("new", claims={"x": b"new"}, requires=("lib",))]})
    found = plan(snap, "lib", "dep", install=("new",), wheels=wheels, rewrites=(KEEP,), accepted_losses=("new", "good"))
    assert outline(found) == [("uninstall", "lib"), ("install", "new"), ("keep", "dep")]
    assert codes(found, accepted=True) == [Code.FILE_LOST, Code.REQUIREMENT_LOST]


def test_nothing_is_installed_for_what_is_accepted() -> None:
    """The consumer requires something that is absent; but that it breaks is accepted."""
    snap = snapshot(
        distribution("bad", claims={"libp.so": b"p"}),
        distribution("app", claims={"a.so": b"a"}, requires=("good",)),
        distribution("dep", requires=("bad",)),
        objects=[elf(at("libp.so"), "libp.so"), elf(at("a.so"), None, "libp.so", rpath="$ORIGIN")],
    )
    wheels = FakeWheels(snap)
    found = plan(snap, "bad", rewrites=(SUBSTITUTE, KEEP), accepted_losses=("libp.so",), wheels=wheels)
    assert (outline(found), wheels.asked_to_resolve) == ([("keep", "bad")], [])


def test_what_only_a_rewrite_would_lose_can_be_accepted() -> None:
    """It is no loss of the request as it stands, but of the plan that is made of it."""
    snap = consumers("a", more=[distribution("dep", requires=("a",))])
    found = plan(snap, "provider", rewrites=(CASCADE,), accepted_losses=("dep",))
    assert outline(found) == [("uninstall", "a"), ("uninstall", "provider")]
    assert codes(found, accepted=True) == [Code.REQUIREMENT_LOST]
    with pytest.raises(UsageError):
        plan(snap, "provider", accepted_losses=("dep",))


def test_only_losses_can_be_accepted() -> None:
    """A distribution that must not go is refused whatever is accepted."""
    snap = snapshot(distribution("lib", conda_package="lib-1-0"), distribution("app", requires=("lib",)))
    found = plan(snap, "lib", accepted_losses=("lib",))
    assert (found.verdict, codes(found, accepted=False)) == (Verdict.BLOCK, [Code.EXTERNALLY_MANAGED])
