"""Finds the environment that a command is about, and reads where its files are.

A venv is read from its ``pyvenv.cfg`` and its directories, a conda environment from ``conda-meta``; any other
interpreter is asked once. Nothing of the environment is imported.
"""

import os
import shlex
import sys
from collections.abc import Mapping

from safe_uninstall.model.environment import Environment, EnvironmentKind
from safe_uninstall.model.errors import EnvironmentNotFound
from safe_uninstall.scan.layout import (
    base_site_packages,
    conda_python_version,
    externally_managed,
    first_program,
    interpreter_facts,
    library_directory,
    library_names,
    prefix_site_packages,
    read_configuration,
    version_of,
)
from safe_uninstall.scan.markers import markers_of
from safe_uninstall.scan.site_paths import pth_directories

_HELP = (
    "name one: safe-uninstall -p DIRECTORY-OR-INTERPRETER PACKAGE",
    "or activate one: source .venv/bin/activate",
)

_PROGRAMS = ("python3", "python", "pypy3")
"""Names of interpreters in ``bin``."""


def find_environment(
    python: str | None = None, *, variables: Mapping[str, str], directory: str, running: str | None = None
) -> Environment:
    """Return the environment that ``python`` names, or the one that the user is in.

    Args:
        python: an interpreter (path or command name), a venv directory, a prefix, or a directory filled by
            ``pip install --target`` or ``--prefix``. None: ``VIRTUAL_ENV``, else ``CONDA_PREFIX``, else ``.venv`` in
            ``directory`` or above it, else the environment that runs the command.
        variables: environment variables of the process.
        directory: absolute path of the working directory.
        running: prefix of the environment that runs the command; ``sys.prefix`` by default.

    Raises:
        EnvironmentNotFound: there is none, or it is none that can be read.
    """
    if python is not None:
        return _named(os.path.expanduser(python), variables, directory)
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        value = variables.get(variable)
        if value:
            found = _from_directory(value)
            if found is None:
                raise EnvironmentNotFound(f"{variable} names `{value}`, which is no environment", help=_HELP)
            return found
    current = directory
    while True:
        candidate = os.path.join(current, ".venv")
        if os.path.isfile(os.path.join(candidate, "pyvenv.cfg")):
            return _venv(candidate)
        parent = os.path.dirname(current)
        if parent == current:
            break
        current = parent
    found = _from_directory(sys.prefix if running is None else running)
    return found if found is not None else _asked(sys.executable)


def _named(python: str, variables: Mapping[str, str], directory: str) -> Environment:
    path = os.path.join(directory, python)
    if os.path.isdir(path):
        found = _from_directory(path)
        if found is None:
            raise EnvironmentNotFound(f"`{python}` is a directory, but no Python environment", help=_HELP)
        return found
    if os.path.lexists(path):
        return _from_interpreter(os.path.abspath(path), python)
    if "/" not in python:
        import shutil

        # uv takes versions where it takes interpreters: 3.11 is python3.11.
        name = f"python{python}" if python[:1].isdigit() else python
        found_path = shutil.which(name, path=variables.get("PATH"))
        if found_path is not None:
            return _from_interpreter(os.path.abspath(found_path), python)
    raise EnvironmentNotFound(f"there is no interpreter or environment `{python}`", help=_HELP)


def _from_interpreter(path: str, written: str) -> Environment:
    """Return the environment of an interpreter; its path is not resolved, or a venv would turn into its base."""
    prefix = os.path.dirname(os.path.dirname(path))
    if os.path.isfile(os.path.join(prefix, "pyvenv.cfg")):
        return _venv(prefix)
    if os.path.isdir(os.path.join(prefix, "conda-meta")):
        return _conda(prefix)
    if not os.path.isfile(path):
        raise EnvironmentNotFound(f"`{written}` is a link that leads nowhere", help=_HELP)
    if not os.access(path, os.X_OK):
        raise EnvironmentNotFound(f"`{written}` is neither an environment nor an interpreter", help=_HELP)
    return _asked(path)


def _from_directory(path: str) -> Environment | None:
    """Return the environment in a directory, or the one that the directory lies in."""
    if os.path.isfile(os.path.join(path, "pyvenv.cfg")):
        return _venv(path)
    if os.path.isdir(os.path.join(path, "conda-meta")):
        return _conda(path)
    python = first_program(path, _PROGRAMS)
    if python is not None:
        return _asked(python)
    try:
        names = os.listdir(path)
    except OSError as error:
        if os.path.isdir(path):
            raise EnvironmentNotFound(f"`{path}` cannot be read: {error.strerror}", help=_HELP) from None
        return None
    # A directory inside an environment (its bin, its site-packages) stands for the environment.
    parent = os.path.dirname(os.path.realpath(path))
    while parent != os.path.dirname(parent):
        if os.path.isfile(os.path.join(parent, "pyvenv.cfg")) and _inside_venv(path, parent):
            return _venv(parent)
        parent = os.path.dirname(parent)
    around = _around_site_packages(path)
    if around is not None:
        return around
    if any(name.endswith((".dist-info", ".egg-info")) for name in names):
        return _target(path)
    return _filled_prefix(path)


def _around_site_packages(path: str) -> Environment | None:
    """Return the environment that has ``path`` as ``lib/pythonX.Y/site-packages``; None if it is no such directory."""
    real = os.path.realpath(path)
    library, name = os.path.split(real)
    root = os.path.dirname(os.path.dirname(library))
    if name != "site-packages" or os.path.basename(library) not in library_names(root):
        return None
    if os.path.isdir(os.path.join(root, "conda-meta")):
        return _conda(root)
    python = first_program(root, _PROGRAMS)
    found = None if python is None else _asked(python)
    return found if found is not None and real in found.site_packages else _prefix(root, os.path.basename(library))


def _filled_prefix(path: str) -> Environment | None:
    """Return the environment in a directory that has ``lib/pythonX.Y/site-packages`` and no interpreter."""
    for name in _PROGRAMS:
        interpreter = os.path.join(path, "bin", name)
        if os.path.islink(interpreter) and not os.path.exists(interpreter):
            raise EnvironmentNotFound(f"`{interpreter}` is a link that leads nowhere", help=_HELP)
    names = library_names(path)
    if len(names) > 1:
        sites = [site for name in names for site in prefix_site_packages(path, name)]
        raise EnvironmentNotFound(
            f"`{path}` has site-packages of several Python versions",
            help=tuple(f"name one of them: safe-uninstall -p {shlex.quote(site)} PACKAGE" for site in sites),
        )
    return _prefix(path, names[0]) if names else None


def _inside_venv(path: str, prefix: str) -> bool:
    """Return whether a directory belongs to the venv around it, and is not merely kept in it."""
    relative = os.path.relpath(os.path.realpath(path), os.path.realpath(prefix)).split(os.sep)
    return relative[0] == "bin" or relative[-1] in ("site-packages", "dist-packages")


def _venv(path: str) -> Environment:
    prefix = os.path.realpath(path)
    configuration = read_configuration(os.path.join(prefix, "pyvenv.cfg"))
    implementation = configuration.get("implementation", "CPython").lower()
    stdlib = "pypy" if implementation == "pypy" else "python"
    version = configuration.get("version_info") or configuration.get("version") or ""
    version = ".".join(version.split(".")[:3])
    library = library_directory(prefix, stdlib, version)
    if library is None:
        windows = os.path.isdir(os.path.join(prefix, "Scripts")) or os.path.isdir(os.path.join(prefix, "Lib"))
        why = "was made on Windows" if windows else "has no lib/pythonX.Y/site-packages"
        raise EnvironmentNotFound(
            f"the virtual environment `{path}` {why}",
            help=("make it anew with the interpreter of this machine: python3 -m venv DIRECTORY",),
        )
    if not version:
        version = version_of(library)
    python = first_program(prefix, ("python", "python3"))
    interpreter, abi = interpreter_facts(python)
    home = configuration.get("home")
    base = None if not home else os.path.realpath(os.path.dirname(home.rstrip("/")))
    site = os.path.realpath(os.path.join(library, "site-packages"))
    visible: list[str] = []
    if configuration.get("include-system-site-packages", "").lower() == "true" and base is not None:
        visible = base_site_packages(base, os.path.basename(library))
    own, outside = _with_pth(prefix, [site], visible)
    return Environment(
        prefix=prefix,
        kind=EnvironmentKind.VENV,
        python=python,
        python_version=version,
        implementation=implementation,
        site_packages=own,
        visible_site_packages=outside,
        scripts=os.path.join(prefix, "bin"),
        base_prefix=base,
        interpreter_path=interpreter,
        abi=abi,
        markers=markers_of(version, implementation, abi),
        created_by_uv="uv" in configuration,
        managed_by="poetry" if "/pypoetry/virtualenvs/" in prefix else None,
    )


def _conda(path: str) -> Environment:
    prefix = os.path.realpath(path)
    version = conda_python_version(prefix)
    library = library_directory(prefix, "python", version)
    if library is None:
        raise EnvironmentNotFound(
            f"the conda environment `{path}` has no Python", help=(f"see what is in it: conda list -p {path}", *_HELP)
        )
    version = version or version_of(library)
    python = first_program(prefix, ("python", "python3"))
    interpreter, abi = interpreter_facts(python)
    own, outside = _with_pth(prefix, [os.path.realpath(os.path.join(library, "site-packages"))], [])
    return Environment(
        prefix=prefix,
        kind=EnvironmentKind.CONDA,
        python=python,
        python_version=version,
        implementation="cpython",
        site_packages=own,
        visible_site_packages=outside,
        scripts=os.path.join(prefix, "bin"),
        interpreter_path=interpreter,
        abi=abi,
        markers=markers_of(version, "cpython", abi),
        externally_managed=externally_managed(library),
        managed_by="pixi" if "/.pixi/envs/" in prefix + "/" else "conda",
    )


def _asked(python: str) -> Environment:
    """Return the environment of an interpreter that is neither a venv's nor conda's: it says where things are."""
    from safe_uninstall.scan.interpreter import ask_interpreter

    facts = ask_interpreter(python)
    # With -S an interpreter of a venv (behind a wrapper) tells the prefix of its base: site.py sets the venv's.
    for prefix in (facts.prefix, os.path.dirname(os.path.dirname(facts.executable))):
        if os.path.isfile(os.path.join(prefix, "pyvenv.cfg")):
            return _venv(prefix)
    if os.path.isdir(os.path.join(facts.prefix, "conda-meta")):
        return _conda(facts.prefix)
    prefix = os.path.realpath(facts.prefix)
    sites = list(dict.fromkeys(os.path.realpath(site) for site in facts.site_packages if os.path.isdir(site)))
    visible = [os.path.realpath(facts.user_site)] if os.path.isdir(facts.user_site) else []
    own, outside = _with_pth(prefix, sites, visible)
    interpreter, abi = interpreter_facts(facts.executable)
    debian = any(site.endswith("/dist-packages") for site in own)
    return Environment(
        prefix=prefix,
        kind=EnvironmentKind.SYSTEM,
        python=facts.executable,
        python_version=facts.version,
        implementation=facts.implementation,
        site_packages=own,
        visible_site_packages=outside,
        scripts=os.path.realpath(facts.scripts),
        base_prefix=os.path.realpath(facts.base_prefix),
        interpreter_path=interpreter,
        abi=abi,
        markers=facts.markers,
        externally_managed=externally_managed(facts.stdlib),
        managed_by="debian" if debian else None,
    )


def _target(path: str) -> Environment:
    """Return a directory filled by ``pip install --target``; markers are those of the interpreter that runs this."""
    prefix = os.path.realpath(path)
    version = ".".join(str(part) for part in sys.version_info[:3])
    _, abi = interpreter_facts(sys.executable)
    return Environment(
        prefix=prefix,
        kind=EnvironmentKind.TARGET,
        python=None,
        python_version=version,
        implementation=sys.implementation.name,
        site_packages=(prefix,),
        scripts=os.path.join(prefix, "bin"),
        markers=markers_of(version, sys.implementation.name, abi),
    )


def _prefix(path: str, library: str) -> Environment:
    """Return a directory filled by ``pip install --prefix``; markers are of its version, else of this host."""
    prefix = os.path.realpath(path)
    version = version_of(library)
    implementation = "pypy" if library.startswith("pypy") else "cpython"
    _, abi = interpreter_facts(sys.executable)
    return Environment(
        prefix=prefix,
        kind=EnvironmentKind.PREFIX,
        python=None,
        python_version=version,
        implementation=implementation,
        site_packages=prefix_site_packages(prefix, library),
        scripts=os.path.join(prefix, "bin"),
        markers=markers_of(version, implementation, abi),
    )


def _with_pth(prefix: str, own: list[str], visible: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Add what ``.pth`` files add: directories in the prefix are the environment's, others are only visible."""
    own, visible = list(own), list(visible)
    for site in (*own, *visible):
        for directory in pth_directories(site):
            if directory in own or directory in visible:
                continue
            (own if directory.startswith(prefix + "/") else visible).append(directory)
    return tuple(own), tuple(visible)
