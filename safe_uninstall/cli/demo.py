"""``safe-uninstall demo``: the incident, end to end, in a throwaway environment, offline."""

from __future__ import annotations

import tempfile
from typing import Any

import click

from safe_uninstall.cli.options import common_options, take_common
from safe_uninstall.cli.output import print_data


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@common_options
def command(**options: Any) -> int:
    """Show what pip does in the incident this tool is for, and what this tool does. Needs no network."""
    from safe_uninstall.demo.story import Story

    common = take_common(options)
    with tempfile.TemporaryDirectory(prefix="safe-uninstall-demo-") as directory:
        Story(directory, print_data, color="always" if common.paint else "never").tell()
    return 0
