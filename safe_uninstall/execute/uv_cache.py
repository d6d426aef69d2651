"""Makes a wheel out of uv's cache, which keeps wheels unpacked."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safe_uninstall.model.distribution import Distribution


def wheel_from_uv_cache(distribution: Distribution, directory: str, uv: str | None) -> str | None:
    """Write a wheel file of a distribution from uv's unpacked archives, without compression.

    Whether it is the right build is checked by its RECORD afterwards, as for any other wheel.

    Args:
        distribution: what to look for.
        directory: where the wheel file goes.
        uv: path of uv; None: there is no such cache.

    Returns:
        The path of the wheel file, None when the cache does not hold that name and version.
    """
    root = None if uv is None else cache_directory(uv)
    if root is None or not os.path.isdir(root):
        return None
    info = posixpath.basename(distribution.metadata_path)
    for archive in _archives(root):
        if os.path.isfile(posixpath.join(archive, info, "RECORD")):
            return _pack(archive, posixpath.join(directory, f"{info.removesuffix('.dist-info')}-py3-none-any.whl"))
    return None


def cache_directory(uv: str) -> str | None:
    """Return the absolute path of the cache that the user configured, None where uv does not tell."""
    import subprocess

    command = [uv, "cache", "dir", "--quiet", "--color", "never"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError:
        return None
    said = os.fsdecode(done.stdout.strip())
    return os.path.abspath(said) if done.returncode == 0 and said else None


def _archives(root: str) -> list[str]:
    """Return the unpacked archives of a cache, whatever version its layout has."""
    found = []
    for bucket in sorted(os.listdir(root)):
        if bucket.startswith("archive-"):
            place = posixpath.join(root, bucket)
            found += [posixpath.join(place, name) for name in sorted(os.listdir(place))]
    return found


def _pack(archive: str, target: str) -> str | None:
    """Zip exactly what the archive's RECORD lists; None when a file of it is gone."""
    import csv
    import zipfile

    info = next(name for name in os.listdir(archive) if name.endswith(".dist-info"))
    tags = _tags(posixpath.join(archive, info, "WHEEL"))
    if tags is not None:
        target = posixpath.join(posixpath.dirname(target), f"{info.removesuffix('.dist-info')}-{tags}.whl")
    with open(posixpath.join(archive, info, "RECORD"), encoding="utf-8", newline="") as file:
        names = [row[0] for row in csv.reader(file) if row]
    try:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as wheel:
            for name in names:
                path = posixpath.join(archive, name)
                if posixpath.normpath(path) != path or not path.startswith(archive + "/"):
                    return None
                wheel.write(path, name)
    except OSError:
        return None
    return target


def _tags(path: str) -> str | None:
    """Return the tags of a WHEEL file as a file name has them: the first line of each part, joined."""
    parts: list[set[str]] = [set(), set(), set()]
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.startswith("Tag:"):
                    for part, value in zip(parts, line.partition(":")[2].strip().split("-"), strict=True):
                        part.add(value)
    except (OSError, ValueError):
        return None
    return "-".join(".".join(sorted(part)) for part in parts) if all(parts) else None
