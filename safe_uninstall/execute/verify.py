"""Holds the real outcome of a run against the predicted one, path by path."""

import os
from collections.abc import Iterator

from safe_uninstall.analysis.ownership import source_of_cache
from safe_uninstall.execute.stash import Stash
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.plan import Prediction
from safe_uninstall.model.snapshot import Snapshot

_SHOWN = 20
"""Mismatches named; one of many is enough to roll back."""


def compare_outcome(prediction: Prediction, before: Snapshot, after: Snapshot, stash: Stash) -> tuple[str, ...]:
    """Return what differs from the prediction, a sentence each; nothing when the outcome is the planned one.

    Args:
        prediction: what was foreseen.
        before: the environment before the run.
        after: the environment now.
        stash: the files as they were.
    """
    found: list[str] = []
    for mismatch in _mismatches(prediction, before, after, stash):
        if len(found) == _SHOWN:
            found.append("and more")
            break
        found.append(mismatch)
    return tuple(found)


def lost_for_good(before: Snapshot) -> tuple[str, ...]:
    """Return what is gone after a roll back, a sentence each: nobody was to touch it, so that no stash has it.

    Args:
        before: the environment before the run.
    """
    return tuple(
        f"{row.path} of {item.label} is gone, and there is no copy of it"
        for item in before.distributions
        for row in item.record.rows
        if _exists(before, row.path) and not row.path.endswith(".pyc") and not os.path.lexists(row.path)
    )[:_SHOWN]


def _mismatches(prediction: Prediction, before: Snapshot, after: Snapshot, stash: Stash) -> Iterator[str]:
    now = {item.metadata_path: item for item in after.distributions}
    for item in before.distributions:
        there = now.pop(item.metadata_path, None)
        if item.metadata_path in prediction.removed:
            if there is not None:
                yield f"{item.label} is still installed"
        elif there is None:
            yield f"{item.label} is gone"
        elif _identity(there) != _identity(item):
            yield f"{item.label} was changed by somebody else"
    for item in now.values():
        # What lies outside is nobody's to install here: the source tree of a development install that went.
        if item.owned_here and item.metadata_path not in prediction.installed:
            yield f"{item.label} was installed by somebody else"
    for path in sorted(prediction.installed - now.keys()):
        yield f"{path} was not installed"
    yield from _wrong_bytes(prediction, after)
    for path in sorted(prediction.deleted):
        if not path.endswith(".pyc") and _exists(after, path):
            yield f"{path} is still there"
    for path in sorted(prediction.released):
        # Byte code beside a source that a wheel writes is of that source from now on; pip makes it anew.
        if source_of_cache(path) not in prediction.written and not stash.holds(path):
            yield f"{path} is not as it was"
    for item in before.distributions:
        if item.metadata_path not in prediction.removed:
            yield from _lost_claims(item, prediction, before, after)


def _identity(item: Distribution) -> tuple[object, ...]:
    """Return what no run changes of a distribution that stays, not even of one that is restored."""
    return item.version, item.record.digest, item.installer, item.requested, item.direct_url


def _wrong_bytes(prediction: Prediction, after: Snapshot) -> Iterator[str]:
    """Compare what wheels wrote with their RECORDs.

    Installers change the first line of scripts, and compile sources whose byte code a wheel brought.
    """
    scripts = f"{after.environment.scripts}/"
    for path, hash_ in sorted(prediction.written.items()):
        algorithm, separator, digest = hash_.partition("=")
        if source_of_cache(path) in prediction.written:
            continue
        if not _exists(after, path):
            yield f"{path} was not written"
        elif (
            separator and not path.startswith(scripts) and after.evidence.digest(path, algorithm) != digest.rstrip("=")
        ):
            yield f"{path} has other bytes than its wheel"


def _lost_claims(item: Distribution, prediction: Prediction, before: Snapshot, after: Snapshot) -> Iterator[str]:
    for row in item.record.rows:
        if row.path in prediction.deleted or row.path in prediction.written or row.path.endswith(".pyc"):
            continue
        if not _exists(after, row.path) and _exists(before, row.path):
            yield f"{row.path} of {item.label} is gone"
        elif row.path in before.objects and (
            # All facts: the number of a deleted file's inode is soon given to another.
            row.path not in after.objects or after.objects[row.path] != before.objects[row.path]
        ):
            yield f"{row.path} of {item.label} is another file"


def _exists(snapshot: Snapshot, path: str) -> bool:
    directory, _, name = path.rpartition("/")
    return snapshot.files.entry(directory or "/", name) is not None
