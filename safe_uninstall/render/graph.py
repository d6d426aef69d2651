"""The provides/needs graph as a drawing: DOT for Graphviz, flowchart for Mermaid.

Libraries that are the host's to provide are left out: every file needs libc, and no drawing is the better for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from safe_uninstall.analysis.names import is_host_library
from safe_uninstall.render.paths import relative_to_site_packages
from safe_uninstall.render.style import printable

if TYPE_CHECKING:
    from safe_uninstall.model.environment import Environment
    from safe_uninstall.model.graph import DistributionNode, Graph

_NAMED = 2
"""Libraries that an edge between distributions names."""


def render_dot(graph: Graph, environment: Environment, *, part: bool = False) -> str:
    """Return a graph in the DOT language: a cluster for each distribution, an edge for each need.

    Args:
        graph: what to draw.
        environment: whose paths are shown.
        part: whether needs of files that are not in ``graph`` are left out.
    """
    return _dot_text(_draw(graph, environment, part))


def render_mermaid(graph: Graph, environment: Environment, *, part: bool = False) -> str:
    """Return a graph as a Mermaid flowchart, with the arguments of ``render_dot``."""
    return _mermaid_text(_draw(graph, environment, part))


def render_distributions_dot(nodes: Iterable[DistributionNode]) -> str:
    """Return the graph between distributions in the DOT language; an edge names the libraries."""
    return _dot_text(_draw_distributions(nodes))


def render_distributions_mermaid(nodes: Iterable[DistributionNode]) -> str:
    """Return the graph between distributions as a Mermaid flowchart."""
    return _mermaid_text(_draw_distributions(nodes))


def _dot_text(drawing: _Drawing) -> str:
    lines = ["digraph needs {", "  rankdir=LR;", "  node [shape=box];"]
    for number, (owner, paths) in enumerate(drawing.owners):
        indent = "  "
        if owner is not None:
            lines += [f"  subgraph cluster_{number} {{", f"    label={_dot(owner)};"]
            indent = "    "
        lines += [f"{indent}{_dot(path)};" for path in paths]
        if owner is not None:
            lines.append("  }")
    lines += [f"  {_dot(name)} [style=dashed];" for name in drawing.missing]
    for edge in drawing.edges:
        style = ", style=dashed" if edge.missing else ""
        lines.append(f"  {_dot(edge.consumer)} -> {_dot(edge.provider)} [label={_dot(edge.how)}{style}];")
    return "\n".join([*lines, "}"])


def _mermaid_text(drawing: _Drawing) -> str:
    lines = ["flowchart LR"]
    identifiers: dict[str, str] = {}

    def node(path: str) -> str:
        identifiers[path] = f"n{len(identifiers)}"
        return f"{identifiers[path]}[{_mermaid(path)}]"

    for number, (owner, paths) in enumerate(drawing.owners):
        if owner is not None:
            lines.append(f"  subgraph d{number} [{_mermaid(owner)}]")
        indent = "  " if owner is None else "    "
        lines += [f"{indent}{node(path)}" for path in paths]
        if owner is not None:
            lines.append("  end")
    lines += [f"  {node(name)}" for name in drawing.missing]
    for edge in drawing.edges:
        arrow = "-.->" if edge.missing else "-->"
        lines.append(f"  {identifiers[edge.consumer]} {arrow}|{_mermaid(edge.how)}| {identifiers[edge.provider]}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edge:
    consumer: str
    provider: str
    how: str
    missing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawing:
    owners: tuple[tuple[str | None, tuple[str, ...]], ...]
    """Distributions by name, then None for what nobody owns, with the files of each that have an edge."""
    missing: tuple[str, ...]
    edges: tuple[_Edge, ...]


def _draw_distributions(nodes: Iterable[DistributionNode]) -> _Drawing:
    edges = []
    drawn: set[str] = set()
    for node in nodes:
        consumer = _distribution(node.name)
        names: dict[str, list[str]] = {}
        for need in node.needs:
            names.setdefault(_distribution(need.provider), []).append(printable(need.name))
        for provider, needed in names.items():
            drawn |= {consumer, provider}
            edges.append(_Edge(consumer=consumer, provider=provider, how=_listed(needed), missing=False))
        if node.missing:
            drawn.add(consumer)
            label = f"{_listed([printable(name) for name in node.missing])} (missing)"
            edges.append(_Edge(consumer=consumer, provider=label, how="missing", missing=True))
    missing = tuple(sorted({edge.provider for edge in edges if edge.missing}))
    return _Drawing(owners=((None, tuple(sorted(drawn))),) if drawn else (), missing=missing, edges=tuple(edges))


def _distribution(name: str | None) -> str:
    return "(unowned)" if name is None else name


def _listed(names: list[str]) -> str:
    """Return a label that stays short however many libraries there are."""
    return ", ".join(names) if len(names) <= _NAMED else f"{names[0]} and {len(names) - 1} more"


def _draw(graph: Graph, environment: Environment, part: bool) -> _Drawing:
    inside = {node.object.path for node in graph.nodes}
    relative = relative_to_site_packages(environment)

    def show(path: str) -> str:
        return printable(relative(path))

    edges = []
    for node in graph.nodes:
        for need in node.needs:
            if is_host_library(need.name) or (part and need.provider is not None and need.provider not in inside):
                continue
            missing = need.provider is None
            provider = f"{printable(need.name)} (missing)" if need.provider is None else show(need.provider)
            edges.append(
                _Edge(
                    consumer=show(node.object.path),
                    provider=provider,
                    how="missing" if missing else need.how.value,
                    missing=missing,
                )
            )
    owner_of = {show(node.object.path): node.distribution for node in graph.nodes}
    drawn = {edge.consumer for edge in edges} | {edge.provider for edge in edges if not edge.missing}
    owners: dict[str | None, list[str]] = {}
    for path in sorted(drawn):
        owners.setdefault(owner_of.get(path), []).append(path)
    ordered = sorted(owners.items(), key=lambda item: (item[0] is None, item[0] or ""))
    return _Drawing(
        owners=tuple((owner, tuple(paths)) for owner, paths in ordered),
        missing=tuple(sorted({edge.provider for edge in edges if edge.missing})),
        edges=tuple(edges),
    )


def _dot(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _mermaid(text: str) -> str:
    escaped = text.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
    return f'"{escaped}"'
