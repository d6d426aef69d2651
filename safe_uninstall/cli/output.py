"""Prints: data on standard output, talk, progress and errors on standard error."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, TextIO

import click

from safe_uninstall.model.outcome import ExitStatus
from safe_uninstall.render.style import Style, printable, wants_color, wrap

if TYPE_CHECKING:
    from safe_uninstall.model.errors import SafeUninstallError

_QUIET_SECONDS = 0.5
"""Nothing is said of work that takes less."""


def print_data(text: str) -> None:
    """Print a result; characters that the terminal cannot show are replaced, never an error."""
    _write(sys.stdout, text)


def print_talk(text: str) -> None:
    """Print something that is no result."""
    _write(sys.stderr, text)


def terminal_width(stream: TextIO) -> int | None:
    """Return how many columns fit on a line; None where the output goes to no terminal and lines may be long."""
    if not stream.isatty():
        return None
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal():
        return int(said) or None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except OSError:
        return None


class Report:
    """Says what went wrong: in words on standard error, or as a document on standard output."""

    def __init__(self, *, as_json: bool, color: str = "auto") -> None:
        """Keep what ``--format`` and ``--color`` say."""
        self._as_json = as_json
        self._color = color

    def error(self, error: SafeUninstallError, *, usage: str | None = None, verdict: str = "Nothing changed.") -> int:
        """Print an error and return its exit status."""
        if self._as_json:
            from safe_uninstall import __version__
            from safe_uninstall.render.document import error_document, to_json

            print_data(to_json(error_document(error, __version__)))
            return error.exit_status
        style = Style(color=wants_color(self._color, is_terminal=sys.stderr.isatty(), variables=os.environ))
        width = terminal_width(sys.stderr)
        lines = [] if usage is None else usage.splitlines()
        lines += wrap(f"{style.paint('error', f'error[{error.slug}]')}: {printable(error.message)}", width)
        for text in map(printable, error.help):
            lines += wrap(f"{style.paint('help', 'help')}: {text}", width, sealed=text.partition(": ")[2])
        print_talk("\n".join([*lines, verdict]))
        return error.exit_status

    def interrupted(self) -> int:
        """Say that the user interrupted the run before it changed anything, and return the exit status."""
        if self._as_json:
            from safe_uninstall.model.errors import SafeUninstallError

            return self.error(SafeUninstallError("interrupted"))
        print_talk("Interrupted. Nothing changed.")
        return ExitStatus.FAILURE

    def unexpected(self, error: Exception) -> int:
        """Print an error that nobody foresaw, without a traceback unless SAFE_UNINSTALL_DEBUG is set."""
        from safe_uninstall.model.errors import SafeUninstallError

        if os.environ.get("SAFE_UNINSTALL_DEBUG"):
            import traceback

            print_talk("\n".join(map(printable, traceback.format_exc().splitlines())))
        problem = SafeUninstallError(
            f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
            help=("see where it came from: set SAFE_UNINSTALL_DEBUG=1 and run this again",),
        )
        # Whatever began to change the environment has rolled it back or ended; this one says no more than it knows.
        return self.error(problem, verdict="Stopped by a failure that nobody foresaw.")


class ProgressLine:
    """One line on a terminal that says what takes so long, and goes away."""

    def __init__(self, *, enabled: bool) -> None:
        """Write only if ``enabled`` and standard error is a terminal."""
        self._enabled = enabled and sys.stderr.isatty()
        self._start = time.monotonic()
        self._shown = False

    def update(self, stage: str, done: int = 0, total: int | None = None) -> None:
        """Say what is being done, unless everything is over too soon to be worth a word."""
        if not self._enabled or time.monotonic() - self._start < _QUIET_SECONDS:
            return
        tail = f" {done}" if done and total is None else f" {done}/{total}" if total else ""
        sys.stderr.write(f"\r\033[K{stage}{tail} …")
        sys.stderr.flush()
        self._shown = True

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._shown = False


def _write(stream: TextIO, text: str) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = text.replace("…", "...").replace("→", "->")
        text = plain.encode(encoding, "backslashreplace").decode(encoding)
    try:
        click.echo(text, file=stream, color=True)
    except BrokenPipeError:
        # Whoever read the output has had enough; the work goes on, and the exit status is still true.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
