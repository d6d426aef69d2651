"""``recover``: what became of every run that was killed, and the status that says so."""

from pathlib import Path

import pytest

from safe_uninstall.cli.main import run
from safe_uninstall.execute import recovery
from safe_uninstall.execute.recovery import Recovery
from safe_uninstall.model.outcome import OutcomeState
from tests.support.environments import EnvironmentBuilder

COMMITTED = Recovery(transaction="t1", state=OutcomeState.COMMITTED)
ROLLED_BACK = Recovery(transaction="t2", state=OutcomeState.ROLLED_BACK)
INCOMPLETE = Recovery(
    transaction="t3", state=OutcomeState.ROLLBACK_INCOMPLETE, problems=("a could not be put back",), stash="/stash"
)


@pytest.mark.parametrize(
    ("recoveries", "status", "out", "err"),
    [
        ((), 0, "Nothing to recover.\n", ""),
        (
            (COMMITTED, ROLLED_BACK),
            0,
            "t1: the environment is as planned.\nt2: rolled back, the environment is as it was before.\n",
            "",
        ),
        (
            (INCOMPLETE, COMMITTED),
            5,
            "t1: the environment is as planned.\n",
            "  a could not be put back\n"
            "help: when that is mended, try again: safe-uninstall -p {prefix} recover\n"
            "Roll back of t3 incomplete: what is missing is in /stash\n",
        ),
    ],
)
def test_recover(
    environment: EnvironmentBuilder,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    recoveries: tuple[Recovery, ...],
    status: int,
    out: str,
    err: str,
) -> None:
    """Success is data, what is missing is talk, and one incomplete roll back decides the status."""
    asked: list[str] = []

    def recover(prefix: str) -> tuple[Recovery, ...]:
        asked.append(prefix)
        return recoveries

    monkeypatch.setattr(recovery, "recover", recover)
    assert run(["recover", "-p", str(environment.prefix)]) == status
    assert capsys.readouterr() == (out, err.replace("{prefix}", str(environment.prefix)))
    assert asked == [str(Path(environment.prefix))]


@pytest.mark.parametrize("words", [["-y"], ["--yes"], []])
def test_scripts_may_say_yes(
    environment: EnvironmentBuilder, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It never asks, with or without a terminal."""
    assert run(["recover", "-p", str(environment.prefix), *words]) == 0
    assert capsys.readouterr().out == "Nothing to recover.\n"
