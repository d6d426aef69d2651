"""Which damaged distributions are to be installed again: ``check --fix``.

Two distributions that ship one path with different bytes cannot both be whole. The one that others require gets its
bytes back; where that does not tell, the user must say which of them goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from safe_uninstall.analysis.damage import Damage, is_essential
from safe_uninstall.analysis.metadata import required_by_others

if TYPE_CHECKING:
    from safe_uninstall.model.distribution import Distribution
    from safe_uninstall.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """What becomes of damage."""

    restore: tuple[Damage, ...]
    """Can be restored without taking anything from a distribution that is needed more."""
    yielding: tuple[Distribution, ...]
    """Give way: they lose their bytes of shared paths to those that are restored."""
    required: frozenset[str]
    """Names among all of these that another distribution requires."""
    undecided: tuple[Damage, ...]
    """Only the removal of one of the distributions that share paths helps, and nothing tells which."""
    harmless: tuple[Damage, ...]
    """Nothing that a program surely misses: tests and documents left out of an image, files edited on purpose, and
    distributions nobody requires that gave way to one that somebody does."""


def choose_repairs(snapshot: Snapshot, damage: Iterable[Damage]) -> Repairs:
    """Sort damage by what can be done about it.

    Args:
        snapshot: the environment.
        damage: what is wrong with its files.
    """
    restore: list[Damage] = []
    undecided: list[Damage] = []
    harmless: list[Damage] = []
    yielding: dict[str, Distribution] = {}
    sites = snapshot.environment.site_packages
    damaged = tuple(damage)
    names = {item.distribution.name for item in damaged} | {writer.name for item in damaged for writer in item.by}
    required = required_by_others(names, snapshot.distributions, snapshot.environment.markers) if names else frozenset()
    for item in damaged:
        name = item.distribution.name
        missed = item.is_gutted or any(is_essential(path, sites) for path in item.missing)
        taken = any(is_essential(path, sites) for path in item.overwritten)
        stronger = [writer for writer in item.by if name not in required or writer.name in required]
        if not missed and not taken:
            harmless.append(item)
        elif taken and stronger:
            weaker = name not in required and all(writer.name in required for writer in item.by)
            (harmless if weaker and not missed else undecided).append(item)
        else:
            restore.append(item)
            yielding.update((writer.metadata_path, writer) for writer in item.by)
    return Repairs(
        restore=tuple(restore),
        required=required,
        yielding=tuple(sorted(yielding.values(), key=lambda item: (item.name, item.metadata_path))),
        undecided=tuple(undecided),
        harmless=tuple(harmless),
    )
