"""Rewrites that would work where a request is blocked, as whole commands."""

from collections.abc import Iterator

from safe_uninstall.analysis.actions import make_actions
from safe_uninstall.analysis.change import ChangeJudge
from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.requested import Asked
from safe_uninstall.analysis.rewriting import PresumedWheels, Resolution, resolve
from safe_uninstall.model.plan import Action, ActionKind, Alternative, Request, Rewrite
from safe_uninstall.model.snapshot import Snapshot

_CANDIDATES = (
    (Rewrite.RESTORE,),
    (Rewrite.KEEP_NEEDED,),
    (Rewrite.RESTORE, Rewrite.KEEP_NEEDED),
    (Rewrite.CASCADE,),
    (Rewrite.RESTORE, Rewrite.CASCADE),
)
"""Preferred first. A combination is offered only where no part of it suffices, and a cascade, which takes away what the
user wants to keep working, only where nothing milder does."""


def find_alternatives(
    snapshot: Snapshot, owners: Owners, judge: ChangeJudge, request: Request, asked: Asked, commands: Commands
) -> tuple[Alternative, ...]:
    """Return the rewrites that leave no loss, without fetching anything.

    A restored distribution is presumed to bring what its RECORD lists. Keeping everything that was named is no
    alternative.

    Args:
        snapshot: the baseline.
        owners: who claims which path.
        judge: judges changes of the baseline.
        request: what was asked for, and blocked.
        asked: the request, resolved.
        commands: makes the commands.
    """
    found: list[Alternative] = []
    wheels = PresumedWheels(snapshot)
    for rewrites in _CANDIDATES:
        if any(set(item.rewrites) <= set(rewrites) or Rewrite.CASCADE in rewrites for item in found):
            continue
        resolution = resolve(
            snapshot,
            owners,
            judge,
            leaving=asked.leaving,
            installed=asked.installed,
            rewrites=frozenset({*request.rewrites, *rewrites}),
            wheels=wheels,
        )
        if not isinstance(resolution, Resolution):
            continue
        actions = make_actions(
            snapshot, resolution.judgement, kept=resolution.kept, cascaded=resolution.cascaded, outline=True
        )
        if not any(action.kind is ActionKind.UNINSTALL and action.requested for action in actions):
            continue
        found.append(
            Alternative(
                rewrites=rewrites,
                command=commands.ours(*request.names, *request_options(request, rewrites)),
                actions=actions,
                summary=_summary(actions),
            )
        )
    return tuple(found)


def request_options(request: Request, rewrites: tuple[Rewrite, ...]) -> Iterator[str]:
    """Repeat what the request was given with, so that the command plans the very same with the rewrites added."""
    for rewrite in dict.fromkeys((*request.rewrites, *rewrites)):
        yield f"--{rewrite.value}"
    for option, values in (
        ("--install", request.install),
        ("--accept-loss", request.accepted_losses),
        ("--find-links", request.find_links),
    ):
        for value in values:
            yield from (option, value)
    if request.no_index:
        yield "--no-index"
    if request.use_library_path:
        yield "--use-ld-library-path"
    if request.break_system_packages:
        yield "--break-system-packages"
    if request.installer is not None:
        yield from ("--installer", request.installer.value)


def _summary(actions: tuple[Action, ...]) -> str:
    """Return what an alternative does, in a clause."""

    def labels(kind: ActionKind, *, requested: bool | None = None) -> str:
        chosen = [item for item in actions if item.kind is kind and requested in (None, item.requested)]
        names = list(dict.fromkeys(item.distribution.label for item in chosen))
        return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")

    kept = labels(ActionKind.KEEP)
    what = f"remove {labels(ActionKind.UNINSTALL, requested=True)}" if kept else "remove it"
    requested = {item.distribution for item in actions if item.kind is ActionKind.UNINSTALL and item.requested}
    if not kept and len(requested) > 1:
        what = "remove them"
    parts = [what]
    if cascaded := labels(ActionKind.UNINSTALL, requested=False):
        parts.append(f"remove {cascaded} too")
    if restored := labels(ActionKind.RESTORE):
        parts.append(f"restore {restored}")
    if kept:
        parts.append(f"keep {kept}")
    return " and ".join(parts)
