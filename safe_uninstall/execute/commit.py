"""What is left to do once a transaction is committed; done again after a kill, it does the rest."""

import shutil

from safe_uninstall.execute.journal import Journal, Step
from safe_uninstall.execute.stash import Stash


def finish_commit(journal: Journal, stash: Stash) -> str | None:
    """Move the receipt into the history, and keep the stash as a backup or drop it, as the journal says.

    Returns:
        Absolute path of the backup, None when none is kept.

    Raises:
        OSError: something is left to do; the environment itself is as planned.
    """
    journal.publish_receipt()
    if journal.facts(Step.COMMITTED).get("keep_backup"):
        shutil.rmtree(journal.wheels_directory, ignore_errors=True)
        return journal.keep_backup()
    stash.drop()
    journal.forget()
    return None
