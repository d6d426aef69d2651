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
    from safe_uninstall.model.graph import Graph
    from safe_uninstall.model.outcome import Outcome
    from safe_uninstall.model.plan import Action, Alternative, Consumer, DistributionRef, Finding, Plan

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
        },
        "verdict": plan.verdict.value,
        "actions": [_action(action, relative) for action in plan.actions],
        "findings": [_finding(finding, relative) for finding in plan.findings],
        "alternatives": [_alternative(item, relative) for item in plan.alternatives],
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


def check_document(findings: Iterable[Finding], environment: Environment, tool_version: str) -> Document:
    """Return what an audit found; paths are relative to the prefix."""
    relative = relative_to_prefix(environment)
    return {
        **_envelope("check", tool_version),
        "environment": environment_document(environment),
        "findings": [_finding(finding, relative) for finding in findings],
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
    if installer is not None:
        document["installer"] = installer
    if fingerprint is not None:
        document["fingerprint"] = fingerprint
    return document


def _envelope(kind: str, tool_version: str) -> Document:
    return {"format": f"safe-uninstall/{kind}", "format_version": FORMAT_VERSION, "tool_version": tool_version}


def _reference(reference: DistributionRef) -> Document:
    return {"name": reference.name, "version": reference.version}


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


def _alternative(alternative: Alternative, relative: Relative) -> Document:
    return {
        "rewrites": [rewrite.value for rewrite in alternative.rewrites],
        "command": alternative.command,
        "summary": alternative.summary,
        "actions": [_action(action, relative) for action in alternative.actions],
    }
