"""The journal of a transaction: what is about to happen, on disk before it happens.

``<prefix>/.safe-uninstall/<id>/journal.jsonl``, one JSON object a line, readable by a person. The last complete line
tells how far a run came; a line cut short by a crash does not count, since what it announces had not begun. Of a
committed transaction a receipt stays in ``<prefix>/.safe-uninstall/history``.
"""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

DIRECTORY = ".safe-uninstall"
"""At the root of the environment, on its file system."""

HISTORY = "history"
"""Holds the receipts of committed transactions, beside the directories of those that are not forgotten."""

JOURNAL_VERSION = 1
_JOURNAL = "journal.jsonl"
_RECEIPT = "receipt.json"
_GONE = ".gone"
"""Ends the name of what is being deleted."""
_IDENTIFIER = re.compile(r"(\d{8}T\d{6})(?:-(\d+))?")


class Step(Enum):
    """What a line of the journal announces, in order."""

    PREPARED = "prepared"
    """The request and the prediction; nothing is touched yet."""
    STASHING = "stashing"
    """Files are linked into the stash; none of the environment's own is touched."""
    STASHED = "stashed"
    """The stash is complete: from here on everything can be brought back."""
    TRIMMING = "trimming"
    """RECORDs are replaced by ones without the rows that must stay."""
    UNINSTALLING = "uninstalling"
    """The installer runs."""
    RELEASING = "releasing"
    """Released paths that the installer took are put back."""
    INSTALLING = "installing"
    """The installer installs wheels that are at hand."""
    VERIFYING = "verifying"
    """The environment is scanned again."""
    PROBING = "probing"
    """The user's probes run in the changed environment."""
    COMMITTED = "committed"
    """The outcome is the predicted one; what is left to do is to drop the stash."""
    ROLLING_BACK = "rolling-back"
    ROLLED_BACK = "rolled-back"
    """As before; what is left to do is to drop the stash."""

    @property
    def is_final(self) -> bool:
        """Whether the environment is as it should be, and only the stash may be left."""
        return self in (Step.COMMITTED, Step.ROLLED_BACK)


class Journal:
    """The journal of one transaction."""

    def __init__(self, directory: str) -> None:
        """Use the journal in a transaction's directory."""
        self.directory = directory
        self._path = os.path.join(directory, _JOURNAL)

    @property
    def identifier(self) -> str:
        """The transaction's name."""
        return os.path.basename(self.directory)

    @property
    def stash_directory(self) -> str:
        """Where the stash of the transaction is."""
        return os.path.join(self.directory, "stash")

    @property
    def backup_directory(self) -> str:
        """Where the stash goes when it is kept after a commit."""
        return os.path.join(self.directory, "stash.kept")

    @property
    def has_receipt(self) -> bool:
        """Whether there is a receipt that is not in the history yet."""
        return os.path.exists(os.path.join(self.directory, _RECEIPT))

    def keep_backup(self) -> str:
        """Keep the stash of a committed transaction, and return where; called again, it only returns that."""
        if os.path.isdir(self.stash_directory):
            os.rename(self.stash_directory, self.backup_directory)
            sync_directory(self.directory)
        return self.backup_directory

    def write_receipt(self, document: Mapping[str, Any]) -> None:
        """Put a receipt on disk that ``publish_receipt`` only needs to rename.

        Args:
            document: anything that JSON can hold.
        """
        root = os.path.dirname(self.directory)
        os.makedirs(os.path.join(root, HISTORY), mode=0o700, exist_ok=True)
        sync_directory(root)
        path = os.path.join(self.directory, _RECEIPT)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            json.dump(document, file, ensure_ascii=True, separators=(",", ":"))
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self.directory)

    def publish_receipt(self) -> None:
        """Move the receipt of a committed transaction into the history; without one nothing happens."""
        if not self.has_receipt:
            return
        history = os.path.join(os.path.dirname(self.directory), HISTORY)
        os.rename(os.path.join(self.directory, _RECEIPT), os.path.join(history, f"{self.identifier}.json"))
        sync_directory(history)
        sync_directory(self.directory)

    def drop_receipt(self) -> None:
        """Delete the receipt of a transaction that will not be committed."""
        try:
            os.unlink(os.path.join(self.directory, _RECEIPT))
        except OSError:
            pass

    @property
    def wheels_directory(self) -> str:
        """Where the wheels are, or links to them, while they are installed."""
        return os.path.join(self.directory, "wheels")

    def forget(self) -> None:
        """Remove all that is left of the transaction but its receipt, and our directory when nothing is in it."""
        import shutil

        gone = f"{self.directory}{_GONE}"
        try:
            # What is half deleted must not be taken for a transaction that did not end.
            os.rename(self.directory, gone)
        except OSError:
            gone = self.directory
        shutil.rmtree(gone, ignore_errors=True)
        _remove_if_empty(os.path.dirname(self.directory))

    def write(self, step: Step, **facts: Any) -> None:
        """Append a line, and return when it is on disk.

        Args:
            step: what is about to happen.
            facts: anything that JSON can hold.
        """
        entry = {"version": JOURNAL_VERSION, "step": step.value, "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **facts}
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, (json.dumps(entry, ensure_ascii=True) + "\n").encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_directory(self.directory)

    def entries(self) -> Iterator[Mapping[str, Any]]:
        """Yield the complete lines, oldest first; nothing when there is no journal."""
        try:
            with open(self._path, "rb") as file:
                lines = file.read().split(b"\n")
        except OSError:
            return
        for line in lines[:-1]:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                yield entry

    def last_step(self) -> Step | None:
        """Return the last step that was announced, None when there is none that this version knows."""
        last: Step | None = None
        for entry in self.entries():
            try:
                last = Step(entry.get("step"))
            except ValueError:
                continue
        return last

    def facts(self, step: Step) -> Mapping[str, Any]:
        """Return the latest line of a step, empty when it was never announced."""
        found: Mapping[str, Any] = {}
        for entry in self.entries():
            if entry.get("step") == step.value:
                found = entry
        return found


def create_journal(prefix: str) -> Journal:
    """Make the directory of a new transaction, for its user alone.

    Raises:
        OSError: the environment cannot be written to.
    """
    root = os.path.join(prefix, DIRECTORY)
    os.makedirs(root, mode=0o700, exist_ok=True)
    now = (time.strftime("%Y%m%dT%H%M%S"), 0)
    used = [age(name) for name in (*_names(root), *stored_receipts(prefix))]
    # Names tell the order of transactions, whatever becomes of the clock.
    second, number = max([now, *((second, number + 1) for second, number in used)])
    name = f"{second}-{number}" if number else second
    os.mkdir(os.path.join(root, name), 0o700)
    sync_directory(root)
    sync_directory(prefix)
    return Journal(os.path.join(root, name))


def age(identifier: str) -> tuple[str, int]:
    """Return what transactions are sorted by, oldest first; a name that is none of ours is older than all."""
    match = _IDENTIFIER.fullmatch(identifier)
    return ("", 0) if match is None else (match[1], int(match[2] or 0))


def stored_receipts(prefix: str) -> tuple[str, ...]:
    """Return the names of the transactions whose receipts are in the history, oldest first."""
    names = _names(os.path.join(prefix, DIRECTORY, HISTORY))
    found = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return tuple(sorted(found, key=lambda name: (age(name), name)))


def receipt_path(prefix: str, identifier: str) -> str:
    """Return where the receipt of a transaction is."""
    return os.path.join(prefix, DIRECTORY, HISTORY, f"{identifier}.json")


def ended(prefix: str) -> tuple[Journal, ...]:
    """Return the transactions that certainly ended and of which more than a receipt is left, oldest first."""
    return tuple(journal for journal in _journals(prefix) if _has_ended(journal))


def unfinished(prefix: str) -> tuple[Journal, ...]:
    """Return the transactions of which it is not certain that they ended, oldest first."""
    return tuple(journal for journal in _journals(prefix) if not _has_ended(journal))


def sweep(prefix: str) -> None:
    """Remove what transactions left that ended, and whose end was cut short while they dropped their stash."""
    import shutil

    root = os.path.join(prefix, DIRECTORY)
    for name in _names(root):
        if name.endswith(_GONE):
            shutil.rmtree(os.path.join(root, name), ignore_errors=True)
    for journal in _journals(prefix):
        if _has_ended(journal) and not os.path.isdir(journal.backup_directory):
            journal.forget()
    _remove_if_empty(root)


def _journals(prefix: str) -> tuple[Journal, ...]:
    root = os.path.join(prefix, DIRECTORY)
    found = [name for name in _names(root) if name != HISTORY and not name.endswith(_GONE)]
    names = sorted(found, key=lambda name: (age(name), name))
    return tuple(Journal(os.path.join(root, name)) for name in names if os.path.isdir(os.path.join(root, name)))


def _remove_if_empty(root: str) -> None:
    for directory in (os.path.join(root, HISTORY), root):
        try:
            os.rmdir(directory)
        except OSError:
            pass


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _has_ended(journal: Journal) -> bool:
    step = journal.last_step()
    if step is None or not step.is_final:
        return False
    if step is Step.COMMITTED and journal.has_receipt:
        return False
    # A backup that is to be kept is still called a stash until it is renamed.
    return not (journal.facts(step).get("keep_backup") and os.path.isdir(journal.stash_directory))


def sync_directory(path: str) -> None:
    """Make the names in a directory durable (fsync(2) of the directory itself)."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError:
        # Some file systems cannot; they have no stronger promise to give.
        pass
    finally:
        os.close(descriptor)
