"""The source of wheels for a command: made when it is first asked, gone when the command ends."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING

from safe_uninstall.execute.interrupts import Interrupted, interruptible, uninterrupted

if TYPE_CHECKING:
    from safe_uninstall.execute.fetch import WheelFinder
    from safe_uninstall.model.distribution import Distribution
    from safe_uninstall.model.environment import Environment
    from safe_uninstall.model.plan import Request
    from safe_uninstall.model.wheel import Wheel, WheelUnavailable


class LazyWheels:
    """Implements ``model.wheel.WheelSource``; a context manager that removes what was fetched.

    A signal within it ends what it has started first; it then is a KeyboardInterrupt, whichever it was.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        find_links: tuple[str, ...],
        no_index: bool,
        progress: Callable[[str], None],
        show: bool,
        again: Callable[[str], str],
    ) -> None:
        """Fetch for ``environment``.

        Args:
            environment: what the wheels are for.
            find_links: places that the user gives.
            no_index: whether no index may be asked.
            progress: told what is being fetched.
            show: whether pip shows on standard error how far it is.
            again: returns the command of this run with a place of wheels added, and without an index.
        """
        self._environment = environment
        self._find_links = find_links
        self._no_index = no_index
        self._progress = progress
        self._show = show
        self._again = again
        self._finder: WheelFinder | None = None
        self._directory: str | None = None
        self._signals = ExitStack()

    def __enter__(self) -> LazyWheels:
        """Nothing is made yet."""
        self._signals.enter_context(interruptible())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Remove what was fetched."""
        self._signals.close()
        with uninterrupted():
            self.close()
        if isinstance(error, Interrupted):
            raise KeyboardInterrupt from None

    def close(self) -> None:
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
        from safe_uninstall.execute import pip_cache, uv_cache
        from safe_uninstall.execute.fetch import Cache, WheelFinder
        from safe_uninstall.execute.indexes import Indexes
        from safe_uninstall.execute.pip_runs import PipRuns
        from safe_uninstall.execute.pip_settings import PipSettings
        from safe_uninstall.execute.programs import find_uv
        from safe_uninstall.execute.uv_settings import index_settings
        from safe_uninstall.scan.wheel import read_wheel

        environment = self._environment
        pip = self._find_pip()
        settings = PipSettings(pip, os.environ)
        # Which caches there are is asked only where what the user gives does not have the wheel.
        uv_root = cache(lambda: None if (uv := find_uv()) is None else uv_cache.cache_directory(uv))
        of_pip = cache(lambda: pip_cache.PipCache(pip_cache.cache_directory(pip, settings.for_command("download"))))
        version = ".".join(environment.python_version.split(".")[:2])
        self._directory = _temporary_directory()
        return WheelFinder(
            runs=PipRuns(
                pip=pip,
                directory=self._directory,
                python_version=version if environment.python is None else None,
            ),
            indexes=Indexes(
                pip=settings,
                uv=index_settings(os.environ),
                prefer_uv=environment.created_by_uv,
                no_index=self._no_index,
            ),
            read=lambda file, source: read_wheel(file, environment, source=source),
            scripts=environment.scripts,
            python_version=environment.python_version,
            again=self._again,
            find_links=self._find_links,
            caches=(
                Cache(
                    name="uv's cache",
                    wheels=lambda wanted, place: uv_cache.wheels_in_uv_cache(wanted, place, uv_root()),
                ),
                Cache(name="pip's cache", wheels=lambda wanted, place: of_pip().wheels(wanted, place)),
            ),
            progress=self._progress,
            show=self._show,
        )

    def _find_pip(self) -> tuple[str, ...]:
        from safe_uninstall.execute.installers import find_pip
        from safe_uninstall.model.errors import InstallerUnavailable
        from safe_uninstall.scan.disk import DiskFileSystem

        environment = self._environment
        names = (name for site in environment.site_packages for name in DiskFileSystem().names(site))
        pip = find_pip(environment, has_own_pip=any(name.startswith("pip-") for name in names))
        if pip is None:
            raise InstallerUnavailable(
                f"no pip can fetch wheels for Python {environment.python_version}",
                help=(f"give the environment one: {environment.python} -m ensurepip",),
            )
        return pip


def repeated(request: Request, place: str) -> str:
    """Return the command of a request with a place of wheels added, and without an index."""
    from safe_uninstall.analysis.alternatives import request_options
    from safe_uninstall.analysis.commands import our_command

    offline = replace(request, find_links=(*request.find_links, place), no_index=True)
    if request.undo is not None:
        return our_command(request.python, "undo", request.undo, *request_options(offline, ()))
    if not request.repair:
        return our_command(request.python, *request.names, *request_options(offline, ()))
    # A repair restores without being told to, and ``check`` has no such option.
    options = request_options(replace(offline, rewrites=()), ())
    return our_command(request.python, "check", "--fix", *options)


def _temporary_directory() -> str:
    from safe_uninstall.execute.shortage import no_room

    try:
        return tempfile.mkdtemp(prefix="safe-uninstall-wheels-")
    except OSError as error:
        # Where no directory will do, tempfile does not even say which ones it tried.
        raise no_room(os.environ.get("TMPDIR") or tempfile.tempdir or "/tmp", error) from None  # noqa: S108
