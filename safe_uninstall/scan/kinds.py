"""Describes environments, kind by kind, from their directories and small files."""

import os
import sys

from safe_uninstall.model.environment import Environment, EnvironmentKind
from safe_uninstall.model.errors import EnvironmentNotFound
from safe_uninstall.scan.conda import conda_manager
from safe_uninstall.scan.layout import (
    base_site_packages,
    conda_python_version,
    externally_managed,
    first_program,
    full_version,
    home,
    interpreter_facts,
    library_directory,
    library_of,
    prefix_site_packages,
    read_configuration,
    system_site_packages,
    version_of,
)
from safe_uninstall.scan.markers import markers_of
from safe_uninstall.scan.projects import find_owner
from safe_uninstall.scan.site_paths import pth_directories
from safe_uninstall.scan.tree import HOST, Tree

HELP = (
    "name one: safe-uninstall -p DIRECTORY-OR-INTERPRETER PACKAGE",
    "or activate one: source .venv/bin/activate",
)


def venv(path: str, tree: Tree = HOST) -> Environment:
    """Return the virtual environment in a directory that has a ``pyvenv.cfg``.

    Raises:
        EnvironmentNotFound: it has no library directory.
    """
    prefix = tree.real(path)
    configuration = read_configuration(os.path.join(prefix, "pyvenv.cfg"), tree)
    implementation = configuration.get("implementation", "CPython").lower()
    stdlib = "pypy" if implementation == "pypy" else "python"
    version = configuration.get("version_info") or configuration.get("version") or ""
    version = ".".join(version.split(".")[:3])
    library = library_directory(prefix, stdlib, version, tree)
    if library is None:
        windows = any(tree.is_directory(os.path.join(prefix, name)) for name in ("Scripts", "Lib"))
        why = "was made on Windows" if windows else "has no lib/pythonX.Y/site-packages"
        raise EnvironmentNotFound(
            f"the virtual environment `{path}` {why}",
            help=("make it anew with the interpreter of this machine: python3 -m venv DIRECTORY",),
        )
    if not version:
        version = version_of(library)
    python = first_program(prefix, ("python", "python3"), tree)
    interpreter, abi = interpreter_facts(python, tree)
    directory = configuration.get("home")
    base = None if not directory else tree.real(os.path.dirname(directory.rstrip("/")))
    site = tree.real(os.path.join(library, "site-packages"))
    visible: list[str] = []
    if configuration.get("include-system-site-packages", "").lower() == "true" and base is not None:
        visible = base_site_packages(base, os.path.basename(library), tree)
    own, outside = _with_pth(prefix, [site], visible, tree)
    owner = find_owner(prefix, tree)
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
        managed_by=owner.manager,
        project=owner.directory,
        locked=owner.locked,
        root=tree.root,
    )


def conda(path: str, tree: Tree = HOST) -> Environment:
    """Return the environment in a directory that has a ``conda-meta``.

    Raises:
        EnvironmentNotFound: no Python is installed in it.
    """
    prefix = tree.real(path)
    version = conda_python_version(prefix, tree)
    library = library_directory(prefix, "python", version, tree)
    if library is None:
        raise EnvironmentNotFound(
            f"the conda environment `{path}` has no Python", help=(f"see what is in it: conda list -p {path}", *HELP)
        )
    version = version or version_of(library)
    python = first_program(prefix, ("python", "python3"), tree)
    interpreter, abi = interpreter_facts(python, tree)
    own, outside = _with_pth(prefix, [tree.real(os.path.join(library, "site-packages"))], [], tree)
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
        externally_managed=externally_managed(library, tree),
        managed_by=conda_manager(prefix, tree),
        root=tree.root,
    )


def asked(python: str) -> Environment:
    """Return the environment of an interpreter that is neither a venv's nor conda's: it says where things are.

    Raises:
        EnvironmentNotFound: it does not answer.
    """
    from safe_uninstall.scan.interpreter import ask_interpreter

    facts = ask_interpreter(python)
    # With -S an interpreter of a venv (behind a wrapper) tells the prefix of its base: site.py sets the venv's.
    for prefix in (facts.prefix, os.path.dirname(os.path.dirname(facts.executable))):
        if os.path.isfile(os.path.join(prefix, "pyvenv.cfg")):
            return venv(prefix)
    if os.path.isdir(os.path.join(facts.prefix, "conda-meta")):
        return conda(facts.prefix)
    prefix = os.path.realpath(facts.prefix)
    sites = list(dict.fromkeys(os.path.realpath(site) for site in facts.site_packages if os.path.isdir(site)))
    visible = [os.path.realpath(facts.user_site)] if os.path.isdir(facts.user_site) else []
    own, outside = _with_pth(prefix, sites, visible)
    interpreter, abi = interpreter_facts(facts.executable)
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
        managed_by=_distributor(own),
    )


def unasked(python: str, tree: Tree) -> Environment:
    """Return the environment of an interpreter in a mounted tree that is neither a venv's nor conda's.

    It cannot be run, so that its place and its directories tell: the prefix is that of the file which all links to the
    interpreter lead to (CPython's ``getpath``), the site directories are those that CPython, Debian and Fedora build
    in.

    Raises:
        EnvironmentNotFound: its version cannot be told.
    """
    real = tree.real(python)
    prefix = os.path.dirname(os.path.dirname(real))
    library = library_of(real, tree)
    if library is None:
        raise EnvironmentNotFound(
            f"which Python `{python}` is cannot be told from `{prefix}/lib`",
            help=("name the directory of its distributions: -p PREFIX/lib/pythonX.Y/site-packages",),
        )
    short = version_of(library)
    version = full_version(prefix, short, tree)
    implementation = "pypy" if library.startswith("pypy") else "cpython"
    sites = list(system_site_packages(prefix, library, tree))
    user = f"{home(tree)}/.local/lib/{library}/site-packages"
    visible = [tree.real(user)] if tree.is_directory(user) else []
    own, outside = _with_pth(prefix, sites, visible, tree)
    interpreter, abi = interpreter_facts(real, tree)
    distributor = _distributor(own)
    return Environment(
        prefix=prefix,
        kind=EnvironmentKind.SYSTEM,
        python=python,
        python_version=version,
        implementation=implementation,
        site_packages=own,
        visible_site_packages=outside,
        # pip on Debian puts scripts where its own distributions go (``posix_local``).
        scripts=tree.real("/usr/local/bin" if distributor == "debian" else f"{prefix}/bin"),
        base_prefix=prefix,
        interpreter_path=interpreter,
        abi=abi,
        markers=markers_of(version, implementation, abi),
        externally_managed=externally_managed(f"{prefix}/lib/{library}", tree),
        managed_by=distributor,
        root=tree.root,
    )


def target(path: str, tree: Tree = HOST) -> Environment:
    """Return a directory filled by ``pip install --target``; markers are those of the interpreter that runs this."""
    prefix = tree.real(path)
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
        root=tree.root,
    )


def filled_prefix(path: str, library: str, tree: Tree = HOST) -> Environment:
    """Return a directory filled by ``pip install --prefix``; markers are of its version, else of this host."""
    prefix = tree.real(path)
    version = version_of(library)
    implementation = "pypy" if library.startswith("pypy") else "cpython"
    _, abi = interpreter_facts(sys.executable)
    return Environment(
        prefix=prefix,
        kind=EnvironmentKind.PREFIX,
        python=None,
        python_version=version,
        implementation=implementation,
        site_packages=prefix_site_packages(prefix, library, tree),
        scripts=os.path.join(prefix, "bin"),
        markers=markers_of(version, implementation, abi),
        root=tree.root,
    )


def _distributor(sites: tuple[str, ...]) -> str | None:
    return "debian" if any(site.endswith("/dist-packages") for site in sites) else None


def _with_pth(
    prefix: str, own: list[str], visible: list[str], tree: Tree = HOST
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Add what ``.pth`` files add: directories in the prefix are the environment's, others are only visible."""
    own, visible = list(own), list(visible)
    for site in (*own, *visible):
        for directory in pth_directories(site, tree):
            if directory in own or directory in visible:
                continue
            (own if directory.startswith(prefix + "/") else visible).append(directory)
    return tuple(own), tuple(visible)
