"""The host's part in loading: ld.so.cache, default directories, hardware capabilities."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from safe_uninstall.model.elf import Abi


class CacheEntry(NamedTuple):
    """One line of ``/etc/ld.so.cache`` (glibc ``elf/dl-cache.c``)."""

    path: str
    flags: int
    """``FLAG_ELF_LIBC6`` and the architecture bits, for example 0x0303 for x86-64."""
    hwcap: str | None
    """Name of the glibc-hwcaps sub-directory, None for a plain entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemLibraries:
    """How the host's dynamic loader searches beyond the objects' own paths."""

    cache: Mapping[str, tuple[CacheEntry, ...]]
    """Library name to entries, in the order in which the loader would take them. Empty when there is no cache."""
    default_directories: Mapping[Abi, tuple[str, ...]]
    """Per ABI the built-in directories, in search order, for example ``/lib/x86_64-linux-gnu``, …, ``/usr/lib``."""
    cache_flags: Mapping[Abi, int]
    """Per ABI the ``flags`` value an entry of the cache must carry."""
    hwcaps: Mapping[Abi, tuple[str, ...]]
    """Per ABI the sub-directories tried first in each directory, best first: ``glibc-hwcaps/x86-64-v3``, …"""
    lib: Mapping[Abi, str]
    """Per ABI what ``$LIB`` expands to: ``lib/x86_64-linux-gnu`` on Debian, ``lib64`` on Fedora."""
    platform: Mapping[Abi, str]
    """Per ABI what ``$PLATFORM`` expands to."""
    libc: str
    """``glibc``, ``musl`` or ``none`` (not Linux: linkage is not judged)."""
