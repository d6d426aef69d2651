"""Reads ``conda-meta``: which files conda owns, and under which package."""

import os
import posixpath
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from safe_uninstall.scan.disk import DiskFileSystem
from safe_uninstall.scan.tree import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class CondaPackage:
    """One ``conda-meta/*.json``."""

    label: str
    """``name-version-build``."""
    name: str
    version: str
    files: tuple[str, ...]
    """Paths relative to the prefix."""
    entries: tuple[tuple[str, str, str], ...]
    """The same as rows of a RECORD: path, hash and size of what conda wrote, empty where it does not tell."""
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
            told = {str(item["_path"]): item for item in (record.get("paths_data") or {}).get("paths") or ()}
            label = name[: -len(".json")]
            package = CondaPackage(
                label=label,
                name=str(record.get("name") or label.rsplit("-", 2)[0]),
                version=str(record.get("version") or (*label.rsplit("-", 2), "")[1] or "unknown"),
                files=files,
                entries=tuple(_entry(file, told.get(file) or {}) for file in files),
                path=path,
                data=data,
            )
        except (OSError, ValueError, AttributeError, TypeError, KeyError) as error:
            problems.append(f"cannot read conda-meta/{name}: {getattr(error, 'strerror', None) or error}")
            continue
        packages.append(package)
    return tuple(packages), tuple(problems)


def conda_manager(prefix: str, tree: Tree) -> str:
    """Return the program that looks after a conda environment: ``conda``, ``mamba``, ``micromamba`` or ``pixi``.

    pixi leaves a file of its name; the others write their last command into ``conda-meta/history``.
    """
    if tree.exists(f"{prefix}/conda-meta/pixi") or "/.pixi/envs/" in f"{prefix}/":
        return "pixi"
    for line in reversed((tree.text(f"{prefix}/conda-meta/history") or "").splitlines()):
        if line.startswith("# cmd: "):
            words = line[len("# cmd: ") :].split()
            program = os.path.basename(words[0]) if words else ""
            return program if program in ("mamba", "micromamba") else "conda"
    return "conda"


def _entry(file: str, told: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return a file as a row; what conda changed when it linked the file has a hash of its own."""
    if told.get("path_type") == "softlink":
        return file, "", ""
    digest = told.get("sha256_in_prefix") or (None if told.get("prefix_placeholder") else told.get("sha256"))
    try:
        encoded = urlsafe_b64encode(bytes.fromhex(str(digest or ""))).rstrip(b"=").decode("ascii")
    except ValueError:
        encoded = ""
    size = "" if told.get("prefix_placeholder") else str(told.get("size_in_bytes") or "")
    return file, f"sha256={encoded}" if encoded else "", size


def dist_infos(package: CondaPackage, prefix: str) -> dict[str, str]:
    """Return the metadata directories (dist-info or egg-info) that a package holds, absolute, each to its label."""
    found: dict[str, str] = {}
    for file in package.files:
        head = os.path.dirname(file)
        if head.endswith((".dist-info", ".egg-info")):
            found[posixpath.join(prefix, head)] = package.label
    return found
