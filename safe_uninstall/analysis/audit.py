"""Judges an environment as it stands: what is damaged, what cannot be found, and what can be done about each."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.damage import find_damage
from safe_uninstall.analysis.damaged import Mending, damage_findings, files
from safe_uninstall.analysis.findings import unreadable_finding
from safe_uninstall.analysis.guards import reference
from safe_uninstall.analysis.leftovers import find_leftovers, leftover_findings
from safe_uninstall.analysis.linkage import in_words
from safe_uninstall.analysis.loads import Baseline
from safe_uninstall.analysis.managers import managed_finding
from safe_uninstall.analysis.metadata import unmet_requirements
from safe_uninstall.analysis.mixed_cuda import MixedCuda, find_mixed_cuda, mixed_cuda_finding
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.plan import removable
from safe_uninstall.analysis.repair import choose_repairs
from safe_uninstall.analysis.unmet import Unmet, UnmetNeed, find_unmet
from safe_uninstall.model.distribution import Distribution, MetadataKind, RecordState
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.plan import Claimant, Code, Consumer, Finding, Severity
from safe_uninstall.model.snapshot import Snapshot


def audit(
    snapshot: Snapshot, commands: Commands, *, use_library_path: bool = False, deep: bool = False
) -> tuple[Finding, ...]:
    """Return what is wrong with an environment: errors first, then warnings, then notes.

    An error is something that a program surely misses. What an environment can live with is a warning, and what many a
    healthy one has a note.

    Args:
        snapshot: the environment.
        commands: makes the help.
        use_library_path: whether LD_LIBRARY_PATH of the shell binds.
        deep: hash every file instead of comparing sizes.
    """
    owners = Owners(snapshot.distributions)
    baseline = Baseline(snapshot, use_library_path=use_library_path)
    repairs = choose_repairs(snapshot, find_damage(snapshot, deep=deep))
    mending = Mending(repairs, commands, partial(removable, snapshot, use_library_path=use_library_path))
    findings = [
        *damage_findings(repairs, mending),
        *_unmet_findings(owners, find_unmet(snapshot, owners, baseline), mending),
        *_mixed(find_mixed_cuda(snapshot, owners, baseline), mending),
        *_requirements(snapshot, mending, commands),
        *managed_finding(snapshot),
        *_duplicates(snapshot.distributions),
        *_records(snapshot.distributions, commands),
        *unreadable_finding(snapshot, frozenset()),
        *leftover_findings(find_leftovers(snapshot)),
    ]
    order = tuple(Severity)
    return tuple(sorted(findings, key=lambda item: order.index(item.severity)))


def _mixed(found: Iterable[MixedCuda], mending: Mending) -> Iterator[Finding]:
    for item in found:
        yield replace(mixed_cuda_finding(item), help=mending.removing(item.intruders))


def _unmet_findings(owners: Owners, unmet: Unmet, mending: Mending) -> Iterator[Finding]:
    for need in unmet.certain:
        labels = ", ".join(item.label for item in need.claimants)
        yield Finding(
            code=Code.LIBRARY_LOST,
            severity=Severity.ERROR,
            message=f"{need.name} is needed and not there, though {labels} should provide it",
            distribution=reference(need.claimants[0]),
            path=need.paths[0],
            soname=need.name,
            consumers=tuple(_consumers(need, owners)),
            claimants=tuple(Claimant(distribution=reference(item)) for item in need.claimants),
            help=mending.restored(),
        )
    if unmet.others:
        importing = {path for need in unmet.others for path in need.imports}
        by_path = {item.path: item for need in unmet.others for item in _consumers(need, owners)}
        # Whoever imports a module notices; a plugin that nobody opens is missed by nobody.
        ordered = sorted(by_path, key=lambda path: (path not in importing, path))
        names = ", ".join(need.name for need in unmet.others[:3])
        more = len(unmet.others) - 3
        yield Finding(
            code=Code.LIBRARY_LOST,
            severity=Severity.NOTE,
            message=f"{files(len(ordered))} need{'s' if len(ordered) == 1 else ''} libraries that nothing here ever"
            f" provided: {names}{f' and {more} more' if more > 0 else ''}",
            consumers=tuple(by_path[path] for path in ordered),
            notes=(f"{files(len(importing))} of these are extension modules",) if importing else (),
        )


def _consumers(need: UnmetNeed, owners: Owners) -> Iterator[Consumer]:
    for bound in need.consumers:
        owner = next(iter(owners.of(bound.consumer.path)), None)
        yield Consumer(
            distribution=None if owner is None else reference(owner),
            path=bound.consumer.path,
            strength=Strength.LINKED,
            how=in_words(bound),
        )


def _requirements(snapshot: Snapshot, mending: Mending, commands: Commands) -> Iterator[Finding]:
    """Yield what is required and not there; for what should be removed anyway nothing need be installed."""
    own = [item for item in snapshot.distributions if item.owned_here]
    by_help: dict[tuple[str, ...], list[tuple[Distribution, str]]] = {}
    for item, requirement in unmet_requirements(own, snapshot.distributions, snapshot.environment.markers):
        by_help.setdefault(mending.removing([item.name]), []).append((item, requirement))
    for help, unmet in by_help.items():
        number = len(unmet)
        missing = sorted({requirement.partition(";")[0].strip() for _, requirement in unmet})
        yield Finding(
            code=Code.REQUIREMENT_LOST,
            severity=Severity.WARNING,
            message=f"{number} requirement{' is' if number == 1 else 's are'} not satisfied",
            distribution=reference(unmet[0][0]),
            notes=tuple(f"{item.label} requires {requirement}" for item, requirement in unmet),
            help=help or ("install what is missing", commands.install(missing)),
        )


def _duplicates(distributions: Iterable[Distribution]) -> Iterator[Finding]:
    by_name: dict[str, list[Distribution]] = {}
    for item in distributions:
        if item.owned_here:
            by_name.setdefault(item.name, []).append(item)
    for name, group in sorted(by_name.items()):
        if len(group) > 1:
            yield Finding(
                code=Code.DUPLICATE_DISTRIBUTION,
                severity=Severity.WARNING,
                message=f"`{name}` is installed {len(group)} times: {', '.join(item.version for item in group)}",
                distribution=reference(group[0]),
                paths=tuple(item.metadata_path for item in group),
                path=group[0].metadata_path,
            )


def _records(distributions: Iterable[Distribution], commands: Commands) -> Iterator[Finding]:
    for item in distributions:
        if not item.owned_here or item.conda_package is not None:
            continue
        broken = item.record.state in (RecordState.MISSING, RecordState.MALFORMED)
        if broken and item.metadata_kind is MetadataKind.DIST_INFO:
            what = "has no RECORD" if item.record.state is RecordState.MISSING else "has a RECORD that cannot be read"
            yield Finding(
                code=Code.RECORD_MISSING,
                severity=Severity.WARNING,
                message=f"`{item.name}` {item.version} {what}: which files are its own is unknown",
                distribution=reference(item),
                path=item.record.path or item.metadata_path,
                notes=item.record.problems,
                help=("install the same version over it, which brings RECORD back", commands.repair(item)),
            )
        if item.record.unsafe:
            yield Finding(
                code=Code.RECORD_UNSAFE,
                severity=Severity.WARNING,
                message=f"the RECORD of `{item.name}` {item.version} names paths that cannot be its own",
                distribution=reference(item),
                path=item.record.path,
                notes=item.record.unsafe,
            )
