"""The file system as ``analysis`` asks for it: names by directory, ELF facts by path, each read from disk once."""

import os
from collections.abc import Callable, Iterator, Mapping

from safe_uninstall.analysis.paths import View
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.filesystem import DIRECTORY, FILE, Entry, EntryKind
from safe_uninstall.scan.elf import ElfError, read_elf

Prune = Callable[[str, Mapping[str, Entry]], bool]
"""Whether a walk leaves out a directory, given its path and its names."""

_LINK = Entry(EntryKind.SYMLINK)
"""Stands for a link in a listing until somebody asks where it leads: most links are never asked for."""

# What the module ``stat`` calls S_IFMT, S_IFLNK and S_IFDIR, without importing it.
_TYPE, _TYPE_LINK, _TYPE_DIRECTORY = 0o170000, 0o120000, 0o040000

_LISTED_AFTER = 32
"""Names asked of a directory one by one before it is listed as a whole. Searching for a few libraries must not
list a directory of thousands; searching for many must not ask the kernel for each."""


class DiskFileSystem:
    """Implements ``model.filesystem.FileSystem`` over the disk, or over a tree mounted somewhere else.

    All paths, given and returned, are those inside the tree: under ``root="/mnt"`` the path ``/usr/lib`` is the
    directory ``/mnt/usr/lib``, and a link that holds ``/usr/lib`` leads there too.
    """

    def __init__(self, root: str = "/") -> None:
        """Look at the tree whose top is the absolute path ``root``."""
        self._prefix = root.rstrip("/")
        self._listings: dict[str, dict[str, Entry]] = {}
        self._asked: dict[str, dict[str, Entry | None]] = {}
        self._forbidden: dict[str, str] = {}
        self._objects: dict[str, ElfObject | None] = {}
        self._view = View(self)

    @property
    def forbidden(self) -> Mapping[str, str]:
        """Directories that could not be listed so far, each with the reason in words."""
        return self._forbidden

    def location(self, path: str) -> str | None:
        """Return where the host opens what the absolute ``path`` leads to, None when it leads nowhere in the tree.

        The host would follow absolute links out of a tree mounted elsewhere; so they are resolved first there.
        """
        if not self._prefix:
            return path
        real = self._view.real_path(path)
        return None if real is None else self._prefix + real

    def entry(self, directory: str, name: str) -> Entry | None:
        """Return the entry ``name`` of the canonical ``directory``, None when absent."""
        listing = self._listings.get(directory)
        if listing is None:
            return self._ask(directory, name)
        found = listing.get(name)
        if found is _LINK:
            found = self._lstat(directory, name)
            if found is None:
                del listing[name]
            else:
                listing[name] = found
        return found

    def object(self, path: str) -> ElfObject | None:
        """Return the ELF facts of the regular file at the canonical ``path``, None when it is no readable ELF file."""
        try:
            return self._objects[path]
        except KeyError:
            try:
                found = read_elf(path, real_path=path, location=self._prefix + path)
            except ElfError:
                found = None
            self._objects[path] = found
            return found

    def remember(self, path: str, found: ElfObject | None) -> None:
        """Keep what somebody else has read of the regular file at ``path``, so that ``object`` need not."""
        self._objects[path] = found

    def exists(self, path: str) -> bool:
        """Return whether the absolute ``path`` leads to a file or directory; a dangling link does not."""
        return self._view.real_path(path) is not None

    def real_directory(self, path: str) -> str | None:
        """Return the canonical path of the directory that the absolute ``path`` leads to, None when to none."""
        # What a walk has listed was named by its canonical path.
        if path in self._listings:
            return path
        return self._view.real_directory(path)

    def real_path(self, path: str) -> str | None:
        """Return the path with every link resolved, None when it leads nowhere."""
        return self._view.real_path(path)

    def names(self, directory: str) -> Mapping[str, Entry]:
        """Return all names of the canonical ``directory``; empty when it is absent or may not be listed.

        The targets of links are not read: ``entry`` tells them.
        """
        listing = self._listings.get(directory)
        return self._list(directory) if listing is None else listing

    def walk(self, directory: str, prune: Prune | None = None) -> Iterator[str]:
        """Yield the canonical path of every file and link below a directory; links are not followed.

        Args:
            directory: canonical.
            prune: asked of every directory below, before its names are yielded.
        """
        for parent, names in self.walk_directories(directory, prune):
            head = "" if parent == "/" else parent
            for name, entry in names.items():
                if entry is not DIRECTORY:
                    yield f"{head}/{name}"

    def walk_directories(self, directory: str, prune: Prune | None = None) -> Iterator[tuple[str, Mapping[str, Entry]]]:
        """Yield every directory from ``directory`` down with its names, as ``walk`` does, parents first."""
        pending = [directory]
        while pending:
            current = pending.pop()
            names = self._listings.get(current)
            if names is None:
                names = self._list(current)
            if prune is not None and current is not directory and prune(current, names):
                continue
            yield current, names
            head = "" if current == "/" else current
            pending += [f"{head}/{name}" for name, entry in names.items() if entry is DIRECTORY]

    def _list(self, directory: str) -> dict[str, Entry]:
        listing: dict[str, Entry] = {}
        try:
            with os.scandir(self._prefix + directory) as entries:
                for item in entries:
                    if item.is_symlink():
                        listing[item.name] = _LINK
                    elif item.is_dir():
                        listing[item.name] = DIRECTORY
                    else:
                        listing[item.name] = FILE
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            self._forbidden[directory] = error.strerror or str(error)
            return {}
        # What has been answered already stays so, even if the disk changed in between.
        for name, entry in self._asked.pop(directory, {}).items():
            if entry is None:
                listing.pop(name, None)
            else:
                listing[name] = entry
        self._listings[directory] = listing
        return listing

    def _ask(self, directory: str, name: str) -> Entry | None:
        """Answer for a directory that has not been listed."""
        asked = self._asked.setdefault(directory, {})
        if name in asked:
            return asked[name]
        if len(asked) >= _LISTED_AFTER and directory not in self._forbidden:
            self._list(directory)
            if directory in self._listings:
                return self.entry(directory, name)
        entry = asked[name] = self._lstat(directory, name)
        return entry

    def _lstat(self, directory: str, name: str) -> Entry | None:
        path = f"{self._prefix}{directory}/{name}"
        try:
            kind = os.lstat(path).st_mode & _TYPE
            if kind == _TYPE_LINK:
                return Entry(EntryKind.SYMLINK, os.readlink(path))
        except OSError:
            return None
        return DIRECTORY if kind == _TYPE_DIRECTORY else FILE
