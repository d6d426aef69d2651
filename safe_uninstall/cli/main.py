"""Entry point: finds the command that the arguments name, runs it, and turns errors into messages and exit statuses."""

from __future__ import annotations

import gc
import os
import shlex
import sys
from typing import TYPE_CHECKING

import click

from safe_uninstall.cli.arguments import CHANGING, ENVIRONMENT_PREFIX, split, value_of, without_root
from safe_uninstall.cli.commands import load_command
from safe_uninstall.cli.output import Report
from safe_uninstall.model.errors import SafeUninstallError, UsageError
from safe_uninstall.model.outcome import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PROGRAM = "safe-uninstall"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and exit with its status."""
    _open_closed_streams()
    status = run(list(sys.argv[1:] if arguments is None else arguments))
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = status or ExitStatus.FAILURE
    # Freeing the tens of thousands of facts one by one takes longer than judging them.
    os._exit(status)


def run(words: Sequence[str]) -> int:
    """Run the command line and return its exit status; nothing but this prints an error."""
    if asked := os.environ.get("_SAFE_UNINSTALL_COMPLETE"):
        from safe_uninstall.cli.completion import answer

        return answer(asked)
    # The arguments may be too broken to be parsed, and the error must be as they ask all the same.
    report = Report(
        as_json=value_of("--format", words, os.environ) == "json",
        color=value_of("--color", words, os.environ) or "auto",
    )
    return guarded(report, lambda: _run(words))


def guarded(report: Report, act: Callable[[], int]) -> int:
    """Act and return the exit status; every error becomes a message of ``report`` and the status that it has."""
    # A process that lives for a fraction of a second and makes tens of thousands of small tuples has no garbage.
    gc.disable()
    try:
        return act()
    except click.UsageError as error:
        usage = None if error.ctx is None else error.ctx.get_usage()
        hint = () if error.ctx is None else (f"see all options: {error.ctx.command_path} --help",)
        return report.error(UsageError(_on_one_line(error), help=hint), usage=usage)
    except click.ClickException as error:
        return report.error(UsageError(_on_one_line(error)))
    except SafeUninstallError as error:
        return report.error(error)
    except (click.Abort, KeyboardInterrupt):
        return report.interrupted()
    except Exception as error:
        return report.unexpected(error)


def _run(words: Sequence[str]) -> int:
    name, rest = split(words)
    if name in CHANGING and value_of("--root", words, os.environ) is not None:
        raise UsageError(
            f"`{PROGRAM} {name}` is for environments of this machine, not for what lies in a mounted tree",
            help=(f"run it inside the tree: {shlex.join((PROGRAM, *without_root(words)))}",),
        )
    command = load_command(name)
    status = command.main(
        args=rest,
        prog_name=PROGRAM if name == "uninstall" else f"{PROGRAM} {name}",
        standalone_mode=False,
        auto_envvar_prefix=ENVIRONMENT_PREFIX,
        obj=tuple(words),
    )
    return int(status or 0)


def _on_one_line(error: click.ClickException) -> str:
    """Return what click says as a clause: it lists choices on lines of their own."""
    return " ".join(error.format_message().split()).rstrip(".")


def _open_closed_streams() -> None:
    """Put the null device in the place of standard streams that the caller closed, so that no other file takes it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


if __name__ == "__main__":
    main()
