"""Rewrites a RECORD without the rows that an installer must not act on."""

import csv
import os
from collections.abc import Set

from safe_uninstall.execute.journal import sync_directory
from safe_uninstall.execute.stash import TEMPORARY_SUFFIX
from safe_uninstall.model.distribution import Distribution, MetadataKind


def needs_trimming(distribution: Distribution, staying: Set[str]) -> bool:
    """Return whether a RECORD names what must stay: released paths, directories, what is outside."""
    record = distribution.record
    if record.path is None or distribution.metadata_kind is not MetadataKind.DIST_INFO:
        return False
    return bool(record.unsafe) or any(_stays(row.path, staying) for row in record.rows)


def trim_record(distribution: Distribution, staying: Set[str]) -> None:
    """Put a RECORD without the rows for ``staying``, for directories, and unsafe ones in the place of the old one.

    An installer then never deletes what stays, so that there is no moment at which a survivor's library is missing. The
    old file is not written to; it is renamed over, and its bytes are in the stash.

    Args:
        distribution: a leaving distribution with a RECORD in its dist-info.
        staying: canonical paths.

    Raises:
        OSError: the new file cannot be written; the old one is still there.
    """
    path = distribution.record.path
    assert path is not None
    temporary = f"{path}{TEMPORARY_SUFFIX}"
    with open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for row in distribution.record.rows:
            if not _stays(row.path, staying):
                relative = os.path.relpath(row.path, distribution.site_packages)
                writer.writerow([relative, row.hash, "" if row.size is None else row.size])
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)
    sync_directory(os.path.dirname(path))


def _stays(path: str, staying: Set[str]) -> bool:
    """Return whether an installer must not act on a row. Both pip and uv delete a directory with all that is in it."""
    return path in staying or (os.path.isdir(path) and not os.path.islink(path))
