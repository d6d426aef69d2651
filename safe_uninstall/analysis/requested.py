"""What a request comes to before anything is judged: distributions that go, wheels that come."""

import re
from dataclasses import dataclass, replace

from safe_uninstall.analysis.change import Change
from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.damage import find_damage
from safe_uninstall.analysis.selection import select
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.errors import UsageError, WheelsUnavailable
from safe_uninstall.model.names import normalize_name
from safe_uninstall.model.plan import Request
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import Wheel, WheelSource, WheelUnavailable

_LEADING_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, resolved."""

    leaving: tuple[Distribution, ...]
    """Distributions that the request names, and those that an installation replaces; sorted."""
    installed: tuple[Wheel, ...]
    """Sorted by name."""
    restored: tuple[tuple[Distribution, Wheel], ...] = ()
    """What is to be installed and is there already, but not whole; sorted by name."""

    @property
    def change(self) -> Change:
        """What is asked for, and nothing else."""
        return Change(leaving=self.leaving, restored=self.restored, installed=self.installed)


def ask(snapshot: Snapshot, request: Request, wheels: WheelSource | None, commands: Commands) -> Asked:
    """Resolve the names and requirements of a request.

    Args:
        snapshot: the environment.
        request: what the user asked for.
        wheels: where wheels come from.
        commands: makes the help.

    Raises:
        NotInstalled: names that nothing bears.
        UsageError: something that is no name, or both removed and installed in the same version.
        WheelsUnavailable: something to install cannot be had.
    """
    named = select(snapshot, request.names, commands) if request.names else ()
    if not request.install:
        return Asked(leaving=named, installed=())
    if wheels is None:
        raise UsageError("nothing can be installed without a source of wheels")
    found = wheels.resolve(request.install)
    if isinstance(found, WheelUnavailable):
        raise WheelsUnavailable((found,))
    _refuse_contradictions(named, request.install, found)
    asked = combine(snapshot, named, found)
    return replace(asked, restored=_restored(snapshot, asked, request.install, wheels))


def _restored(
    snapshot: Snapshot, asked: Asked, requirements: tuple[str, ...], wheels: WheelSource
) -> tuple[tuple[Distribution, Wheel], ...]:
    """Return what is asked for and installed, but overwritten or gutted: to have it means to have its files."""
    coming = {wheel.name for wheel in asked.installed}
    matches = [match for text in requirements if (match := _LEADING_NAME.match(text))]
    names = {normalize_name(match[1]) for match in matches} - coming
    damaged = [item.distribution for item in find_damage(snapshot, names=names) if item.missing or item.overwritten]
    restored = [(item, wheels.restore(item)) for item in damaged]
    missing = tuple(found for _, found in restored if isinstance(found, WheelUnavailable))
    if missing:
        raise WheelsUnavailable(missing)
    return tuple((item, found) for item, found in restored if isinstance(found, Wheel))


def combine(snapshot: Snapshot, named: tuple[Distribution, ...], wheels: tuple[Wheel, ...]) -> Asked:
    """Return a request with wheels that come too: what they replace goes, what is there already does not come."""
    leaving = {item.metadata_path: item for item in named}
    installed = []
    for wheel in sorted(wheels, key=lambda item: item.name):
        old = [item for item in snapshot.distributions if item.name == wheel.name and item.owned_here]
        if any(item.version == wheel.version and item.metadata_path not in leaving for item in old):
            continue
        leaving.update((item.metadata_path, item) for item in old)
        installed.append(wheel)
    return Asked(
        leaving=tuple(sorted(leaving.values(), key=lambda item: (item.name, item.metadata_path))),
        installed=tuple(installed),
    )


def _refuse_contradictions(
    named: tuple[Distribution, ...], requirements: tuple[str, ...], wheels: tuple[Wheel, ...]
) -> None:
    """Raise UsageError for what is named to go and to come in the version that is there."""
    going = {item.name: item.version for item in named}
    coming = {wheel.name: wheel.version for wheel in wheels}
    for text in requirements:
        match = _LEADING_NAME.match(text)
        name = "" if match is None else normalize_name(match[1])
        # What the environment has already is not among the wheels.
        if name in going and coming.get(name, going[name]) == going[name]:
            raise UsageError(
                f"`{name}` {going[name]} is named to be removed, and `{text}` to be installed",
                help=(f"name another version of {name} to install, or leave it out of what is to be removed",),
            )
