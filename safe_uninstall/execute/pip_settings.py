"""Where and how pip fetches, as the user configured it, and nothing else of that configuration.

pip takes any option from ``PIP_<OPTION>`` and from its configuration files, also ``requirement``, ``target`` or
``user``, which mean something else than what is asked of it here.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping

from safe_uninstall.execute.processes import run_program

_FETCHING = frozenset(
    {
        "cache-dir",
        "cert",
        "client-cert",
        "default-timeout",
        "extra-index-url",
        "find-links",
        "index-url",
        "keyring-provider",
        "no-cache-dir",
        "no-index",
        "prefer-binary",
        "progress-bar",
        "proxy",
        "resume-retries",
        "retries",
        "timeout",
        "trusted-host",
        "use-deprecated",
        "use-feature",
    }
)
"""Options that say from where and how."""

_CHOOSING = frozenset({"constraint", "pre", "uploaded-prior-to"})
"""Options that say which version of what the user wants installed; what is restored has its version already."""

_PATH = frozenset({"cache-dir", "cert", "client-cert"})
"""Options that take one path; a relative one is meant from the user's directory."""
_PLACES = frozenset({"constraint", "find-links"})
"""Options that take paths or URLs, with white space between."""

_LINE = re.compile(r"^(?P<section>[a-z]+)\.(?P<option>[a-z-]+)=(?P<value>'.*'|\".*\")$")
"""A line of ``pip config list``; the value is a Python literal."""


class PipSettings:
    """The settings of one user; configuration files are read once, when they are first needed."""

    def __init__(self, pip: tuple[str, ...], variables: Mapping[str, str]) -> None:
        """Ask ``pip`` (its command up to the sub-command) for what files say; ``variables`` are the process's."""
        self._pip = pip
        self._variables = variables
        self._files: dict[str, dict[str, str]] | None = None

    def for_command(self, command: str, *, choosing: bool = False) -> dict[str, str]:
        """Return variables for a sub-command of pip.

        Args:
            command: ``download`` or ``install``: the section of configuration files that counts beside ``global``.
            choosing: whether pip chooses versions.
        """
        if self._files is None:
            self._files = self._read_files()
        wanted = _FETCHING | _CHOOSING if choosing else _FETCHING
        found = {**self._files.get("global", {}), **self._files.get(command, {}), **self._from_variables()}
        return {
            f"PIP_{option.upper().replace('-', '_')}": _absolute(option, value)
            for option, value in found.items()
            if option in wanted and value
        }

    def _from_variables(self) -> dict[str, str]:
        return {
            key[len("PIP_") :].lower().replace("_", "-"): value
            for key, value in self._variables.items()
            if key.startswith("PIP_") and value
        }

    def _read_files(self) -> dict[str, dict[str, str]]:
        """Return section, option and value of the configuration files; nothing where pip cannot read them."""
        file = self._variables.get("PIP_CONFIG_FILE", "")
        # `user = true` in a file would be an option of this very command, and show the user's file alone.
        all_files = {"PIP_GLOBAL": "0", "PIP_SITE": "0", "PIP_USER": "0"}
        settings = {"PIP_CONFIG_FILE": file and os.path.abspath(file), **all_files}
        run = run_program((*self._pip, "config", "list"), settings=settings)
        found: dict[str, dict[str, str]] = {}
        for line in run.output.splitlines() if run.returncode == 0 else ():
            match = _LINE.match(line)
            if match is not None:
                found.setdefault(match["section"], {})[match["option"]] = ast.literal_eval(match["value"])
        return found


def _absolute(option: str, value: str) -> str:
    """Return the value of an option with relative paths made absolute."""
    if option in _PATH:
        return os.path.abspath(os.path.expanduser(value))
    if option in _PLACES:
        return " ".join(os.path.abspath(word) if os.path.exists(word) else word for word in value.split())
    return value
