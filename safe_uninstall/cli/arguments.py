"""Tells the command from the packages: ``safe-uninstall [OPTIONS] PACKAGE...`` needs no command's name."""

import itertools
import re
from collections.abc import Mapping, Sequence

COMMANDS = ("apply", "check", "demo", "explain", "graph", "history", "recover", "schema", "undo", "why")
"""Words that are commands where a package could stand first; after ``--`` they are packages."""

DEFAULT = "uninstall"

ENVIRONMENT_PREFIX = "SAFE_UNINSTALL"
"""Every option can be given as SAFE_UNINSTALL_<OPTION>."""

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
        if word in _TAKES_VALUE or _ends_in_python(word):
            position += 2
        elif word in _TAKES_NONE or _is_complete(word):
            position += 1
        elif word in COMMANDS:
            return word, [*words[:position], *words[position + 1 :]]
        else:
            break
    return DEFAULT, list(words)


def value_of(option: str, words: Sequence[str], variables: Mapping[str, str]) -> str | None:
    """Return what a long option is given as, even where the command line is too broken to be parsed.

    Args:
        option: ``--format``.
        words: the command line without the program's name; what follows ``--`` is no option.
        variables: environment variables, which decide where the option is not given.
    """
    found = variables.get(f"{ENVIRONMENT_PREFIX}_{option.strip('-').upper()}") or None
    options = itertools.takewhile(lambda word: word != "--", words)
    for first, second in itertools.pairwise([*options, ""]):
        name, equals, value = first.partition("=")
        if name == option:
            found = value if equals else second
    return found


def _is_complete(word: str) -> bool:
    """Return whether a word is options of every command with their values: ``-qv``, ``-p/x``, ``--color=x``."""
    name, equals, _ = word.partition("=")
    if equals and name in _TAKES_VALUE:
        return True
    flags, python, _ = _bundle(word)
    return bool(flags or python) and not _ends_in_python(word)


def _ends_in_python(word: str) -> bool:
    """Return whether a word is short options the last of which takes the next word: ``-vp``."""
    _, python, value = _bundle(word)
    return bool(python) and not value


def _bundle(word: str) -> tuple[str, str, str]:
    """Return the flags of every command that a word begins with, ``p`` and its value; empty if it is another word."""
    match = re.fullmatch(r"-([vq]*)(?:(p)(.*))?", word, re.DOTALL)
    return (match[1], match[2] or "", match[3] or "") if match else ("", "", "")
