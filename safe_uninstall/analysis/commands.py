"""Whole command lines for the help of findings: each parses, and does what the help says."""

import shlex

from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.environment import EnvironmentKind, InstallerKind
from safe_uninstall.model.snapshot import Snapshot


class Commands:
    """Makes commands for one environment, with the installer that serves it."""

    def __init__(self, snapshot: Snapshot, installer: InstallerKind, *, python: str | None = None) -> None:
        """Write commands for the environment of ``snapshot``, which ``-p python`` leads to; None: without ``-p``."""
        self._environment = snapshot.environment
        self._python = python
        self._installer = installer
        self._has_pip = any(item.name == "pip" and item.owned_here for item in snapshot.distributions)

    def reinstall(self, distributions: tuple[Distribution, ...]) -> str:
        """Return the command that installs the same versions over what is there."""
        pins = [word for item in distributions for word in _pin(item)]
        if self._installer is InstallerKind.UV:
            return self._join("uv", "pip", "install", *self._uv_target(), "--reinstall", "--no-deps", *pins)
        if self._environment.python is None:
            return self._join("pip", "install", "--target", self._environment.prefix, "--upgrade", "--no-deps", *pins)
        return self._join(*self._pip(self._environment.python), "install", "--force-reinstall", "--no-deps", *pins)

    def repair(self, distribution: Distribution) -> str:
        """Return the command that gives a distribution its RECORD back; installers refuse to remove it without."""
        if self._installer is InstallerKind.UV or self._environment.python is None:
            return self.reinstall((distribution,))
        pip = self._pip(self._environment.python)
        return self._join(*pip, "install", "--ignore-installed", "--no-deps", *_pin(distribution))

    def uninstall_with_installer(self, distribution: Distribution) -> str:
        """Return the installer's own command to uninstall a distribution."""
        if self._installer is InstallerKind.UV or self._environment.python is None:
            return self._join("uv", "pip", "uninstall", *self._uv_target(), distribution.name)
        return self._join(*self._pip(self._environment.python), "uninstall", distribution.name)

    def ensure_pip(self) -> str:
        """Return the command that gives an environment its pip back."""
        return self._join(self._environment.python or "python", "-m", "ensurepip")

    def conda_remove(self, distribution: Distribution) -> str:
        """Return the command of conda (or pixi) that removes a package which conda installed."""
        package = (distribution.conda_package or distribution.name).rsplit("-", 2)[0]
        if self._environment.managed_by == "pixi":
            return self._join("pixi", "remove", package)
        return self._join("conda", "remove", "-p", self._environment.prefix, package)

    def ours(self, *words: str) -> str:
        """Return a command of this tool for the environment."""
        return self._join("safe-uninstall", *(() if self._python is None else ("-p", self._python)), *words)

    def ours_elsewhere(self, directory: str, *words: str) -> str:
        """Return a command of this tool for another environment."""
        return self._join("safe-uninstall", "-p", directory, *words)

    def _pip(self, python: str) -> tuple[str, ...]:
        return (python, "-m", "pip") if self._has_pip else ("pip", "--python", python)

    def _uv_target(self) -> tuple[str, ...]:
        if self._environment.kind is EnvironmentKind.TARGET or self._environment.python is None:
            return ("--target", self._environment.prefix)
        return ("--python", self._environment.python)

    @staticmethod
    def _join(*words: str) -> str:
        return " ".join(shlex.quote(word) for word in words)


def _pin(distribution: Distribution) -> tuple[str, ...]:
    """Return the words that name a distribution to an installer; an index does not have what came by URL."""
    origin = distribution.direct_url
    if origin is None:
        return (f"{distribution.name}=={distribution.version}",)
    if origin.editable:
        from urllib.parse import unquote

        return ("--editable", unquote(origin.url.removeprefix("file://")))
    return (f"{distribution.name} @ {'' if origin.vcs is None else origin.vcs + '+'}{origin.url}",)
