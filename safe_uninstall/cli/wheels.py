"""The source of wheels for a command: made when it is first asked, gone when the command ends."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safe_uninstall.execute.fetch import WheelFinder
    from safe_uninstall.model.distribution import Distribution
    from safe_uninstall.model.environment import Environment
    from safe_uninstall.model.wheel import Wheel, WheelUnavailable


class LazyWheels:
    """Implements ``model.wheel.WheelSource``; a context manager that removes what was fetched."""

    def __init__(
        self,
        environment: Environment,
        *,
        find_links: tuple[str, ...],
        no_index: bool,
        progress: Callable[[str], None],
        show: bool,
    ) -> None:
        """Fetch for ``environment``; ``progress`` is told what, and pip shows how far it is if ``show``."""
        self._environment = environment
        self._find_links = find_links
        self._no_index = no_index
        self._progress = progress
        self._show = show
        self._finder: WheelFinder | None = None
        self._directory: str | None = None

    def __enter__(self) -> LazyWheels:
        """Nothing is made yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove what was fetched."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        """Return the very wheel that a distribution was installed from."""
        return self._made().restore(distribution)

    def resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        """Return wheels for requirements and for what they need and the environment lacks."""
        return self._made().resolve(requirements)

    def _made(self) -> WheelFinder:
        if self._finder is None:
            self._finder = self._make()
        return self._finder

    def _make(self) -> WheelFinder:
        from safe_uninstall.execute.fetch import WheelFinder
        from safe_uninstall.execute.installers import find_pip
        from safe_uninstall.execute.programs import find_uv
        from safe_uninstall.execute.uv_cache import wheel_from_uv_cache
        from safe_uninstall.model.errors import InstallerUnavailable
        from safe_uninstall.scan.disk import DiskFileSystem
        from safe_uninstall.scan.wheel import read_wheel

        sites = self._environment.site_packages
        has_own_pip = any(name.startswith("pip-") for site in sites for name in DiskFileSystem().names(site))
        pip = find_pip(self._environment, has_own_pip=has_own_pip)
        if pip is None:
            raise InstallerUnavailable(
                f"no pip can fetch wheels for Python {self._environment.python_version}",
                help=(f"give the environment one: {self._environment.python} -m ensurepip",),
            )
        self._directory = tempfile.mkdtemp(prefix="safe-uninstall-wheels-")
        uv = find_uv()
        return WheelFinder(
            pip=pip,
            directory=self._directory,
            read=lambda file, source: read_wheel(file, self._environment, source=source),
            find_links=self._find_links,
            no_index=self._no_index,
            progress=self._progress,
            show=self._show,
            cached=lambda distribution, directory: wheel_from_uv_cache(distribution, directory, uv),
        )
