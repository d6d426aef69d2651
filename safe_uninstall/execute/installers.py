"""pip and uv, as programs: each run is a subprocess whose output is kept, and which a signal can stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass

from safe_uninstall.model.environment import Environment, InstallerKind
from safe_uninstall.model.errors import InstallerUnavailable

_DROPPED = frozenset(
    {
        "PIP_CONFIG_FILE",
        "PIP_PREFIX",
        "PIP_PYTHON",
        "PIP_REQUIRE_VIRTUALENV",
        "PIP_ROOT",
        "PIP_TARGET",
        "PIP_USER",
        "PYTHONHOME",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONUSERBASE",
        "UV_BREAK_SYSTEM_PACKAGES",
        "UV_DRY_RUN",
        "UV_PREFIX",
        "UV_PROJECT_ENVIRONMENT",
        "UV_PYTHON",
        "UV_SYSTEM_PYTHON",
        "UV_TARGET",
        "__PYVENV_LAUNCHER__",
    }
)
"""Variables that would send an installer to another environment than the one that was judged."""

_KILL_AFTER = 10.0
"""Seconds between asking an installer to end and ending it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """An installer that is there and can serve the environment."""

    kind: InstallerKind
    command: tuple[str, ...]
    """Program and options up to the sub-command ``uninstall``, which takes names after it."""
    options: tuple[str, ...]
    """Options after ``uninstall``."""
    respects_lock_timeout: bool = True
    """False: the installer would wait for the environment's lock for ever; it must be given back for the while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallerRun:
    """How a run of an installer ended."""

    command: tuple[str, ...]
    returncode: int
    output: str
    """Standard output and error together."""


def find_installer(
    environment: Environment, wanted: InstallerKind | None, *, break_system_packages: bool = False, has_own_pip: bool
) -> Installer:
    """Return the installer for an environment.

    Args:
        environment: what is to be changed.
        wanted: what the user chose; None: uv where uv made the environment and is found, else pip.
        break_system_packages: passed on to the installer.
        has_own_pip: whether pip is installed in the environment.

    Raises:
        InstallerUnavailable: none can serve it; the help says what to do.
    """
    uv = find_uv() if wanted is not InstallerKind.PIP else None
    if wanted is InstallerKind.UV and uv is None:
        raise InstallerUnavailable(
            "uv is not found: neither in UV, nor beside this Python, nor on PATH",
            help=("install it (pip install uv), or use pip: --installer pip",),
        )
    use_uv = uv is not None and (wanted is InstallerKind.UV or environment.created_by_uv)
    if use_uv:
        assert uv is not None
        return _uv_installer(uv, environment, break_system_packages)
    if environment.python is None:
        spare = uv or (find_uv() if wanted is None else None)
        if spare is not None:
            return _uv_installer(spare, environment, break_system_packages)
        raise InstallerUnavailable(
            f"pip cannot uninstall from `{environment.prefix}`, which has no interpreter of its own",
            help=("use uv, which can: --installer uv",),
        )
    return _pip_installer(environment, break_system_packages, has_own_pip, uv)


def find_pip(environment: Environment, *, has_own_pip: bool) -> tuple[str, ...] | None:
    """Return the command that runs pip for an environment, up to the sub-command; None when no pip can serve it."""
    requirement = tool_pip_requirement()
    python = environment.python
    if requirement is not None and _supports(requirement, environment.python_version):
        target = () if python is None else ("--python", python)
        return (sys.executable, "-m", "pip", *target)
    return (python, "-m", "pip") if has_own_pip and python is not None else None


def find_uv() -> str | None:
    """Return the path of uv: what the variable UV names, else beside the running interpreter, else on PATH."""
    import shutil

    candidates = [os.environ.get("UV"), os.path.join(os.path.dirname(sys.executable), "uv"), shutil.which("uv")]
    return next((path for path in candidates if path and os.path.isfile(path) and os.access(path, os.X_OK)), None)


def run_installer(installer: Installer, names: tuple[str, ...]) -> InstallerRun:
    """Uninstall distributions by name.

    The installer runs in a session of its own, so that Ctrl-C reaches this process first; when an exception passes
    through here (an interrupt), the installer is ended before it goes on.
    """
    command = (*installer.command, "uninstall", *installer.options, *names)
    return run_program(command)


def run_installation(installer: Installer, pins: tuple[str, ...], directory: str) -> InstallerRun:
    """Install distributions from wheels in one directory, over what is there, and nothing else.

    Wheels are found by name, not given by path, so that no ``direct_url.json`` says they came from that directory.

    Args:
        installer: pip or uv.
        pins: ``name==version``.
        directory: where the wheels are.
    """
    only = ("--no-deps", "--no-index", "--find-links", directory)
    if installer.kind is InstallerKind.UV:
        return run_program(
            (*installer.command, "install", *installer.options, *only, "--offline", "--reinstall", *pins)
        )
    options = tuple(option for option in installer.options if option != "-y")
    quiet = ("--no-warn-script-location", "--no-warn-conflicts")
    return run_program((*installer.command, "install", *options, *only, *quiet, "--force-reinstall", *pins))


def run_program(command: tuple[str, ...], *, show: bool = False) -> InstallerRun:
    """Run a program to its end with a cleaned environment; its output is captured.

    Args:
        command: the program and its arguments.
        show: let its standard output go to our standard error, where a terminal shows its progress; only what it
            says on standard error is then captured.

    Raises:
        OSError: it cannot be started.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=2 if show else subprocess.PIPE,
        stderr=subprocess.PIPE if show else subprocess.STDOUT,
        env=_variables(),
        start_new_session=True,
    )
    try:
        output, errors = process.communicate()
    except BaseException:
        _end(process)
        raise
    said = errors if show else output
    return InstallerRun(command=command, returncode=process.returncode, output=said.decode("utf-8", "replace").strip())


def _end(process: subprocess.Popen[bytes]) -> None:
    """End an installer with all that it started: by request, and by force when it does not listen."""
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


def _variables() -> dict[str, str]:
    variables = {key: value for key, value in os.environ.items() if key not in _DROPPED}
    variables["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    variables["PIP_NO_INPUT"] = "1"
    # We hold the environment's lock while uv runs for us: it must not wait for it.
    variables["UV_LOCK_TIMEOUT"] = "0"
    return variables


def _uv_installer(uv: str, environment: Environment, break_system_packages: bool) -> Installer:
    if environment.python is None:
        options: tuple[str, ...] = ("--target", environment.prefix)
    else:
        options = ("--python", environment.python)
    if break_system_packages:
        options = (*options, "--break-system-packages")
    return Installer(
        kind=InstallerKind.UV,
        command=(uv, "pip"),
        options=options,
        respects_lock_timeout=_uv_version(uv) >= (0, 10),
    )


def _uv_version(uv: str) -> tuple[int, ...]:
    """Return the version of uv, (0,) when it does not tell; UV_LOCK_TIMEOUT is honoured from 0.10 on for certain."""
    import re

    try:
        done = subprocess.run([uv, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise InstallerUnavailable(f"`{uv}` cannot be run: {error.strerror or error}") from None
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout)
    return (0,) if match is None else tuple(int(part) for part in match.groups())


def _pip_installer(
    environment: Environment, break_system_packages: bool, has_own_pip: bool, uv: str | None
) -> Installer:
    python = environment.python
    assert python is not None
    options = ("-y", "--break-system-packages") if break_system_packages else ("-y",)
    own_version = tool_pip_requirement()
    if own_version is not None and _supports(own_version, environment.python_version):
        return Installer(
            kind=InstallerKind.PIP,
            command=(sys.executable, "-m", "pip", "--python", python),
            options=options,
        )
    if has_own_pip:
        return Installer(kind=InstallerKind.PIP, command=(python, "-m", "pip"), options=options)
    if uv is not None:
        return _uv_installer(uv, environment, break_system_packages)
    why = (
        "has no pip" if own_version is None else f"has a pip that no longer serves Python {environment.python_version}"
    )
    raise InstallerUnavailable(
        f"the Python that runs this tool {why}, and `{environment.prefix}` has none of its own",
        help=(f"give the environment one: {python} -m ensurepip", "or install uv, which serves every Python"),
    )


def tool_pip_requirement() -> str | None:
    """Return Requires-Python of the pip beside this tool ("" when it states none), None when there is no pip."""
    from importlib import metadata

    try:
        return metadata.metadata("pip")["Requires-Python"] or ""
    except metadata.PackageNotFoundError:
        return None


def _supports(requirement: str, version: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(requirement).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True
