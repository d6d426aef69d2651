"""Consumers whose CUDA libraries come from wheels of different CUDA majors."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from safe_uninstall.analysis.loads import Baseline
from safe_uninstall.analysis.ownership import Match, Owners, compare
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.snapshot import Snapshot

_CUDA_WHEEL = re.compile(r"-cu(?P<major>1[0-9])(?:[0-9])?$")
"""``nvidia-cudnn-cu12``, ``librmm-cu13``, ``…-cu118``: the suffix that NVIDIA's and RAPIDS' wheels carry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedCuda:
    """One distribution that loads libraries of several CUDA majors."""

    consumer: Distribution
    libraries: tuple[tuple[str, Distribution], ...]
    """(path of a library, the distribution whose bytes it holds), the rarer majors first, then by path."""
    majors: tuple[int, ...]
    """Sorted."""


def cuda_major(name: str) -> int | None:
    """Return the CUDA major that a distribution's name carries, None when it carries none."""
    match = _CUDA_WHEEL.search(name)
    return None if match is None else int(match["major"])


def find_mixed_cuda(snapshot: Snapshot, owners: Owners, baseline: Baseline) -> tuple[MixedCuda, ...]:
    """Return the distributions that load libraries out of wheels of different CUDA majors, sorted by name.

    What counts is whose bytes are on disk, not who claims the path: after an overwrite the metadata says cu12 and the
    library is cu13's. Wheels of CUDA themselves are left out, since they only say it again.

    Args:
        snapshot: the environment.
        owners: who claims which path.
        baseline: the loads of the environment as it is.
    """
    if len({cuda_major(item.name) for item in snapshot.distributions} - {None}) < 2:
        return ()
    bytes_of = _Bytes(snapshot, owners)
    found: dict[str, dict[str, Distribution]] = {}
    consumers: dict[str, Distribution] = {}
    for path in sorted(snapshot.objects):
        owner = next(iter(owners.of(path)), None)
        if owner is None or cuda_major(owner.name) is not None:
            continue
        for item in baseline.trace(snapshot.objects[path]).objects:
            holder = bytes_of.holder(item.real_path)
            if holder is not None:
                consumers[owner.metadata_path] = owner
                found.setdefault(owner.metadata_path, {})[item.real_path] = holder
    mixed = []
    for key, libraries in found.items():
        majors = [cuda_major(holder.name) or 0 for holder in libraries.values()]
        if len(set(majors)) > 1:
            mixed.append(
                MixedCuda(
                    consumer=consumers[key],
                    libraries=tuple(sorted(libraries.items(), key=lambda pair: (_count(majors, pair[1]), pair[0]))),
                    majors=tuple(sorted(set(majors))),
                )
            )
    return tuple(sorted(mixed, key=lambda item: item.consumer.name))


def _count(majors: Iterable[int], holder: Distribution) -> int:
    return sum(1 for major in majors if major == cuda_major(holder.name))


class _Bytes:
    """Whose bytes a library holds, among the wheels that carry a CUDA major."""

    def __init__(self, snapshot: Snapshot, owners: Owners) -> None:
        self._evidence = snapshot.evidence
        self._owners = owners
        self._known: dict[str, Distribution | None] = {}

    def holder(self, path: str) -> Distribution | None:
        if path not in self._known:
            self._known[path] = self._find(path)
        return self._known[path]

    def _find(self, path: str) -> Distribution | None:
        claimed = [item for item in self._owners.of(path) if cuda_major(item.name) is not None]
        if len(claimed) < 2:
            return claimed[0] if claimed else None
        rows: Mapping[str, Match] = {
            item.metadata_path: next(compare(self._evidence, row) for row in item.record.rows if row.path == path)
            for item in claimed
        }
        return next((item for item in claimed if rows[item.metadata_path] is Match.SAME), None)
