"""Probes after the change: what worked before and fails now undoes everything, what failed before is not blamed."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.execute.journal import Journal, Step
from safe_uninstall.model.errors import InUse, UsageError
from safe_uninstall.model.outcome import Outcome, OutcomeState
from safe_uninstall.model.plan import Plan, Request
from safe_uninstall.model.probe import ProbeRun
from safe_uninstall.model.processes import Use, UseKind
from safe_uninstall.render.document import outcome_document
from safe_uninstall.render.text import render_outcome
from tests.support.environments import EnvironmentBuilder, read_tree
from tests.support.runs import build_twins, carry_out
from tests.unit.test_in_use import Table

GOOD = ProbeRun(code="good", mapped=())
BAD = ProbeRun(code="bad", failure="it ended with status 1", output="before", mapped=())
BROKEN = ProbeRun(code="good", failure="it ended with status 1", output="line 1\nImportError: x\033[2J")
MENDED = ProbeRun(code="bad", mapped=())


class Prober:
    """Gives the answers that a test wants, and remembers what was asked."""

    def __init__(self, *answers: ProbeRun | BaseException) -> None:
        """Give ``answers`` in turn."""
        self.answers = list(answers)
        self.codes: list[str] = []

    def __call__(self, code: str) -> ProbeRun:
        """Answer."""
        self.codes.append(code)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def plan(builder: EnvironmentBuilder, *before: ProbeRun) -> Plan:
    """Plan the removal of one of the twins, with probes that ended in a certain way."""
    build_twins(builder)
    request = Request(names=("twin-cu11",), probes=tuple(run.code for run in before))
    return make_plan(builder.snapshot(), request, probes=before)


def text(outcome: Outcome, *, verbose: bool = False) -> list[str]:
    """Return how an outcome is told, by line."""
    return render_outcome(outcome, verbose=verbose, color=False).splitlines()


def test_probes_that_pass_again_commit(environment: EnvironmentBuilder) -> None:
    """All are run, in their order, and told of before the last line."""
    prober = Prober(GOOD, replace(GOOD, code="two"))
    outcome = carry_out(environment, plan(environment, GOOD, replace(GOOD, code="two")), prober=prober)
    assert (outcome.state, prober.codes) == (OutcomeState.COMMITTED, ["good", "two"])
    assert [run.code for run in outcome.probes] == ["good", "two"]
    assert text(outcome)[:-1] == ["Probe passed: good", "Probe passed: two"]
    assert text(outcome)[-1].startswith("Removed twin-cu11 11.8")


def test_a_probe_that_fails_now_rolls_back(environment: EnvironmentBuilder) -> None:
    """Nothing of the change is left; why, and the end of the probe's own output, are told; others are not run."""
    found = plan(environment, GOOD, BAD)
    before = read_tree(environment.prefix)
    prober = Prober(BROKEN)
    outcome = carry_out(environment, found, prober=prober)
    assert (outcome.state, prober.codes, outcome.probes) == (OutcomeState.ROLLED_BACK, ["good"], (BROKEN,))
    assert read_tree(environment.prefix) == before
    assert text(outcome) == [
        "error[failed]: the probe `good` passed before, and fails now: it ended with status 1",
        "  | line 1",
        "  | ImportError: x\\x1b[2J",
        "Rolled back: the environment is as it was before.",
    ]


def test_the_output_of_a_failed_probe_is_cut(environment: EnvironmentBuilder) -> None:
    """As that of an installer: the last lines, and all with -v."""
    long = replace(BROKEN, output="\n".join(map(str, range(30))))
    outcome = Outcome(plan=plan(environment, GOOD), state=OutcomeState.ROLLED_BACK, reason="x", probes=(long,))
    assert text(outcome)[1:-1] == [f"  | {number}" for number in range(20, 30)]
    assert len(text(outcome, verbose=True)) == 32


def test_one_that_failed_before_is_not_blamed(environment: EnvironmentBuilder) -> None:
    """It is run and reported, whether it still fails or not."""
    prober = Prober(replace(BAD, failure="it did not end within 5 s", timed_out=True), GOOD, MENDED)
    outcome = carry_out(environment, plan(environment, BAD, GOOD, BAD), prober=prober)
    assert outcome.state is OutcomeState.COMMITTED
    assert text(outcome)[:-1] == [
        "Probe failed: bad, as it did before: it did not end within 5 s",
        "Probe passed: good",
        "Probe passed: bad, which failed before",
    ]


def test_only_the_output_of_the_one_to_blame_is_told(environment: EnvironmentBuilder) -> None:
    """One that failed before is as good or bad as it was."""
    found = plan(environment, BAD, GOOD)
    outcome = carry_out(environment, found, prober=Prober(BAD, BROKEN))
    assert text(outcome)[1:-1] == ["  | line 1", "  | ImportError: x\\x1b[2J"]
    other = Outcome(plan=found, state=OutcomeState.ROLLED_BACK, reason="x", installer_output="pip", probes=(BAD,))
    assert text(other)[1:-1] == ["  | pip"]


def test_an_interrupt_during_a_probe_rolls_back(environment: EnvironmentBuilder) -> None:
    """Ctrl-C and SIGTERM are reasons like any other."""
    found = plan(environment, GOOD)
    before = read_tree(environment.prefix)

    def interrupted(_code: str) -> ProbeRun:
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("the signal came too late")

    outcome = carry_out(environment, found, prober=interrupted)
    assert (outcome.state, outcome.reason) == (OutcomeState.ROLLED_BACK, "interrupted by SIGTERM")
    assert read_tree(environment.prefix) == before


def test_a_probe_that_cannot_be_run_rolls_back(environment: EnvironmentBuilder) -> None:
    """The interpreter was there before; that it is gone is what the probe was to find."""
    found = plan(environment, GOOD)
    before = read_tree(environment.prefix)
    outcome = carry_out(environment, found, prober=Prober(UsageError("the probe cannot be run")))
    assert outcome.state is OutcomeState.ROLLED_BACK
    assert "the probe cannot be run" in (outcome.reason or "")
    assert text(outcome)[-1] == "Rolled back: the environment is as it was before."
    assert read_tree(environment.prefix) == before


def test_a_plan_with_probes_needs_somebody_to_run_them(environment: EnvironmentBuilder) -> None:
    """Found out before anything is touched; a plan without probes does not ask."""
    found = plan(environment, GOOD)
    before = read_tree(environment.prefix)
    with pytest.raises(UsageError, match="something that runs them"):
        carry_out(environment, found)
    assert read_tree(environment.prefix) == before
    prober = Prober()
    outcome = carry_out(environment, replace(found, probes=(), request=Request(names=("twin-cu11",))), prober=prober)
    assert (outcome.state, outcome.probes, prober.codes) == (OutcomeState.COMMITTED, (), [])


def test_the_journal_and_the_progress_tell_of_it(
    environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the verification and the commit; a run that is killed there is rolled back like any before it."""
    steps: list[Step] = []
    real = Journal.write

    def write(journal: Journal, step: Step, **facts: Any) -> None:
        steps.append(step)
        real(journal, step, **facts)

    monkeypatch.setattr(Journal, "write", write)
    told: list[str] = []
    carry_out(environment, plan(environment, GOOD), prober=Prober(GOOD), progress=told.append)
    assert steps[-3:] == [Step.VERIFYING, Step.PROBING, Step.COMMITTED]
    assert told[-2:] == ["verifying", "probing: good"]


def test_nothing_is_probed_after_a_failure(environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that is undone anyway needs no probe."""
    from safe_uninstall.execute import transaction

    found = plan(environment, GOOD)
    monkeypatch.setattr(transaction, "compare_outcome", lambda *_: ("something differs",))
    prober = Prober()
    outcome = carry_out(environment, found, prober=prober)
    assert (outcome.state, prober.codes, outcome.probes) == (OutcomeState.ROLLED_BACK, [], ())


def test_the_document_holds_both_runs(environment: EnvironmentBuilder) -> None:
    """Before the change in the plan, after it in the outcome; paths relative to the prefix."""
    inside = f"{environment.prefix}/lib/x.so"
    before = replace(GOOD, mapped=(inside, "/usr/lib/libc.so.6"))
    outcome = Outcome(plan=plan(environment, before), state=OutcomeState.ROLLED_BACK, reason="x", probes=(BROKEN,))
    document = outcome_document(outcome, "1")
    assert document["plan"]["request"]["probes"] == ["good"]
    assert document["plan"]["probes"] == [
        {
            "code": "good",
            "passed": True,
            "failure": None,
            "timed_out": False,
            "output": "",
            "mapped": ["lib/x.so", "/usr/lib/libc.so.6"],
        }
    ]
    assert document["probes"] == [
        {
            "code": "good",
            "passed": False,
            "failure": "it ended with status 1",
            "timed_out": False,
            "output": "line 1\nImportError: x\033[2J",
            "mapped": None,
        }
    ]


def test_what_came_into_use_meanwhile_is_refused(environment: EnvironmentBuilder) -> None:
    """A process that started after the plan was shown counts too, if use is refused; else it was warned of."""
    build_twins(environment)
    path = environment.path("nvidia/nvtx/own11.py")
    snapshot = environment.snapshot()
    used = replace(
        snapshot, processes=Table(Use(pid=7, command="python x.py", path=path, how=UseKind.OPEN), unreadable=1)
    )
    before = read_tree(environment.prefix)
    request = Request(names=("twin-cu11",), refuse_in_use=True)
    with pytest.raises(InUse, match=r"1 process uses a file that would go: 7 \(python x.py\)"):
        carry_out(environment, make_plan(snapshot, request), rescan=lambda: used)
    assert read_tree(environment.prefix) == before
    warned = make_plan(snapshot, replace(request, refuse_in_use=False))
    looks = iter([lambda: used, environment.snapshot])
    assert carry_out(environment, warned, rescan=lambda: next(looks)()).state is OutcomeState.COMMITTED
    assert not Path(path).exists()
