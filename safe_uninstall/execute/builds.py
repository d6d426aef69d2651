"""Tells whether a wheel is the very build that is installed."""

import posixpath

from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.wheel import Wheel

_OF_INSTALLERS = frozenset({"INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_build.json", "uv_cache.json"})
"""Files of a dist-info that installers write themselves."""


def can_be_compared(distribution: Distribution) -> bool:
    """Return whether the installed RECORD has hashes that a wheel can be held against."""
    return any(row.hash for row in distribution.record.rows)


def difference(wheel: Wheel, distribution: Distribution, scripts: str) -> str | None:
    """Return what tells a wheel from the build that is installed, as the rest of a sentence about its file.

    Two builds are the same if every file of the wheel has the hash in the installed RECORD that it has in its own.

    Args:
        wheel: what was found.
        distribution: what is installed.
        scripts: directory of scripts: installers write another first line into them.

    Returns:
        None when they are the same build.
    """
    if (wheel.name, wheel.version) != (distribution.name, distribution.version):
        return f"is {wheel.name} {wheel.version}"
    info = posixpath.basename(distribution.metadata_path)
    if posixpath.basename(wheel.metadata_path) != info:
        return f"is another build than the one installed: it has no {info}"
    if wheel.metadata_path != distribution.metadata_path:
        return f"would be installed into {posixpath.dirname(wheel.metadata_path)}, which is not where it is"
    installed = {row.path: row.hash.rstrip("=") for row in distribution.record.rows}
    for row in wheel.rows:
        directory, name = posixpath.split(row.path)
        if not row.hash or directory == scripts or (directory == wheel.metadata_path and name in _OF_INSTALLERS):
            continue
        relative = posixpath.relpath(row.path, distribution.site_packages)
        if row.path not in installed:
            return f"is another build than the one installed, which has no {relative}"
        there = installed[row.path]
        if _algorithm(there) == _algorithm(row.hash) and there != row.hash.rstrip("="):
            return f"is another build than the one installed: {relative} has other bytes"
    return None


def _algorithm(hash_: str) -> str:
    return hash_.partition("=")[0]
