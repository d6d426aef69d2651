"""Tries the rewrites that are allowed, one after the other: what changes the environment least comes first."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from safe_uninstall.analysis.metadata import unmet_requirements
from safe_uninstall.analysis.nearest import Cause, Ground, Resolution, Search
from safe_uninstall.analysis.presumed import PresumedWheels
from safe_uninstall.analysis.requested import Asked, combine
from safe_uninstall.model.plan import Rewrite
from safe_uninstall.model.wheel import Wheel, WheelSource, WheelUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """No allowed change is without losses."""

    causes: tuple[Cause, ...] = ()
    unavailable: tuple[WheelUnavailable, ...] = ()
    """Wheels that would have been needed."""
    wheels: Mapping[str, Wheel | WheelUnavailable] = field(default_factory=dict)
    """What the source of wheels has said already, by the metadata path of what they would restore."""


def rewrite(
    ground: Ground, asked: Asked, *, rewrites: frozenset[Rewrite], wheels: WheelSource
) -> Resolution | Unresolved:
    """Return the nearest change to a request by the rewrites that are allowed.

    What changes the environment least is tried first: restoring, then installing substitutes, then keeping what was to
    go, then removing what was to stay; each only if what comes before it does not suffice.

    A substitute is what the consumer of a lost library names in its own Requires-Dist and nobody provides. It is
    accepted only if nothing is lost with it: if its libraries are where they are looked for.

    Args:
        ground: the snapshot, and who judges.
        asked: the request, resolved; it loses something.
        rewrites: what may be done, at least one.
        wheels: where wheels come from; asked only for what may help.
    """
    allowed: frozenset[Rewrite] = frozenset()
    guesses: dict[str, Wheel | WheelUnavailable] = {}
    answers: dict[str, Wheel | WheelUnavailable] = {}
    substitutes: tuple[Wheel, ...] = ()
    causes: tuple[Cause, ...] = ()
    presumed = (
        wheels if isinstance(wheels, PresumedWheels) else PresumedWheels(ground.snapshot, answers, owners=ground.owners)
    )
    for step in Rewrite:
        if step not in rewrites:
            continue
        allowed |= {step}
        if step is Rewrite.SUBSTITUTE:
            resolved = _find_substitutes(ground, asked, wheels)
            if isinstance(resolved, WheelUnavailable):
                guesses[""] = resolved
            else:
                substitutes = resolved
        found = Search(ground, asked, allowed, presumed, substitutes, guesses).run()
        # Hundreds of megabytes are not fetched to find out that something else is lost anyhow.
        if isinstance(found, Resolution) and found.judgement.change.restored and wheels is not presumed:
            found = Search(ground, asked, allowed, wheels, substitutes, answers).run()
        if isinstance(found, Resolution):
            return found
        causes = found
    told = {**guesses, **answers}.values()
    unavailable = tuple(item for item in told if isinstance(item, WheelUnavailable))
    return Unresolved(causes=causes, unavailable=unavailable, wheels=answers)


def _find_substitutes(ground: Ground, asked: Asked, wheels: WheelSource) -> tuple[Wheel, ...] | WheelUnavailable:
    """Return the wheels that consumers of lost libraries name and do not have, with what these need in turn."""
    snapshot = ground.snapshot
    judgement = ground.judge.judge(asked.change)
    names = {
        consumer.distribution.name
        for loss in ground.remaining(judgement).linkage.blocking
        for consumer in loss.consumers
        if consumer.distribution is not None
    }
    affected = [item for item in snapshot.distributions if item.name in names]
    # What only the leaving provide was there, and is not wanted any more: it is no substitute for itself.
    wanted = unmet_requirements(affected, snapshot.distributions, snapshot.environment.markers)
    if not wanted:
        return ()
    found = wheels.resolve(tuple(sorted({requirement for _, requirement in wanted})))
    if isinstance(found, WheelUnavailable):
        return found
    return combine(snapshot, asked.leaving, found).installed
