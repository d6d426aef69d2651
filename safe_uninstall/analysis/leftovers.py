"""What former installations left behind: remains of failed pip runs, and directories that nobody claims."""

import posixpath
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from safe_uninstall.analysis.unknown_claims import tops_of_unknown
from safe_uninstall.model.environment import EnvironmentKind
from safe_uninstall.model.filesystem import Entry, EntryKind
from safe_uninstall.model.plan import Code, Finding, Severity
from safe_uninstall.model.snapshot import Snapshot

_EXCLUSIVE = frozenset({EnvironmentKind.VENV, EnvironmentKind.TARGET})
"""Kinds whose site-packages nobody but installers of distributions writes to, as conda and distributors do."""
_METADATA = (".dist-info", ".egg-info", ".egg", ".data")
_LISTED = 5
"""Paths that still make a command which somebody would type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """Absolute paths of what is left, each sorted."""

    failed: tuple[str, ...]
    """What pip renamed aside (``~orch``) and did not delete."""
    hollow: tuple[str, ...]
    """Directories that nobody claims, the topmost of each, with no file in or below them but byte code."""
    orphaned: tuple[str, ...]
    """Directories at the top of site-packages with other files, which nobody claims."""


def find_leftovers(snapshot: Snapshot) -> Leftovers:
    """Return what is left behind in the environment's own site-packages.

    Directories of distributions whose files are unknown are nobody's leftovers, nor are directories inside a package
    that hold files: programs write there as they run. Where conda or a distributor puts files beside the installers'
    own, only failed pip runs are told.
    """
    hollow: list[str] = []
    orphaned: list[str] = []
    if snapshot.environment.kind in _EXCLUSIVE:
        search = _Search(snapshot)
        for site in snapshot.environment.site_packages:
            for path, is_hollow in search.below(site):
                (hollow if is_hollow else orphaned).append(path)
    return Leftovers(failed=tuple(snapshot.leftovers), hollow=tuple(sorted(hollow)), orphaned=tuple(sorted(orphaned)))


def leftover_findings(leftovers: Leftovers) -> Iterator[Finding]:
    """Yield a note for each kind of leftovers that there is."""
    number = len(leftovers.failed)
    if number:
        yield _finding(
            leftovers.failed,
            f"{number} leftover{'' if number == 1 else 's'} of failed pip runs",
            ("nothing reads what begins with ~", *_deletion(leftovers.failed)),
        )
    number = len(leftovers.hollow)
    if number:
        yield _finding(
            leftovers.hollow,
            f"{_directories(number)} that no distribution claims hold{'s' if number == 1 else ''} nothing but byte code"
            " or empty directories",
            ("nothing can be imported from there", *_deletion(leftovers.hollow)),
        )
    number = len(leftovers.orphaned)
    if number:
        yield _finding(
            leftovers.orphaned,
            f"{_directories(number)} in site-packages {'is' if number == 1 else 'are'} claimed by no distribution",
            ("look whether they are yours: an uninstallation leaves behind what it did not install",),
        )


class _Search:
    def __init__(self, snapshot: Snapshot) -> None:
        self._files = snapshot.files
        self._sites = frozenset((*snapshot.environment.site_packages, *snapshot.environment.visible_site_packages))
        self._unknown = tops_of_unknown(snapshot.distributions)
        self._claimed: set[str] = set()
        for distribution in snapshot.distributions:
            for row in distribution.record.rows:
                self._claim(row.path)

    def _claim(self, path: str) -> None:
        while path not in self._claimed and path != "/":
            self._claimed.add(path)
            path = posixpath.dirname(path)

    def below(self, site: str) -> Iterator[tuple[str, bool]]:
        """Yield the directories that nobody claims, and whether each is hollow."""
        waiting = [site]
        while waiting:
            parent = waiting.pop()
            names = self._files.names(parent)
            for name in self._directories(names):
                path = f"{parent}/{name}"
                if path in self._sites or (parent == site and not self._is_searched(name)):
                    continue
                if path in self._claimed:
                    waiting.append(path)
                elif self._is_hollow(path):
                    yield path, True
                elif parent == site and "pyvenv.cfg" not in self._files.names(path):
                    yield path, False

    @staticmethod
    def _directories(names: Mapping[str, Entry]) -> Iterator[str]:
        for name, entry in names.items():
            if entry.kind is EntryKind.DIRECTORY and name != "__pycache__":
                yield name

    def _is_searched(self, name: str) -> bool:
        return name not in self._unknown and not name.startswith(("~", ".")) and not name.endswith(_METADATA)

    def _is_hollow(self, directory: str) -> bool:
        for name, entry in self._files.names(directory).items():
            if entry.kind is EntryKind.DIRECTORY:
                if not self._is_hollow(f"{directory}/{name}"):
                    return False
            elif not name.endswith((".pyc", ".pyo")):
                return False
        return True


def _finding(paths: tuple[str, ...], message: str, help: tuple[str, ...]) -> Finding:
    return Finding(
        code=Code.UNOWNED_LEFT, severity=Severity.NOTE, message=message, path=paths[0], paths=paths, help=help
    )


def _deletion(paths: tuple[str, ...]) -> Iterator[str]:
    """Yield the command that deletes ``paths``, if it is short enough to be read."""
    if len(paths) <= _LISTED:
        yield shlex.join(("rm", "-r", *paths))


def _directories(number: int) -> str:
    return "1 directory" if number == 1 else f"{number} directories"
