"""Libraries that go, and whose file names stand in data or Python source of survivors: the strength ``named``.

A name alone shows neither that the library is opened nor that its opener could not do without it, so that such a loss
only warns. It is looked for once it is known what a plan takes, and only under the names that nothing else misses.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from safe_uninstall.analysis.change import ChangeJudge, Judgement
from safe_uninstall.analysis.loads import Loads
from safe_uninstall.analysis.losses import LibraryLoss
from safe_uninstall.analysis.names import is_host_library, is_stub, is_tagged_module, names_of
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.elf import Abi, ElfObject
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.names import normalize_name
from safe_uninstall.model.plan import Consumer, DistributionRef
from safe_uninstall.model.snapshot import Snapshot

_LIBRARY = re.compile(r"lib.+\.so(\.\d+)*|.+\.so(\.\d+)+")
"""File names by which anybody opens a library; modules and plugins are opened by path, and have any name."""
_VENDORED = re.compile(r"-[0-9a-f]{8}\.")
"""What auditwheel makes of the name of a library that it puts into a wheel: nobody else knows it."""
_LEADING_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")

_OBJECTS_BUDGET = 64 << 20
"""Bytes of the ELF files that are searched though nothing relates them to what goes."""
_SOURCES_BUDGET = 2 << 20
"""Bytes of such Python sources."""
_SOURCE_SIZE = 1 << 14
"""Bytes that a source counts for whose row of RECORD has no size."""


def named_losses(
    snapshot: Snapshot, owners: Owners, judge: ChangeJudge, judgement: Judgement
) -> tuple[LibraryLoss, ...]:
    """Return the libraries that survivors name and would not find any more, sorted by name and provider.

    No loss is what the opener finds elsewhere, by the loader's rules; nor, where these never led to it, what is there
    under that name in another place.

    All files of survivors are searched that are related to what goes: which require it, load libraries of it, or have
    files in the same package. Of the others the smallest, up to a limit, so that what has nothing to do with them stays
    a matter of milliseconds.

    Args:
        snapshot: the baseline.
        owners: who claims which path.
        judge: who judged the change.
        judgement: what is lost for certain.
    """
    gone = judge.gone(judgement)
    names = _names(snapshot, gone, {loss.name for loss in judgement.linkage.losses})
    if not names:
        return ()
    return _Search(snapshot, owners, judge, judgement, gone, names).find()


def _names(snapshot: Snapshot, gone: Set[str], known: Set[str]) -> dict[str, str]:
    """Return the names of the libraries that go, each with a path, where there is one the path of a file so called."""
    names: dict[str, str] = {}
    for path in sorted(snapshot.objects.keys() & gone):
        item = snapshot.objects[path]
        if not item.is_dynamic or is_stub(path):
            continue
        for name in names_of(path, item):
            if name not in known and _is_opened(name):
                other = names.get(name)
                if other is None or path.endswith(f"/{name}") > other.endswith(f"/{name}"):
                    names[name] = path
    return names


def _is_opened(name: str) -> bool:
    """Return whether somebody else may open a library by that name, and have it of a wheel."""
    return _LIBRARY.fullmatch(name) is not None and not (
        _VENDORED.search(name) or is_tagged_module(name) or is_host_library(name)
    )


@dataclass(slots=True)
class _Search:
    _snapshot: Snapshot
    _owners: Owners
    _judge: ChangeJudge
    _judgement: Judgement
    _gone: Set[str]
    _names: Mapping[str, str]
    """Names that go, each with the path of the library."""
    _after: Loads = field(init=False)
    _survivors: tuple[Distribution, ...] = ()
    _found: dict[str, list[Consumer]] = field(default_factory=dict)

    def find(self) -> tuple[LibraryLoss, ...]:
        """Search, and return what is lost."""
        self._after = self._judge.outcome(self._judgement)
        going = {item.metadata_path for item in self._judgement.change.leaving}
        self._survivors = tuple(item for item in self._snapshot.distributions if item.metadata_path not in going)
        related = self._related()
        self._search_objects(related)
        self._search_sources(related)
        losses = (
            LibraryLoss(
                name=name,
                provider=self._names[name],
                strength=Strength.NAMED,
                consumers=tuple(sorted(consumers, key=lambda item: item.path)),
                searched=(),
            )
            for name, consumers in self._found.items()
        )
        return tuple(sorted(losses, key=lambda loss: (loss.name, loss.provider)))

    def _related(self) -> frozenset[str]:
        """Return the metadata paths of the survivors that have to do with what goes."""
        names = {item.name for item in self._judgement.change.leaving}
        paths = frozenset(self._names.values())
        wanted = {name for path in paths for name in names_of(path, self._snapshot.objects[path])}
        loading = {
            owner.metadata_path
            for path in self._judge.baseline.names.wanting(wanted)
            for owner in self._owners.of(path)
        }
        packages, directories = self._places(paths)
        return frozenset(
            item.metadata_path
            for item in self._survivors
            if item.metadata_path in loading
            or any(_requires(text, names) for text in item.requires)
            or any(row.path.startswith(packages) for row in item.record.rows)
            or (directories and any(posixpath.dirname(row.path) in directories for row in item.record.rows))
        )

    def _places(self, paths: Iterable[str]) -> tuple[tuple[str, ...], Set[str]]:
        """Return the packages of libraries, with a slash at the end, and the directories of those in no package."""
        environment = self._snapshot.environment
        packages: set[str] = set()
        directories: set[str] = set()
        for path in paths:
            for site in (*environment.site_packages, *environment.visible_site_packages):
                package, slash, _ = path.removeprefix(f"{site}/").partition("/")
                if path.startswith(f"{site}/") and slash:
                    packages.add(f"{site}/{package}/")
                    break
            else:
                directories.add(posixpath.dirname(path))
        return tuple(packages), directories

    def _search_objects(self, related: Set[str]) -> None:
        names = frozenset(self._names)
        written = self._judgement.written
        others: list[ElfObject] = []
        for path, item in self._judge.baseline.objects.items():
            if not item.is_dynamic or path in self._gone or path in written or is_stub(path):
                continue
            if item.real_path != path and item.real_path in self._judge.baseline.objects:
                continue
            # What the user points at is related by that.
            if path in self._snapshot.outside or any(owner.metadata_path in related for owner in self._owners.of(path)):
                self._search_object(item, names)
            else:
                others.append(item)
        left = _OBJECTS_BUDGET
        for item in sorted(others, key=lambda other: (other.size, other.path)):
            left -= item.size
            if left < 0:
                break
            self._search_object(item, names)

    def _search_object(self, item: ElfObject, names: frozenset[str]) -> None:
        for name in sorted(self._snapshot.evidence.data_naming(names - names_of(item.path, item), item.path)):
            before = self._judge.baseline.opened(item, name)
            if self._is_lost(name, item.abi, before, self._after.opened(item, name)):
                self._add(name, item.path, "its data names it")

    def _search_sources(self, related: Set[str]) -> None:
        paths: list[str] = []
        others: list[tuple[int, list[str]]] = []
        for distribution in self._survivors:
            rows = [
                row
                for row in distribution.record.rows
                if row.path.endswith(".py") and row.path not in self._gone and row.path not in self._judgement.written
            ]
            found = [row.path for row in rows]
            if distribution.metadata_path in related:
                paths += found
            else:
                size = sum(_SOURCE_SIZE if row.size is None else row.size for row in rows)
                others.append((size, found))
        left = _SOURCES_BUDGET
        for size, found in sorted(others):
            left -= size
            if left < 0:
                break
            paths += found
        naming = self._snapshot.evidence.strings_naming(frozenset(self._names), paths)
        abi = self._snapshot.environment.abi
        for name, where in sorted(naming.items()):
            before = self._judge.baseline.opened_by_python(name)
            if self._is_lost(name, abi, before, self._after.opened_by_python(name)):
                for path in where:
                    self._add(name, path, "names it")

    def _is_lost(self, name: str, abi: Abi | None, before: str | None, after: str | None) -> bool:
        """Return whether a name is lost to somebody of an ABI who gets ``before`` for it, and ``after`` in the outcome.

        What no rule of the loader leads to is found some other way, if at all: then any file of that name will do.
        """
        if after is not None:
            return False
        objects = self._snapshot.objects
        if abi is not None and objects[self._names[name]].abi != abi:
            return False
        if before is not None:
            return True
        bearers = [objects[path] for path in self._judge.baseline.names.bearers(name) if path not in self._gone]
        for wheel in self._judgement.change.wheels:
            bearers += (item for path, item in wheel.objects.items() if name in names_of(path, item))
        return not any(not is_stub(item.path) and abi in (None, item.abi) for item in bearers)

    def _add(self, name: str, path: str, how: str) -> None:
        going = {item.metadata_path for item in self._judgement.change.leaving}
        owner = next((item for item in self._owners.of(path) if item.metadata_path not in going), None)
        consumer = Consumer(
            distribution=None if owner is None else DistributionRef(name=owner.name, version=owner.version),
            path=path,
            strength=Strength.NAMED,
            how=how,
        )
        self._found.setdefault(name, []).append(consumer)


def _requires(text: str, names: Set[str]) -> bool:
    """Return whether a Requires-Dist names one of some distributions, under whatever marker."""
    match = _LEADING_NAME.match(text)
    return match is not None and normalize_name(match[1]) in names
