"""Reads a wheel file as it would be installed into an environment, without unpacking it there.

The rules are those of the binary distribution format (PyPA specification): ``NAME-VERSION.dist-info`` holds METADATA
and RECORD, ``NAME-VERSION.data`` what goes into other schemes, everything else goes into site-packages.
"""

from __future__ import annotations

import posixpath
import tempfile
import zipfile
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from safe_uninstall.model.distribution import RecordRow
from safe_uninstall.model.elf import ElfObject, FileIdentity
from safe_uninstall.model.names import normalize_name
from safe_uninstall.model.wheel import Wheel
from safe_uninstall.scan.elf import ElfError, read_elf
from safe_uninstall.scan.metadata import parse_headers
from safe_uninstall.scan.record import parse_record

if TYPE_CHECKING:
    from safe_uninstall.model.environment import Environment

_MAGIC = b"\x7fELF"
_CHUNK = 1 << 20
"""Bytes unpacked at once."""
_SIZE_LIMIT = 64 << 30
"""Bytes that the files of a wheel may have together; the largest real ones have 4 GB."""
_TEXT_LIMIT = 512 << 20


class WheelError(Exception):
    """A file that is no wheel, or one that contradicts itself."""


def read_wheel(file: str, environment: Environment, *, source: str) -> Wheel:
    """Read a wheel.

    Args:
        file: absolute path of the wheel file.
        environment: where it would be installed.
        source: where the file came from, in words.

    Returns:
        Its rows and libraries under the paths that they would get.

    Raises:
        WheelError: it cannot be read; says why in words.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            return _read(archive, file, environment, source)
    except (OSError, zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise WheelError(f"{posixpath.basename(file)} cannot be read: {error}") from None


def _read(archive: zipfile.ZipFile, file: str, environment: Environment, source: str) -> Wheel:
    sizes = {item.filename: item.file_size for item in archive.infolist() if not item.is_dir()}
    if sum(sizes.values()) > _SIZE_LIMIT:
        raise WheelError(f"{posixpath.basename(file)} would unpack to more than {_SIZE_LIMIT >> 30} GiB")
    info = _dist_info(sizes, file)
    headers = parse_headers(_text(archive, f"{info}/METADATA", sizes, file).decode("utf-8", "surrogateescape"))
    name, version = _first(headers, "name", file), _first(headers, "version", file)
    entries, problems = parse_record(_text(archive, f"{info}/RECORD", sizes, file))
    if problems:
        raise WheelError(f"{posixpath.basename(file)}: {problems[0]}")
    places = _Places(environment, info, normalize_name(name))
    rows = []
    for written, hash_, size in entries:
        if written.startswith(f"{info}/RECORD"):
            continue
        target = places.target(written)
        if target is None:
            raise WheelError(f"{posixpath.basename(file)} would write outside of the environment: {written}")
        rows.append(RecordRow(target, hash_, int(size) if size.isdecimal() else None))
    objects = {}
    for member, unpacked in sizes.items():
        target = places.target(member)
        found = None if target is None else _object(archive, member, target, unpacked)
        if found is not None:
            objects[found.path] = found
    return Wheel(
        name=normalize_name(name),
        version=version,
        file=file,
        sha256=_sha256(file),
        size=sum(item.compress_size for item in archive.infolist()),
        installed_size=sum(sizes.values()),
        source=source,
        metadata_path=posixpath.join(environment.site_packages[0], info),
        rows=tuple(rows),
        objects=objects,
        requires=tuple(headers.get("requires-dist", ())),
        provides_extra=tuple(headers.get("provides-extra", ())),
    )


class _Places:
    """Where the files of a wheel go."""

    def __init__(self, environment: Environment, info: str, name: str) -> None:
        self._site = environment.site_packages[0]
        self._prefix = environment.prefix
        self._data = f"{info.removesuffix('.dist-info')}.data/"
        version = ".".join(environment.python_version.split(".")[:2])
        self._schemes = {
            "purelib": self._site,
            "platlib": self._site,
            "scripts": environment.scripts,
            "data": environment.prefix,
            "headers": posixpath.join(environment.prefix, "include", "site", f"python{version}", name),
        }

    def target(self, written: str) -> str | None:
        """Return the absolute path of a member, None when it would leave the environment."""
        base, path = self._site, written
        if written.startswith(self._data):
            scheme, _, path = written[len(self._data) :].partition("/")
            if scheme not in self._schemes:
                return None
            base = self._schemes[scheme]
        target = posixpath.normpath(posixpath.join(base, path))
        inside = target.startswith((f"{self._prefix}/", f"{self._site}/"))
        return target if inside and not path.startswith("/") else None


def _dist_info(names: dict[str, int], file: str) -> str:
    found = {name.partition("/")[0] for name in names if name.partition("/")[0].endswith(".dist-info")}
    if len(found) != 1:
        raise WheelError(f"{posixpath.basename(file)} is no wheel: it has {len(found)} dist-info directories")
    return found.pop()


def _text(archive: zipfile.ZipFile, name: str, sizes: dict[str, int], file: str) -> bytes:
    if name not in sizes:
        raise WheelError(f"{posixpath.basename(file)} is no wheel: it has no {name}")
    if sizes[name] > _TEXT_LIMIT:
        raise WheelError(f"{posixpath.basename(file)}: {name} is too large")
    return archive.read(name)


def _first(headers: dict[str, list[str]], name: str, file: str) -> str:
    values = headers.get(name)
    if not values:
        raise WheelError(f"{posixpath.basename(file)} is no wheel: its METADATA has no {name.title()}")
    return values[0]


def _object(archive: zipfile.ZipFile, name: str, target: str, size: int) -> ElfObject | None:
    """Return the ELF facts of a member, as if it lay at ``target``; None when it is no readable ELF file."""
    with archive.open(name) as member:
        start = member.read(len(_MAGIC))
        if start != _MAGIC:
            return None
        with tempfile.NamedTemporaryFile(prefix="safe-uninstall-") as unpacked:
            unpacked.write(start)
            _copy(member, unpacked, size)
            unpacked.flush()
            try:
                found = read_elf(unpacked.name)
            except ElfError:
                return None
            if found is None:
                return None
            # A file that is not on disk yet has no number; its path stands for it, and no device has this one.
            identity = FileIdentity(-1, hash(target))
            return replace(found, path=target, real_path=target, identity=identity)


def _copy(source: IO[bytes], target: IO[bytes], limit: int) -> None:
    """Unpack the rest of a member, but never more than its directory entry promises."""
    written = target.tell()
    while part := source.read(_CHUNK):
        written += len(part)
        if written > limit:
            raise zipfile.BadZipFile("a member is larger than its directory says")
        target.write(part)


def _sha256(file: str) -> str:
    import hashlib

    digest = hashlib.sha256()
    with open(file, "rb") as stream:
        while part := stream.read(_CHUNK):
            digest.update(part)
    return digest.hexdigest()
