"""What a document says of needs and owners, as nodes in four columns and edges between them.

From left to right: a distribution, its file that needs a library, the library, and the distributions whose it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from safe_uninstall.render.report.markup import Document, Shortened

COLUMNS = ("distribution", "file that needs it", "library", "whose it is")
_SHOWN = 40
"""Nodes of one column that can still be read."""
_WEIGHT = {"lost": 0, "leaving": 1, "damaged": 1, "coming": 2, "": 3}
_KINDS = {"uninstall": "leaving", "restore": "coming", "install": "coming", "keep": "", "release": "leaving"}
_NEEDS = frozenset({"library-lost", "dlopen-lost", "symbols-lost", "provider-changed"})
_OWNERS = frozenset({"file-lost", "file-overwritten"})
_LIBRARIES_SHOWN = 4
"""Overwritten libraries of one distribution that are drawn."""


@dataclass(slots=True, kw_only=True)
class Node:
    """A distribution or a file."""

    column: int
    label: str
    state: str = ""
    """``lost``, ``leaving``, ``damaged``, ``coming`` or nothing."""
    lines: list[str] = field(default_factory=list)
    """Evidence, a sentence each."""

    @property
    def key(self) -> tuple[int, str]:
        """What tells it from others."""
        return (self.column, self.label)

    @property
    def is_distribution(self) -> bool:
        """Whether it is drawn as one."""
        return self.column in (0, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A need, or whose a file is."""

    source: tuple[int, str]
    target: tuple[int, str]
    state: str
    """``lost``, ``changed``, ``owns`` or nothing."""
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Nodes by column, each in a stable order, and the edges between those that are drawn."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: int
    """Nodes that did not fit."""


def draw(document: Document) -> Drawing:
    """Return what to draw of a plan or an audit: what is affected, and nothing else."""
    artist = _Artist(document)
    artist.draw()
    return artist.finished()


class _Artist:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._short = Shortened(document)
        self._nodes: dict[tuple[int, str], Node] = {}
        self._edges: dict[tuple[tuple[int, str], tuple[int, str], str], Edge] = {}
        self._owners: dict[str, list[tuple[str, str, str]]] = {}
        for action in document.get("actions", ()):
            label = _label(action["distribution"])
            for path in action["paths"]:
                self._owners.setdefault(path, []).append((label, _KINDS[action["kind"]], action["kind"]))

    def draw(self) -> None:
        for binding in self._document.get("bindings", ()):
            self._binding(binding)
        for finding in self._document["findings"]:
            if finding["severity"] == "note":
                continue
            if finding["code"] in _NEEDS and finding["path"] is not None:
                self._needs(finding)
            elif finding["code"] in _OWNERS:
                self._claims(finding)
            elif finding["code"] == "mixed-cuda" and finding["distribution"] is not None:
                self._mixed(finding)

    def finished(self) -> Drawing:
        drawn: dict[tuple[int, str], Node] = {}
        for column in range(len(COLUMNS)):
            inside = sorted(
                (node for node in self._nodes.values() if node.column == column),
                key=lambda node: (_WEIGHT[node.state], node.label),
            )
            drawn.update((node.key, node) for node in inside[:_SHOWN])
        edges = [edge for edge in self._edges.values() if edge.source in drawn and edge.target in drawn]
        touched = {key for edge in edges for key in (edge.source, edge.target)}
        nodes = sorted((node for key, node in drawn.items() if key in touched), key=lambda node: node.key)
        return Drawing(nodes=tuple(nodes), edges=tuple(edges), left_out=len(self._nodes) - len(nodes))

    def _binding(self, binding: dict[str, Any]) -> None:
        before, after = binding["before"], binding["after"]
        how = binding["consumer"]["how"]
        if after is None:
            state, told = "lost", f"{binding['name']}: {self._short(before)} ({how}), then nothing"
        elif after == before:
            state, told = "changed", f"{binding['name']}: {self._short(before)}, then with other bytes"
        else:
            state, told = "changed", f"{binding['name']}: {self._short(before)}, then {self._short(after)} ({how})"
        file = self._consumer(binding["consumer"], told)
        self._link(file, self._library(before, "lost" if after is None else ""), state, binding["name"], told)
        if after is not None and after != before:
            self._link(file, self._library(after, "coming"), state, "then", told)

    def _needs(self, finding: dict[str, Any]) -> None:
        library = self._library(finding["path"], "lost" if finding["severity"] == "error" else "")
        for consumer in finding["consumers"]:
            told = f"{finding['soname'] or self._short(finding['path'])}: {consumer['how']} ({consumer['strength']})"
            state = "lost" if finding["code"] != "provider-changed" else "changed"
            self._link(self._consumer(consumer, told), library, state, finding["soname"] or "", told)
        for claimant in finding["claimants"]:
            number = claimant["overwritten"]
            told = f"claims {self._short(finding['path'])}"
            told += f"; {number} of its files were overwritten" if number else ""
            owner = self._distribution(3, _label(claimant), "damaged" if number else "", told)
            self._link(library, owner, "owns", "", told)

    def _claims(self, finding: dict[str, Any]) -> None:
        """Draw whose libraries hold another's bytes; a header shows nothing that the tables do not."""
        known = [path for path in finding["paths"] if (2, self._short(path)) in self._nodes]
        libraries = known or [path for path in finding["paths"] if ".so" in path.rpartition("/")[2]]
        name = finding["distribution"]
        if name is None or not libraries:
            return
        owner = self._distribution(3, self._known(name), "damaged", finding["message"].replace("`", ""))
        for path in libraries[:_LIBRARIES_SHOWN]:
            library = self._library(path, "")
            self._link(library, owner, "owns", "", f"claims {self._short(path)}")
            for claimant in finding["claimants"]:
                told = f"its bytes are in {self._short(path)}"
                self._link(library, self._distribution(3, _label(claimant), "", told), "owns", "", told)

    def _mixed(self, finding: dict[str, Any]) -> None:
        consumer = self._distribution(0, finding["distribution"], "", finding["message"].replace("`", ""))
        for path in finding["paths"]:
            told = f"loads {self._short(path)}"
            self._link(consumer, self._library(path, ""), "changed", "", told)

    def _consumer(self, consumer: dict[str, Any], told: str) -> Node:
        file = self._node(1, self._short(consumer["path"]), "", told)
        if len(consumer["context"]) > 1:
            chain = " → ".join(self._short(path) for path in consumer["context"])
            self._tell(file, f"loaded by {chain}")
        owner = self._distribution(0, consumer["distribution"] or "(unowned)", "", f"has {file.label}")
        self._link(owner, file, "owns", "", f"has {file.label}")
        return file

    def _library(self, path: str, state: str) -> Node:
        known = (2, self._short(path)) in self._nodes
        library = self._node(2, self._short(path), state, path)
        if not known:
            for label, owner_state, kind in self._owners.get(path, ()):
                told = f"{kind}: {self._short(path)}"
                self._link(library, self._distribution(3, label, owner_state, told), "owns", "", told)
        return library

    def _distribution(self, column: int, label: str, state: str, told: str) -> Node:
        return self._node(column, label, state, told)

    def _known(self, name: str) -> str:
        """Return the label of a distribution that is drawn already, else its name."""
        labels = (label for column, label in self._nodes if column == 3 and label.partition(" ")[0] == name)
        return next(labels, name)

    def _node(self, column: int, label: str, state: str, told: str) -> Node:
        node = self._nodes.setdefault((column, label), Node(column=column, label=label))
        if _WEIGHT[state] < _WEIGHT[node.state]:
            node.state = state
        self._tell(node, told)
        return node

    def _link(self, source: Node, target: Node, state: str, label: str, told: str) -> None:
        shown = "" if label == target.label.rpartition("/")[2] else label
        key = (source.key, target.key, "" if state == "owns" else "need")
        self._edges.setdefault(key, Edge(source=source.key, target=target.key, state=state, label=shown))
        self._tell(source, told)
        if not target.is_distribution:
            self._tell(target, f"{source.label}: {told}")

    @staticmethod
    def _tell(node: Node, line: str) -> None:
        if line not in node.lines:
            node.lines.append(line)


def _label(reference: dict[str, Any]) -> str:
    return f"{reference['name']} {reference['version']}"


def findings_about(node: Node, findings: Iterable[tuple[str, dict[str, Any]]], short: Shortened) -> list[str]:
    """Return which findings, by their identifiers, tell of a node."""
    name = node.label.partition(" ")[0]
    found = []
    for identifier, finding in findings:
        paths = {finding["path"], *finding["paths"], *(item["path"] for item in finding["consumers"])} - {None}
        names = {finding["distribution"], *(item["distribution"] for item in finding["consumers"])}
        names |= {item["name"] for item in finding["claimants"]}
        about = name in names if node.is_distribution else any(short(path) == node.label for path in paths)
        if about:
            found.append(identifier)
    return found
