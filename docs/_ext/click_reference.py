"""Writes the reference of the command line from the click commands themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from safe_uninstall.cli.arguments import COMMANDS, DEFAULT
from safe_uninstall.cli.commands import load_command
from safe_uninstall.cli.main import ENVIRONMENT_PREFIX, PROGRAM

TARGET = Path(__file__).parents[1] / "reference" / "_generated" / "commands.md"


def setup(_app: Any) -> dict[str, bool]:
    """Write the page before Sphinx looks for pages."""
    TARGET.parent.mkdir(exist_ok=True)
    text = reference()
    if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
        TARGET.write_text(text, encoding="utf-8")
    return {"parallel_read_safe": True}


def reference() -> str:
    """Return a section for every command."""
    return "\n".join(_section(name) for name in (DEFAULT, *COMMANDS))


def _section(name: str) -> str:
    command = load_command(name)
    path = PROGRAM if name == DEFAULT else f"{PROGRAM} {name}"
    context = click.Context(command, info_name=path, auto_envvar_prefix=ENVIRONMENT_PREFIX)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"## {path}", "", "```text", f"{path} {usage}", "```", "", (command.help or "").replace("\b\n", ""), ""]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None:
            continue
        variable = f" Variable: `{_variable(parameter)}`." if _takes_variable(parameter) else ""
        lines += [f"`{record[0]}`", f": {record[1]}{variable}", ""]
    return "\n".join(lines)


def _takes_variable(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and not {"--help", "--version"} & set(parameter.opts)


def _variable(parameter: click.Parameter) -> str:
    return f"{ENVIRONMENT_PREFIX}_{(parameter.name or '').upper()}"
