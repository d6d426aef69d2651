"""Lays out a drawing in columns and writes it as SVG; the same drawing gives the same picture."""

from __future__ import annotations

from collections.abc import Mapping

from safe_uninstall.render.report.drawing import COLUMNS, Drawing, Edge, Node
from safe_uninstall.render.report.markup import text

_CHARACTER = 7.25
"""Width of a character of the nodes' font, in pixels."""
_LONGEST = 44
"""Characters of a label before its middle is left out."""
_HEIGHT, _ROW, _TOP, _MARGIN, _GAP = 24, 36, 44, 16, 110
_SWEEPS = 4

Key = tuple[int, str]


def identifiers(drawing: Drawing) -> Mapping[Key, str]:
    """Return an identifier for each node."""
    return {node.key: f"n{number}" for number, node in enumerate(drawing.nodes)}


def render_svg(drawing: Drawing) -> str:
    """Return a drawing as an SVG element, nodes with ``data-id`` and edges with ``data-from`` and ``data-to``."""
    columns = _ordered(drawing)
    rows = max(len(column) for column in columns)
    places: dict[Key, tuple[float, float, float]] = {}
    x = float(_MARGIN)
    headings = []
    for number, column in enumerate(columns):
        if not column:
            continue
        width = max([len(COLUMNS[number]) * 6.5, *(len(_shown(node)) * _CHARACTER + 20 for node in column)])
        headings.append(f'<text class="heading" x="{x:g}" y="24">{text(COLUMNS[number])}</text>')
        start = _TOP + (rows - len(column)) * _ROW / 2
        for index, node in enumerate(column):
            places[node.key] = (x, start + index * _ROW, width)
        x += width + _GAP
    known = identifiers(drawing)
    edges = [_edge(edge, places, known) for edge in drawing.edges]
    nodes = [_node(node, places[node.key], known[node.key]) for column in columns for node in column]
    width, height = x - _GAP + _MARGIN, _TOP + rows * _ROW + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="group" aria-label="Who needs what, and whose it is">\n'
        + "\n".join([*headings, *edges, *nodes])
        + "\n</svg>"
    )


def _ordered(drawing: Drawing) -> list[list[Node]]:
    """Return the columns, ordered by the mean place of the neighbours, some times over, so that few edges cross."""
    columns = [[node for node in drawing.nodes if node.column == number] for number in range(len(COLUMNS))]
    near: dict[Key, list[Key]] = {}
    for edge in drawing.edges:
        near.setdefault(edge.source, []).append(edge.target)
        near.setdefault(edge.target, []).append(edge.source)
    for sweep in range(_SWEEPS):
        place = {node.key: index / len(column) for column in columns for index, node in enumerate(column)}
        order = range(len(columns)) if sweep % 2 == 0 else range(len(columns) - 1, -1, -1)
        for number in order:
            column = columns[number]
            mean = {node.key: sum(place[key] for key in near[node.key]) / len(near[node.key]) for node in column}
            column.sort(key=lambda node: (round(mean[node.key], 6), node.label))
            place.update((node.key, index / len(column)) for index, node in enumerate(column))
    return columns


def _node(node: Node, place: tuple[float, float, float], identifier: str) -> str:
    x, y, width = place
    kind = "distribution" if node.is_distribution else "file"
    said = f"{node.label}, {node.state}" if node.state else node.label
    return (
        f'<g class="node {kind} {node.state}" data-id="{identifier}" tabindex="0" role="button" '
        f'aria-label="{text(said)}"><title>{text(said)}</title>'
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{_HEIGHT}" rx="3"/>'
        f'<text x="{x + 10:g}" y="{y + 16:g}">{text(_shown(node))}</text></g>'
    )


def _edge(edge: Edge, places: Mapping[Key, tuple[float, float, float]], known: Mapping[Key, str]) -> str:
    x, y, width = places[edge.source]
    to_x, to_y, _ = places[edge.target]
    start, end, middle = x + width, y + _HEIGHT / 2, to_y + _HEIGHT / 2
    bend = max(40.0, (to_x - start) / 2)
    curve = f"M{start:g},{end:g} C{start + bend:g},{end:g} {to_x - bend:g},{middle:g} {to_x:g},{middle:g}"
    label = ""
    if edge.label:
        at_x, at_y = (start + to_x) / 2, (end + middle) / 2 - 4
        label = f'<text x="{at_x:g}" y="{at_y:g}" text-anchor="middle">{text(edge.label)}</text>'
    return (
        f'<g class="edge {edge.state}" data-from="{known[edge.source]}" data-to="{known[edge.target]}">'
        f'<path d="{curve}"/>{label}</g>'
    )


def _shown(node: Node) -> str:
    """Return a label with its middle left out where it is long: both ends tell more."""
    label = node.label
    if len(label) <= _LONGEST:
        return label
    half = (_LONGEST - 1) // 2
    return f"{label[:half]}…{label[-half:]}"
