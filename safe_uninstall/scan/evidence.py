"""Costly facts about the contents of files, read when ``analysis`` asks for them, and once.

What reads them is imported only then: most runs ask for little of it.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from safe_uninstall.model.elf import DlopenNote, SymbolTable
from safe_uninstall.scan.disk import DiskFileSystem

_CHUNK = 1 << 20
"""Bytes read at once."""
_OVERLAP = 1 << 12
"""Bytes by which two chunks of a source overlap; longer than any file name."""
_PARSED_LIMIT = 2 << 20
"""Bytes of a Python source that is parsed."""
_TYPE, _TYPE_REGULAR = 0o170000, 0o100000


class DiskEvidence:
    """Implements ``model.filesystem.Evidence`` over the files of a tree."""

    def __init__(self, files: DiskFileSystem) -> None:
        """Read files where ``files`` finds them."""
        self._files = files
        self._sizes: dict[str, int | None] = {}
        self._digests: dict[tuple[str, str], str | None] = {}
        self._sources: dict[str, dict[str, bool]] = {}
        self._strings: dict[str, dict[str, bool]] = {}
        self._data: dict[str, dict[str, bool]] = {}
        self._symbols: dict[str, SymbolTable | None] = {}
        self._notes: dict[str, tuple[DlopenNote, ...]] = {}

    def size(self, path: str) -> int | None:
        """Return the size in bytes of the file at ``path``, None when there is no file."""
        if path not in self._sizes:
            self._sizes[path] = self._read_size(path)
        return self._sizes[path]

    def digest(self, path: str, algorithm: str) -> str | None:
        """Return the digest of the file at ``path`` as a RECORD writes it, None when the file cannot be read."""
        key = (path, algorithm)
        if key not in self._digests:
            self._digests[key] = self._read_digest(path, algorithm)
        return self._digests[key]

    def sources_naming(self, names: frozenset[str], paths: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return which of the Python sources ``paths`` hold which of ``names`` as text.

        A name counts where no letter, digit or underscore adjoins it, and no further version number: ``libx.so`` does
        not stand in ``libx.so.1``.

        Returns:
            Name to sorted paths; names that stand nowhere are left out.
        """
        found: dict[str, list[str]] = {}
        for path in sorted(set(paths)):
            known = self._sources.setdefault(path, {})
            unknown = frozenset(names - known.keys())
            if unknown:
                standing = self._read_source(path, unknown)
                known.update((name, name in standing) for name in unknown)
            for name in names:
                if known[name]:
                    found.setdefault(name, []).append(path)
        return {name: tuple(where) for name, where in found.items()}

    def strings_naming(self, names: frozenset[str], paths: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return which of the Python sources ``paths`` hold which of ``names`` in a string.

        Only what holds a name as text is parsed, so that it costs little more than ``sources_naming``.

        Returns:
            Name to sorted paths; names that stand nowhere are left out.
        """
        by_path: dict[str, set[str]] = {}
        for name, where in self.sources_naming(names, paths).items():
            for path in where:
                by_path.setdefault(path, set()).add(name)
        found: dict[str, list[str]] = {}
        for path in sorted(by_path):
            known = self._strings.setdefault(path, {})
            unknown = frozenset(by_path[path] - known.keys())
            if unknown:
                standing = self._read_strings(path, unknown)
                known.update((name, name in standing) for name in unknown)
            for name in by_path[path]:
                if known[name]:
                    found.setdefault(name, []).append(path)
        return {name: tuple(where) for name, where in found.items()}

    def data_naming(self, names: frozenset[str], path: str) -> frozenset[str]:
        """Return which of ``names`` stand, NUL-terminated, in the read-only data of the ELF file at ``path``."""
        known = self._data.setdefault(path, {})
        unknown = names - known.keys()
        if unknown:
            from safe_uninstall.scan.elf_data import names_in_data

            location = self._files.location(path)
            standing = frozenset[str]() if location is None else names_in_data(location, unknown)
            known.update((name, name in standing) for name in unknown)
        return frozenset(name for name in names if known[name])

    def symbols(self, path: str) -> SymbolTable | None:
        """Return the dynamic symbols of the ELF file at ``path``, None when it has none or cannot be read."""
        if path not in self._symbols:
            from safe_uninstall.scan.elf_symbols import read_symbols

            location = self._files.location(path)
            self._symbols[path] = None if location is None else read_symbols(location)
        return self._symbols[path]

    def dlopen_notes(self, path: str) -> tuple[DlopenNote, ...]:
        """Return the ``.note.dlopen`` entries of the ELF file at ``path``."""
        if path not in self._notes:
            from safe_uninstall.scan.elf_symbols import read_dlopen_notes

            location = self._files.location(path)
            self._notes[path] = () if location is None else read_dlopen_notes(location)
        return self._notes[path]

    def _read_size(self, path: str) -> int | None:
        location = self._files.location(path)
        try:
            status = None if location is None else os.stat(location)
        except OSError:
            return None
        return status.st_size if status is not None and status.st_mode & _TYPE == _TYPE_REGULAR else None

    def _read_digest(self, path: str, algorithm: str) -> str | None:
        import hashlib
        from base64 import urlsafe_b64encode

        if algorithm not in hashlib.algorithms_guaranteed:
            return None
        state = hashlib.new(algorithm, usedforsecurity=False)
        if not state.digest_size:
            # SHAKE has no length of its own, and no RECORD uses it.
            return None
        try:
            for chunk in self._chunks(path):
                state.update(chunk)
        except OSError:
            return None
        return urlsafe_b64encode(state.digest()).rstrip(b"=").decode("ascii")

    def _read_source(self, path: str, names: frozenset[str]) -> frozenset[str]:
        found: set[str] = set()
        wanted = _encoded(names)
        # Names of libraries are most of what is asked for, and few sources hold any.
        common = b".so" if all(b".so" in raw for _, raw in wanted) else b""
        tail = b""
        try:
            for chunk in self._chunks(path):
                text = tail + chunk
                if common not in text:
                    tail = text[-_OVERLAP:]
                    continue
                found.update(name for name, raw in wanted if raw in text and _pattern(raw).search(text))
                tail = text[-_OVERLAP:]
        except OSError:
            pass
        return frozenset(found)

    def _read_strings(self, path: str, names: frozenset[str]) -> frozenset[str]:
        from safe_uninstall.scan.source_strings import names_in_strings

        size = self.size(path)
        if size is None or size > _PARSED_LIMIT:
            # Too long to be written by anybody: as a table it names what it holds.
            return names
        try:
            return names_in_strings(b"".join(self._chunks(path)), names)
        except OSError:
            return frozenset()

    def _chunks(self, path: str) -> Iterator[bytes]:
        """Yield the bytes of a regular file piece by piece.

        Raises:
            OSError: there is no such file, or it cannot be read.
        """
        location = self._files.location(path)
        if location is None or self.size(path) is None:
            # Anything else but a regular file might never come to an end.
            raise FileNotFoundError(path)
        with open(location, "rb", buffering=0) as file:
            while chunk := file.read(_CHUNK):
                yield chunk


@lru_cache
def _encoded(names: frozenset[str]) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, os.fsencode(name)) for name in names if name)


@lru_cache(maxsize=1024)
def _pattern(name: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?<!\w)" + re.escape(name) + rb"(?!\w)(?!\.\d)")
