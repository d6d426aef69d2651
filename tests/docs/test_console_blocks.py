"""Every console block of README and docs is run, page by page, and prints what the page says."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.program import clean_variables

ROOT = Path(os.environ.get("PROJECT_ROOT") or Path(__file__).parents[2])
PAGES = sorted([ROOT / "README.md", *(path for path in ROOT.glob("docs/**/*.md") if "_build" not in path.parts)])
_BLOCK = re.compile(r"^( *)```console\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_END = "@@end@@"
_ANYTHING = "[...]"
"""What a page writes for output that differs from run to run."""
_UNSEEN = re.compile(r"note: \d+ process(es)? may not be looked at by this user; .*")
"""What is said where processes of others run, which is so on one machine and not on the next."""


class Step(NamedTuple):
    """A command and what it prints, by line."""

    command: str
    expected: list[str]


def steps(text: str) -> Iterator[Step]:
    """Yield the commands of all console blocks of a page.

    A command goes on after a line that ends with a backslash, and in lines that begin with ``>`` as a shell shows them.
    """
    for indent, block in _BLOCK.findall(text):
        lines = [line.removeprefix(indent) for line in block.splitlines()]
        step: Step | None = None
        going_on = False
        for line in lines:
            if step is not None and not step.expected and (line == ">" or line.startswith("> ")):
                step = Step(f"{step.command}\n{line[2:]}", [])
            elif step is not None and going_on:
                step = Step(f"{step.command}\n{line}", [])
            elif line.startswith("$ "):
                if step is not None:
                    yield step
                step = Step(line[2:], [])
            else:
                assert step is not None, f"a console block begins with a command: {line}"
                step.expected.append(line)
                continue
            going_on = line.endswith("\\")
        if step is not None:
            yield step


def run(commands: list[str], directory: Path) -> list[list[str]]:
    """Run commands in one shell and return what each printed, standard output and error together."""
    script = "".join(f"(exit $status)\n{command}\nstatus=$?; echo; echo {_END}\n" for command in commands)
    done = subprocess.run(
        ["bash"],
        input=f"exec 2>&1; status=0\n{script}",
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        cwd=directory,
        env={
            **clean_variables({}),
            "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "COLUMNS": "80",
        },
    )
    parts = done.stdout.split(f"\n{_END}\n")
    assert len(parts) == len(commands) + 1, done.stdout
    return [[line for line in part.splitlines() if not _UNSEEN.fullmatch(line)] for part in parts[:-1]]


def matches(expected: list[str], printed: list[str]) -> bool:
    """Compare, trailing blanks apart."""
    wanted = "\n".join(line.rstrip() for line in expected).strip("\n")
    pattern = ".*".join(re.escape(part) for part in wanted.split(_ANYTHING))
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in printed).strip("\n"), re.DOTALL) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_console_blocks(page: Path, tmp_path: Path) -> None:
    """The commands of a page, one after the other in an empty directory, print what the page shows."""
    wanted = list(steps(page.read_text(encoding="utf-8")))
    for step, printed in zip(wanted, run([step.command for step in wanted], tmp_path), strict=True):
        assert matches(step.expected, printed), "\n".join([f"$ {step.command}", *printed])


def test_there_are_console_blocks() -> None:
    """The pattern finds them."""
    texts = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
    assert {name for name, text in texts.items() if list(steps(text))} >= {"README.md", "docs/tutorial/incident.md"}
