"""What is printed where: encodings, broken pipes, terminals, errors in words and as documents."""

import io
import json
import os
import sys
from collections.abc import Callable
from typing import TextIO

import jsonschema
import pytest

from safe_uninstall.cli.output import ProgressLine, Report, print_data, print_talk, terminal_width
from safe_uninstall.model.errors import NotInstalled, UsageError
from safe_uninstall.render.schema import schema_text

Capture = pytest.CaptureFixture[str]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "SAFE_UNINSTALL_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_data_and_talk_go_different_ways(capsys: Capture) -> None:
    """Results can be piped without the talk."""
    print_data("data")
    print_talk("talk")
    assert capsys.readouterr() == ("data\n", "talk\n")


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", "... -> \\xe9 \\u0436"), ("latin-1", "... -> é \\u0436"), ("utf-8", "… → é ж")]
)
def test_every_encoding_can_print_everything(monkeypatch: pytest.MonkeyPatch, encoding: str, shown: str) -> None:
    """What the terminal's encoding does not have is written otherwise, never an error."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    print_data("… → é ж")
    assert raw.getvalue().decode(encoding) == f"{shown}\n"


def test_a_reader_that_had_enough_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """After EPIPE the rest goes nowhere, and the work goes on."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        print_data("first")
        print_data("second")
        stream.flush()


def test_other_failures_to_write_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is not glossed over: what was asked for is not there."""

    class Full(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(OSError, match="No space left"):
        print_data("text")


@pytest.mark.parametrize(
    ("stream", "columns", "width"),
    [
        (io.StringIO, "40", None),
        (Terminal, "40", 40),
        (Terminal, "0", None),
        (Terminal, "", None),
        (Terminal, "-5", None),
    ],
)
def test_how_wide_a_terminal_is(
    monkeypatch: pytest.MonkeyPatch, stream: Callable[[], TextIO], columns: str, width: int | None
) -> None:
    """COLUMNS says it; where nothing knows, and for files and pipes, lines are as long as they are."""
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal_width(stream()) == width


def test_an_error_in_words(capsys: Capture) -> None:
    """Slug, sentence, help, and that nothing changed; on standard error, with the status of the error."""
    error = NotInstalled(("torhc\n",), {"torhc\n": ("torch",)}, help=("did you mean `torch`?",))
    assert Report(as_json=False).error(error) == 2
    assert capsys.readouterr() == (
        "",
        "error[not-installed]: not installed: `torhc\\n`\nhelp: did you mean `torch`?\nNothing changed.\n",
    )


def test_an_error_with_the_usage(capsys: Capture) -> None:
    """The usage stands first, the error near the end, where it is seen."""
    Report(as_json=False).error(UsageError("x"), usage="Usage: a\n       b")
    assert capsys.readouterr().err == "Usage: a\n       b\nerror[usage]: x\nNothing changed.\n"


def test_an_error_as_a_document(capsys: Capture) -> None:
    """On standard output, and nothing else anywhere."""
    assert Report(as_json=True).error(UsageError("x"), usage="Usage: a") == 2
    out, err = capsys.readouterr()
    document = json.loads(out)
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(document)
    assert (document["error"]["code"], document["exit_status"], err) == ("usage", 2, "")


@pytest.mark.parametrize(
    ("choice", "stream", "painted"),
    [
        ("auto", Terminal, True),
        ("never", Terminal, False),
        ("auto", io.StringIO, False),
        ("always", io.StringIO, True),
    ],
)
def test_the_colour_of_errors(
    monkeypatch: pytest.MonkeyPatch, choice: str, stream: Callable[[], TextIO], painted: bool
) -> None:
    """``--color`` holds for errors too; ``auto`` looks at the stream that they go to."""
    said = stream()
    monkeypatch.setattr(sys, "stderr", said)
    Report(as_json=False, color=choice).error(UsageError("x"))
    assert ("\033[" in said.getvalue()) is painted  # type: ignore[attr-defined]


def test_errors_fit_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prose wraps; the command behind a colon stays whole."""
    said = Terminal()
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setenv("COLUMNS", "30")
    error = UsageError("there is something wrong with it", help=("see all: safe-uninstall explain --help",))
    Report(as_json=False, color="never").error(error)
    assert said.getvalue().splitlines() == [
        "error[usage]: there is",
        "  something wrong with it",
        "help: see all:",
        "  safe-uninstall explain --help",
        "Nothing changed.",
    ]


def test_an_unforeseen_error(capsys: Capture) -> None:
    """Status 1, its own words, how to see more, no traceback, and no claim about the environment."""
    assert Report(as_json=False).unexpected(ZeroDivisionError("division by zero")) == 1
    err = capsys.readouterr().err
    assert err.startswith("error[failure]: ZeroDivisionError: division by zero\nhelp: ")
    assert "SAFE_UNINSTALL_DEBUG=1" in err
    assert "Traceback" not in err
    assert "Nothing changed" not in err


def test_an_error_without_words(capsys: Capture) -> None:
    """Its type is better than nothing."""
    Report(as_json=False).unexpected(KeyError())
    assert capsys.readouterr().err.startswith("error[failure]: KeyError\n")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_traceback_for_those_who_ask(monkeypatch: pytest.MonkeyPatch, capsys: Capture, as_json: bool) -> None:
    """SAFE_UNINSTALL_DEBUG shows it, on standard error whatever the format."""
    monkeypatch.setenv("SAFE_UNINSTALL_DEBUG", "1")
    try:
        raise ZeroDivisionError
    except ZeroDivisionError as error:
        status = Report(as_json=as_json).unexpected(error)
    out, err = capsys.readouterr()
    assert status == 1
    assert err.startswith("Traceback (most recent call last):\n")
    assert (json.loads(out)["exit_status"] if out else 1) == 1


def test_an_interruption(capsys: Capture) -> None:
    """In words, or as a document."""
    assert Report(as_json=False).interrupted() == 1
    assert capsys.readouterr() == ("", "Interrupted. Nothing changed.\n")
    assert Report(as_json=True).interrupted() == 1
    out, err = capsys.readouterr()
    assert (json.loads(out)["error"]["message"], err) == ("interrupted", "")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list whose last number is the time."""
    times = [0.0]
    monkeypatch.setattr("safe_uninstall.cli.output.time.monotonic", lambda: times[-1])
    return times


def test_progress_is_shown_when_it_takes_long(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    """After half a second, on a terminal, and the line is taken away."""
    said = Terminal()
    monkeypatch.setattr(sys, "stderr", said)
    line = ProgressLine(enabled=True)
    line.update("reading")
    assert said.getvalue() == ""
    clock.append(0.6)
    line.update("reading")
    line.update("hashing", 3)
    line.update("hashing", 3, 10)
    assert said.getvalue() == "\r\033[Kreading …\r\033[Khashing 3 …\r\033[Khashing 3/10 …"
    line.close()
    line.close()
    assert said.getvalue().endswith("…\r\033[K")


@pytest.mark.parametrize(("enabled", "stream"), [(False, Terminal), (True, io.StringIO)])
def test_no_progress(
    monkeypatch: pytest.MonkeyPatch, clock: list[float], enabled: bool, stream: Callable[[], TextIO]
) -> None:
    """Not when it is unwanted, nor in a file."""
    said = stream()
    monkeypatch.setattr(sys, "stderr", said)
    line = ProgressLine(enabled=enabled)
    clock.append(9.0)
    line.update("reading")
    line.close()
    assert said.getvalue() == ""  # type: ignore[attr-defined]
