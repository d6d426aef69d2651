"""``safe-uninstall graph [NAME...]``: which ELF file needs which, and how the loader finds it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from safe_uninstall.cli.options import common_options, complete_distributions, root_option, take_common
from safe_uninstall.cli.output import print_data
from safe_uninstall.cli.place import find_place
from safe_uninstall.cli.unfinished import warn_of_unfinished

if TYPE_CHECKING:
    from safe_uninstall.model.graph import Graph
    from safe_uninstall.model.snapshot import Snapshot


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_distributions)
@click.option(
    "--format",
    type=click.Choice(["json", "dot", "mermaid"]),
    default="json",
    help="How to print; the drawings leave out what the host provides.",
    allow_from_autoenv=False,
)
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    default=1,
    metavar="N",
    show_default=True,
    help="With NAME: how many needs away from it, in either direction.",
)
@click.option(
    "--by",
    type=click.Choice(["file", "distribution"]),
    default="file",
    help="What the nodes are. Default: files.",
)
@root_option
@common_options
def command(**options: Any) -> int:
    """Print ELF files of the environment with their needs, each file judged as the root of its own load.

    NAME is a distribution or a glob, a soname, or the end of a path: only what lies around it is printed.
    """
    from safe_uninstall import __version__
    from safe_uninstall.analysis.graph import build_graph
    from safe_uninstall.analysis.ownership import Owners
    from safe_uninstall.analysis.subgraph import between_distributions
    from safe_uninstall.render import graph as drawings
    from safe_uninstall.render.document import distributions_document, graph_document, to_json
    from safe_uninstall.scan.snapshot import scan

    common = take_common(options)
    kind = options["format"]
    environment = find_place(common, tell=kind != "json")
    warn_of_unfinished(environment, common)
    snapshot = scan(environment, variables=os.environ)
    graph = build_graph(snapshot, Owners(snapshot.distributions))
    if options["names"]:
        graph = _around(snapshot, graph, options["names"], options["depth"])
    if options["by"] == "distribution":
        nodes = between_distributions(graph)
        if kind == "json":
            print_data(to_json(distributions_document(nodes, snapshot.environment, __version__)))
        else:
            draw = drawings.render_distributions_dot if kind == "dot" else drawings.render_distributions_mermaid
            print_data(draw(nodes))
    elif kind == "json":
        print_data(to_json(graph_document(graph, snapshot.environment, __version__)))
    else:
        render = drawings.render_dot if kind == "dot" else drawings.render_mermaid
        print_data(render(graph, snapshot.environment, part=bool(options["names"])))
    return 0


def _around(snapshot: Snapshot, graph: Graph, names: tuple[str, ...], depth: int) -> Graph:
    from safe_uninstall.analysis.subgraph import around, named
    from safe_uninstall.analysis.why import not_known

    paths, unknown = named(graph, names)
    if unknown:
        raise not_known(snapshot, unknown)
    return around(graph, paths, depth)
