"""Whoever only looks at an environment that a killed run left is told so, and still gets an answer."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from safe_uninstall.cli.main import run
from safe_uninstall.execute.journal import DIRECTORY, Step, create_journal
from tests.support.environments import EnvironmentBuilder

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def left(make_environment: Callable[..., EnvironmentBuilder], monkeypatch: pytest.MonkeyPatch) -> EnvironmentBuilder:
    """Return an environment with a run that did not end, and make its parent the working directory."""
    builder = make_environment()
    builder.distribution("app", "1.0", {"app.py": "x = 1\n"})
    create_journal(str(builder.prefix)).write(Step.UNINSTALLING)
    monkeypatch.chdir(builder.prefix.parent)
    return builder


@pytest.mark.parametrize(
    "words",
    [["-n", "app"], ["-n", "--format", "json", "app"], ["why", "app"], ["why", "--format", "json", "app"], ["graph"],
     ["check"], ["check", "--format", "json"]],
)  # fmt: skip
def test_what_only_looks_warns(left: EnvironmentBuilder, capsys: Capture, words: list[str]) -> None:
    """On standard error, with the command that ends it, ``-p`` as it was given; the answer is the same as ever."""
    assert run([*words, "-p", left.prefix.name]) == 0
    out, err = capsys.readouterr()
    warning, help = err.splitlines()
    assert warning.startswith("warning[unfinished]: an earlier run did not end, or is still at work: ")
    assert DIRECTORY in warning
    assert help == f"help: end it: safe-uninstall -p {left.prefix.name} recover"
    assert out
    assert "json" not in words or json.loads(out)


def test_a_blocked_plan_warns_too(left: EnvironmentBuilder, capsys: Capture) -> None:
    """It may block because of what is missing in between."""
    left.distribution("other", "1.0", {"other.py": ""}, requires=["app"])
    assert run(["-y", "-p", str(left.prefix), "app"]) == 3
    assert "warning[unfinished]" in capsys.readouterr().err


def test_what_would_change_something_is_refused_once(left: EnvironmentBuilder, capsys: Capture) -> None:
    """The error says it; a warning before it would be the same news again."""
    assert run(["-y", "-p", str(left.prefix), "app"]) == 2
    err = capsys.readouterr().err
    assert "warning" not in err
    assert f"safe-uninstall -p {left.prefix} recover" in err


def test_quiet_is_quiet(left: EnvironmentBuilder, capsys: Capture) -> None:
    """Errors and the verdict only."""
    assert run(["-q", "-n", "-p", str(left.prefix), "app"]) == 0
    assert capsys.readouterr().err == ""


def test_nothing_is_said_where_every_run_ended(left: EnvironmentBuilder, capsys: Capture) -> None:
    """A kept backup is no unfinished run."""
    (journal,) = Path(left.prefix / DIRECTORY).iterdir()
    (journal / "journal.jsonl").unlink()
    (journal / "stash.kept").mkdir()
    create_journal(str(left.prefix)).write(Step.COMMITTED)
    journal.rename(left.prefix / "away")
    assert run(["-n", "-p", str(left.prefix), "app"]) == 0
    assert capsys.readouterr().err == ""
