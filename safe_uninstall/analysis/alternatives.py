"""Rewrites that would work where a request is blocked, as whole commands."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from safe_uninstall.analysis.actions import make_actions
from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.nearest import Ground, Resolution
from safe_uninstall.analysis.presumed import PresumedWheels
from safe_uninstall.analysis.requested import Asked
from safe_uninstall.analysis.rewriting import rewrite
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.plan import PROBE_TIMEOUT, Alternative, Request, Rewrite
from safe_uninstall.model.wheel import Wheel, WheelUnavailable

_SHOWN = 3


def find_alternatives(
    ground: Ground,
    request: Request,
    asked: Asked,
    commands: Commands,
    known: Mapping[str, Wheel | WheelUnavailable],
) -> tuple[Alternative, ...]:
    """Return the rewrites that leave no loss, without fetching anything.

    A restored distribution is presumed to bring what its RECORD lists. A combination is offered only where no part of
    it suffices, and a cascade, which takes away what the user wants to keep working, only where nothing milder does.
    A cascade that restores what it can comes before the one that removes that too. Keeping everything that was named is
    no alternative, and neither is what was tried with the request.

    Args:
        ground: the snapshot, and who judges.
        request: what was asked for, and blocked.
        asked: the request, resolved.
        commands: makes the commands.
        known: wheels that are at hand or known not to be had, by the metadata path of what they would restore.
    """
    finder = _Finder(ground, request, asked, commands, PresumedWheels(ground.snapshot, known, owners=ground.owners))
    return tuple(finder.find())


@dataclass(frozen=True, slots=True)
class _Finder:
    _ground: Ground
    _request: Request
    _asked: Asked
    _commands: Commands
    _wheels: PresumedWheels

    def find(self) -> Iterator[Alternative]:
        """Yield alternatives, preferred first."""
        mild = [*self._try(Rewrite.RESTORE), *self._try(Rewrite.KEEP_NEEDED)]
        mild = mild or self._try(Rewrite.RESTORE, Rewrite.KEEP_NEEDED)
        if mild:
            yield from mild
            return
        plain = self._try(Rewrite.CASCADE)
        both = self._try(Rewrite.RESTORE, Rewrite.CASCADE)
        if [item.actions for item in both] != [item.actions for item in plain]:
            yield from both
        yield from plain

    def _try(self, *rewrites: Rewrite) -> list[Alternative]:
        """Return the alternative by some rewrites, none where they change nothing or find nothing."""
        added = tuple(item for item in rewrites if item not in self._request.rewrites)
        if not added:
            return []
        allowed = frozenset((*self._request.rewrites, *rewrites))
        found = rewrite(self._ground, self._asked, rewrites=allowed, wheels=self._wheels)
        if not isinstance(found, Resolution):
            return []
        named, going = _named(self._asked, found)
        if named and not going:
            return []
        actions = make_actions(
            self._ground.snapshot, found.judgement, kept=found.kept, cascaded=found.cascaded, outline=True
        )
        return [
            Alternative(
                rewrites=added,
                command=self._commands.ours(*self._request.names, *request_options(self._request, added)),
                actions=actions,
                summary=_summary(self._asked, found),
            )
        ]


def request_options(request: Request, rewrites: tuple[Rewrite, ...]) -> Iterator[str]:
    """Repeat what the request was given with, so that the command plans the very same with the rewrites added."""
    for flag in (*request.rewrites, *rewrites):
        yield f"--{flag.value}"
    for option, values in (
        ("--install", request.install),
        ("--accept-loss", request.accepted_losses),
        ("--find-links", request.find_links),
        ("--consumers-in", request.consumers_in),
        ("--probe", request.probes),
    ):
        for value in values:
            yield from (option, value)
    if request.probes and request.probe_timeout != PROBE_TIMEOUT:
        yield from ("--probe-timeout", f"{request.probe_timeout:g}")
    if request.refuse_in_use:
        yield "--refuse-in-use"
    if request.no_index:
        yield "--no-index"
    if request.use_library_path:
        yield "--use-ld-library-path"
    if request.break_system_packages:
        yield "--break-system-packages"
    if request.installer is not None:
        yield from ("--installer", request.installer.value)


def _summary(asked: Asked, found: Resolution) -> str:
    """Return what an alternative does, in a clause."""
    change = found.judgement.change
    by_path = {item.metadata_path: item for item in (*asked.leaving, *change.leaving)}
    named, going = _named(asked, found)
    parts = []
    if going:
        it = "it" if len({item.name for item in named}) == 1 else "them"
        parts.append(f"remove {_labels(going) if found.kept else it}")
    if change.installed:
        parts.append(f"install {_labels(change.installed)}")
    if found.cascaded:
        parts.append(f"remove {_labels(by_path[path] for path in found.cascaded)} too")
    if change.restored:
        parts.append(f"restore {_labels(item for item, _ in change.restored)}")
    if found.kept:
        parts.append(f"keep {_labels(by_path[path] for path in found.kept)}")
    return " and ".join(parts)


def _named(asked: Asked, found: Resolution) -> tuple[list[Distribution], list[Distribution]]:
    """Return what is named to be removed, and what of it goes; what an installation replaces is neither."""
    comers = {item.name for item in found.judgement.change.installed}
    named = [item for item in asked.leaving if item.name not in comers]
    return named, [item for item in named if item.metadata_path not in found.kept]


def _labels(items: Iterable[Distribution | Wheel]) -> str:
    names = list(dict.fromkeys(f"{item.name} {item.version}" for item in items))
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
