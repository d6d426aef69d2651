"""Runs pip and uv as processes of their own: what the user set for other purposes does not change what they do."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

_KEPT = frozenset({"PYTHON_KEYRING_BACKEND", "UV_CACHE_DIR", "UV_CONCURRENT_INSTALLS", "UV_LINK_MODE", "UV_NO_CACHE"})
"""Variables that say how something is done, and not to what."""

_DROPPED = ("PIP_", "PYTHON", "UV_", "_PIP_", "__PYVENV_LAUNCHER__")
"""How variables begin that could add to what is removed, lead to another environment, or break an installer; also those
of programs to come. Where pip fetches from is handed on by ``pip_settings``."""

_PATHS = (
    "CURL_CA_BUNDLE",
    "NETRC",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TEMP",
    "TMP",
    "TMPDIR",
    "UV_CACHE_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
)
"""Variables whose value is one path; a relative one is meant from the user's directory."""

_DIRECTORY = "/"
"""Where programs run: ``python -m pip`` imports what lies in the working directory, and uv reads its settings there."""

_KILL_AFTER = 10.0
"""Seconds between asking a program to end and ending it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallerRun:
    """How a run of an installer ended."""

    command: tuple[str, ...]
    returncode: int
    output: str
    """Standard output and error together."""


def run_program(
    command: tuple[str, ...], *, show: bool = False, settings: Mapping[str, str] | None = None
) -> InstallerRun:
    """Run a program to its end, isolated from what the user configured for it; its output is captured.

    The program runs in a session of its own, so that Ctrl-C reaches this process first; when an exception passes
    through here (an interrupt), the program is ended before it goes on.

    Args:
        command: the program and its arguments; paths are absolute, since it runs in another directory.
        show: let its standard output go to our standard error, where a terminal shows its progress; only what it
            says on standard error is then captured.
        settings: further variables.

    Raises:
        OSError: it cannot be started.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=2 if show else subprocess.PIPE,
        stderr=subprocess.PIPE if show else subprocess.STDOUT,
        env={**isolated_variables(), **(settings or {})},
        cwd=_DIRECTORY,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate()
    except BaseException:
        _end(process)
        raise
    said = errors if show else output
    return InstallerRun(command=command, returncode=process.returncode, output=said.decode("utf-8", "replace").strip())


def isolated_variables() -> dict[str, str]:
    """Return the variables of this process without those that are settings of Python, pip or uv."""
    variables = {key: value for key, value in os.environ.items() if key in _KEPT or not key.startswith(_DROPPED)}
    for name in _PATHS:
        if variables.get(name):
            variables[name] = os.path.abspath(variables[name])
    # pip reads no configuration file at all then (pip documentation, "Configuration files").
    variables["PIP_CONFIG_FILE"] = os.devnull
    variables["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    variables["PIP_NO_INPUT"] = "1"
    # Byte code of the installer itself would be new in the environment; what it installs it compiles all the same.
    variables["PYTHONDONTWRITEBYTECODE"] = "1"
    variables["UV_NO_CONFIG"] = "1"
    variables["UV_PYTHON_DOWNLOADS"] = "never"
    # We hold the environment's lock while uv runs for us: it must not wait for it.
    variables["UV_LOCK_TIMEOUT"] = "0"
    return variables


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program with all that it started: by request, and by force when it does not listen."""
    _signal(process, signal.SIGTERM)
    try:
        process.wait(_KILL_AFTER)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass
