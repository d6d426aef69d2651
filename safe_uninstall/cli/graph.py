"""``safe-uninstall graph``: which ELF file needs which, and how the loader finds it."""

from __future__ import annotations

import os
from typing import Any

import click

from safe_uninstall.cli.options import common_options, root_option, take_common
from safe_uninstall.cli.output import print_data
from safe_uninstall.cli.place import find_place
from safe_uninstall.cli.unfinished import warn_of_unfinished


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--format",
    type=click.Choice(["json", "dot", "mermaid"]),
    default="json",
    help="How to print; the drawings leave out what the host provides.",
    allow_from_autoenv=False,
)
@root_option
@common_options
def command(**options: Any) -> int:
    """Print every ELF file of the environment with its needs, each file judged as the root of its own load."""
    from safe_uninstall import __version__
    from safe_uninstall.analysis.graph import build_graph
    from safe_uninstall.analysis.ownership import Owners
    from safe_uninstall.render.document import graph_document, to_json
    from safe_uninstall.render.graph import render_dot, render_mermaid
    from safe_uninstall.scan.snapshot import scan

    common = take_common(options)
    environment = find_place(common, tell=options["format"] != "json")
    warn_of_unfinished(environment, common)
    snapshot = scan(environment, variables=os.environ)
    graph = build_graph(snapshot, Owners(snapshot.distributions))
    if options["format"] == "dot":
        print_data(render_dot(graph, environment))
    elif options["format"] == "mermaid":
        print_data(render_mermaid(graph, environment))
    else:
        print_data(to_json(graph_document(graph, snapshot.environment, __version__)))
    return 0
