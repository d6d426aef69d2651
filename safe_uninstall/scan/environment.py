"""Finds the environment that a command is about, and reads where its files are.

A venv is read from its ``pyvenv.cfg`` and its directories, a conda environment from ``conda-meta``; any other
interpreter is asked once. Nothing of the environment is imported.
"""

import os
import sys
from collections.abc import Iterable, Mapping

from safe_uninstall.model.elf import Abi
from safe_uninstall.model.environment import Environment, EnvironmentKind
from safe_uninstall.model.errors import EnvironmentNotFound
from safe_uninstall.scan.elf import ElfError, read_elf
from safe_uninstall.scan.metadata import read_text
from safe_uninstall.scan.site_paths import pth_directories

_HELP = (
    "name one: safe-uninstall -p DIRECTORY-OR-INTERPRETER PACKAGE",
    "or activate one: source .venv/bin/activate",
)

MACHINES = {
    3: "i686",
    8: "mips",
    20: "ppc",
    21: "ppc64le",
    22: "s390x",
    40: "armv7l",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
    258: "loongarch64",
}
"""``e_machine`` to what ``platform.machine()`` says there."""


def find_environment(
    python: str | None = None, *, variables: Mapping[str, str], directory: str, running: str | None = None
) -> Environment:
    """Return the environment that ``python`` names, or the one that the user is in.

    Args:
        python: an interpreter (path or command name), a venv directory, a prefix, or a directory filled by
            ``pip install --target``. None: ``VIRTUAL_ENV``, else ``CONDA_PREFIX``, else ``.venv`` in ``directory`` or
            above it, else the environment that runs the command.
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
    for name in ("python3", "python", "pypy3"):
        interpreter = os.path.join(path, "bin", name)
        if os.path.isfile(interpreter) and os.access(interpreter, os.X_OK):
            return _asked(interpreter)
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
    if any(name.endswith((".dist-info", ".egg-info")) for name in names):
        return _target(path)
    return None


def _inside_venv(path: str, prefix: str) -> bool:
    """Return whether a directory belongs to the venv around it, and is not merely kept in it."""
    relative = os.path.relpath(os.path.realpath(path), os.path.realpath(prefix)).split(os.sep)
    return relative[0] == "bin" or relative[-1] in ("site-packages", "dist-packages")


def _venv(path: str) -> Environment:
    prefix = os.path.realpath(path)
    configuration = _read_configuration(os.path.join(prefix, "pyvenv.cfg"))
    implementation = configuration.get("implementation", "CPython").lower()
    stdlib = "pypy" if implementation == "pypy" else "python"
    version = configuration.get("version_info") or configuration.get("version") or ""
    version = ".".join(version.split(".")[:3])
    library = _library_directory(prefix, stdlib, version)
    if library is None:
        windows = os.path.isdir(os.path.join(prefix, "Scripts")) or os.path.isdir(os.path.join(prefix, "Lib"))
        why = "was made on Windows" if windows else "has no lib/pythonX.Y/site-packages"
        raise EnvironmentNotFound(
            f"the virtual environment `{path}` {why}",
            help=("make it anew with the interpreter of this machine: python3 -m venv DIRECTORY",),
        )
    if not version:
        version = os.path.basename(library).removeprefix(stdlib)
    python = _first_program(prefix, ("python", "python3"))
    interpreter, abi = _interpreter(python)
    home = configuration.get("home")
    base = None if not home else os.path.realpath(os.path.dirname(home.rstrip("/")))
    site = os.path.realpath(os.path.join(library, "site-packages"))
    visible: list[str] = []
    if configuration.get("include-system-site-packages", "").lower() == "true" and base is not None:
        visible = _base_site_packages(base, os.path.basename(library))
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
        markers=_markers(version, implementation, abi),
        created_by_uv="uv" in configuration,
        managed_by="poetry" if "/pypoetry/virtualenvs/" in prefix else None,
    )


def _conda(path: str) -> Environment:
    prefix = os.path.realpath(path)
    version = _conda_python_version(prefix)
    library = _library_directory(prefix, "python", version)
    if library is None:
        raise EnvironmentNotFound(
            f"the conda environment `{path}` has no Python", help=(f"see what is in it: conda list -p {path}", *_HELP)
        )
    version = version or os.path.basename(library).removeprefix("python")
    python = _first_program(prefix, ("python", "python3"))
    interpreter, abi = _interpreter(python)
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
        markers=_markers(version, "cpython", abi),
        externally_managed=_externally_managed(library),
        managed_by="pixi" if "/.pixi/envs/" in prefix + "/" else "conda",
    )


def _asked(python: str) -> Environment:
    """Return the environment of an interpreter that is neither a venv's nor conda's: it says where things are."""
    from safe_uninstall.scan.interpreter import ask_interpreter

    facts = ask_interpreter(python)
    if os.path.isfile(os.path.join(facts.prefix, "pyvenv.cfg")):
        return _venv(facts.prefix)
    if os.path.isdir(os.path.join(facts.prefix, "conda-meta")):
        return _conda(facts.prefix)
    prefix = os.path.realpath(facts.prefix)
    sites = list(dict.fromkeys(os.path.realpath(site) for site in facts.site_packages if os.path.isdir(site)))
    visible = [os.path.realpath(facts.user_site)] if os.path.isdir(facts.user_site) else []
    own, outside = _with_pth(prefix, sites, visible)
    interpreter, abi = _interpreter(facts.executable)
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
        externally_managed=_externally_managed(facts.stdlib),
        managed_by="debian" if debian else None,
    )


def _target(path: str) -> Environment:
    """Return a directory filled by ``pip install --target``; markers are those of the interpreter that runs this."""
    prefix = os.path.realpath(path)
    version = ".".join(str(part) for part in sys.version_info[:3])
    _, abi = _interpreter(sys.executable)
    return Environment(
        prefix=prefix,
        kind=EnvironmentKind.TARGET,
        python=None,
        python_version=version,
        implementation=sys.implementation.name,
        site_packages=(prefix,),
        scripts=os.path.join(prefix, "bin"),
        markers=_markers(version, sys.implementation.name, abi),
    )


def _read_configuration(path: str) -> dict[str, str]:
    """Return the keys of a ``pyvenv.cfg`` in lower case."""
    configuration: dict[str, str] = {}
    for line in (read_text(path) or "").splitlines():
        key, separator, value = line.partition("=")
        if separator:
            configuration[key.strip().lower()] = value.strip()
    return configuration


def _library_directory(prefix: str, stem: str, version: str) -> str | None:
    """Return ``lib/pythonX.Y``: the one of ``version``, else the only one there is."""
    short = ".".join(version.split(".")[:2])
    expected = os.path.join(prefix, "lib", stem + short)
    if short and os.path.isdir(os.path.join(expected, "site-packages")):
        return expected
    try:
        names = sorted(os.listdir(os.path.join(prefix, "lib")))
    except OSError:
        return None
    found = [
        name
        for name in names
        if name.startswith(stem) and os.path.isdir(os.path.join(prefix, "lib", name, "site-packages"))
    ]
    return os.path.join(prefix, "lib", found[0]) if len(found) == 1 else None


def _first_program(prefix: str, names: Iterable[str]) -> str | None:
    """Return the first of the programs in ``bin`` that can be run; a link that leads nowhere cannot."""
    for name in names:
        path = os.path.join(prefix, "bin", name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _interpreter(python: str | None) -> tuple[str | None, Abi | None]:
    """Return the real path and the ABI of an interpreter, (None, None) when it is no ELF file."""
    if python is None:
        return None, None
    real = os.path.realpath(python)
    try:
        found = read_elf(real)
    except ElfError:
        found = None
    return (None, None) if found is None else (real, found.abi)


def _base_site_packages(base: str, library: str) -> list[str]:
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


def _with_pth(prefix: str, own: list[str], visible: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Add what ``.pth`` files add: directories in the prefix are the environment's, others are only visible."""
    own, visible = list(own), list(visible)
    for site in (*own, *visible):
        for directory in pth_directories(site):
            if directory in own or directory in visible:
                continue
            (own if directory.startswith(prefix + "/") else visible).append(directory)
    return tuple(own), tuple(visible)


def _externally_managed(stdlib: str) -> str | None:
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


def _conda_python_version(prefix: str) -> str:
    try:
        names = os.listdir(os.path.join(prefix, "conda-meta"))
    except OSError:
        return ""
    for name in sorted(names):
        parts = name.split("-")
        if len(parts) == 3 and parts[0] == "python" and name.endswith(".json"):
            return parts[1]
    return ""


def _markers(version: str, implementation: str, abi: Abi | None) -> dict[str, str]:
    """Return the PEP 508 markers of an interpreter that is not run; kernel facts are those of this host."""
    host = os.uname()
    machine = host.machine if abi is None else MACHINES.get(abi.machine, host.machine)
    full = version if version.count(".") >= 2 else f"{version}.0"
    return {
        "implementation_name": implementation,
        "implementation_version": full,
        "os_name": "posix",
        "platform_machine": machine,
        "platform_python_implementation": {"cpython": "CPython", "pypy": "PyPy"}.get(implementation, implementation),
        "platform_release": host.release,
        "platform_system": host.sysname,
        "platform_version": host.version,
        "python_full_version": full,
        "python_version": ".".join(version.split(".")[:2]),
        "sys_platform": sys.platform,
    }
