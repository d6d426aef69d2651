"""``safe-uninstall apply PLAN.json``: carries out a plan that was saved and reviewed."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Any

import click

from safe_uninstall.cli.options import common_options, take_common
from safe_uninstall.cli.plan_file import read_plan
from safe_uninstall.cli.run import PlanRun, RunOptions
from safe_uninstall.execute.programs import find_programs
from safe_uninstall.model.errors import UsageError


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("plan", metavar="PLAN.json")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("-n", "--dry-run", is_flag=True, help="Say whether it still fits, and show it; change nothing.")
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="How to print.")
@click.option("--find-links", multiple=True, metavar="PLACE", help="Look for wheels there first (directory or page).")
@click.option("--no-index", is_flag=True, help="Ask no index for wheels.")
@click.option("--keep-backup", is_flag=True, help="Keep the removed files, and print where.")
@common_options
def command(**options: Any) -> int:
    """Carry out a plan that -o saved, if the environment is still the one that it was made for.

    PLAN.json may be - for standard input. With -p, an identical environment in another place.
    """
    common = take_common(options)
    as_json = options["format"] == "json"
    if as_json and not options["dry_run"] and not options["yes"]:
        raise UsageError("--format json cannot ask: add --dry-run or --yes")
    saved = read_plan(options["plan"])
    if common.python is None:
        common = replace(common, python=saved.prefix)
    request = saved.request(
        find_links=tuple(os.path.abspath(place) if os.path.exists(place) else place for place in options["find_links"]),
        no_index=options["no_index"],
        python=common.python,
        programs=find_programs(),
        tool_prefix=os.path.realpath(sys.prefix),
    )
    how = RunOptions(
        yes=options["yes"],
        dry_run=options["dry_run"],
        as_json=as_json,
        keep_backup=options["keep_backup"],
        reviewed=saved,
    )
    return PlanRun(common, request, how).run()
