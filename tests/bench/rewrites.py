"""Times how long it takes to find a rewrite in an environment in memory: ``python -m tests.bench.rewrites``.

300 distributions; 20 of them are requested, and hold the libraries that the rest needs.
"""

import random
import statistics
import time
from unittest.mock import patch

from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.analysis.presumed import PresumedWheels
from safe_uninstall.analysis.problem import Impossible, Problem, Solution
from safe_uninstall.analysis.rewrite import solve
from safe_uninstall.model.plan import Plan, Request, Rewrite
from safe_uninstall.model.snapshot import Snapshot
from tests.support.fakes import at, distribution, elf, snapshot

_PROVIDERS = 40
_REQUESTED = 20
_ALL = 300
_FILES = 60


def environment() -> Snapshot:
    """Return 300 distributions: 40 with libraries, 260 whose modules need some of them; half of these by metadata too.

    The first ten of the requested have a twin that was installed before, and whose library they overwrote.
    """
    draw = random.Random(0)
    installed, objects = [], []
    for number in range(_PROVIDERS):
        path = f"lib{number}/lib/lib{number}.so"
        if number < _REQUESTED // 2:
            installed.append(distribution(f"twin{number}", claims={path: b"twin"}))
        files = {f"lib{number}/{index}.h": b"%d" % index for index in range(_FILES)}
        installed.append(distribution(f"lib{number}", claims={path: b"library", **files}))
        objects.append(elf(at(path), f"lib{number}.so"))
    for number in range(_ALL - len(installed)):
        chosen = draw.sample(range(_PROVIDERS), 2)
        modules = {f"app{number}/{index}.so": b"module" for index in range(5)}
        files = {f"app{number}/{index}.py": b"%d" % index for index in range(_FILES)}
        requires = tuple(f"lib{item}" for item in chosen) if number % 2 else ()
        installed.append(distribution(f"app{number}", claims={**modules, **files}, requires=requires))
        search = ":".join(f"$ORIGIN/../lib{item}/lib" for item in chosen)
        needed = tuple(f"lib{item}.so" for item in chosen)
        objects += [elf(at(path), None, *needed, rpath=search) for path in modules]
    return snapshot(*installed, objects=objects)


def measure(snap: Snapshot, rewrite: Rewrite, runs: int) -> tuple[list[float], list[float], Plan]:
    """Return seconds spent in the solver, and in all of the planning, run by run, and the plan."""
    request = Request(names=tuple(f"lib{number}" for number in range(_REQUESTED)), rewrites=(rewrite,))
    solving, planning = [], []
    for _ in range(runs + 1):
        spent: list[float] = []

        def timed(problem: Problem, spent: list[float] = spent) -> Solution | Impossible:
            start = time.perf_counter()
            found = solve(problem)
            spent.append(time.perf_counter() - start)
            return found

        with patch("safe_uninstall.analysis.nearest.solve", timed):
            start = time.perf_counter()
            plan = make_plan(snap, request, PresumedWheels(snap))
            planning.append(time.perf_counter() - start)
        solving.append(sum(spent))
    # The first run imports the resolver.
    return solving[1:], planning[1:], plan


def main(runs: int = 9) -> None:
    """Print the times as a Markdown table."""
    snap = environment()
    print(
        f"| {_REQUESTED} requested of {_ALL} distributions | solving, ms: median | max | planning, ms: median | max |"
    )
    print("|---|---|---|---|---|")
    for rewrite in (Rewrite.RESTORE, Rewrite.KEEP_NEEDED, Rewrite.CASCADE):
        solving, planning, plan = measure(snap, rewrite, runs)
        cells = [f"`--{rewrite.value}`: {plan.verdict.value}, {len(plan.prediction.removed)} go"]
        for times in (solving, planning):
            cells += [f"{1000 * statistics.median(times):.0f}", f"{1000 * max(times):.0f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
