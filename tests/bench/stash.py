"""Times the stash of the incident's four distributions against ``cp -al`` of the same files."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from safe_uninstall import scan
from safe_uninstall.execute.stash import Stash
from tests.support.installed import Installed

_NAMES = ("nvidia-cudnn-cu13", "nvidia-nccl-cu13", "nvidia-nvshmem-cu13", "nvidia-cusparselt-cu13")


def measure(environment: Installed, pairs: int) -> tuple[list[float], list[float], int]:
    """Return seconds of both, pair by pair, and the bytes on disk that the last stash took.

    Args:
        environment: the incident; links are made in it and removed again.
        pairs: of runs, one after the other, in an order that alternates.
    """
    distributions = [item for item in scan(str(environment.prefix)).distributions if item.name in _NAMES]
    paths = sorted({row.path for item in distributions for row in item.record.rows if os.path.lexists(row.path)})
    relative = [os.path.relpath(path, environment.prefix) for path in paths]
    place = environment.prefix / "bench"
    times: tuple[list[float], list[float]] = ([], [])
    used = 0
    for number in range(pairs):
        for index in (0, 1) if number % 2 else (1, 0):
            place.mkdir()
            free = _free(place)
            start = time.perf_counter()
            if index == 0:
                Stash(str(place / "stash")).keep(paths, [])
            else:
                words = ["cp", "-al", "--parents", "--target-directory", str(place), *relative]
                subprocess.run(words, check=True, cwd=environment.prefix)
            times[index].append(time.perf_counter() - start)
            used = free - _free(place) if index == 0 else used
            shutil.rmtree(place)
    return *times, used


def _free(place: Path) -> int:
    status = os.statvfs(place)
    return status.f_bfree * status.f_frsize
