"""Questions about single paths, asked of the snapshot's file system."""

from collections.abc import Iterable

from safe_uninstall.model.filesystem import EntryKind, FileSystem


class Files:
    """Whether canonical paths exist, and what lies beside them."""

    def __init__(self, files: FileSystem) -> None:
        """Ask ``files``."""
        self._files = files

    def exists(self, path: str) -> bool:
        """Return whether there is an entry at a canonical path; a dangling link counts, since it can be deleted."""
        directory, _, name = path.rpartition("/")
        return self._files.entry(directory or "/", name) is not None

    def kind(self, path: str) -> EntryKind | None:
        """Return what there is at a canonical path, the last component not followed; None for nothing."""
        directory, _, name = path.rpartition("/")
        entry = self._files.entry(directory or "/", name)
        return None if entry is None else entry.kind

    def names(self, directory: str) -> Iterable[str]:
        """Return the names in a canonical directory, empty when there is none."""
        return self._files.names(directory)


def companion_caches(source: str, files: Files) -> list[str]:
    """Return the byte-code files in ``__pycache__`` that belong to a Python source (PEP 3147), of any interpreter."""
    directory, _, name = source.rpartition("/")
    stem = name[: -len("py")]
    cache = f"{directory}/__pycache__"
    return [f"{cache}/{entry}" for entry in files.names(cache) if entry.startswith(stem) and entry.endswith(".pyc")]
