"""Uninstall Python distributions without losing files or libraries that the rest of the environment needs.

The public interface is what this module names: ``scan(environment) -> Snapshot``,
``plan(snapshot, request) -> Plan``, ``execute(plan) -> Outcome``, and the types that these take and give.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# The sub-packages ``scan`` and ``execute`` bear the names of two functions below. Loading a sub-package binds its name
# here, once: loaded first, they cannot take the place of the functions later.
import_module("safe_uninstall.scan")
import_module("safe_uninstall.execute")

if TYPE_CHECKING:
    from safe_uninstall.model.environment import Environment
    from safe_uninstall.model.errors import SafeUninstallError
    from safe_uninstall.model.outcome import Outcome, OutcomeState
    from safe_uninstall.model.plan import Code, Finding, Plan, Request, Rewrite, Severity, Verdict
    from safe_uninstall.model.snapshot import Snapshot

__all__ = [
    "Code",
    "Environment",
    "Finding",
    "Outcome",
    "OutcomeState",
    "Plan",
    "Request",
    "Rewrite",
    "SafeUninstallError",
    "Severity",
    "Snapshot",
    "Verdict",
    "__version__",
    "execute",
    "plan",
    "scan",
]
__version__ = "0.1.0"

_HOMES = {
    "Environment": "environment",
    "SafeUninstallError": "errors",
    "Outcome": "outcome",
    "OutcomeState": "outcome",
    "Snapshot": "snapshot",
    **dict.fromkeys(("Code", "Finding", "Plan", "Request", "Rewrite", "Severity", "Verdict"), "plan"),
}


def __getattr__(name: str) -> Any:
    """Load a type when it is first asked for: the command must start fast (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"safe_uninstall.model.{_HOMES[name]}"), name)


def scan(
    environment: str | Environment | None = None, *, consumers_in: tuple[str, ...] = (), root: str | None = None
) -> Snapshot:
    """Read an environment; nothing in it is imported, run or changed.

    Args:
        environment: what ``-p`` takes (an interpreter, a venv directory, a prefix), an ``Environment``, or None
            for the one that the process is in.
        consumers_in: directories outside of it whose libraries may need some of the environment's; a request about
            the snapshot names the same.
        root: top of a mounted root file system that all these paths are inside of; what is planned over such a
            snapshot cannot be executed.

    Raises:
        SafeUninstallError: there is no environment there, or one of the directories is none.
    """
    from safe_uninstall.api import scan as take

    return take(environment, consumers_in=consumers_in, root=root)


def plan(snapshot: Snapshot, request: Request) -> Plan:
    """Judge a request over a snapshot; probes of the request are run, and nothing else of the environment is.

    Wheels that the request's rewrites and installations need are fetched, into a directory outside of the environment
    that goes when the process ends. Nothing is changed.

    Raises:
        SafeUninstallError: names that nothing bears, something that is no name, an accepted loss that is none, a wheel
            that cannot be had, or a probe that cannot be run.
    """
    from safe_uninstall.api import plan as judge

    return judge(snapshot, request)


def execute(plan: Plan) -> Outcome:
    """Carry out a plan as one transaction; the environment ends as planned, or as it was.

    Raises:
        SafeUninstallError: nothing was changed: the plan blocks or is stale, or the environment cannot be changed.
        KeyboardInterrupt: a signal came before anything was changed.
    """
    from safe_uninstall.api import execute as carry_out

    return carry_out(plan)
