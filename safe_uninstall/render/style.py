"""Colour, width, words for numbers, and what to do with characters that a terminal cannot show."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

_CODES = {"error": "1;31", "warning": "1;33", "note": "1;36", "help": "1;32", "code": "1", "dim": "2", "good": "1;32"}
_PAINT = re.compile("\033\\[[0-9;]*m")
_WORD = re.compile(r"((?:`[^`]*`|\([^()]*\)|[^\s`(]|[`(])+)( *)")
"""A word with the space behind it; what stands in backticks or brackets is one word with what touches it."""

Facts = TypeVar("Facts")


class Style:
    """How to write: with or without colour. Colour never carries meaning."""

    def __init__(self, *, color: bool) -> None:
        """Paint if ``color``."""
        self._color = color

    def paint(self, role: str, text: str) -> str:
        """Return ``text`` in the colour of a role."""
        return f"\033[{_CODES[role]}m{text}\033[0m" if self._color else text


def wants_color(choice: str, *, is_terminal: bool, variables: Mapping[str, str]) -> bool:
    """Return whether to use colour.

    Args:
        choice: ``auto``, ``always`` or ``never``, as the user said.
        is_terminal: whether the output goes to a terminal.
        variables: environment variables; ``NO_COLOR`` and ``FORCE_COLOR``, not empty, decide over ``auto``.
    """
    if choice != "auto":
        return choice == "always"
    if variables.get("NO_COLOR"):
        return False
    if variables.get("FORCE_COLOR"):
        return True
    return is_terminal and variables.get("TERM") != "dumb"


def printable(text: str) -> str:
    """Return ``text`` with every character escaped that is none to print: line ends, escapes, undecodable bytes.

    File names and metadata are other people's: none of it may move the cursor, forge a line or fail to be printed.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def escaped(facts: Facts) -> Facts:
    """Return facts of the model with every string in them made printable."""
    return _escaped(facts)  # type: ignore[no-any-return]


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, tuple):
        return tuple(_escaped(item) for item in value)
    if is_dataclass(value):
        changes = {field.name: _escaped(getattr(value, field.name)) for field in fields(value)}
        return replace(value, **changes)  # type: ignore[type-var]
    return value


def _escape(character: str) -> str:
    # surrogateescape keeps an undecodable byte 0xNN as U+DCNN (PEP 383).
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:
        return f"\\x{number - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


def wrap(text: str, width: int | None, *, indent: int = 2, sealed: str = "") -> list[str]:
    """Return ``text`` as lines that fit a width, as far as they can without breaking a path or a command.

    Args:
        text: one line, maybe painted; gaps of two spaces and more separate columns.
        width: columns of the terminal; None: as long as it takes.
        indent: spaces before all lines but the first.
        sealed: the end of the text that is one word, however long: a command.
    """
    if width is None or _length(text) <= width:
        return [text]
    words = [(match[1], match[2]) for match in _WORD.finditer(text.removesuffix(sealed))]
    if sealed:
        words.append((sealed, ""))
    start = text[: len(text) - len(text.lstrip(" "))]
    line, lines, gap = start, [], ""
    may_break = False
    for word, space in words:
        if may_break and _length(line + gap + word) > width:
            lines.append(line)
            line, gap = " " * indent, ""
        line += gap + word
        # A path may hold single spaces, so a line ends behind one only where it surely ends.
        may_break = len(space) > 1 or "/" not in word or word[-1] in ",;:)`"
        gap = space
    return [*lines, line]


def _length(text: str) -> int:
    return len(_PAINT.sub("", text))


def size(number: int) -> str:
    """Return a number of bytes in words: ``966 MB`` (powers of ten, as installers show them)."""
    if number < 1000:
        return f"{number} B"
    value, units = number / 1000, ["GB", "MB", "kB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop()
    unit = units[-1]
    return f"{value:.0f} {unit}" if value >= 9.95 else f"{value:.1f} {unit}"


def count(number: int, noun: str) -> str:
    """Return ``1 file`` or ``2 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
