"""What a request comes to: names and requirements, resolved."""

import pytest

from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.requested import Asked, ask, combine
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import NotInstalled, UsageError, WheelsUnavailable
from safe_uninstall.model.plan import Request
from safe_uninstall.model.snapshot import Snapshot
from tests.support.fakes import distribution, snapshot
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
