"""What transactions did to an environment, and the port by which the analysis asks for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.filesystem import Entry

FACTS = ("INSTALLER", "REQUESTED", "direct_url.json", "uv_build.json", "uv_cache.json")
"""Files of a dist-info that say how a distribution came there; no wheel has them (PyPA: recording installed projects,
direct URL data structure; the last two are uv's own)."""


class TransactionState(Enum):
    """Whether what a transaction did is still in effect."""

    COMMITTED = "committed"
    UNDONE = "undone"
    """By a later transaction that is itself in effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A distribution that a transaction brought."""

    name: str
    """Normalised per PEP 503."""
    version: str
    metadata_path: str
    """Absolute path of its dist-info."""

    @property
    def label(self) -> str:
        """``name version``, as output shows it."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """A distribution that a transaction took away."""

    distribution: Distribution
    """As it was, RECORD included."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Those of ``FACTS`` that it had: name to text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a committed transaction leaves of itself; all paths are absolute, for the environment as it lies now."""

    identifier: str
    time: str
    """ISO 8601, with the offset from UTC."""
    tool_version: str
    removed: tuple[Removed, ...] = ()
    restored: tuple[Pin, ...] = ()
    installed: tuple[Pin, ...] = ()
    created: tuple[str, ...] = ()
    """Files of restored distributions that were missing before, sorted."""
    undoes: str | None = None
    """The transaction that it undid; None where it was none."""
    backup_bytes: int | None = None
    """Bytes of the files in the backup that it kept; None: it kept none."""
    plan: Mapping[str, Any] = field(default_factory=dict)
    """The plan as a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """An entry of the history."""

    receipt: Receipt
    state: TransactionState
    undone_by: str | None = None
    """The transaction that undid it, and is in effect."""
    backup_bytes: int | None = None
    """Bytes of the files in the backup that is still there; None: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """A file or a link in a backup."""

    entry: Entry
    size: int
    """Bytes; of a link, those of its target's name."""
    in_place: bool
    """Whether the environment has the very file, or where it was copied, one with the same bytes and mode."""
    object: ElfObject | None = None
    """ELF facts under the path that it had."""


class Backup(Protocol):
    """The kept backup of one transaction, as it and the environment are at the moment."""

    @property
    def directory(self) -> str:
        """Absolute path of the backup."""

    @property
    def files(self) -> Mapping[str, KeptFile]:
        """What is kept, by the absolute path that it had."""

    @property
    def directories(self) -> frozenset[str]:
        """Directories that there were."""

    def digest(self, path: str) -> str | None:
        """Return the SHA-256 of a kept file as a RECORD writes it; None when it cannot be read."""


class History(Protocol):
    """The transactions of an environment."""

    def receipt(self, identifier: str) -> Receipt:
        """Return the receipt of a transaction.

        Raises:
            UsageError: there is no such transaction, or its receipt cannot be read.
        """

    def backup(self, identifier: str) -> Backup | None:
        """Return the backup of a transaction, read anew; None when there is none that serves this environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """How a plan brings back what a transaction took away."""

    transaction: str
    backup: str | None
    """Backup that files are put back from, an absolute path; None: wheels are installed."""
    directories: frozenset[str] = frozenset()
    """Directories to make again from the backup."""
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Metadata path of a distribution that is installed again, to the ``Removed.facts`` that it gets."""
