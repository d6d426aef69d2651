"""Puts the page together: verdict, distributions, bindings, graph, findings."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from safe_uninstall.render.report.drawing import draw, findings_about
from safe_uninstall.render.report.findings import findings_section
from safe_uninstall.render.report.markup import Document, Shortened, code, command, data, folded, prose, remedy, text
from safe_uninstall.render.report.svg import identifiers, render_svg
from safe_uninstall.render.style import count, size

_ROWS = 12
"""Rows of a table that are shown at once."""
_VERDICTS = {
    "allow": ("good", "Allowed"),
    "rewrite": ("good", "Rewritten, so that nothing is lost"),
    "block": ("error", "Blocked"),
}
_AFTER = {
    "uninstall": "removed",
    "release": "",
    "restore": "its own files again",
    "install": "installed",
    "keep": "kept",
}
_BLOCKED = {**_AFTER, "uninstall": "would be removed"}


def render_report(document: Document) -> str:
    """Return a plan or an audit as an HTML page that needs nothing beside it.

    Args:
        document: a plan or check document (format version 1); whatever text it holds is shown, and none of it runs.
    """
    style, script = _asset("report.css"), _asset("report.js")
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'"
    title = _title(document)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}; form-action \'none\'">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(title)}</title>",
        f"<style>{style}</style></head><body>",
        *_header(document, title),
        "<main>",
        *_distributions(document),
        *_bindings(document),
        *_controls(),
        *_graph(document),
        *findings_section(document, _remedies(document)),
        "</main>",
        f"<footer><p>safe-uninstall {text(document['tool_version'])}. This file holds everything that it shows, and "
        "asks no network for anything.</p></footer>",
        f"<script>{script}</script>",
        "</body></html>",
    ]
    return "\n".join(parts)


def _title(document: Document) -> str:
    return "safe-uninstall check" if "verdict" not in document else " ".join(_request(document["request"]))


def _request(request: dict[str, Any]) -> Iterator[str]:
    """Yield the words of a request."""
    yield "safe-uninstall"
    if request["repair"]:
        yield from ("check", "--fix")
    elif request["undo"] is not None:
        yield from ("undo", request["undo"])
    else:
        yield from map(shlex.quote, request["names"])
        yield from (f"--{rewrite}" for rewrite in request["rewrites"])
    yield from (f"--install {shlex.quote(item)}" for item in request["install"])
    yield from (f"--accept-loss {shlex.quote(item)}" for item in request["accepted_losses"])


def _header(document: Document, title: str) -> Iterator[str]:
    environment = document["environment"]
    facts = [("Environment", environment["prefix"]), ("Python", environment["python_version"])]
    if "installer" in environment:
        facts.append(("Installer", environment["installer"]))
    if "fingerprint" in environment:
        facts.append(("Fingerprint", environment["fingerprint"]))
    severities = [item["severity"] for item in document["findings"]]
    tallies = [count(number, name) for name in ("error", "warning", "note") if (number := severities.count(name))]
    if "verdict" in document:
        kind, verdict = _VERDICTS[document["verdict"]]
        tail = "None of this is done." if document["verdict"] == "block" else "Nothing has changed yet."
    else:
        damaged = "error" in severities
        kind, verdict = ("error", "Damaged") if damaged else ("good", "No damage")
        tail = "Nothing was changed."
    yield f"<header><div><h1>{code(title)}</h1>"
    told = f": {', '.join(tallies)}." if tallies else "."
    yield f'<p class="verdict {kind}" id="verdict">{text(verdict + told)} {text(tail)}</p>'
    items = "".join(f"<li>{name} <code>{text(value)}</code></li>" for name, value in facts)
    yield f'<ul class="facts">{items}</ul>'
    alternatives = document.get("alternatives", ())
    if alternatives:
        yield "<h2>What would work</h2>"
        for item in alternatives:
            yield f"<p>{prose(item['summary'])}</p>{command(item['command'])}"
    remedies = _remedies(document)
    if remedies:
        yield "<h2>What mends it</h2>"
        for help in remedies:
            yield from remedy(help)
    yield "</div></header>"


def _remedies(document: Document) -> list[tuple[str, ...]]:
    """Return the help of an audit's errors, each once: what mends them stands on top."""
    if "verdict" in document:
        return []
    told = (tuple(item["help"]) for item in document["findings"] if item["severity"] == "error" and item["help"])
    return list(dict.fromkeys(told))


def _distributions(document: Document) -> Iterator[str]:
    actions = document.get("actions", ())
    if not actions:
        return
    after = _BLOCKED if document["verdict"] == "block" else _AFTER
    rows = []
    for action in actions:
        kind, distribution = action["kind"], action["distribution"]
        before = "not installed" if kind == "install" else f"{distribution['version']} installed"
        then = after[kind]
        if kind == "install":
            then = f"{distribution['version']} {then}"
        if kind == "release":
            before, then = "", f"{count(len(action['paths']), 'file')} stay in place"
        files_and_size = (text(len(action["paths"])), text(size(action["bytes"]))) if action["paths"] else ("", "")
        rows.append((code(distribution["name"]), text(before), text(then), *files_and_size, text(action["reason"])))
    yield "<h2>Distributions</h2>"
    headings = ("Distribution", "Before", "After", "Files", "Size", "Why")
    yield folded(headings, rows, _ROWS, numbers=frozenset({3, 4}))


def _bindings(document: Document) -> Iterator[str]:
    bindings = document.get("bindings", ())
    if not bindings:
        return
    short = Shortened(document)
    rows = []
    for item in bindings:
        consumer = item["consumer"]
        if item["after"] is None:
            then = '<span class="error">nothing</span>'
        elif item["after"] == item["before"]:
            then = "the same path, written again"
        else:
            then = code(short(item["after"]))
        owner = text(consumer["distribution"] or "(unowned)")
        rows.append(
            (
                owner,
                code(short(consumer["path"])),
                code(item["name"]),
                code(short(item["before"])),
                then,
                text(consumer["how"]),
            )
        )
    yield f'<h2>Bindings that change</h2><p class="quiet">{count(len(bindings), "need")} of files that stay.</p>'
    yield folded(("Distribution", "File", "Needs", "Before", "After", "How it is found"), rows, _ROWS)


def _controls() -> Iterator[str]:
    yield '<div class="controls script" role="search">'
    yield '<input type="search" id="search" placeholder="Search findings, tables and graph" aria-label="Search">'
    for severity in ("error", "warning", "note"):
        yield f'<label><input type="checkbox" data-severity="{severity}" checked> {severity}s</label>'
    yield '<span class="quiet" id="matches" role="status"></span></div>'


def _graph(document: Document) -> Iterator[str]:
    drawing = draw(document)
    numbered = [(f"finding-{number}", item) for number, item in enumerate(document["findings"], 1)]
    titles = {identifier: f"{item['code']}: {item['message'].replace('`', '')}" for identifier, item in numbered}
    short = Shortened(document)
    known = identifiers(drawing)
    nodes = {
        known[node.key]: {
            "title": node.label + (f" ({node.state})" if node.state else ""),
            "lines": node.lines,
            "search": " ".join([node.label, *node.lines]),
            "findings": [
                {"id": identifier, "title": titles[identifier]} for identifier in findings_about(node, numbered, short)
            ],
        }
        for node in drawing.nodes
    }
    yield "<h2>What is affected</h2>"
    if drawing.nodes:
        yield (
            '<ul class="legend"><li>red, dashed: goes or is lost</li><li>amber: overwritten, or bound otherwise</li>'
            "<li>green: comes or is restored</li><li>dotted: whose it is</li></ul>"
        )
        yield f'<div class="graph" id="graph">{render_svg(drawing)}</div>'
        if drawing.left_out:
            yield f'<p class="quiet">{count(drawing.left_out, "more node")} left out; the findings name all.</p>'
        empty = "Choose a distribution or a file in the graph to see the evidence."
        yield f'<div class="evidence script" id="evidence" data-empty="{empty}" aria-live="polite">{empty}</div>'
    else:
        yield "<p>Nothing that stays is bound to anything that changes.</p>"
        yield '<div id="evidence" data-empty="" hidden></div>'
    yield f'<script type="application/json" id="evidence-data">{data({"nodes": nodes})}</script>'


def _asset(name: str) -> str:
    return files("safe_uninstall.render.report").joinpath(name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    """Return what a policy allows inline content by (CSP level 3, hash-source)."""
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii")
    return f"sha256-{digest}"
