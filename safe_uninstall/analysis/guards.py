"""What forbids, or makes doubtful, the removal of a distribution before its files are looked at."""

import re
from collections.abc import Iterator

from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.managers import brought_back
from safe_uninstall.model.distribution import Distribution, MetadataKind, RecordState
from safe_uninstall.model.environment import Environment
from safe_uninstall.model.names import normalize_name
from safe_uninstall.model.plan import Code, DistributionRef, Finding, Request, Severity
from safe_uninstall.model.snapshot import Snapshot

_OWN_NAME = "safe-uninstall"
_EXTRA = re.compile(r";.*\bextra\s*==")
_LEADING_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_DEBIAN_SITE = "/usr/lib/python3/dist-packages"


def judge_guards(
    snapshot: Snapshot, request: Request, leaving: tuple[Distribution, ...], commands: Commands
) -> tuple[Finding, ...]:
    """Return the findings about the distributions themselves: who else manages them, and whether their list is whole.

    Args:
        snapshot: the environment.
        request: what was asked for.
        leaving: the distributions that go.
        commands: makes the help.
    """
    findings: list[Finding] = []
    findings += _externally_managed(snapshot.environment, request)
    for distribution in leaving:
        foreign = _foreign(snapshot.environment, distribution, commands)
        if foreign is not None:
            findings.append(foreign)
            continue
        findings += _record(distribution, commands)
    findings += brought_back(snapshot.environment, leaving)
    findings += _duplicates(leaving)
    findings += _self_removal(snapshot, request, leaving)
    findings += _last_pip(snapshot, leaving, commands)
    return tuple(findings)


def reference(distribution: Distribution) -> DistributionRef:
    """Return a distribution as findings name it."""
    return DistributionRef(name=distribution.name, version=distribution.version)


def _externally_managed(environment: Environment, request: Request) -> Iterator[Finding]:
    if environment.externally_managed is None or request.break_system_packages:
        return
    yield Finding(
        code=Code.EXTERNALLY_MANAGED,
        severity=Severity.ERROR,
        message="this Python is managed by its operating system or distributor (PEP 668)",
        notes=tuple(line for line in environment.externally_managed.splitlines() if line.strip()),
        help=("work in a virtual environment instead, or override at your own risk: --break-system-packages",),
    )


def _foreign(environment: Environment, distribution: Distribution, commands: Commands) -> Finding | None:
    """Return why somebody else must remove a distribution."""
    name = f"`{distribution.name}` {distribution.version}"
    if distribution.conda_package is not None:
        message, help = f"{name} was installed by conda", commands.conda_remove(distribution)
    elif not distribution.owned_here:
        base = environment.base_prefix
        if base is None or not distribution.site_packages.startswith(f"{base}/"):
            base = distribution.site_packages
        message = f"{name} is outside this environment, in {distribution.site_packages}"
        help = commands.ours_elsewhere(base, distribution.name)
    elif distribution.site_packages == _DEBIAN_SITE:
        message, help = f"{name} was installed by the operating system", f"apt remove python3-{distribution.name}"
    else:
        return None
    return Finding(
        code=Code.EXTERNALLY_MANAGED,
        severity=Severity.ERROR,
        message=message,
        distribution=reference(distribution),
        path=distribution.metadata_path,
        help=(help,),
    )


def _record(distribution: Distribution, commands: Commands) -> Iterator[Finding]:
    record = distribution.record
    name = f"`{distribution.name}` {distribution.version}"
    if distribution.metadata_kind is MetadataKind.EGG_LINK:
        yield _refusal(distribution, f"{name} is a development install (egg-link) without a list of files", (
            f"leave it to its installer: {commands.uninstall_with_installer(distribution)}",
        ))  # fmt: skip
    elif record.state is RecordState.MISSING:
        yield _refusal(distribution, f"{name} has no RECORD: which files are its own is unknown", (
            "install the same version over it, which brings RECORD back, then run again", commands.repair(distribution),
        ))  # fmt: skip
    elif record.state is RecordState.MALFORMED:
        finding = _refusal(distribution, f"the RECORD of {name} cannot be read in full", (
            "install the same version over it, which brings RECORD back, then run again", commands.repair(distribution),
        ))  # fmt: skip
        yield _with_notes(finding, record.problems)
    elif record.state is RecordState.LOCKED:
        yield _refusal(distribution, f"{name} is protected: its RECORD is renamed, so that installers refuse", (
            f"rename {record.path} back to RECORD, then run again",
        ))  # fmt: skip
    if record.unsafe:
        yield Finding(
            code=Code.RECORD_UNSAFE,
            severity=Severity.WARNING,
            message=f"the RECORD of {name} names {_count(len(record.unsafe), 'path')} that cannot be its own;"
            " they are not touched",
            distribution=reference(distribution),
            path=record.path,
            notes=record.unsafe,
        )


def _refusal(distribution: Distribution, message: str, help: tuple[str, ...]) -> Finding:
    return Finding(
        code=Code.RECORD_MISSING,
        severity=Severity.ERROR,
        message=message,
        distribution=reference(distribution),
        path=distribution.record.path or distribution.metadata_path,
        help=help,
    )


def _with_notes(finding: Finding, notes: tuple[str, ...]) -> Finding:
    from dataclasses import replace

    return replace(finding, notes=notes)


def _duplicates(leaving: tuple[Distribution, ...]) -> Iterator[Finding]:
    by_name: dict[str, list[Distribution]] = {}
    for distribution in leaving:
        by_name.setdefault(distribution.name, []).append(distribution)
    for name, group in by_name.items():
        if len(group) > 1:
            versions = ", ".join(sorted({item.version for item in group}))
            yield Finding(
                code=Code.DUPLICATE_DISTRIBUTION,
                severity=Severity.WARNING,
                message=f"`{name}` is installed {len(group)} times ({versions}); all of them go",
                distribution=reference(group[0]),
                paths=tuple(item.metadata_path for item in group),
            )


def _self_removal(snapshot: Snapshot, request: Request, leaving: tuple[Distribution, ...]) -> Iterator[Finding]:
    """Refuse to saw off the branch: the tool's own distribution and what it needs, where it runs from here."""
    if request.tool_prefix != snapshot.environment.prefix:
        return
    needed = _needed_by(snapshot, _OWN_NAME)
    for distribution in leaving:
        if distribution.name not in needed:
            continue
        what = "is this tool" if distribution.name == _OWN_NAME else "is needed by this tool"
        yield Finding(
            code=Code.SELF_REMOVAL,
            severity=Severity.ERROR,
            message=f"`{distribution.name}` {distribution.version} {what}, which runs from this environment",
            distribution=reference(distribution),
            help=("run safe-uninstall from another environment, with -p and the path of this one",),
        )


def _needed_by(snapshot: Snapshot, name: str) -> frozenset[str]:
    """Return a distribution's name and all that its requirements name in turn; markers are not looked at."""
    requires: dict[str, tuple[str, ...]] = {}
    for distribution in snapshot.distributions:
        if distribution.owned_here:
            requires[distribution.name] = requires.get(distribution.name, ()) + distribution.requires
    reached = {name} if name in requires else set()
    waiting = list(reached)
    while waiting:
        for text in requires[waiting.pop()]:
            match = _LEADING_NAME.match(text)
            needed = "" if match is None or _EXTRA.search(text) else normalize_name(match[1])
            if needed in requires and needed not in reached:
                reached.add(needed)
                waiting.append(needed)
    return frozenset(reached)


def _last_pip(snapshot: Snapshot, leaving: tuple[Distribution, ...], commands: Commands) -> Iterator[Finding]:
    gone = {distribution.metadata_path for distribution in leaving}
    pip = next((item for item in leaving if item.name == "pip"), None)
    if pip is None or snapshot.environment.created_by_uv:
        return
    if any(item.name == "pip" and item.metadata_path not in gone for item in snapshot.distributions):
        return
    yield Finding(
        code=Code.SELF_REMOVAL,
        severity=Severity.WARNING,
        message=f"`pip` {pip.version} is the last pip of this environment",
        distribution=reference(pip),
        help=(f"bring it back later: {commands.ensure_pip()}",),
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
