"""Keeps every file that a run will touch, by hard link, and brings them back byte for byte.

A link costs no space and no time, and keeps mode, owner and times, since it is the same file. Nothing is ever written
into an existing file: it may be a hard link into uv's cache.
"""

import errno
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

from safe_uninstall.execute.journal import sync_directory

MANIFEST = "manifest.jsonl"
"""Lists what a stash holds; written last, and deleted first."""

TEMPORARY_SUFFIX = ".safe-uninstall"
"""Ends the name of a new file until it is renamed into its place."""
CANNOT_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS, errno.EACCES})
"""Why a link may be impossible where a copy is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One entry of the stash."""

    path: str
    """Absolute path in the environment."""
    kind: str
    """``file``, ``link`` or ``directory``."""
    name: str
    """File name in the stash; empty for directories."""
    mode: int
    """Permission bits."""
    size: int
    """Bytes of a file."""
    linked: bool
    """Whether the stash holds the very file, and not a copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrestored:
    """Something that could not be brought back."""

    path: str
    reason: str


class Stash:
    """The stash of one transaction."""

    def __init__(self, directory: str) -> None:
        """Use ``directory``, on the file system of the environment."""
        self._directory = directory
        self._entries: list[Kept] = []

    @property
    def entries(self) -> tuple[Kept, ...]:
        """What is kept, in the order in which it was taken; directories first."""
        return tuple(self._entries)

    @property
    def size(self) -> int:
        """Bytes of the files that are kept, whether or not they take room of their own."""
        return sum(entry.size for entry in self._entries if entry.kind == "file")

    def location(self, entry: Kept) -> str:
        """Return the path of a kept file or link in the stash."""
        return os.path.join(self._directory, entry.name)

    def keep(self, paths: Iterable[str], directories: Iterable[str]) -> None:
        """Link files into the stash and note directories; on return all of it is on disk.

        Args:
            paths: absolute paths of files and links; those that do not exist are passed over.
            directories: absolute paths of directories that may vanish, parents before children.

        Raises:
            OSError: a file can neither be linked nor copied; the environment has not been touched.
        """
        os.mkdir(self._directory, 0o700)
        for directory in directories:
            status = os.lstat(directory)
            if stat.S_ISDIR(status.st_mode):
                self._entries.append(_kept(directory, "directory", "", status, linked=True))
        for number, path in enumerate(paths):
            try:
                status = os.lstat(path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            if stat.S_ISDIR(status.st_mode):
                continue
            name = str(number)
            linked = _link_or_copy(path, os.path.join(self._directory, name), status)
            kind = "link" if stat.S_ISLNK(status.st_mode) else "file"
            self._entries.append(_kept(path, kind, name, status, linked=linked))
        self._write_manifest()

    def load(self) -> bool:
        """Read back what an earlier run kept; False when its stash was never completed."""
        try:
            with open(os.path.join(self._directory, MANIFEST), encoding="ascii") as file:
                self._entries = [Kept(**json.loads(line)) for line in file]
        except (OSError, ValueError, TypeError):
            return False
        return True

    def put_back(self, paths: Iterable[str] | None = None) -> tuple[Unrestored, ...]:
        """Bring back what is gone or differs; what is still there, the very same file, is left alone.

        Args:
            paths: only these, and the directories above them; None: everything, as it was.

        Returns:
            What could not be brought back. The stash still holds it.
        """
        wanted = None if paths is None else set(paths)
        failed: list[Unrestored] = []
        directories = [entry for entry in self._entries if entry.kind == "directory"]
        files = [entry for entry in self._entries if entry.kind != "directory"]
        if wanted is not None:
            files = [entry for entry in files if entry.path in wanted]
            parents = {parent for entry in files for parent in _parents(entry.path)}
            directories = [entry for entry in directories if entry.path in parents or entry.path in wanted]
        for entry in directories:
            failed += _attempt(_restore_directory, entry)
        for entry in files:
            failed += _attempt(self._restore_file, entry)
        return tuple(failed)

    def differences(self) -> tuple[str, ...]:
        """Return the paths that are not as they were kept: gone, of another kind, another file, other bytes."""
        return tuple(entry.path for entry in self._entries if not self.is_as_kept(entry))

    def holds(self, path: str) -> bool:
        """Return whether the file at ``path`` is the one that was kept, by identity or, for copies, by its bytes."""
        return any(entry.path == path and self.is_as_kept(entry) for entry in self._entries)

    def is_as_kept(self, entry: Kept) -> bool:
        """Return whether the environment has the very file, or where it was copied, one with its bytes and mode."""
        try:
            now = os.lstat(entry.path)
            if entry.kind == "directory":
                return stat.S_ISDIR(now.st_mode)
            kept_path = self.location(entry)
            kept = os.lstat(kept_path)
            if (now.st_dev, now.st_ino) == (kept.st_dev, kept.st_ino):
                return True
            if stat.S_IFMT(now.st_mode) != stat.S_IFMT(kept.st_mode) or entry.linked:
                return False
            if entry.kind == "link":
                return os.readlink(entry.path) == os.readlink(kept_path)
            return now.st_mode == kept.st_mode and _same_bytes(entry.path, kept_path)
        except OSError:
            return False

    def drop(self) -> None:
        """Delete the stash, as far as that is possible. Only after a commit or a complete roll back."""
        import shutil

        # Without its manifest what is left after a crash or an error is not taken for a stash.
        try:
            os.unlink(os.path.join(self._directory, MANIFEST))
        except OSError:
            pass
        shutil.rmtree(self._directory, ignore_errors=True)

    def _restore_file(self, entry: Kept) -> None:
        if self.is_as_kept(entry):
            return
        source = self.location(entry)
        directory, name = os.path.split(entry.path)
        temporary = os.path.join(directory, f".{name[:200]}{TEMPORARY_SUFFIX}")
        _remove(temporary)
        _link_or_copy(source, temporary, os.lstat(source))
        # Renaming is atomic, and takes the place of whatever is there; but renaming one link of a file onto another
        # does nothing at all (rename(2)), hence the removal afterwards.
        os.rename(temporary, entry.path)
        _remove(temporary)

    def _write_manifest(self) -> None:
        path = os.path.join(self._directory, MANIFEST)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            for entry in self._entries:
                file.write(json.dumps(asdict(entry)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self._directory)


def _kept(path: str, kind: str, name: str, status: os.stat_result, *, linked: bool) -> Kept:
    return Kept(path=path, kind=kind, name=name, mode=stat.S_IMODE(status.st_mode), size=status.st_size, linked=linked)


def _link_or_copy(source: str, target: str, status: os.stat_result) -> bool:
    """Give a file a second name, or copy it with mode, owner and times; return whether it is the very file."""
    try:
        os.link(source, target, follow_symlinks=False)
        return True
    except OSError as error:
        if error.errno not in CANNOT_LINK:
            raise
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(source), target)
    else:
        import shutil

        shutil.copy2(source, target, follow_symlinks=False)
    try:
        os.chown(target, status.st_uid, status.st_gid, follow_symlinks=False)
    except PermissionError:
        # Only root may give files away; the copy then belongs to who runs this.
        pass
    return False


def _restore_directory(entry: Kept) -> None:
    if not os.path.isdir(entry.path):
        os.mkdir(entry.path)
    if stat.S_IMODE(os.lstat(entry.path).st_mode) != entry.mode:
        os.chmod(entry.path, entry.mode)


def _attempt(restore: Callable[[Kept], None], entry: Kept) -> Iterator[Unrestored]:
    try:
        restore(entry)
    except OSError as error:
        yield Unrestored(path=entry.path, reason=error.strerror or str(error))


def _parents(path: str) -> Iterator[str]:
    parent = os.path.dirname(path)
    while parent != os.path.dirname(parent):
        yield parent
        parent = os.path.dirname(parent)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _same_bytes(first: str, second: str) -> bool:
    import filecmp

    filecmp.clear_cache()
    return filecmp.cmp(first, second, shallow=False)
