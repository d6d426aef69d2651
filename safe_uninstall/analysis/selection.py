"""Turns the names of a request into installed distributions."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.metadata import marker_holds
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.errors import NotInstalled, UsageError
from safe_uninstall.model.names import normalize_name
from safe_uninstall.model.snapshot import Snapshot

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_NAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$")
_REQUIREMENT = re.compile(
    r"^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(\[[A-Za-z0-9\s,._-]*\])?\s*([<>=!~@;(].*)?$"
)
_NEAR = 3


def select(snapshot: Snapshot, names: tuple[str, ...], commands: Commands) -> tuple[Distribution, ...]:
    """Return the distributions that a request names, sorted by name and metadata path, each once.

    Args:
        snapshot: the environment.
        names: names, globs, or requirements as ``pip uninstall`` takes them: of these the name counts, a version
            specifier must hold, and one whose marker does not hold for the environment is passed over.
        commands: makes the help.

    Returns:
        All distributions of those names: several dist-info of one name go together.

    Raises:
        NotInstalled: a name that nothing bears, or a glob that matches nothing.
        UsageError: something that is no name, a version that is not the one installed, or requirements all of which
            are passed over.
    """
    applying = [written for written in names if _applies(written, snapshot.environment.markers)]
    if not applying:
        listed = ", ".join(f"`{written}`" for written in names)
        raise UsageError(
            f"nothing of it applies to `{snapshot.environment.prefix}`: the markers of {listed} do not hold there",
            help=("give the name without a marker to remove it all the same",),
        )
    by_name: dict[str, list[Distribution]] = {}
    for distribution in snapshot.distributions:
        by_name.setdefault(distribution.name, []).append(distribution)
    # What the environment itself holds hides what it merely sees.
    by_name = {name: [item for item in group if item.owned_here] or group for name, group in by_name.items()}
    chosen: dict[str, list[Distribution]] = {}
    unknown: list[str] = []
    for written in applying:
        matching = _matching(written, by_name)
        if not matching:
            unknown.append(written)
        chosen.update((name, by_name[name]) for name in matching)
    if unknown:
        near = {written: _near(written, by_name) for written in unknown}
        known = sorted({name for names_ in near.values() for name in names_})
        help = tuple(f"did you mean `{name}`?" for name in known)
        raise NotInstalled(
            tuple(dict.fromkeys(unknown)),
            near,
            where=snapshot.environment.prefix,
            help=help or (f"see what is installed: {commands.list_installed()}",),
        )
    found = [distribution for name in sorted(chosen) for distribution in chosen[name]]
    return tuple(sorted(found, key=lambda item: (item.name, item.metadata_path)))


def _matching(written: str, by_name: dict[str, list[Distribution]]) -> list[str]:
    text = written.strip()
    match = _REQUIREMENT.match(text)
    if match is not None and match[2] and not match[3] and normalize_name(match[1]) not in by_name:
        # Without a distribution that could have extras, brackets are those of a pattern.
        match = None
    if match is None and any(sign in text for sign in "*?["):
        import fnmatch

        # Runs of separators are one in a pattern too, but its character classes are left alone.
        pattern = re.sub(r"[-_.]+(?![^\[]*\])", "-", text).lower()
        matching = sorted(name for name in by_name if fnmatch.fnmatchcase(name, pattern))
        # A pattern means what is the environment's own; only a name means what is merely visible.
        return [name for name in matching if by_name[name][0].owned_here] or matching
    if match is None:
        raise UsageError(
            f"`{written}` is not a distribution name", help=("give names as `pip list` shows them, or globs in quotes",)
        )
    name = normalize_name(match[1])
    if name not in by_name:
        return []
    if not _NAME.match(text):
        _check_version(written, by_name[name])
    return [name]


def _applies(written: str, markers: Mapping[str, str]) -> bool:
    """Return whether a requirement's marker holds for the environment; what cannot be parsed is refused later."""
    if ";" not in written:
        return True
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return marker_holds(Requirement(written), markers)
    except InvalidRequirement:
        return True


def _check_version(written: str, installed: Iterable[Distribution]) -> None:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(written)
    except InvalidRequirement as error:
        raise UsageError(f"`{written}` is not a requirement: {str(error).splitlines()[0]}") from None
    versions = [item.version for item in installed]
    if not any(_satisfies(version, requirement) for version in versions):
        raise UsageError(
            f"`{written}` asks for another version than the one installed: {', '.join(versions)}",
            help=("leave the version out to remove the one that is installed",),
        )


def _satisfies(version: str, requirement: "Requirement") -> bool:
    from packaging.version import InvalidVersion, Version

    try:
        return requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        # Older than PEP 440: only its name can be held against what was asked.
        return True


def _near(written: str, by_name: dict[str, list[Distribution]]) -> tuple[str, ...]:
    import difflib

    name = normalize_name(re.sub(r"[*?\[\]<>=!~@;(\s].*", "", written.strip()))
    if not name:
        return ()
    close = difflib.get_close_matches(name, by_name, n=_NEAR, cutoff=0.75)
    containing = sorted(
        item for item in by_name if len(name) > 2 and (name in item or (item in name and len(item) > 3))
    )
    return tuple(dict.fromkeys([*close, *containing]))[:_NEAR]
