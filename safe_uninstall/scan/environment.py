"""Finds the environment that a command is about.

A venv is read from its ``pyvenv.cfg`` and its directories, a conda environment from ``conda-meta``; any other
interpreter is asked once, save in a mounted tree. Nothing of the environment is imported.
"""

import os
import shlex
import sys
from collections.abc import Mapping

from safe_uninstall.model.environment import Environment
from safe_uninstall.model.errors import EnvironmentNotFound
from safe_uninstall.scan import kinds
from safe_uninstall.scan.kinds import HELP
from safe_uninstall.scan.layout import PROGRAMS, first_program, library_names, prefix_site_packages
from safe_uninstall.scan.tree import HOST, Tree


def find_environment(
    python: str | None = None,
    *,
    variables: Mapping[str, str],
    directory: str,
    running: str | None = None,
    root: str | None = None,
) -> Environment:
    """Return the environment that ``python`` names, or the one that the user is in.

    Args:
        python: an interpreter (path or command name), a venv directory, a prefix, or a directory filled by
            ``pip install --target`` or ``--prefix``. None: ``VIRTUAL_ENV``, else ``CONDA_PREFIX``, else ``.venv`` in
            ``directory`` or above it, else the environment that runs the command.
        variables: environment variables of the process.
        directory: absolute path of the working directory.
        running: prefix of the environment that runs the command; ``sys.prefix`` by default.
        root: top of a mounted root file system that the environment is in, None for this machine's. Variables and
            the working directory do not say which environment is meant there.

    Raises:
        EnvironmentNotFound: there is none, or it is none that can be read.
        UsageError: ``root`` is no directory.
    """
    if root is not None:
        from safe_uninstall.scan.mounted import find_mounted

        return find_mounted(root, python, directory)
    if python is not None:
        return _named(os.path.expanduser(python), variables, directory)
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        value = variables.get(variable)
        if value:
            found = from_directory(value)
            if found is None:
                raise EnvironmentNotFound(f"{variable} names `{value}`, which is no environment", help=HELP)
            return found
    current = directory
    while True:
        candidate = os.path.join(current, ".venv")
        if os.path.isfile(os.path.join(candidate, "pyvenv.cfg")):
            return kinds.venv(candidate)
        parent = os.path.dirname(current)
        if parent == current:
            break
        current = parent
    found = from_directory(sys.prefix if running is None else running)
    return found if found is not None else kinds.asked(sys.executable)


def _named(python: str, variables: Mapping[str, str], directory: str) -> Environment:
    path = os.path.join(directory, python)
    if os.path.isdir(path):
        found = from_directory(path)
        if found is None:
            raise EnvironmentNotFound(f"`{python}` is a directory, but no Python environment", help=HELP)
        return found
    if os.path.lexists(path):
        return from_interpreter(os.path.abspath(path), python)
    if "/" not in python:
        import shutil

        # uv takes versions where it takes interpreters: 3.11 is python3.11.
        name = f"python{python}" if python[:1].isdigit() else python
        found_path = shutil.which(name, path=variables.get("PATH"))
        if found_path is not None:
            return from_interpreter(os.path.abspath(found_path), python)
    raise EnvironmentNotFound(f"there is no interpreter or environment `{python}`", help=HELP)


def from_interpreter(path: str, written: str, tree: Tree = HOST) -> Environment:
    """Return the environment of an interpreter; its path is not resolved, or a venv would turn into its base.

    Args:
        path: absolute.
        written: as the user wrote it.
        tree: where it is.

    Raises:
        EnvironmentNotFound: it is none, or it cannot be read.
    """
    prefix = os.path.dirname(os.path.dirname(path))
    if tree.is_file(os.path.join(prefix, "pyvenv.cfg")):
        return kinds.venv(prefix, tree)
    if tree.is_directory(os.path.join(prefix, "conda-meta")):
        return kinds.conda(prefix, tree)
    if not tree.is_file(path):
        raise EnvironmentNotFound(f"`{written}` is a link that leads nowhere", help=HELP)
    if not tree.is_program(path):
        raise EnvironmentNotFound(f"`{written}` is neither an environment nor an interpreter", help=HELP)
    return _of_python(path, tree)


def from_directory(path: str, tree: Tree = HOST) -> Environment | None:
    """Return the environment in a directory, or the one that the directory lies in.

    Raises:
        EnvironmentNotFound: it is one that cannot be read.
    """
    if tree.is_file(os.path.join(path, "pyvenv.cfg")):
        return kinds.venv(path, tree)
    if tree.is_directory(os.path.join(path, "conda-meta")):
        return kinds.conda(path, tree)
    python = first_program(path, PROGRAMS, tree)
    if python is not None:
        return _of_python(python, tree)
    try:
        names = tree.names(path)
    except OSError as error:
        if tree.is_directory(path):
            raise EnvironmentNotFound(f"`{path}` cannot be read: {error.strerror}", help=HELP) from None
        return None
    # A directory inside an environment (its bin, its site-packages) stands for the environment.
    parent = os.path.dirname(tree.real(path))
    while parent != os.path.dirname(parent):
        if tree.is_file(os.path.join(parent, "pyvenv.cfg")) and _inside_venv(path, parent, tree):
            return kinds.venv(parent, tree)
        parent = os.path.dirname(parent)
    around = _around_site_packages(path, tree)
    if around is not None:
        return around
    if any(name.endswith((".dist-info", ".egg-info")) for name in names):
        return kinds.target(path, tree)
    return _filled_prefix(path, tree)


def _of_python(python: str, tree: Tree) -> Environment:
    return kinds.asked(python) if tree.is_host else kinds.unasked(python, tree)


def _around_site_packages(path: str, tree: Tree) -> Environment | None:
    """Return the environment that has ``path`` as ``lib/pythonX.Y/site-packages``; None if it is no such directory."""
    real = tree.real(path)
    library, name = os.path.split(real)
    root = os.path.dirname(os.path.dirname(library))
    if name != "site-packages" or os.path.basename(library) not in library_names(root, tree=tree):
        return None
    if tree.is_directory(os.path.join(root, "conda-meta")):
        return kinds.conda(root, tree)
    python = first_program(root, PROGRAMS, tree)
    found = None if python is None else _of_python(python, tree)
    if found is not None and real in found.site_packages:
        return found
    return kinds.filled_prefix(root, os.path.basename(library), tree)


def _filled_prefix(path: str, tree: Tree) -> Environment | None:
    """Return the environment in a directory that has ``lib/pythonX.Y/site-packages`` and no interpreter."""
    for name in PROGRAMS:
        interpreter = os.path.join(path, "bin", name)
        if tree.is_link(interpreter) and not tree.exists(interpreter):
            raise EnvironmentNotFound(f"`{interpreter}` is a link that leads nowhere", help=HELP)
    names = library_names(path, tree=tree)
    if len(names) > 1:
        sites = [site for name in names for site in prefix_site_packages(path, name, tree)]
        raise EnvironmentNotFound(
            f"`{path}` has site-packages of several Python versions",
            help=tuple(f"name one of them: safe-uninstall -p {shlex.quote(site)} PACKAGE" for site in sites),
        )
    return kinds.filled_prefix(path, names[0], tree) if names else None


def _inside_venv(path: str, prefix: str, tree: Tree) -> bool:
    """Return whether a directory belongs to the venv around it, and is not merely kept in it."""
    relative = os.path.relpath(tree.real(path), tree.real(prefix)).split(os.sep)
    return relative[0] == "bin" or relative[-1] in ("site-packages", "dist-packages")
