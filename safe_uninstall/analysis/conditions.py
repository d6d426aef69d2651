"""Turns what a change loses into conditions on its outcome, each with all ways of meeting it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from safe_uninstall.analysis.change import Collision, Judgement
from safe_uninstall.analysis.losses import LibraryLoss, ProviderChange
from safe_uninstall.analysis.metadata import LostRequirement, unmet_requirements
from safe_uninstall.analysis.ownership import Overwritten, Owners
from safe_uninstall.analysis.problem import Option, State
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.plan import Consumer
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import Wheel

SUBSTITUTES = "substitutes"
"""Stands for all substitutes together among the identifiers, which are metadata paths otherwise."""

_STAYS = frozenset({State.KEPT, State.RESTORED})
_REMOVED = frozenset({State.REMOVED})
_RESTORED = frozenset({State.RESTORED})
_INSTALLED = frozenset({State.INSTALLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A condition before it is known which of its options are left."""

    words: str
    """Who needs what, or would lose what: reads after "still needed:", "would break:" and "does not help:"."""
    subject: str
    """Soname, or name of the distribution, by which the finding about the loss is recognised."""
    options: tuple[Option, ...]
    last: Option | None = None
    """Removing a survivor that is overwritten. It needs nothing of what goes: only where nothing may be restored, or
    where it would break anyhow, is it removed instead of being restored, lest a wheel that cannot be had turns a
    restoration into a removal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Makes the demands of one snapshot."""

    snapshot: Snapshot
    owners: Owners
    substitutes: tuple[Wheel, ...]
    """What may be installed though nobody named it."""
    by_name: Mapping[str, tuple[Distribution, ...]]
    """Distributions that go together: the environment's own of a name, or else those it merely sees."""

    def of(self, judgement: Judgement) -> Iterator[Demand]:
        """Yield a demand for every loss; options name all that could avoid it, whether or not it is allowed.

        Every change without that loss meets one of them; which of them do avoid it, the next judgement tells.
        """
        gone = {item.metadata_path for item in judgement.change.leaving}
        for overwritten in judgement.ownership.overwritten:
            yield self._keeps_files(overwritten, gone)
        for loss in judgement.linkage.blocking:
            yield from self._finds(loss, gone)
        for change in judgement.linkage.incompatible:
            yield self._finds_symbols(change, gone)
        for lost in judgement.requirements:
            yield self._has(lost)
        for collision in judgement.collisions:
            yield self._overwrites(collision, judgement)
        for comer, requirement in judgement.unmet:
            yield self._needs(comer, requirement, judgement)

    def _keeps_files(self, overwritten: Overwritten, gone: set[str]) -> Demand:
        survivor = overwritten.survivor
        paths = frozenset(overwritten.paths)
        hashes = {row.path: row.hash for row in survivor.record.rows if row.path in paths and row.hash}
        others = {item.metadata_path: item for path in hashes for item in self.owners.of(path)}
        # Another that was overwritten alike brings the same bytes.
        alike = [
            item
            for path, item in others.items()
            if not (path in gone or item is survivor)
            and any(row.hash == hashes.get(row.path) for row in item.record.rows)
        ]
        return Demand(
            words=f"{survivor.label} would lose {_files(overwritten.paths)}",
            subject=survivor.name,
            options=(*(_option([item], _RESTORED) for item in (survivor, *alike)), *self._keeping(overwritten.by)),
            last=self._removal([survivor]),
        )

    def _finds(self, loss: LibraryLoss, gone: set[str]) -> Iterator[Demand]:
        restoring, keeping = self._providing(loss.provider, gone)
        options = (*restoring, Option(requires=((SUBSTITUTES, _INSTALLED),)), *keeping)
        for words, removal in self._consumers(loss.consumers, gone):
            yield Demand(words=f"{words} needs {loss.name}", subject=loss.name, options=(*options, *removal))

    def _finds_symbols(self, change: ProviderChange, gone: set[str]) -> Demand:
        restoring, keeping = self._providing(change.before, gone)
        ((words, removal),) = self._consumers((change.consumer,), gone)
        return Demand(
            words=f"{words} needs the symbols of {change.name}",
            subject=change.name,
            options=(*restoring, *keeping, *removal),
        )

    def _has(self, lost: LostRequirement) -> Demand:
        return Demand(
            words=f"{lost.dependent.label} requires {lost.requirement}",
            subject=lost.dependent.name,
            options=(*self._keeping([lost.by]), self._removal([lost.dependent])),
        )

    def _overwrites(self, collision: Collision, judgement: Judgement) -> Demand:
        wheel, survivor = collision.wheel, collision.survivor
        # What the request itself installs comes whatever it overwrites.
        options = (
            Option(requires=((item.metadata_path, frozenset({State.KEPT, State.REMOVED})),))
            for item, restored in judgement.change.restored
            if restored is wheel or item is survivor
        )
        may_go = survivor in self.by_name.get(survivor.name, ()) and wheel not in self.substitutes
        return Demand(
            words=f"installing {wheel.name} {wheel.version} would overwrite {_files(collision.paths)}"
            f" of {survivor.label}",
            subject=survivor.name,
            options=tuple(options),
            # What is overwritten may be another wheel; and a substitute must fit in.
            last=self._removal([survivor]) if may_go else None,
        )

    def _needs(self, comer: Distribution, requirement: str, judgement: Judgement) -> Demand:
        meeting = [
            item
            for item in judgement.change.leaving
            if (comer, requirement)
            not in unmet_requirements((comer,), (comer, item), self.snapshot.environment.markers)
        ]
        return Demand(
            words=f"{comer.label} requires {requirement}",
            subject=comer.name,
            options=tuple(self._keeping(meeting)),
        )

    def _consumers(self, consumers: Iterable[Consumer], gone: set[str]) -> Iterator[tuple[str, tuple[Option, ...]]]:
        """Yield who needs a library, in words, each once, with the way of removing it if there is one."""
        seen: set[str] = set()
        for consumer in consumers:
            owners = [item for item in self.owners.of(consumer.path) if item.metadata_path not in gone]
            words = ", ".join(item.label for item in owners) or consumer.path
            if words not in seen:
                seen.add(words)
                yield words, ((self._removal(owners),) if owners else ())

    def _providing(self, path: str, gone: set[str]) -> tuple[tuple[Option, ...], tuple[Option, ...]]:
        """Return the ways of having a library again where it was: restoring survivors, and keeping what goes."""
        claimed = self.owners.of(path)
        restoring = tuple(_option([item], _RESTORED) for item in claimed if item.metadata_path not in gone)
        return restoring, tuple(self._keeping(item for item in claimed if item.metadata_path in gone))

    def _keeping(self, distributions: Iterable[Distribution]) -> Iterator[Option]:
        """Yield the ways of keeping any one of some distributions."""
        for name in dict.fromkeys(item.name for item in distributions):
            yield _option(self.by_name[name], _STAYS)

    def _removal(self, distributions: Iterable[Distribution]) -> Option:
        return _option([item for given in distributions for item in self.by_name[given.name]], _REMOVED)


def _option(distributions: Iterable[Distribution], states: frozenset[State]) -> Option:
    return Option(requires=tuple(sorted({(item.metadata_path, states) for item in distributions})))


def _files(paths: tuple[str, ...]) -> str:
    return "1 file" if len(paths) == 1 else f"{len(paths)} files"
