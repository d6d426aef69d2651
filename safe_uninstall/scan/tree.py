"""Where an environment is looked for: on this machine, or in a root file system that is mounted somewhere.

A mounted tree has the paths that its own processes would see: an absolute link in it leads to a path of the tree, and
``..`` never leaves it (chroot(2)). Nothing in it is ever run: it may be of another machine.
"""

import os
import posixpath

from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.filesystem import EntryKind
from safe_uninstall.scan.disk import DiskFileSystem
from safe_uninstall.scan.elf import ElfError, read_elf
from safe_uninstall.scan.metadata import read_text


class Tree:
    """Answers what ``os.path`` would answer a process that has ``root`` as its root directory."""

    def __init__(self, root: str = "/") -> None:
        """Look at the tree whose top is the absolute path ``root``, its links resolved."""
        self.root = root
        self._files = DiskFileSystem(root)

    @property
    def is_host(self) -> bool:
        """Whether it is this machine's own."""
        return self.root == "/"

    def location(self, path: str) -> str | None:
        """Return where the host opens what ``path`` leads to, None when it leads nowhere."""
        return self._files.location(path)

    def real(self, path: str) -> str:
        """Return ``path`` with every link resolved; what leads nowhere is only made plain."""
        if self.is_host:
            return os.path.realpath(path)
        directory = self._files.real_directory(posixpath.dirname(path))
        plain = posixpath.normpath(path) if directory is None else posixpath.join(directory, posixpath.basename(path))
        return self._files.real_path(path) or plain

    def is_file(self, path: str) -> bool:
        """Return whether ``path`` leads to a regular file."""
        location = self.location(path)
        return location is not None and os.path.isfile(location)

    def is_directory(self, path: str) -> bool:
        """Return whether ``path`` leads to a directory."""
        location = self.location(path)
        return location is not None and os.path.isdir(location)

    def exists(self, path: str) -> bool:
        """Return whether ``path`` leads to anything."""
        location = self.location(path)
        return location is not None and os.path.exists(location)

    def is_link(self, path: str) -> bool:
        """Return whether ``path`` itself is a symbolic link."""
        if self.is_host:
            return os.path.islink(path)
        directory, name = posixpath.split(path)
        real = self._files.real_directory(directory)
        entry = None if real is None else self._files.entry(real, name)
        return entry is not None and entry.kind is EntryKind.SYMLINK

    def is_program(self, path: str) -> bool:
        """Return whether ``path`` leads to a file that may be executed."""
        location = self.location(path)
        return location is not None and os.path.isfile(location) and os.access(location, os.X_OK)

    def names(self, path: str) -> list[str]:
        """Return the names in the directory that ``path`` leads to.

        Raises:
            OSError: it is none, or may not be listed.
        """
        location = self.location(path)
        if location is None:
            raise FileNotFoundError(2, "No such file or directory", path)
        return os.listdir(location)

    def text(self, path: str) -> str | None:
        """Return a small file as text, None when it cannot be read."""
        return read_text(self.location(path))

    def elf(self, path: str) -> ElfObject | None:
        """Return the ELF facts of what ``path`` leads to, None when it is no readable ELF file."""
        real = self.real(path)
        try:
            return read_elf(real, real_path=real, location=self.location(real))
        except ElfError:
            return None


HOST = Tree()
"""This machine's own tree."""
