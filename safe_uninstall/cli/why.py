"""``safe-uninstall why NAME...``: who provides, claims and needs it, and how it is found."""

from __future__ import annotations

import os
from typing import Any

import click

from safe_uninstall.cli.options import (
    common_options,
    complete_distributions,
    consumers_option,
    root_option,
    take_common,
    take_consumers,
)
from safe_uninstall.cli.output import print_data
from safe_uninstall.cli.place import find_place, paths_inside
from safe_uninstall.cli.unfinished import warn_of_unfinished


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_distributions)
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="How to print.")
@consumers_option
@root_option
@common_options
def command(**options: Any) -> int:
    """Say of a soname, a file or a distribution who provides it, who claims it and who needs it."""
    from safe_uninstall import __version__
    from safe_uninstall.analysis.graph import build_graph
    from safe_uninstall.analysis.ownership import Owners
    from safe_uninstall.analysis.why import explain_name
    from safe_uninstall.render.document import to_json
    from safe_uninstall.render.why import render_why, why_document
    from safe_uninstall.scan.snapshot import scan

    common = take_common(options)
    environment = find_place(common, tell=options["format"] != "json")
    warn_of_unfinished(environment, common)
    snapshot = scan(environment, variables=os.environ, consumers_in=paths_inside(take_consumers(options), environment))
    owners = Owners(snapshot.distributions)
    graph = build_graph(snapshot, owners)
    answers = tuple(explain_name(snapshot, graph, owners, name) for name in options["names"])
    if options["format"] == "json":
        print_data(to_json(why_document(answers, environment, __version__)))
    else:
        texts = [render_why(answer, environment, verbose=common.verbose, color=common.paint) for answer in answers]
        print_data("\n\n".join(texts))
    return 0
