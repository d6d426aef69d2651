"""Colour, width and what to do with characters that a terminal cannot show."""

from collections.abc import Mapping

_CODES = {"error": "1;31", "warning": "1;33", "note": "1;36", "help": "1;32", "code": "1", "dim": "2", "good": "1;32"}


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
    """Return ``text`` with control and undecodable characters escaped, line ends and tabs left alone."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in "\n\t\033" else _escape(character) for character in text
    )


def _escape(character: str) -> str:
    # surrogateescape keeps an undecodable byte 0xNN as U+DCNN (PEP 383).
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:
        return f"\\x{number - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


def size(number: int) -> str:
    """Return a number of bytes in words: ``966 MB`` (powers of ten, as installers show them)."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 9.95 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def count(number: int, noun: str) -> str:
    """Return ``1 file`` or ``2 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
