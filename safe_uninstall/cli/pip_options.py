"""The options of ``pip uninstall``, of pip 22.3 to 26, with pip's meaning."""

from __future__ import annotations

import optparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from safe_uninstall.model.errors import UsageError

_VALUES = (
    "--keyring-provider",
    "--proxy",
    "--retries",
    "--timeout",
    "--default-timeout",
    "--exists-action",
    "--trusted-host",
    "--cert",
    "--client-cert",
    "--cache-dir",
    "--use-feature",
    "--use-deprecated",
    "--resume-retries",
)
"""Options that say how pip fetches, which an uninstall does not."""
_FLAGS = ("--debug", "--no-cache-dir", "--no-proxy-env", "--disable-pip-version-check")

_TRUE = frozenset({"1", "true", "t", "y", "yes", "on"})
"""What pip takes for a yes in a variable (its ``strtobool``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipUninstall:
    """What a command line of ``pip uninstall`` asks for."""

    packages: tuple[str, ...]
    """Requirements as written."""
    requirements: tuple[str, ...] = ()
    """Requirements files."""
    yes: bool = False
    python: str | None = None
    break_system_packages: bool = False
    require_virtualenv: bool = False
    no_input: bool = False
    no_color: bool = False
    verbosity: int = 0
    """Number of ``-v`` less number of ``-q``."""
    log: str | None = None
    dry_run: bool = False
    """Ours, not pip's: look only."""


class _Parser(optparse.OptionParser):
    def error(self, msg: str) -> NoReturn:
        raise UsageError(msg, help=("see all options: safe-pip uninstall --help",))


def parse_uninstall(words: Sequence[str], variables: Mapping[str, str]) -> PipUninstall:
    """Parse the options and packages of ``pip uninstall``, those before the command's name among them.

    Args:
        words: the command line without the program's and the command's name.
        variables: environment variables; ``PIP_<OPTION>`` sets an option, unless ``--isolated`` is given.

    Raises:
        UsageError: an option that pip does not have, or one without its value.
        SystemExit: ``--help`` was asked for and printed.
    """
    options, packages = _parser().parse_args(list(words))
    settings = {} if options.isolated else variables

    def flag(name: str) -> bool:
        return bool(getattr(options, name)) or settings.get(f"PIP_{name.upper()}", "").lower() in _TRUE

    return PipUninstall(
        packages=tuple(packages),
        requirements=tuple(options.requirement or settings.get("PIP_REQUIREMENT", "").split()),
        yes=flag("yes"),
        python=options.python or settings.get("PIP_PYTHON") or None,
        break_system_packages=flag("break_system_packages"),
        require_virtualenv=flag("require_virtualenv") or settings.get("PIP_REQUIRE_VENV", "").lower() in _TRUE,
        no_input=flag("no_input"),
        no_color=flag("no_color"),
        verbosity=_count("verbose", options, settings) - _count("quiet", options, settings),
        log=options.log or settings.get("PIP_LOG") or None,
        dry_run=options.dry_run,
    )


def _count(name: str, options: optparse.Values, settings: Mapping[str, str]) -> int:
    text = settings.get(f"PIP_{name.upper()}", "").lower()
    given: int = getattr(options, name)
    return given or (int(text) if text.isdecimal() else int(text in _TRUE))


def _parser() -> _Parser:
    parser = _Parser(
        prog="safe-pip",
        usage="%prog uninstall [options] <package> ...\n       %prog uninstall [options] -r <requirements file> ...",
        description="Uninstall packages as pip does, and lose no file or library that others need.",
        epilog="Options of pip that say how it fetches are accepted. Exit status: as safe-uninstall; 3 blocked.",
    )
    add = parser.add_option
    add("-r", "--requirement", action="append", metavar="FILE", help="Uninstall what FILE lists.")
    add("-y", "--yes", action="store_true", help="Do not ask; a blocked plan stays blocked.")
    add("--root-user-action", choices=("warn", "ignore"), help="Accepted: no warning is printed.")
    add("--break-system-packages", action="store_true", help="Change a Python that its distributor manages.")
    add("--isolated", action="store_true", help="Ignore PIP_ variables.")
    add("--require-virtualenv", "--require-venv", action="store_true", help="Change a virtual environment only.")
    add("--python", metavar="PYTHON", help="The interpreter or environment to change.")
    add("-v", "--verbose", action="count", default=0, help="Show all evidence and all paths.")
    add("-q", "--quiet", action="count", default=0, help="Show errors and the verdict only.")
    add("--log", "--log-file", "--local-log", metavar="PATH", help="Append what was asked and how it ended to PATH.")
    add("--no-input", action="store_true", help="Never ask: without -y nothing is done.")
    add("--no-color", action="store_true", help="Print without colour.")
    add("-n", "--dry-run", action="store_true", default=False, help="Look only (pip has no such option here).")
    for name in _VALUES:
        add(name, help=optparse.SUPPRESS_HELP, action="append")
    for name in _FLAGS:
        add(name, help=optparse.SUPPRESS_HELP, action="store_true")
    return parser
