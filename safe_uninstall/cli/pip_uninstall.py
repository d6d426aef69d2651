"""``safe-pip uninstall``: what pip's command line asks for, done by the one path of every removal."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from safe_uninstall.cli.main import guarded
from safe_uninstall.cli.options import Common
from safe_uninstall.cli.output import Report, print_talk
from safe_uninstall.cli.pip_options import PipUninstall, parse_uninstall
from safe_uninstall.model.errors import NotInstalled, UsageError
from safe_uninstall.model.names import normalize_name
from safe_uninstall.model.outcome import ExitStatus
from safe_uninstall.model.plan import Request


def uninstall(words: Sequence[str], environment: Callable[[str | None], str | None]) -> int:
    """Uninstall as pip would be told to, and return the exit status.

    Args:
        words: pip's command line without the program's and the command's name.
        environment: returns from the value of ``--python`` the path that names what pip would change.
    """
    plain = "--no-color" in words
    return guarded(Report(as_json=False, color="never" if plain else "auto"), lambda: _uninstall(words, environment))


def _uninstall(words: Sequence[str], environment: Callable[[str | None], str | None]) -> int:
    asked = parse_uninstall(words, os.environ)
    names = tuple(dict.fromkeys((*map(_name, asked.packages), *_from_files(asked))))
    if not names:
        raise UsageError("name at least one package to uninstall", help=("see all options: safe-pip uninstall --help",))
    if asked.no_input and not asked.yes and not asked.dry_run:
        raise UsageError("--no-input forbids to ask", help=("say yes beforehand: -y",))
    python = environment(asked.python)
    if asked.require_virtualenv and not _is_virtual(python):
        print_talk("error: no virtual environment is named, and --require-virtualenv is given\nNothing changed.")
        return ExitStatus.BLOCKED
    status = _remove(asked, names, python)
    if asked.log is not None:
        _append(asked.log, words, status)
    return status


def _remove(asked: PipUninstall, names: tuple[str, ...], python: str | None) -> int:
    from safe_uninstall.cli.run import PlanRun, RunOptions
    from safe_uninstall.execute.programs import find_programs

    common = Common(
        python=python,
        verbose=asked.verbosity > 0,
        quiet=asked.verbosity < 0,
        color="never" if asked.no_color else "auto",
    )
    request = Request(
        names=names,
        break_system_packages=asked.break_system_packages,
        python=python,
        programs=find_programs(),
        tool_prefix=os.path.realpath(sys.prefix),
    )
    how = RunOptions(yes=asked.yes, dry_run=asked.dry_run, as_json=False)
    try:
        return PlanRun(common, request, how).run()
    except NotInstalled as error:
        unknown = {normalize_name(name) for name in error.names}
    # To pip it is no error that something is not there, and scripts rely on it.
    for name in names:
        if normalize_name(name) in unknown and asked.verbosity > -2:
            print_talk(f"WARNING: Skipping {name} as it is not installed.")
    left = tuple(name for name in names if normalize_name(name) not in unknown)
    return PlanRun(common, replace(request, names=left), how).run() if left else ExitStatus.DONE


def _name(text: str) -> str:
    """Return the name in a requirement, whose version pip ignores here, too.

    Raises:
        UsageError: it is no requirement.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text).name
    except InvalidRequirement:
        help = (f"globs: safe-uninstall '{text}'",) if "*" in text or "?" in text else ()
        raise UsageError(f"`{text}` is no requirement", help=help) from None


def _from_files(asked: PipUninstall) -> tuple[str, ...]:
    if not asked.requirements:
        return ()
    from safe_uninstall.cli.requirements_file import read_requirement_names

    return tuple(name for file in asked.requirements for name in read_requirement_names(file, variables=os.environ))


def _is_virtual(python: str | None) -> bool:
    from safe_uninstall.model.environment import EnvironmentKind
    from safe_uninstall.scan.environment import find_environment

    found = find_environment(python, variables=os.environ, directory=os.getcwd())
    return found.kind is EnvironmentKind.VENV


def _append(log: str, words: Sequence[str], status: int) -> None:
    """Say in pip's log what was asked and how it ended."""
    import shlex

    time = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    try:
        with open(os.path.expanduser(log), "a", encoding="utf-8") as file:
            file.write(f"{time} safe-pip uninstall {shlex.join(words)}: exit status {int(status)}\n")
    except OSError as error:
        print_talk(f"warning: the log `{log}` cannot be written: {error.strerror}")
