"""Plans of ``check --fix``: what is restored, what gives way, and what only the user can decide."""

from dataclasses import dataclass, replace

import pytest

from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.analysis.presumed import PresumedWheels
from safe_uninstall.model.distribution import DirectUrl, Distribution, RecordRow
from safe_uninstall.model.errors import UsageError, WheelsUnavailable
from safe_uninstall.model.plan import ActionKind, Code, Plan, Request, Rewrite, Severity, Verdict
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import Wheel, WheelUnavailable
from tests.support.fakes import at, distribution, record_hash, snapshot

LIBRARY = "n/lib/libn.so.1"


def overwritten(*, required: bool = True) -> Snapshot:
    """Return an environment in which ``new`` overwrote a library of ``old``, which ``app`` may require."""
    return snapshot(
        distribution("old", claims={LIBRARY: b"old", "n/old.h": b"o"}),
        distribution("app", requires=("old",) if required else ()),
        distribution("new", claims={LIBRARY: b"newer"}),
    )


def repair(snap: Snapshot) -> Plan:
    """Plan ``check --fix`` with wheels that hold what the RECORDs say."""
    return make_plan(snap, Request(names=(), rewrites=(Rewrite.RESTORE,), repair=True), PresumedWheels(snap))


def test_what_others_require_gets_its_bytes_back_and_nothing_goes() -> None:
    """The leftover gives way; it is said, with the command that removes it afterwards."""
    plan = repair(overwritten())
    assert plan.verdict is Verdict.REWRITE
    assert [(item.kind, item.distribution.name) for item in plan.actions] == [(ActionKind.RESTORE, "old")]
    assert plan.prediction.removed == frozenset()
    assert plan.prediction.deleted == frozenset()
    assert plan.prediction.written.keys() == {at(LIBRARY), at("n/old.h")}
    (warning,) = plan.findings
    assert (warning.code, warning.severity) == (Code.FILE_OVERWRITTEN, Severity.WARNING)
    assert warning.message.startswith("`new` 1.0 gives way ")
    assert warning.help == ("remove it afterwards", "safe-uninstall new")


def test_a_choice_is_left_to_the_user() -> None:
    """Nothing is done, and both ways are told."""
    plan = repair(overwritten(required=False))
    assert plan.actions == ()
    (warning,) = plan.findings
    assert warning.severity is Severity.WARNING
    assert warning.help == (
        "keep old",
        "safe-uninstall new --restore",
        "keep new",
        "safe-uninstall old --restore",
    )


def test_a_healthy_environment_needs_nothing() -> None:
    """An empty plan."""
    plan = repair(snapshot(distribution("a", claims={"a.py": b"1"})))
    assert (plan.actions, plan.findings) == ((), ())


def test_a_document_that_two_ship_stops_no_repair() -> None:
    """Wheels bring all their files; whoever loses one that no program misses is told of."""
    snap = snapshot(
        distribution("app", requires=("third",)),
        distribution("gutted", claims={"g/lib.so": b"g", "shared.h": b"g"}),
        distribution("third", claims={"shared.h": b"third's", "t.py": b""}),
        disk={"g/lib.so": None},
    )
    plan = repair(snap)
    assert plan.verdict is Verdict.REWRITE
    assert [item.distribution.name for item in plan.actions] == ["gutted"]
    (warning,) = plan.findings
    assert (warning.message, warning.help) == ("`third` 1.0 gives way where it overwrote what is restored", ())


def test_a_restoration_that_would_break_a_third_is_blocked() -> None:
    """Nobody chose between a wheel's files and those of a distribution that is whole."""
    snap = snapshot(
        distribution("third", claims={"n/lib.so": b"third's"}),
        distribution("gutted", claims={"g/lib.so": b"g"}),
        disk={"g/lib.so": None},
    )
    source = PresumedWheels(snap)
    wheel = source.restore(snap.distributions[0])
    assert isinstance(wheel, Wheel)
    more = RecordRow(at("n/lib.so"), record_hash(b"another build"), 13)
    request = Request(names=(), rewrites=(Rewrite.RESTORE,), repair=True)
    plan = make_plan(snap, request, OneWheel(replace(wheel, rows=(*wheel.rows, more))))
    assert plan.verdict is Verdict.BLOCK
    assert [item.message for item in plan.findings if item.severity is Severity.ERROR] == [
        "installing gutted 1.0 would overwrite 1 file of `third` 1.0"
    ]


@dataclass
class OneWheel:
    """Has one wheel for everything."""

    wheel: Wheel

    def restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        """Return it."""
        return self.wheel

    def resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        """Return it."""
        return (self.wheel,)


@dataclass
class NoWheels:
    """Has none."""

    def restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        """Say so."""
        return WheelUnavailable(requirement=distribution.label, reason="no network", help=("get it",))

    def resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        """Say so."""
        raise AssertionError("nothing is to be resolved")


def test_without_its_wheel_nothing_is_restored() -> None:
    """What is missing is named with how to supply it."""
    request = Request(names=(), rewrites=(Rewrite.RESTORE,), repair=True)
    with pytest.raises(WheelsUnavailable) as caught:
        make_plan(overwritten(), request, NoWheels())
    assert caught.value.message == "no wheel for old 1.0: no network"
    assert caught.value.help == ("get it",)
    with pytest.raises(UsageError, match="without a source of wheels"):
        make_plan(overwritten(), request, None)


def test_what_came_from_a_source_tree_is_not_taken_from_an_index() -> None:
    """An editable or VCS install has no wheel anywhere."""
    snap = snapshot(
        distribution("old", claims={LIBRARY: b"old"}, direct_url=DirectUrl(url="git+https://x/y", vcs="git")),
        disk={LIBRARY: None},
    )
    with pytest.raises(WheelsUnavailable, match=r"no wheel for old==1\.0: .*git\+https"):
        repair(snap)


def test_what_conda_installed_has_no_wheel() -> None:
    """So that no restoring of it is ever offered."""
    item = distribution("a", claims={"a.py": b""}, conda_package="a-1.0-0")
    found = PresumedWheels(snapshot(item)).restore(item.distribution)
    assert isinstance(found, WheelUnavailable)
    assert found.reason == "conda installed it"
