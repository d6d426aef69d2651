"""Completion in the real shells, and what the shells ask for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environments import EnvironmentBuilder
from tests.support.program import clean_variables, safe_uninstall

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def filled(environment: EnvironmentBuilder) -> EnvironmentBuilder:
    """Return an environment with distributions to complete."""
    for name in ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "torch"):
        environment.distribution(name, "1.0", {f"{name.replace('-', '_')}.py": ""})
    return environment


def shell(name: str, script: str) -> str:
    """Run a script in a real shell that finds the program by its name."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    done = subprocess.run(
        [name, "-c", script], capture_output=True, text=True, check=False, env={**clean_variables({}), "PATH": path}
    )
    assert done.stderr == ""
    return done.stdout


def asked(*words: str | Path) -> list[str]:
    """Return what a shell is answered that completes the last of ``words``."""
    done = safe_uninstall(
        variables={
            "_SAFE_UNINSTALL_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(map(str, ("safe-uninstall", *words))),
            "COMP_CWORD": str(len(words)),
        }
    )
    assert (done.status, done.err) == (0, "")
    return [line.partition(",")[2] for line in done.out.split()]


def test_bash(filled: EnvironmentBuilder) -> None:
    """The function that bash calls fills in names of the environment that ``-p`` names."""
    script = (
        'eval "$(safe-uninstall completion bash)"\n'
        f"COMP_WORDS=(safe-uninstall -p {filled.prefix} nvidia-c); COMP_CWORD=3\n"
        '_safe_uninstall_completion safe-uninstall; echo "${COMPREPLY[@]}"'
    )
    assert shell("bash", script) == "nvidia-cudnn-cu12 nvidia-cudnn-cu13\n"


def test_fish(filled: EnvironmentBuilder) -> None:
    """The same, asked as fish asks itself."""
    script = (
        "safe-uninstall completion fish | source\n"
        f'complete -C "safe-uninstall -p {filled.prefix} tor"\ncomplete -C "safe-uninstall hist"'
    )
    assert shell("fish", script).split() == ["torch", "history"]


def test_zsh() -> None:
    """The script is one that zsh reads, and it completes the program once the completion system is there."""
    script = (
        'autoload -Uz compinit && compinit -u -D\neval "$(safe-uninstall completion zsh)"; echo $_comps[safe-uninstall]'
    )
    assert shell("zsh", script) == "_safe_uninstall_completion\n"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("ch",), ["check"]),
        (("check", "--f"), ["--fix", "--format", "--find-links"]),
        (("check", "--format", "h"), ["html"]),
        (("-q", "und"), ["undo"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("--keep-n",), ["--keep-needed"]),
    ],
)
def test_commands_and_options(words: tuple[str, ...], found: list[str], tmp_path: Path) -> None:
    """Whatever stands before the word that is completed decides what it can be."""
    assert asked("-p", tmp_path, *words) == found


def test_names_are_completed_after_names(filled: EnvironmentBuilder) -> None:
    """However they are written; a command can only come first."""
    assert asked("-p", filled.prefix, "torch", "Nvidia_c") == ["nvidia-cudnn-cu12", "nvidia-cudnn-cu13"]
    assert asked("-p", filled.prefix, "torch", "chec") == []
    assert asked("why", "-p", filled.prefix, "to") == ["torch"]


def test_what_goes_wrong_completes_to_nothing(tmp_path: Path) -> None:
    """No message may stand in the line that is being typed."""
    assert asked("-p", tmp_path / "absent", "torch") == []
    done = safe_uninstall(variables={"_SAFE_UNINSTALL_COMPLETE": "csh_complete"})
    assert (done.status, done.out, done.err) == (1, "", "")
