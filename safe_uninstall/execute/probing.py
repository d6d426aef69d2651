"""Runs the user's probes again in the changed environment, and says whether the change must be undone for them."""

from collections.abc import Callable

from safe_uninstall.execute.journal import Journal, Step
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.plan import Plan
from safe_uninstall.model.probe import ProbeRun

Prober = Callable[[str], ProbeRun]
"""Runs a probe's code with the environment's interpreter."""


def refuse_without_prober(plan: Plan, prober: Prober | None) -> None:
    """Raise UsageError where a plan's probes could not be run again."""
    if plan.probes and prober is None:
        raise UsageError("a plan with probes cannot be carried out without something that runs them")


def probe_again(
    plan: Plan, prober: Prober | None, journal: Journal, progress: Callable[[str], None], runs: list[ProbeRun]
) -> str | None:
    """Run the probes of a plan again; after one that must be undone for, no other is run.

    A probe that failed before is run too, since what it says now is worth a report; it is never blamed on the change.

    Args:
        plan: its probes, with how they ended before.
        prober: runs them.
        journal: told when the first one begins.
        progress: told which one runs.
        runs: gets how they ended.

    Returns:
        Why the change must be undone, None where it need not be.
    """
    if prober is None or not plan.probes:
        return None
    journal.write(Step.PROBING, probes=[before.code for before in plan.probes])
    for before in plan.probes:
        progress(f"probing: {before.label}")
        run = prober(before.code)
        runs.append(run)
        if before.passed and not run.passed:
            return f"the probe `{run.label}` passed before, and fails now: {run.failure}"
    return None
