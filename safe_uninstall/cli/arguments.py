"""Tells the command from the packages: ``safe-uninstall [OPTIONS] PACKAGE...`` needs no command's name."""

import itertools
import re
from collections.abc import Mapping, Sequence

COMMANDS = ("apply", "check", "completion", "demo", "explain", "graph", "history", "recover", "schema", "undo", "why")
"""Words that are commands where a package could stand first; after ``--`` they are packages."""

CHANGING = frozenset({"apply", "history", "recover", "undo"})
"""Commands about what was or will be changed; they have no ``--root``, and say so rather than act on another place."""

DEFAULT = "uninstall"

ENVIRONMENT_PREFIX = "SAFE_UNINSTALL"
"""Every option can be given as SAFE_UNINSTALL_<OPTION>."""

_TAKES_VALUE = frozenset({"-p", "--python", "--root", "--color"})
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


def without_root(words: Sequence[str]) -> list[str]:
    """Return a command line without ``--root``; ``-p`` is a path in the tree already."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            return [*kept, word, *rest]
        if word == "--root":
            next(rest, None)
        elif not word.startswith("--root="):
            kept.append(word)
    return kept


def without_place(words: Sequence[str]) -> list[str]:
    """Return a command line without the options that say where the environment is: ``-p`` and ``--root``."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        flags, python, value = _bundle(word)
        if word == "--":
            return [*kept, word, *rest]
        if name in ("--python", "--root") or python:
            if not equals and not value:
                next(rest, None)
            kept += [f"-{flags}"] if flags else []
        else:
            kept.append(word)
    return kept


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
