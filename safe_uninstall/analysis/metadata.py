"""Which requirements of survivors a removal leaves unmet (PEP 508, for the target environment)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from safe_uninstall.model.names import normalize_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from packaging.requirements import Requirement

    from safe_uninstall.model.distribution import Distribution

_LEADING_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LostRequirement:
    """A Requires-Dist of a survivor that was satisfied and no longer would be."""

    dependent: Distribution
    requirement: str
    """As written, its marker left out."""
    by: Distribution
    """The leaving distribution that satisfied it."""


def lost_requirements(
    leaving: Iterable[Distribution],
    survivors: Iterable[Distribution],
    markers: Mapping[str, str],
) -> tuple[LostRequirement, ...]:
    """Return the requirements that only a leaving distribution satisfied, sorted by dependent and requirement.

    A requirement under an extra counts only where another survivor asks for that extra: nobody misses an extra that
    happened to be complete.

    Args:
        leaving: the distributions that go.
        survivors: the distributions that stay or come.
        markers: PEP 508 markers of the target environment, without ``extra``.
    """
    going: dict[str, list[Distribution]] = {}
    for distribution in leaving:
        going.setdefault(distribution.name, []).append(distribution)
    staying = tuple(survivors)
    lost = []
    for dependent in staying:
        for text in dependent.requires:
            # Names are compared before packaging is imported at all: most runs never need it.
            match = _LEADING_NAME.match(text)
            if match is None or (name := normalize_name(match[1])) not in going:
                continue
            requirement = _applies(text, dependent, staying, markers)
            if requirement is None:
                continue
            met_by = next((item for item in going[name] if _satisfies(item, requirement)), None)
            if met_by is None or any(item.name == name and _satisfies(item, requirement) for item in staying):
                continue
            requirement.marker = None
            lost.append(LostRequirement(dependent=dependent, requirement=str(requirement), by=met_by))
    return tuple(sorted(lost, key=lambda item: (item.dependent.name, item.requirement)))


def _applies(
    text: str, dependent: Distribution, survivors: Iterable[Distribution], markers: Mapping[str, str]
) -> Requirement | None:
    """Return a requirement if it can be read and its marker holds, by itself or under an extra somebody asks for."""
    requirement = _parse(text)
    if requirement is None or requirement.marker is None:
        return requirement
    if requirement.marker.evaluate({**markers, "extra": ""}):
        return requirement
    if "extra" not in str(requirement.marker):
        return None
    for extra in _asked_extras(dependent, survivors, markers):
        if requirement.marker.evaluate({**markers, "extra": extra}):
            return requirement
    return None


def _asked_extras(
    dependent: Distribution, survivors: Iterable[Distribution], markers: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the extras of ``dependent`` that survivors ask for without an extra of their own, sorted."""
    extras: set[str] = set()
    for other in survivors:
        for text in other.requires:
            match = _LEADING_NAME.match(text)
            if "[" not in text or match is None or normalize_name(match[1]) != dependent.name:
                continue
            asking = _parse(text)
            if asking is not None and (asking.marker is None or asking.marker.evaluate({**markers, "extra": ""})):
                extras.update(asking.extras)
    return tuple(sorted(extras))


def _parse(text: str) -> Requirement | None:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _satisfies(distribution: Distribution, requirement: Requirement) -> bool:
    if requirement.url is not None:
        return True
    from packaging.version import InvalidVersion

    try:
        return requirement.specifier.contains(distribution.version, prereleases=True)
    except InvalidVersion:
        return True
