"""``safe-uninstall demo``: the incident, end to end, in a throwaway environment, offline."""

from __future__ import annotations

import os
import shlex
import tempfile
from typing import Any

import click

from safe_uninstall.cli.options import common_options, take_common
from safe_uninstall.cli.output import print_data
from safe_uninstall.model.errors import UsageError


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--into",
    metavar="DIRECTORY",
    help="Only make the environment, in DIRECTORY/env, and keep it, with its wheels in DIRECTORY/wheels.",
)
@common_options
def command(**options: Any) -> int:
    """Show what pip does in the incident this tool is for, and what this tool does. Needs no network."""
    from safe_uninstall.demo.story import Story

    common = take_common(options)
    kept = options["into"]
    if kept is not None:
        if os.path.lexists(kept):
            raise UsageError(f"`{kept}` is there already", help=("name a directory that does not exist",))
        try:
            os.makedirs(kept)
        except OSError as error:
            raise UsageError(
                f"`{kept}` cannot be made: {error.strerror}", help=("name a directory that you may make",)
            ) from None
        Story(os.path.abspath(kept), print_data, color="never").build()
        words = shlex.join(("safe-uninstall", "-p", f"{kept}/env", "-n", "demo-cudnn-cu13"))
        print_data(f"Made {kept}/env. See what would happen there: {words}")
        return 0
    try:
        temporary = tempfile.TemporaryDirectory(prefix="safe-uninstall-demo-")
    except OSError as error:
        raise UsageError(
            f"there is no room for a throwaway environment: {error.strerror}",
            help=("name a directory for it: safe-uninstall demo --into DIRECTORY", "or one for all such: TMPDIR"),
        ) from None
    with temporary as directory:
        Story(directory, print_data, color="always" if common.paint else "never").tell()
    return 0
