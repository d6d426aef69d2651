"""From a snapshot and a request to a plan: one final state for all names, judged once."""

from collections.abc import Iterable
from dataclasses import replace

from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.files import Files
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
    commands = Commands(snapshot, installer)
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
        *_unowned(snapshot, owners, ownership, leaving),
    ]
    findings = _accept(findings, request.accepted_losses)
    parts = fingerprint_parts(snapshot, [*ownership.deleted, *ownership.released])
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
    for distribution in leaving:
        own = {row.path for row in distribution.record.rows}
        scripts = set(distribution.scripts)
        caches = {path for path in ownership.deleted if path not in own and source_of_cache(path) in own}
        deleted = sorted(((own | scripts | caches) & ownership.deleted) - claimed)
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


def _unowned(
    snapshot: Snapshot, owners: Owners, ownership: Ownership, leaving: tuple[Distribution, ...]
) -> Iterable[Finding]:
    """Find files that nobody claims in the directories that a distribution has for itself.

    Byte code is no news. Directories that are everybody's (site-packages itself, ``bin``, ``lib``) are not looked at.
    """
    environment = snapshot.environment
    common = {
        environment.prefix,
        environment.scripts,
        f"{environment.prefix}/lib",
        f"{environment.prefix}/include",
        f"{environment.prefix}/share",
        f"{environment.prefix}/etc",
        *environment.site_packages,
        *environment.visible_site_packages,
    }
    files = Files(snapshot.files)
    for distribution in leaving:
        directories = {
            row.path.rpartition("/")[0] for row in distribution.record.rows if row.path in ownership.deleted
        } - common
        left = []
        for directory in directories:
            if directory.endswith("/__pycache__"):
                continue
            for name in files.file_names(directory):
                path = f"{directory}/{name}"
                if name.endswith(".pyc") or path in ownership.deleted or path in ownership.released:
                    continue
                if not owners.of(path):
                    left.append(path)
        if left:
            yield unowned_finding(distribution, tuple(sorted(left)))


def _accept(findings: Iterable[Finding], names: tuple[str, ...]) -> list[Finding]:
    """Turn the losses that the user accepts into warnings."""
    remaining = dict.fromkeys(names)
    accepted = []
    for finding in findings:
        matching = [name for name in names if finding.code in _ACCEPTABLE and _is_about(finding, name)]
        for name in matching:
            remaining.pop(name, None)
        if matching and finding.severity is Severity.ERROR:
            finding = replace(finding, severity=Severity.WARNING, accepted=True)
        accepted.append(finding)
    if remaining:
        listed = ", ".join(f"`{name}`" for name in remaining)
        raise UsageError(
            f"--accept-loss {listed}: this plan loses no such thing",
            help=("leave the option out, or give a soname, path or distribution that an error names",),
        )
    return accepted


def _is_about(finding: Finding, name: str) -> bool:
    if name in (finding.soname, finding.path):
        return True
    if finding.path is not None and finding.path.endswith("/" + name):
        return True
    subjects = [finding.distribution, *(claimant.distribution for claimant in finding.claimants)]
    return any(item is not None and item.name == normalize_name(name) for item in subjects)


def _order(finding: Finding) -> tuple[int, int, str, str, str]:
    return (
        _SEVERITIES.index(finding.severity),
        _CODES.index(finding.code),
        finding.distribution.name if finding.distribution is not None else "",
        finding.path or "",
        finding.message,
    )
