"""The part of a transaction that installs: what is new afterwards, and how it goes away again."""

import base64
import csv
import hashlib
import os
import posixpath
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from safe_uninstall.analysis.ownership import source_of_cache
from safe_uninstall.execute.installers import Installer, run_installation
from safe_uninstall.execute.journal import Journal
from safe_uninstall.execute.stash import Stash
from safe_uninstall.model.plan import Plan, Prediction


def what_will_be_new(prediction: Prediction) -> dict[str, Any]:
    """Return what an installation will create, so that a roll back can take it away.

    Returns:
        ``created``: paths that do not exist yet, each the topmost of its kind; ``listings``: for directories that
        exist and get names that nobody can foresee (byte code, metadata of installers), the names in them.
    """
    created: set[str] = set()
    directories: set[str] = set()
    for path in (*prediction.written, *prediction.installed):
        created.update(_topmost_missing(path))
        if path.endswith(".py"):
            directories.add(posixpath.join(posixpath.dirname(path), "__pycache__"))
    for info in prediction.restored:
        directories.update(directory for directory, _, _ in os.walk(info))
    listings: dict[str, list[str]] = {}
    for directory in directories:
        if os.path.isdir(directory):
            listings[directory] = sorted(os.listdir(directory))
        else:
            created.update(_topmost_missing(directory))
    return {"created": sorted(created), "listings": listings}


def remove_what_is_new(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Remove what an installation created.

    Args:
        facts: what ``what_will_be_new`` returned, as the journal has it.

    Returns:
        What could not be removed, a sentence each.
    """
    paths = list(facts.get("created", ()))
    for directory, names in facts.get("listings", {}).items():
        try:
            now = os.listdir(directory)
        except OSError:
            # Gone: there is nothing new in it, and what was in it the stash has.
            continue
        paths += [posixpath.join(directory, name) for name in sorted(set(now) - set(names))]
    return tuple(problem for path in paths for problem in remove(path))


def kept_paths(prediction: Prediction, stash: Stash) -> list[str]:
    """Return the stashed files and links that must be there after the run as they were before it.

    Byte code beside sources that are written anew is not among them: it is of other sources.
    """
    written = prediction.written
    return [
        entry.path
        for entry in stash.entries
        if entry.kind != "directory"
        and entry.path not in prediction.deleted
        and entry.path not in written
        and source_of_cache(entry.path) not in written
        and not _is_in(entry.path, prediction.removed)
    ]


def install_wheels(plan: Plan, installer: Installer, journal: Journal, stash: Stash, output: list[str]) -> str | None:
    """Install the wheels of a plan, and see that nothing else changes.

    Installers uninstall a restored distribution first, with all that its RECORD lists, and write metadata and scripts
    of their own: what no wheel writes is as before afterwards.

    Args:
        plan: names the wheels.
        installer: pip or uv.
        journal: its directory takes the wheels while they are installed.
        stash: has what was there before.
        output: gets what the installer printed.

    Returns:
        Why it failed, None when it did not.
    """
    directory = journal.wheels_directory
    os.mkdir(directory, 0o700)
    for wheel in plan.wheels:
        os.symlink(wheel.file, posixpath.join(directory, posixpath.basename(wheel.file)))
    pins = tuple(f"{wheel.name}=={wheel.version}" for wheel in plan.wheels)
    run = run_installation(installer, pins, directory)
    output.append(run.output)
    if run.returncode != 0:
        return f"{installer.kind.value} failed with status {run.returncode}"
    wanted = set(kept_paths(plan.prediction, stash))
    for info in sorted(plan.prediction.restored):
        wanted.update(_metadata(info, stash))
    failed = stash.put_back(wanted)
    if not failed:
        scripts = [
            path for info in plan.prediction.restored for path in _foreign_scripts(info, plan.environment.scripts)
        ]
        failed = stash.put_back(scripts)
    return f"{failed[0].path} could not be put back: {failed[0].reason}" if failed else None


def remove(path: str) -> Iterator[str]:
    """Remove a file, or a directory with all that is in it; yield why that is impossible, if it is."""
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        # Also where a file stands in the place of a directory above it.
        pass
    except OSError as error:
        yield f"{error.filename or path} could not be removed: {error.strerror or error}"


def _metadata(info: str, stash: Stash) -> set[str]:
    """Return the files that a dist-info had, and remove those that it has since.

    Who installed it, whether it was requested and where from is not ours to change.
    """
    before = {entry.path for entry in stash.entries if entry.kind != "directory" and _is_in(entry.path, (info,))}
    for directory, _, names in os.walk(info):
        for name in names:
            path = posixpath.join(directory, name)
            if path not in before:
                os.unlink(path)
    return before


def _foreign_scripts(info: str, scripts: str) -> Iterator[str]:
    """Yield the scripts of a restored distribution that its RECORD, the old one again, has another hash for.

    Each installer writes them its own way, and it need not have been this one.
    """
    site = posixpath.dirname(info)
    with open(posixpath.join(info, "RECORD"), encoding="utf-8", errors="surrogateescape", newline="") as file:
        rows = [row for row in csv.reader(file) if len(row) > 1]
    for written, hash_, *_ in rows:
        path = posixpath.normpath(posixpath.join(site, written))
        if posixpath.dirname(path) == scripts and hash_.startswith("sha256=") and os.path.isfile(path):
            with open(path, "rb") as script:
                digest = hashlib.sha256(script.read()).digest()
            if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != hash_[len("sha256=") :].rstrip("="):
                yield path


def _topmost_missing(path: str) -> Iterable[str]:
    """Return the topmost ancestor of a path (or itself) that does not exist, nothing when the path does."""
    if os.path.lexists(path):
        return ()
    while not os.path.lexists(parent := posixpath.dirname(path)):
        path = parent
    return (path,)


def _is_in(path: str, directories: Iterable[str]) -> bool:
    return any(path.startswith(f"{directory}/") for directory in directories)
