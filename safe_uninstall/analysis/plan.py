"""From a snapshot and a request to a plan: one final state for all names, judged once."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from safe_uninstall.analysis.acceptance import Acceptance
from safe_uninstall.analysis.actions import make_actions
from safe_uninstall.analysis.bindings import binding_changes
from safe_uninstall.analysis.change import Change, ChangeJudge, Judgement
from safe_uninstall.analysis.commands import Commands, preferred_installer
from safe_uninstall.analysis.findings import (
    collision_findings,
    library_findings,
    ownership_findings,
    requirement_findings,
    unknown_claims_findings,
    unowned_finding,
    unreadable_finding,
)
from safe_uninstall.analysis.fingerprint import fingerprint, fingerprint_parts
from safe_uninstall.analysis.guards import judge_guards, reference
from safe_uninstall.analysis.in_use import in_use_findings, unseen_processes
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.requested import Asked, ask
from safe_uninstall.analysis.unknown_claims import find_unknown_claims
from safe_uninstall.analysis.unowned import find_unowned
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import UsageError, WheelsUnavailable
from safe_uninstall.model.history import History
from safe_uninstall.model.plan import Alternative, Code, Finding, Plan, Prediction, Request, Rewrite, Severity, Verdict
from safe_uninstall.model.probe import ProbeRun
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import Wheel, WheelSource, WheelUnavailable

_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
_CODES = tuple(Code)

_LOSSES = frozenset({Code.LIBRARY_LOST, Code.SYMBOLS_LOST, Code.FILE_LOST, Code.REQUIREMENT_LOST})
"""Errors that a rewrite may avoid; any other refuses the request as such."""


def make_plan(
    snapshot: Snapshot,
    request: Request,
    wheels: WheelSource | None = None,
    *,
    probes: tuple[ProbeRun, ...] = (),
    history: History | None = None,
) -> Plan:
    """Judge a request.

    Args:
        snapshot: the environment as it is.
        request: what the user asked for.
        wheels: where wheels come from; asked only if the request has rewrites or installations that need one.
        probes: how the probes of the request ended in the environment as it is.
        history: what was done to the environment; needed to undo some of it.

    Returns:
        A plan with verdict ``block`` if any finding is an error that was not accepted; else ``allow`` when exactly
        what was asked for is done, ``rewrite`` when something else is done so that nothing is lost.

    Raises:
        NotInstalled: names that nothing bears.
        UsageError: something that is no name, an accepted loss that is none, no source of wheels where one is needed.
        WheelsUnavailable: something to install cannot be had.
    """
    planner = _Planner.of(snapshot, request, wheels, probes=probes, history=history)
    decision = planner.decide()
    judgement = decision.judgement
    notices = () if decision.verdict is Verdict.BLOCK else planner.notices(judgement)
    released = {path: kept for path, kept in judgement.ownership.released.items() if path not in judgement.written}
    parts = fingerprint_parts(snapshot, deleted=judgement.ownership.deleted, released=judgement.ownership.released)
    change = judgement.change
    plan = Plan(
        environment=snapshot.environment,
        fingerprint=fingerprint(parts),
        fingerprint_parts=parts,
        installer=planner.installer,
        request=request,
        verdict=decision.verdict,
        actions=make_actions(
            snapshot,
            judgement,
            kept=decision.kept,
            cascaded=decision.cascaded,
            substituted=decision.substituted,
        ),
        findings=tuple(sorted((*decision.findings, *notices), key=_order)),
        alternatives=decision.alternatives,
        prediction=Prediction(
            removed=frozenset(item.metadata_path for item in change.leaving),
            deleted=judgement.ownership.deleted - judgement.written.keys(),
            released=frozenset(released),
            written=judgement.written,
            restored=frozenset(item.metadata_path for item, _ in change.restored),
            installed=frozenset(wheel.metadata_path for wheel in change.installed),
        ),
        bindings=binding_changes(judgement.linkage),
        wheels=change.wheels,
        probes=probes,
        unseen_processes=unseen_processes(
            snapshot,
            deleted=judgement.ownership.deleted,
            written=judgement.written,
            refuse=request.refuse_in_use,
        ),
    )
    return decision.complete(plan)


def removable(
    snapshot: Snapshot, names: tuple[str, ...], *, accepted: tuple[str, ...] = (), use_library_path: bool = False
) -> bool:
    """Return whether distributions can be removed, and what they overwrote be restored, without a loss.

    Args:
        snapshot: the environment.
        names: normalised.
        accepted: whose loss would be accepted; accepting what is not lost makes it False.
        use_library_path: whether LD_LIBRARY_PATH binds.
    """
    from safe_uninstall.analysis.presumed import PresumedWheels

    request = Request(
        names=names, rewrites=(Rewrite.RESTORE,), accepted_losses=accepted, use_library_path=use_library_path
    )
    try:
        return _Planner.of(snapshot, request, PresumedWheels(snapshot)).decide().verdict is not Verdict.BLOCK
    except (UsageError, WheelsUnavailable):
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    verdict: Verdict
    judgement: Judgement
    findings: Iterable[Finding]
    kept: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cascaded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    substituted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    alternatives: tuple[Alternative, ...] = ()
    complete: Callable[[Plan], Plan] = lambda plan: plan
    """Says in the plan what no change says."""


@dataclass(slots=True)
class _Planner:
    _snapshot: Snapshot
    _request: Request
    _commands: Commands
    _owners: Owners
    _judge: ChangeJudge
    _wheels: WheelSource | None
    _acceptance: Acceptance
    _history: History | None
    installer: InstallerKind
    _refused: dict[str, frozenset[Code]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        request: Request,
        wheels: WheelSource | None,
        *,
        probes: tuple[ProbeRun, ...] = (),
        history: History | None = None,
    ) -> "_Planner":
        """Return one for a request; see ``make_plan``."""
        installer = request.installer or preferred_installer(snapshot.environment, request.programs)
        commands = Commands(snapshot, installer, python=request.python, programs=request.programs)
        owners = Owners(snapshot.distributions)
        judge = ChangeJudge(snapshot, owners, use_library_path=request.use_library_path, probes=probes)
        acceptance = Acceptance(names=request.accepted_losses, owners=owners, commands=commands)
        return cls(snapshot, request, commands, owners, judge, wheels, acceptance, history, installer)

    def decide(self) -> _Decision:
        """Judge the request as it stands; if it loses something, look for a rewrite that does not."""
        asked = ask(self._snapshot, self._request, self._wheels, self._commands)
        if self._request.repair:
            return self._repaired()
        if self._request.undo is not None:
            return self._undone(self._request.undo)
        judgement = self._judge.judge(asked.change)
        findings = self._findings(judgement)
        errors = {item.code for item in findings if item.severity is Severity.ERROR}
        if not errors:
            decision = _Decision(verdict=Verdict.ALLOW, judgement=judgement, findings=findings)
        elif errors & _LOSSES and errors <= _LOSSES | {Code.IN_USE}:
            # A rewrite may keep what is in use, too.
            decision = self._rewritten(asked, judgement, findings)
        else:
            decision = _Decision(verdict=Verdict.BLOCK, judgement=judgement, findings=findings)
        # What a rewrite avoids could be accepted, and so could what only a rewrite would lose.
        notices = self.notices(decision.judgement) if self._request.accepted_losses else ()
        self._acceptance.check((*findings, *decision.findings, *notices))
        return decision

    def notices(self, judgement: Judgement) -> tuple[Finding, ...]:
        """Return what is to be told of a change beside what it loses for certain."""
        ownership = judgement.ownership
        objects = self._snapshot.objects.keys()
        if (
            objects.isdisjoint(ownership.deleted)
            and objects.isdisjoint(ownership.released)
            and not any(wheel.objects for wheel in judgement.change.wheels)
        ):
            return ()
        from safe_uninstall.analysis.notices import notices

        return tuple(notices(self._snapshot, self._owners, self._judge, judgement, self._commands))

    def _repaired(self) -> _Decision:
        """Restore what is damaged and can be restored without a choice that only the user can make."""
        from safe_uninstall.analysis.damage import find_damage
        from safe_uninstall.analysis.damaged import Mending, damage_findings
        from safe_uninstall.analysis.repair import choose_repairs

        repairs = choose_repairs(self._snapshot, find_damage(self._snapshot))
        judgement = self._judge.judge(
            Change(
                leaving=(),
                restored=self._restored(item.distribution for item in repairs.restore),
                yielding=frozenset(item.metadata_path for item in repairs.yielding),
            )
        )
        left = replace(repairs, restore=())
        mending = Mending(left, self._commands, partial(removable, self._snapshot))
        findings = [
            *self._findings(judgement),
            *(replace(item, severity=Severity.WARNING) for item in damage_findings(left, mending)),
            *(_gives_way(item, item.name in repairs.required, self._commands) for item in repairs.yielding),
        ]
        verdict = Verdict.BLOCK if any(item.severity is Severity.ERROR for item in findings) else Verdict.REWRITE
        return _Decision(verdict=verdict, judgement=judgement, findings=findings)

    def _undone(self, identifier: str) -> _Decision:
        """Bring back what a transaction took, and take away what it brought."""
        from safe_uninstall.analysis.undoing import plan_undo

        if self._history is None:
            raise UsageError("nothing can be undone without a history")
        undoing = plan_undo(self._snapshot, self._owners, self._commands, self._history, identifier, self._restored)
        judgement = self._judge.judge(undoing.change)
        findings = [*self._acceptance.apply(undoing.findings), *undoing.softened(self._findings(judgement))]
        self._acceptance.check(findings)
        verdict = Verdict.BLOCK if any(item.severity is Severity.ERROR for item in findings) else Verdict.ALLOW
        return _Decision(verdict=verdict, judgement=judgement, findings=findings, complete=undoing.complete)

    def _restored(self, distributions: Iterable[Distribution]) -> tuple[tuple[Distribution, Wheel], ...]:
        """Return distributions with their wheels; raise WheelsUnavailable if one has none."""
        restored: list[tuple[Distribution, Wheel]] = []
        missing: list[WheelUnavailable] = []
        for item in distributions:
            if self._wheels is None:
                raise UsageError("nothing can be restored without a source of wheels")
            found = self._wheels.restore(item)
            if isinstance(found, Wheel):
                restored.append((item, found))
            else:
                missing.append(found)
        if missing:
            raise WheelsUnavailable(tuple(missing))
        return tuple(restored)

    def _rewritten(self, asked: Asked, judgement: Judgement, findings: list[Finding]) -> _Decision:
        # What rewrites need is loaded only where something would be lost.
        from safe_uninstall.analysis.alternatives import find_alternatives
        from safe_uninstall.analysis.nearest import Ground, Resolution
        from safe_uninstall.analysis.presumed import NoWheels
        from safe_uninstall.analysis.refused import explain_refusal
        from safe_uninstall.analysis.rewriting import rewrite

        ground = Ground(
            snapshot=self._snapshot,
            owners=self._owners,
            judge=self._judge,
            remaining=self._acceptance.remaining,
            refusals=self._refusals,
            objections=lambda item: tuple(
                found.message for found in self._findings(item) if found.severity is Severity.ERROR
            ),
        )
        rewrites = self._request.rewrites
        found = rewrite(ground, asked, rewrites=frozenset(rewrites), wheels=self._wheels or NoWheels())
        if isinstance(found, Resolution):
            return _Decision(
                verdict=Verdict.REWRITE,
                judgement=found.judgement,
                findings=self._findings(found.judgement),
                kept=found.kept,
                cascaded=found.cascaded,
                substituted=found.substituted,
            )
        alternatives = find_alternatives(ground, self._request, asked, self._commands, found.wheels)
        if alternatives:
            # Whole rewrites say what to do better than the help of single losses.
            findings = [replace(item, help=()) if item.code in _LOSSES else item for item in findings]
        return _Decision(
            verdict=Verdict.BLOCK,
            judgement=judgement,
            findings=explain_refusal(findings, rewrites, found),
            alternatives=alternatives,
        )

    def _refusals(self, distribution: Distribution) -> frozenset[Code]:
        path = distribution.metadata_path
        if path not in self._refused:
            found = judge_guards(self._snapshot, self._request, (distribution,), self._commands)
            self._refused[path] = frozenset(item.code for item in found if item.severity is Severity.ERROR)
        return self._refused[path]

    def _findings(self, judgement: Judgement) -> list[Finding]:
        snapshot, commands, ownership = self._snapshot, self._commands, judgement.ownership
        leaving = judgement.change.leaving
        found = [
            *judge_guards(snapshot, self._request, leaving, commands),
            *library_findings(judgement.linkage, self._owners, ownership, leaving, commands),
            *ownership_findings(ownership, leaving, commands),
            *collision_findings(judgement.collisions),
            *requirement_findings(judgement.requirements, judgement.unmet, commands),
            *unknown_claims_findings(find_unknown_claims(snapshot, ownership, leaving), commands),
            *unreadable_finding(snapshot, ownership.deleted),
            *(unowned_finding(item) for item in find_unowned(snapshot, self._owners, ownership, leaving)),
            *in_use_findings(
                snapshot,
                deleted=ownership.deleted,
                written=judgement.written,
                refuse=self._request.refuse_in_use,
            ),
        ]
        return self._acceptance.apply(found)


def _gives_way(distribution: Distribution, required: bool, commands: Commands) -> Finding:
    """Say whose bytes a repair takes, and how to be rid of what is then a leftover."""
    why = "" if required else ", and nobody requires it"
    return Finding(
        code=Code.FILE_OVERWRITTEN,
        severity=Severity.WARNING,
        message=f"`{distribution.name}` {distribution.version} gives way where it overwrote what is restored{why}",
        distribution=reference(distribution),
        path=distribution.metadata_path,
        help=() if required else ("remove it afterwards", commands.ours(distribution.name)),
    )


def _order(finding: Finding) -> tuple[int, int, str, str, str]:
    return (
        _SEVERITIES.index(finding.severity),
        _CODES.index(finding.code),
        finding.distribution.name if finding.distribution is not None else "",
        finding.path or "",
        finding.message,
    )
