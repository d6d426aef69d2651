"""Looks into the caches where torch, triton and flashinfer keep what they compiled at run time."""

import os
import re
from collections.abc import Iterator, Mapping

from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.jit_caches import JitCache
from safe_uninstall.scan.elf import ElfError, read_elf

_FILES = 1000
"""ELF files read of one cache."""
_ENTRIES = 20_000
"""Names looked at in one cache."""
_USERS = ("LOGNAME", "USER", "LNAME", "USERNAME")
"""Variables that name the user, as ``getpass.getuser`` asks them."""


class UserCaches:
    """Implements ``model.jit_caches.JitCaches`` over the caches of one user."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        """Look where these environment variables, ``HOME`` among them, say that the caches are."""
        self._variables = variables
        self._read: tuple[JitCache, ...] | None = None

    def read(self) -> tuple[JitCache, ...]:
        """Return the caches that hold ELF files, by name; they are read once, when this is first asked."""
        if self._read is None:
            caches = (_read(name, place) for name, place in sorted(cache_directories(self._variables).items()))
            self._read = tuple(cache for cache in caches if cache.objects)
        return self._read


def cache_directories(variables: Mapping[str, str]) -> dict[str, str]:
    """Return where each cache is, by name, whether or not it is there; nothing for what no variable leads to.

    The rules are those of torch (``utils/cpp_extension.py``, ``_inductor/runtime/cache_dir_utils.py``), of triton
    (``knobs.py``) and of flashinfer (``jit/env.py``).
    """
    home = variables.get("HOME")
    user = next((variables[name] for name in _USERS if variables.get(name)), None)
    found: dict[str, str | None] = {
        "flashinfer": _below(variables.get("FLASHINFER_WORKSPACE_BASE") or home, ".cache/flashinfer"),
        "torch_extensions": variables.get("TORCH_EXTENSIONS_DIR")
        or _below(variables.get("XDG_CACHE_HOME") or _below(home, ".cache"), "torch_extensions"),
        "torchinductor": variables.get("TORCHINDUCTOR_CACHE_DIR"),
        "triton": variables.get("TRITON_CACHE_DIR") or _below(variables.get("TRITON_HOME") or home, ".triton/cache"),
    }
    if not found["torchinductor"] and user:
        name = re.sub(r'[\\/:*?"<>|]', "_", user)
        found["torchinductor"] = _below(variables.get("TMPDIR") or "/tmp", f"torchinductor_{name}")  # noqa: S108
    return {name: place for name, place in found.items() if place}


def _below(directory: str | None, path: str) -> str | None:
    return None if not directory else os.path.join(directory, path)


def _read(name: str, place: str) -> JitCache:
    """Return a cache; where there is none, it holds nothing."""
    directory = os.path.realpath(place)
    objects: dict[str, ElfObject] = {}
    is_whole = True
    for path in _libraries(directory):
        if path is None or len(objects) == _FILES:
            is_whole = False
            break
        try:
            found = read_elf(path)
        except ElfError:
            # A cache holds what was cut off, too; nobody will load that.
            continue
        if found is not None:
            objects[path] = found
    return JitCache(name=name, directory=directory, objects=dict(sorted(objects.items())), is_whole=is_whole)


def _libraries(directory: str) -> Iterator[str | None]:
    """Yield what is called a library below a directory, links not followed; None where there is too much."""
    left = _ENTRIES
    waiting = [directory]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in found:
            left -= 1
            if left < 0:
                yield None
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif entry.name.endswith(".so") or ".so." in entry.name:
                yield entry.path
