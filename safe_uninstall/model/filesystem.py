"""The ports by which the pure analysis asks about files; ``scan`` implements them, tests fake them."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from safe_uninstall.model.elf import DlopenNote, ElfObject, SymbolTable


class EntryKind(Enum):
    """Type of a directory entry, the last component not followed."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"


class Entry(NamedTuple):
    """One directory entry."""

    kind: EntryKind
    target: str | None = None
    """What a symbolic link holds, as written."""


FILE = Entry(EntryKind.FILE)
DIRECTORY = Entry(EntryKind.DIRECTORY)


class FileSystem(Protocol):
    """Names and ELF headers on disk, memoised: two questions about one path get the same answer.

    Paths are absolute, POSIX and canonical: no ``.``, ``..`` or doubled slashes, and no symbolic link in the
    directory part. ``analysis.paths`` turns other spellings into this one.
    """

    def entry(self, directory: str, name: str) -> Entry | None:
        """Return the entry ``name`` of ``directory``, None when absent. Called once per search step: must be cheap."""

    def names(self, directory: str) -> Mapping[str, Entry]:
        """Return all names in a canonical directory; empty when it is absent or may not be listed.

        The entries' kinds are right, but targets of links may be left out: ``entry`` tells them.
        """

    def object(self, path: str) -> ElfObject | None:
        """Return the ELF facts of the regular file at ``path`` (no link), None when it is not a readable ELF file."""


class Evidence(Protocol):
    """Costly facts about the contents of files, read on demand and memoised.

    Every method follows symbolic links, and answers with None or an empty collection where a file cannot
    be read; none raises.
    """

    def size(self, path: str) -> int | None:
        """Return the size in bytes of the file at ``path``."""

    def digest(self, path: str, algorithm: str) -> str | None:
        """Return the digest of the file's bytes as a RECORD writes it: URL-safe base64 without padding.

        Args:
            path: absolute path.
            algorithm: a name that ``hashlib`` guarantees, such as ``sha256``.
        """

    def sources_naming(self, names: frozenset[str], paths: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return which of the Python sources ``paths`` hold which of ``names`` as text: name to sorted paths."""

    def strings_naming(self, names: frozenset[str], paths: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return which of the Python sources ``paths`` hold which of ``names`` in a string: name to sorted paths.

        Comments and docstrings do not count, nor do names in the middle of a sentence.
        """

    def data_naming(self, names: frozenset[str], path: str) -> frozenset[str]:
        """Return which of ``names`` stand, NUL-terminated, in the read-only data of the ELF file at ``path``."""

    def symbols(self, path: str) -> SymbolTable | None:
        """Return the dynamic symbols of the ELF file at ``path``."""

    def dlopen_notes(self, path: str) -> tuple[DlopenNote, ...]:
        """Return the ``.note.dlopen`` entries of the ELF file at ``path``."""
