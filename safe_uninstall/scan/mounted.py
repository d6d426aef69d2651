"""Finds the environment in a mounted root file system: a container's, a chroot's, that of another machine."""

import os
import posixpath
import shlex
from collections.abc import Iterator

from safe_uninstall.model.environment import Environment
from safe_uninstall.model.errors import EnvironmentNotFound, UsageError
from safe_uninstall.scan.environment import from_directory, from_interpreter
from safe_uninstall.scan.layout import PROGRAMS, first_program
from safe_uninstall.scan.tree import Tree

_SINGLE = ("/.venv", "/venv", "/env", "/root/.venv", "/opt/conda", "/opt/mamba", "/usr/local/venv")
"""Where images keep an environment."""
_PARENTS = (
    "/opt",
    "/app",
    "/srv",
    "/code",
    "/workspace",
    "/home",
    "/usr/src",
    "/usr/src/app",
    "/var/lib",
    "/usr/share",
)
"""Directories with environments one or two levels below: ``/opt/venv``, ``/app/.venv``, ``/home/user/.venv``."""
_BELOW = (".venv", "venv", "env")
_SYSTEM = ("/usr/local", "/usr")
"""Prefixes of interpreters, in the order of the usual PATH."""
_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_MOST_NAMES = 1000
"""Of one directory; whoever keeps more in it does not keep environments there."""


def find_mounted(root: str, python: str | None, directory: str) -> Environment:
    """Return the environment that ``python`` names in a tree, else the only one in the places where images keep it.

    Args:
        root: top of the tree, as the user wrote it.
        python: what ``-p`` takes, as a process in the tree would write it; one that begins with ``root`` is understood.
            None: look for it.
        directory: absolute path of the working directory.

    Raises:
        UsageError: ``root`` is no directory.
        EnvironmentNotFound: there is none, it cannot be read, or there are several and none is named.
    """
    tree = mounted_tree(root, directory)
    if python is not None:
        return _named(tree, root, python, directory)
    found = list(_in_usual_places(tree)) or [prefix for prefix in _SYSTEM if first_program(prefix, PROGRAMS, tree)][:1]
    if len(found) == 1:
        environment = from_directory(found[0], tree)
        if environment is not None:
            return environment
    if not found:
        raise EnvironmentNotFound(
            f"there is no Python environment in the usual places of `{root}`",
            help=_help(root),
        )
    raise EnvironmentNotFound(
        f"there are {len(found)} environments in `{root}`",
        help=tuple(
            f"name one of them: {shlex.join(('safe-uninstall', '--root', root, '-p', path))} PACKAGE" for path in found
        ),
    )


def mounted_tree(root: str, directory: str) -> Tree:
    """Return the tree that ``--root`` names; the root directory itself is this machine's own.

    Raises:
        UsageError: there is no such directory.
    """
    path = os.path.realpath(os.path.join(directory, os.path.expanduser(root)))
    if not os.path.isdir(path):
        raise UsageError(
            f"--root: there is no directory `{root}`",
            help=("name the directory that holds the usr and etc of the file system to look at",),
        )
    return Tree(path)


def inside(path: str, root: str, directory: str) -> str | None:
    """Return a path of this machine as one in the tree at ``root``, None when it is not below it.

    Args:
        path: as the user wrote it.
        root: absolute, its links resolved.
        directory: absolute path of the working directory.
    """
    head = root.rstrip("/")
    joined = os.path.normpath(os.path.join(directory, path))
    # Neither what leads into the tree nor what leads out of it in there may be resolved by this machine's links.
    parent = joined
    below: list[str] = []
    while parent != "/":
        if os.path.realpath(parent) == root:
            return posixpath.join("/", *reversed(below))
        below.append(os.path.basename(parent))
        parent = os.path.dirname(parent)
    return joined if not head else None


def _named(tree: Tree, root: str, python: str, directory: str) -> Environment:
    for path in _readings(tree, python, directory):
        if tree.is_directory(path):
            found = from_directory(path, tree)
            if found is None:
                raise EnvironmentNotFound(
                    f"`{path}` in `{root}` is a directory, but no Python environment", help=_help(root)
                )
            return found
        if tree.exists(path) or tree.is_link(path):
            return from_interpreter(posixpath.normpath(path), python, tree)
    raise EnvironmentNotFound(f"there is no interpreter or environment `{python}` in `{root}`", help=_help(root))


def _readings(tree: Tree, python: str, directory: str) -> Iterator[str]:
    """Yield what ``-p`` may mean: a path in the tree, one of this machine that leads into it, a program, a version."""
    yield posixpath.join("/", python)
    path = inside(python, tree.root, directory)
    if path is not None:
        yield path
    if "/" not in python:
        name = f"python{python}" if python[:1].isdigit() else python
        yield from (posixpath.join(place, name) for place in _PATH)


def _in_usual_places(tree: Tree) -> Iterator[str]:
    """Yield the virtual and conda environments in the usual places, each once, by their real paths."""
    seen: set[str] = set()
    for path in _usual_places(tree):
        if not tree.is_file(f"{path}/pyvenv.cfg") and not tree.is_directory(f"{path}/conda-meta"):
            continue
        real = tree.real(path)
        if real not in seen:
            seen.add(real)
            yield real


def _usual_places(tree: Tree) -> Iterator[str]:
    yield from _SINGLE
    for parent in _PARENTS:
        yield from (f"{parent}/{name}" for name in _BELOW)
        try:
            names = sorted(tree.names(parent))
        except OSError:
            continue
        for name in names[:_MOST_NAMES]:
            yield f"{parent}/{name}"
            yield from (f"{parent}/{name}/{below}" for below in _BELOW)


def _help(root: str) -> tuple[str, ...]:
    return (f"name one by its path in there: safe-uninstall --root {shlex.quote(root)} -p PATH PACKAGE",)
