"""Which running processes use files that a plan takes away or replaces, and what that means for them."""

from collections.abc import Collection, Iterator, Set

from safe_uninstall.model.plan import Code, Finding, Severity
from safe_uninstall.model.processes import Uses
from safe_uninstall.model.snapshot import Snapshot

_GONE = "what runs keeps the old file; what is started again will not find it"
_REPLACED = "what runs keeps the old file; what is started again gets the new one"


def in_use_findings(
    snapshot: Snapshot, *, deleted: Set[str], written: Collection[str], refuse: bool
) -> Iterator[Finding]:
    """Yield one finding about all files in use, nothing where there are none.

    Args:
        snapshot: the environment, with the processes that run.
        deleted: canonical paths that will be gone.
        written: canonical paths that wheels write.
        refuse: whether a file in use is an error.
    """
    replaced = frozenset(written)
    uses = _uses(snapshot, deleted | replaced)
    if not uses.found:
        return
    paths = sorted({use.path for use in uses.found})
    processes = len({use.pid for use in uses.found})
    gone = [path for path in paths if path not in replaced]
    fate = "go or be replaced" if 0 < len(gone) < len(paths) else "go" if gone else "be replaced"
    them = "it" if processes == 1 else "them"
    what = "a file" if len(paths) == 1 else f"{len(paths)} files"
    who = "1 process uses" if processes == 1 else f"{processes} processes use"
    yield Finding(
        code=Code.IN_USE,
        severity=Severity.ERROR if refuse else Severity.WARNING,
        message=f"{who} {what} that would {fate}",
        path=paths[0],
        paths=tuple(paths),
        uses=uses.found,
        notes=(*([_GONE] if gone else []), *([_REPLACED] if len(gone) < len(paths) else [])),
        help=(f"end {them} first, " + ("then run again" if refuse else f"or start {them} again afterwards"),),
    )


def unseen_processes(snapshot: Snapshot, *, deleted: Set[str], written: Collection[str], refuse: bool) -> int:
    """Return how many processes could not be looked at, where what they use may matter.

    That is where libraries are touched: other files are rarely held by anybody. What root may not look at is the
    system's own, or the container's; it matters only to a user who refuses any use.

    Args:
        snapshot: the environment, with the processes that run.
        deleted: canonical paths that will be gone.
        written: canonical paths that wheels write.
        refuse: whether the user refuses files in use.
    """
    touched = deleted | frozenset(written)
    uses = _uses(snapshot, touched)
    matters = refuse or (not uses.asked_by_root and any(path in snapshot.objects for path in touched))
    return uses.unreadable if matters else 0


def _uses(snapshot: Snapshot, touched: Set[str]) -> Uses:
    """Ask, unless nothing is touched: then no process need be looked at."""
    return snapshot.processes.using(touched) if touched else Uses()
