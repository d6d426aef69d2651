"""Plans, outcomes, graphs and errors as JSON documents (design of format version 1)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from safe_uninstall.model.linkage import How
from safe_uninstall.render.paths import Relative, relative_to_prefix

if TYPE_CHECKING:
    from safe_uninstall.model.environment import Environment
    from safe_uninstall.model.errors import SafeUninstallError
    from safe_uninstall.model.graph import DistributionNode, Graph
    from safe_uninstall.model.history import Pin, Transaction
    from safe_uninstall.model.outcome import Outcome
    from safe_uninstall.model.plan import Action, Alternative, Consumer, DistributionRef, Finding, Plan
    from safe_uninstall.model.probe import ProbeRun

FORMAT_VERSION = 1

Document = dict[str, Any]


def to_json(document: Mapping[str, Any]) -> str:
    """Return a document as text with a stable order; characters that are no UTF-8 stay escaped."""
    return json.dumps(document, indent=2, ensure_ascii=True)


def plan_document(plan: Plan, tool_version: str) -> Document:
    """Return a plan as a document; paths are relative to the prefix."""
    relative = relative_to_prefix(plan.environment)
    return {
        **_envelope("plan", tool_version),
        "environment": environment_document(
            plan.environment, installer=plan.installer.value, fingerprint=plan.fingerprint
        ),
        "request": {
            "names": list(plan.request.names),
            "rewrites": [rewrite.value for rewrite in plan.request.rewrites],
            "install": list(plan.request.install),
            "accepted_losses": list(plan.request.accepted_losses),
            "repair": plan.request.repair,
            "undo": plan.request.undo,
            "use_library_path": plan.request.use_library_path,
            "consumers_in": list(plan.request.consumers_in),
            "break_system_packages": plan.request.break_system_packages,
            "installer": None if plan.request.installer is None else plan.request.installer.value,
            "refuse_in_use": plan.request.refuse_in_use,
            "probes": list(plan.request.probes),
            "probe_timeout": plan.request.probe_timeout,
        },
        "verdict": plan.verdict.value,
        "actions": [_action(action, relative) for action in plan.actions],
        "findings": [_finding(finding, relative) for finding in plan.findings],
        "alternatives": [_alternative(item, relative) for item in plan.alternatives],
        "bindings": [
            {
                "consumer": _consumer(item.consumer, relative),
                "name": item.name,
                "before": relative(item.before),
                "after": None if item.after is None else relative(item.after),
            }
            for item in plan.bindings
        ],
        "wheels": [
            {"name": wheel.name, "version": wheel.version, "sha256": wheel.sha256, "source": wheel.source}
            for wheel in plan.wheels
        ],
        "fingerprint_parts": dict(plan.fingerprint_parts),
        "probes": [_probe(run, relative) for run in plan.probes],
        "unseen_processes": plan.unseen_processes,
    }


def outcome_document(outcome: Outcome, tool_version: str) -> Document:
    """Return how a run ended, with the plan it carried out."""
    plan = plan_document(outcome.plan, tool_version)
    return {
        **_envelope("outcome", tool_version),
        "state": outcome.state.value,
        "reason": outcome.reason,
        "mismatches": list(outcome.mismatches),
        "stash": outcome.stash,
        "transaction": outcome.transaction,
        "bytes_freed": outcome.bytes_freed,
        "probes": [_probe(run, relative_to_prefix(outcome.plan.environment)) for run in outcome.probes],
        "plan": {key: value for key, value in plan.items() if key not in ("format", "format_version", "tool_version")},
    }


def error_document(error: SafeUninstallError, tool_version: str) -> Document:
    """Return an error as a document."""
    return {
        **_envelope("error", tool_version),
        "error": {
            "code": error.slug,
            "message": error.message,
            "help": list(error.help),
            "names": list(getattr(error, "names", ())),
            "near": {name: list(near) for name, near in getattr(error, "near", {}).items()},
        },
        "exit_status": int(error.exit_status),
    }


def graph_document(graph: Graph, environment: Environment, tool_version: str) -> Document:
    """Return the provides/needs graph; providers outside the prefix keep their absolute path."""
    relative = relative_to_prefix(environment)
    return {
        **_envelope("graph", tool_version),
        "environment": environment_document(environment),
        "objects": [
            {
                "path": relative(node.object.path),
                "distribution": node.distribution,
                "soname": node.object.soname,
                "machine": node.object.abi.machine,
                "bits": node.object.abi.bits,
                "needed": [
                    {
                        "name": need.name,
                        "provider": None if need.provider is None else relative(need.provider),
                        "how": (How.MISSING if need.provider is None else need.how).value,
                    }
                    for need in node.needs
                ],
            }
            for node in graph.nodes
        ],
    }


def distributions_document(nodes: Iterable[DistributionNode], environment: Environment, tool_version: str) -> Document:
    """Return the graph between distributions: its ``objects`` are left out."""
    return {
        **_envelope("graph", tool_version),
        "environment": environment_document(environment),
        "distributions": [
            {
                "name": node.name,
                "needed": [
                    {"distribution": need.provider, "name": need.name, "files": need.files} for need in node.needs
                ],
                "missing": list(node.missing),
            }
            for node in nodes
        ],
    }


def check_document(findings: Iterable[Finding], environment: Environment, tool_version: str) -> Document:
    """Return what an audit found; paths are relative to the prefix."""
    relative = relative_to_prefix(environment)
    return {
        **_envelope("check", tool_version),
        "environment": environment_document(environment),
        "findings": [_finding(finding, relative) for finding in findings],
    }


def history_document(
    transactions: Iterable[Transaction],
    problems: Iterable[str],
    environment: Environment,
    tool_version: str,
    *,
    purged: tuple[Iterable[str], int] | None = None,
) -> Document:
    """Return what was done to an environment.

    Args:
        transactions: newest first.
        problems: which receipts cannot be read, and which backups not deleted, a sentence each.
        environment: what they were done to.
        tool_version: of this program.
        purged: transactions whose backups were deleted, and how many bytes that freed; None where nobody asked.
    """
    return {
        **_envelope("history", tool_version),
        "environment": environment_document(environment),
        "transactions": [_transaction(item) for item in transactions],
        "problems": list(problems),
        "purged": None if purged is None else {"transactions": list(purged[0]), "bytes_freed": purged[1]},
    }


def environment_document(
    environment: Environment, *, installer: str | None = None, fingerprint: str | None = None
) -> Document:
    """Return where an environment is and what it is."""
    document: Document = {
        "prefix": environment.prefix,
        "python_version": environment.python_version,
        "site_packages": relative_to_prefix(environment).each(environment.site_packages),
        "kind": environment.kind.value,
    }
    if environment.is_mounted:
        document["root"] = environment.root
    if installer is not None:
        document["installer"] = installer
    if fingerprint is not None:
        document["fingerprint"] = fingerprint
    return document


def _envelope(kind: str, tool_version: str) -> Document:
    return {"format": f"safe-uninstall/{kind}", "format_version": FORMAT_VERSION, "tool_version": tool_version}


def _reference(reference: DistributionRef) -> Document:
    return {"name": reference.name, "version": reference.version}


def _transaction(transaction: Transaction) -> Document:
    receipt = transaction.receipt
    return {
        "id": receipt.identifier,
        "time": receipt.time,
        "tool_version": receipt.tool_version,
        "state": transaction.state.value,
        "undoes": receipt.undoes,
        "undone_by": transaction.undone_by,
        "removed": [{"name": item.distribution.name, "version": item.distribution.version} for item in receipt.removed],
        "restored": [_pin(item) for item in receipt.restored],
        "installed": [_pin(item) for item in receipt.installed],
        "backup": None if transaction.backup_bytes is None else {"bytes": transaction.backup_bytes},
    }


def _pin(pin: Pin) -> Document:
    return {"name": pin.name, "version": pin.version}


def _action(action: Action, relative: Relative) -> Document:
    return {
        "kind": action.kind.value,
        "distribution": _reference(action.distribution),
        "requested": action.requested,
        "reason": action.reason,
        "paths": relative.each(action.paths),
        "bytes": action.bytes,
    }


def _finding(finding: Finding, relative: Relative) -> Document:
    return {
        "code": finding.code.value,
        "severity": finding.severity.value,
        "message": finding.message,
        "distribution": None if finding.distribution is None else finding.distribution.name,
        "path": None if finding.path is None else relative(finding.path),
        "soname": finding.soname,
        "consumers": [_consumer(consumer, relative) for consumer in finding.consumers],
        "claimants": [
            {**_reference(claimant.distribution), "overwritten": claimant.overwritten} for claimant in finding.claimants
        ],
        "paths": relative.each(finding.paths),
        "uses": [
            {
                "pid": use.pid,
                "command": use.command,
                "user": use.user,
                "path": relative(use.path),
                "how": use.how.value,
            }
            for use in finding.uses
        ],
        "notes": [relative.in_text(note) for note in finding.notes],
        "help": list(finding.help),
        "accepted": finding.accepted,
    }


def _consumer(consumer: Consumer, relative: Relative) -> Document:
    return {
        "distribution": None if consumer.distribution is None else consumer.distribution.name,
        "path": relative(consumer.path),
        "strength": consumer.strength.value,
        "how": consumer.how,
        "searched": relative.each(consumer.searched),
        "context": relative.each(consumer.context),
    }


def _probe(run: ProbeRun, relative: Relative) -> Document:
    return {
        "code": run.code,
        "passed": run.passed,
        "failure": run.failure,
        "timed_out": run.timed_out,
        "output": run.output,
        "mapped": None if run.mapped is None else relative.each(run.mapped),
    }


def _alternative(alternative: Alternative, relative: Relative) -> Document:
    return {
        "rewrites": [rewrite.value for rewrite in alternative.rewrites],
        "command": alternative.command,
        "summary": alternative.summary,
        "actions": [_action(action, relative) for action in alternative.actions],
    }
