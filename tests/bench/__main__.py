"""Prints paired timings as a Markdown table: ``python -m tests.bench [--pairs N]``.

The two commands of a pair run one after the other, in an order that alternates, so that what else the machine does
weighs on both; the ratio is taken pair by pair.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench import rewrites, stash
from tests.support.incident import incident, workshop
from tests.support.installed import PIP
from tests.support.program import clean_variables

ABSENT = "no-such-distribution-anywhere"


def main() -> None:
    """Make the environment, time, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--pairs", type=int, default=21, help="pairs of runs per row")
    pairs = parser.parse_args().pairs
    with workshop() as root:
        environment = incident(root, PIP)
        ours = [Path(sys.executable).parent / "safe-uninstall", "-p", environment.prefix, "-n", "nvidia-cudnn-cu13"]
        pip = [environment.python, "-m", "pip"]
        rows = [
            ("pip uninstall -y, a name that is not installed", [*pip, "uninstall", "-y", ABSENT]),
            ("pip check", [*pip, "check"]),
        ]
        print("| dry run of `safe-uninstall` against | ours, ms | theirs, ms | ratio: median | min | max |")
        print("|---|---|---|---|---|---|")
        for name, theirs in rows:
            print(_row(name, *_compare(list(map(str, ours)), list(map(str, theirs)), pairs)), flush=True)
        ours_, theirs_, used = stash.measure(environment, pairs)
        print("\n| stash of four CUDA distributions against | ours, ms | theirs, ms | ratio: median | min | max |")
        print("|---|---|---|---|---|---|")
        print(_row("cp -al of the same files", ours_, theirs_))
        print(f"\nThe stash took {used:,} bytes of the file system.")
    print()
    rewrites.main()


def _compare(ours: Sequence[str], theirs: Sequence[str], pairs: int) -> tuple[list[float], list[float]]:
    """Return seconds of both commands, pair by pair; the first pair, which warms the caches, is not among them."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(pairs + 1):
        for index in (0, 1) if number % 2 else (1, 0):
            seconds = _seconds((ours, theirs)[index])
            if number:
                times[index].append(seconds)
    return times


def _seconds(command: Sequence[str]) -> float:
    variables = clean_variables({"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    start = time.perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                   env=variables)  # fmt: skip
    return time.perf_counter() - start


def _row(name: str, ours: list[float], theirs: list[float]) -> str:
    ratios = [own / other for own, other in zip(ours, theirs, strict=True)]
    cells = [
        f"`{name.partition(',')[0]}`{name.partition(',')[1]}{name.partition(',')[2]}",
        f"{1000 * statistics.median(ours):.0f}",
        f"{1000 * statistics.median(theirs):.0f}",
        *(f"{value:.2f}" for value in (statistics.median(ratios), min(ratios), max(ratios))),
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
