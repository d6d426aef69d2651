"""Makes wheels out of uv's cache, which keeps them unpacked."""

from __future__ import annotations

import csv
import os
import posixpath
from typing import TYPE_CHECKING

from safe_uninstall.execute.wheel_tags import read_tags, wheel_file_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safe_uninstall.model.distribution import Distribution


def wheels_in_uv_cache(distribution: Distribution, directory: str, root: str | None) -> Iterator[str]:
    """Write wheel files of a distribution from uv's unpacked archives, without compression.

    Archives of other builds are passed over by their RECORD; that what is written is the right build, and whole, is
    checked afterwards, as for any other wheel.

    Args:
        distribution: what to look for.
        directory: where wheel files go.
        root: directory of the cache, None: there is none.

    Yields:
        The path of a wheel file; made when it is asked for.

    Raises:
        OSError: a wheel file cannot be written.
    """
    if root is None:
        return
    info = posixpath.basename(distribution.metadata_path)
    for archive in _archives(root):
        rows = _record(posixpath.join(archive, info, "RECORD"))
        if rows and not _contradicts(rows, distribution):
            target = posixpath.join(directory, wheel_file_name(info, read_tags(posixpath.join(archive, info))))
            if _pack(archive, [*rows, f"{info}/RECORD"], target):
                yield target


def cache_directory(uv: str) -> str | None:
    """Return the absolute path of the cache that the user configured, None where uv does not tell."""
    import subprocess

    # Not --quiet: uv then says nothing at all.
    command = [uv, "cache", "dir", "--color", "never"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError:
        return None
    said = os.fsdecode(done.stdout.strip())
    return os.path.abspath(said) if done.returncode == 0 and said else None


def _archives(root: str) -> Iterator[str]:
    """Yield the unpacked archives of a cache, whatever version its layout has."""
    for bucket in _names(root):
        if bucket.startswith("archive-"):
            place = posixpath.join(root, bucket)
            yield from (posixpath.join(place, name) for name in _names(place))


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _record(path: str) -> dict[str, str]:
    """Return paths and hashes of an archive's RECORD, nothing where there is none that can be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return {row[0]: row[1] if len(row) > 1 else "" for row in csv.reader(file) if row}
    except (OSError, csv.Error):
        return {}


def _contradicts(rows: dict[str, str], distribution: Distribution) -> bool:
    """Return whether a RECORD and the installed one give different hashes for a path."""
    site = distribution.site_packages
    installed = {row.path: row.hash.rstrip("=") for row in distribution.record.rows if row.hash}
    return any(
        hash_ and installed.get(posixpath.join(site, path), hash_.rstrip("=")) != hash_.rstrip("=")
        for path, hash_ in rows.items()
    )


def _pack(archive: str, names: list[str], target: str) -> bool:
    """Zip what an archive's RECORD lists; return whether all of it is there."""
    import zipfile

    # Files from before 1980 are no reason to fail: an installed file gets the time of its installation anyway.
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED, strict_timestamps=False) as wheel:
        for name in dict.fromkeys(names):
            path = posixpath.join(archive, name)
            if posixpath.normpath(path) != path or not path.startswith(f"{archive}/") or not os.path.isfile(path):
                return False
            wheel.write(path, name)
    return True
