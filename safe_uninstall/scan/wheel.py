"""Reads a wheel file as it would be installed into an environment, without unpacking it there.

The rules are those of the binary distribution format (PyPA specification): ``NAME-VERSION.dist-info`` holds METADATA
and RECORD, ``NAME-VERSION.data`` what goes into other schemes, everything else goes into site-packages. Every file is
read once, so that a wheel that is damaged is found out before anything changes.
"""

from __future__ import annotations

import os
import posixpath
import re
import tempfile
import zipfile
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from safe_uninstall.model.distribution import RecordRow
from safe_uninstall.model.elf import ElfObject, FileIdentity
from safe_uninstall.model.names import normalize_name
from safe_uninstall.model.wheel import Wheel
from safe_uninstall.scan.elf import ElfError, read_elf
from safe_uninstall.scan.metadata import parse_headers, parse_scripts
from safe_uninstall.scan.record import parse_record
from safe_uninstall.scan.wheel_places import WheelPlaces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from safe_uninstall.model.environment import Environment

_MAGIC = b"\x7fELF"
_CHUNK = 1 << 20
"""Bytes unpacked at once."""
_SIZE_LIMIT = 64 << 30
"""Bytes that the files of a wheel may have together; the largest real ones have 4 GB."""
_TEXT_LIMIT = 512 << 20
"""Bytes of METADATA or RECORD."""

_NOT_IN_RECORD = ("RECORD", "RECORD.jws", "RECORD.p7s")
"""What a RECORD does not give a hash for (binary distribution format, "Signed wheel files")."""

_VERSIONED = re.compile(r"(pip|easy_install)-?\d[\d.]*")
"""Scripts of the installers themselves, which pip makes under the names that suit the interpreter instead."""


class WheelError(Exception):
    """A file that is no wheel, or one that contradicts itself."""


class _NoRoom(Exception):
    """A file cannot be unpacked for a look at it."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


def read_wheel(file: str, environment: Environment, *, source: str) -> Wheel:
    """Read a wheel, and hold every file in it against its RECORD.

    Args:
        file: absolute path of the wheel file.
        environment: where it would be installed.
        source: where the file came from, in words.

    Returns:
        Its rows and libraries under the paths that they would get.

    Raises:
        WheelError: it cannot be read, is damaged, or would write outside of the environment; says why in words.
        OSError: there is no room for temporary files.
    """
    name = posixpath.basename(file)
    try:
        with zipfile.ZipFile(file) as archive:
            return _WheelFile(archive, file, environment).read(source)
    except WheelError as error:
        raise WheelError(f"{name} {error}") from None
    except _NoRoom as no_room:
        raise no_room.error from None
    except Exception as error:
        # Beside its own errors zipfile lets through those of every decoder, for lengths and names that make no sense.
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise WheelError(f"{name} cannot be read: {reason}") from None


class _WheelFile:
    """One open wheel."""

    def __init__(self, archive: zipfile.ZipFile, file: str, environment: Environment) -> None:
        self._archive = archive
        self._file = file
        self._environment = environment
        self._members = {item.filename: item for item in archive.infolist() if not item.is_dir()}
        if len(self._members) < sum(not item.is_dir() for item in archive.infolist()):
            raise WheelError("holds two files of one name")
        self._size = sum(item.file_size for item in self._members.values())
        if self._size > _SIZE_LIMIT:
            raise WheelError(f"would unpack to more than {_SIZE_LIMIT >> 30} GiB")

    def read(self, source: str) -> Wheel:
        """Return what is in it."""
        info = self._dist_info()
        headers = parse_headers(self._text(f"{info}/METADATA"))
        name, version = normalize_name(_first(headers, "name")), _first(headers, "version")
        # A version has no hyphen in it, and names of old wheels may have.
        if normalize_name(info.removesuffix(".dist-info").rpartition("-")[0]) != name:
            raise WheelError(f"contradicts itself: its METADATA is of {name}, its directory is {info}")
        places = WheelPlaces(self._environment, info, name)
        rows: dict[str, RecordRow] = {}
        objects: dict[str, ElfObject] = {}
        for row, found in self._files(info, places):
            if row.path in rows:
                raise WheelError(f"holds two files for one place: {row.path}")
            rows[row.path] = row
            if found is not None:
                objects[row.path] = found
        for script in self._scripts(info):
            path = posixpath.join(self._environment.scripts, script)
            rows.setdefault(path, RecordRow(path, "", None))
        return Wheel(
            name=name,
            version=version,
            file=self._file,
            sha256=_sha256(self._file),
            size=os.path.getsize(self._file),
            installed_size=self._size,
            source=source,
            metadata_path=posixpath.join(self._environment.site_packages[0], info),
            rows=tuple(rows.values()),
            objects=objects,
            requires=tuple(headers.get("requires-dist", ())),
            provides_extra=tuple(headers.get("provides-extra", ())),
        )

    def _dist_info(self) -> str:
        tops = {name.partition("/")[0] for name in self._members}
        found = [name for name in tops if name.endswith(".dist-info")]
        if len(found) != 1:
            raise WheelError(f"is no wheel: it has {len(found) or 'no'} dist-info directories")
        return found[0]

    def _text(self, name: str) -> str:
        return self._bytes(name).decode("utf-8", "surrogateescape")

    def _bytes(self, name: str) -> bytes:
        item = self._members.get(name)
        if item is None:
            raise WheelError(f"is no wheel: it has no {name}")
        if item.file_size > _TEXT_LIMIT:
            raise WheelError(f"has a {name} that is too large")
        return self._archive.read(item)

    def _scripts(self, info: str) -> tuple[str, ...]:
        """Return the names of the scripts that installers make from entry points; no row names them."""
        name = f"{info}/entry_points.txt"
        found = parse_scripts(self._text(name)) if name in self._members else ()
        return tuple(script for script in found if not _VERSIONED.fullmatch(script))

    def _hashes(self, info: str, places: WheelPlaces) -> dict[str, str]:
        """Return the hashes of RECORD, by path as written, all of which are of files that are there."""
        entries, problems = parse_record(self._bytes(f"{info}/RECORD"))
        if problems:
            raise WheelError(f"cannot be trusted: {problems[0]}")
        for written, hash_, _ in entries:
            if places.target(written) is None:
                raise WheelError(f"would write outside of the environment: {written}")
            if hash_ and written not in self._members:
                raise WheelError(f"lists {written}, which is not in it")
        own = {f"{info}/{name}" for name in _NOT_IN_RECORD}
        return {written: hash_ for written, hash_, _ in entries if written not in own}

    def _files(self, info: str, places: WheelPlaces) -> Iterator[tuple[RecordRow, ElfObject | None]]:
        """Read every file but RECORD, under the path that it gets; None for what is no ELF file that can be read."""
        hashes = self._hashes(info, places)
        for name, item in self._members.items():
            if name == f"{info}/RECORD":
                continue
            target = places.target(name)
            if target is None:
                raise WheelError(f"would write outside of the environment: {name}")
            hash_ = hashes.get(name, "")
            yield RecordRow(target, hash_, item.file_size), self._inspect(item, hash_, target)

    def _inspect(self, item: zipfile.ZipInfo, hash_: str, target: str) -> ElfObject | None:
        """Hold a member against its hash, and return its ELF facts as if it lay at ``target``.

        No more is unpacked than the directory of the archive promises: zipfile stops there.
        """
        digest = _Digest(hash_)
        found = None
        with self._archive.open(item) as member:
            part = member.read(_CHUNK)
            if part.startswith(_MAGIC):
                found = _read_object(member, part, digest, target)
            else:
                while part:
                    digest.update(part)
                    part = member.read(_CHUNK)
        if not digest.agrees():
            raise WheelError(f"is damaged: {item.filename} is not what its RECORD says")
        return found


class _Digest:
    """The digest that one row of a RECORD names; one that names none agrees with everything."""

    def __init__(self, recorded: str) -> None:
        import hashlib

        algorithm, separator, expected = recorded.partition("=")
        if separator and algorithm not in hashlib.algorithms_guaranteed - {"shake_128", "shake_256"}:
            raise WheelError(f"has a RECORD with a hash that nobody can check: {algorithm}")
        self._digest = hashlib.new(algorithm) if separator else None
        self._expected = expected.rstrip("=")

    def update(self, part: bytes) -> None:
        """Take the next bytes."""
        if self._digest is not None:
            self._digest.update(part)

    def agrees(self) -> bool:
        """Return whether the bytes were those of the row."""
        import base64

        if self._digest is None:
            return True
        return base64.urlsafe_b64encode(self._digest.digest()).decode().rstrip("=") == self._expected


def _read_object(member: IO[bytes], part: bytes, digest: _Digest, target: str) -> ElfObject | None:
    """Unpack an ELF file into a temporary one and read its facts; the bytes go through ``digest``."""
    try:
        unpacked = tempfile.NamedTemporaryFile(prefix="safe-uninstall-", buffering=0)  # noqa: SIM115
    except OSError as error:
        raise _NoRoom(error) from None
    with unpacked:
        while part:
            digest.update(part)
            rest = memoryview(part)
            while rest:
                try:
                    rest = rest[unpacked.write(rest) :]
                except OSError as error:
                    raise _NoRoom(error) from None
            part = member.read(_CHUNK)
        try:
            found = read_elf(unpacked.name)
        except ElfError:
            return None
    # A file that is not on disk yet has no number; its path stands for it, and no device has this one.
    identity = FileIdentity(-1, hash(target))
    return None if found is None else replace(found, path=target, real_path=target, identity=identity)


def _first(headers: Mapping[str, list[str]], name: str) -> str:
    values = headers.get(name)
    if not values:
        raise WheelError(f"is no wheel: its METADATA has no {name.title()}")
    return values[0]


def _sha256(file: str) -> str:
    import hashlib

    digest = hashlib.sha256()
    with open(file, "rb") as stream:
        while part := stream.read(_CHUNK):
            digest.update(part)
    return digest.hexdigest()
