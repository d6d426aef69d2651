"""What a plan does to each distribution, for people to read and for documents."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from safe_uninstall.analysis.change import Judgement
from safe_uninstall.analysis.guards import reference
from safe_uninstall.analysis.ownership import source_of_cache
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.filesystem import Evidence
from safe_uninstall.model.plan import Action, ActionKind, DistributionRef
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import Wheel

_NOBODY: Mapping[str, tuple[str, ...]] = {}


def make_actions(
    snapshot: Snapshot,
    judgement: Judgement,
    *,
    kept: Mapping[str, tuple[str, ...]] = _NOBODY,
    cascaded: Mapping[str, tuple[str, ...]] = _NOBODY,
    substituted: Mapping[str, tuple[str, ...]] = _NOBODY,
    outline: bool = False,
) -> tuple[Action, ...]:
    """Return the actions of a change: uninstallations with their releases, then what is restored, installed and kept.

    Args:
        snapshot: the baseline.
        judgement: of the change.
        kept: requested distributions that stay (metadata path), each with what needs them.
        cascaded: distributions that go unasked (metadata path), each with what they would miss.
        substituted: wheels that come unasked (metadata path), each with what needs them.
        outline: leave out paths and sizes, which the plan of an alternative itself will show.
    """
    evidence = None if outline else snapshot.evidence
    by_path = {item.metadata_path: item for item in snapshot.distributions}
    actions = (
        *_removals(judgement, cascaded, evidence),
        *(_restoration(item, wheel) for item, wheel in judgement.change.restored),
        *(_installation(wheel, substituted.get(wheel.metadata_path)) for wheel in judgement.change.installed),
        *(_kept(by_path[path], reasons) for path, reasons in sorted(kept.items())),
    )
    return tuple(replace(item, paths=(), bytes=0) for item in actions) if outline else actions


def _removals(
    judgement: Judgement, cascaded: Mapping[str, tuple[str, ...]], evidence: Evidence | None
) -> Iterator[Action]:
    ownership = judgement.ownership
    comers = {wheel.name: wheel for wheel in judgement.change.installed}
    claimed: set[str] = set()
    caches = {path: source_of_cache(path) for path in ownership.deleted if path.endswith((".pyc", ".pyo"))}
    for distribution in judgement.change.leaving:
        own = {row.path for row in distribution.record.rows}
        scripts = set(distribution.scripts)
        beside = {path for path, source in caches.items() if source in own}
        deleted = sorted(((own | scripts | beside) & ownership.deleted) - claimed)
        claimed.update(deleted)
        reasons = cascaded.get(distribution.metadata_path)
        comer = comers.get(distribution.name)
        if reasons is not None:
            reason = "would break: " + "; ".join(reasons)
        else:
            reason = "requested" if comer is None else f"replaced by {comer.version}"
        yield Action(
            kind=ActionKind.UNINSTALL,
            distribution=reference(distribution),
            requested=reasons is None and comer is None,
            reason=reason,
            paths=tuple(deleted),
            bytes=_size(evidence, deleted),
            metadata_path=distribution.metadata_path,
        )
        released = sorted((own | scripts) & ownership.released.keys())
        if released:
            keepers = sorted({owner.name for path in released for owner in ownership.released[path]})
            yield Action(
                kind=ActionKind.RELEASE,
                distribution=reference(distribution),
                requested=reasons is None and comer is None,
                reason=f"owned by {', '.join(keepers)}",
                paths=tuple(released),
                bytes=_size(evidence, released),
                metadata_path=distribution.metadata_path,
            )


def _restoration(distribution: Distribution, wheel: Wheel) -> Action:
    return Action(
        kind=ActionKind.RESTORE,
        distribution=reference(distribution),
        requested=False,
        reason=f"its own files again, from {wheel.source}",
        paths=tuple(sorted(row.path for row in wheel.rows)),
        bytes=wheel.installed_size,
        metadata_path=distribution.metadata_path,
    )


def _installation(wheel: Wheel, reasons: tuple[str, ...] | None) -> Action:
    why = "" if reasons is None else f", since {'; '.join(reasons)}"
    return Action(
        kind=ActionKind.INSTALL,
        distribution=DistributionRef(name=wheel.name, version=wheel.version),
        requested=reasons is None,
        reason=f"from {wheel.source}{why}",
        paths=tuple(sorted(row.path for row in wheel.rows)),
        bytes=wheel.installed_size,
        metadata_path=wheel.metadata_path,
    )


def _kept(distribution: Distribution, reasons: tuple[str, ...]) -> Action:
    return Action(
        kind=ActionKind.KEEP,
        distribution=reference(distribution),
        requested=True,
        reason="still needed: " + "; ".join(reasons),
        metadata_path=distribution.metadata_path,
    )


def _size(evidence: Evidence | None, paths: Iterable[str]) -> int:
    return 0 if evidence is None else sum(evidence.size(path) or 0 for path in paths)
