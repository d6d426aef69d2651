"""The files in a backup, held against the environment as it is: which come back, and whose they would overwrite."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from safe_uninstall.analysis.files import Files, companion_caches
from safe_uninstall.analysis.ownership import source_of_cache
from safe_uninstall.model.distribution import Distribution, RecordRow
from safe_uninstall.model.filesystem import EntryKind
from safe_uninstall.model.wheel import Wheel

if TYPE_CHECKING:
    from safe_uninstall.analysis.ownership import Owners
    from safe_uninstall.model.history import Backup, Receipt
    from safe_uninstall.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Files that are not those which the transaction left, and that the backup's would take the place of."""

    by: Distribution
    """What would come back."""
    survivor: Distribution | None
    """Whose they are; None: nobody's."""
    paths: tuple[str, ...]
    """Sorted."""


class FormerFiles:
    """What a backup has of distributions, as the wheels that would bring the same files."""

    def __init__(
        self,
        snapshot: Snapshot,
        owners: Owners,
        receipt: Receipt,
        backup: Backup,
        *,
        giving_way: Set[str],
    ) -> None:
        """Hold ``backup`` against ``snapshot``.

        Args:
            snapshot: the environment as it is.
            owners: who claims its paths.
            receipt: of the transaction that kept the backup.
            backup: the backup.
            giving_way: metadata paths of distributions whose files the transaction brought: they give way.
        """
        self._snapshot = snapshot
        self._owners = owners
        self._receipt = receipt
        self._backup = backup
        self._giving_way = giving_way
        self._files = Files(snapshot.files)
        self._comes_back: dict[str, bool] = {}
        self._conflicts: dict[tuple[str, str], tuple[Distribution, Distribution | None, set[str]]] = {}

    def wheel(self, distribution: Distribution) -> Wheel:
        """Return what comes back of a distribution; files that are in place are not among its rows.

        Args:
            distribution: one that the transaction removed, as it was, or one that it restored, as it is.
        """
        kept = self._backup.files
        own = sorted(path for path in self._claims(distribution) if path in kept)
        coming = [path for path in own if self._returns(path, distribution)]
        size = sum(kept[path].size for path in coming)
        return Wheel(
            name=distribution.name,
            version=distribution.version,
            file=self._backup.directory,
            sha256="",
            size=size,
            installed_size=size,
            source=f"the backup of {self._receipt.identifier}",
            metadata_path=distribution.metadata_path,
            rows=tuple(RecordRow(path, "", kept[path].size) for path in coming),
            # What does not come back is there already, and is counted too: a reinstallation takes all away first.
            objects={path: found for path in own if (found := kept[path].object) is not None},
            requires=distribution.requires,
            provides_extra=distribution.provides_extra,
        )

    def missing_before(self, distribution: Distribution) -> tuple[str, ...]:
        """Return the files of a restored distribution that the transaction created, and that are only its own."""
        own = {row.path for row in distribution.record.rows}
        return tuple(
            path
            for path in self._receipt.created
            if path in own
            and self._files.exists(path)
            and all(item.metadata_path in self._giving_way for item in self._owners.of(path))
        )

    def stale_caches(self, wheels: Iterable[Wheel], gone: Iterable[str]) -> frozenset[str]:
        """Return the byte code of sources that are replaced, or gone, as far as the backup does not bring its own."""
        sources = {row.path for wheel in wheels for row in wheel.rows if row.path.endswith(".py")}
        sources.update(path for path in gone if path.endswith(".py"))
        return frozenset(
            cache
            for source in sources
            if self._files.exists(source)
            for cache in companion_caches(source, self._files)
            if cache not in self._backup.files
        )

    def directories(self, wheels: Iterable[Wheel]) -> frozenset[str]:
        """Return the directories to make again: those above files that come back, and those that held no file."""
        above = {parent for wheel in wheels for row in wheel.rows for parent in _parents(row.path)}
        holding = {parent for path in self._backup.files for parent in _parents(path)}
        return frozenset(
            path
            for path in self._backup.directories
            if (path in above or path not in holding) and not self._files.exists(path)
        )

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """What would be overwritten, of all wheels that were asked for; sorted by who would come back and survivor."""
        return tuple(
            Conflict(by=by, survivor=survivor, paths=tuple(sorted(paths)))
            for _, (by, survivor, paths) in sorted(self._conflicts.items())
        )

    def digest(self) -> str:
        """Return a digest of what comes back over what, of all wheels that were asked for."""
        prefix = f"{self._snapshot.environment.prefix}/"
        lines = [
            f"{path.removeprefix(prefix)} {'over' if self._files.exists(path) else 'new'}\n"
            for path, comes in sorted(self._comes_back.items())
            if comes
        ]
        lines += [path for item in self.conflicts for path in item.paths]
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()

    def _claims(self, distribution: Distribution) -> Set[str]:
        """Return what is a distribution's: rows, scripts, its dist-info, and the byte code of its sources."""
        own = {row.path for row in distribution.record.rows} | set(distribution.scripts)
        info = f"{distribution.metadata_path}/"
        return own | {path for path in self._backup.files if path.startswith(info) or source_of_cache(path) in own}

    def _returns(self, path: str, distribution: Distribution) -> bool:
        """Return whether a kept file comes back; note whose file it would take the place of."""
        known = self._comes_back.get(path)
        if known is None:
            known = self._comes_back[path] = self._judge(path, distribution)
        return known

    def _judge(self, path: str, distribution: Distribution) -> bool:
        kept = self._backup.files[path]
        if kept.in_place:
            return False
        if not self._files.exists(path):
            return True
        source = source_of_cache(path)
        if source:
            # Byte code goes with its source: what stays has made its own.
            return source in self._backup.files and self._returns(source, distribution)
        others = [item for item in self._owners.of(path) if item.metadata_path not in self._giving_way]
        if not others and self._owners.of(path):
            return True
        if self._is_same(path):
            return False
        for survivor in others or (None,):
            key = (distribution.metadata_path, "" if survivor is None else survivor.metadata_path)
            self._conflicts.setdefault(key, (distribution, survivor, set()))[2].add(path)
        return True

    def _is_same(self, path: str) -> bool:
        """Return whether the environment has the bytes that the backup has."""
        directory, _, name = path.rpartition("/")
        kept = self._backup.files[path].entry
        now = self._snapshot.files.entry(directory, name)
        if now is None or now.kind is not kept.kind or kept.kind is EntryKind.SYMLINK:
            return now == kept
        digest = self._backup.digest(path)
        return digest is not None and digest == self._snapshot.evidence.digest(path, "sha256")


def _parents(path: str) -> Iterable[str]:
    parent = path.rpartition("/")[0]
    while parent:
        yield parent
        parent = parent.rpartition("/")[0]
