"""Asks an interpreter, once and isolated, where it keeps its distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from safe_uninstall.model.errors import EnvironmentNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

_QUESTION = """
import json, os, platform, site, sys, sysconfig
i = sys.implementation
v = i.version
full = "%d.%d.%d" % v[:3]
if v[3] != "final":
    full += v[3][0] + str(v[4])
paths = sysconfig.get_paths()
print(json.dumps({
    "version": platform.python_version(),
    "implementation": i.name,
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "executable": sys.executable,
    "stdlib": paths["stdlib"],
    "scripts": paths["scripts"],
    "site_packages": list(dict.fromkeys([paths["purelib"], paths["platlib"]] + site.getsitepackages())),
    "user_site": site.getusersitepackages(),
    "markers": {
        "implementation_name": i.name,
        "implementation_version": full,
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "sys_platform": sys.platform,
    },
}))
"""
"""Runs on Python 3.8 and later. ``-S`` keeps ``.pth`` files from running; ``site`` is then a mere module."""

_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class InterpreterFacts:
    """What an interpreter said of itself; paths as it said them."""

    version: str
    implementation: str
    prefix: str
    base_prefix: str
    executable: str
    stdlib: str
    scripts: str
    site_packages: tuple[str, ...]
    user_site: str
    markers: Mapping[str, str]


def ask_interpreter(python: str) -> InterpreterFacts:
    """Run ``python -I -S`` once and return what it says of itself.

    Args:
        python: path of an interpreter.

    Raises:
        EnvironmentNotFound: it cannot be run, does not end, or is no Python.
    """
    import json
    import subprocess

    help = ("name an environment: safe-uninstall -p DIRECTORY-OR-INTERPRETER PACKAGE",)
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-c", _QUESTION],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentNotFound(f"`{python}` does not answer within {_SECONDS} seconds", help=help) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise EnvironmentNotFound(f"`{python}` cannot be run as a Python interpreter: {reason}", help=help) from None
    try:
        data = json.loads(done.stdout)
        return InterpreterFacts(
            version=data["version"],
            implementation=data["implementation"],
            prefix=data["prefix"],
            base_prefix=data["base_prefix"],
            executable=data["executable"] or python,
            stdlib=data["stdlib"],
            scripts=data["scripts"],
            site_packages=tuple(data["site_packages"]),
            user_site=data["user_site"],
            markers=data["markers"],
        )
    except (ValueError, KeyError, TypeError):
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = f": {said[-1]}" if said else ""
        raise EnvironmentNotFound(
            f"`{python}` is not a Python interpreter of 3.8 or later{reason}", help=help
        ) from None
