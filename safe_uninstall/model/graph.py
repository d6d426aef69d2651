"""The provides/needs graph of an environment."""

from dataclasses import dataclass

from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.linkage import Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """One ELF file and its needs, judged with the file itself as the root of the load."""

    object: ElfObject
    distribution: str | None
    """Normalised name of the owner (the last writer where it has several), None when unowned."""
    needs: tuple[Binding, ...]
    """In the order of DT_NEEDED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """All ELF files of an environment, sorted by path."""

    nodes: tuple[GraphNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionNeed:
    """A library of another distribution that files of one need."""

    provider: str | None
    """Normalised name of the other, None for a file that nobody owns."""
    name: str
    """The DT_NEEDED entry."""
    files: int
    """How many files need it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionNode:
    """One distribution with the needs of all of its files."""

    name: str | None
    """Normalised, None for all files that nobody owns."""
    needs: tuple[DistributionNeed, ...]
    """Sorted by provider, then name."""
    missing: tuple[str, ...]
    """Names that no file meets, sorted."""
