"""Which requirements of survivors a removal leaves unmet (PEP 508, for the target environment)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from safe_uninstall.model.distribution import MetadataKind
from safe_uninstall.model.names import normalize_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set

    from packaging.requirements import Requirement

    from safe_uninstall.model.distribution import Distribution

_EXTRA = re.compile(r"""\bextra\s*==\s*["']([^"']+)["']""")
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

    A requirement under an extra counts only where a survivor asks for that extra: nobody misses an extra that
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
    extras = _Extras(staying, markers)
    lost: dict[tuple[str, str], LostRequirement] = {}
    for dependent in staying:
        for text in dependent.requires:
            # Names are compared before packaging is imported at all: most runs never need it.
            match = _LEADING_NAME.match(text)
            if match is None or (name := normalize_name(match[1])) not in going:
                continue
            requirement = _parse(text)
            if requirement is None or not extras.apply(requirement, dependent.name):
                continue
            met_by = next((item for item in going[name] if _satisfies(item, requirement)), None)
            if met_by is None or any(item.name == name and _satisfies(item, requirement) for item in staying):
                continue
            requirement.marker = None
            loss = LostRequirement(dependent=dependent, requirement=str(requirement), by=met_by)
            lost[dependent.metadata_path, loss.requirement] = loss
    return tuple(sorted(lost.values(), key=lambda item: (item.dependent.name, item.requirement)))


def unmet_requirements(
    comers: Iterable[Distribution], staying: Iterable[Distribution], markers: Mapping[str, str]
) -> tuple[tuple[Distribution, str], ...]:
    """Return the requirements of new distributions that nothing satisfies: (distribution, requirement without marker).

    Args:
        comers: distributions that come.
        staying: all distributions of the outcome, the new ones included.
        markers: PEP 508 markers of the target environment, without ``extra``.
    """
    there = tuple(staying)
    extras = _Extras(there, markers)
    unmet = []
    for comer in comers:
        for text in comer.requires:
            requirement = _parse(text)
            if requirement is None or not extras.apply(requirement, comer.name):
                continue
            name = normalize_name(requirement.name)
            if not any(item.name == name and _satisfies(item, requirement) for item in there):
                requirement.marker = None
                unmet.append((comer, str(requirement)))
    return tuple(unmet)


def required_by_others(
    names: Set[str], distributions: Iterable[Distribution], markers: Mapping[str, str]
) -> frozenset[str]:
    """Return which of ``names`` a distribution of another name requires, in the version that is installed.

    Args:
        names: normalised.
        distributions: all that are installed.
        markers: PEP 508 markers of the target environment, without ``extra``.
    """
    there = tuple(distributions)
    extras = _Extras(there, markers)
    found: set[str] = set()
    for dependent in there:
        for text in dependent.requires:
            match = _LEADING_NAME.match(text)
            name = "" if match is None else normalize_name(match[1])
            if name not in names or name in found or name == dependent.name:
                continue
            requirement = _parse(text)
            if requirement is None or not extras.apply(requirement, dependent.name):
                continue
            if any(item.name == name and _satisfies(item, requirement) for item in there):
                found.add(name)
    return frozenset(found)


class _Extras:
    """Which extras somebody asks for; found out when a marker first depends on it."""

    def __init__(self, distributions: tuple[Distribution, ...], markers: Mapping[str, str]) -> None:
        self._distributions = distributions
        self._markers = markers
        self._asked: dict[str, set[str]] | None = None

    def apply(self, requirement: Requirement, dependent: str) -> bool:
        """Return whether the marker of a requirement holds, by itself or under an extra that somebody asks for."""
        if self._holds(requirement, ""):
            return True
        if "extra" not in str(requirement.marker):
            return False
        if self._asked is None:
            self._asked = self._find()
        return any(self._holds(requirement, extra) for extra in sorted(self._asked.get(dependent, ())))

    def _find(self) -> dict[str, set[str]]:
        """Follow requirements with extras, ``lib[all]`` asking for ``lib[fast]`` included, until nothing is added."""
        asking = []
        for distribution in self._distributions:
            for text in distribution.requires:
                requirement = _parse(text) if "[" in text else None
                if requirement is not None and requirement.extras:
                    asking.append((distribution.name, normalize_name(requirement.name), requirement))
        asked: dict[str, set[str]] = {}
        grown = True
        while grown:
            grown = False
            for by, name, requirement in asking:
                extras = asked.setdefault(name, set())
                if requirement.extras <= extras:
                    continue
                if any(self._holds(requirement, extra) for extra in ("", *asked.get(by, ()))):
                    extras |= requirement.extras
                    grown = True
        return asked

    def _holds(self, requirement: Requirement, extra: str) -> bool:
        return marker_holds(requirement, self._markers, extra)


def marker_holds(requirement: Requirement, markers: Mapping[str, str], extra: str = "") -> bool:
    """Return whether the marker of a requirement holds; one that cannot be judged is taken to hold.

    Args:
        requirement: with a marker or without.
        markers: PEP 508 markers of the target environment, without ``extra``.
        extra: the extra that is asked for, empty for none.
    """
    if requirement.marker is None:
        return True
    from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
    from packaging.version import InvalidVersion

    try:
        return requirement.marker.evaluate({**markers, "extra": extra})
    except (UndefinedComparison, UndefinedEnvironmentName, InvalidVersion):
        # What cannot be judged (a kernel release that is no version) is taken for a need, not for none.
        return True


def may_apply(text: str, markers: Mapping[str, str]) -> bool:
    """Return whether a Requires-Dist can count in an environment: by itself, or under an extra that it names."""
    requirement = _parse(text) if ";" in text else None
    if requirement is None:
        return True
    extras = _EXTRA.findall(str(requirement.marker))
    return any(marker_holds(requirement, markers, extra) for extra in ("", *extras))


def _parse(text: str) -> Requirement | None:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _satisfies(distribution: Distribution, requirement: Requirement) -> bool:
    if distribution.metadata_kind is MetadataKind.CONDA:
        # Installers see no metadata of it, whatever it is called.
        return False
    if requirement.url is not None:
        return True
    from packaging.version import InvalidVersion, Version

    try:
        return requirement.specifier.contains(Version(distribution.version), prereleases=True)
    except InvalidVersion:
        return True
