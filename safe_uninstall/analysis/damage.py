"""What is wrong with the files of installed distributions: claims that are gone, or that hold other bytes."""

import posixpath
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from safe_uninstall.analysis.files import Files
from safe_uninstall.analysis.ownership import Match, compare
from safe_uninstall.model.distribution import Distribution, RecordRow
from safe_uninstall.model.filesystem import EntryKind, Evidence
from safe_uninstall.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """What one distribution has lost. Paths are canonical and sorted; byte code never counts."""

    distribution: Distribution
    missing: tuple[str, ...] = ()
    """Claims without a file."""
    overwritten: tuple[str, ...] = ()
    """Claims that hold the bytes of another installed distribution."""
    by: tuple[Distribution, ...] = ()
    """Whose bytes these are, sorted by name."""
    edited: tuple[str, ...] = ()
    """Claims whose bytes are nobody's."""
    claims: int = 0
    """Rows outside its own metadata, byte code left out."""

    @property
    def is_gutted(self) -> bool:
        """Whether it is installed by its metadata alone: most of its files are gone."""
        return len(self.missing) * 2 > self.claims


def find_damage(snapshot: Snapshot, *, deep: bool = False, names: Set[str] | None = None) -> tuple[Damage, ...]:
    """Hold claims of the environment's own distributions against the disk.

    Sizes are compared; bytes are hashed only where distributions that share a path disagree about it, since hashing
    all of a CUDA environment takes minutes.

    Args:
        snapshot: the environment.
        deep: hash every file.
        names: of the distributions to look at; None: all.

    Returns:
        One entry for each distribution that has lost anything, sorted by name and metadata path.
    """
    return _Finder(snapshot, deep).find(names)


class _Finder:
    def __init__(self, snapshot: Snapshot, deep: bool) -> None:
        self._snapshot = snapshot
        self._evidence: Evidence = snapshot.evidence
        self._files = Files(snapshot.files)
        self._deep = deep
        self._claims = _shared_claims(snapshot.distributions)

    def find(self, names: Set[str] | None) -> tuple[Damage, ...]:
        found = []
        for distribution in self._snapshot.distributions:
            if names is not None and distribution.name not in names:
                continue
            if distribution.owned_here and distribution.conda_package is None:
                damage = self._of(distribution)
                if damage.missing or damage.overwritten or damage.edited:
                    found.append(damage)
        return tuple(sorted(found, key=lambda item: (item.distribution.name, item.distribution.metadata_path)))

    def _of(self, distribution: Distribution) -> Damage:
        missing: list[str] = []
        overwritten: list[str] = []
        edited: list[str] = []
        by: dict[str, Distribution] = {}
        claims = 0
        info = f"{distribution.metadata_path}/"
        scripts = f"{self._snapshot.environment.scripts}/"
        for row in distribution.record.rows:
            if row.path.endswith((".pyc", ".pyo")):
                continue
            claims += not row.path.startswith(info)
            kind = self._files.kind(row.path)
            if kind is None:
                missing.append(row.path)
            elif kind is EntryKind.DIRECTORY or row.path.startswith((info, scripts)):
                # Installers write into metadata, and change the first line of scripts.
                continue
            elif self._differs(row):
                writers = [
                    owner
                    for owner, other in self._claims.get(row.path, ())
                    if owner is not distribution and compare(self._evidence, other) is Match.SAME
                ]
                (overwritten if writers else edited).append(row.path)
                by.update((writer.metadata_path, writer) for writer in writers)
        return Damage(
            distribution=distribution,
            missing=tuple(sorted(missing)),
            overwritten=tuple(sorted(overwritten)),
            by=tuple(sorted(by.values(), key=lambda item: (item.name, item.metadata_path))),
            edited=tuple(sorted(edited)),
            claims=claims,
        )

    def _differs(self, row: RecordRow) -> bool:
        if row.path in self._claims or self._deep:
            return compare(self._evidence, row) is Match.DIFFERENT
        return bool(row.hash) and row.size is not None and self._evidence.size(row.path) != row.size


def _shared_claims(
    distributions: Iterable[Distribution],
) -> Mapping[str, tuple[tuple[Distribution, RecordRow], ...]]:
    """Return the paths that distributions claim with different hashes, with all who claim them."""
    first: dict[str, tuple[Distribution, RecordRow]] = {}
    shared: dict[str, list[tuple[Distribution, RecordRow]]] = {}
    for distribution in distributions:
        for row in distribution.record.rows:
            if not row.hash:
                continue
            known = first.setdefault(row.path, (distribution, row))
            if known[1] is not row:
                shared.setdefault(row.path, [known]).append((distribution, row))
    return {
        path: tuple(claims) for path, claims in shared.items() if len({row.hash.rstrip("=") for _, row in claims}) > 1
    }


_ASIDE = frozenset({"benchmarks", "docs", "examples", "samples", "test", "tests"})
"""Directories that wheels put into site-packages by mistake, each its own: nobody imports them from there."""


def is_essential(path: str, site_packages: tuple[str, ...]) -> bool:
    """Return whether a program surely misses a file: a shared library, or the top of an importable package.

    Tests, headers and sources deep inside a package are left out of images on purpose.
    """
    name = posixpath.basename(path)
    if name.endswith(".so") or ".so." in name:
        return True
    parent = posixpath.dirname(path)
    if not name.endswith(".py"):
        return False
    if name != "__init__.py":
        return parent in site_packages
    return posixpath.dirname(parent) in site_packages and posixpath.basename(parent) not in _ASIDE
