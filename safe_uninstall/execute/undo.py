"""The part of a transaction that brings something: wheels that are installed, or what an earlier one took away."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import posixpath
from collections.abc import Mapping
from io import StringIO
from typing import TYPE_CHECKING, Any

from safe_uninstall.execute import installation
from safe_uninstall.execute.journal import sync_directory
from safe_uninstall.execute.receipt import read_facts
from safe_uninstall.execute.stash import TEMPORARY_SUFFIX, Stash
from safe_uninstall.model.history import FACTS
from safe_uninstall.model.plan import ActionKind

if TYPE_CHECKING:
    from safe_uninstall.execute.installers import Installer
    from safe_uninstall.execute.journal import Journal
    from safe_uninstall.model.plan import Plan


def brings(plan: Plan) -> bool:
    """Return whether a plan does more than take away."""
    return bool(plan.wheels) or (plan.undo is not None and plan.undo.backup is not None)


def brought(plan: Plan) -> list[str]:
    """Return what a plan brings, as the journal names it."""
    kinds = (ActionKind.RESTORE, ActionKind.INSTALL)
    return [action.distribution.label for action in plan.actions if action.kind in kinds]


def what_will_be_new(plan: Plan) -> dict[str, Any]:
    """Return what a plan will create, so that a roll back can take it away; see ``installation.what_will_be_new``."""
    new = installation.what_will_be_new(plan.prediction)
    if plan.undo is not None:
        new["created"] = sorted({*new["created"], *plan.undo.directories})
    return new


def bring(plan: Plan, installer: Installer, journal: Journal, stash: Stash, output: list[str]) -> str | None:
    """Install the wheels of a plan, or put files back from the backup of the transaction that it undoes.

    Args:
        plan: names the wheels, or the backup.
        installer: pip or uv; not run where there is a backup.
        journal: its directory takes the wheels while they are installed.
        stash: what this transaction keeps of the environment before it.
        output: gets what the installer printed.

    Returns:
        Why it failed, None when it did not.
    """
    undo = plan.undo
    if undo is not None and undo.backup is not None:
        return _put_back(undo.backup, {*plan.prediction.written, *undo.directories})
    failed = installation.install_wheels(plan, installer, journal, stash, output)
    if failed is None and undo is not None:
        for info, facts in sorted(undo.facts.items()):
            _give_back(info, facts)
    return failed


def _put_back(backup: str, paths: set[str]) -> str | None:
    """Bring files and directories back from a kept backup, which keeps them."""
    kept = Stash(backup)
    if not kept.load():
        return f"the backup {backup} cannot be read any more"
    failed = kept.put_back(paths)
    if failed:
        return f"{failed[0].path} could not be put back: {failed[0].reason}"
    different = paths.intersection(kept.differences())
    return f"{min(different)} is not as it was kept" if different else None


def _give_back(info: str, facts: Mapping[str, str]) -> None:
    """Make a dist-info say what it said of how its distribution came there, and its RECORD agree with that.

    Installers hard-link files from their caches, so nothing is written in place.

    Args:
        info: the dist-info directory, just installed.
        facts: of ``FACTS``: name to text; the others are to be absent.
    """
    if read_facts(info) == facts:
        return
    name = posixpath.basename(info)
    record = posixpath.join(info, "RECORD")
    with open(record, encoding="utf-8", errors="surrogateescape", newline="") as file:
        rows = {row[0]: row for row in csv.reader(file) if row}
    for fact in FACTS:
        path, written = posixpath.join(info, fact), f"{name}/{fact}"
        if fact in facts:
            data = facts[fact].encode("utf-8", "surrogateescape")
            _write(path, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows[written] = [written, f"sha256={digest}", str(len(data))]
        else:
            rows.pop(written, None)
            if os.path.lexists(path):
                os.unlink(path)
    text = StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows.values())
    _write(record, text.getvalue().encode("utf-8", "surrogateescape"))


def _write(path: str, data: bytes) -> None:
    """Put a new file in the place of whatever is there."""
    temporary = f"{path}{TEMPORARY_SUFFIX}"
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)
    sync_directory(posixpath.dirname(path))
