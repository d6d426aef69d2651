"""Uninstall Python distributions without losing files or libraries that the rest of the environment needs.

The public interface is what this module names: ``scan(environment) -> Snapshot``,
``plan(snapshot, request) -> Plan``, ``execute(plan) -> Outcome``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# The sub-packages ``scan`` and ``execute`` bear the names of two functions below. Loading a sub-package binds its name
# here, once: loaded first, they cannot take the place of the functions later.
import_module("safe_uninstall.scan")
import_module("safe_uninstall.execute")

if TYPE_CHECKING:
    from safe_uninstall.model.environment import Environment
    from safe_uninstall.model.outcome import Outcome
    from safe_uninstall.model.plan import Plan, Request
    from safe_uninstall.model.snapshot import Snapshot

__all__ = ["__version__", "execute", "plan", "scan"]
__version__ = "0.1.0"


def scan(environment: str | Environment | None = None, *, consumers_in: tuple[str, ...] = ()) -> Snapshot:
    """Read an environment; nothing in it is imported, run or changed.

    Args:
        environment: what ``-p`` takes (an interpreter, a venv directory, a prefix), an ``Environment``, or None
            for the one that the process is in.
        consumers_in: directories outside of it whose libraries may need some of the environment's; a request about
            the snapshot names the same.

    Raises:
        EnvironmentNotFound: there is none there.
        UsageError: one of the directories is none.
    """
    import os

    from safe_uninstall.scan.environment import find_environment
    from safe_uninstall.scan.snapshot import scan as take

    if environment is None or isinstance(environment, str):
        environment = find_environment(environment, variables=os.environ, directory=os.getcwd())
    return take(environment, variables=os.environ, consumers_in=tuple(map(os.path.abspath, consumers_in)))


def plan(snapshot: Snapshot, request: Request) -> Plan:
    """Judge a request over a snapshot; probes of the request are run, and nothing else of the environment is.

    Raises:
        NotInstalled: names that nothing bears.
        UsageError: something that is no name, an accepted loss that is none, or a probe that cannot be run.
    """
    import os

    from safe_uninstall.analysis.plan import make_plan
    from safe_uninstall.scan.probe import run_probes

    return make_plan(snapshot, request, probes=run_probes(snapshot.environment, request, variables=os.environ))


def execute(plan: Plan) -> Outcome:
    """Carry out a plan as one transaction; the environment ends as planned, or as it was.

    Raises:
        SafeUninstallError: nothing was changed: the plan blocks or is stale, or the environment cannot be changed.
    """
    import os

    from safe_uninstall.analysis.plan import make_plan
    from safe_uninstall.execute.transaction import execute as carry_out
    from safe_uninstall.render.document import plan_document
    from safe_uninstall.scan.probe import run_probe
    from safe_uninstall.scan.snapshot import scan as take

    return carry_out(
        plan,
        document=plan_document(plan, __version__),
        rescan=lambda: take(plan.environment, variables=os.environ, consumers_in=plan.request.consumers_in),
        replan=lambda snapshot: make_plan(snapshot, plan.request, probes=plan.probes),
        prober=lambda code: run_probe(plan.environment, code, timeout=plan.request.probe_timeout, variables=os.environ),
    )
