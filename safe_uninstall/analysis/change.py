"""What a change does to an environment: what goes, what comes, and everything that is lost by it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from safe_uninstall.analysis.linkage import judge_linkage
from safe_uninstall.analysis.loads import Baseline, Loads
from safe_uninstall.analysis.losses import LinkageJudgement
from safe_uninstall.analysis.metadata import LostRequirement, lost_requirements, unmet_requirements
from safe_uninstall.analysis.observed import Observed
from safe_uninstall.analysis.ownership import Match, Overwritten, Owners, Ownership, compare, judge_ownership
from safe_uninstall.analysis.paths import View
from safe_uninstall.model.distribution import Distribution, Record, RecordState
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.probe import ProbeRun
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import Wheel


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One final state of an environment, as what is different from the baseline."""

    leaving: tuple[Distribution, ...]
    """Distributions that go, sorted by name and metadata path."""
    restored: tuple[tuple[Distribution, Wheel], ...] = ()
    """Survivors that are installed again from their own wheel, sorted by name."""
    installed: tuple[Wheel, ...] = ()
    """Wheels of distributions that are not there yet, or whose old version is among ``leaving``; sorted by name."""

    yielding: frozenset[str] = frozenset()
    """Metadata paths of survivors that may lose files to what is installed: a repair has chosen between them."""

    @property
    def wheels(self) -> tuple[Wheel, ...]:
        """All wheels, restored ones first."""
        return (*(wheel for _, wheel in self.restored), *self.installed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collision:
    """Good files that a wheel would overwrite with other bytes."""

    survivor: Distribution
    """Whose files they are: a survivor's, or those of another wheel, as the distribution that it makes."""
    wheel: Wheel
    paths: tuple[str, ...]
    """Sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Everything that follows from a change."""

    change: Change
    ownership: Ownership
    """What happens to the paths of the leaving; what wheels write with a survivor's own bytes is not overwritten."""
    linkage: LinkageJudgement
    requirements: tuple[LostRequirement, ...]
    unmet: tuple[tuple[Distribution, str], ...]
    """Requirements of installed wheels that nothing satisfies, with the wheel as a distribution."""
    collisions: tuple[Collision, ...]
    written: Mapping[str, str]
    """Path to RECORD hash of all that wheels write."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing is lost: no file, no library, no requirement."""
        lost = self.ownership.overwritten or self.linkage.blocking or self.linkage.incompatible
        return not (lost or self.requirements or self.unmet or self.collisions)


class ChangeJudge:
    """Judges changes of one snapshot; what they have in common is worked out once."""

    def __init__(
        self, snapshot: Snapshot, owners: Owners, *, use_library_path: bool, probes: tuple[ProbeRun, ...] = ()
    ) -> None:
        """Judge over a snapshot.

        Args:
            snapshot: the baseline.
            owners: who claims which path.
            use_library_path: whether LD_LIBRARY_PATH of the planning shell binds.
            probes: how the user's probes ended in the baseline; what they mapped is needed.
        """
        self._snapshot = snapshot
        self._owners = owners
        self.baseline = Baseline(snapshot, use_library_path=use_library_path)
        """Loads over the environment as it is."""
        self._observed = Observed(snapshot, probes)
        self._known: dict[tuple[frozenset[str], frozenset[str], frozenset[int], frozenset[str]], Judgement] = {}

    def judge(self, change: Change) -> Judgement:
        """Return what a change does; asked again, the same answer."""
        key = (
            frozenset(item.metadata_path for item in change.leaving),
            frozenset(item.metadata_path for item, _ in change.restored),
            # Wheels outlive the judge, so that their addresses stand for them.
            frozenset(id(wheel) for wheel in change.wheels),
            change.yielding,
        )
        judgement = self._known.get(key)
        if judgement is None:
            judgement = self._known[key] = self._judge(change)
        return judgement

    def outcome(self, judgement: Judgement) -> Loads:
        """Return the loads over the environment as a change leaves it."""
        view = View(self._snapshot.files, deleted=self.deleted(judgement), added=_added(judgement.change.wheels))
        return Loads(self._snapshot, view, self.baseline.library_path)

    def gone(self, judgement: Judgement) -> frozenset[str]:
        """Return the canonical paths that are there no longer in the outcome."""
        return self.deleted(judgement) - judgement.written.keys()

    def deleted(self, judgement: Judgement) -> frozenset[str]:
        """Return the canonical paths that are taken away, those included that a wheel then writes anew."""
        return judgement.ownership.deleted | self._replaced(judgement.change)

    def _judge(self, change: Change) -> Judgement:
        snapshot = self._snapshot
        gone = {item.metadata_path for item in change.leaving}
        survivors = [item for item in snapshot.distributions if item.metadata_path not in gone]
        written = {row.path: row.hash for wheel in change.wheels for row in wheel.rows}
        ownership = _after_writing(judge_ownership(snapshot, change.leaving), change, written)
        deleted = ownership.deleted | self._replaced(change)
        added = _added(change.wheels)
        linkage = judge_linkage(
            snapshot, self._owners, deleted=deleted, leaving=change.leaving, added=added, baseline=self.baseline
        )
        linkage = _without_orphans(linkage, ownership)
        comers = tuple(as_distribution(wheel, snapshot) for wheel in change.installed)
        staying = (*survivors, *comers)
        markers = snapshot.environment.markers
        return Judgement(
            change=change,
            ownership=ownership,
            linkage=self._observed.add_losses(linkage, gone=deleted - written.keys(), added=added),
            requirements=tuple(
                item for item in lost_requirements(change.leaving, staying, markers) if item.dependent not in comers
            ),
            unmet=unmet_requirements(comers, staying, markers),
            collisions=tuple(self._collisions(change, survivors, comers)),
            written=written,
        )

    def _replaced(self, change: Change) -> frozenset[str]:
        """Return the libraries that a reinstallation takes away before it brings its own."""
        objects = self._snapshot.objects
        return frozenset(row.path for item, _ in change.restored for row in item.record.rows if row.path in objects)

    def _collisions(
        self, change: Change, survivors: Iterable[Distribution], comers: tuple[Distribution, ...]
    ) -> Iterator[Collision]:
        """Find owners of bytes which a wheel would overwrite; installing what collides solves nothing."""
        restored = {item.metadata_path: wheel for item, wheel in change.restored}
        fresh = {*restored, *(item.metadata_path for item in comers)}
        for wheel in change.wheels:
            hashes = {row.path: row.hash for row in wheel.rows if row.hash}
            # Of two wheels that overwrite each other the later one is told of.
            others = comers[: change.installed.index(wheel)] if wheel in change.installed else ()
            for survivor in (*survivors, *others):
                if restored.get(survivor.metadata_path) is wheel or survivor.metadata_path in change.yielding:
                    continue
                lost = tuple(
                    sorted(
                        row.path
                        for row in survivor.record.rows
                        if row.hash
                        and row.path in hashes
                        and not _same(row.hash, hashes[row.path])
                        and not row.path.endswith((".pyc", ".pyo"))
                        and (survivor.metadata_path in fresh or compare(self._snapshot.evidence, row) is Match.SAME)
                    )
                )
                if lost:
                    yield Collision(survivor=survivor, wheel=wheel, paths=lost)


def as_distribution(wheel: Wheel, snapshot: Snapshot) -> Distribution:
    """Return a wheel as the distribution that installing it makes."""
    return Distribution(
        name=wheel.name,
        version=wheel.version,
        metadata_path=wheel.metadata_path,
        site_packages=snapshot.environment.site_packages[0],
        record=Record(state=RecordState.PRESENT, rows=wheel.rows),
        requires=wheel.requires,
        provides_extra=wheel.provides_extra,
    )


def _added(wheels: Iterable[Wheel]) -> dict[str, ElfObject]:
    added: dict[str, ElfObject] = {}
    for wheel in wheels:
        added.update(wheel.objects)
    return added


def _after_writing(ownership: Ownership, change: Change, written: Mapping[str, str]) -> Ownership:
    """Return what is still overwritten, damaged or edited when the wheels have written their files."""
    if not written:
        return ownership
    own = {item.metadata_path: frozenset(row.path for row in wheel.rows) for item, wheel in change.restored}

    def left(items: Iterable[Overwritten]) -> Iterator[Overwritten]:
        for item in items:
            # Scripts that a wheel brings are not what its installer makes of them: their paths are enough.
            again = own.get(item.survivor.metadata_path, frozenset())
            again |= {
                row.path
                for row in item.survivor.record.rows
                if row.path in written and row.hash and _same(row.hash, written[row.path])
            }
            paths = tuple(path for path in item.paths if path not in again)
            if paths:
                yield replace(item, paths=paths)

    return replace(
        ownership,
        overwritten=tuple(left(ownership.overwritten)),
        damaged=tuple(left(ownership.damaged)),
        edited=tuple(path for path in ownership.edited if path not in written),
    )


def _without_orphans(linkage: LinkageJudgement, ownership: Ownership) -> LinkageJudgement:
    """Leave out what libraries of an overwritten survivor may take from the one that overwrote it.

    What loaded them before has another's bytes, so that nothing says how they were found. Whether they find each other
    again is asked when the survivor is whole again; until then it is enough that its files are lost.
    """
    names = {item.survivor.name for item in ownership.overwritten}
    losses = []
    for loss in linkage.losses:
        left = tuple(
            item for item in loss.consumers if item.distribution is None or item.distribution.name not in names
        )
        if left == loss.consumers or loss.strength not in (Strength.PRELOADED, Strength.NAMED):
            losses.append(loss)
        elif left:
            losses.append(replace(loss, consumers=left))
    return replace(linkage, losses=tuple(losses))


def _same(one: str, other: str) -> bool:
    return one.rstrip("=") == other.rstrip("=")
