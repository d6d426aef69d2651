"""From words to an exit status: what runs, and what becomes of every kind of error."""

import gc
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from safe_uninstall import __version__
from safe_uninstall.cli import main as main_module
from safe_uninstall.cli.main import main, run
from safe_uninstall.model.errors import SafeUninstallError, StalePlan, UnfinishedTransaction, UsageError

Capture = pytest.CaptureFixture[str]
Install = Callable[[Callable[[], Any]], None]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide variables that are options, and leave the garbage collector as it was."""
    for name in ("NO_COLOR", "FORCE_COLOR", "SAFE_UNINSTALL_DEBUG", "SAFE_UNINSTALL_FORMAT", "SAFE_UNINSTALL_COLOR"):
        monkeypatch.delenv(name, raising=False)
    yield
    gc.enable()


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that puts a command in the place of every command."""

    def put(callback: Callable[[], Any]) -> None:
        @click.command()
        @click.option("--format")
        def command(**_options: Any) -> Any:
            return callback()

        monkeypatch.setattr(main_module, "load_command", lambda _name: command)

    return put


def raising(error: BaseException) -> Callable[[], Any]:
    """Return a callback that raises."""

    def callback() -> Any:
        raise error

    return callback


@pytest.mark.parametrize(("result", "status"), [(None, 0), (0, 0), (3, 3)])
def test_the_status_is_the_commands(install: Install, result: Any, status: int) -> None:
    """Nothing returned is done."""
    install(lambda: result)
    assert run([]) == status


@pytest.mark.parametrize(
    ("error", "status", "slug"),
    [
        (UsageError("told"), 2, "usage"),
        (SafeUninstallError("told"), 1, "failure"),
        (StalePlan(("told",)), 2, "stale-plan"),
        (UnfinishedTransaction("told"), 2, "unfinished"),
        (click.UsageError("told."), 2, "usage"),
        (click.FileError("told", hint="gone"), 2, "usage"),
        (RuntimeError("told"), 1, "failure"),
        (RecursionError("told"), 1, "failure"),
        (KeyboardInterrupt(), 1, None),
        (click.Abort(), 1, None),
    ],
)
def test_every_error_ends_in_a_message(
    install: Install, capsys: Capture, error: BaseException, status: int, slug: str | None
) -> None:
    """Never in a traceback; the same error is one document where JSON is asked for."""
    install(raising(error))
    assert run([]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert ("Interrupted. Nothing changed." if slug is None else f"error[{slug}]: ") in err
    assert run(["--format", "json"]) == status
    out, err = capsys.readouterr()
    assert err.strip() == ""
    document = json.loads(out)
    assert (document["error"]["code"], document["exit_status"]) == (slug or "failure", status)


def test_words_that_make_no_sense(capsys: Capture) -> None:
    """The usage, what is wrong, and where all options are."""
    assert run(["--jjj", "x"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "Usage: safe-uninstall [OPTIONS] PACKAGE...",
        "error[usage]: No such option '--jjj'",
        "help: see all options: safe-uninstall --help",
        "Nothing changed.",
    ]
    assert run(["why"]) == 2
    assert "help: see all options: safe-uninstall why --help" in capsys.readouterr().err


def test_no_package(capsys: Capture) -> None:
    """There is no default for what to remove."""
    assert run([]) == 2
    assert "error[usage]: name at least one distribution to remove" in capsys.readouterr().err


def test_json_cannot_ask(capsys: Capture) -> None:
    """It must be said beforehand whether to look or to do; a format is no yes."""
    assert run(["--format", "json", "x"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["message"] == "--format json cannot ask: add --dry-run or --yes"


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["why", "--help"], ["-v", "graph", "-h"]])
def test_help(capsys: Capture, words: list[str]) -> None:
    """Status 0, on standard output."""
    assert run(words) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Usage: safe-uninstall")
    assert err == ""


def test_help_names_every_command(capsys: Capture) -> None:
    """Commands are no click group, so the help lists them itself."""
    run(["--help"])
    out = capsys.readouterr().out
    listed = out.partition("Commands:\n")[2].partition("\n\n")[0]
    assert {line.split()[0] for line in listed.splitlines()} == set(main_module_commands())


def main_module_commands() -> tuple[str, ...]:
    """Return the words that are commands."""
    from safe_uninstall.cli.arguments import COMMANDS

    return COMMANDS


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """It is said when asked for, and only then: a variable that CI may set for its own ends is no question."""
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"safe-uninstall, version {__version__}\n"
    monkeypatch.setenv("SAFE_UNINSTALL_VERSION", "1.2")
    assert run([]) == 2
    assert "name at least one" in capsys.readouterr().err


def test_explain(capsys: Capture) -> None:
    """The text of a code; another word is an error with near ones."""
    assert run(["explain", "library-lost"]) == 0
    assert capsys.readouterr().out.startswith("# library-lost\n")
    assert run(["explain", "librarylost"]) == 2
    assert "help: did you mean `library-lost`?" in capsys.readouterr().err


def test_schema(capsys: Capture) -> None:
    """One JSON document."""
    assert run(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    "option", ["requirement", "accept_loss", "format", "installer", "yes", "keep_backup", "output"]
)
def test_variables_bear_the_names_of_options(option: str) -> None:
    """SAFE_UNINSTALL_ACCEPT_LOSS is --accept-loss: click makes the variable of the parameter's name."""
    from safe_uninstall.cli.uninstall import command

    (parameter,) = (item for item in command.params if item.name == option)
    assert f"--{option.replace('_', '-')}" in parameter.opts


def test_a_variable_of_another_command_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    """``graph`` has formats of its own."""
    monkeypatch.setenv("SAFE_UNINSTALL_FORMAT", "text")
    assert run(["graph", "-p", str(tmp_path / "none")]) == 2
    assert "error[environment]" in capsys.readouterr().err


class Ended(BaseException):
    """The process would have ended."""


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list of statuses with which the process would have ended."""
    statuses: list[int] = []

    def end(status: int) -> None:
        statuses.append(status)
        raise Ended

    monkeypatch.setattr("os._exit", end)
    return statuses


def test_main_ends_with_the_status(
    monkeypatch: pytest.MonkeyPatch, ended: list[int], install: Install, capsys: Capture
) -> None:
    """Of the words given, or of the command line."""
    install(lambda: 3)
    monkeypatch.setattr(sys, "argv", ["safe-uninstall"])
    with pytest.raises(Ended):
        main([])
    with pytest.raises(Ended):
        main()
    assert ended == [3, 3]


@pytest.mark.parametrize(("status", "told"), [(0, 1), (3, 3)])
def test_output_that_cannot_be_written_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, ended: list[int], install: Install, status: int, told: int
) -> None:
    """What is still in the buffer at the end counts; a status that says more is kept."""

    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    install(lambda: status)
    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(Ended):
        main([])
    assert ended == [told]


def test_streams_that_the_caller_closed(monkeypatch: pytest.MonkeyPatch, ended: list[int], install: Install) -> None:
    """Output goes nowhere, questions get no answer, and the status is still the command's."""

    def talk() -> int:
        click.echo("data")
        click.echo("talk", err=True)
        return len(sys.stdin.read())

    install(talk)
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    with pytest.raises(Ended):
        main([])
    assert ended == [0]
