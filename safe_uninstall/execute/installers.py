"""Which installer serves an environment, and how it is told to uninstall and install."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from safe_uninstall.execute.processes import InstallerRun, run_program
from safe_uninstall.execute.programs import find_pythons, find_uv, tool_pip_requirement
from safe_uninstall.execute.uv_cache import cache_directory
from safe_uninstall.model.environment import Environment, EnvironmentKind, InstallerKind
from safe_uninstall.model.errors import InstallerUnavailable

_UV_MACHINES = frozenset({"aarch64", "x86_64"})
"""Machines that uv has platforms for, as ``platform.machine()`` calls them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """An installer that is there and can serve the environment."""

    kind: InstallerKind
    command: tuple[str, ...]
    """Program and options up to the sub-command ``uninstall``, which takes names after it."""
    options: tuple[str, ...]
    """Options after ``uninstall``."""
    platform: tuple[str, ...] = ()
    """Options after ``install`` that say for which machine, where that is not this one."""
    respects_lock_timeout: bool = True
    """False: the installer would wait for the environment's lock for ever; it must be given back for the while."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Variables that its runs get, beside what is left of the user's."""


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
        other = ("or use pip: --installer pip",) if environment.kind.has_interpreter else ()
        raise InstallerUnavailable(
            "uv is not found: neither in UV, nor beside this Python, nor on PATH", help=(_way_to_uv("it"), *other)
        )
    if environment.kind.has_interpreter:
        if environment.python is None:
            raise _without_interpreter(environment)
        if uv is None or (wanted is None and not environment.created_by_uv):
            return _pip_installer(environment, break_system_packages, has_own_pip, uv)
    if uv is not None:
        return _uv_installer(uv, environment, break_system_packages)
    raise InstallerUnavailable(
        f"pip cannot uninstall from `{environment.prefix}`, which has no interpreter of its own",
        help=(_way_to_uv("uv, which can"),),
    )


def find_pip(environment: Environment, *, has_own_pip: bool) -> tuple[str, ...] | None:
    """Return the command that runs pip for an environment, up to the sub-command; None when no pip can serve it."""
    requirement = tool_pip_requirement()
    python = environment.python
    if requirement is not None and _supports(requirement, environment.python_version):
        target = () if python is None else ("--python", python)
        return (sys.executable, "-m", "pip", *target)
    return (python, "-m", "pip") if has_own_pip and python is not None else None


def run_installer(installer: Installer, names: tuple[str, ...]) -> InstallerRun:
    """Uninstall distributions by name."""
    command = (*installer.command, "uninstall", *installer.options, *names)
    return run_program(command, settings=installer.settings)


def run_installation(installer: Installer, pins: tuple[str, ...], directory: str) -> InstallerRun:
    """Install distributions from wheels in one directory, over what is there, and nothing else.

    Wheels are found by name, not given by path, so that no ``direct_url.json`` says they came from that directory.

    Args:
        installer: pip or uv.
        pins: ``name==version``.
        directory: where the wheels are.
    """
    only = ("--no-deps", "--no-index", "--find-links", directory)
    options = tuple(option for option in installer.options if option != "-y")
    how: tuple[str, ...]
    if installer.kind is InstallerKind.UV:
        how = ("--offline", "--reinstall", *installer.platform)
    else:
        how = ("--no-warn-script-location", "--no-warn-conflicts", "--force-reinstall")
    return run_program((*installer.command, "install", *options, *only, *how, *pins), settings=installer.settings)


def _uv_installer(uv: str, environment: Environment, break_system_packages: bool) -> Installer:
    options: tuple[str, ...]
    if environment.kind is EnvironmentKind.TARGET:
        options = ("--python", sys.executable, "--target", environment.prefix)
    elif environment.kind is EnvironmentKind.PREFIX:
        # uv looks where an interpreter of the same version would keep its distributions.
        options = ("--python", _python_for(environment), "--prefix", environment.prefix)
    else:
        assert environment.python is not None
        options = ("--python", environment.python)
    if break_system_packages:
        options = (*options, "--break-system-packages")
    cache = cache_directory(uv)
    return Installer(
        kind=InstallerKind.UV,
        command=(uv, "pip"),
        options=options,
        platform=_platform(environment),
        respects_lock_timeout=_uv_version(uv) >= (0, 10),
        settings={} if cache is None else {"UV_CACHE_DIR": cache},
    )


def _platform(environment: Environment) -> tuple[str, ...]:
    """Return the options by which uv takes wheels of another machine for a directory that is filled for that one.

    The wheels are chosen already, by name and hash: so the newest of the platforms that uv knows is asked for.
    """
    machine = environment.markers.get("platform_machine")
    if environment.kind.has_interpreter or machine not in _UV_MACHINES or machine == os.uname().machine:
        return ()
    return ("--python-platform", f"{machine}-manylinux_2_40")


def _python_for(environment: Environment) -> str:
    """Return an interpreter of the version that a prefix was filled for."""
    version = ".".join(environment.python_version.split(".")[:2])
    for python in find_pythons(version):
        if _is_version(python, version):
            return python
    raise InstallerUnavailable(
        f"uv needs a Python {version} to uninstall from `{environment.prefix}`, and none is found",
        help=(f"install Python {version}, and see that `python{version}` is on PATH",),
    )


def _is_version(python: str, version: str) -> bool:
    """Return whether a program is what its name says: version managers put programs there that only fail."""
    try:
        run = run_program((python, "-I", "-S", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"))
    except OSError:
        return False
    return run.returncode == 0 and run.output == version


def _uv_version(uv: str) -> tuple[int, ...]:
    """Return the version of uv, (0,) when it does not tell; UV_LOCK_TIMEOUT is honoured from 0.10 on for certain."""
    import re

    try:
        run = run_program((uv, "--version"))
    except OSError as error:
        raise InstallerUnavailable(f"`{uv}` cannot be run: {error.strerror or error}") from None
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", run.output)
    return (0,) if match is None else tuple(int(part) for part in match.groups())


def _pip_installer(
    environment: Environment, break_system_packages: bool, has_own_pip: bool, uv: str | None
) -> Installer:
    python = environment.python
    assert python is not None
    options = ("-y", "--break-system-packages") if break_system_packages else ("-y",)
    command = find_pip(environment, has_own_pip=has_own_pip)
    if command is not None:
        return Installer(kind=InstallerKind.PIP, command=command, options=options, settings=_pip_settings())
    if uv is not None:
        return _uv_installer(uv, environment, break_system_packages)
    why = (
        "has no pip"
        if tool_pip_requirement() is None
        else f"has a pip that no longer serves Python {environment.python_version}"
    )
    raise InstallerUnavailable(
        f"the Python that runs this tool {why}, and `{environment.prefix}` has none of its own",
        help=(
            f"give the environment one: {shlex.join((python, '-m', 'ensurepip'))}",
            f"or {_way_to_uv('uv, which serves every Python')}",
        ),
    )


def _pip_settings() -> Mapping[str, str]:
    """Return the variables that keep pip from the user's site directory, which comes first and is not the environment.

    Where pip itself lies in it, it cannot be kept away.
    """
    import site
    from importlib import metadata

    try:
        place = str(metadata.distribution("pip").locate_file(""))
    except metadata.PackageNotFoundError:
        place = ""
    is_there = os.path.realpath(place) == os.path.realpath(site.getusersitepackages())
    return {} if is_there else {"PYTHONNOUSERSITE": "1"}


def _way_to_uv(what: str) -> str:
    """Return what leads to uv: the option where it is found, else a command that installs it where it is looked for."""
    if find_uv() is not None:
        return f"use {what}: --installer uv"
    if tool_pip_requirement() is None:
        return f"install {what}, so that it is on PATH"
    return f"install {what}: {shlex.join((sys.executable, '-m', 'pip', 'install', 'uv'))}"


def _without_interpreter(environment: Environment) -> InstallerUnavailable:
    """Return what is wrong with an environment that should have an interpreter."""
    path = os.path.join(environment.prefix, "bin", "python")
    if not os.path.lexists(path):
        why, remedy = f"there is no `{path}`", f"`{path}`"
    elif not os.path.exists(path):
        target = os.path.join(os.path.dirname(path), os.readlink(path))
        why, remedy = f"`{path}` leads to `{target}`, which is not there", f"`{target}`"
    else:
        why, remedy = f"`{path}` may not be executed", "that permission"
    return InstallerUnavailable(
        f"the environment `{environment.prefix}` has no interpreter that can be run: {why}",
        help=(f"bring {remedy} back, or make the environment anew", "look at it only: --dry-run"),
    )


def _supports(requirement: str, version: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(requirement).contains(version, prereleases=True)
    except InvalidSpecifier:
        return True
