"""Tells the command from the packages: ``safe-uninstall [OPTIONS] PACKAGE...`` needs no command's name."""

from collections.abc import Sequence

COMMANDS = ("demo", "explain", "graph", "recover", "schema", "why")
"""Words that are commands where a package could stand first; after ``--`` they are packages."""

DEFAULT = "uninstall"

_TAKES_VALUE = frozenset({"-p", "--python", "--color"})
"""Options of every command that take a value, so that the value is not taken for the first word."""
_TAKES_NONE = frozenset({"-v", "--verbose", "-q", "--quiet"})


def split(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the command and its arguments; options before the command's name go to the command.

    Args:
        words: the command line without the program's name.
    """
    position = 0
    while position < len(words):
        word = words[position]
        if word in _TAKES_VALUE:
            position += 2
        elif word in _TAKES_NONE or _has_value(word):
            position += 1
        elif word in COMMANDS:
            return word, [*words[:position], *words[position + 1 :]]
        else:
            break
    return DEFAULT, list(words)


def _has_value(word: str) -> bool:
    """Return whether a word is an option of every command together with its value, or a bundle of its flags."""
    name, equals, _ = word.partition("=")
    if equals and name in _TAKES_VALUE:
        return True
    if word.startswith("-p") and len(word) > 2:
        return True
    return len(word) > 2 and word[0] == "-" and set(word[1:]) <= {"v", "q"}
