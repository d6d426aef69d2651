"""Where the parts of an environment are: what its directories and its small files say."""

import os
import re
from collections.abc import Iterable

from safe_uninstall.model.elf import Abi
from safe_uninstall.scan.elf import ElfError, read_elf
from safe_uninstall.scan.metadata import read_text

_LIBRARY = re.compile(r"(?:python|pypy)(\d+\.\d+)t?")
"""The name of a library directory; that of a free-threaded Python ends in ``t``."""

_PLACES = ("lib", "lib64")
"""Some systems keep what depends on the platform apart."""


def read_configuration(path: str) -> dict[str, str]:
    """Return the keys of a ``pyvenv.cfg`` in lower case."""
    configuration: dict[str, str] = {}
    for line in (read_text(path) or "").splitlines():
        key, separator, value = line.partition("=")
        if separator:
            configuration[key.strip().lower()] = value.strip()
    return configuration


def library_directory(prefix: str, stem: str, version: str) -> str | None:
    """Return ``lib/pythonX.Y``: the one of ``version``, else the only one there is."""
    short = ".".join(version.split(".")[:2])
    found = [name for name in library_names(prefix, ("lib",)) if name.startswith(stem)]
    if stem + short in found:
        found = [stem + short]
    return os.path.join(prefix, "lib", found[0]) if len(found) == 1 else None


def library_names(prefix: str, places: Iterable[str] = _PLACES) -> list[str]:
    """Return the names of the directories ``pythonX.Y`` and ``pypyX.Y`` that have site-packages, sorted."""
    found: set[str] = set()
    for place in places:
        directory = os.path.join(prefix, place)
        try:
            names = [name for name in os.listdir(directory) if _LIBRARY.fullmatch(name)]
        except OSError:
            continue
        found.update(name for name in names if os.path.isdir(os.path.join(directory, name, "site-packages")))
    return sorted(found)


def prefix_site_packages(prefix: str, library: str) -> tuple[str, ...]:
    """Return the site-packages of a library directory's name that exist."""
    places = (os.path.join(prefix, place, library, "site-packages") for place in _PLACES)
    return tuple(dict.fromkeys(os.path.realpath(place) for place in places if os.path.isdir(place)))


def version_of(library: str) -> str:
    """Return the ``X.Y`` in the name of a library directory."""
    match = _LIBRARY.fullmatch(os.path.basename(library))
    return "" if match is None else match[1]


def first_program(prefix: str, names: Iterable[str]) -> str | None:
    """Return the first of the programs in ``bin`` that can be run; a link that leads nowhere cannot."""
    for name in names:
        path = os.path.join(prefix, "bin", name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def interpreter_facts(python: str | None) -> tuple[str | None, Abi | None]:
    """Return the real path and the ABI of an interpreter, (None, None) when it is no ELF file."""
    if python is None:
        return None, None
    real = os.path.realpath(python)
    try:
        found = read_elf(real)
    except ElfError:
        found = None
    return (None, None) if found is None else (real, found.abi)


def base_site_packages(base: str, library: str) -> list[str]:
    """Return the site directories of a base installation that exist, as ``site.getsitepackages`` would."""
    candidates = [f"{base}/lib/{library}/site-packages"]
    if base == "/usr":
        candidates += [
            f"/usr/local/lib/{library}/dist-packages",
            "/usr/lib/python3/dist-packages",
            f"/usr/lib/{library}/dist-packages",
        ]
    candidates.append(os.path.expanduser(f"~/.local/lib/{library}/site-packages"))
    return list(dict.fromkeys(os.path.realpath(path) for path in candidates if os.path.isdir(path)))


def externally_managed(stdlib: str) -> str | None:
    """Return the text of an EXTERNALLY-MANAGED file (PEP 668), None where there is none."""
    text = read_text(os.path.join(stdlib, "EXTERNALLY-MANAGED"))
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


def conda_python_version(prefix: str) -> str:
    """Return the version of the Python that conda installed, empty where it did not."""
    try:
        names = os.listdir(os.path.join(prefix, "conda-meta"))
    except OSError:
        return ""
    for name in sorted(names):
        parts = name.split("-")
        if len(parts) == 3 and parts[0] == "python" and name.endswith(".json"):
            return parts[1]
    return ""
