"""What is to be said of an undo beside what follows from the change: what changed since, and what cannot come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safe_uninstall.analysis.guards import reference
from safe_uninstall.model.plan import Claimant, Code, DistributionRef, Finding, Severity

if TYPE_CHECKING:
    from safe_uninstall.analysis.former import Conflict
    from safe_uninstall.model.distribution import Distribution
    from safe_uninstall.model.history import Pin
    from safe_uninstall.model.wheel import Wheel


def gone_since(pin: Pin) -> Finding:
    """Say of something that the transaction brought that it need not be taken away."""
    return Finding(
        code=Code.NOT_INSTALLED,
        severity=Severity.NOTE,
        message=f"`{pin.name}` {pin.version}, which the transaction brought, is not installed any more",
        distribution=DistributionRef(name=pin.name, version=pin.version),
    )


def back_already(old: Distribution) -> Finding:
    """Say of something that the transaction took away that it need not be brought back."""
    return Finding(
        code=Code.DUPLICATE_DISTRIBUTION,
        severity=Severity.NOTE,
        message=f"`{old.name}` {old.version} is installed again already, and stays as it is",
        distribution=reference(old),
    )


def back_in_another_version(old: Distribution, now: Distribution, removal: str) -> Finding:
    """Refuse to bring something back beside another version of it; ``removal`` is the command that removes that."""
    return Finding(
        code=Code.DUPLICATE_DISTRIBUTION,
        severity=Severity.ERROR,
        message=f"`{old.name}` is installed again, as {now.version}: {old.version} cannot be brought back beside it",
        distribution=reference(now),
        path=now.metadata_path,
        help=("remove it first, then run this again", removal),
    )


def was_there_several_times(old: Distribution, number: int, installation: str) -> Finding:
    """Refuse to bring back several distributions of one name; ``installation`` is the command that installs one."""
    return Finding(
        code=Code.DUPLICATE_DISTRIBUTION,
        severity=Severity.ERROR,
        message=f"`{old.name}` was installed {number} times: no installer brings that back",
        distribution=reference(old),
        help=("install the one that you want yourself", installation),
    )


def stays_restored(pin: Pin) -> Finding:
    """Say of something that the transaction restored that it stays so."""
    return Finding(
        code=Code.FILE_OVERWRITTEN,
        severity=Severity.NOTE,
        message=f"`{pin.name}` {pin.version} keeps the bytes that the transaction gave it: no backup was kept",
        distribution=DistributionRef(name=pin.name, version=pin.version),
    )


def goes_back(item: Distribution, wheel: Wheel, missing: tuple[str, ...], identifier: str) -> Finding:
    """Say of something that the transaction restored that it loses its own bytes again.

    Args:
        item: what was restored.
        wheel: what comes back of its files.
        missing: files that it did not have before.
        identifier: the transaction.
    """
    parts = []
    if wheel.rows:
        parts.append(f"{_files(len(wheel.rows))} replaced")
    if missing:
        parts.append(f"{_files(len(missing))} missing again")
    return Finding(
        code=Code.FILE_OVERWRITTEN,
        severity=Severity.WARNING,
        message=f"`{item.name}` {item.version} goes back to what it was before {identifier}: {', '.join(parts)}",
        distribution=reference(item),
        path=item.metadata_path,
        paths=tuple(sorted((*(row.path for row in wheel.rows), *missing))),
    )


def would_overwrite(conflict: Conflict, again: str) -> Finding:
    """Refuse to overwrite what came since; ``again`` is the command that accepts a loss, up to its name."""
    by, survivor, paths = conflict.by, conflict.survivor, conflict.paths
    if survivor is None:
        whose, meant = "that nobody owns", reference(by)
    else:
        whose, meant = f"of `{survivor.name}` {survivor.version}", reference(survivor)
    return Finding(
        code=Code.FILE_LOST,
        severity=Severity.ERROR,
        message=f"bringing `{by.name}` {by.version} back would overwrite {_files(len(paths))} {whose}",
        distribution=meant,
        path=paths[0],
        paths=paths,
        claimants=() if survivor is None else (Claimant(distribution=meant, overwritten=len(paths)),),
        help=("bring it back all the same", f"{again} {meant.name}"),
    )


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"
