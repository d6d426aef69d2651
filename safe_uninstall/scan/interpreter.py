"""Asks an interpreter, once and isolated, where it keeps its distributions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from safe_uninstall.model.errors import EnvironmentNotFound

if TYPE_CHECKING:
    import subprocess
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

_OLDEST = (3, 8)
_SECONDS = 60
_HELP = ("name an environment: safe-uninstall -p DIRECTORY-OR-INTERPRETER PACKAGE",)


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
        EnvironmentNotFound: it cannot be run, does not end, is no Python, or one that is too old.
    """
    import json

    done = _run(python, "-I", "-S", "-c", _QUESTION)
    try:
        data = json.loads(done.stdout)
        facts = InterpreterFacts(
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
        raise EnvironmentNotFound(_why_not(python, done.stderr), help=_HELP) from None
    if _short(facts.version) < _OLDEST:
        raise EnvironmentNotFound(_too_old(python, facts.version), help=_HELP)
    return facts


def _run(python: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    import subprocess

    try:
        return subprocess.run(
            [python, *options], stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentNotFound(f"`{python}` does not answer within {_SECONDS} seconds", help=_HELP) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise EnvironmentNotFound(f"`{python}` cannot be run as a Python interpreter: {reason}", help=_HELP) from None


def _why_not(python: str, said: bytes) -> str:
    """Return why there is no answer; what a program that is no Python says of our question is of no use to anybody."""
    shown = _run(python, "--version")
    # Python 2 tells its version on standard error.
    match = re.match(rb"Python (\d+\.\d+\S*)", shown.stdout or shown.stderr)
    if match is None:
        reason = "" if shown.returncode == 0 else _line(shown.stderr, 0)
        return f"`{python}` is not a Python interpreter{reason}"
    version = match[1].decode("ascii", "replace")
    if _short(version) < _OLDEST:
        return _too_old(python, version)
    return f"`{python}` is Python {version} and does not work{_line(said, -1)}"


def _line(said: bytes, index: int) -> str:
    """Return one line of what a program said, with a colon in front; nothing if it said nothing."""
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return f": {lines[index]}" if lines else ""


def _too_old(python: str, version: str) -> str:
    return f"`{python}` is Python {version}; {_OLDEST[0]}.{_OLDEST[1]} or later is needed"


def _short(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
