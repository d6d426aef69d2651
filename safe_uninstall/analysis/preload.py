"""Needs that the loader cannot meet by path, and an object loaded earlier can: the strength ``preloaded``.

glibc matches a needed name against the sonames of what is loaded already before it searches (``_dl_map_object``), so
torchvision's need of libtorch.so is met because ``import torch`` came first. What counts as coming first: an import
root whose closure holds the object, or Python source that names its file.
"""

import posixpath
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass

from safe_uninstall.analysis.names import NeedNames, is_stub, is_tagged_module
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.trace import Trace
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.elf import Abi, ElfObject
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class LostPreload:
    """A need whose provider no longer comes to be loaded."""

    provider: str
    """Path of the object that carried the soname."""
    strength: Strength
    """``preloaded`` where something loads the provider, ``named`` where nothing is known to."""
    reason: str
    """How the provider came to be loaded, in words."""


class Preloads:
    """Answers whether an object with a given soname was loaded by something, and still would be."""

    def __init__(
        self,
        snapshot: Snapshot,
        owners: Owners,
        names: NeedNames,
        trace: Callable[[ElfObject], Trace],
        deleted: Set[str],
        leaving: Set[str],
    ) -> None:
        """Judge over the baseline's closures.

        Args:
            snapshot: the baseline.
            owners: who claims which path.
            names: needs and bearers by name.
            trace: loads one root over the baseline.
            deleted: canonical paths that will be gone.
            leaving: metadata paths of the distributions that go.
        """
        self._snapshot = snapshot
        self._owners = owners
        self._names = names
        self._trace = trace
        self._deleted = deleted
        self._leaving = leaving
        self._by_distribution: dict[str, tuple[str, ...]] = {}
        self._known_imports: dict[tuple[str, tuple[str, ...], bool], tuple[str, str] | None] = {}

    def lost(self, name: str, abi: Abi) -> LostPreload | None:
        """Return what becomes of a needed name that no closure meets by path; None when nothing is lost."""
        bearers = self._bearers(name, abi)
        if not bearers:
            return None
        staying = [path for path in bearers if path not in self._deleted]
        if self._loaded_by(name, staying, leaving_too=False) is not None:
            return None
        before = self._loaded_by(name, bearers, leaving_too=True)
        if before is not None:
            return LostPreload(provider=before[0], strength=Strength.PRELOADED, reason=before[1])
        if staying:
            return None
        return LostPreload(provider=bearers[0], strength=Strength.NAMED, reason="not found, and nothing loads it first")

    def is_met(self, name: str, abi: Abi) -> bool:
        """Return whether something that is there loads an object of that soname first, in the baseline."""
        return self._loaded_by(name, self._bearers(name, abi), leaving_too=True) is not None

    def expect(self, needs: Iterable[tuple[str, Abi]]) -> None:
        """Search all sources once for what ``is_met`` will be asked about; asked one by one each need is a search."""
        wanted = [(name, bearers) for name, abi in needs if (bearers := self._bearers(name, abi))]
        sought = {path for name, bearers in wanted if not self._imported(name, bearers, True) for path in bearers}
        if len(sought) > 1:
            sources = [path for item in self._snapshot.distributions for path in self._sources(item)]
            self._snapshot.evidence.sources_naming(frozenset(map(posixpath.basename, sought)), sources)

    def stays_met(self, name: str, abi: Abi) -> bool:
        """Return whether something that stays loads an object of that soname that stays, too."""
        staying = [path for path in self._bearers(name, abi) if path not in self._deleted]
        return self._loaded_by(name, staying, leaving_too=False) is not None

    def _bearers(self, name: str, abi: Abi) -> list[str]:
        """Return the objects that a need of ``name`` matches once they are loaded."""
        objects = self._snapshot.objects
        return [
            path
            for path in self._names.bearers(name)
            if objects[path].soname == name and objects[path].abi == abi and not is_stub(path)
        ]

    def import_roots(self, names: Set[str], *, leaving_too: bool) -> list[ElfObject]:
        """Return the extension modules whose closure could hold something called by one of ``names``, by path."""
        objects = self._snapshot.objects
        candidates = self._names.reaching(names) | {path for name in names for path in self._names.bearers(name)}
        return [
            objects[path]
            for path in sorted(candidates & objects.keys())
            if (leaving_too or path not in self._deleted) and self.is_import_root(path)
        ]

    def is_import_root(self, path: str) -> bool:
        """Return whether an object is an extension module, by its name (PEP 3149) or its ``PyInit`` symbol."""
        name = posixpath.basename(path)
        if is_tagged_module(name):
            return True
        if not name.endswith(".so") or name.startswith("lib"):
            return False
        table = self._snapshot.evidence.symbols(path)
        return table is not None and f"PyInit_{name[:-3]}" in table.exported

    def _loaded_by(self, name: str, bearers: list[str], *, leaving_too: bool) -> tuple[str, str] | None:
        """Return one of ``bearers`` and what loads it, in words."""
        if not bearers:
            return None
        imported = self._imported(name, bearers, leaving_too)
        if imported is not None:
            return imported
        for bearer in bearers:
            source = self._named_in_source(bearer, leaving_too=leaving_too)
            if source is not None:
                return bearer, f"already loaded by {self._relative(source)}"
        return None

    def _imported(self, name: str, bearers: list[str], leaving_too: bool) -> tuple[str, str] | None:
        """Return one of ``bearers`` that an import root's closure holds, and that root, in words; memoised."""
        key = (name, tuple(bearers), leaving_too)
        if key not in self._known_imports:
            self._known_imports[key] = self._find_imported(name, bearers, leaving_too)
        return self._known_imports[key]

    def _find_imported(self, name: str, bearers: list[str], leaving_too: bool) -> tuple[str, str] | None:
        by_identity = {self._snapshot.objects[path].identity: path for path in bearers}
        for root in self.import_roots({name}, leaving_too=leaving_too):
            for item in self._trace(root).objects:
                if item.object.identity in by_identity:
                    bearer = by_identity[item.object.identity]
                    return bearer, f"already loaded by import of {self._relative(root.path)}"
        return None

    def _named_in_source(self, bearer: str, *, leaving_too: bool) -> str | None:
        """Return a Python source that loads ``bearer`` by its file name.

        Sources of its own distribution need only the file name; others must name its directory too, since a bare
        name alone finds nothing that lies outside the loader's path.
        """
        evidence = self._snapshot.evidence
        file_name = posixpath.basename(bearer)
        owners = {owner.metadata_path for owner in self._owners.of(bearer)}
        own: list[str] = []
        others: list[str] = []
        for distribution in self._snapshot.distributions:
            if not leaving_too and distribution.metadata_path in self._leaving:
                continue
            (own if distribution.metadata_path in owners else others).extend(self._sources(distribution))
        found = evidence.sources_naming(frozenset({file_name}), own).get(file_name)
        if found:
            return found[0]
        package = self._package_of(bearer)
        if package is None:
            return None
        named = evidence.sources_naming(frozenset({file_name}), others).get(file_name, ())
        both = evidence.sources_naming(frozenset({package}), named).get(package)
        return both[0] if both else None

    def _sources(self, distribution: Distribution) -> tuple[str, ...]:
        key = distribution.metadata_path
        if key not in self._by_distribution:
            rows = distribution.record.rows
            self._by_distribution[key] = tuple(row.path for row in rows if row.path.endswith(".py"))
        return self._by_distribution[key]

    def _package_of(self, path: str) -> str | None:
        """Return the first directory below site-packages on the way to ``path``."""
        environment = self._snapshot.environment
        for directory in (*environment.site_packages, *environment.visible_site_packages):
            if path.startswith(directory + "/"):
                first, separator, _ = path[len(directory) + 1 :].partition("/")
                return first if separator else None
        return None

    def _relative(self, path: str) -> str:
        for directory in (*self._snapshot.environment.site_packages, self._snapshot.environment.prefix):
            if path.startswith(directory + "/"):
                return path[len(directory) + 1 :]
        return path
