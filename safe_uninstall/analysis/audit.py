"""Judges an environment as it stands: what is damaged, what cannot be found, and what can be done about each."""

from collections.abc import Iterable, Iterator

from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.damage import Damage, find_damage
from safe_uninstall.analysis.findings import unreadable_finding
from safe_uninstall.analysis.guards import reference
from safe_uninstall.analysis.linkage import in_words
from safe_uninstall.analysis.loads import Baseline
from safe_uninstall.analysis.metadata import unmet_requirements
from safe_uninstall.analysis.mixed_cuda import find_mixed_cuda, mixed_cuda_finding
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.repair import Repairs, choose_repairs
from safe_uninstall.analysis.unmet import Unmet, UnmetNeed, find_unmet
from safe_uninstall.model.distribution import Distribution, MetadataKind, RecordState
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.plan import Claimant, Code, Consumer, Finding, Severity
from safe_uninstall.model.snapshot import Snapshot

_FIX = ("check", "--fix")


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
    findings = [
        *damage_findings(repairs, commands),
        *_unmet_findings(owners, find_unmet(snapshot, owners, baseline), commands),
        *(mixed_cuda_finding(item) for item in find_mixed_cuda(snapshot, owners, baseline)),
        *_requirements(snapshot),
        *_duplicates(snapshot.distributions),
        *_records(snapshot.distributions, commands),
        *unreadable_finding(snapshot, frozenset()),
        *_leftovers(snapshot),
    ]
    order = tuple(Severity)
    return tuple(sorted(findings, key=lambda item: order.index(item.severity)))


def damage_findings(repairs: Repairs, commands: Commands) -> Iterator[Finding]:
    """Return a finding for each distribution that lost something it surely needs, and one for all the rest."""
    for item in repairs.restore:
        help: tuple[str, ...] = ("restore what is damaged, remove nothing", commands.ours(*_FIX))
        if item.by:
            names = [writer.name for writer in item.by]
            help = ("remove what overwrote them, and restore them", commands.ours(*names, "--restore"), *help)
        yield from _damaged(item, commands, help)
    for item in repairs.undecided:
        name = item.distribution.name
        others = [other.name for other in item.by]
        yield from _damaged(
            item,
            commands,
            (
                f"keep {name}",
                commands.ours(*others, "--restore"),
                f"keep {', '.join(others)}",
                commands.ours(name, "--restore"),
            ),
        )
    for item in repairs.harmless:
        if item.overwritten and item.by and any(_library(path) for path in item.overwritten):
            yield _overwritten(
                item, Severity.WARNING, ("nothing that is installed requires it", commands.ours(item.distribution.name))
            )
    absent = [item for item in repairs.harmless if item.missing]
    if absent:
        number = sum(len(item.missing) for item in absent)
        yield _summary(
            Code.ALREADY_MISSING,
            f"{_files(number)} of {_listed(absent)} {'is' if number == 1 else 'are'} missing: none of them a library"
            " or the top of a package",
            [path for item in absent for path in item.missing],
        )
    minor = [item for item in repairs.harmless if item.overwritten and not any(map(_library, item.overwritten))]
    if minor:
        number = sum(len(item.overwritten) for item in minor)
        yield _summary(
            Code.FILE_OVERWRITTEN,
            f"{_files(number)} of {_listed(minor)} hold{'s' if number == 1 else ''} another distribution's bytes: none"
            " of them a library or the top of a package",
            [path for item in minor for path in item.overwritten],
        )
    edited = [item for item in (*repairs.restore, *repairs.undecided, *repairs.harmless) if item.edited]
    if edited:
        number = sum(len(item.edited) for item in edited)
        yield _summary(
            Code.FILE_OVERWRITTEN,
            f"{_files(number)} of {_listed(edited)} hold{'s' if number == 1 else ''} nobody's bytes: somebody edited"
            f" {'it' if number == 1 else 'them'}",
            [path for item in edited for path in item.edited],
        )


def _damaged(item: Damage, commands: Commands, help: tuple[str, ...]) -> Iterator[Finding]:
    label = f"`{item.distribution.name}` {item.distribution.version}"
    if item.missing:
        yield Finding(
            code=Code.ALREADY_MISSING,
            severity=Severity.ERROR,
            message=f"{label} is installed, but {len(item.missing)} of its {_files(item.claims)}"
            f" {'is' if len(item.missing) == 1 else 'are'} missing",
            distribution=reference(item.distribution),
            path=item.missing[0],
            paths=item.missing,
            help=help if item.overwritten == () else ("restore what is damaged", commands.ours(*_FIX)),
        )
    if item.overwritten:
        yield _overwritten(item, Severity.ERROR, help)


def _overwritten(item: Damage, severity: Severity, help: tuple[str, ...]) -> Finding:
    number = len(item.overwritten)
    writers = ", ".join(writer.label for writer in item.by)
    return Finding(
        code=Code.FILE_OVERWRITTEN,
        severity=severity,
        message=f"{_files(number)} of `{item.distribution.name}` {item.distribution.version}"
        f" hold{'s' if number == 1 else ''} the bytes of {writers}",
        distribution=reference(item.distribution),
        path=item.overwritten[0],
        paths=item.overwritten,
        claimants=tuple(Claimant(distribution=reference(writer)) for writer in item.by),
        help=help,
    )


def _summary(code: Code, message: str, paths: Iterable[str]) -> Finding:
    ordered = tuple(sorted(set(paths)))
    return Finding(code=code, severity=Severity.NOTE, message=message, path=ordered[0], paths=ordered)


def _unmet_findings(owners: Owners, unmet: Unmet, commands: Commands) -> Iterator[Finding]:
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
            help=("restore what is damaged, remove nothing", commands.ours(*_FIX)),
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
            message=f"{_files(len(ordered))} need{'s' if len(ordered) == 1 else ''} libraries that nothing here ever"
            f" provided: {names}{f' and {more} more' if more > 0 else ''}",
            consumers=tuple(by_path[path] for path in ordered),
            notes=(f"{_files(len(importing))} of these are extension modules",) if importing else (),
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


def _requirements(snapshot: Snapshot) -> Iterator[Finding]:
    own = [item for item in snapshot.distributions if item.owned_here]
    unmet = unmet_requirements(own, snapshot.distributions, snapshot.environment.markers)
    if unmet:
        number = len(unmet)
        yield Finding(
            code=Code.REQUIREMENT_LOST,
            severity=Severity.WARNING,
            message=f"{number} requirement{' is' if number == 1 else 's are'} not satisfied",
            distribution=reference(unmet[0][0]),
            notes=tuple(f"{item.label} requires {requirement}" for item, requirement in unmet),
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


def _leftovers(snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.leftovers:
        number = len(snapshot.leftovers)
        yield Finding(
            code=Code.UNOWNED_LEFT,
            severity=Severity.NOTE,
            message=f"{number} remain{'' if number == 1 else 's'} of a pip run that failed",
            path=snapshot.leftovers[0],
            paths=snapshot.leftovers,
            help=("delete what begins with ~ yourself: nothing reads it",),
        )


def _listed(items: Iterable[Damage]) -> str:
    names = [item.distribution.name for item in items]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _library(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.endswith(".so") or ".so." in name


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"
