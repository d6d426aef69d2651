"""Environments in memory, for tests of the pure analysis: no file is read, no file written."""

import base64
import hashlib
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from safe_uninstall.model.distribution import Distribution, Record, RecordRow, RecordState
from safe_uninstall.model.elf import Abi, DlopenNote, ElfObject, FileIdentity, SymbolTable
from safe_uninstall.model.environment import Environment, EnvironmentKind
from safe_uninstall.model.filesystem import DIRECTORY, FILE, Entry, EntryKind
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.system import SystemLibraries

PREFIX = "/env"
SITE = f"{PREFIX}/lib/python3.11/site-packages"
X86_64 = Abi(64, True, 62)
MARKERS: Mapping[str, str] = MappingProxyType(
    {
        "implementation_name": "cpython",
        "implementation_version": "3.11.7",
        "os_name": "posix",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "platform_release": "6.1.0-13-amd64",
        "platform_system": "Linux",
        "platform_version": "#1 SMP",
        "python_full_version": "3.11.7",
        "python_version": "3.11",
        "sys_platform": "linux",
    }
)


@dataclass(frozen=True)
class Link:
    """A symbolic link on the disk in memory."""

    target: str


@dataclass(frozen=True)
class Row:
    """A claim whose row of RECORD is not the plain one: another hash, another size, or none."""

    hash: str = ""
    size: int | None = None
    content: bytes | None = b""
    """What the installation writes; None for nothing."""


Claim = bytes | None | Link | Row
"""What a distribution claims of a path: its bytes; None for a claim that nothing was written for."""


def at(path: str) -> str:
    """Return the canonical path of one relative to site-packages."""
    return posixpath.normpath(posixpath.join(SITE, path))


def record_hash(data: bytes, algorithm: str = "sha256") -> str:
    """Return the hash of a row as RECORD writes it."""
    digest = hashlib.new(algorithm, data).digest()
    return f"{algorithm}={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


class Disk:
    """Implements the ports ``FileSystem`` and ``Evidence`` over a mapping, and counts what is costly."""

    def __init__(self, files: Mapping[str, bytes | Link], objects: Mapping[str, ElfObject] | None = None) -> None:
        """Hold ``files`` by canonical path; directories are those above them."""
        self.files = dict(files)
        self.objects = dict(objects or {})
        self.hashed: list[str] = []
        self.searched: list[str] = []
        self.tables: dict[str, SymbolTable] = {}
        self.notes: dict[str, tuple[DlopenNote, ...]] = {}
        self._names: dict[str, dict[str, Entry]] = {"/": {}}
        for path, content in self.files.items():
            self._add(path, Entry(EntryKind.SYMLINK, content.target) if isinstance(content, Link) else FILE)

    def _add(self, path: str, entry: Entry) -> None:
        directory, name = posixpath.split(path)
        self._names.setdefault(directory, {}).setdefault(name, entry)
        if directory != "/":
            self._add(directory, DIRECTORY)

    def entry(self, directory: str, name: str) -> Entry | None:
        """Return an entry."""
        return self._names.get(directory, {}).get(name)

    def names(self, directory: str) -> Mapping[str, Entry]:
        """Return all entries of a directory."""
        return self._names.get(directory, {})

    def object(self, path: str) -> ElfObject | None:
        """Return ELF facts."""
        return self.objects.get(path)

    def _content(self, path: str) -> bytes | None:
        content = self.files.get(path)
        if isinstance(content, Link):
            return self._content(posixpath.normpath(posixpath.join(posixpath.dirname(path), content.target)))
        return content

    def size(self, path: str) -> int | None:
        """Return a size."""
        content = self._content(path)
        return None if content is None else len(content)

    def digest(self, path: str, algorithm: str) -> str | None:
        """Return a digest, and remember that it was asked for."""
        self.hashed.append(path)
        content = self._content(path)
        return None if content is None else record_hash(content, algorithm).partition("=")[2]

    def sources_naming(self, names: frozenset[str], paths: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return which sources hold which names."""
        texts = {path: self._content(path) or b"" for path in sorted(paths)}
        found = {name: tuple(path for path, text in texts.items() if name.encode() in text) for name in names}
        return {name: where for name, where in found.items() if where}

    def strings_naming(self, names: frozenset[str], paths: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return which sources hold which names before a quote, and remember which were asked."""
        texts = {path: self._content(path) or b"" for path in sorted(paths)}
        self.searched += texts
        found = {name: tuple(path for path, text in texts.items() if name.encode() + b"'" in text) for name in names}
        return {name: where for name, where in found.items() if where}

    def data_naming(self, names: frozenset[str], path: str) -> frozenset[str]:
        """Return which names stand in a file, NUL-terminated, and remember that it was asked."""
        self.searched.append(path)
        content = self._content(path) or b""
        return frozenset(name for name in names if name.encode() + b"\0" in content)

    def symbols(self, path: str) -> SymbolTable | None:
        """Return the symbols that a test gave the file."""
        return self.tables.get(path)

    def dlopen_notes(self, path: str) -> tuple[DlopenNote, ...]:
        """Return the notes that a test gave the file."""
        return self.notes.get(path, ())


def environment(**changes: Any) -> Environment:
    """Return a venv made by pip, each fact overridable."""
    facts: dict[str, Any] = {
        "prefix": PREFIX,
        "kind": EnvironmentKind.VENV,
        "python": f"{PREFIX}/bin/python",
        "python_version": "3.11.7",
        "implementation": "cpython",
        "site_packages": (SITE,),
        "scripts": f"{PREFIX}/bin",
        "base_prefix": "/usr",
        "abi": X86_64,
        "markers": MARKERS,
    }
    return Environment(**{**facts, **changes})


def distribution(
    name: str, version: str = "1.0", claims: Mapping[str, Claim] | None = None, **changes: Any
) -> "Installed":
    """Return a distribution and what its installation writes, each fact overridable.

    Args:
        name: normalised.
        version: as in its metadata.
        claims: paths relative to site-packages, to what is claimed of them.
        changes: fields of ``Distribution``; ``record`` takes fields of ``Record`` as a mapping too.
    """
    site = changes.get("site_packages", SITE)
    metadata_path = changes.pop("metadata_path", f"{site}/{name.replace('-', '_')}-{version}.dist-info")
    rows: list[RecordRow] = []
    written: dict[str, bytes | Link] = {f"{metadata_path}/METADATA": b"", f"{metadata_path}/RECORD": b""}
    for path, claim in (claims or {}).items():
        canonical = posixpath.normpath(posixpath.join(site, path))
        content = claim.content if isinstance(claim, Row) else claim
        if content is not None:
            written[canonical] = content
        if isinstance(claim, Row):
            rows.append(RecordRow(canonical, claim.hash, claim.size))
        elif isinstance(claim, bytes):
            rows.append(RecordRow(canonical, record_hash(claim), len(claim)))
        else:
            rows.append(RecordRow(canonical, "", None))
    rows += [RecordRow(f"{metadata_path}/METADATA", record_hash(b""), 0)]
    rows += [RecordRow(f"{metadata_path}/RECORD", "", None)]
    record = changes.pop("record", {})
    if isinstance(record, dict):
        facts = {"state": RecordState.PRESENT, "path": f"{metadata_path}/RECORD", "rows": tuple(rows)}
        record = Record(**{**facts, "digest": hashlib.sha256(repr(rows).encode()).hexdigest(), **record})
    facts = {"name": name, "version": version, "metadata_path": metadata_path, "site_packages": site, "record": record}
    return Installed(Distribution(**{**facts, **changes}), written)


@dataclass(frozen=True)
class Installed:
    """A distribution and the files that installing it wrote."""

    distribution: Distribution
    written: Mapping[str, bytes | Link]


def elf(path: str, soname: str | None = None, *needed: str, size: int = 100, **changes: Any) -> ElfObject:
    """Return the facts of a shared library at a canonical path."""
    facts: dict[str, Any] = {
        "path": path,
        "real_path": path,
        "identity": FileIdentity(1, int(hashlib.sha256(path.encode()).hexdigest()[:8], 16)),
        "size": size,
        "abi": X86_64,
        "elf_type": 3,
        "is_dynamic": True,
        "soname": soname,
        "needed": needed,
    }
    return ElfObject(**{**facts, **changes})


def snapshot(
    *installed: Installed,
    disk: Mapping[str, bytes | Link | None] | None = None,
    objects: Iterable[ElfObject] = (),
    **changes: Any,
) -> Snapshot:
    """Return a snapshot after installing distributions one over the other.

    Args:
        installed: in the order of their installation: the last writer's bytes are on disk.
        disk: paths relative to site-packages that then hold other bytes, or, with None, are gone.
        objects: ELF files, which are on disk too.
        changes: fields of ``Snapshot``.
    """
    files: dict[str, bytes | Link] = {}
    for item in installed:
        files.update(item.written)
    facts = {item.path: item for item in objects}
    for path in facts:
        files.setdefault(path, b"\x7fELF")
    for path, content in (disk or {}).items():
        if content is None:
            files.pop(at(path), None)
        else:
            files[at(path)] = content
    held = Disk(files, facts)
    system = SystemLibraries(
        cache={},
        default_directories={X86_64: ("/usr/lib",)},
        cache_flags={X86_64: 0x303},
        hwcaps={X86_64: ()},
        lib={X86_64: "lib64"},
        platform={X86_64: "x86_64"},
        libc="glibc",
    )
    distributions = sorted((item.distribution for item in installed), key=lambda it: (it.name, it.metadata_path))
    known: dict[str, Any] = {
        "environment": environment(),
        "distributions": tuple(distributions),
        "objects": facts,
        "unreadable": {},
        "system": system,
        "files": held,
        "evidence": held,
    }
    return Snapshot(**{**known, **changes})
