"""Reads ``conda-meta``: which files conda owns, and under which package."""

import os
import posixpath
from dataclasses import dataclass

from safe_uninstall.scan.disk import DiskFileSystem


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaPackage:
    """One ``conda-meta/*.json``."""

    label: str
    """``name-version-build``."""
    files: tuple[str, ...]
    """Paths relative to the prefix."""
    path: str
    """The JSON file."""
    data: bytes
    """Its bytes."""


def read_conda_packages(prefix: str, disk: DiskFileSystem) -> tuple[tuple[CondaPackage, ...], tuple[str, ...]]:
    """Return the packages that conda installed into ``prefix``, sorted by file name, and what could not be read."""
    import json

    packages: list[CondaPackage] = []
    problems: list[str] = []
    directory = posixpath.join(prefix, "conda-meta")
    for name in sorted(disk.names(directory)):
        if not name.endswith(".json"):
            continue
        path = posixpath.join(directory, name)
        try:
            with open(disk.location(path) or path, "rb") as file:
                data = file.read()
            record = json.loads(data)
            files = tuple(str(item) for item in record.get("files") or ())
        except (OSError, ValueError, AttributeError, TypeError) as error:
            problems.append(f"cannot read conda-meta/{name}: {getattr(error, 'strerror', None) or error}")
            continue
        packages.append(CondaPackage(label=name[: -len(".json")], files=files, path=path, data=data))
    return tuple(packages), tuple(problems)


def dist_infos(package: CondaPackage, prefix: str) -> dict[str, str]:
    """Return the metadata directories (dist-info or egg-info) that a package holds, absolute, each to its label."""
    found: dict[str, str] = {}
    for file in package.files:
        head = os.path.dirname(file)
        if head.endswith((".dist-info", ".egg-info")):
            found[posixpath.join(prefix, head)] = package.label
    return found
