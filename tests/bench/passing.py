"""Times what ``safe-pip`` adds to a command that it only passes on: ``python -m tests.bench.passing [PAIRS]``."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.program import clean_variables

_LIMIT = 0.15
"""Seconds that may be added."""


def measure(pairs: int) -> list[float]:
    """Return the seconds added, pair by pair, in an order that alternates."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.executable, "-m", "venv", directory], check=True)
        variables = clean_variables({"VIRTUAL_ENV": directory})
        commands = (
            [str(Path(directory, "bin/pip")), "--version"],
            [str(Path(sys.executable).parent / "safe-pip"), "--version"],
        )
        added = []
        for number in range(pairs):
            seconds = [0.0, 0.0]
            for index in (0, 1) if number % 2 else (1, 0):
                start = time.perf_counter()
                subprocess.run(commands[index], check=True, stdout=subprocess.DEVNULL, env=variables)
                seconds[index] = time.perf_counter() - start
            added.append(seconds[1] - seconds[0])
        return added


if __name__ == "__main__":
    median = statistics.median(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
    print(f"safe-pip adds {median:.3f} s to pip --version (median of pairs; limit {_LIMIT} s)")
    sys.exit(median > _LIMIT)
