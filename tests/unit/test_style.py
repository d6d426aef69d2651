"""Colour, escapes, width and words for numbers."""

import pytest

from safe_uninstall.model.plan import DistributionRef
from safe_uninstall.render.style import Style, count, escaped, printable, size, wants_color, wrap


@pytest.mark.parametrize(
    ("choice", "is_terminal", "variables", "wanted"),
    [
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", False, {"FORCE_COLOR": "1"}, True),
        ("auto", False, {"FORCE_COLOR": ""}, False),
        ("auto", True, {"TERM": "dumb"}, False),
    ],
)
def test_when_there_is_colour(choice: str, is_terminal: bool, variables: dict[str, str], wanted: bool) -> None:
    """The option decides, then NO_COLOR, then FORCE_COLOR (each only if not empty), then the terminal."""
    assert wants_color(choice, is_terminal=is_terminal, variables=variables) is wanted


def test_paint_without_colour_is_the_text() -> None:
    """Nothing is lost without colour."""
    assert Style(color=False).paint("error", "text") == "text"
    assert Style(color=True).paint("error", "text") == "\033[1;31mtext\033[0m"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("libé.so", "libé.so"),
        ("a\nerror[x]: forged", "a\\nerror[x]: forged"),
        ("\x1b[2J\t\x07", "\\x1b[2J\\t\\x07"),
        ("lib\udcff.so", "lib\\xff.so"),
        ("\ud800", "\\ud800"),
        ("\u202egpj", "\\u202egpj"),
    ],
)
def test_what_cannot_be_printed_is_escaped(text: str, shown: str) -> None:
    """A file's name moves no cursor and forges no line; an undecodable byte is shown as that byte."""
    assert printable(text) == shown
    shown.encode("utf-8")


def test_facts_are_escaped_all_the_way_down() -> None:
    """Strings in tuples in dataclasses; numbers and None stay what they are."""
    assert escaped((DistributionRef(name="a\n", version="1"), None, 3, "\t")) == (
        DistributionRef(name="a\\n", version="1"),
        None,
        3,
        "\\t",
    )


def test_no_width_no_wrapping() -> None:
    """Output that goes to no terminal is not cut into lines."""
    assert wrap("a " * 100, None) == ["a " * 100]


def test_prose_wraps_between_words() -> None:
    """Lines fit the width, those after the first are indented, and the words are all there."""
    lines = wrap("one two three four five", 12, indent=3)
    assert lines == ["one two", "   three", "   four five"]


def test_leading_space_and_columns_are_kept() -> None:
    """A table's line keeps its first column; a gap of two spaces is a place to break even behind a path."""
    assert wrap("  label  torch/lib/a.so   (RPATH $ORIGIN/x)", 30, indent=9) == [
        "  label  torch/lib/a.so",
        "         (RPATH $ORIGIN/x)",
    ]


@pytest.mark.parametrize(
    "whole",
    ["`a name with spaces`", "(pip install uv)", "/a path/with spaces", "/x/averylongpathwithoutanyspaceatall"],
)
def test_paths_and_commands_are_not_broken(whole: str) -> None:
    """What stands in backticks or brackets, or may be a path with spaces, stays on one line, however long."""
    assert whole in wrap(f"see what is in {whole}", 10)[-1]


def test_prose_behind_a_path_wraps_where_the_path_surely_ends() -> None:
    """A comma or colon ends a path."""
    assert wrap("/a/b, and then more", 10) == ["/a/b, and", "  then", "  more"]


def test_a_sealed_end_stays_whole() -> None:
    """A command after a colon is put on a line of its own rather than cut."""
    command = "safe-uninstall --keep-backup one two"
    assert wrap(f"help: or say: {command}", 20, sealed=command) == ["help: or say:", f"  {command}"]


def test_colour_takes_no_columns() -> None:
    """A painted line is as long as it looks."""
    text = f"{Style(color=True).paint('error', 'error')}: four five"
    assert wrap(text, 16) == [text]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9_949, "9.9 kB"),
        (9_950, "10 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (966_000_000, "966 MB"),
        (1_800_000_000, "1.8 GB"),
        (5_000_000_000_000, "5000 GB"),
    ],
)
def test_sizes(number: int, words: str) -> None:
    """Powers of ten, two digits at least, no unit above GB."""
    assert size(number) == words


def test_counts() -> None:
    """One is singular, none is plural."""
    assert [count(number, "file") for number in (0, 1, 2)] == ["0 files", "1 file", "2 files"]
