"""Parts of the provides/needs graph: what lies around a name, and the same between distributions instead of files."""

import fnmatch
from collections.abc import Collection, Iterable

from safe_uninstall.analysis.names import is_host_library
from safe_uninstall.model.graph import DistributionNeed, DistributionNode, Graph, GraphNode
from safe_uninstall.model.names import normalize_name

_GLOB = frozenset("*?[")


def named(graph: Graph, names: Iterable[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the paths of the files that names mean, and the names that mean none.

    Args:
        graph: the whole graph.
        names: each a distribution or a glob of distributions, a soname, a file name, or the end of a path.
    """
    found: set[str] = set()
    unknown = []
    for name in names:
        paths = {node.object.path for node in graph.nodes if _is_called(node, name)}
        found |= paths
        if not paths:
            unknown.append(name)
    return frozenset(found), tuple(unknown)


def around(graph: Graph, paths: Collection[str], depth: int) -> Graph:
    """Return the files that are at most ``depth`` needs away from some of ``paths``, in either direction.

    What the host provides joins nothing: every file needs libc.
    """
    near: dict[str, set[str]] = {}
    for node in graph.nodes:
        for need in node.needs:
            if need.provider is not None and not is_host_library(need.name):
                near.setdefault(node.object.path, set()).add(need.provider)
                near.setdefault(need.provider, set()).add(node.object.path)
    kept, edge = set(paths), set(paths)
    for _ in range(depth):
        edge = {other for path in edge for other in near.get(path, ())} - kept
        kept |= edge
    return Graph(nodes=tuple(node for node in graph.nodes if node.object.path in kept))


def between_distributions(graph: Graph) -> tuple[DistributionNode, ...]:
    """Return which distribution needs libraries of which other, sorted by name, what nobody owns last.

    Needs within a distribution are left out, and so is what the host provides.
    """
    owners = {node.object.path: node.distribution for node in graph.nodes}
    needs: dict[str | None, dict[tuple[str | None, str], int]] = {}
    missing: dict[str | None, set[str]] = {}
    for node in graph.nodes:
        own = needs.setdefault(node.distribution, {})
        for need in node.needs:
            if is_host_library(need.name):
                continue
            if need.provider is None:
                missing.setdefault(node.distribution, set()).add(need.name)
            elif need.provider in owners and owners[need.provider] != node.distribution:
                key = (owners[need.provider], need.name)
                own[key] = own.get(key, 0) + 1
    return tuple(
        DistributionNode(
            name=name,
            needs=tuple(
                DistributionNeed(provider=provider, name=needed, files=number)
                for (provider, needed), number in sorted(own.items(), key=lambda item: (item[0][0] or "~", item[0][1]))
            ),
            missing=tuple(sorted(missing.get(name, ()))),
        )
        for name, own in sorted(needs.items(), key=lambda item: (item[0] is None, item[0] or ""))
    )


def _is_called(node: GraphNode, name: str) -> bool:
    if node.distribution is not None:
        if _GLOB & set(name) and fnmatch.fnmatchcase(node.distribution, name.lower().replace("_", "-")):
            return True
        if node.distribution == normalize_name(name):
            return True
    path = node.object.path
    return node.object.soname == name or path == name or path.endswith("/" + name)
