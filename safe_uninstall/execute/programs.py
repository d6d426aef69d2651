"""Finds pip and uv: as programs to run, and as words that a user can type."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from safe_uninstall.model.environment import Programs


def find_uv() -> str | None:
    """Return the absolute path of uv: what the variable UV names, else beside the running interpreter, else on PATH."""
    candidates = [os.environ.get("UV"), os.path.join(os.path.dirname(sys.executable), "uv"), *_on_path("uv")]
    return next((os.path.abspath(path) for path in candidates if path and _can_run(path)), None)


def find_programs() -> Programs:
    """Return how the user can start pip and uv: by name where the name leads to the one that is meant, else by path."""
    return Programs(pip=_pip_words(), uv=_uv_words())


def find_pythons(version: str) -> Iterator[str]:
    """Yield paths of what may be interpreters of a version (``X.Y``), the running one first if it is of it."""
    if f"{sys.version_info[0]}.{sys.version_info[1]}" == version:
        yield sys.executable
    yield from (os.path.abspath(path) for path in _on_path(f"python{version}"))


def tool_pip_requirement() -> str | None:
    """Return Requires-Python of the pip beside this tool ("" when it states none), None when there is no pip."""
    from importlib import metadata

    try:
        return metadata.metadata("pip")["Requires-Python"] or ""
    except metadata.PackageNotFoundError:
        return None


def _pip_words() -> tuple[str, ...] | None:
    from importlib.util import find_spec

    named = next(_on_path("pip"), None)
    if find_spec("pip") is None:
        return None if named is None else ("pip",)
    # Any other pip may be too old to serve an environment that it is not in.
    if named is not None and os.path.dirname(os.path.abspath(named)) == os.path.dirname(sys.executable):
        return ("pip",)
    return (sys.executable, "-m", "pip")


def _uv_words() -> str | None:
    found = find_uv()
    if found is None or os.path.basename(found) != "uv":
        return found
    named = next(_on_path("uv"), None)
    return "uv" if named is not None and os.path.samefile(named, found) else found


def _on_path(name: str) -> Iterator[str]:
    """Yield the programs of a name that a shell would find, as ``shutil.which`` does, which takes long to import."""
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(directory, name)
        if _can_run(path):
            yield path


def _can_run(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
