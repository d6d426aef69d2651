"""Plans and carries out requests on environments that tests built."""

from typing import Any

from safe_uninstall import __version__
from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.cli.past import stored_history
from safe_uninstall.execute.history import choose, read_history
from safe_uninstall.execute.transaction import execute
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.outcome import Outcome
from safe_uninstall.model.plan import Plan, Request
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import WheelSource
from safe_uninstall.render.document import plan_document
from tests.support.environments import Content, EnvironmentBuilder, Link, library


def plan_for(builder: EnvironmentBuilder, *names: str, installer: InstallerKind | None = None, **options: Any) -> Plan:
    """Plan the removal of ``names``."""
    return make_plan(builder.snapshot(), Request(names=names, installer=installer, **options))


def plan_undo(
    builder: EnvironmentBuilder, identifier: str | None = None, *, wheels: WheelSource | None = None, **options: Any
) -> Plan:
    """Plan to undo a transaction, the last one unless it is named."""
    environment = builder.environment()
    chosen = choose(read_history(environment.prefix)[0], identifier, prefix=environment.prefix)
    request = Request(names=(), undo=chosen.receipt.identifier, **options)
    return make_plan(builder.snapshot(), request, wheels, history=stored_history(environment))


def carry_out(builder: EnvironmentBuilder, plan: Plan, *, wheels: WheelSource | None = None, **options: Any) -> Outcome:
    """Carry a plan out."""
    options = {"rescan": builder.snapshot, "document": plan_document(plan, __version__), **options}
    history = stored_history(builder.environment())

    def replan(snapshot: Snapshot) -> Plan:
        return make_plan(snapshot, plan.request, wheels, probes=plan.probes, history=history)

    return execute(plan, replan=replan, **options)


def build_twins(builder: EnvironmentBuilder) -> None:
    """Install two distributions with identical files, one of which has some of its own, and a consumer."""
    shared: dict[str, Content | Link] = {
        "nvidia/nvtx/lib/libnvToolsExt.so.1": library("libnvToolsExt.so.1"),
        "nvidia/nvtx/__init__.py": "",
        "nvidia/nvtx/shared.py": "x = 1\n",
    }
    builder.distribution(
        "twin-cu11", "11.8", {**shared, "nvidia/nvtx/own11.py": "y = 1\n", "only11/sub/deep.txt": "deep"}
    )
    builder.distribution("twin-cu12", "12.1", {**shared, "nvidia/nvtx/own12.py": "y = 2\n"})
    builder.distribution(
        "consumer", "1.0", {"consumer/c.so": library(None, "libnvToolsExt.so.1", rpath="$ORIGIN/../nvidia/nvtx/lib")}
    )
    cache = builder.site_packages / "nvidia/nvtx/__pycache__"
    cache.mkdir()
    for stem in ("own11", "own12", "shared"):
        (cache / f"{stem}.cpython-311.pyc").write_bytes(stem.encode())
