"""Who owns each path, whose bytes are on disk, and what a removal may delete, must release or would lose."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from safe_uninstall.analysis.files import Files, companion_caches
from safe_uninstall.model.distribution import Distribution, RecordRow
from safe_uninstall.model.filesystem import EntryKind, Evidence
from safe_uninstall.model.snapshot import Snapshot

_ALGORITHMS = frozenset({"sha256", "sha384", "sha512", "sha224", "sha1", "md5", "blake2b", "blake2s"})
"""What ``hashlib`` guarantees; a row with any other algorithm counts as one without a hash."""


class Match(Enum):
    """How the bytes on disk compare with a RECORD row."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    """The row has no hash that can be checked."""


class Owners:
    """Which distributions claim a path; each distribution's rows are indexed when a question first needs them."""

    def __init__(self, distributions: Iterable[Distribution]) -> None:
        """Index the rows of ``distributions``."""
        self._distributions = tuple(distributions)
        self._index: dict[str, list[Distribution]] | None = None

    def of(self, path: str) -> tuple[Distribution, ...]:
        """Return the owners of a canonical path, sorted by name; whether the file exists is not asked."""
        if self._index is None:
            index: dict[str, list[Distribution]] = {}
            for distribution in self._distributions:
                for row in distribution.record.rows:
                    index.setdefault(row.path, []).append(distribution)
            self._index = index
        return tuple(self._index.get(path, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwritten:
    """A survivor some of whose claims hold a leaving distribution's bytes."""

    survivor: Distribution
    by: tuple[Distribution, ...]
    """The leaving distributions whose bytes they are, sorted by name."""
    paths: tuple[str, ...]
    """Sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """What a removal does to the paths of the leaving distributions. All paths are canonical."""

    deleted: frozenset[str]
    """Will be gone: claims, byte code beside them, entry-point scripts."""
    released: Mapping[str, tuple[Distribution, ...]]
    """Stay in place, with the survivors that own them."""
    overwritten: tuple[Overwritten, ...] = ()
    """Survivors that would lose files, sorted by name."""
    edited: tuple[str, ...] = ()
    """Released paths that hold nobody's bytes, sorted."""
    damaged: tuple[Overwritten, ...] = ()
    """Survivors whose claims hold another's bytes and stay nevertheless: ``by`` is then who these bytes are of."""
    missing: Mapping[str, tuple[str, ...]]
    """Metadata path of a leaving distribution to its rows that do not exist, byte code left out, sorted."""


def judge_ownership(snapshot: Snapshot, leaving: tuple[Distribution, ...]) -> Ownership:
    """Decide for every path of the leaving distributions whether it goes, stays, or is a survivor's loss.

    A path that a survivor claims is released when the bytes on disk are that survivor's, or when its row has no hash.
    Bytes that are a leaving distribution's mean that the survivor was overwritten: it loses the file. Bytes that are
    nobody's were edited: released, to be warned of. Sizes are compared first; only equal sizes are hashed.

    A row that names a directory claims nothing: installers would delete all that is below, whosever it is.

    Args:
        snapshot: the baseline.
        leaving: the distributions that go.
    """
    files = Files(snapshot.files)
    claims: dict[str, list[tuple[Distribution, RecordRow]]] = {}
    missing: dict[str, tuple[str, ...]] = {}
    for distribution in leaving:
        absent = []
        for row in distribution.record.rows:
            kind = files.kind(row.path)
            if kind is None:
                if not row.path.endswith(".pyc"):
                    absent.append(row.path)
            elif kind is not EntryKind.DIRECTORY:
                claims.setdefault(row.path, []).append((distribution, row))
        missing[distribution.metadata_path] = tuple(sorted(absent))
    extra = _beyond_records(leaving, claims, files)
    gone = {distribution.metadata_path for distribution in leaving}
    survivors = [item for item in snapshot.distributions if item.metadata_path not in gone]
    shared = _shared(survivors, claims.keys() | extra)
    return _Judge(snapshot.evidence, claims, shared, extra, missing).judge()


def compare(evidence: Evidence, row: RecordRow) -> Match:
    """Compare the bytes on disk with a RECORD row: the size first, the hash only when that is equal."""
    algorithm, separator, digest = row.hash.partition("=")
    if not separator or algorithm not in _ALGORITHMS:
        return Match.UNKNOWN
    if row.size is not None and evidence.size(row.path) != row.size:
        return Match.DIFFERENT
    return Match.SAME if evidence.digest(row.path, algorithm) == digest.rstrip("=") else Match.DIFFERENT


def _beyond_records(leaving: tuple[Distribution, ...], claims: Mapping[str, object], files: Files) -> frozenset[str]:
    """Return what installers remove without a row for it: byte code beside sources, and entry-point scripts."""
    extra: set[str] = set()
    for path in claims:
        if path.endswith(".py"):
            extra.update(companion_caches(path, files))
            # pip removes byte code in the place of Python 2 too, also where a survivor ships it instead of a source.
            extra.update(legacy for legacy in (f"{path}c", f"{path}o") if files.exists(legacy))
    for distribution in leaving:
        extra.update(script for script in distribution.scripts if files.exists(script))
    return frozenset(extra - claims.keys())


def _shared(survivors: Iterable[Distribution], paths: Iterable[str]) -> dict[str, list[tuple[Distribution, RecordRow]]]:
    """Return which survivors claim which of ``paths``: strings are compared before anything else is looked at."""
    wanted = frozenset(paths)
    shared: dict[str, list[tuple[Distribution, RecordRow]]] = {}
    for survivor in survivors:
        for row in survivor.record.rows:
            if row.path in wanted:
                shared.setdefault(row.path, []).append((survivor, row))
        for script in survivor.scripts:
            if script in wanted and not any(owner is survivor for owner, _ in shared.get(script, ())):
                shared.setdefault(script, []).append((survivor, RecordRow(script, "", None)))
    return shared


class _Judge:
    def __init__(
        self,
        evidence: Evidence,
        claims: Mapping[str, list[tuple[Distribution, RecordRow]]],
        shared: Mapping[str, list[tuple[Distribution, RecordRow]]],
        extra: frozenset[str],
        missing: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._evidence = evidence
        self._claims = claims
        self._shared = shared
        self._extra = extra
        self._missing = missing
        self._released: dict[str, tuple[Distribution, ...]] = {}
        self._edited: list[str] = []
        self._overwritten: dict[str, tuple[Distribution, set[str], dict[str, Distribution]]] = {}
        self._damaged: dict[str, tuple[Distribution, set[str], dict[str, Distribution]]] = {}

    def judge(self) -> Ownership:
        deleted = set(self._claims) | self._extra
        for path in sorted(self._shared):
            if self._release(path):
                self._released[path] = tuple(survivor for survivor, _ in self._shared[path])
                deleted.discard(path)
        # Byte code belongs to its source: what stays keeps it.
        kept_sources = {path for path in self._released if path.endswith(".py")}
        for path in sorted(self._extra & deleted):
            source = source_of_cache(path)
            if source in kept_sources:
                deleted.discard(path)
                self._released[path] = self._released[source]
        return Ownership(
            deleted=frozenset(deleted),
            released=self._released,
            overwritten=_gather(self._overwritten),
            edited=tuple(self._edited),
            damaged=_gather(self._damaged),
            missing=self._missing,
        )

    def _release(self, path: str) -> bool:
        """Judge one path that survivors claim; return whether it is released."""
        survivors = self._shared[path]
        matches = [(survivor, compare(self._evidence, row)) for survivor, row in survivors]
        different = [survivor for survivor, match in matches if match is Match.DIFFERENT]
        if not different or path.endswith((".pyc", ".pyo")):
            # Byte code is made anew by any import: other bytes than recorded are no news.
            return True
        same = [survivor for survivor, match in matches if match is Match.SAME]
        if same:
            for survivor in different:
                _note(self._damaged, survivor, path, same)
            return True
        writers = self._writers(path)
        if len(different) < len(matches):
            # A survivor without a hash may own these bytes: the file stays, though it is another's by now.
            for survivor in different if writers else ():
                _note(self._damaged, survivor, path, writers)
            return True
        if not writers:
            self._edited.append(path)
            return True
        for survivor in different:
            _note(self._overwritten, survivor, path, writers)
        return False

    def _writers(self, path: str) -> list[Distribution]:
        """Return the leaving distributions whose bytes are on disk.

        Equal size is enough here: the size differs from every survivor's, or the hash does, and hashing gigabytes to
        tell an edit that kept the size would only turn a loss that is reported into a release of unknown bytes.
        """
        size = self._evidence.size(path)
        return [
            distribution for distribution, row in self._claims.get(path, ()) if row.size is None or row.size == size
        ]


def source_of_cache(path: str) -> str:
    """Return the source of a byte-code file, in ``__pycache__`` (PEP 3147) or beside it; "" when the path is none."""
    directory, _, name = path.rpartition("/")
    parent, _, last = directory.rpartition("/")
    if last == "__pycache__":
        return f"{parent}/{name.partition('.')[0]}.py"
    return path[:-1] if name.endswith((".pyc", ".pyo")) else ""


def _note(
    table: dict[str, tuple[Distribution, set[str], dict[str, Distribution]]],
    survivor: Distribution,
    path: str,
    writers: Iterable[Distribution],
) -> None:
    _, paths, by = table.setdefault(survivor.metadata_path, (survivor, set(), {}))
    paths.add(path)
    by.update((writer.metadata_path, writer) for writer in writers)


def _gather(
    table: Mapping[str, tuple[Distribution, set[str], dict[str, Distribution]]],
) -> tuple[Overwritten, ...]:
    return tuple(
        Overwritten(
            survivor=survivor,
            by=tuple(sorted(by.values(), key=lambda item: (item.name, item.metadata_path))),
            paths=tuple(sorted(paths)),
        )
        for survivor, paths, by in sorted(table.values(), key=lambda item: (item[0].name, item[0].metadata_path))
    )
