"""``safe-uninstall schema``: the JSON Schema of the documents."""

from __future__ import annotations

from typing import Any

import click

from safe_uninstall.cli.options import common_options, take_common
from safe_uninstall.cli.output import print_data


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@common_options
def command(**options: Any) -> int:
    """Print the JSON Schema (draft 2020-12) of every document that this tool prints."""
    from safe_uninstall.render.schema import schema_text

    take_common(options)
    print_data(schema_text())
    return 0
