"""The commands, each imported only when it runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click


def load_command(name: str) -> click.Command:
    """Return the command ``name``: what its module calls ``command``."""
    command: click.Command = import_module(f"safe_uninstall.cli.{name}").command
    return command
