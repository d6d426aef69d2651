"""Lets pip fetch wheels into a directory, and find out which ones a requirement needs."""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from safe_uninstall.execute.pip_log import Failure, explain
from safe_uninstall.execute.processes import run_program

ONLY_WHEELS = ("--only-binary", ":all:")
"""What would have to be built first is code that runs, and another build anyway."""


class Needed(NamedTuple):
    """One distribution that must be installed for a requirement."""

    name: str
    version: str
    url: str | None
    """Where it comes from, for one that a requirement names by URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipRuns:
    """Runs pip for one environment."""

    pip: tuple[str, ...]
    """Command that runs pip for the target: program and options up to the sub-command."""
    directory: str
    """An existing directory for what is fetched, outside the environment; somebody else removes it."""
    python_version: str | None = None
    """``X.Y`` of a target without an interpreter, which pip cannot ask; None for any other."""

    def download(
        self,
        wanted: str,
        *,
        place: str,
        options: tuple[str, ...] = (),
        settings: Mapping[str, str],
        show: bool = False,
    ) -> list[str] | Failure:
        """Fetch the wheel of one requirement.

        Args:
            wanted: the requirement.
            place: where pip looks, in words.
            options: further ones.
            settings: variables of pip: where it looks.
            show: let pip say on the terminal how far it is.

        Returns:
            Paths of files, or why there are none.
        """
        directory = self.make_directory("download")
        words = ("download", *ONLY_WHEELS, "--no-deps", "--dest", directory, *self._target_options(), *options)
        failure = self._run((*words, "--", wanted), place, settings, show=show)
        return failure or [posixpath.join(directory, name) for name in sorted(os.listdir(directory))]

    def resolve(
        self, requirements: tuple[str, ...], *, place: str, options: tuple[str, ...], settings: Mapping[str, str]
    ) -> list[Needed] | Failure:
        """Find out what requirements need that the environment does not have.

        In a target without an interpreter pip cannot see what is there: nothing is added for it but what is named.

        Args:
            requirements: PEP 508.
            place: where pip looks, in words.
            options: further ones.
            settings: variables of pip.
        """
        directory = self.make_directory("resolve")
        report = posixpath.join(directory, "report.json")
        alone: tuple[str, ...] = ()
        if self.python_version is not None:
            alone = ("--no-deps", "--ignore-installed", "--target", posixpath.join(directory, "target"))
        words = ("install", "--dry-run", *ONLY_WHEELS, "--report", report, *alone, *self._target_options(), *options)
        failure = self._run((*words, "--", *requirements), place, settings)
        if failure is not None:
            return failure
        with open(report, encoding="utf-8") as file:
            items = json.load(file)["install"]
        return [
            Needed(
                item["metadata"]["name"],
                item["metadata"]["version"],
                item["download_info"]["url"] if item["is_direct"] else None,
            )
            for item in items
        ]

    def make_directory(self, name: str) -> str:
        """Make a new directory for what is fetched.

        Raises:
            OSError: there is no room for it.
        """
        number = 0
        while True:
            place = posixpath.join(self.directory, f"{name}-{number}")
            try:
                os.mkdir(place, 0o700)
                return place
            except FileExistsError:
                number += 1

    def _target_options(self) -> tuple[str, ...]:
        return () if self.python_version is None else ("--python-version", self.python_version)

    def _run(
        self, words: tuple[str, ...], place: str, settings: Mapping[str, str], *, show: bool = False
    ) -> Failure | None:
        """Run pip; return why it failed, None when it did not."""
        log = posixpath.join(self.make_directory("log"), "log")
        quiet = () if show else ("--quiet",)
        # What pip unpacks and downloads on the way is removed with ours, even if it is killed.
        where = {**settings, "TMPDIR": self.directory}
        command = (*self.pip, words[0], *quiet, "--log", log, *words[1:])
        try:
            run = run_program(command, show=show, settings=where)
        except OSError as error:
            return Failure(reason=f"pip cannot be run: {error.strerror or error}")
        if run.returncode == 0:
            return None
        try:
            with open(log, encoding="utf-8", errors="replace") as file:
                said = file.read()
        except OSError:
            said = ""
        return explain(said or run.output, place)
