"""Brings an environment back to what the stash says it was."""

import os
import posixpath
from collections.abc import Iterator

from safe_uninstall.execute.installation import remove, remove_what_is_new
from safe_uninstall.execute.journal import Journal, Step
from safe_uninstall.execute.stash import TEMPORARY_SUFFIX, Stash


def roll_back(journal: Journal, stash: Stash) -> tuple[str, ...]:
    """Put every kept file back, check all of them, and drop the stash only if they are all as they were.

    Returns:
        What could not be brought back, a sentence each; the stash is then still there.
    """
    journal.drop_receipt()
    try:
        journal.write(Step.ROLLING_BACK)
    except OSError:
        # A full disk must not keep files from coming back; the stash says all that is needed.
        pass
    problems = list(remove_what_is_new(journal.facts(Step.PREPARED)))
    problems += [f"{item.path}: {item.reason}" for item in stash.put_back()]
    if not problems:
        problems += [f"{path} is not as it was" for path in stash.differences()]
    if not problems:
        problems += _remove_new_leftovers(journal, stash)
    if problems:
        return tuple(problems)
    try:
        journal.write(Step.ROLLED_BACK)
    except OSError:
        pass
    stash.drop()
    return ()


def _remove_new_leftovers(journal: Journal, stash: Stash) -> Iterator[str]:
    """Remove what a run that was stopped left half-done; yield what could not be removed, a sentence each.

    That is our own new files that were not renamed yet, and the ``~``-prefixed directories into which pip moves files,
    all of which the stash has too.
    """
    before = set(journal.facts(Step.PREPARED).get("leftovers", ()))
    for entry in stash.entries:
        if entry.kind != "directory":
            continue
        for name in os.listdir(entry.path):
            path = posixpath.join(entry.path, name)
            if name.endswith(TEMPORARY_SUFFIX) or (name.startswith("~") and path not in before):
                yield from remove(path)
