"""Needs, bindings and how strong they are."""

from dataclasses import dataclass
from enum import Enum


class How(Enum):
    """Which step of the loader's search found a provider (glibc ``_dl_map_object``)."""

    RPATH = "rpath"
    LD_LIBRARY_PATH = "ld_library_path"
    RUNPATH = "runpath"
    CACHE = "cache"
    DEFAULT = "default"
    ABSOLUTE = "absolute"
    LOADED = "loaded"
    """Already loaded in this closure under that soname or name."""
    MISSING = "missing"


class Strength(Enum):
    """How sure it is that a consumer uses a provider; strongest first."""

    LINKED = "linked"
    PRELOADED = "preloaded"
    OBSERVED = "observed"
    NOTED = "noted"
    NAMED = "named"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A need and what the loader binds it to."""

    consumer: str
    """Path by which the consumer was opened."""
    name: str
    """The DT_NEEDED entry as written."""
    provider: str | None
    """Path by which the provider was opened, or None when missing."""
    how: How
    via: str | None = None
    """The search path entry that led there as written (``$ORIGIN/../lib``), where one did."""
    searched: tuple[str, ...] = ()
    """Directories tried without success before, in order; ``ld.so.cache`` stands for the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure:
    """All objects that loading one root brings in, in load order (breadth first)."""

    root: str
    objects: tuple[str, ...]
    """Paths by which objects were opened, the root first."""
    bindings: tuple[Binding, ...]
    """One per need of every object, in load order."""
