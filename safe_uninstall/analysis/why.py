"""Answers ``why NAME``: a soname, a file or a distribution, who provides it, who claims it and who needs it."""

import posixpath
import re

from safe_uninstall.analysis.guards import reference
from safe_uninstall.analysis.loader import Loader
from safe_uninstall.analysis.metadata import may_apply
from safe_uninstall.analysis.ownership import Match, Owners, compare
from safe_uninstall.analysis.paths import View
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.errors import NotInstalled
from safe_uninstall.model.graph import Graph
from safe_uninstall.model.linkage import Binding
from safe_uninstall.model.names import normalize_name
from safe_uninstall.model.plan import DistributionRef
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.why import Claim, Provider, Unmet, User, Why

_NEAR = 3
_LEADING_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


def explain_name(snapshot: Snapshot, graph: Graph, owners: Owners, name: str) -> Why:
    """Return what is known of a name.

    Args:
        snapshot: the environment.
        graph: its needs.
        owners: who claims which path.
        name: a distribution, a soname, a file name, or the end of a path.

    Raises:
        NotInstalled: nothing bears that name and nothing needs it.
    """
    asker = _Asker(snapshot, graph, owners)
    distributions = [item for item in snapshot.distributions if item.name == normalize_name(name)]
    if distributions:
        paths = asker.libraries_of(distributions)
        unmet: tuple[Unmet, ...] = ()
    else:
        paths = asker.paths_called(name)
        unmet = asker.unmet(name)
    if not distributions and not paths and not unmet:
        raise not_known(snapshot, (name,))
    return Why(
        name=name,
        distributions=tuple(reference(item) for item in distributions),
        requirers=tuple(
            (reference(item), text)
            for item in snapshot.distributions
            for text in item.requires
            if distributions
            and _requires(text, distributions[0].name)
            and may_apply(text, snapshot.environment.markers)
        ),
        providers=tuple(asker.provider(path) for path in paths),
        unmet=unmet,
    )


def not_known(snapshot: Snapshot, names: tuple[str, ...]) -> NotInstalled:
    """Return the error for names that nothing bears, with the nearest that something does."""
    near = {name: _near(snapshot, name) for name in names}
    help = tuple(dict.fromkeys(f"did you mean `{other}`?" for others in near.values() for other in others))
    return NotInstalled(
        names,
        near,
        where=snapshot.environment.prefix,
        help=help or ("give a distribution, a soname (libcudnn.so.9) or the end of a path",),
    )


class _Asker:
    def __init__(self, snapshot: Snapshot, graph: Graph, owners: Owners) -> None:
        self._snapshot = snapshot
        self._owners = owners
        self._graph = graph
        self._users: dict[str, list[tuple[str, Binding]]] = {}
        for node in graph.nodes:
            for need in node.needs:
                if need.provider is not None:
                    self._users.setdefault(need.provider, []).append((node.object.path, need))

    def libraries_of(self, distributions: list[Distribution]) -> list[str]:
        """Return the libraries of distributions that a file outside of them needs."""
        own = {row.path for item in distributions for row in item.record.rows}
        return sorted(path for path in own if any(consumer not in own for consumer, _ in self._users.get(path, ())))

    def paths_called(self, name: str) -> list[str]:
        """Return the paths that a name means: libraries by soname or file name, any claimed file by the end of it."""
        found = {
            path for path, item in self._snapshot.objects.items() if item.soname == name or path.endswith("/" + name)
        }
        if not found:
            for distribution in self._snapshot.distributions:
                for row in distribution.record.rows:
                    if row.path == name or row.path.endswith("/" + name):
                        found.add(row.path)
        return sorted(found)

    def unmet(self, name: str) -> tuple[Unmet, ...]:
        """Return the needs by a name that nothing meets."""
        return tuple(
            Unmet(distribution=self._owner(node.object.path), path=node.object.path, searched=need.searched)
            for node in self._graph.nodes
            for need in node.needs
            if need.provider is None and need.name == name
        )

    def provider(self, path: str) -> Provider:
        """Return who claims a path, whose bytes are there, and who needs it."""
        item = self._snapshot.objects.get(path)
        claims = []
        for owner in self._owners.of(path):
            row = next(row for row in owner.record.rows if row.path == path)
            match = compare(self._snapshot.evidence, row)
            claims.append(
                Claim(
                    distribution=reference(owner),
                    holds_bytes=None if match is Match.UNKNOWN else match is Match.SAME,
                )
            )
        snapshot = self._snapshot
        without = Loader(View(snapshot.files, deleted=frozenset({path})), snapshot.system)
        users = [
            User(
                distribution=self._owner(consumer),
                path=consumer,
                name=need.name,
                how=need.how,
                via=need.via,
                without=self._instead(without, consumer, need),
            )
            for consumer, need in sorted(self._users.get(path, ()), key=lambda pair: (pair[0], pair[1].name))
        ]
        return Provider(
            path=path, soname=None if item is None else item.soname, claims=tuple(claims), users=tuple(users)
        )

    def _instead(self, without: Loader, consumer: str, need: Binding) -> str | None:
        """Return what meets a need over the files without its provider."""
        item = self._snapshot.objects.get(consumer) or self._snapshot.outside[consumer]
        return next((other.provider for other in without.bindings(item) if other.name == need.name), None)

    def _owner(self, path: str) -> DistributionRef | None:
        claimed = self._owners.of(path)
        return reference(claimed[0]) if claimed else None


def _near(snapshot: Snapshot, name: str) -> tuple[str, ...]:
    """Return distributions and libraries of nearly that name, those that begin with it first."""
    import difflib

    known = {item.name for item in snapshot.distributions}
    known |= {item.soname or posixpath.basename(path) for path, item in snapshot.objects.items()}
    beginning = sorted(other for other in known if name and other.lower().startswith(name.lower()))
    close = difflib.get_close_matches(name, sorted(known), n=_NEAR, cutoff=0.75)
    return tuple(dict.fromkeys([*beginning, *close]))[:_NEAR]


def _requires(text: str, name: str) -> bool:
    match = _LEADING_NAME.match(text)
    return match is not None and normalize_name(match[1]) == name
