"""The part of a transaction that installs: what is new afterwards, and how it goes away again."""

import os
import posixpath
import shutil
from collections.abc import Iterable, Mapping
from typing import Any

from safe_uninstall.analysis.ownership import source_of_cache
from safe_uninstall.execute.installers import Installer, run_installation
from safe_uninstall.execute.journal import Journal
from safe_uninstall.execute.stash import Stash
from safe_uninstall.model.plan import Plan, Prediction


def what_will_be_new(prediction: Prediction) -> dict[str, Any]:
    """Return what an installation will create, so that a roll back can take it away.

    Returns:
        ``created``: paths that do not exist yet, each the topmost of its kind; ``caches``: for byte-code directories
        that exist, the names in them.
    """
    created: set[str] = set()
    caches: dict[str, list[str]] = {}
    for path in (*prediction.written, *prediction.installed):
        created.update(_topmost_missing(path))
        if path.endswith(".py"):
            cache = posixpath.join(posixpath.dirname(path), "__pycache__")
            if os.path.isdir(cache):
                caches[cache] = sorted(os.listdir(cache))
            else:
                created.update(_topmost_missing(cache))
    return {"created": sorted(created), "caches": caches}


def remove_what_is_new(facts: Mapping[str, Any]) -> None:
    """Remove what an installation created.

    Args:
        facts: what ``what_will_be_new`` returned, as the journal has it.
    """
    for path in facts.get("created", ()):
        _remove(path)
    for cache, names in facts.get("caches", {}).items():
        try:
            now = os.listdir(cache)
        except OSError:
            continue
        for name in set(now) - set(names):
            _remove(posixpath.join(cache, name))


def kept_paths(prediction: Prediction, stash: Stash) -> list[str]:
    """Return the stashed paths that must be there after the run as they were before it.

    Byte code beside sources that are written anew is not among them: it is of other sources.
    """
    written = prediction.written
    return [
        entry.path
        for entry in stash.entries
        if entry.path not in prediction.deleted
        and entry.path not in written
        and source_of_cache(entry.path) not in written
        and not _is_in(entry.path, prediction.removed)
    ]


def install_wheels(plan: Plan, installer: Installer, journal: Journal, stash: Stash, output: list[str]) -> str | None:
    """Install the wheels of a plan, and give restored distributions the metadata back that they had.

    Args:
        plan: names the wheels.
        installer: pip or uv.
        journal: its directory takes the wheels while they are installed.
        stash: has the metadata.
        output: gets what the installer printed.

    Returns:
        Why it failed, None when it did not.
    """
    directory = posixpath.join(journal.directory, "wheels")
    os.mkdir(directory, 0o700)
    for wheel in plan.wheels:
        os.symlink(wheel.file, posixpath.join(directory, posixpath.basename(wheel.file)))
    pins = tuple(f"{wheel.name}=={wheel.version}" for wheel in plan.wheels)
    run = run_installation(installer, pins, directory)
    output.append(run.output)
    if run.returncode != 0:
        return f"{installer.kind.value} failed with status {run.returncode}"
    for info in sorted(plan.prediction.restored):
        failed = _restore_metadata(info, stash)
        if failed is not None:
            return failed
    return None


def _restore_metadata(info: str, stash: Stash) -> str | None:
    """Make a dist-info what it was: who installed it, whether it was requested and where from is not ours to change."""
    before = {entry.path for entry in stash.entries if entry.kind != "directory" and _is_in(entry.path, (info,))}
    for directory, _, names in os.walk(info):
        for name in names:
            path = posixpath.join(directory, name)
            if path not in before:
                os.unlink(path)
    failed = stash.put_back(before)
    return f"{failed[0].path} could not be put back: {failed[0].reason}" if failed else None


def _topmost_missing(path: str) -> Iterable[str]:
    """Return the topmost ancestor of a path (or itself) that does not exist, nothing when the path does."""
    if os.path.lexists(path):
        return ()
    while not os.path.lexists(parent := posixpath.dirname(path)):
        path = parent
    return (path,)


def _is_in(path: str, directories: Iterable[str]) -> bool:
    return any(path.startswith(f"{directory}/") for directory in directories)


def _remove(path: str) -> None:
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        pass
