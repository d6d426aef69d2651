"""``safe-uninstall explain CODE``: what a finding means and what to do."""

from __future__ import annotations

from typing import Any

import click

from safe_uninstall.cli.options import common_options, take_common
from safe_uninstall.cli.output import print_data


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("code")
@common_options
def command(**options: Any) -> int:
    """Explain a finding such as library-lost."""
    from safe_uninstall.render.explain import explanation

    take_common(options)
    print_data(explanation(options["code"]))
    return 0
