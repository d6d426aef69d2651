"""Losses that the user accepts by name: they warn instead of blocking, and a name that is no loss is an error."""

from collections.abc import Iterable
from dataclasses import replace

from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.names import normalize_name
from safe_uninstall.model.plan import Code, Finding, Severity

_ACCEPTABLE = frozenset({Code.LIBRARY_LOST, Code.FILE_LOST, Code.REQUIREMENT_LOST, Code.SYMBOLS_LOST, Code.DLOPEN_LOST})


def accept(findings: Iterable[Finding], names: tuple[str, ...]) -> list[Finding]:
    """Turn the losses that the user accepts into warnings.

    Args:
        findings: of a plan.
        names: sonames, paths (maybe shortened) or distributions, as the user wrote them.

    Raises:
        UsageError: a name that no loss of this plan bears.
    """
    mentioned: set[str] = set()
    accepted = []
    for finding in findings:
        if finding.code in _ACCEPTABLE:
            whole, parts = _subjects(finding)
            matching = {name for name in names if any(_is(name, subject) for subject in (*whole, *parts))}
            mentioned |= matching
            if finding.severity is Severity.ERROR and _covers(matching, whole, parts):
                finding = replace(finding, severity=Severity.WARNING, accepted=True)
        accepted.append(finding)
    unknown = [name for name in dict.fromkeys(names) if name not in mentioned]
    if unknown:
        listed = ", ".join(f"`{name}`" for name in unknown)
        raise UsageError(
            f"--accept-loss {listed}: this plan loses no such thing",
            help=("leave the option out, or give a soname, path or distribution that an error names",),
        )
    return accepted


def _subjects(finding: Finding) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names by which a loss is accepted: those that each stand for all of it, and those for parts of it."""
    references = [finding.distribution, *(claimant.distribution for claimant in finding.claimants)]
    whole = [item.name for item in references if item is not None]
    if finding.soname is not None:
        whole.append(finding.soname)
    if finding.code is Code.FILE_LOST:
        return tuple(whole), finding.paths
    if finding.path is not None:
        whole.append(finding.path)
    consumers = {item.path if item.distribution is None else item.distribution.name for item in finding.consumers}
    return tuple(whole), tuple(sorted(consumers))


def _covers(names: Iterable[str], whole: Iterable[str], parts: tuple[str, ...]) -> bool:
    """Return whether ``names`` hold one that stands for all of a loss, or one for each of its parts."""
    names = tuple(names)
    if any(_is(name, subject) for name in names for subject in whole):
        return True
    return bool(parts) and all(any(_is(name, part) for name in names) for part in parts)


def _is(name: str, subject: str) -> bool:
    """Return whether what the user wrote means ``subject``: a path, maybe shortened, a soname or a distribution."""
    if subject.startswith("/"):
        return subject == name or subject.endswith(f"/{name}")
    return name == subject or normalize_name(name) == subject
