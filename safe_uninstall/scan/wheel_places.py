"""Where the files of a wheel go in an environment."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING

from safe_uninstall.model.environment import EnvironmentKind

if TYPE_CHECKING:
    from safe_uninstall.model.environment import Environment

_NO_NAMES = frozenset({"", ".", ".."})


class WheelPlaces:
    """The places of one wheel in one environment."""

    def __init__(self, environment: Environment, info: str, name: str) -> None:
        """Place the files of the wheel whose dist-info directory is ``info`` and whose normalised name is ``name``."""
        self._site = environment.site_packages[0]
        self._roots = (_with_slash(environment.prefix), _with_slash(self._site))
        self._data = f"{info.removesuffix('.dist-info')}.data/"
        version = ".".join(environment.python_version.split(".")[:2])
        # pip keeps the headers of a virtual environment apart from those of its base (pip's ``locations``).
        include = ("include", "site") if environment.kind is EnvironmentKind.VENV else ("include",)
        self._schemes = {
            "purelib": self._site,
            "platlib": self._site,
            "scripts": environment.scripts,
            "data": environment.prefix,
            "headers": posixpath.join(environment.prefix, *include, f"python{version}", name),
        }
        self._directories: dict[str, str] = {}

    def target(self, written: str) -> str | None:
        """Return the canonical path that a file gets.

        Args:
            written: its name in the archive or in RECORD.

        Returns:
            None when it would leave the environment: by its name, by a scheme that nobody knows, or through a link
            that is there already.
        """
        base, path = self._site, written.removesuffix("/")
        if path.startswith(self._data):
            scheme, _, path = path[len(self._data) :].partition("/")
            if scheme not in self._schemes:
                return None
            base = self._schemes[scheme]
        head, _, name = path.rpartition("/")
        if not _NO_NAMES.isdisjoint((*head.split("/"), name) if head else (name,)) or path.startswith("/"):
            return None
        directory = posixpath.join(base, head) if head else base
        real = self._directories.get(directory)
        if real is None:
            real = self._directories[directory] = os.path.realpath(directory)
        target = posixpath.join(real, name)
        return target if target.startswith(self._roots) else None


def _with_slash(path: str) -> str:
    return path if path.endswith("/") else path + "/"
