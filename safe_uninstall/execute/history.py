"""The history of an environment: which transactions were committed, which are undone, and what backups they kept."""

from __future__ import annotations

import base64
import hashlib
import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from safe_uninstall.analysis.commands import our_command
from safe_uninstall.execute.journal import DIRECTORY, Journal, ended, receipt_path, stored_receipts
from safe_uninstall.execute.lock import EnvironmentLock
from safe_uninstall.execute.receipt import ReceiptError, read_receipt
from safe_uninstall.execute.stash import MANIFEST, Kept, Stash
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.filesystem import FILE, Entry, EntryKind
from safe_uninstall.model.history import Backup, KeptFile, Receipt, Transaction, TransactionState

if TYPE_CHECKING:
    from safe_uninstall.model.elf import ElfObject

ReadObject = Callable[[str, str, str], "ElfObject | None"]
"""Reads the ELF facts of a file: the path that it is known by, its real path, and where to open it; None for others."""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """What became of kept backups."""

    transactions: tuple[str, ...]
    """Those whose backups are gone, oldest first."""
    bytes_freed: int
    """Bytes of the files that had no other name any more; those that the environment or a cache has too free none."""
    problems: tuple[str, ...] = ()
    """What could not be deleted, a sentence each."""


def read_history(prefix: str) -> tuple[tuple[Transaction, ...], tuple[str, ...]]:
    """Return the transactions of an environment, newest first, and which receipts cannot be read, in words."""
    receipts: list[Receipt] = []
    problems = list(_hidden(prefix))
    for identifier in stored_receipts(prefix):
        try:
            receipts.append(read_receipt(receipt_path(prefix, identifier), prefix))
        except ReceiptError as error:
            problems.append(f"the receipt of {identifier} is left out: {error}")
    backups = {journal.identifier: journal for journal in ended(prefix)}
    undone: dict[str, str] = {}
    found: list[Transaction] = []
    for receipt in reversed(receipts):
        # What undid it came later, and was looked at already; an undo that is itself undone does not count.
        by = undone.get(receipt.identifier)
        if by is None and receipt.undoes is not None:
            undone[receipt.undoes] = receipt.identifier
        journal = backups.get(receipt.identifier)
        found.append(
            Transaction(
                receipt=receipt,
                state=TransactionState.COMMITTED if by is None else TransactionState.UNDONE,
                undone_by=by,
                backup_bytes=None if journal is None else _bytes_in(journal),
            )
        )
    return tuple(found), tuple(problems)


def choose(
    transactions: Iterable[Transaction], identifier: str | None, *, prefix: str, python: str | None = None
) -> Transaction:
    """Return the transaction to undo.

    Args:
        transactions: the history, newest first.
        identifier: what the user named; None: the last one that is in effect and is no undo itself.
        prefix: root of the environment, for the message.
        python: what ``-p`` was given as, for the help.

    Raises:
        UsageError: there is none, or it is undone already.
    """
    known = {item.receipt.identifier: item for item in transactions}
    see = f"see what there is: {our_command(python, 'history')}"
    if identifier is not None:
        found = known.get(identifier)
        if found is None:
            raise UsageError(f"`{identifier}` is no transaction in the history of `{prefix}`", help=(see,))
        if found.undone_by is not None:
            again = our_command(python, "undo", found.undone_by)
            raise UsageError(
                f"`{identifier}` is undone already, by {found.undone_by}", help=(f"undo that, to do it again: {again}",)
            )
        return found
    in_effect = [item for item in known.values() if item.undone_by is None]
    for item in in_effect:
        if item.receipt.undoes is None:
            return item
    if not in_effect:
        raise UsageError(f"there is nothing to undo: `{prefix}` has no history")
    again = our_command(python, "undo", in_effect[0].receipt.identifier)
    raise UsageError(
        f"there is nothing to undo: all transactions of `{prefix}` are undone",
        help=(f"do the last one again: {again}", see),
    )


def purge(prefix: str, *, lock_timeout: float = 10.0) -> Purged:
    """Delete all kept backups; the receipts stay.

    Args:
        prefix: root of the environment.
        lock_timeout: seconds to wait for another process that works on the environment.
    """
    gone: list[str] = []
    freed = 0
    problems: list[str] = []
    with EnvironmentLock(prefix, timeout=lock_timeout):
        for journal in ended(prefix):
            if not os.path.isdir(journal.backup_directory):
                continue
            before = _only_here(journal.backup_directory)
            Stash(journal.backup_directory).drop()
            journal.forget()
            freed += sum(size for path, size in before.items() if not os.path.lexists(path))
            if os.path.lexists(journal.backup_directory):
                problems.append(f"{journal.backup_directory} cannot be deleted in full")
            else:
                gone.append(journal.identifier)
    return Purged(transactions=tuple(gone), bytes_freed=freed, problems=tuple(problems))


class StoredHistory:
    """Implements ``model.history.History`` over the disk."""

    def __init__(self, prefix: str, read_object: ReadObject) -> None:
        """Read the history of the environment at ``prefix``."""
        self._prefix = prefix
        self._read_object = read_object

    def receipt(self, identifier: str) -> Receipt:
        """Return the receipt of a transaction.

        Raises:
            UsageError: there is no such transaction, or its receipt cannot be read.
        """
        if identifier not in stored_receipts(self._prefix):
            raise UsageError(f"`{identifier}` is no transaction in the history of `{self._prefix}`")
        try:
            return read_receipt(receipt_path(self._prefix, identifier), self._prefix)
        except ReceiptError as error:
            raise UsageError(f"the receipt of {identifier} is of no use: {error}") from None

    def backup(self, identifier: str) -> Backup | None:
        """Return the backup of a transaction; None when there is none, or it is of an environment in another place."""
        journal = Journal(posixpath.join(self._prefix, DIRECTORY, identifier))
        stash = Stash(journal.backup_directory)
        if not stash.load() or any(not entry.path.startswith(f"{self._prefix}/") for entry in stash.entries):
            return None
        return _StoredBackup(journal.backup_directory, stash, self._read_object)


class _StoredBackup:
    def __init__(self, directory: str, stash: Stash, read_object: ReadObject) -> None:
        self.directory = directory
        self._stash = stash
        self._read_object = read_object
        self._kept = {entry.path: entry for entry in stash.entries if entry.kind != "directory"}
        self.files: Mapping[str, KeptFile] = {path: self._file(entry) for path, entry in self._kept.items()}
        self.directories = frozenset(entry.path for entry in stash.entries if entry.kind == "directory")

    def digest(self, path: str) -> str | None:
        """Return the SHA-256 of a kept file as a RECORD writes it; None when it cannot be read."""
        digest = hashlib.sha256()
        try:
            with open(self._stash.location(self._kept[path]), "rb") as file:
                while part := file.read(_CHUNK):
                    digest.update(part)
        except OSError:
            return None
        return base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()

    def _file(self, entry: Kept) -> KeptFile:
        target = os.readlink(self._stash.location(entry)) if entry.kind == "link" else None
        return KeptFile(
            entry=FILE if target is None else Entry(EntryKind.SYMLINK, target),
            size=entry.size,
            in_place=self._stash.is_as_kept(entry),
            object=self._object(entry, target),
        )

    def _object(self, entry: Kept, target: str | None) -> ElfObject | None:
        """Return the ELF facts that the loader would find under the path that an entry had."""
        if target is None:
            return self._read_object(entry.path, entry.path, self._stash.location(entry))
        real = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), target))
        kept = self._kept.get(real)
        if kept is not None and kept.kind == "file":
            return self._read_object(entry.path, real, self._stash.location(kept))
        # Whatever else it leads to, such as a file of uv's cache, is where it was, or nowhere.
        return self._read_object(entry.path, os.path.realpath(real), real)


def _hidden(prefix: str) -> Iterator[str]:
    """Yield why nothing is seen of a history that is there: it is for the user alone who made it."""
    directory = posixpath.dirname(receipt_path(prefix, ""))
    try:
        os.listdir(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        yield f"{directory} cannot be read: {error.strerror}"


def _bytes_in(journal: Journal) -> int | None:
    stash = Stash(journal.backup_directory)
    return stash.size if stash.load() else None


def _only_here(directory: str) -> dict[str, int]:
    """Return the files of a backup all of whose names are in it, with the bytes that go with their last name."""
    names: dict[tuple[int, int], list[str]] = {}
    statuses = {}
    for entry in os.scandir(directory):
        status = entry.stat(follow_symlinks=False)
        identity = (status.st_dev, status.st_ino)
        names.setdefault(identity, []).append(entry.path)
        statuses[identity] = status
    return {
        paths[0]: statuses[identity].st_size
        for identity, paths in names.items()
        if len(paths) == statuses[identity].st_nlink and paths[0] != posixpath.join(directory, MANIFEST)
    }
