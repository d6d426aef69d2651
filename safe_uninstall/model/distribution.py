"""Installed distributions and what their metadata claims."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class RecordRow(NamedTuple):
    """One row of a RECORD, its path made canonical.

    A NamedTuple, since an environment has tens of thousands of them and they are made in bulk.
    """

    path: str
    """Absolute, directories resolved, last component not."""
    hash: str
    """``sha256=<URL-safe base64, no padding>``, or empty."""
    size: int | None
    """Bytes as recorded, None where the row has no size."""


class RecordState(Enum):
    """Whether a distribution's list of files can be trusted."""

    PRESENT = "present"
    MISSING = "missing"
    MALFORMED = "malformed"
    """Present, but not all of it can be read; the reasons are in ``problems``."""
    LOCKED = "locked"
    """Renamed so that installers refuse (recorded-projects specification); read from the renamed file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The rows of one RECORD (or conda-meta file list)."""

    state: RecordState
    path: str | None = None
    """The file that was read; None when there is none."""
    rows: tuple[RecordRow, ...] = ()
    """Rows inside the environment, in file order, each path once."""
    unsafe: tuple[str, ...] = ()
    """Paths as written of rows that leave the environment: never touched."""
    problems: tuple[str, ...] = ()
    """What could not be read, in words with line numbers."""
    digest: str = ""
    """Hexadecimal SHA-256 of the file, hashes of scripts left out (they depend on the prefix); empty without a file."""


class MetadataKind(Enum):
    """The form of the installed metadata."""

    DIST_INFO = "dist-info"
    EGG_INFO = "egg-info"
    EGG_LINK = "egg-link"
    """A ``develop`` install by setuptools."""
    CONDA = "conda"
    """A conda package without Python metadata: claims and provides its files, satisfies no requirement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectUrl:
    """``direct_url.json`` (PEP 610)."""

    url: str
    editable: bool = False
    vcs: str | None = None
    is_directory: bool = False
    archive_hash: str | None = None
    """``sha256=<hex>`` of an archive, where recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """An installed project: one ``*.dist-info`` (or egg record)."""

    name: str
    """Normalised per PEP 503."""
    version: str
    metadata_path: str
    """Absolute path of the dist-info directory (or egg file)."""
    metadata_kind: MetadataKind = MetadataKind.DIST_INFO
    site_packages: str
    """The directory of ``Environment.site_packages`` or ``visible_site_packages`` that holds it."""
    record: Record
    owned_here: bool = True
    """False for distributions that are only visible (system site-packages): survivors always, never removed."""
    installer: str | None = None
    """INSTALLER as written: ``pip``, ``uv``, ``conda``, …"""
    requested: bool = False
    direct_url: DirectUrl | None = None
    requires: tuple[str, ...] = ()
    """Requires-Dist as written."""
    provides_extra: tuple[str, ...] = ()
    requires_python: str | None = None
    top_level: tuple[str, ...] = ()
    """Import names that ``top_level.txt`` lists; read only where the list of files cannot be trusted."""
    scripts: tuple[str, ...] = ()
    """Absolute paths of the console and GUI scripts that its entry points name."""
    conda_package: str | None = None
    """``name-version-build`` when conda-meta owns its files."""
    problems: tuple[str, ...] = ()
    """What of its metadata could not be read."""

    @property
    def label(self) -> str:
        """``name version``, as output shows it."""
        return f"{self.name} {self.version}"
