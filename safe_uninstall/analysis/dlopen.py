"""Libraries that survivors surely open by name: what they say so of in a note, and siblings of what stays.

A ``.note.dlopen`` (UAPI.12) lists the sonames that an object passes to ``dlopen``, alternatives together, and how much
it matters. Without such a note a name in the data of an object says only that it may be opened, save where a library
and what it names are of one distribution: cuDNN is one library in ten files, and nine of them are opened by name.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field

from safe_uninstall.analysis.loads import Baseline, Loads
from safe_uninstall.analysis.losses import LibraryLoss
from safe_uninstall.analysis.names import is_host_library, names_of
from safe_uninstall.analysis.ownership import Match, Owners, compare
from safe_uninstall.analysis.preload import Preloads
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.elf import DlopenNote, ElfObject
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.plan import Consumer, DistributionRef
from safe_uninstall.model.snapshot import Snapshot

_REQUIRED = "required"
_VERSION = re.compile(r"(?:\.\d+)+$")


@dataclass(slots=True, kw_only=True)
class OpenedJudge:
    """Judges one change of an environment."""

    snapshot: Snapshot
    owners: Owners
    before: Baseline
    after: Loads
    preloads: Preloads
    gone: Set[str]
    """Canonical paths that are there no longer in the outcome."""
    written: Set[str]
    """Canonical paths of ELF files that wheels write: what they open is not known yet."""
    leaving: tuple[Distribution, ...]
    _known: Set[tuple[str, str]] = frozenset()
    _losses: dict[tuple[str, str, Strength, bool], list[Consumer]] = field(default_factory=dict)

    def judge(self, names: Set[str], known: Iterable[LibraryLoss]) -> list[LibraryLoss]:
        """Return what is lost.

        Args:
            names: what anything that goes or comes is called.
            known: losses that need not be told again.
        """
        self._known = {(loss.name, consumer.path) for loss in known for consumer in loss.consumers}
        self._judge_notes(names)
        self._judge_siblings({loss.provider for loss in known})
        return [
            LibraryLoss(
                name=name,
                provider=provider,
                strength=strength,
                consumers=tuple(sorted(consumers, key=lambda item: item.path)),
                searched=(),
                certain=certain,
            )
            for (name, provider, strength, certain), consumers in self._losses.items()
        ]

    def _judge_notes(self, names: Set[str]) -> None:
        for path, item in self.before.objects.items():
            if not item.has_dlopen_notes or path in self.gone or path in self.written:
                continue
            for note in self.snapshot.evidence.dlopen_notes(path):
                if not names.isdisjoint(note.sonames):
                    self._judge_note(item, note)

    def _judge_note(self, item: ElfObject, note: DlopenNote) -> None:
        """Note a loss where one of the alternatives could be opened before, and none can be afterwards."""
        sonames = note.sonames
        if any(is_host_library(name) or (name, item.path) in self._known for name in sonames):
            return
        if any(self._opened(self.after, item, name) or self.preloads.stays_met(name, item.abi) for name in sonames):
            return
        for name in sonames:
            provider = self._opened(self.before, item, name)
            lost = None if provider is not None else self.preloads.lost(name, item.abi)
            if lost is not None:
                provider = lost.provider
            if provider is not None:
                # What nothing is known to load was perhaps never found.
                certain = note.priority == _REQUIRED and (lost is None or lost.strength is Strength.PRELOADED)
                feature = "" if note.feature is None else f", for {note.feature}"
                self._add(name, provider, Strength.NOTED, certain, item.path, f".note.dlopen: {note.priority}{feature}")
                return

    def _opened(self, loads: Loads, item: ElfObject, name: str) -> str | None:
        """Return the path of what an object gets in any load that brings it in: by itself, or from above."""
        found = loads.opened(item, name)
        if found is not None:
            return found
        for path in sorted(self.before.names.reaching(names_of(item.path, item)) - self.gone - self.written):
            found = loads.opened(item, name, root=self.before.objects[path])
            if found is not None:
                return found
        return None

    def _judge_siblings(self, known: Set[str]) -> None:
        """Note a loss where a file of a leaving distribution stays, and one goes that it opens by name beside it."""
        objects = self.snapshot.objects
        for distribution in self.leaving:
            going: dict[str, list[str]] = {}
            staying: list[str] = []
            for row in distribution.record.rows:
                if row.path not in objects:
                    continue
                if row.path in self.gone:
                    if row.path not in known:
                        going.setdefault(posixpath.dirname(row.path), []).append(row.path)
                elif row.path not in self.written:
                    staying.append(row.path)
            for path in staying:
                beside = going.get(posixpath.dirname(path))
                if beside:
                    self._judge_beside(distribution, objects[path], beside)

    def _judge_beside(self, distribution: Distribution, item: ElfObject, beside: Iterable[str]) -> None:
        named = self.snapshot.evidence.data_naming(
            frozenset(name for path in beside for name in _spellings(path)), item.path
        )
        for path in beside:
            name = posixpath.basename(path)
            if named.isdisjoint(_spellings(path)) or is_host_library(name) or self.after.opened(item, name) is not None:
                continue
            certain = not self._is_whole_without(item.path, path)
            self._add(name, path, Strength.NAMED, certain, item.path, f"opens it by name, both of {distribution.name}")

    def _is_whole_without(self, path: str, sibling: str) -> bool:
        """Return whether a file that stays is that of a survivor which never had the sibling."""
        without = {item.metadata_path for item in (*self.leaving, *self.owners.of(sibling))}
        return any(
            row.path == path and compare(self.snapshot.evidence, row) is Match.SAME
            for owner in self.owners.of(path)
            if owner.metadata_path not in without
            for row in owner.record.rows
        )

    def _add(self, name: str, provider: str, strength: Strength, certain: bool, path: str, how: str) -> None:
        going = {item.metadata_path for item in self.leaving}
        owner = next((item for item in self.owners.of(path) if item.metadata_path not in going), None)
        consumer = Consumer(
            distribution=None if owner is None else DistributionRef(name=owner.name, version=owner.version),
            path=path,
            strength=strength,
            how=how,
        )
        self._losses.setdefault((name, provider, strength, certain), []).append(consumer)


def _spellings(path: str) -> Iterator[str]:
    """Yield the names by which a sibling is opened: with its version, or without where that is added later."""
    name = posixpath.basename(path)
    yield name
    bare = _VERSION.sub("", name)
    if bare != name and bare.endswith(".so"):
        yield bare
