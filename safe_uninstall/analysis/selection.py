"""Turns the names of a request into installed distributions."""

import re
from collections.abc import Iterable

from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.errors import NotInstalled, UsageError
from safe_uninstall.model.names import normalize_name
from safe_uninstall.model.snapshot import Snapshot

_NAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$")
_REQUIREMENT = re.compile(r"^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(\[[^\]]*\])?\s*([<>=!~@;(].*)?$")
_NEAR = 3


def select(snapshot: Snapshot, names: tuple[str, ...]) -> tuple[Distribution, ...]:
    """Return the distributions that a request names, sorted by name and metadata path, each once.

    Args:
        snapshot: the environment.
        names: names, globs, or requirements as ``pip uninstall`` takes them (only their name counts, and a
            version specifier must hold).

    Returns:
        All distributions of those names: several dist-info of one name go together.

    Raises:
        NotInstalled: a name that nothing bears, or a glob that matches nothing.
        UsageError: something that is no name, or a version that is not the one installed.
    """
    by_name: dict[str, list[Distribution]] = {}
    for distribution in snapshot.distributions:
        by_name.setdefault(distribution.name, []).append(distribution)
    chosen: dict[str, list[Distribution]] = {}
    unknown: list[str] = []
    for written in names:
        matching = _matching(written, by_name)
        if not matching:
            unknown.append(written)
        for name in matching:
            # What the environment itself holds hides what it merely sees.
            own = [item for item in by_name[name] if item.owned_here]
            chosen[name] = own or by_name[name]
    if unknown:
        near = {written: _near(written, by_name) for written in unknown}
        known = sorted({name for names_ in near.values() for name in names_})
        help = tuple(f"did you mean `{name}`?" for name in known)
        raise NotInstalled(tuple(dict.fromkeys(unknown)), near, help=help or ("see what is installed: pip list",))
    found = [distribution for name in sorted(chosen) for distribution in chosen[name]]
    return tuple(sorted(found, key=lambda item: (item.name, item.metadata_path)))


def _matching(written: str, by_name: dict[str, list[Distribution]]) -> list[str]:
    text = written.strip()
    if any(sign in text for sign in "*?") or (text.count("[") and not _REQUIREMENT.match(text)):
        import fnmatch

        # Runs of separators are one in a pattern too, but its character classes are left alone.
        pattern = re.sub(r"[-_.]+(?![^\[]*\])", "-", text).lower()
        return sorted(name for name in by_name if fnmatch.fnmatchcase(name, pattern))
    if _NAME.match(text):
        return [normalize_name(text)] if normalize_name(text) in by_name else []
    match = _REQUIREMENT.match(text)
    if match is None:
        raise UsageError(
            f"`{written}` is not a distribution name", help=("give names as `pip list` shows them, or globs in quotes",)
        )
    name = normalize_name(match[1])
    if name not in by_name:
        return []
    _check_version(written, by_name[name])
    return [name]


def _check_version(written: str, installed: Iterable[Distribution]) -> None:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(written)
    except InvalidRequirement as error:
        raise UsageError(f"`{written}` is not a requirement: {str(error).splitlines()[0]}") from None
    versions = [item.version for item in installed]
    if not any(requirement.specifier.contains(version, prereleases=True) for version in versions):
        raise UsageError(
            f"`{written}` asks for another version than the one installed: {', '.join(versions)}",
            help=(f"remove the one installed: safe-uninstall {normalize_name(requirement.name)}",),
        )


def _near(written: str, by_name: dict[str, list[Distribution]]) -> tuple[str, ...]:
    import difflib

    name = normalize_name(re.sub(r"[*?\[\]].*", "", written.strip()))
    if not name:
        return ()
    close = difflib.get_close_matches(name, by_name, n=_NEAR, cutoff=0.75)
    containing = sorted(
        item for item in by_name if len(name) > 2 and (name in item or (item in name and len(item) > 3))
    )
    return tuple(dict.fromkeys([*close, *containing]))[:_NEAR]
