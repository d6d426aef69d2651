"""What it takes to undo a transaction in the environment as it is now, which may have changed since.

What the transaction installed goes again. What it removed comes back: from its backup byte for byte, else from wheels
of the same build. What it restored gets the bytes back that it had before if there is a backup; else it stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from safe_uninstall.analysis.change import Change
from safe_uninstall.analysis.fingerprint import fingerprint
from safe_uninstall.analysis.former import FormerFiles
from safe_uninstall.analysis.undo_findings import (
    back_already,
    back_in_another_version,
    goes_back,
    gone_since,
    stays_restored,
    was_there_several_times,
    would_overwrite,
)
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.history import Backup, History, Pin, Receipt, Removed, Undo
from safe_uninstall.model.plan import ActionKind, Code, Finding, Plan, Severity
from safe_uninstall.model.wheel import Wheel

if TYPE_CHECKING:
    from safe_uninstall.analysis.commands import Commands
    from safe_uninstall.analysis.fingerprint import Parts
    from safe_uninstall.analysis.ownership import Owners
    from safe_uninstall.model.snapshot import Snapshot

Restore = Callable[[Iterable[Distribution]], tuple[tuple[Distribution, Wheel], ...]]
"""Returns distributions with the wheels that they were installed from; raises WheelsUnavailable if one has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """What an undo comes to."""

    undo: Undo
    change: Change
    findings: tuple[Finding, ...]
    """Beside those that follow from the change."""
    deleted: frozenset[str] = frozenset()
    """Paths that go beside those of what leaves."""
    parts: Parts = ()
    """What the plan depends on beside the environment's distributions and libraries."""
    _again: str
    """Command that accepts a loss, up to its name."""

    def softened(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Yield the findings of the change as they are meant here.

        What comes back may have missed a requirement before it went, which is no loss; and what it would overwrite can
        be accepted.
        """
        coming = {wheel.name for wheel in self.change.installed}
        for item in findings:
            name = None if item.distribution is None else item.distribution.name
            if item.code is Code.REQUIREMENT_LOST and item.lost is None and name in coming:
                yield replace(item, severity=Severity.WARNING, help=())
            elif item.code is Code.FILE_LOST and item.severity is Severity.ERROR and not item.help:
                yield replace(item, help=("bring it back all the same", f"{self._again} {name}"))
            else:
                yield item

    def complete(self, plan: Plan) -> Plan:
        """Return the plan of the change as the plan of this undo."""
        parts = tuple(sorted((*plan.fingerprint_parts, *self.parts)))
        prediction = plan.prediction
        contested = _contested(self.change.installed)
        plan = replace(
            plan,
            undo=self.undo,
            fingerprint=fingerprint(parts),
            fingerprint_parts=parts,
            prediction=replace(
                prediction,
                deleted=(prediction.deleted | self.deleted) - prediction.written.keys(),
                written={path: "" if path in contested else hash_ for path, hash_ in prediction.written.items()},
            ),
        )
        if self.undo.backup is None:
            return plan
        # Nothing is installed: an installer could not bring back what was never in a wheel.
        actions = (
            replace(action, reason=f"the bytes it had before, from the backup of {self.undo.transaction}")
            if action.kind is ActionKind.RESTORE
            else action
            for action in plan.actions
        )
        return replace(plan, actions=tuple(actions), wheels=())


def plan_undo(
    snapshot: Snapshot,
    owners: Owners,
    commands: Commands,
    history: History,
    identifier: str,
    restore: Restore,
) -> Undoing:
    """Find out what undoing a transaction takes.

    Args:
        snapshot: the environment as it is.
        owners: who claims its paths.
        commands: makes the help.
        history: knows the transaction.
        identifier: its name.
        restore: where wheels come from; asked only if there is no backup.

    Raises:
        UsageError: there is no such transaction.
        WheelsUnavailable: there is no backup, and something cannot be installed again.
    """
    receipt = history.receipt(identifier)
    findings: list[Finding] = []
    leaving = tuple(_still_there(receipt.installed, snapshot, findings))
    returning = tuple(_to_bring_back(receipt, snapshot, leaving, commands, findings))
    backup = None if receipt.backup_bytes is None else history.backup(identifier)
    again = commands.ours("undo", identifier, "--accept-loss")
    if backup is None:
        single = tuple(_once_each(returning, commands, findings))
        here = {item.metadata_path for item in snapshot.distributions}
        findings += (stays_restored(pin) for pin in receipt.restored if pin.metadata_path in here)
        wheels = restore(item.distribution for item in single)
        return Undoing(
            undo=Undo(
                transaction=identifier,
                backup=None,
                facts={item.distribution.metadata_path: item.facts for item in single},
            ),
            change=Change(leaving=leaving, installed=_sorted(wheel for _, wheel in wheels)),
            findings=tuple(findings),
            _again=again,
        )
    restored = tuple(_still_there(receipt.restored, snapshot, findings))
    return _from_backup(snapshot, owners, receipt, backup, leaving, returning, restored, findings, again)


def _from_backup(
    snapshot: Snapshot,
    owners: Owners,
    receipt: Receipt,
    backup: Backup,
    leaving: tuple[Distribution, ...],
    returning: tuple[Removed, ...],
    restored: tuple[Distribution, ...],
    findings: list[Finding],
    again: str,
) -> Undoing:
    former = FormerFiles(
        snapshot, owners, receipt, backup, giving_way=frozenset(item.metadata_path for item in (*leaving, *restored))
    )
    wheels = tuple(former.wheel(item.distribution) for item in returning)
    reverted = [(item, former.wheel(item)) for item in restored]
    missing = {item.metadata_path: former.missing_before(item) for item in restored}
    reverted = [pair for pair in reverted if pair[1].rows or missing[pair[0].metadata_path]]
    findings += (would_overwrite(item, again) for item in former.conflicts)
    findings += (goes_back(item, wheel, missing[item.metadata_path], receipt.identifier) for item, wheel in reverted)
    gone = frozenset(path for item, _ in reverted for path in missing[item.metadata_path])
    return Undoing(
        undo=Undo(
            transaction=receipt.identifier,
            backup=backup.directory,
            directories=former.directories((*wheels, *(wheel for _, wheel in reverted))),
        ),
        change=Change(
            leaving=leaving,
            restored=tuple(reverted),
            installed=_sorted(wheels),
            yielding=frozenset(item.metadata_path for item in restored),
        ),
        findings=tuple(findings),
        deleted=gone | former.stale_caches((*wheels, *(wheel for _, wheel in reverted)), gone),
        parts=((f"the files to bring back from the backup of {receipt.identifier}", former.digest()),),
        _again=again,
    )


def _still_there(pins: Iterable[Pin], snapshot: Snapshot, findings: list[Finding]) -> Iterator[Distribution]:
    """Yield what a transaction brought and is still there; note what is not."""
    present = {(item.metadata_path, item.version): item for item in snapshot.distributions}
    for pin in pins:
        found = present.get((pin.metadata_path, pin.version))
        if found is None:
            findings.append(gone_since(pin))
        else:
            yield found


def _to_bring_back(
    receipt: Receipt,
    snapshot: Snapshot,
    leaving: tuple[Distribution, ...],
    commands: Commands,
    findings: list[Finding],
) -> Iterator[Removed]:
    """Yield what a transaction took away and nobody has brought back; note what somebody has, in whatever version."""
    gone = {item.metadata_path for item in leaving}
    here = [item for item in snapshot.distributions if item.owned_here and item.metadata_path not in gone]
    for removed in receipt.removed:
        old = removed.distribution
        now = [item for item in here if item.name == old.name]
        if not now:
            yield removed
        elif any(item.version == old.version for item in now):
            findings.append(back_already(old))
        else:
            findings.append(back_in_another_version(old, now[0], commands.ours(old.name)))


def _once_each(returning: tuple[Removed, ...], commands: Commands, findings: list[Finding]) -> Iterator[Removed]:
    """Yield what an installer can bring back; of several distributions of one name it could install only one."""
    names = [item.distribution.name for item in returning]
    told: set[str] = set()
    for item in returning:
        old = item.distribution
        if names.count(old.name) == 1:
            yield item
        elif old.name not in told:
            told.add(old.name)
            findings.append(was_there_several_times(old, names.count(old.name), commands.reinstall((old,))))


def _contested(wheels: Iterable[Wheel]) -> frozenset[str]:
    """Return the paths that several wheels write with different bytes: the installer decides who does so last."""
    hashes: dict[str, set[str]] = {}
    for wheel in wheels:
        for row in wheel.rows:
            hashes.setdefault(row.path, set()).add(row.hash.rstrip("="))
    return frozenset(path for path, found in hashes.items() if len(found) > 1)


def _sorted(wheels: Iterable[Wheel]) -> tuple[Wheel, ...]:
    return tuple(sorted(wheels, key=lambda item: (item.name, item.metadata_path)))
