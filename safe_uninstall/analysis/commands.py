"""Whole command lines for the help of findings: each parses, and does what the help says."""

import shlex

from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.environment import EnvironmentKind, InstallerKind
from safe_uninstall.model.snapshot import Snapshot


class Commands:
    """Makes commands for one environment, with the installer that serves it."""

    def __init__(self, snapshot: Snapshot, installer: InstallerKind) -> None:
        """Write commands for the environment of ``snapshot``."""
        self._environment = snapshot.environment
        self._installer = installer
        self._has_pip = any(item.name == "pip" and item.owned_here for item in snapshot.distributions)

    def reinstall(self, distributions: tuple[Distribution, ...]) -> str:
        """Return the command that installs the same versions over what is there."""
        pins = [f"{item.name}=={item.version}" for item in distributions]
        if self._installer is InstallerKind.UV:
            return self._join("uv", "pip", "install", *self._uv_target(), "--reinstall", "--no-deps", *pins)
        return self._join(*self._pip(), "install", "--force-reinstall", "--no-deps", *pins)

    def repair(self, distribution: Distribution) -> str:
        """Return the command that gives a distribution its RECORD back; installers refuse to remove it without."""
        pin = f"{distribution.name}=={distribution.version}"
        if self._installer is InstallerKind.UV:
            return self._join("uv", "pip", "install", *self._uv_target(), "--reinstall", "--no-deps", pin)
        return self._join(*self._pip(), "install", "--ignore-installed", "--no-deps", pin)

    def uninstall_with_installer(self, distribution: Distribution) -> str:
        """Return the installer's own command to uninstall a distribution."""
        if self._installer is InstallerKind.UV:
            return self._join("uv", "pip", "uninstall", *self._uv_target(), distribution.name)
        return self._join(*self._pip(), "uninstall", distribution.name)

    def conda_remove(self, distribution: Distribution) -> str:
        """Return the command of conda (or pixi) that removes a package which conda installed."""
        package = (distribution.conda_package or distribution.name).rsplit("-", 2)[0]
        if self._environment.managed_by == "pixi":
            return self._join("pixi", "remove", package)
        return self._join("conda", "remove", "-p", self._environment.prefix, package)

    def ours(self, *words: str) -> str:
        """Return a command of this tool for the environment."""
        return self._join("safe-uninstall", *words)

    def _pip(self) -> tuple[str, ...]:
        python = self._environment.python
        if python is None:
            return ("pip",)
        return (python, "-m", "pip") if self._has_pip else ("pip", "--python", python)

    def _uv_target(self) -> tuple[str, ...]:
        if self._environment.kind is EnvironmentKind.TARGET or self._environment.python is None:
            return ("--target", self._environment.prefix)
        return ("--python", self._environment.python)

    @staticmethod
    def _join(*words: str) -> str:
        return " ".join(shlex.quote(word) for word in words)
