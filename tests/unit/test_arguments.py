"""Which command a command line means, before any of it is parsed."""

import pytest

from safe_uninstall.cli.arguments import COMMANDS, split, value_of, without_place, without_root
from safe_uninstall.cli.commands import load_command


@pytest.mark.parametrize(
    "before",
    [
        [],
        ["-v"],
        ["-q", "--verbose", "--quiet"],
        ["-p", "/env"],
        ["-p/env"],
        ["--python", "/env"],
        ["--python=/env"],
        ["--color", "never"],
        ["--color=never"],
        ["-vq"],
        ["-vp", "/env"],
        ["-vp/env"],
        ["--root", "/mnt"],
        ["--root=/mnt"],
        ["-p", "why"],
        ["-p", "--"],
    ],
)
def test_options_of_every_command_may_stand_before_it(before: list[str]) -> None:
    """They go to the command; a value is not taken for its name."""
    assert split([*before, "why", "libx.so", "-v"]) == ("why", [*before, "libx.so", "-v"])


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["torch"],
        ["torch", "why"],
        ["--", "why"],
        ["-p", "/env", "--", "why"],
        ["-y", "why"],
        ["-n", "torch"],
        ["-p"],
        ["--python"],
        ["-vx", "why"],
        ["-"],
        ["--verbosely", "why"],
        ["--unknown=x", "why"],
    ],
)
def test_anything_else_is_a_removal(words: list[str]) -> None:
    """Behind ``--``, behind a package and behind an option of removals no word is a command."""
    assert split(words) == ("uninstall", words)


@pytest.mark.parametrize("name", [*COMMANDS, "uninstall"])
def test_every_command_has_its_module(name: str) -> None:
    """With a help of its own, and the options of every command."""
    command = load_command(name)
    assert command.help
    names = {option for parameter in command.params for option in parameter.opts}
    assert {"-p", "--python", "-v", "--verbose", "-q", "--quiet", "--color"} <= names


@pytest.mark.parametrize(
    ("words", "variables", "value"),
    [
        (["--format", "json", "x"], {}, "json"),
        (["--format=json"], {}, "json"),
        (["--format", "text", "--format", "json"], {}, "json"),
        (["--format"], {}, ""),
        (["--", "--format", "json"], {}, None),
        (["--formatted=json"], {}, None),
        ([], {"SAFE_UNINSTALL_FORMAT": "json"}, "json"),
        ([], {"SAFE_UNINSTALL_FORMAT": ""}, None),
        (["--format=text"], {"SAFE_UNINSTALL_FORMAT": "json"}, "text"),
    ],
)
def test_the_value_of_an_option(words: list[str], variables: dict[str, str], value: str | None) -> None:
    """The last one said counts, then the variable; what follows ``--`` is no option."""
    assert value_of("--format", words, variables) == value


@pytest.mark.parametrize(
    ("words", "place", "root"),
    [
        (["--root", "/m", "-p", "/v", "-n", "a"], ["-n", "a"], ["-p", "/v", "-n", "a"]),
        (["--root=/m", "--python=/v", "a"], ["a"], ["--python=/v", "a"]),
        (["-vp/v", "--python", "/v", "a"], ["-v", "a"], ["-vp/v", "--python", "/v", "a"]),
        (["-vqp", "/v", "a"], ["-vq", "a"], ["-vqp", "/v", "a"]),
        (["a", "--", "--root", "-p"], ["a", "--", "--root", "-p"], ["a", "--", "--root", "-p"]),
        (["a", "--root"], ["a"], ["a"]),
    ],
)
def test_a_command_line_without_the_place(words: list[str], place: list[str], root: list[str]) -> None:
    """Where the environment is can be taken out of it, so that the rest can be said of another place."""
    assert without_place(words) == place
    assert without_root(words) == root
