"""Search paths of the dynamic loader: DT_RPATH, DT_RUNPATH and LD_LIBRARY_PATH as lists of directories.

The rules are those of ``fillin_rpath``, ``is_dst`` and ``_dl_dst_substitute`` in glibc's ``elf/dl-load.c``.
"""

import posixpath
import re
from typing import NamedTuple

from safe_uninstall.analysis.paths import View
from safe_uninstall.model.elf import Abi
from safe_uninstall.model.linkage import How
from safe_uninstall.model.system import SystemLibraries

_TOKEN = re.compile(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_]))")


class Directory(NamedTuple):
    """One directory of a search path that exists."""

    path: str
    """Canonical."""
    written: str
    """The entry as written, tokens unexpanded."""


class SearchPath:
    """A list of directories to search; interned, so that its number stands for it in memo keys."""

    __slots__ = ("directories", "how", "number")

    def __init__(self, number: int, how: How, directories: tuple[Directory, ...]) -> None:
        """Keep the directories in search order, and which step of the search they belong to."""
        self.number = number
        self.how = how
        self.directories = directories


class SearchPaths:
    """Makes search paths out of what objects and the environment say, each but once."""

    def __init__(self, view: View, system: SystemLibraries, working_directory: str | None) -> None:
        """Expand over ``view`` and ``system``; relative entries start from ``working_directory`` if there is one."""
        self._view = view
        self._system = system
        self._working_directory = working_directory
        self._expanded: dict[tuple[str, str, Abi, How], SearchPath] = {}
        self._interned: dict[tuple[How, tuple[Directory, ...]], SearchPath] = {}
        self._abis: dict[Abi, int] = {}
        self._places: dict[tuple[str, Abi], tuple[str, ...]] = {}
        self._defaults: dict[Abi, SearchPath] = {}

    def expand(self, text: str, origin: str, abi: Abi, how: How) -> SearchPath:
        """Return the search path for a DT_RPATH or DT_RUNPATH, its entries separated by colons.

        Args:
            text: the entry as it stands in the file.
            origin: directory by which the object was opened.
            abi: of the object; decides what ``$LIB`` and ``$PLATFORM`` mean.
            how: ``RPATH`` or ``RUNPATH``.
        """
        key = (text, origin, abi, how)
        path = self._expanded.get(key)
        if path is None:
            path = self._expanded[key] = self._intern(how, text.split(":"), origin, abi)
        return path

    def library_path(self, entries: tuple[str, ...], origin: str, abi: Abi) -> SearchPath:
        """Return the search path for LD_LIBRARY_PATH; its ``$ORIGIN`` is the main program's directory."""
        return self._intern(How.LD_LIBRARY_PATH, list(entries), origin, abi)

    def defaults(self, abi: Abi) -> SearchPath:
        """Return the host's default directories for an ABI."""
        path = self._defaults.get(abi)
        if path is None:
            entries = list(self._system.default_directories.get(abi, ()))
            path = self._defaults[abi] = self._intern(How.DEFAULT, entries, "/", abi)
        return path

    def is_default(self, path: str, abi: Abi) -> bool:
        """Return whether a path of the cache begins with a default directory, however deep below it lies."""
        return path.startswith(tuple(f"{place}/" for place in self._system.default_directories.get(abi, ())))

    def with_capabilities(self, directory: str, abi: Abi) -> tuple[str, ...]:
        """Return the canonical directories to try for ``directory``: hardware-capability ones first, itself last."""
        key = (directory, abi)
        places = self._places.get(key)
        if places is None:
            resolved = (
                self._view.real_directory(posixpath.join(directory, capability))
                for capability in self._system.hwcaps.get(abi, ())
            )
            places = self._places[key] = (*(place for place in resolved if place is not None), directory)
        return places

    def abi_number(self, abi: Abi) -> int:
        """Return a small number that stands for the ABI in memo keys."""
        return self._abis.setdefault(abi, len(self._abis))

    def expand_tokens(self, text: str, origin: str, abi: Abi) -> str:
        """Return ``text`` with ``$ORIGIN``, ``$LIB`` and ``$PLATFORM``, braced or not, expanded."""
        if "$" not in text:
            return text
        values = {
            "ORIGIN": origin,
            "LIB": self._system.lib.get(abi, "lib"),
            "PLATFORM": self._system.platform.get(abi, ""),
        }
        return _TOKEN.sub(lambda match: values[match[1] or match[2]], text)

    def absolute(self, path: str) -> str | None:
        """Return ``path`` made absolute, None when it is relative and no working directory is known."""
        if path.startswith("/"):
            return path
        return None if self._working_directory is None else posixpath.join(self._working_directory, path)

    def _intern(self, how: How, entries: list[str], origin: str, abi: Abi) -> SearchPath:
        directories: dict[str, Directory] = {}
        for written in entries:
            # An empty entry is the working directory; one that expands to nothing is none.
            expanded = self.expand_tokens(written, origin, abi) if written else "."
            path = self.absolute(expanded) if expanded else None
            real = None if path is None else self._view.real_directory(path)
            if real is not None:
                directories.setdefault(real, Directory(real, written))
        key = (how, tuple(directories.values()))
        path_ = self._interned.get(key)
        if path_ is None:
            path_ = self._interned[key] = SearchPath(len(self._interned), how, key[1])
        return path_
