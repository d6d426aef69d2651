"""``safe-uninstall recover``: ends a run that was killed."""

from __future__ import annotations

import os
from typing import Any

import click

from safe_uninstall.cli.options import common_options, take_common
from safe_uninstall.cli.output import print_data, print_talk
from safe_uninstall.model.outcome import ExitStatus, OutcomeState


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-y", "--yes", is_flag=True, help="For scripts; there is nothing to ask: what is safe is done.")
@common_options
def command(**options: Any) -> int:
    """Bring an environment back to what it was before a run that was killed, or finish one that was committed."""
    from safe_uninstall.analysis.commands import our_command
    from safe_uninstall.execute.recovery import recover
    from safe_uninstall.scan.environment import find_environment

    common = take_common(options)
    environment = find_environment(common.python, variables=os.environ, directory=os.getcwd())
    status = ExitStatus.DONE
    recoveries = recover(environment.prefix)
    if not recoveries:
        print_data("Nothing to recover.")
    for recovery in recoveries:
        if recovery.state is OutcomeState.ROLLBACK_INCOMPLETE:
            status = ExitStatus.ROLLBACK_INCOMPLETE
            for problem in recovery.problems:
                print_talk(f"  {problem}")
            print_talk(f"help: when that is mended, try again: {our_command(common.python, 'recover')}")
            print_talk(f"Roll back of {recovery.transaction} incomplete: what is missing is in {recovery.stash}")
        elif recovery.state is OutcomeState.COMMITTED:
            print_data(f"{recovery.transaction}: the environment is as planned.")
        else:
            print_data(f"{recovery.transaction}: rolled back, the environment is as it was before.")
    return status
