"""What a request comes to: names and requirements, resolved."""

import pytest

from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.analysis.requested import Asked, ask, combine
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import NotInstalled, UsageError, WheelsUnavailable
from safe_uninstall.model.plan import ActionKind, Request, Rewrite, Verdict
from safe_uninstall.model.snapshot import Snapshot
from tests.support.fakes import at, distribution, elf, snapshot
from tests.support.wheels import FakeWheels, wheel


def environment() -> Snapshot:
    """Return three distributions, one of them outside."""
    return snapshot(distribution("a"), distribution("lib", "1.0"), distribution("seen", owned_here=False))


def asked(*names: str, install: tuple[str, ...] = (), wheels: FakeWheels | None = None) -> Asked:
    """Resolve a request."""
    snap = environment()
    return ask(snap, Request(names=names, install=install), wheels, Commands(snap, InstallerKind.PIP))


def having(**index: str) -> FakeWheels:
    """Return a source that has one wheel for each requirement of a name, in the version given."""
    return FakeWheels(environment(), index={name: [wheel(name, version)] for name, version in index.items()})


def names(found: Asked) -> tuple[list[str], list[str]]:
    """Return the names of what goes and of what comes."""
    return [item.name for item in found.leaving], [item.name for item in found.installed]


def test_names_alone() -> None:
    """No wheel is asked for."""
    wheels = having()
    assert names(asked("lib", "a", wheels=wheels)) == (["a", "lib"], [])
    assert wheels.asked_to_resolve == []
    with pytest.raises(NotInstalled):
        asked("absent")


def test_installations_alone() -> None:
    """Nothing need go; what comes is sorted by name."""
    assert names(asked(install=("y", "x"), wheels=having(y="1", x="1"))) == ([], ["x", "y"])


def test_another_version_replaces_the_old() -> None:
    """The old one goes though nobody named it; what is there in that version already does not come."""
    assert names(asked("a", install=("lib",), wheels=having(lib="2.0"))) == (["a", "lib"], ["lib"])
    assert names(asked("a", install=("lib",), wheels=having(lib="1.0"))) == (["a"], [])
    # What another environment holds is not this one's to remove.
    assert names(asked("a", install=("seen",), wheels=having(seen="1.0"))) == (["a"], ["seen"])


def test_a_name_that_is_to_go_and_to_come_in_another_version_is_replaced() -> None:
    """It is named once as leaving."""
    assert names(asked("lib", install=("lib",), wheels=having(lib="2.0"))) == (["lib"], ["lib"])


@pytest.mark.parametrize("there", [True, False])
def test_the_same_version_cannot_go_and_come(there: bool) -> None:
    """Whether an installer would bring it again, or finds that it is there already."""
    wheels = having(lib="1.0") if there else FakeWheels(environment(), index={"Lib>=1": []})
    written = "lib" if there else "Lib>=1"
    with pytest.raises(UsageError) as caught:
        asked("lib", install=(written,), wheels=wheels)
    assert caught.value.message == f"`lib` 1.0 is named to be removed, and `{written}` to be installed"
    assert caught.value.help == ("name another version of lib to install, or leave it out of what is to be removed",)


def test_what_is_no_name_contradicts_nothing() -> None:
    """A path or an address is for the installer to understand."""
    wheels = FakeWheels(environment(), index={"./x.whl": [wheel("x")]})
    assert names(asked("lib", install=("./x.whl",), wheels=wheels)) == (["lib"], ["x"])


def test_without_wheels_nothing_can_be_installed() -> None:
    """Neither without a source nor where the source has none."""
    with pytest.raises(UsageError, match="without a source of wheels"):
        asked("a", install=("lib",))
    with pytest.raises(WheelsUnavailable) as caught:
        asked("a", install=("absent",), wheels=having())
    assert caught.value.message == "no wheel for absent: no network"


def test_all_old_versions_of_a_name_are_replaced() -> None:
    """Two dist-info of one name, one of them in the very version: it stays unless it goes by name."""
    snap = snapshot(distribution("dup", "1.0"), distribution("dup", "2.0"))
    assert names(combine(snap, (), (wheel("dup", "3.0"),))) == (["dup", "dup"], ["dup"])
    assert names(combine(snap, (), (wheel("dup", "2.0"),))) == ([], [])
    assert names(combine(snap, snap.distributions, (wheel("dup", "2.0"),))) == (["dup", "dup"], ["dup"])


def overwritten(*, extra: bool = False) -> Snapshot:
    """Return an environment in which ``new`` overwrote ``old``; ``app`` needs what only ``new`` has, if ``extra``."""
    return snapshot(
        distribution("old", "2.0", {"n/lib.so": b"old"}),
        distribution("whole", claims={"whole.py": b"1"}),
        *([distribution("app", requires=("new",))] if extra else []),
        distribution("new", claims={"n/lib.so": b"newer"}),
    )


def test_what_is_asked_for_and_there_gets_its_files_back() -> None:
    """Installed by its metadata alone is not installed: ``--install`` means to have it."""
    snap = overwritten()
    wheels = FakeWheels(snap, index={"old==2.0": [], "whole": [], "./x": []})
    request = Request(names=("new",), install=("old==2.0", "whole", "./x"))
    found = ask(snap, request, wheels, Commands(snap, InstallerKind.PIP))
    assert ([item.name for item, _ in found.restored], found.installed) == (["old"], ())
    assert wheels.asked_to_restore == ["old"]
    plan = make_plan(snap, request, wheels)
    assert plan.verdict is Verdict.ALLOW
    assert [(item.kind, item.distribution.name) for item in plan.actions] == [
        (ActionKind.UNINSTALL, "new"),
        (ActionKind.RESTORE, "old"),
    ]


def test_what_is_asked_for_and_cannot_be_had_again() -> None:
    """Named, before anything changes."""
    snap = overwritten()
    request = Request(names=("new",), install=("old==2.0",))
    with pytest.raises(WheelsUnavailable, match=r"no wheel for old==2\.0: no network"):
        make_plan(snap, request, FakeWheels(snap, index={"old==2.0": []}, restores={"old": None}))


def test_a_rewrite_keeps_what_was_asked_for() -> None:
    """What else must go goes, and the files come back all the same."""
    snap = overwritten(extra=True)
    wheels = FakeWheels(snap, index={"old==2.0": []})
    request = Request(names=("new",), install=("old==2.0",), rewrites=(Rewrite.RESTORE, Rewrite.CASCADE))
    plan = make_plan(snap, request, wheels)
    assert plan.verdict is Verdict.REWRITE
    assert {(item.kind, item.distribution.name) for item in plan.actions} == {
        (ActionKind.UNINSTALL, "app"),
        (ActionKind.UNINSTALL, "new"),
        (ActionKind.RESTORE, "old"),
    }


def test_a_wheel_may_take_over_what_a_consumer_loads() -> None:
    """Its symbols are not on disk yet, so that nothing is said of them before."""
    snap = snapshot(
        distribution("old", claims={"old/libx.so.1": b"x"}),
        distribution("user", claims={"user/u.so": b"u"}),
        objects=[
            elf(at("old/libx.so.1"), "libx.so.1"),
            elf(at("user/u.so"), None, "libx.so.1", runpath="$ORIGIN/../old:$ORIGIN/../new"),
        ],
    )
    comer = wheel("new", claims={"new/libx.so.1": b"n"}, objects=[elf(at("new/libx.so.1"), "libx.so.1")])
    plan = make_plan(snap, Request(names=("old",), install=("new",)), FakeWheels(snap, index={"new": [comer]}))
    assert plan.verdict is Verdict.ALLOW
    (moved,) = plan.bindings
    assert (moved.before, moved.after) == (at("old/libx.so.1"), at("new/libx.so.1"))
