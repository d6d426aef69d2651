"""Tells whose project a virtual environment is of: by its place, and by the lock file beside it."""

import json
import posixpath
import re
from typing import NamedTuple

from safe_uninstall.model.names import normalize_name
from safe_uninstall.scan.tree import Tree

_LOCKS = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm", "Pipfile.lock": "pipenv"}
_IN_PROJECT = frozenset({".venv", "venv", "env"})
"""Names of environments that lie in the directory of their project."""
_NAME = re.compile(r'^name = "([^"]+)"', re.MULTILINE)
"""The name of a package in the lock files of uv, poetry and pdm."""


class Owner(NamedTuple):
    """Who looks after a virtual environment."""

    manager: str | None = None
    directory: str | None = None
    """Of the project."""
    locked: frozenset[str] = frozenset()
    """Normalised names in its lock file."""


def find_owner(prefix: str, tree: Tree) -> Owner:
    """Return who looks after the virtual environment at ``prefix``; nobody unless a file or its place says so.

    Poetry keeps environments in a cache of its own, or beside ``poetry.lock``; pipenv writes the project's directory
    into ``.project``; the others keep the environment in the project. Of several lock files that of uv counts first.
    """
    parent, name = posixpath.split(prefix)
    if name in _IN_PROJECT:
        found = _of_project(parent, tree)
        if found.manager is not None:
            return found
    if "/pypoetry/virtualenvs/" in prefix:
        return Owner("poetry")
    project = (tree.text(f"{prefix}/.project") or "").strip()
    if project.startswith("/"):
        return _of_project(project, tree)
    return Owner()


def _of_project(directory: str, tree: Tree) -> Owner:
    for file, manager in _LOCKS.items():
        text = tree.text(posixpath.join(directory, file))
        if text is not None:
            names = _names_in_pipfile(text) if manager == "pipenv" else _NAME.findall(text)
            return Owner(manager, directory, frozenset(map(normalize_name, names)))
    return Owner()


def _names_in_pipfile(text: str) -> list[str]:
    try:
        data = json.loads(text)
        return [str(name) for section in ("default", "develop") for name in data.get(section) or ()]
    except (ValueError, AttributeError, TypeError):
        return []
