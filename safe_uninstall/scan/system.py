"""Reads how the host's dynamic loader searches: ld.so.cache, built-in directories, hardware capabilities.

Nothing is run. What is compiled into the loader, its directories and its version, is read from its file; where that
cannot be found, the layout of Debian (multiarch) or of everybody else (``lib64``) is assumed, whichever is there.
"""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from safe_uninstall.model.elf import Abi
from safe_uninstall.model.system import CacheEntry, SystemLibraries
from safe_uninstall.scan.disk import DiskFileSystem
from safe_uninstall.scan.ld_cache import parse_cache
from safe_uninstall.scan.processor import Processor, read_processor

_FILE_LIMIT = 64 << 20
"""Bytes of a loader or a cache that are read; real ones have less than one percent of it."""
_PATH_AT_END = re.compile(rb"(?:/[\w.+-]+)+\Z")
_PATH_LIMIT = 256
"""Bytes of one of the directories that are built into a loader."""
_FIRST_WITH_NAMED = (2, 33)
"""glibc release that brought glibc-hwcaps."""
_FIRST_WITHOUT_LEGACY = (2, 37)
"""glibc release that dropped the older sub-directories (``tls``, ``haswell``, ``x86_64``, …)."""


class _Machine(NamedTuple):
    """What glibc fixes per architecture (``sysdeps/unix/sysv/linux/*/ldconfig.h``, ``shlib-versions``)."""

    interpreter: str
    triplet: str
    """The multiarch directory of Debian."""
    lib: str
    """The directory of everybody else."""
    flags: int
    """FLAG_ELF_LIBC6 and the architecture bits (``elf/ldconfig.h``)."""


_MACHINES = {
    Abi(64, True, 62): _Machine("/lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu", "lib64", 0x0303),
    Abi(32, True, 62): _Machine("/libx32/ld-linux-x32.so.2", "x86_64-linux-gnux32", "libx32", 0x0803),
    Abi(32, True, 3): _Machine("/lib/ld-linux.so.2", "i386-linux-gnu", "lib", 0x0003),
    Abi(64, True, 183): _Machine("/lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu", "lib64", 0x0A03),
    Abi(32, True, 40): _Machine("/lib/ld-linux-armhf.so.3", "arm-linux-gnueabihf", "lib", 0x0903),
    Abi(64, True, 21): _Machine("/lib64/ld64.so.2", "powerpc64le-linux-gnu", "lib64", 0x0503),
    Abi(64, False, 22): _Machine("/lib/ld64.so.1", "s390x-linux-gnu", "lib64", 0x0403),
    Abi(64, True, 243): _Machine("/lib/ld-linux-riscv64-lp64d.so.1", "riscv64-linux-gnu", "lib64", 0x1003),
    Abi(64, True, 258): _Machine("/lib64/ld-linux-loongarch-lp64d.so.1", "loongarch64-linux-gnu", "lib64", 0x1203),
}
_UNKNOWN = _Machine("", "", "lib", 0x0003)


class _Loader(NamedTuple):
    """What the file of a dynamic loader tells."""

    directories: tuple[str, ...]
    version: tuple[int, int] | None


def read_system_libraries(
    abis: Iterable[Abi], root: str = "/", *, interpreters: Mapping[Abi, str] | None = None
) -> SystemLibraries:
    """Read what the host contributes to loads of objects of the given ABIs.

    Args:
        abis: all that occur in the environment.
        root: absolute path of the tree that counts as the host, links in it resolved inside it.
        interpreters: per ABI the dynamic loader that the environment's programs ask for (PT_INTERP), where it is known;
            else the usual path is tried.
    """
    files = DiskFileSystem(root)
    interpreters = interpreters or {}
    cached = _read(files, "/etc/ld.so.cache")
    entries: dict[str, list[CacheEntry]] = {}
    directories: dict[Abi, tuple[str, ...]] = {}
    flags: dict[Abi, int] = {}
    hwcaps: dict[Abi, tuple[str, ...]] = {}
    lib: dict[Abi, str] = {}
    platform: dict[Abi, str] = {}
    for abi in sorted(set(abis)):
        machine = _MACHINES.get(abi, _UNKNOWN)
        loader = _read_loader(files, interpreters.get(abi) or machine.interpreter)
        processor = read_processor(abi)
        flags[abi] = machine.flags
        directories[abi] = loader.directories or _usual_directories(files, machine)
        lib[abi] = _lib(directories[abi], machine)
        platform[abi] = processor.platform
        named = processor.named if loader.version is None or loader.version >= _FIRST_WITH_NAMED else ()
        legacy = loader.version is not None and loader.version < _FIRST_WITHOUT_LEGACY
        hwcaps[abi] = (
            *(f"glibc-hwcaps/{name}" for name in named),
            *(processor.legacy_directories() if legacy else ()),
        )
        _add_entries(entries, cached, abi, machine.flags, named, processor if legacy else None)
    return SystemLibraries(
        cache={name: tuple(found) for name, found in entries.items()},
        default_directories=directories,
        cache_flags=flags,
        hwcaps=hwcaps,
        lib=lib,
        platform=platform,
        libc=_libc(files, root, interpreters, directories),
    )


def _add_entries(
    entries: dict[str, list[CacheEntry]],
    cached: bytes,
    abi: Abi,
    flags: int,
    named: tuple[str, ...],
    legacy: Processor | None,
) -> None:
    """Add the entries that the loader of one ABI would accept, in the order in which it would take them.

    That is the best named one; else the first plain one, where legacy ones count as plain if the processor has all
    their capabilities (glibc ``elf/dl-cache.c``, ``search_cache``).
    """
    better: dict[str, list[tuple[int, CacheEntry]]] = {}
    plain: dict[str, list[CacheEntry]] = {}
    for entry in parse_cache(cached, little_endian=abi.little_endian):
        if entry.flags != flags:
            continue
        found = CacheEntry(entry.path, entry.flags, entry.hwcap_name)
        if entry.hwcap_name is not None:
            if entry.hwcap_name in named:
                better.setdefault(entry.name, []).append((named.index(entry.hwcap_name), found))
        elif entry.hwcap == 0 or (legacy is not None and legacy.has(entry.hwcap)):
            plain.setdefault(entry.name, []).append(found)
    for name, ranked in better.items():
        ranked.sort(key=lambda item: item[0])
        entries.setdefault(name, []).extend(found for _, found in ranked)
    for name, unranked in plain.items():
        entries.setdefault(name, []).extend(unranked)


def _read(files: DiskFileSystem, path: str) -> bytes:
    """Return the bytes of a file of the tree, none when it cannot be read."""
    location = files.location(path)
    if location is None:
        return b""
    try:
        with open(location, "rb") as file:
            return file.read(_FILE_LIMIT)
    except OSError:
        return b""


def _read_loader(files: DiskFileSystem, path: str) -> _Loader:
    data = _read(files, path) if path else b""
    if not data or "ld-musl" in path:
        return _Loader((), None)
    banner = re.search(rb"release version (\d+)\.(\d+)", data)
    if banner is None:
        # Before 2.33 the loader carried no banner, and the file was named ld-2.31.so.
        banner = re.search(rb"ld-(\d+)\.(\d+)\.so$", os.fsencode(files.real_path(path) or ""))
    version = None if banner is None else (int(banner[1]), int(banner[2]))
    return _Loader(_built_in_directories(data), version)


def _built_in_directories(data: bytes) -> tuple[str, ...]:
    """Return ``system_dirs`` of glibc's ``elf/dl-load.c``: absolute paths that end with a slash, one after the other.

    It is the first such list in the file whose members all speak of ``lib``.
    """
    position = data.find(b"/\0")
    while position >= 0:
        # No NUL need come before the first one: numbers may.
        head = _PATH_AT_END.search(data, max(position - _PATH_LIMIT, 0), position)
        found: list[str] = []
        start = -1 if head is None else head.start()
        while start >= 0 and data.startswith(b"/", start):
            end = data.find(b"\0", start)
            text = data[start:end]
            if end < 0 or not text.endswith(b"/") or b"lib" not in text:
                break
            found.append(os.fsdecode(text.rstrip(b"/")))
            start = end + 1
        if found:
            return tuple(found)
        position = data.find(b"/\0", position + 1)
    return ()


def _usual_directories(files: DiskFileSystem, machine: _Machine) -> tuple[str, ...]:
    """Return what a loader that is not there would search."""
    if machine.triplet and any(files.exists(f"{parent}/{machine.triplet}") for parent in ("/lib", "/usr/lib")):
        return (f"/lib/{machine.triplet}", f"/usr/lib/{machine.triplet}", "/lib", "/usr/lib")
    if machine.lib != "lib" and not files.exists(f"/{machine.lib}") and not files.exists(f"/usr/{machine.lib}"):
        return ("/lib", "/usr/lib")
    return (f"/{machine.lib}", f"/usr/{machine.lib}")


def _lib(directories: tuple[str, ...], machine: _Machine) -> str:
    """Return what ``$LIB`` expands to: the name of the first directory, with ``lib/`` before a multiarch triplet."""
    name = os.path.basename(directories[0])
    return f"lib/{name}" if name == machine.triplet else name


def _libc(
    files: DiskFileSystem, root: str, interpreters: Mapping[Abi, str], directories: Mapping[Abi, tuple[str, ...]]
) -> str:
    """Return the C library: what the environment's programs ask for decides, else what is installed."""
    if any(os.path.basename(path).startswith("ld-musl-") for path in interpreters.values()):
        return "musl"
    if any(os.path.basename(path).startswith("ld") for path in interpreters.values()):
        return "glibc"
    if any(files.exists(_MACHINES[abi].interpreter) for abi in directories if abi in _MACHINES):
        return "glibc"
    if any(name.startswith("ld-musl-") for name in files.names(files.real_directory("/lib") or "/lib")):
        return "musl"
    on_linux = sys.platform == "linux" or root != "/"
    return "glibc" if on_linux else "none"
