"""Finds wheels before anything changes: in what the user gives, in caches, in the index that the user configured.

What was installed is only replaced by the very same build: the hashes of the wheel's RECORD must be those of the
installed one. What is on this machine is read where it is; the rest pip fetches, the tool's own, for the target.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from safe_uninstall.execute.builds import difference
from safe_uninstall.execute.pip_log import Failure
from safe_uninstall.execute.shortage import (
    Shortage,
    help_for_requirements,
    help_for_wheel,
    no_room,
    not_from_an_index,
)
from safe_uninstall.execute.space import require_room_for_wheel
from safe_uninstall.execute.wheel_tags import platform_options, read_tags
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.wheel import Wheel, WheelUnavailable

if TYPE_CHECKING:
    from safe_uninstall.execute.indexes import Indexes, Settings
    from safe_uninstall.execute.pip_runs import PipRuns
    from safe_uninstall.model.distribution import Distribution

Read = Callable[[str, str], Wheel]
"""Reads a wheel file (path, source in words); raises OSError when there is no room for it, any other exception, which
says why, when it is no good."""

_GIVEN = "--find-links"
_INDEX = "the index"
_CONFIGURED = "the configured place"
_ORIGIN = "the URL that it was installed from"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Another program's cache."""

    name: str
    """In words."""
    wheels: Callable[[Distribution, str], Iterable[str]]
    """Yields paths of wheel files of a distribution, made in a directory where they are not there as such."""


@dataclass(slots=True, kw_only=True)
class WheelFinder:
    """Implements ``model.wheel.WheelSource``."""

    runs: PipRuns
    indexes: Indexes
    read: Read
    scripts: str
    """Directory of scripts in the environment."""
    python_version: str
    """Of the environment."""
    again: Callable[[str], str]
    """Returns the command of this run with a place of wheels added, and without an index."""
    find_links: tuple[str, ...] = ()
    """What the user gives: directories, wheel files, or pages with links to wheels."""
    caches: tuple[Cache, ...] = ()
    progress: Callable[[str], None] = lambda _text: None
    """Told what is being fetched."""
    show: bool = False
    """Whether pip's own progress bars go to standard error."""
    _restored: dict[str, Wheel | WheelUnavailable] = field(default_factory=dict)
    _resolved: dict[tuple[str, ...], tuple[Wheel, ...] | WheelUnavailable] = field(default_factory=dict)
    _silent: list[tuple[str, Settings]] = field(default_factory=list)
    """Places and settings with which nothing answered: asking once more would only take the same time again."""

    def restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        """Return the very wheel that a distribution was installed from, or why it cannot be had; memoised.

        Raises:
            TemporaryDirectoryUnusable: there is no room for it, as it turns out.
            NoRoom: the temporary directory has less room than it may take.
        """
        path = distribution.metadata_path
        if path not in self._restored:
            try:
                self._restored[path] = self._restore(distribution)
            except OSError as error:
                raise no_room(self.runs.directory, error) from None
        return self._restored[path]

    def resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        """Return wheels for requirements and for what they need and the environment lacks; memoised.

        Raises:
            UsageError: something is no requirement.
            TemporaryDirectoryUnusable: there is no room for them.
        """
        if requirements not in self._resolved:
            try:
                self._resolved[requirements] = self._resolve(requirements)
            except OSError as error:
                raise no_room(self.runs.directory, error) from None
        return self._resolved[requirements]

    def _restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        other = not_from_an_index(distribution)
        if other is not None:
            return other
        pin = f"{distribution.name}=={distribution.version}"
        self.progress(f"fetching {pin}")
        shortage = Shortage(no_index=self.indexes.no_index)
        for file, source in self._candidates(distribution, shortage):
            found = self._read(file, source)
            if isinstance(found, Wheel):
                different = difference(found, distribution, self.scripts)
                if different is None:
                    return found
                found = f"{posixpath.basename(file)} {different}"
            shortage.refused(f"{found} (from {source})")
        return WheelUnavailable(
            requirement=pin,
            reason=shortage.sentence(),
            help=help_for_wheel(distribution, self.python_version, self.again, shortage),
        )

    def _candidates(self, distribution: Distribution, shortage: Shortage) -> Iterator[tuple[str, str]]:
        """Yield files that may be the wheel, with their source, in the order of the sources; note which has none."""
        for link in self.find_links:
            yield from self._given(link, distribution, shortage)
        for cache in self.caches:
            shortage.lacking(cache.name, None)
            for file in cache.wheels(distribution, self.runs.make_directory("cache")):
                shortage.having(cache.name)
                yield file, cache.name
        origin = "" if distribution.direct_url is None else distribution.direct_url.url
        path = _local_path(origin) if origin else None
        if origin and not urlsplit(origin).path.endswith(".whl"):
            shortage.refused(f"it was built from {origin}, which is no wheel")
        elif path is not None:
            # On this machine, and the very file: no index could send anything better.
            if os.path.isfile(path):
                yield path, origin
            else:
                shortage.refused(f"{path}, from which it was installed, is not there any more")
        for settings in self.indexes.to_restore():
            place = _CONFIGURED if self.indexes.no_index else _INDEX
            yield from self._matching(distribution, place, settings, shortage)
        if path is None and urlsplit(origin).path.endswith(".whl") and not self.indexes.no_index:
            wanted = f"{distribution.name} @ {origin}"
            yield from self._fetched(wanted, _ORIGIN, self.indexes.nowhere_else(), shortage)

    def _given(self, link: str, distribution: Distribution, shortage: Shortage) -> Iterator[tuple[str, str]]:
        """Yield what one place has that the user gives: pip reads pages, the rest is on this machine."""
        path = _local_path(link)
        if path is None or (os.path.isfile(path) and not path.endswith(".whl")):
            settings = self.indexes.nowhere_else()
            yield from self._matching(distribution, link, settings, shortage, (_GIVEN, link))
            return
        try:
            files = [posixpath.join(path, name) for name in sorted(os.listdir(path))] if os.path.isdir(path) else [path]
        except OSError as error:
            shortage.refused(f"{link} cannot be read: {error.strerror}")
            return
        if not os.path.exists(path):
            shortage.refused(f"{link} is not there")
            return
        found = [file for file in files if _is_named_for(file, distribution)]
        if not found:
            shortage.lacking(link, None)
        yield from ((file, _GIVEN) for file in found)

    def _matching(
        self,
        distribution: Distribution,
        place: str,
        settings: Settings,
        shortage: Shortage,
        where: tuple[str, ...] = (),
    ) -> Iterator[tuple[str, str]]:
        """Let pip fetch a distribution: the build for the platforms that the installed one is for, else any."""
        require_room_for_wheel(distribution, self.runs.directory)
        wanted = f"{distribution.name}==={_exact(distribution.version)}"
        exact = platform_options(read_tags(distribution.metadata_path))
        for options in dict.fromkeys((exact, ())):
            found = list(self._fetched(wanted, place, settings, shortage, (*where, *options)))
            yield from found
            if found:
                return

    def _fetched(
        self, wanted: str, place: str, settings: Settings, shortage: Shortage, options: tuple[str, ...] = ()
    ) -> Iterator[tuple[str, str]]:
        """Let pip fetch one requirement."""
        if (place, settings) in self._silent:
            shortage.lacking(place, Failure(reason=f"{place} cannot be reached", no_network=True))
            return
        found = self.runs.download(wanted, place=place, options=options, settings=settings, show=self.show)
        if isinstance(found, Failure):
            self._note(found, place, settings, shortage)
            return
        shortage.having(place)
        yield from ((file, _GIVEN if place in self.find_links else place) for file in found)

    def _note(self, failure: Failure, place: str, settings: Settings, shortage: Shortage) -> None:
        if failure.no_room:
            raise no_room(self.runs.directory)
        if failure.no_answer:
            self._silent.append((place, settings))
        shortage.lacking(place, failure)

    def _resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        text = " ".join(requirements)
        for requirement in requirements:
            if _is_source(requirement):
                return WheelUnavailable(
                    requirement=requirement, reason="it names a source, and only wheels can be checked"
                )
        self.progress(f"resolving {text}")
        shortage = Shortage(no_index=self.indexes.no_index)
        links = tuple(word for link in self.find_links for word in (_GIVEN, link))
        place = ", ".join(self.find_links) if self.find_links and self.indexes.no_index else _INDEX
        settings = self.indexes.to_install("install", choosing=True)
        needed = self.runs.resolve(requirements, place=place, options=links, settings=settings)
        if isinstance(needed, Failure):
            self._note(needed, place, settings, shortage)
            return self._unavailable(text, requirements, shortage)
        wheels: list[Wheel] = []
        for item in needed:
            self.progress(f"fetching {item.name}=={item.version}")
            wanted = f"{item.name} @ {item.url}" if item.url else f"{item.name}==={item.version}"
            settings = self.indexes.to_install("download")
            for file, source in self._fetched(wanted, place, settings, shortage, links):
                wheel = self._read(file, source)
                if isinstance(wheel, Wheel):
                    wheels.append(wheel)
                    break
                shortage.refused(wheel)
            else:
                return self._unavailable(f"{item.name}=={item.version}", requirements, shortage)
        return tuple(wheels)

    def _unavailable(self, what: str, requirements: tuple[str, ...], shortage: Shortage) -> WheelUnavailable:
        return WheelUnavailable(
            requirement=what,
            reason=shortage.sentence(),
            help=help_for_requirements(requirements, self.python_version, self.again, shortage),
        )

    def _read(self, file: str, source: str) -> Wheel | str:
        """Return a wheel, or why its file is no good."""
        try:
            return self.read(file, source)
        except OSError:
            raise
        except Exception as error:
            return str(error)


def _local_path(link: str) -> str | None:
    """Return the path that a link leads to on this machine, None for one that leads elsewhere."""
    if link.startswith("file:"):
        return unquote(urlsplit(link).path)
    return None if "://" in link else os.path.abspath(link)


def _is_named_for(file: str, distribution: Distribution) -> bool:
    """Return whether a file name is that of a wheel of a distribution, for whatever platform."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename
    from packaging.version import InvalidVersion

    try:
        name, version, _, _ = parse_wheel_filename(posixpath.basename(file))
    except (InvalidWheelFilename, InvalidVersion):
        return False
    return name == distribution.name and str(version) == _exact(distribution.version)


def _exact(version: str) -> str:
    """Return a version as indexes write it, to be compared as text: ``==`` would accept other local versions too."""
    from packaging.version import Version

    return str(Version(version))


def _is_source(text: str) -> bool:
    """Return whether a requirement names by URL what is no wheel.

    Raises:
        UsageError: it is no requirement (PEP 508).
    """
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        url = Requirement(text).url
    except InvalidRequirement as error:
        raise UsageError(f"`{text}` is not a requirement: {str(error).splitlines()[0]}") from None
    return url is not None and (
        url.startswith(("git+", "hg+", "svn+", "bzr+")) or not urlsplit(url).path.endswith(".whl")
    )
