"""Damage as findings: what a distribution lost, and the commands that give it back."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.damage import Damage
from safe_uninstall.analysis.guards import reference
from safe_uninstall.analysis.repair import Repairs
from safe_uninstall.model.plan import Claimant, Code, Finding, Severity


class Removable(Protocol):
    """Tells whether names can be removed, and what they overwrote be restored, without a loss that is not accepted."""

    def __call__(self, names: tuple[str, ...], *, accepted: tuple[str, ...] = ()) -> bool:
        """Judge names; each call costs a plan."""


class Mending:
    """The commands that mend damage, each the same for all that it mends, and each planned before it is offered."""

    def __init__(self, repairs: Repairs, commands: Commands, removable: Removable) -> None:
        """Choose them for all of ``repairs``."""
        self._commands = commands
        self._repairs = repairs
        self._removable = removable
        writers = tuple(sorted({writer.name for item in repairs.restore for writer in item.by}))
        self._writers = writers if writers and removable(writers) else ()

    def restored(self, damage: Damage | None = None) -> tuple[str, ...]:
        """Return the help for a distribution that can be restored; None: for whatever misses its files."""
        fix = ("restore what is damaged, remove nothing", self._commands.ours("check", "--fix"))
        if damage is None or not self._writers or not damage.by:
            return fix
        return (
            "remove what overwrote them, and restore them",
            self._commands.ours(*self._writers, "--restore"),
            *fix,
        )

    def removing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the help for what all of ``names`` cause; nothing where their removal mends nothing."""
        damage = next((item for item in self._repairs.restore if item.by), None)
        if damage is None or not self._writers or not set(names) <= set(self._writers):
            return ()
        return self.restored(damage)

    def chosen(self, damage: Damage) -> tuple[str, ...]:
        """Return the help where only the user can say which distribution stays: for each side, what would work."""
        name = damage.distribution.name
        others = tuple(other.name for other in damage.by)
        return (*self._kept((name,), others), *self._kept(others, (name,)))

    def _kept(self, names: tuple[str, ...], going: tuple[str, ...]) -> tuple[str, ...]:
        keep = f"keep {', '.join(names)}"
        if self._removable(going):
            return (keep, self._commands.ours(*going, "--restore"))
        if self._removable(going, accepted=going):
            accepted = [word for name in going for word in ("--accept-loss", name)]
            why = f"though something requires {', '.join(going)}"
            return (f"{keep}, {why}", self._commands.ours(*going, "--restore", *accepted))
        return ()

    def removed(self, damage: Damage) -> tuple[str, ...]:
        """Return the help for a distribution that gave way, and that nothing needs."""
        return ("nothing that is installed requires it", self._commands.ours(damage.distribution.name))


def damage_findings(repairs: Repairs, mending: Mending) -> Iterator[Finding]:
    """Return a finding for each distribution that lost something it surely needs, and one for all the rest."""
    for item in repairs.restore:
        yield from _damaged(item, mending.restored(item))
    for item in repairs.undecided:
        yield from _damaged(item, mending.chosen(item))
    for item in repairs.harmless:
        if item.overwritten and item.by and any(map(_is_library, item.overwritten)):
            yield _overwritten(item, Severity.WARNING, mending.removed(item))
    absent = [item for item in repairs.harmless if item.missing]
    if absent:
        number = sum(len(item.missing) for item in absent)
        yield _summary(
            Code.ALREADY_MISSING,
            f"{files(number)} of {_listed(absent)} {'is' if number == 1 else 'are'} missing: none of them a library"
            " or the top of a package",
            [path for item in absent for path in item.missing],
        )
    minor = [item for item in repairs.harmless if item.overwritten and not any(map(_is_library, item.overwritten))]
    if minor:
        number = sum(len(item.overwritten) for item in minor)
        yield _summary(
            Code.FILE_OVERWRITTEN,
            f"{files(number)} of {_listed(minor)} hold{'s' if number == 1 else ''} another distribution's bytes: none"
            " of them a library or the top of a package",
            [path for item in minor for path in item.overwritten],
        )
    edited = [item for item in (*repairs.restore, *repairs.undecided, *repairs.harmless) if item.edited]
    if edited:
        number = sum(len(item.edited) for item in edited)
        yield _summary(
            Code.FILE_OVERWRITTEN,
            f"{files(number)} of {_listed(edited)} hold{'s' if number == 1 else ''} nobody's bytes: somebody edited"
            f" {'it' if number == 1 else 'them'}",
            [path for item in edited for path in item.edited],
        )


def files(number: int) -> str:
    """Return a number of files in words."""
    return "1 file" if number == 1 else f"{number} files"


def _damaged(item: Damage, help: tuple[str, ...]) -> Iterator[Finding]:
    label = f"`{item.distribution.name}` {item.distribution.version}"
    if item.missing:
        yield Finding(
            code=Code.ALREADY_MISSING,
            severity=Severity.ERROR,
            message=f"{label} is installed, but {len(item.missing)} of its {files(item.claims)}"
            f" {'is' if len(item.missing) == 1 else 'are'} missing",
            distribution=reference(item.distribution),
            path=_most_telling(item.missing),
            paths=item.missing,
            help=help,
        )
    if item.overwritten:
        yield _overwritten(item, Severity.ERROR, help)


def _overwritten(item: Damage, severity: Severity, help: tuple[str, ...]) -> Finding:
    number = len(item.overwritten)
    writers = ", ".join(writer.label for writer in item.by)
    return Finding(
        code=Code.FILE_OVERWRITTEN,
        severity=severity,
        message=f"{files(number)} of `{item.distribution.name}` {item.distribution.version}"
        f" hold{'s' if number == 1 else ''} the bytes of {writers}",
        distribution=reference(item.distribution),
        path=_most_telling(item.overwritten),
        paths=item.overwritten,
        claimants=tuple(Claimant(distribution=reference(writer)) for writer in item.by),
        help=help,
    )


def _summary(code: Code, message: str, paths: Iterable[str]) -> Finding:
    ordered = tuple(sorted(set(paths)))
    return Finding(code=code, severity=Severity.NOTE, message=message, path=ordered[0], paths=ordered)


def _most_telling(paths: tuple[str, ...]) -> str:
    """Return the first library among sorted paths, or the first of them: a header says little."""
    return next((path for path in paths if _is_library(path)), paths[0])


def _is_library(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.endswith(".so") or ".so." in name


def _listed(items: Iterable[Damage]) -> str:
    names = [item.distribution.name for item in items]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
