"""``safe-uninstall history``: what was done to an environment, and what backups are kept of it."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from safe_uninstall import __version__
from safe_uninstall.cli.options import common_options, take_common
from safe_uninstall.cli.output import print_data, print_talk, terminal_width
from safe_uninstall.cli.unfinished import warn_of_unfinished
from safe_uninstall.model.outcome import ExitStatus


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--purge", is_flag=True, help="Delete the kept backups, and say how many bytes that frees.")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="How to print.")
@common_options
def command(**options: Any) -> int:
    """List what was done to an environment, newest first; `undo` takes the IDs."""
    from safe_uninstall.execute.history import purge, read_history
    from safe_uninstall.render.document import history_document, to_json
    from safe_uninstall.render.history import render_history, render_purge
    from safe_uninstall.render.style import printable
    from safe_uninstall.scan.environment import find_environment

    common = take_common(options)
    environment = find_environment(common.python, variables=os.environ, directory=os.getcwd())
    warn_of_unfinished(environment, common)
    purged = purge(environment.prefix) if options["purge"] else None
    transactions, unread = read_history(environment.prefix)
    problems = (*unread, *(() if purged is None else purged.problems))
    if options["format"] == "json":
        freed = None if purged is None else (purged.transactions, purged.bytes_freed)
        print_data(to_json(history_document(transactions, problems, environment, __version__, purged=freed)))
    else:
        for problem in problems:
            print_talk(f"warning[history]: {printable(problem)}")
        if purged is not None:
            print_data(render_purge(purged.transactions, purged.bytes_freed))
        else:
            width = terminal_width(sys.stdout)
            print_data(render_history(transactions, verbose=common.verbose, color=common.paint, width=width))
    return ExitStatus.FAILURE if purged is not None and purged.problems else ExitStatus.DONE
