"""Turns judgements into findings: the sentences, the evidence and the help."""

from collections.abc import Iterable

from safe_uninstall.analysis.change import Collision
from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.guards import reference
from safe_uninstall.analysis.losses import LibraryLoss, LinkageJudgement, ProviderChange
from safe_uninstall.analysis.metadata import LostRequirement
from safe_uninstall.analysis.ownership import Overwritten, Owners, Ownership
from safe_uninstall.analysis.unknown_claims import UnknownClaims
from safe_uninstall.analysis.unowned import Unowned
from safe_uninstall.model.distribution import Distribution, RecordState
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.plan import Claimant, Code, Finding, Severity
from safe_uninstall.model.snapshot import Snapshot

_SYMBOLS_SHOWN = 3


def library_findings(
    judgement: LinkageJudgement,
    owners: Owners,
    ownership: Ownership,
    leaving: tuple[Distribution, ...],
    commands: Commands,
) -> Iterable[Finding]:
    """Return a finding for every needed name that is no longer met, and for every one met by another file."""
    overwritten = {item.survivor.metadata_path: item for item in ownership.overwritten}
    gone = {distribution.metadata_path: distribution for distribution in leaving}
    for loss in judgement.losses:
        yield _library_lost(loss, owners, overwritten, gone, commands)
    for change in judgement.changes:
        yield _provider_changed(change)


def _library_lost(
    loss: LibraryLoss,
    owners: Owners,
    overwritten: dict[str, Overwritten],
    gone: dict[str, Distribution],
    commands: Commands,
) -> Finding:
    claimed = owners.of(loss.provider)
    remover = next((item for item in claimed if item.metadata_path in gone), None)
    survivors = [item for item in claimed if item.metadata_path not in gone]
    who = "this" if remover is None else f"`{remover.name}` {remover.version}"
    blocking = loss.blocks
    damaged = tuple(item for item in survivors if item.metadata_path in overwritten)
    help: list[str] = []
    if damaged:
        labels = ", ".join(item.label for item in damaged)
        help += [f"put the files of {labels} back first, then run again", commands.reinstall(damaged)]
    elif loss.strength is Strength.OBSERVED:
        help.append("keep what the probe needs, or leave that probe out")
    elif blocking:
        consumers = sorted({item.distribution.name for item in loss.consumers if item.distribution is not None})
        if consumers:
            names = sorted({item.name for item in gone.values()})
            help += [
                "remove what needs it too",
                commands.ours(*names, *(item for item in consumers if item not in names)),
            ]
    return Finding(
        code=Code.LIBRARY_LOST if blocking else Code.DLOPEN_LOST,
        severity=Severity.ERROR if blocking else Severity.WARNING,
        message=f"removing {who} leaves {loss.name} without a provider",
        distribution=None if remover is None else reference(remover),
        path=loss.provider or None,
        soname=loss.name,
        consumers=loss.consumers,
        claimants=tuple(
            Claimant(
                distribution=reference(item),
                overwritten=len(overwritten[item.metadata_path].paths) if item.metadata_path in overwritten else 0,
            )
            for item in survivors
        ),
        help=tuple(help),
    )


def _provider_changed(change: ProviderChange) -> Finding:
    lost = bool(change.missing_versions or change.missing_symbols)
    consumer = change.consumer.path.rpartition("/")[2]
    notes = [f"found before as {change.before}", f"found then as {change.after}"]
    missing = change.missing_versions or change.missing_symbols
    if missing:
        shown = ", ".join(missing[:_SYMBOLS_SHOWN])
        more = len(missing) - _SYMBOLS_SHOWN
        what = "symbol versions" if change.missing_versions else "symbols"
        notes.append(f"missing {what}: {shown}" + (f" and {more} more" if more > 0 else ""))
    return Finding(
        code=Code.SYMBOLS_LOST if lost else Code.PROVIDER_CHANGED,
        severity=Severity.ERROR if lost else Severity.NOTE,
        message=(
            f"{consumer} would load another {change.name}, which lacks what it needs"
            if lost
            else f"{consumer} would load another {change.name}"
        ),
        distribution=change.consumer.distribution,
        path=change.before,
        soname=change.name,
        consumers=(change.consumer,),
        paths=(change.after,),
        notes=tuple(notes),
    )


def ownership_findings(
    ownership: Ownership, leaving: tuple[Distribution, ...], commands: Commands
) -> Iterable[Finding]:
    """Return findings about survivors that lose files, edited files, and claims that were gone before."""
    for item in ownership.overwritten:
        survivor = item.survivor
        writers = ", ".join(writer.label for writer in item.by)
        yield Finding(
            code=Code.FILE_LOST,
            severity=Severity.ERROR,
            message=(
                f"`{survivor.name}` {survivor.version} would lose {_files(len(item.paths))} that {writers} overwrote"
            ),
            distribution=reference(survivor),
            path=item.paths[0],
            paths=item.paths,
            claimants=(Claimant(distribution=reference(survivor), overwritten=len(item.paths)),),
            help=(f"put the files of {survivor.label} back first, then run again", commands.reinstall((survivor,))),
        )
    if ownership.edited:
        yield Finding(
            code=Code.FILE_OVERWRITTEN,
            severity=Severity.WARNING,
            message=(
                "1 file that stays holds nobody's bytes: somebody edited it"
                if len(ownership.edited) == 1
                else f"{len(ownership.edited)} files that stay hold nobody's bytes: somebody edited them"
            ),
            path=ownership.edited[0],
            paths=ownership.edited,
        )
    for item in ownership.damaged:
        writers = ", ".join(writer.label for writer in item.by)
        yield Finding(
            code=Code.FILE_OVERWRITTEN,
            severity=Severity.NOTE,
            message=(
                f"{_files(len(item.paths))} of `{item.survivor.name}` {item.survivor.version}"
                f" already hold{'s' if len(item.paths) == 1 else ''} the bytes of {writers}"
            ),
            distribution=reference(item.survivor),
            path=item.paths[0],
            paths=item.paths,
        )
    for distribution in leaving:
        absent = ownership.missing.get(distribution.metadata_path, ())
        if absent:
            yield Finding(
                code=Code.ALREADY_MISSING,
                severity=Severity.NOTE,
                message=(
                    f"{_files(len(absent))} of `{distribution.name}` {distribution.version} are missing already"
                    if len(absent) > 1
                    else f"1 file of `{distribution.name}` {distribution.version} is missing already"
                ),
                distribution=reference(distribution),
                path=absent[0],
                paths=absent,
            )


def collision_findings(collisions: Iterable[Collision]) -> Iterable[Finding]:
    """Return a finding for every survivor whose files something that is installed would overwrite."""
    for item in collisions:
        yield Finding(
            code=Code.FILE_LOST,
            severity=Severity.ERROR,
            message=(
                f"installing {item.wheel.name} {item.wheel.version} would overwrite {_files(len(item.paths))}"
                f" of `{item.survivor.name}` {item.survivor.version}"
            ),
            distribution=reference(item.survivor),
            path=item.paths[0],
            paths=item.paths,
            claimants=(Claimant(distribution=reference(item.survivor), overwritten=len(item.paths)),),
        )


def requirement_findings(
    lost: tuple[LostRequirement, ...], unmet: tuple[tuple[Distribution, str], ...], commands: Commands
) -> Iterable[Finding]:
    """Return a finding for every survivor's requirement that is no longer satisfied, and for those of newcomers."""
    for comer, requirement in unmet:
        yield Finding(
            code=Code.REQUIREMENT_LOST,
            severity=Severity.ERROR,
            message=f"`{comer.name}` {comer.version} requires {requirement}, which would not be installed",
            distribution=reference(comer),
            help=(f"install it too: add --install '{requirement}'",),
        )
    going = sorted({item.by.name for item in lost})
    for item in lost:
        dependents = sorted({other.dependent.name for other in lost})
        yield Finding(
            code=Code.REQUIREMENT_LOST,
            severity=Severity.ERROR,
            message=(
                f"`{item.dependent.name}` {item.dependent.version} requires {item.requirement},"
                " which would no longer be installed"
            ),
            distribution=reference(item.dependent),
            lost=reference(item.by),
            help=("remove it too", commands.ours(*going, *dependents)),
        )


def unknown_claims_findings(found: Iterable[UnknownClaims], commands: Commands) -> Iterable[Finding]:
    """Return a finding for every survivor without a list of its files that may own what goes."""
    for item in found:
        survivor = item.survivor
        state = "has no RECORD" if survivor.record.state is RecordState.MISSING else "has a RECORD that cannot be read"
        yield Finding(
            code=Code.RECORD_MISSING,
            severity=Severity.ERROR,
            message=f"`{survivor.name}` {survivor.version} stays and {state}: {_files(len(item.paths))} that would be"
            " deleted may be its own",
            distribution=reference(survivor),
            path=item.paths[0],
            paths=item.paths,
            notes=survivor.record.problems,
            help=(
                "install the same version over it, which brings RECORD back, then run again",
                commands.repair(survivor),
            ),
        )


def unreadable_finding(snapshot: Snapshot, deleted: frozenset[str]) -> Iterable[Finding]:
    """Say which surviving ELF files could not be read: what they need is unknown, and not nothing."""
    paths = tuple(sorted(path for path in snapshot.unreadable if path not in deleted))
    if not paths:
        return
    library_leaves = any(path in snapshot.objects for path in deleted)
    yield Finding(
        code=Code.UNREADABLE_ELF,
        severity=Severity.WARNING if library_leaves else Severity.NOTE,
        message=f"{len(paths)} ELF {'file' if len(paths) == 1 else 'files'} cannot be read: what they need is unknown",
        path=paths[0],
        paths=paths,
        notes=tuple(dict.fromkeys(f"{path}: {snapshot.unreadable[path]}" for path in paths)),
    )


def unowned_finding(unowned: Unowned) -> Finding:
    """Say which files that nobody owns will be left beside a distribution that goes."""
    distribution, paths = unowned.distribution, unowned.paths
    return Finding(
        code=Code.UNOWNED_LEFT,
        severity=Severity.WARNING,
        message=(
            f"{_files(len(paths))} beside those of `{distribution.name}` {distribution.version} belong"
            f"{'s' if len(paths) == 1 else ''} to nobody and will be left"
        ),
        distribution=reference(distribution),
        path=paths[0],
        paths=paths,
        notes=tuple(f"{path} will lead nowhere" for path in unowned.dangling),
        help=("delete what you do not need yourself: nobody else will",),
    )


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"
