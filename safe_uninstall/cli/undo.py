"""``safe-uninstall undo [ID]``: brings back what a transaction took, as a transaction of its own."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from safe_uninstall.cli.options import common_options, take_common
from safe_uninstall.cli.output import print_talk
from safe_uninstall.cli.run import PlanRun, RunOptions
from safe_uninstall.execute.programs import find_programs
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.plan import Request


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("transaction", required=False, metavar="[ID]")
@click.option("-y", "--yes", is_flag=True, help="Do not ask; a blocked plan stays blocked.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would happen; change nothing.")
@click.option(
    "--accept-loss",
    multiple=True,
    metavar="NAME",
    help="Go on although NAME (a soname, path or distribution that an error names) is lost.",
)
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="How to print.")
@click.option(
    "--installer",
    type=click.Choice(["auto", "pip", "uv"]),
    default="auto",
    help="What carries it out. Default: uv where uv made the environment, else pip.",
)
@click.option("--find-links", multiple=True, metavar="PLACE", help="Look for wheels there first (directory or page).")
@click.option("--no-index", is_flag=True, help="Ask no index for wheels.")
@click.option("--keep-backup", is_flag=True, help="Keep the removed files, so that this can be undone exactly too.")
@click.option(
    "--use-ld-library-path",
    is_flag=True,
    help="Let LD_LIBRARY_PATH of this shell count as a place where libraries are found.",
)
@click.option("--break-system-packages", is_flag=True, help="Change a Python that its distributor manages (PEP 668).")
@common_options
def command(**options: Any) -> int:
    """Undo the transaction ID: the last one that is not undone yet, unless it is named (see `history`).

    What it removed comes back: from the backup that --keep-backup kept byte for byte, else from wheels of the same
    build. What it installed goes. What it restored goes back to what it was if there is a backup, else it stays.
    The undo of an undo does again what was undone.
    """
    from safe_uninstall.execute.history import choose, read_history
    from safe_uninstall.execute.transaction import refuse_unfinished
    from safe_uninstall.render.style import printable
    from safe_uninstall.scan.environment import find_environment

    common = take_common(options)
    as_json = options["format"] == "json"
    if as_json and not options["dry_run"] and not options["yes"]:
        raise UsageError("--format json cannot ask: add --dry-run or --yes")
    prefix = find_environment(common.python, variables=os.environ, directory=os.getcwd()).prefix
    # A transaction that did not end is not in the history yet: an older one would be taken for the last.
    refuse_unfinished(prefix, common.python)
    transactions, problems = read_history(prefix)
    for problem in () if common.quiet else problems:
        print_talk(f"warning[history]: {printable(problem)}")
    chosen = choose(transactions, options["transaction"], prefix=prefix, python=common.python)
    installer = options["installer"]
    request = Request(
        names=(),
        undo=chosen.receipt.identifier,
        accepted_losses=options["accept_loss"],
        find_links=tuple(os.path.abspath(place) if os.path.exists(place) else place for place in options["find_links"]),
        no_index=options["no_index"],
        use_library_path=options["use_ld_library_path"],
        break_system_packages=options["break_system_packages"],
        installer=None if installer == "auto" else InstallerKind(installer),
        python=common.python,
        programs=find_programs(),
        tool_prefix=os.path.realpath(sys.prefix),
    )
    how = RunOptions(
        yes=options["yes"], dry_run=options["dry_run"], as_json=as_json, keep_backup=options["keep_backup"]
    )
    return PlanRun(common, request, how).run()
