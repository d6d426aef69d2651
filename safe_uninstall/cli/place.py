"""Which environment a command is about: one of this machine, or one in a mounted tree, which is only looked at."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from safe_uninstall.cli.arguments import without_place
from safe_uninstall.cli.output import print_talk
from safe_uninstall.model.errors import UsageError

if TYPE_CHECKING:
    from safe_uninstall.cli.options import Common
    from safe_uninstall.model.environment import Environment


def find_place(common: Common, *, tell: bool) -> Environment:
    """Return the environment that the common options mean.

    Args:
        common: as the user gave them.
        tell: whether to say on standard error what is looked at, where it is in a mounted tree.

    Raises:
        EnvironmentNotFound: there is none, or it is none that can be read.
        UsageError: ``--root`` names no directory.
    """
    from safe_uninstall.scan.environment import find_environment

    environment = find_environment(common.python, variables=os.environ, directory=os.getcwd(), root=common.root)
    if common.root is not None and tell and not common.quiet:
        from safe_uninstall.render.style import printable

        where = printable(f"{name_inside(environment)} in {environment.root}")
        print_talk(f"Looking at {where}. Commands in what follows are to be run inside that tree.")
    return environment


def name_inside(environment: Environment) -> str:
    """Return what ``-p`` takes for an environment in the tree that it is in."""
    if environment.kind.has_interpreter and environment.base_prefix == environment.prefix and environment.python:
        return environment.python
    return environment.prefix


def refuse_change(environment: Environment, what: str, words: Sequence[str], *more: str) -> UsageError:
    """Return the error for what cannot be done from outside of a mounted tree, with the command that does it inside.

    Args:
        environment: in the tree.
        what: what cannot be done, a sentence without its end.
        words: the command line.
        more: another help, first.
    """
    inside = shlex.join(("safe-uninstall", "-p", name_inside(environment), *without_place(words)))
    return UsageError(what, help=(*more, f"run it inside the tree: {inside}"))


def words_given() -> list[str]:
    """Return the command line that the running command was started with."""
    words = click.get_current_context().find_root().obj
    return list(words) if isinstance(words, (list, tuple)) else []


def paths_inside(paths: Sequence[str], environment: Environment) -> tuple[str, ...]:
    """Return the directories that a user names as paths in the tree of an environment, absolute.

    Args:
        paths: absolute on this machine, or as a process in the tree would write them.
        environment: whose tree it is.
    """
    if not environment.is_mounted:
        return tuple(paths)
    from safe_uninstall.scan.mounted import inside

    found = (inside(path, environment.root, os.getcwd()) for path in paths)
    return tuple(path if within is None else within for path, within in zip(paths, found, strict=True))
