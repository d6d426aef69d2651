"""The public functions of the package, wired as the commands are: see ``safe_uninstall`` for what they promise."""

from __future__ import annotations

import atexit
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from safe_uninstall import __version__
from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.cli.wheels import LazyWheels, repeated
from safe_uninstall.execute import transaction
from safe_uninstall.execute.interrupts import Interrupted
from safe_uninstall.execute.programs import find_programs
from safe_uninstall.model.environment import Programs
from safe_uninstall.model.plan import Request
from safe_uninstall.render.document import plan_document
from safe_uninstall.scan import probe
from safe_uninstall.scan.environment import find_environment
from safe_uninstall.scan.snapshot import scan as take

if TYPE_CHECKING:
    from safe_uninstall.model.environment import Environment
    from safe_uninstall.model.outcome import Outcome
    from safe_uninstall.model.plan import Plan
    from safe_uninstall.model.snapshot import Snapshot

_sources: dict[tuple[str, tuple[str, ...], bool], LazyWheels] = {}
"""By prefix, places and whether indexes are left out: what planning has fetched, carrying out need not fetch again."""


def scan(
    environment: str | Environment | None = None, *, consumers_in: tuple[str, ...] = (), root: str | None = None
) -> Snapshot:
    """Read an environment."""
    if environment is None or isinstance(environment, str):
        environment = find_environment(environment, variables=os.environ, directory=os.getcwd(), root=root)
    return take(environment, variables=os.environ, consumers_in=tuple(map(os.path.abspath, consumers_in)))


def plan(snapshot: Snapshot, request: Request) -> Plan:
    """Judge a request over a snapshot."""
    environment = snapshot.environment
    mounted = environment.is_mounted
    request = replace(
        request,
        find_links=tuple(os.path.abspath(place) if os.path.exists(place) else place for place in request.find_links),
        consumers_in=tuple(map(os.path.abspath, request.consumers_in)),
        python=request.python or environment.prefix,
        programs=Programs() if mounted else find_programs(),
        tool_prefix=None if mounted else os.path.realpath(sys.prefix),
    )
    probes = probe.run_probes(environment, request, variables=os.environ)
    # What is in a mounted tree is not changed from here, so that no wheels are fetched for it.
    return make_plan(snapshot, request, None if mounted else _wheels(environment, request), probes=probes)


def execute(plan: Plan) -> Outcome:
    """Carry out a plan."""
    environment, request = plan.environment, plan.request
    try:
        return transaction.execute(
            plan,
            document=plan_document(plan, __version__),
            rescan=lambda: take(environment, variables=os.environ, consumers_in=request.consumers_in),
            replan=lambda snapshot: make_plan(snapshot, request, _wheels(environment, request), probes=plan.probes),
            prober=lambda code: probe.run_probe(environment, code, timeout=request.probe_timeout, variables=os.environ),
        )
    except Interrupted:
        # Once anything is changed a signal ends in a roll back, and an outcome.
        raise KeyboardInterrupt from None


def _wheels(environment: Environment, request: Request) -> LazyWheels:
    """Return the source of wheels for a request; it fetches nothing before it is asked."""
    key = (environment.prefix, request.find_links, request.no_index)
    if key not in _sources:
        source = LazyWheels(
            environment,
            find_links=request.find_links,
            no_index=request.no_index,
            progress=lambda _: None,
            show=False,
            again=lambda place: repeated(request, place),
        )
        atexit.register(source.close)
        _sources[key] = source
    return _sources[key]
