"""How a run ended."""

from dataclasses import dataclass
from enum import Enum, IntEnum

from safe_uninstall.model.plan import Plan
from safe_uninstall.model.probe import ProbeRun


class ExitStatus(IntEnum):
    """Exit statuses of every command."""

    DONE = 0
    FAILURE = 1
    USAGE = 2
    BLOCKED = 3
    ROLLED_BACK = 4
    ROLLBACK_INCOMPLETE = 5


class OutcomeState(Enum):
    """The state in which a run left the environment."""

    COMMITTED = "committed"
    """As planned."""
    ROLLED_BACK = "rolled-back"
    """As it was before, byte for byte."""
    ROLLBACK_INCOMPLETE = "rollback-incomplete"
    """Neither: what is missing is in the stash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run did."""

    plan: Plan
    state: OutcomeState
    reason: str | None = None
    """Why it was rolled back, in a sentence."""
    mismatches: tuple[str, ...] = ()
    """Differences between the predicted and the real outcome, a sentence each."""
    stash: str | None = None
    """Absolute path of the stash where it still exists."""
    installer_output: str = ""
    """What the installer printed, standard output and error together."""
    transaction: str | None = None
    """Identifier in the history."""
    bytes_freed: int = 0
    probes: tuple[ProbeRun, ...] = ()
    """How the probes ended after the change, as far as they were run; those of before are in the plan."""
