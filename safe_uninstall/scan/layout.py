"""Where the parts of an environment are: what its directories and its small files say."""

import os
import re
from collections.abc import Iterable

from safe_uninstall.model.elf import Abi
from safe_uninstall.scan.tree import HOST, Tree

_LIBRARY = re.compile(r"(?:python|pypy)(\d+\.\d+)t?")
"""The name of a library directory; that of a free-threaded Python ends in ``t``."""

PROGRAMS = ("python3", "python", "pypy3")
"""Names of interpreters in ``bin``."""

_PLACES = ("lib", "lib64")
"""Some systems keep what depends on the platform apart."""


def read_configuration(path: str, tree: Tree = HOST) -> dict[str, str]:
    """Return the keys of a ``pyvenv.cfg`` in lower case."""
    configuration: dict[str, str] = {}
    for line in (tree.text(path) or "").splitlines():
        key, separator, value = line.partition("=")
        if separator:
            configuration[key.strip().lower()] = value.strip()
    return configuration


def library_directory(prefix: str, stem: str, version: str, tree: Tree = HOST) -> str | None:
    """Return ``lib/pythonX.Y``: the one of ``version``, else the only one there is."""
    short = ".".join(version.split(".")[:2])
    found = [name for name in library_names(prefix, ("lib",), tree=tree) if name.startswith(stem)]
    if stem + short in found:
        found = [stem + short]
    return os.path.join(prefix, "lib", found[0]) if len(found) == 1 else None


def library_names(prefix: str, places: Iterable[str] = _PLACES, *, tree: Tree = HOST) -> list[str]:
    """Return the names of the directories ``pythonX.Y`` and ``pypyX.Y`` that have site-packages, sorted."""
    found: set[str] = set()
    for place in places:
        directory = os.path.join(prefix, place)
        try:
            names = [name for name in tree.names(directory) if _LIBRARY.fullmatch(name)]
        except OSError:
            continue
        found.update(name for name in names if tree.is_directory(os.path.join(directory, name, "site-packages")))
    return sorted(found)


def prefix_site_packages(prefix: str, library: str, tree: Tree = HOST) -> tuple[str, ...]:
    """Return the site-packages of a library directory's name that exist."""
    places = (os.path.join(prefix, place, library, "site-packages") for place in _PLACES)
    return tuple(dict.fromkeys(tree.real(place) for place in places if tree.is_directory(place)))


def version_of(library: str) -> str:
    """Return the ``X.Y`` in the name of a library directory."""
    match = _LIBRARY.fullmatch(os.path.basename(library))
    return "" if match is None else match[1]


def first_program(prefix: str, names: Iterable[str], tree: Tree = HOST) -> str | None:
    """Return the first of the programs in ``bin`` that can be run; a link that leads nowhere cannot."""
    for name in names:
        path = os.path.join(prefix, "bin", name)
        if tree.is_program(path):
            return path
    return None


def interpreter_facts(python: str | None, tree: Tree = HOST) -> tuple[str | None, Abi | None]:
    """Return the real path and the ABI of an interpreter, (None, None) when it is no ELF file."""
    found = None if python is None else tree.elf(python)
    return (None, None) if found is None else (found.path, found.abi)


def base_site_packages(base: str, library: str, tree: Tree = HOST) -> list[str]:
    """Return the site directories of a base installation that exist, as ``site.getsitepackages`` would."""
    candidates = [f"{base}/lib/{library}/site-packages"]
    if base == "/usr":
        candidates += [
            f"/usr/local/lib/{library}/dist-packages",
            "/usr/lib/python3/dist-packages",
            f"/usr/lib/{library}/dist-packages",
        ]
    candidates.append(f"{home(tree)}/.local/lib/{library}/site-packages")
    return list(dict.fromkeys(tree.real(path) for path in candidates if tree.is_directory(path)))


def home(tree: Tree = HOST) -> str:
    """Return the home of who uses the environment: in a mounted tree that is root, as far as anybody knows."""
    return os.path.expanduser("~") if tree.is_host else "/root"


def externally_managed(stdlib: str, tree: Tree = HOST) -> str | None:
    """Return the text of an EXTERNALLY-MANAGED file (PEP 668), None where there is none."""
    text = tree.text(os.path.join(stdlib, "EXTERNALLY-MANAGED"))
    if text is None:
        return None
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("Error="):
            inside = True
            lines.append(line[len("Error=") :])
        elif inside and line[:1] in (" ", "\t"):
            lines.append(line.strip())
        elif inside and line.strip():
            break
    return "\n".join(lines).strip() or "This environment is externally managed."


def conda_python_version(prefix: str, tree: Tree = HOST) -> str:
    """Return the version of the Python that conda installed, empty where it did not."""
    try:
        names = tree.names(os.path.join(prefix, "conda-meta"))
    except OSError:
        return ""
    for name in sorted(names):
        parts = name.split("-")
        if len(parts) == 3 and parts[0] == "python" and name.endswith(".json"):
            return parts[1]
    return ""


def library_of(python: str, tree: Tree) -> str | None:
    """Return the name of the library directory of an interpreter, ``pythonX.Y``; None where several could be it.

    Args:
        python: real path of the interpreter's file.
        tree: where it is.
    """
    name = os.path.basename(python)
    if _LIBRARY.fullmatch(name):
        return name
    directory = os.path.join(os.path.dirname(os.path.dirname(python)), "lib")
    try:
        found = sorted(item for item in tree.names(directory) if _LIBRARY.fullmatch(item))
    except OSError:
        return None
    whole = [item for item in found if tree.exists(os.path.join(directory, item, "os.py"))]
    return (whole or found)[0] if len(whole or found) == 1 else None


def full_version(prefix: str, short: str, tree: Tree) -> str:
    """Return ``X.Y.Z`` of an interpreter that is not run, ``X.Y`` where nothing tells the rest.

    Its headers do, and so does the package manager of Debian.
    """
    text = tree.text(os.path.join(prefix, "include", f"python{short}", "patchlevel.h")) or ""
    match = re.search(r'^#define\s+PY_VERSION\s+"(\d+\.\d+\.\d+)', text, re.MULTILINE)
    if match is None and prefix == "/usr":
        status = tree.text("/var/lib/dpkg/status") or ""
        package = rf"^Package: libpython{re.escape(short)}-minimal\n(?:[^\n]+\n)*?Version: (\d+\.\d+\.\d+)"
        match = re.search(package, status, re.MULTILINE)
    return short if match is None or not match[1].startswith(f"{short}.") else match[1]


def system_site_packages(prefix: str, library: str, tree: Tree) -> tuple[str, ...]:
    """Return the site directories of an interpreter that is neither a venv's nor conda's, in ``sys.path`` order.

    Debian's own Python has ``dist-packages`` (its ``site.py``); Fedora's has ``lib64`` too, and ``/usr/local``.
    """
    own = [f"{prefix}/{place}/{library}/site-packages" for place in reversed(_PLACES)]
    if prefix == "/usr" and tree.is_directory("/usr/lib/python3/dist-packages"):
        places = [
            f"/usr/local/lib/{library}/dist-packages",
            "/usr/lib/python3/dist-packages",
            f"/usr/lib/{library}/dist-packages",
        ]
    elif prefix == "/usr":
        places = [*(f"/usr/local/{place}/{library}/site-packages" for place in reversed(_PLACES)), *own]
    else:
        places = own
    return tuple(dict.fromkeys(tree.real(place) for place in places if tree.is_directory(place)))
