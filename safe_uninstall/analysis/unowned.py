"""Which files that nobody claims would be left in the directories that leaving distributions have for themselves."""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass

from safe_uninstall.analysis.ownership import Owners, Ownership
from safe_uninstall.analysis.paths import View
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.environment import Environment
from safe_uninstall.model.filesystem import EntryKind
from safe_uninstall.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Unowned:
    """Files of nobody beside those of a leaving distribution."""

    distribution: Distribution
    paths: tuple[str, ...]
    """Canonical, sorted."""
    dangling: tuple[str, ...]
    """Those of ``paths`` that are links to something that goes."""


def find_unowned(
    snapshot: Snapshot, owners: Owners, ownership: Ownership, leaving: tuple[Distribution, ...]
) -> tuple[Unowned, ...]:
    """Return the files that nobody claims in directories that no survivor has a file in, and below these.

    Byte code is no news. Directories that are everybody's (site-packages itself, ``bin``, ``lib``) are not looked at.

    Args:
        snapshot: the baseline.
        owners: who claims which path.
        ownership: what goes and what stays.
        leaving: the distributions that go.
    """
    search = _Search(snapshot, owners, ownership)
    before = View(snapshot.files)
    after = View(snapshot.files, deleted=ownership.deleted)
    found = []
    for distribution in leaving:
        paths = tuple(sorted(search.beside(distribution)))
        if paths:
            dangling = tuple(
                path for path in paths if before.real_path(path) is not None and after.real_path(path) is None
            )
            found.append(Unowned(distribution=distribution, paths=paths, dangling=dangling))
    return tuple(found)


class _Search:
    def __init__(self, snapshot: Snapshot, owners: Owners, ownership: Ownership) -> None:
        self._files = snapshot.files
        self._owners = owners
        self._ownership = ownership
        self._seen = _common(snapshot.environment)
        overwritten = (path for item in ownership.overwritten for path in item.paths)
        self._shared = {posixpath.dirname(path) for path in (*ownership.released, *overwritten)}

    def beside(self, distribution: Distribution) -> Iterator[str]:
        """Yield the paths; each directory is looked at once over all distributions."""
        deleted = self._ownership.deleted
        for directory in {row.path.rpartition("/")[0] for row in distribution.record.rows if row.path in deleted}:
            yield from self._below(directory)

    def _below(self, directory: str) -> Iterator[str]:
        waiting = [directory]
        while waiting:
            directory = waiting.pop()
            if directory in self._seen or directory.endswith("/__pycache__"):
                continue
            self._seen.add(directory)
            left, below = self._look_into(directory)
            yield from left
            waiting += below

    def _look_into(self, directory: str) -> tuple[list[str], list[str]]:
        """Return the files of nobody in a directory and the directories in it; nothing where a survivor has a file."""
        if directory in self._shared:
            return [], []
        left, below = [], []
        for name, entry in self._files.names(directory).items():
            path = f"{directory}/{name}"
            if entry.kind is EntryKind.DIRECTORY:
                below.append(path)
            elif path in self._ownership.deleted or name.endswith((".pyc", ".pyo")):
                continue
            elif self._owners.of(path):
                return [], []
            else:
                left.append(path)
        return left, below


def _common(environment: Environment) -> set[str]:
    """Return the directories that belong to no distribution, and those above them."""
    common = {f"{environment.prefix}/{name}" for name in ("include", "lib", "share", "etc")}
    common |= {environment.scripts, *environment.site_packages, *environment.visible_site_packages}
    for directory in tuple(common):
        while directory != "/":
            directory = posixpath.dirname(directory)
            common.add(directory)
    return common
