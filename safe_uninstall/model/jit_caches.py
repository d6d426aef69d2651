"""Caches of libraries that were compiled at run time, and the port by which the pure analysis asks for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from safe_uninstall.model.elf import ElfObject


@dataclass(frozen=True, slots=True, kw_only=True)
class JitCache:
    """One cache that is there."""

    name: str
    """Who fills it: ``torch_extensions``."""
    directory: str
    """Absolute, its links resolved."""
    objects: Mapping[str, ElfObject]
    """Canonical path to facts of the ELF files in it."""
    is_whole: bool = True
    """Whether that is all of it; a large cache is read in part."""


class JitCaches(Protocol):
    """Looks at the user's caches; nothing is looked at before somebody asks."""

    def read(self) -> tuple[JitCache, ...]:
        """Return the caches that are there and hold ELF files, by name.

        Costs a walk through them the first time: asked where libraries go that something in a cache could need.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class NoCaches:
    """Stands for the caches where none can be looked at, and in tests."""

    def read(self) -> tuple[JitCache, ...]:
        """Return that there are none."""
        return ()
