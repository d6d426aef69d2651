"""Options that several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What every command can be told."""

    python: str | None
    verbose: bool
    quiet: bool
    color: str
    root: str | None = None
    """Top of a mounted root file system that the environment is in, as given."""

    @property
    def paint(self) -> bool:
        """Whether standard output gets colour."""
        return self.paint_on(sys.stdout)

    def paint_on(self, stream: TextIO) -> bool:
        """Return whether a stream gets colour."""
        from safe_uninstall.render.style import wants_color

        return wants_color(self.color, is_terminal=stream.isatty(), variables=os.environ)


def common_options(function: Function) -> Function:
    """Add ``-p``, ``-v``, ``-q`` and ``--color``."""
    for decorate in reversed(
        (
            click.option(
                "-p",
                "--python",
                metavar="PATH",
                help="Interpreter, virtual environment or prefix. Default: the active environment, else .venv here or"
                " above, else the one that runs this.",
            ),
            click.option("-v", "--verbose", is_flag=True, help="Show all evidence and all paths."),
            click.option("-q", "--quiet", is_flag=True, help="Show errors and the verdict only."),
            click.option(
                "--color",
                type=click.Choice(["auto", "always", "never"]),
                default="auto",
                help="Whether to use colour.",
            ),
        )
    ):
        function = decorate(function)
    return function


def complete_distributions(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Return completions for a name of an installed distribution; what that needs is loaded only then."""
    from safe_uninstall.cli.completion import complete_distributions as complete

    return complete(context, parameter, incomplete)


def consumers_option(function: Function) -> Function:
    """Add ``--consumers-in``."""
    return click.option(
        "--consumers-in",
        multiple=True,
        type=click.Path(),
        metavar="DIR",
        help="Count the libraries below DIR, outside the environment, as consumers too; they are never deleted.",
    )(function)


def root_option(function: Function) -> Function:
    """Add ``--root``, to commands that look and change nothing."""
    return click.option(
        "--root",
        type=click.Path(),
        metavar="DIR",
        help="Look at an environment in the root file system at DIR; -p is a path in there. Changes nothing.",
    )(function)


def take_consumers(options: dict[str, Any]) -> tuple[str, ...]:
    """Take the directories of ``--consumers-in`` out of a command's keywords, made absolute."""
    # ``apply`` may run in another directory.
    return tuple(os.path.abspath(directory) for directory in options.pop("consumers_in"))


def take_common(options: dict[str, Any]) -> Common:
    """Take the common options out of a command's keywords."""
    return Common(
        python=options.pop("python"),
        verbose=options.pop("verbose"),
        quiet=options.pop("quiet"),
        color=options.pop("color"),
        root=options.pop("root", None),
    )
