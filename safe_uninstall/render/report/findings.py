"""The findings of a document, each with all of its evidence."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

from safe_uninstall.render.report.markup import Document, Shortened, code, folded, prose, remedy, text
from safe_uninstall.render.style import count

_ROWS = 6
"""Rows that are shown at once; the rest is folded away."""


def findings_section(document: Document, told: Container[tuple[str, ...]] = ()) -> Iterator[str]:
    """Yield the heading and the findings.

    Args:
        document: what was found.
        told: help that stands elsewhere on the page already.
    """
    short = Shortened(document)
    yield '<h2 id="findings">Findings</h2>'
    if not document["findings"]:
        yield "<p>None.</p>"
    for number, finding in enumerate(document["findings"], 1):
        yield from _finding(finding, f"finding-{number}", short, told)


def _finding(
    finding: dict[str, Any], identifier: str, short: Shortened, told: Container[tuple[str, ...]]
) -> Iterator[str]:
    severity = finding["severity"]
    accepted = " (accepted)" if finding["accepted"] else ""
    yield f'<article class="finding {severity}" id="{identifier}" data-severity="{severity}">'
    yield f'<span class="tag {severity}">{severity}[{text(finding["code"])}]</span>'
    yield f"<h3>{prose(finding['message'])}{accepted}</h3>"
    if finding["path"] is not None and not finding["paths"]:
        yield f"<p>{'Library' if finding['consumers'] else 'Path'} {code(short(finding['path']))}</p>"
    yield from _consumers(finding["consumers"], short)
    if finding["claimants"]:
        names = ", ".join(
            f"{text(item['name'])} {text(item['version'])}"
            + (f" ({count(item['overwritten'], 'file')} of its own overwritten)" if item["overwritten"] else "")
            for item in finding["claimants"]
        )
        yield f"<p>{'Bytes of' if finding['code'] == 'file-overwritten' else 'Claimed by'} {names}</p>"
    # The most telling path first.
    paths = sorted(finding["paths"], key=lambda path: path != finding["path"])
    yield from _list("Paths", [code(short(path)) for path in paths])
    uses = [
        f"process {use['pid']} ({text(use['command'])}) has {code(short(use['path']))} {text(use['how'])}"
        for use in finding["uses"]
    ]
    yield from _list("In use", uses)
    yield from _list("Notes", [text(short.in_text(note)) for note in finding["notes"]])
    if tuple(finding["help"]) not in told:
        yield from remedy(finding["help"])
    yield f'<p class="quiet">What this means: {code("safe-uninstall explain " + finding["code"])}</p>'
    yield "</article>"


def _consumers(consumers: list[dict[str, Any]], short: Shortened) -> Iterator[str]:
    if not consumers:
        return
    headings = ("Needed by", "File", "Strength", "How it is found")
    rows = [
        (
            text(item["distribution"] or "(unowned)"),
            code(short(item["path"])),
            text(item["strength"]),
            _how(item, short),
        )
        for item in consumers
    ]
    yield folded(headings, rows, _ROWS)


def _how(consumer: dict[str, Any], short: Shortened) -> str:
    """Return how a need was bound, with the chain that leads to it and where else the loader looked folded away."""
    shown = text(consumer["how"])
    if len(consumer["context"]) > 1:
        chain = " → ".join(code(short(path)) for path in consumer["context"])
        shown += f"<details><summary>loaded by</summary>{chain}</details>"
    if consumer["searched"]:
        places = "<br>".join(code(short(place)) for place in consumer["searched"])
        shown += f"<details><summary>searched: {count(len(consumer['searched']), 'place')}</summary>{places}</details>"
    return shown


def _list(title: str, items: Iterable[str]) -> Iterator[str]:
    shown = list(items)
    if not shown:
        return
    first, rest = shown[:_ROWS], shown[_ROWS:]
    yield f"<p>{title}</p><ul>{''.join(f'<li>{item}</li>' for item in first)}</ul>"
    if rest:
        inner = "".join(f"<li>{item}</li>" for item in rest)
        yield f"<details><summary>{len(rest)} more</summary><ul>{inner}</ul></details>"
