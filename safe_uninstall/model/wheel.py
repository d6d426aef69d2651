"""Wheels that a plan could install, and the port by which the analysis asks for them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from safe_uninstall.model.distribution import Distribution, RecordRow
from safe_uninstall.model.elf import ElfObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One wheel file at hand, read as it would be installed into the environment."""

    name: str
    """Normalised per PEP 503."""
    version: str
    file: str
    """Absolute path of the wheel file."""
    sha256: str
    """Hexadecimal digest of the wheel file."""
    size: int
    """Bytes of the wheel file."""
    installed_size: int
    """Bytes of all its files, unpacked."""
    source: str
    """Where it came from, in words: ``--find-links``, ``uv's cache``, ``pip's cache``, ``the index``, a URL."""
    metadata_path: str
    """Absolute path of the dist-info directory that installing it makes."""
    rows: tuple[RecordRow, ...]
    """Its files with the hashes of its RECORD, under the absolute paths that they get in the environment (``*.data``
    schemes mapped), and the scripts that installers make for it; the RECORD itself left out."""
    objects: Mapping[str, ElfObject] = field(default_factory=dict)
    """Canonical path to facts of the ELF files in it, as they would lie in the environment."""
    requires: tuple[str, ...] = ()
    """Requires-Dist as written."""
    provides_extra: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelUnavailable:
    """Why there is no wheel for what was asked."""

    requirement: str
    """``name==version`` or the requirement as the user wrote it."""
    reason: str
    """In a sentence: nothing found, no network, another build, an editable install …"""
    help: tuple[str, ...] = ()
    """How to supply it, as whole commands or prose."""


def merged_help(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the help for several wheels: what is the same for all of them comes once, after what is not."""
    return tuple(reversed(dict.fromkeys(reversed(tuple(texts)))))


class WheelSource(Protocol):
    """Finds wheels before anything changes. May take minutes (a download), so it is asked only for what is needed."""

    def restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        """Return the very wheel that ``distribution`` was installed from.

        Its RECORD hashes equal those of the installed RECORD for every path both name; memoised.
        """

    def resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        """Return wheels for PEP 508 requirements and for what they need in turn and the environment lacks."""
