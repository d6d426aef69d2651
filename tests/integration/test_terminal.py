"""The program in front of a person, and at the ends of pipes that break."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.elf_writer import build
from tests.support.environments import EnvironmentBuilder, library, read_tree
from tests.support.program import clean_variables, safe_uninstall
from tests.support.runs import build_twins
from tests.support.terminal import on_terminal

PROGRAM = [sys.executable, "-m", "safe_uninstall"]


@pytest.fixture
def twins(environment: EnvironmentBuilder) -> EnvironmentBuilder:
    """Return an environment with two distributions that share files."""
    build_twins(environment)
    return environment


def is_there(twins: EnvironmentBuilder) -> bool:
    """Return whether the distribution that is to go is still there."""
    return (twins.site_packages / "twin_cu11-11.8.dist-info").exists()


@pytest.mark.parametrize("answer", [b"y\n", b"Yes\n", b"\n"])
def test_yes(twins: EnvironmentBuilder, answer: bytes) -> None:
    """The plan is shown before the question; an empty line is a yes, as with pip."""
    session = on_terminal("-p", twins.prefix, "twin-cu11", answer=answer)
    assert session.status == 0, session.screen
    plan, asked, end = session.screen.partition("Proceed (Y/n)? ")
    assert "remove  twin-cu11 11.8" in re.sub(r"\033\[[0-9;]*m", "", plan)
    assert asked
    assert "twin-cu11 11.8 (" in end
    assert not is_there(twins)


@pytest.mark.parametrize(
    ("answer", "last"),
    [
        (b"n\n", "Nothing changed."),
        (b"what?\n", "Nothing changed."),
        (b"\x04", "Nothing changed."),
        (b"\x03", "Interrupted. Nothing changed."),
    ],
)
def test_anything_else_is_a_no(twins: EnvironmentBuilder, answer: bytes, last: str) -> None:
    """A no, words that are no answer, the end of the input and Ctrl-C: status 1, and nothing changed."""
    before = read_tree(twins.prefix)
    session = on_terminal("-p", twins.prefix, "twin-cu11", answer=answer)
    assert session.status == 1, session.screen
    assert session.screen.rstrip().endswith(last)
    assert "Traceback" not in session.screen
    assert read_tree(twins.prefix) == before


def test_no_question_where_there_is_no_choice(environment: EnvironmentBuilder) -> None:
    """A blocked plan without a way out, and a dry run, ask nothing."""
    environment.distribution("provider", "1.0", {"lib/liba.so.1": library("liba.so.1")})
    environment.distribution("other", "2.0", {"other.py": b""})
    (environment.site_packages / "unowned.so").write_bytes(build(library(None, "liba.so.1", rpath="$ORIGIN/lib")))
    blocked = on_terminal("-p", environment.prefix, "provider")
    assert (blocked.status, "? " in blocked.screen) == (3, False)
    dry = on_terminal("-n", "-p", environment.prefix, "other")
    assert (dry.status, "? " in dry.screen) == (0, False)


@pytest.fixture
def needed(environment: EnvironmentBuilder) -> EnvironmentBuilder:
    """Return an environment in which ``consumer`` needs a library of ``provider``."""
    environment.distribution("provider", "1.0", {"lib/liba.so.1": library("liba.so.1")})
    environment.distribution("consumer", "2.0", {"consumer/c.so": library(None, "liba.so.1", rpath="$ORIGIN/../lib")})
    return environment


@pytest.mark.parametrize("answer", [b"\n", b"0\n", b"2\n", b"all\n", b"\x04"])
def test_a_blocked_plan_offers_its_rewrites_and_takes_none_by_default(
    needed: EnvironmentBuilder, answer: bytes
) -> None:
    """They are numbered; anything but a number of the list leaves the environment as it is, with status 3."""
    before = read_tree(needed.prefix)
    session = on_terminal("-p", needed.prefix, "provider", ask="Take", answer=answer)
    assert "1. remove it and remove consumer 2.0 too" in session.screen
    assert "Take 1, or nothing [nothing]? " in session.screen
    assert (session.status, session.screen.rstrip().endswith("Nothing changed.")) == (3, True)
    assert read_tree(needed.prefix) == before


def test_a_rewrite_that_is_taken_is_shown_and_confirmed(needed: EnvironmentBuilder) -> None:
    """What goes unasked is listed with its reason before the last question."""
    session = on_terminal("-p", needed.prefix, "provider", ask="Take", answer=b"1\ny\n")
    assert session.status == 0, session.screen
    before, asked, after = session.screen.rpartition("Proceed (Y/n)? ")
    assert asked
    assert "remove  consumer 2.0" in re.sub(r"\033\[[0-9;]*m", "", before)
    assert "consumer 2.0, provider 1.0" in after
    assert not any(path.name.endswith(".dist-info") for path in needed.site_packages.iterdir() if path.name[0] in "cp")


def test_a_rewrite_that_is_taken_can_still_be_refused(needed: EnvironmentBuilder) -> None:
    """Choosing is no consent."""
    before = read_tree(needed.prefix)
    session = on_terminal("-p", needed.prefix, "provider", ask="Take", answer=b"1\nn\n")
    assert session.status == 1
    assert read_tree(needed.prefix) == before


def test_a_question_needs_a_terminal(twins: EnvironmentBuilder) -> None:
    """Without one and without ``-y`` nothing happens: never a silent yes."""
    before = read_tree(twins.prefix)
    done = safe_uninstall("-p", twins.prefix, "twin-cu11")
    assert (done.status, done.out) == (2, "")
    assert "error[usage]: there is no terminal to ask on" in done.err
    assert "--yes" in done.err
    assert read_tree(twins.prefix) == before


def test_colour_and_width_of_a_terminal(environment: EnvironmentBuilder) -> None:
    """Colour is on, lines fit, and no path is cut; NO_COLOR turns it off."""
    environment.distribution("provider", "1.0", {"lib/liba.so.1": library("liba.so.1")})
    environment.distribution("consumer", "2.0", {"consumer/c.so": library(None, "liba.so.1", rpath="$ORIGIN/../lib")})
    session = on_terminal("-n", "-p", environment.prefix, "provider", columns=45)
    assert "\033[1;31merror[library-lost]\033[0m" in session.screen
    plain = on_terminal(
        "-n", "-p", environment.prefix, "provider", columns=45, variables={"NO_COLOR": "1"}
    ).screen.splitlines()
    assert [line for line in plain if len(line) > 45] == [line for line in plain if "safe-uninstall " in line]
    assert any(line.endswith("consumer/c.so") for line in plain)


def test_a_reader_that_leaves_does_not_stop_the_work(twins: EnvironmentBuilder) -> None:
    """``-y … | head -0``: what was said yes to is done, silently, with its own status."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        done = subprocess.run(
            [*PROGRAM, "-y", "-p", twins.prefix, "twin-cu11"],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=clean_variables({}),
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert not is_there(twins)


@pytest.mark.parametrize("words", [("-n", "twin-cu11"), ("why", "libnvToolsExt.so.1"), ("graph",)])
@pytest.mark.parametrize("redirection", [">&-", ">&- 2>&- <&-"])
def test_closed_streams(twins: EnvironmentBuilder, words: tuple[str, ...], redirection: str) -> None:
    """A caller may close what it does not read."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", *PROGRAM, "-p", str(twins.prefix), *words],
        capture_output=True,
        text=True,
        check=False,
        env=clean_variables({}),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(twins: EnvironmentBuilder) -> None:
    """What cannot be written is a failure, in words."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PROGRAM, "-n", "-p", twins.prefix, "twin-cu11"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=clean_variables({}),
        )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_ascii_terminal(environment: EnvironmentBuilder) -> None:
    """Names that it cannot show are escaped; bytes that are no UTF-8 are too."""
    environment.distribution("odd", "1.0", {"odd/é.py": "x = 1\n", "odd/\udcff.py": "x = 1\n"})
    done = safe_uninstall("-n", "-v", "-p", environment.prefix, "odd", variables={"PYTHONIOENCODING": "ascii"})
    assert done.status == 0, done.err
    assert "odd/\\xe9.py" in done.out
    assert "odd/\\xff.py" in done.out
