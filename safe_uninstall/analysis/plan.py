"""From a snapshot and a request to a plan: one final state for all names, judged once."""

from collections.abc import Iterable
from dataclasses import replace

from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.findings import (
    library_findings,
    ownership_findings,
    requirement_findings,
    unowned_finding,
    unreadable_finding,
)
from safe_uninstall.analysis.fingerprint import fingerprint, fingerprint_parts
from safe_uninstall.analysis.guards import judge_guards, reference
from safe_uninstall.analysis.linkage import judge_linkage
from safe_uninstall.analysis.metadata import lost_requirements
from safe_uninstall.analysis.ownership import Owners, Ownership, judge_ownership, source_of_cache
from safe_uninstall.analysis.selection import select
from safe_uninstall.analysis.unowned import find_unowned
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.environment import Environment, InstallerKind
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.names import normalize_name
from safe_uninstall.model.plan import (
    Action,
    ActionKind,
    Code,
    Finding,
    Plan,
    Prediction,
    Request,
    Severity,
    Verdict,
)
from safe_uninstall.model.snapshot import Snapshot

_ACCEPTABLE = frozenset({Code.LIBRARY_LOST, Code.FILE_LOST, Code.REQUIREMENT_LOST, Code.SYMBOLS_LOST, Code.DLOPEN_LOST})
_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
_CODES = tuple(Code)


def make_plan(snapshot: Snapshot, request: Request) -> Plan:
    """Judge a request.

    Args:
        snapshot: the environment as it is.
        request: what the user asked for.

    Returns:
        A plan with verdict ``block`` if any finding is an error that was not accepted, else ``allow``.

    Raises:
        NotInstalled: names that nothing bears.
        UsageError: something that is no name, or an accepted loss that is none.
    """
    leaving = select(snapshot, request.names)
    installer = request.installer or preferred_installer(snapshot.environment)
    commands = Commands(snapshot, installer, python=request.python)
    owners = Owners(snapshot.distributions)
    guards = judge_guards(snapshot, request, leaving, commands)
    ownership = judge_ownership(snapshot, leaving)
    gone = {distribution.metadata_path for distribution in leaving}
    survivors = tuple(item for item in snapshot.distributions if item.metadata_path not in gone)
    linkage = judge_linkage(
        snapshot,
        owners,
        deleted=ownership.deleted,
        leaving=leaving,
        use_library_path=request.use_library_path,
    )
    requirements = lost_requirements(leaving, survivors, snapshot.environment.markers)
    findings = [
        *guards,
        *library_findings(linkage, owners, ownership, leaving, commands),
        *ownership_findings(ownership, leaving, commands),
        *requirement_findings(requirements, commands),
        *unreadable_finding(snapshot, ownership.deleted),
        *(unowned_finding(item) for item in find_unowned(snapshot, owners, ownership, leaving)),
    ]
    findings = _accept(findings, request.accepted_losses)
    parts = fingerprint_parts(snapshot, deleted=ownership.deleted, released=ownership.released)
    return Plan(
        environment=snapshot.environment,
        fingerprint=fingerprint(parts),
        fingerprint_parts=parts,
        installer=installer,
        request=request,
        verdict=Verdict.BLOCK if any(item.severity is Severity.ERROR for item in findings) else Verdict.ALLOW,
        actions=_actions(snapshot, leaving, ownership),
        findings=tuple(sorted(findings, key=_order)),
        prediction=Prediction(
            removed=frozenset(gone),
            deleted=ownership.deleted,
            released=frozenset(ownership.released),
        ),
    )


def preferred_installer(environment: Environment) -> InstallerKind:
    """Return the installer that an environment is used to: uv where uv made it, else pip."""
    return InstallerKind.UV if environment.created_by_uv else InstallerKind.PIP


def _actions(snapshot: Snapshot, leaving: tuple[Distribution, ...], ownership: Ownership) -> tuple[Action, ...]:
    actions = []
    claimed: set[str] = set()
    caches = {path: source_of_cache(path) for path in ownership.deleted if path.endswith((".pyc", ".pyo"))}
    for distribution in leaving:
        own = {row.path for row in distribution.record.rows}
        scripts = set(distribution.scripts)
        beside = {path for path, source in caches.items() if source in own}
        deleted = sorted(((own | scripts | beside) & ownership.deleted) - claimed)
        claimed.update(deleted)
        actions.append(
            Action(
                kind=ActionKind.UNINSTALL,
                distribution=reference(distribution),
                requested=True,
                reason="requested",
                paths=tuple(deleted),
                bytes=_size(snapshot, deleted),
                metadata_path=distribution.metadata_path,
            )
        )
        released = sorted((own | scripts) & ownership.released.keys())
        if released:
            keepers = sorted({owner.name for path in released for owner in ownership.released[path]})
            actions.append(
                Action(
                    kind=ActionKind.RELEASE,
                    distribution=reference(distribution),
                    requested=True,
                    reason=f"owned by {', '.join(keepers)}",
                    paths=tuple(released),
                    bytes=_size(snapshot, released),
                    metadata_path=distribution.metadata_path,
                )
            )
    return tuple(actions)


def _size(snapshot: Snapshot, paths: Iterable[str]) -> int:
    return sum(snapshot.evidence.size(path) or 0 for path in paths)


def _accept(findings: Iterable[Finding], names: tuple[str, ...]) -> list[Finding]:
    """Turn the losses that the user accepts into warnings."""
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


def _order(finding: Finding) -> tuple[int, int, str, str, str]:
    return (
        _SEVERITIES.index(finding.severity),
        _CODES.index(finding.code),
        finding.distribution.name if finding.distribution is not None else "",
        finding.path or "",
        finding.message,
    )
