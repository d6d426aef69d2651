"""Fetches wheels before anything changes: from what the user gives, from caches, from the index.

pip does the fetching, the tool's own, for the target's interpreter; from where the user's configuration says, with its
cache.
What was installed is only replaced by the very same build: the hashes of the wheel's RECORD must be those of the
installed one.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from safe_uninstall.execute.pip_settings import PipSettings
from safe_uninstall.execute.processes import run_program
from safe_uninstall.model.wheel import Wheel, WheelUnavailable

if TYPE_CHECKING:
    from safe_uninstall.execute.processes import InstallerRun
    from safe_uninstall.model.distribution import Distribution

Read = Callable[[str, str], Wheel]
"""Reads a wheel file (path, source in words); raises an exception that says why it cannot."""

Progress = Callable[[str], None]
"""Told what is being fetched."""


@dataclass(slots=True, kw_only=True)
class WheelFinder:
    """Implements ``model.wheel.WheelSource`` with pip."""

    pip: tuple[str, ...]
    """Command that runs pip for the target: program and options up to the sub-command."""
    directory: str
    """An existing directory for what is fetched, outside the environment; somebody else removes it."""
    read: Read
    find_links: tuple[str, ...] = ()
    """What the user gives: directories or pages with wheels."""
    no_index: bool = False
    progress: Progress = lambda _text: None
    show: bool = False
    """Whether pip's own progress bars go to standard error."""
    cached: Callable[[Distribution, str], str | None] = lambda _distribution, _directory: None
    """Makes a wheel of a distribution out of another program's cache in a directory, None where it cannot."""
    _restored: dict[str, Wheel | WheelUnavailable] = field(default_factory=dict)
    _resolved: dict[tuple[str, ...], tuple[Wheel, ...] | WheelUnavailable] = field(default_factory=dict)
    _settings: PipSettings | None = None

    def restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        """Return the very wheel that a distribution was installed from, or why it cannot be had; memoised."""
        path = distribution.metadata_path
        if path not in self._restored:
            self._restored[path] = self._restore(distribution)
        return self._restored[path]

    def resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        """Return wheels for requirements and for what they need and the environment lacks; memoised."""
        if requirements not in self._resolved:
            self._resolved[requirements] = self._resolve(requirements)
        return self._resolved[requirements]

    def _restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        pin = f"{distribution.name}=={distribution.version}"
        origin = distribution.direct_url
        if origin is not None and (origin.editable or origin.vcs is not None or origin.is_directory):
            how = "as an editable install" if origin.editable else "from a source tree"
            return WheelUnavailable(
                requirement=pin,
                reason=f"it was installed {how}, {origin.url}, which no index has",
                help=(f"install {distribution.name} again from there yourself",),
            )
        self.progress(f"fetching {pin}")
        wanted = pin if origin is None else f"{distribution.name} @ {origin.url}"
        reasons: list[str] = []
        for attempt in (self._given, self._from_cache, self._from_index):
            for file, source in attempt(distribution, wanted, reasons):
                found = self._checked(file, source, distribution)
                if isinstance(found, Wheel):
                    return found
                reasons.append(found)
        return WheelUnavailable(requirement=pin, reason="; ".join(dict.fromkeys(reasons)), help=self._supply(pin))

    def _given(self, distribution: Distribution, wanted: str, reasons: list[str]) -> list[tuple[str, str]]:
        """Fetch from what the user gave, before any cache is asked."""
        if not self.find_links:
            return []
        links = tuple(word for link in self.find_links for word in ("--find-links", link))
        return self._download(f"given-{distribution.name}", (*links, "--no-index"), wanted, "--find-links", reasons)

    def _from_cache(self, distribution: Distribution, _wanted: str, _reasons: list[str]) -> list[tuple[str, str]]:
        found = self.cached(distribution, self._place(f"cache-{distribution.name}"))
        return [] if found is None else [(found, "uv's cache")]

    def _from_index(self, distribution: Distribution, wanted: str, reasons: list[str]) -> list[tuple[str, str]]:
        if self.no_index:
            if not reasons:
                reasons.append("no index may be asked, and no cache has it")
            return []
        return self._download(f"index-{distribution.name}", index_options(), wanted, "the index", reasons)

    def _download(
        self, place: str, options: tuple[str, ...], wanted: str, source: str, reasons: list[str]
    ) -> list[tuple[str, str]]:
        """Let pip fetch one requirement; return the files with their source, or add why there are none."""
        directory = self._place(place)
        quiet = () if self.show else ("--quiet",)
        fixed = (*quiet, "--only-binary", ":all:", "--no-deps", "--dest", directory)
        settings = self._settings_of_user().for_command("download")
        run = run_program((*self.pip, "download", *fixed, *options, wanted), show=self.show, settings=settings)
        if run.returncode != 0:
            reasons.append(_last_error(run))
            return []
        return [(posixpath.join(directory, name), source) for name in sorted(os.listdir(directory))]

    def _resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        import json

        text = " ".join(requirements)
        self.progress(f"resolving {text}")
        place = self._place("resolve")
        report = posixpath.join(place, "report.json")
        links = tuple(word for link in self.find_links for word in ("--find-links", link))
        options = (*links, *(("--no-index",) if self.no_index else index_options()))
        fixed = ("--dry-run", "--quiet", "--only-binary", ":all:", "--report", report)
        settings = self._settings_of_user().for_command("install", choosing=True)
        run = run_program((*self.pip, "install", *fixed, *options, *requirements), settings=settings)
        if run.returncode != 0:
            return WheelUnavailable(requirement=text, reason=_last_error(run), help=self._supply(*requirements))
        with open(report, encoding="utf-8") as file:
            items = json.load(file)["install"]
        wheels = []
        for item in items:
            pin = f"{item['metadata']['name']}=={item['metadata']['version']}"
            self.progress(f"fetching {pin}")
            reasons: list[str] = []
            files = self._download("install", options, pin, "--find-links" if self.no_index else "the index", reasons)
            try:
                wheels += [self.read(file, source) for file, source in files]
            except Exception as error:
                reasons.append(str(error))
            if reasons:
                return WheelUnavailable(requirement=pin, reason=reasons[-1], help=self._supply(pin))
        return tuple(wheels)

    def _checked(self, file: str, source: str, distribution: Distribution) -> Wheel | str:
        """Return a wheel if it is the build that is installed, else why it is not."""
        try:
            wheel = self.read(file, source)
        except Exception as error:
            return str(error)
        different = _differences(wheel, distribution)
        if wheel.name != distribution.name or wheel.version != distribution.version or different:
            return f"{posixpath.basename(file)} is another build than the one installed"
        return wheel

    def _settings_of_user(self) -> PipSettings:
        if self._settings is None:
            self._settings = PipSettings(self.pip, os.environ)
        return self._settings

    def _place(self, name: str) -> str:
        place = posixpath.join(self.directory, name)
        number = 0
        while os.path.exists(place):
            number += 1
            place = posixpath.join(self.directory, f"{name}-{number}")
        os.mkdir(place)
        return place

    def _supply(self, *pins: str) -> tuple[str, ...]:
        return (
            f"fetch it where there is a network: pip download --no-deps {' '.join(pins)}",
            "then give the directory with it: --find-links DIRECTORY --no-index",
        )


def index_options() -> tuple[str, ...]:
    """Return pip's options for the index that the user's uv is configured for; pip's own configuration goes first."""
    if os.environ.get("PIP_INDEX_URL"):
        return ()
    options: tuple[str, ...] = ()
    main = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL")
    if main:
        options = ("--index-url", main.rpartition("=")[2] if "=" in main.partition("/")[0] else main)
    more = f"{os.environ.get('UV_INDEX', '')} {os.environ.get('UV_EXTRA_INDEX_URL', '')}".split()
    for url in more:
        # uv lets an index have a name: NAME=URL.
        options += ("--extra-index-url", url.partition("=")[2] if "=" in url.partition("/")[0] else url)
    return options


def _differences(wheel: Wheel, distribution: Distribution) -> bool:
    """Return whether a wheel and an installed RECORD disagree about any path that both give a hash for.

    Installers write some files of the dist-info themselves, and change scripts' first lines.
    """
    info = f"{distribution.metadata_path}/"
    scripts = set(distribution.scripts)
    installed = {row.path: row.hash.rstrip("=") for row in distribution.record.rows if row.hash}
    compared = 0
    for row in wheel.rows:
        if not row.hash or row.path not in installed or row.path in scripts or "/bin/" in row.path:
            continue
        if row.path.startswith(info) and posixpath.basename(row.path) not in ("METADATA", "WHEEL"):
            continue
        compared += 1
        if installed[row.path] != row.hash.rstrip("="):
            return True
    return compared == 0


def _last_error(run: InstallerRun) -> str:
    """Return what pip said last of what went wrong."""
    lines = [line.strip() for line in run.output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or [f"pip ended with status {run.returncode}"])[-1]
