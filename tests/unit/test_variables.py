"""Every option can come from a variable that is named after it."""

from collections.abc import Iterator

import click
import pytest

from safe_uninstall.cli.arguments import COMMANDS, DEFAULT, ENVIRONMENT_PREFIX
from safe_uninstall.cli.commands import load_command
from safe_uninstall.cli.main import run

WITHOUT = {("graph", "format"), (DEFAULT, "version")}
"""A graph has other formats than all else, and a variable for those would break it; a version is asked for."""


def options() -> Iterator[tuple[str, click.Option]]:
    """Yield every option of every command."""
    for name in (DEFAULT, *COMMANDS):
        for parameter in load_command(name).params:
            if isinstance(parameter, click.Option) and (name, parameter.name) not in WITHOUT:
                yield name, parameter


def value(option: click.Option) -> tuple[str, object]:
    """Return a value that is not the default, as text and as the command gets it."""
    if option.is_flag:
        return "1", True
    if isinstance(option.type, click.Choice):
        other = next(choice for choice in option.type.choices if choice != option.default)
        return other, other
    if isinstance(option.type, click.IntRange | click.FloatRange):
        return "7", 7
    if option.multiple:
        return "x", ("x",)
    return "x", "x"


@pytest.mark.parametrize(("name", "option"), list(options()), ids=lambda item: getattr(item, "name", item))
def test_the_variable_of_an_option(name: str, option: click.Option, monkeypatch: pytest.MonkeyPatch) -> None:
    """SAFE_UNINSTALL_<OPTION>, with dashes as underscores; the command line wins over it."""
    long = next(text for text in option.opts if text.startswith("--"))
    text, wanted = value(option)
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}_{long.strip('-').upper().replace('-', '_')}", text)
    command = load_command(name)
    required = ["bash" if name == "completion" else "x" for item in command.params if _is_needed(item)]
    context = command.make_context(name, required, auto_envvar_prefix=ENVIRONMENT_PREFIX)
    assert option.name is not None
    assert context.params[option.name] == wanted


def test_there_are_options_to_look_at() -> None:
    """The test sees the commands."""
    assert len(list(options())) > 60


def _is_needed(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Argument) and parameter.required


def test_what_click_lists_stands_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """No line end of a message is shown as an escape."""
    assert run(["completion"]) == 2
    assert "Choose from: bash, zsh, fish\n" in capsys.readouterr().err
