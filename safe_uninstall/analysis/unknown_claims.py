"""Survivors whose files are unknown, and what of a removal may be theirs.

Without a RECORD, or with one that cannot be read in full, a distribution claims files that nobody can name. Unknown is
not nothing: where there is evidence that it ships what is about to be deleted, the removal must not go on.
"""

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass

from safe_uninstall.analysis.ownership import Ownership
from safe_uninstall.model.distribution import Distribution, MetadataKind, RecordState
from safe_uninstall.model.snapshot import Snapshot

_VARIANT = re.compile(
    r"-(?:binary|contrib|cpu|cu\d+|cuda\d*x?|directml|full|gpu|headless|lite|nightly|openvino|rocm[\d-]*|silicon|slim)$"
)
"""What ends the names of builds that share an import name: ``nvidia-nvtx-cu12``, ``opencv-python-headless``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownClaims:
    """A survivor that may own what goes."""

    survivor: Distribution
    paths: tuple[str, ...]
    """Canonical paths that are to be deleted and may be its own, sorted."""


def find_unknown_claims(
    snapshot: Snapshot, ownership: Ownership, leaving: tuple[Distribution, ...]
) -> tuple[UnknownClaims, ...]:
    """Return the survivors without a list of files that may own paths of the leaving, sorted by name.

    A path may be a survivor's where it lies in a directory that the survivor says is its own (``top_level.txt``, else
    its name), or where the two are builds of one project, by their names. A top directory that others share
    (``nvidia``) says nothing by itself: what lies below it must bear a part of the survivor's name.

    Args:
        snapshot: the baseline.
        ownership: what happens to the paths of the leaving.
        leaving: the distributions that go.
    """
    gone = {item.metadata_path for item in leaving}
    staying = [item for item in snapshot.distributions if item.metadata_path not in gone]
    unknown = [item for item in staying if _is_unknown(item)]
    if not unknown:
        return ()
    sites = tuple(f"{site}/" for site in snapshot.environment.site_packages)
    deleted = [
        (path, parts)
        for path in sorted(ownership.deleted)
        if (parts := _below(path, sites)) and not parts[0].endswith((".dist-info", ".egg-info"))
    ]
    shared = _shared_tops(staying, sites, {parts[0] for _, parts in deleted})
    bases = {_base(item.name) for item in leaving}
    found = []
    for survivor in unknown:
        same_project = _base(survivor.name) in bases
        own = {row.path for row in survivor.record.rows}
        paths = tuple(
            path for path, parts in deleted if path not in own and (same_project or _may_be(survivor, parts, shared))
        )
        if paths:
            found.append(UnknownClaims(survivor=survivor, paths=paths))
    return tuple(found)


def tops_of_unknown(distributions: Iterable[Distribution]) -> frozenset[str]:
    """Return the top-level names, without ``.py``, that distributions with unknown files say or seem to have."""
    return frozenset(name for item in distributions if _is_unknown(item) for name in _tops(item))


def _is_unknown(item: Distribution) -> bool:
    if not item.owned_here or item.conda_package is not None or item.metadata_kind is not MetadataKind.DIST_INFO:
        return False
    if item.direct_url is not None and item.direct_url.editable:
        # Its files are in a source tree.
        return False
    return item.record.state in (RecordState.MISSING, RecordState.MALFORMED)


def _below(path: str, sites: tuple[str, ...]) -> tuple[str, ...]:
    for site in sites:
        if path.startswith(site):
            return tuple(path[len(site) :].split("/"))
    return ()


def _shared_tops(staying: Iterable[Distribution], sites: tuple[str, ...], tops: Set[str]) -> frozenset[str]:
    """Return which top directories distributions with a list of their files claim paths in: namespaces."""
    shared = set()
    for item in staying:
        if _is_unknown(item):
            continue
        for row in item.record.rows:
            parts = _below(row.path, sites)
            if len(parts) > 1 and parts[0] in tops:
                shared.add(parts[0])
    return frozenset(shared)


def _may_be(survivor: Distribution, parts: tuple[str, ...], shared: Set[str]) -> bool:
    if parts[0].removesuffix(".py") not in _tops(survivor):
        return False
    words = survivor.name.split("-")
    return parts[0] not in shared or (len(parts) > 2 and parts[1].replace("_", "-") in (*words, survivor.name))


def _tops(survivor: Distribution) -> frozenset[str]:
    if survivor.top_level:
        return frozenset(name.partition("/")[0] for name in survivor.top_level)
    name = survivor.name
    return frozenset(text.replace("-", "_") for text in (name, _base(name), name.partition("-")[0]))


def _base(name: str) -> str:
    """Return the name of a project without what tells its builds apart."""
    while (shorter := _VARIANT.sub("", name)) != name:
        name = shorter
    return name
