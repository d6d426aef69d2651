"""Paths as the kernel resolves them, over the files on disk or over those that a plan would leave."""

import posixpath
from collections.abc import Mapping, Set
from types import MappingProxyType
from typing import Literal

from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.filesystem import DIRECTORY, FILE, Entry, EntryKind, FileSystem

_MAXIMUM_LINKS = 40
"""Symbolic links followed before the kernel gives up with ELOOP (path_resolution(7))."""

LOOP: Literal[""] = ""
"""What a path leads to that goes through more links than the kernel follows (ELOOP): neither a file nor nothing."""

_NOTHING: Mapping[str, ElfObject] = MappingProxyType({})


class View:
    """A file system with some paths taken away and some ELF files put there.

    The baseline is a view with neither; the outcome of a plan is a view without the paths it deletes and
    with the objects it restores or installs. All answers are memoised.
    """

    def __init__(
        self, files: FileSystem, *, deleted: Set[str] = frozenset(), added: Mapping[str, ElfObject] = _NOTHING
    ) -> None:
        """Look at ``files`` without the canonical paths ``deleted`` and with the canonical paths ``added``.

        A path that is in both is there: it is deleted first, then written.
        """
        self._files = files
        self._deleted = deleted
        self._added = added
        self._added_directories = _parents(added)
        self._directories: dict[str, str | None] = {"/": "/"}

    def real_directory(self, path: str) -> str | None:
        """Return the canonical path of the directory ``path``.

        Args:
            path: absolute; may hold ``.``, ``..``, doubled slashes and symbolic links. ``..`` leads to the parent
                of what a link points to, as path_resolution(7) says.

        Returns:
            The path without any of those, or None when it does not lead to a directory.
        """
        try:
            return self._directories[path]
        except KeyError:
            found = self._directories[path] = self._resolve_directory(path, _MAXIMUM_LINKS)
            return found

    def real_path(self, path: str) -> str | None:
        """Return the path of the file or directory that ``path`` leads to, every link followed; None when nothing."""
        directory, name = posixpath.split(path)
        if name in ("", ".", ".."):
            return self.real_directory(path)
        real = self.real_directory(directory)
        return None if real is None else self._follow(real, name, _MAXIMUM_LINKS) or None

    def canonical(self, path: str) -> str | None:
        """Return ``path`` with its directory resolved and the last component as it is, None without that directory."""
        directory, name = posixpath.split(path)
        real = self.real_directory(directory)
        return None if real is None else posixpath.join(real, name)

    def exists(self, directory: str, name: str) -> bool:
        """Return whether the canonical ``directory`` has an entry ``name``, a dangling link included."""
        return self._entry(directory, name) is not None

    def locate(self, directory: str, name: str) -> str | None:
        """Return the real path that ``name`` in the canonical ``directory`` leads to.

        Returns:
            The path of a file or directory, None when there is nothing, ``LOOP`` for links that lead to each other.
        """
        entry = self._entry(directory, name)
        if entry is None:
            return None
        if entry.kind is not EntryKind.SYMLINK:
            return _join(directory, name)
        return self._follow(directory, name, _MAXIMUM_LINKS)

    def object(self, real_path: str) -> ElfObject | None:
        """Return the ELF facts of the file at ``real_path`` (a result of ``locate``), None when it is no ELF file."""
        added = self._added.get(real_path)
        return added if added is not None else self._files.object(real_path)

    def _entry(self, directory: str, name: str) -> Entry | None:
        path = _join(directory, name)
        if path in self._added:
            return FILE
        if path in self._added_directories:
            return DIRECTORY
        if path in self._deleted:
            return None
        return self._files.entry(directory, name)

    def _resolve_directory(self, path: str, links: int) -> str | None:
        directory, name = posixpath.split(path.rstrip("/") or "/")
        parent = "/" if directory == "/" else self.real_directory(directory)
        if parent is None or name in ("", "."):
            return parent
        if name == "..":
            return posixpath.dirname(parent)
        entry = self._entry(parent, name)
        if entry is None or entry.kind is EntryKind.FILE:
            return None
        if entry.kind is EntryKind.DIRECTORY:
            return _join(parent, name)
        found = self._follow(parent, name, links)
        if not found:
            return None
        return found if found == "/" or self._is_directory(found) else None

    def _is_directory(self, real_path: str) -> bool:
        entry = self._entry(*posixpath.split(real_path))
        return entry is not None and entry.kind is EntryKind.DIRECTORY

    def _follow(self, directory: str, name: str, links: int) -> str | None:
        """Return the real path of an entry, following at most ``links`` links in its last component; maybe ``LOOP``."""
        while True:
            entry = self._entry(directory, name)
            if entry is None:
                return None
            if entry.kind is not EntryKind.SYMLINK:
                return _join(directory, name)
            if links == 0:
                return LOOP
            if not entry.target:
                return None
            links -= 1
            target = posixpath.join(directory, entry.target)
            head, name = posixpath.split(target.rstrip("/") or "/")
            parent = self._resolve_through(head, links)
            if parent is None:
                return None
            if name in ("", ".", ".."):
                return posixpath.dirname(parent) if name == ".." else parent
            directory = parent

    def _resolve_through(self, path: str, links: int) -> str | None:
        """Resolve a directory met inside a link; links that lead to each other end here instead of recursing."""
        if path in self._directories:
            return self._directories[path]
        if links == 0:
            return None
        self._directories[path] = None
        found = self._directories[path] = self._resolve_directory(path, links)
        return found


def _join(directory: str, name: str) -> str:
    return f"/{name}" if directory == "/" else f"{directory}/{name}"


def _parents(paths: Mapping[str, ElfObject]) -> frozenset[str]:
    parents = set()
    for path in paths:
        parent = posixpath.dirname(path)
        while parent not in parents and parent != "/":
            parents.add(parent)
            parent = posixpath.dirname(parent)
    return frozenset(parents)
