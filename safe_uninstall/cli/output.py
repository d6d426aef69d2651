"""Prints: data on standard output, talk, progress and errors on standard error."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import click

from safe_uninstall.model.outcome import ExitStatus
from safe_uninstall.render.style import Style, printable, wants_color

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


def report_error(error: SafeUninstallError, *, as_json: bool, usage: str | None = None) -> int:
    """Print an error and return its exit status."""
    if as_json:
        from safe_uninstall import __version__
        from safe_uninstall.render.document import error_document, to_json

        print_data(to_json(error_document(error, __version__)))
        return error.exit_status
    style = Style(color=wants_color("auto", is_terminal=sys.stderr.isatty(), variables=os.environ))
    lines = [] if usage is None else [usage]
    lines.append(f"{style.paint('error', f'error[{error.slug}]')}: {error.message}")
    lines += [f"{style.paint('help', 'help')}: {text}" for text in error.help]
    lines.append("Nothing changed.")
    print_talk(printable("\n".join(lines)))
    return error.exit_status


def report_unexpected(error: Exception, *, as_json: bool) -> int:
    """Print an error that nobody foresaw, without a traceback unless SAFE_UNINSTALL_DEBUG is set."""
    from safe_uninstall.model.errors import SafeUninstallError

    if os.environ.get("SAFE_UNINSTALL_DEBUG"):
        import traceback

        traceback.print_exc()
    problem = SafeUninstallError(
        f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
        help=("see where it came from: set SAFE_UNINSTALL_DEBUG=1 and run this again",),
    )
    return report_error(problem, as_json=as_json) or ExitStatus.FAILURE


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


def _write(stream: object, text: str) -> None:
    assert hasattr(stream, "encoding")
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = text.replace("…", "...").replace("→", "->")
        text = plain.encode(encoding, "backslashreplace").decode(encoding)
    click.echo(text, file=stream, color=True)  # type: ignore[arg-type]
