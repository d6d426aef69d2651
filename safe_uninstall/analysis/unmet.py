"""Needs that nothing meets in an environment as it stands, and which of them somebody will notice."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from safe_uninstall.analysis.loads import Baseline
from safe_uninstall.analysis.names import is_host_library
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.preload import Preloads
from safe_uninstall.analysis.trace import Bound
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.elf import Abi
from safe_uninstall.model.snapshot import Snapshot

_LIBC = "libc.so.6"
"""What any machine has for which something could be loaded on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmetNeed:
    """A needed name that no file meets."""

    name: str
    consumers: tuple[Bound, ...]
    """Needs of that name, each of an object as the root of its own load, sorted by path."""
    claimants: tuple[Distribution, ...]
    """Installed distributions that list a file of that name which is not there, sorted by name."""
    paths: tuple[str, ...]
    """Those files."""
    imports: tuple[str, ...] = ()
    """Extension modules among the consumers, or above them, whose import fails; sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """All needs that nothing meets."""

    certain: tuple[UnmetNeed, ...] = ()
    """An installed distribution should provide them, and does not: sorted by name."""
    others: tuple[UnmetNeed, ...] = ()
    """Nothing that is installed ever provided them: optional plugins, mostly. Sorted by name."""


def find_unmet(snapshot: Snapshot, owners: Owners, baseline: Baseline) -> Unmet:
    """Load every object as its own root, and gather the needs that stay unmet.

    A need that is met because something is loaded first (torchvision's of libtorch.so) is met. What an installed
    distribution claims and does not have on disk is certainly missed; other needs may be those of plugins for programs
    that are not there, which a healthy environment has in plenty.

    Args:
        snapshot: the environment.
        owners: who claims which path.
        baseline: the loads of the environment as it is.
    """
    if snapshot.system.libc != "glibc":
        return Unmet()
    preloads = Preloads(snapshot, owners, baseline.names, baseline.trace, deleted=frozenset(), leaving=frozenset())
    groups: dict[str, dict[str, Bound]] = {}
    with_libc: set[Abi] = set()
    without_libc: set[Abi] = set()
    for path in sorted(baseline.objects):
        trace = baseline.trace(baseline.objects[path])
        for need in trace.needs:
            if need.name == _LIBC:
                (without_libc if need.provider is None else with_libc).add(need.consumer.object.abi)
            if need.provider is None and need.consumer is trace.root and not is_host_library(need.name):
                groups.setdefault(need.name, {})[path] = need
    absent = _absent_claims(snapshot)
    abis = {name: next(iter(consumers.values())).consumer.object.abi for name, consumers in groups.items()}
    preloads.expect((name, abi) for name, abi in abis.items() if posixpath.basename(name) not in absent)
    certain: list[UnmetNeed] = []
    others: list[UnmetNeed] = []
    for name, consumers in sorted(groups.items()):
        claims = absent.get(posixpath.basename(name), ())
        if not claims and (abis[name] in without_libc - with_libc or preloads.is_met(name, abis[name])):
            # Without a C library for them here, what their own machine would provide is not known.
            continue
        unmet = UnmetNeed(
            name=name,
            consumers=tuple(consumers.values()),
            claimants=tuple({item.metadata_path: item for item, _ in claims}.values()),
            paths=tuple(sorted({path for _, path in claims})),
            imports=tuple(path for path in sorted(consumers) if preloads.is_import_root(path)),
        )
        (certain if claims else others).append(unmet)
    return Unmet(certain=tuple(certain), others=tuple(others))


def _absent_claims(snapshot: Snapshot) -> Mapping[str, tuple[tuple[Distribution, str], ...]]:
    """Return claims of libraries that are not on disk, by file name."""
    found: dict[str, list[tuple[Distribution, str]]] = {}
    for distribution in snapshot.distributions:
        for row in distribution.record.rows:
            directory, _, name = row.path.rpartition("/")
            if ".so" in name and snapshot.files.entry(directory, name) is None:
                found.setdefault(name, []).append((distribution, row.path))
    return {name: tuple(claims) for name, claims in found.items()}
