"""Tells of an earlier run that did not end, to whoever only looks; what changes an environment is refused then."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from safe_uninstall.cli.output import print_talk

if TYPE_CHECKING:
    from safe_uninstall.cli.options import Common
    from safe_uninstall.model.environment import Environment


def warn_of_unfinished(environment: Environment, common: Common) -> None:
    """Say on standard error that the environment is as a killed run left it, with the command that ends that."""
    from safe_uninstall.execute.journal import unfinished

    pending = () if common.quiet else unfinished(environment.root.rstrip("/") + environment.prefix)
    if not pending:
        return
    from safe_uninstall.analysis.commands import our_command
    from safe_uninstall.render.style import Style, printable

    style = Style(color=common.paint_on(sys.stderr))
    head = style.paint("warning", "warning[unfinished]")
    print_talk(f"{head}: an earlier run did not end, or is still at work: {printable(pending[0].directory)}")
    print_talk(f"{style.paint('help', 'help')}: end it: {printable(our_command(common.python, 'recover'))}")
