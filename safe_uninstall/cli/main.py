"""Entry point: finds the command that the arguments name, runs it, and turns errors into messages and exit statuses."""

from __future__ import annotations

import gc
import itertools
import os
import sys
from typing import TYPE_CHECKING

import click

from safe_uninstall.cli.arguments import split
from safe_uninstall.cli.commands import load_command
from safe_uninstall.cli.output import report_error, report_unexpected
from safe_uninstall.model.errors import SafeUninstallError, UsageError
from safe_uninstall.model.outcome import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "safe-uninstall"
ENVIRONMENT_PREFIX = "SAFE_UNINSTALL"
"""Every option can be given as SAFE_UNINSTALL_<OPTION>."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and exit with its status."""
    status = run(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = status or ExitStatus.FAILURE
    # Freeing the tens of thousands of facts one by one takes longer than judging them.
    os._exit(status)


def run(words: Sequence[str]) -> int:
    """Run the command line and return its exit status; nothing but this prints an error."""
    as_json = _asks_for_json(words)
    # A process that lives for a fraction of a second and makes tens of thousands of small tuples has no garbage.
    gc.disable()
    try:
        name, rest = split(words)
        command = load_command(name)
        status = command.main(
            args=rest,
            prog_name=PROGRAM if name == "uninstall" else f"{PROGRAM} {name}",
            standalone_mode=False,
            auto_envvar_prefix=ENVIRONMENT_PREFIX,
        )
        sys.stdout.flush()
        return int(status or 0)
    except click.UsageError as error:
        usage = None if error.ctx is None else error.ctx.get_usage()
        hint = () if error.ctx is None else (f"see all options: {error.ctx.command_path} --help",)
        problem = UsageError(error.format_message().rstrip("."), help=hint)
        return report_error(problem, as_json=as_json, usage=usage)
    except click.ClickException as error:
        return report_error(UsageError(error.format_message().rstrip(".")), as_json=as_json)
    except SafeUninstallError as error:
        return report_error(error, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted. Nothing changed.", err=True)
        return ExitStatus.FAILURE
    except BrokenPipeError:
        # Whoever read the output has had enough; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.FAILURE
    except Exception as error:
        return report_unexpected(error, as_json=as_json)


def _asks_for_json(words: Sequence[str]) -> bool:
    """Return whether errors must be JSON too; the arguments may be too broken to be parsed."""
    if "--format=json" in words or os.environ.get(f"{ENVIRONMENT_PREFIX}_FORMAT") == "json":
        return True
    return any(first == "--format" and second == "json" for first, second in itertools.pairwise(words))


if __name__ == "__main__":
    main()
