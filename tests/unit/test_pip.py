"""Which words of a command line are pip's command, and which environment it means."""

from pathlib import Path

import pytest

from safe_uninstall import pip
from safe_uninstall.cli.pip_options import parse_uninstall


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("uninstall x", 0),
        ("-qq --no-input uninstall x", 2),
        ("--proxy p uninstall", 2),
        ("--proxy=p uninstall", 1),
        ("--prox p uninstall", 2),
        ("--python p uninstall", 2),
        ("-- uninstall", 1),
        ("--", None),
        ("--version uninstall", None),
        ("-vh uninstall", None),
        ("-V uninstall", None),
        ("--proxy", None),
        ("", None),
    ],
)
def test_the_command(words: str, command: int | None) -> None:
    """It is the first word that is neither an option nor the value of one; help and version run none."""
    assert pip.find_command(words.split()) == command


@pytest.mark.parametrize(
    ("words", "python"),
    [("--python a", "a"), ("--python=a -q", "a"), ("--pyth a", "a"), ("-q", None), ("--python", None)],
)
def test_the_python(words: str, python: str | None) -> None:
    """``--python`` may be shortened, and its value joined to it."""
    assert pip.python_of(words.split()) == python


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ("#!{python}\n", True),
        ("#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n", True),
        ("#!/bin/sh\nexec something\n", False),
        ("#!/nowhere/bin/python\n", False),
        ("no script", False),
    ],
)
def test_the_environment_of_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: str, found: bool) -> None:
    """A pip script names its interpreter; any other program is asked where it lies."""
    place = tmp_path / "with space" if "exec'" in head else tmp_path
    place.mkdir(exist_ok=True)
    python = place / "python3"
    script = tmp_path / "pip"
    for path, text in ((python, ""), (script, head.format(python=python))):
        path.write_text(text)
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setattr(pip, "_site_packages_of", lambda script: f"asked {script}")
    assert pip.environment_of_pip(None) == (str(python) if found else f"asked {script}")


def test_variables_set_options() -> None:
    """``PIP_<OPTION>`` counts as pip counts it, options on the command line first, and ``--isolated`` ends it."""
    variables = {"PIP_YES": "true", "PIP_QUIET": "2", "PIP_PYTHON": "there", "PIP_REQUIREMENT": "a.txt b.txt"}
    asked = parse_uninstall(["x"], variables)
    assert (asked.yes, asked.verbosity, asked.python, asked.requirements) == (True, -2, "there", ("a.txt", "b.txt"))
    asked = parse_uninstall(["-v", "-vv", "--python", "here", "x"], {**variables, "PIP_QUIET": "off"})
    assert (asked.verbosity, asked.python) == (3, "here")
    asked = parse_uninstall(["--isolated", "x"], variables)
    assert (asked.yes, asked.verbosity, asked.python, asked.requirements) == (False, 0, None, ())
