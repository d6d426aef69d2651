"""Finishes what a killed run left behind."""

from dataclasses import dataclass

from safe_uninstall.execute.commit import finish_commit
from safe_uninstall.execute.interrupts import uninterrupted
from safe_uninstall.execute.journal import Journal, Step, sweep, unfinished
from safe_uninstall.execute.lock import EnvironmentLock
from safe_uninstall.execute.orphans import end_orphans, is_running
from safe_uninstall.execute.rollback import roll_back
from safe_uninstall.execute.stash import Stash
from safe_uninstall.model.outcome import OutcomeState


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What became of one unfinished transaction."""

    transaction: str
    state: OutcomeState
    problems: tuple[str, ...] = ()
    """What could not be brought back, a sentence each."""
    stash: str | None = None
    """Absolute path of the stash where it still exists."""


def recover(prefix: str, *, lock_timeout: float = 10.0) -> tuple[Recovery, ...]:
    """End every unfinished transaction of an environment, the newest first.

    A run that was committed keeps its outcome, and what was left to do after that is done; any other is rolled back,
    since only a rescan could tell whether an outcome is the planned one, and what was before is known for certain.

    Args:
        prefix: root of the environment.
        lock_timeout: seconds to wait for another process that works on the environment.
    """
    for journal in unfinished(prefix):
        # An installer that outlived its run may hold the lock that we wait for.
        process = journal.facts(Step.PREPARED).get("process")
        if process is not None and not is_running(process):
            end_orphans(journal.directory)
    with EnvironmentLock(prefix, timeout=lock_timeout), uninterrupted():
        recoveries = tuple(_end(journal) for journal in reversed(unfinished(prefix)))
        sweep(prefix)
        return recoveries


def _end(journal: Journal) -> Recovery:
    end_orphans(journal.directory)
    stash = Stash(journal.stash_directory)
    step = journal.last_step()
    if step is Step.COMMITTED:
        finish_commit(journal, stash)
        return Recovery(transaction=journal.identifier, state=OutcomeState.COMMITTED)
    if step in (None, Step.PREPARED, Step.STASHING):
        # The stash was never completed, so that nothing of the environment was touched.
        stash.drop()
    else:
        problems = roll_back(journal, stash) if stash.load() else _without_stash(step)
        if problems:
            return Recovery(
                transaction=journal.identifier,
                state=OutcomeState.ROLLBACK_INCOMPLETE,
                problems=problems,
                stash=journal.stash_directory,
            )
    journal.forget()
    return Recovery(transaction=journal.identifier, state=OutcomeState.ROLLED_BACK)


def _without_stash(step: Step | None) -> tuple[str, ...]:
    """Return what is wrong where there is no stash: nothing if it went because everything was back."""
    if step in (Step.STASHED, Step.ROLLING_BACK):
        return ()
    return ("the stash cannot be read, though files may have been removed",)
