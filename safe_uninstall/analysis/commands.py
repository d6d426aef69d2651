"""Whole command lines for the help of findings: each parses, and does what the help says."""

import shlex
from collections.abc import Iterable

from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.environment import Environment, EnvironmentKind, InstallerKind, Programs
from safe_uninstall.model.snapshot import Snapshot


def preferred_installer(environment: Environment, programs: Programs) -> InstallerKind:
    """Return the installer that an environment is used to: uv where uv made it, else pip.

    Where uv is not found pip takes its place; from a directory without an interpreter only uv can uninstall.
    """
    if not environment.kind.has_interpreter:
        return InstallerKind.UV
    return InstallerKind.UV if environment.created_by_uv and programs.uv is not None else InstallerKind.PIP


def our_command(python: str | None, *words: str) -> str:
    """Return a command of this tool for the environment that ``-p python`` leads to; None: without ``-p``."""
    return shlex.join(("safe-uninstall", *(() if python is None else ("-p", python)), *words))


class Commands:
    """Makes commands for one environment, with the installer that serves it."""

    def __init__(
        self,
        snapshot: Snapshot,
        installer: InstallerKind,
        *,
        python: str | None = None,
        programs: Programs | None = None,
    ) -> None:
        """Write commands for the environment of ``snapshot``.

        Args:
            snapshot: the environment.
            installer: what is to do it; pip does what it can where uv is not found.
            python: what ``-p`` was given as, None: nothing.
            programs: how the user starts pip and uv; by name unless something else is known.
        """
        self._environment = snapshot.environment
        self._python = python
        self._programs = programs or Programs()
        self._uses_uv = installer is InstallerKind.UV and self._programs.uv is not None
        self._has_pip = any(item.name == "pip" and item.owned_here for item in snapshot.distributions)

    def reinstall(self, distributions: tuple[Distribution, ...]) -> str:
        """Return the command that installs the same versions over what is there."""
        if all(item.conda_package is not None for item in distributions):
            return " && ".join(self.conda_reinstall(item) for item in distributions)
        pins = [word for item in distributions for word in _pin(item)]
        if self._uses_uv:
            return shlex.join((*self._uv("install"), "--reinstall", "--no-deps", *pins))
        how = {EnvironmentKind.TARGET: "--upgrade", EnvironmentKind.PREFIX: "--ignore-installed"}
        over = how.get(self._environment.kind, "--force-reinstall")
        return shlex.join((*self._pip("install"), over, "--no-deps", *pins))

    def install(self, requirements: Iterable[str]) -> str:
        """Return the installer's command that installs what is missing, and what that needs."""
        command = self._uv("install") if self._uses_uv else self._pip("install")
        return shlex.join((*command, *requirements))

    def repair(self, distribution: Distribution) -> str:
        """Return the command that gives a distribution its RECORD back; installers refuse to remove it without."""
        if self._uses_uv or not self._environment.kind.has_interpreter:
            return self.reinstall((distribution,))
        return shlex.join((*self._pip("install"), "--ignore-installed", "--no-deps", *_pin(distribution)))

    def uninstall_with_installer(self, distribution: Distribution) -> str:
        """Return the installer's own command to uninstall a distribution."""
        # From a directory without an interpreter pip cannot uninstall.
        if self._uses_uv or not self._environment.kind.has_interpreter:
            return shlex.join((*self._uv("uninstall"), distribution.name))
        return shlex.join((*self._pip("uninstall"), distribution.name))

    def list_installed(self) -> str:
        """Return the installer's command that lists what is installed."""
        if self._uses_uv:
            return shlex.join(self._uv("list"))
        if self._environment.python is None:
            paths = [word for site in self._environment.site_packages for word in ("--path", site)]
            return shlex.join((*self._pip_words(), "list", *paths))
        return shlex.join(self._pip("list"))

    def ensure_pip(self) -> str:
        """Return the command that gives an environment its pip back."""
        if not self._environment.kind.has_interpreter:
            return shlex.join((*self._pip("install"), "pip"))
        return shlex.join((self._interpreter(), "-m", "ensurepip"))

    def conda_remove(self, distribution: Distribution) -> str:
        """Return the command of conda (or pixi) that removes a package which conda installed."""
        package = _conda_name(distribution)
        if self._environment.managed_by == "pixi":
            return shlex.join(("pixi", "remove", package))
        return shlex.join((self._conda(), "remove", "-p", self._environment.prefix, package))

    def conda_reinstall(self, distribution: Distribution) -> str:
        """Return the command of conda (or pixi) that writes a package's files anew."""
        if self._environment.managed_by == "pixi":
            return shlex.join(("pixi", "reinstall", _conda_name(distribution)))
        words = (self._conda(), "install", "-p", self._environment.prefix, "--force-reinstall")
        return shlex.join((*words, _conda_name(distribution)))

    def _conda(self) -> str:
        """Return conda, or the program that is used in its place here."""
        manager = self._environment.managed_by
        return manager if manager in ("mamba", "micromamba") else "conda"

    def ours(self, *words: str) -> str:
        """Return a command of this tool for the environment."""
        return our_command(self._python, *words)

    def ours_elsewhere(self, directory: str, *words: str) -> str:
        """Return a command of this tool for another environment."""
        return our_command(directory, *words)

    def _pip(self, command: str) -> tuple[str, ...]:
        if self._environment.kind is EnvironmentKind.TARGET:
            return (*self._pip_words(), command, "--target", self._environment.prefix)
        if self._environment.kind is EnvironmentKind.PREFIX:
            # pip installs for the version that it runs with.
            return (f"python{self._short_version()}", "-m", "pip", command, "--prefix", self._environment.prefix)
        if self._has_pip:
            return (self._interpreter(), "-m", "pip", command)
        return (*self._pip_words(), "--python", self._interpreter(), command)

    def _uv(self, command: str) -> tuple[str, ...]:
        words = (self._programs.uv or "uv", "pip", command)
        if self._environment.kind is EnvironmentKind.TARGET:
            return (*words, "--target", self._environment.prefix)
        if self._environment.kind is EnvironmentKind.PREFIX:
            return (*words, "--python", f"python{self._short_version()}", "--prefix", self._environment.prefix)
        return (*words, "--python", self._interpreter())

    def _pip_words(self) -> tuple[str, ...]:
        return self._programs.pip or ("pip",)

    def _interpreter(self) -> str:
        """Return the environment's interpreter, or where it should be."""
        return self._environment.python or f"{self._environment.prefix}/bin/python"

    def _short_version(self) -> str:
        return ".".join(self._environment.python_version.split(".")[:2])


def _conda_name(distribution: Distribution) -> str:
    return (distribution.conda_package or distribution.name).rsplit("-", 2)[0]


def _pin(distribution: Distribution) -> tuple[str, ...]:
    """Return the words that name a distribution to an installer; an index does not have what came by URL."""
    origin = distribution.direct_url
    if origin is None:
        return (f"{distribution.name}=={distribution.version}",)
    if origin.editable:
        from urllib.parse import unquote

        return ("--editable", unquote(origin.url.removeprefix("file://")))
    return (f"{distribution.name} @ {'' if origin.vcs is None else origin.vcs + '+'}{origin.url}",)
