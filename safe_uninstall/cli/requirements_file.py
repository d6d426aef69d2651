"""Reads ``-r FILE``: the names in a requirements file, with their markers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from safe_uninstall.model.errors import UsageError

_COMMENT = re.compile(r"(^|\s+)#.*$")
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_NAME = r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"
_REQUIREMENT = re.compile(rf"^{_NAME}\s*(?:\[[^\]]*\])?\s*(?:$|[<>=!~;@(]|\s--)")
"""A name, and behind it something that may stand there: extras, versions, a marker, an URL, options of pip."""
_BEHIND_PLACE = r"\s;|;\s"
"""What stands between a place and a marker; a semicolon alone may be part of an URL (PEP 508)."""
_WHEEL = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._]*)-[^/]+\.whl$")
_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tar.xz", ".tar")


def read_requirement_names(
    path: str, *, variables: Mapping[str, str], seen: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Return the names that a requirements file holds, in order, each with its marker: ``name ; marker``.

    Versions and extras do not matter for a removal, as with ``pip uninstall -r``: a file says what is to be installed,
    and what is installed by now may be newer. Options are passed over, nested ``-r`` files are read, ``-e`` and URLs
    count where they give a name.

    Args:
        path: the file; nested ones are relative to it.
        variables: environment variables, which lines may name as ``${NAME}``.
        seen: files being read already, so that a circle ends.

    Raises:
        UsageError: a file that cannot be read, or a line that gives no name.
    """
    if "://" in path:
        raise UsageError(f"`{path}` is no file here", help=("download it, and give the path of the file",))
    real = os.path.realpath(path)
    if real in seen:
        return ()
    try:
        with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
            text = file.read()
    except OSError as error:
        raise UsageError(
            f"`{path}` cannot be read: {error.strerror}", help=("give the path of a requirements file after -r",)
        ) from None
    names: list[str] = []
    for number, line in _logical_lines(text):
        line = _VARIABLE.sub(lambda match: variables.get(match[1]) or match[0], line)
        nested = _value(("-r", "--requirement"), line)
        if nested is not None:
            other = nested if "://" in nested else os.path.join(os.path.dirname(path), nested)
            names += read_requirement_names(other, variables=variables, seen=seen | {real})
            continue
        editable = _value(("-e", "--editable"), line)
        if line.startswith("-") and editable is None:
            continue
        name = _name(line if editable is None else editable)
        if name is None:
            raise UsageError(
                f"`{path}` line {number} gives no distribution name: {line}",
                help=("write the name that `pip list` shows there; patterns go on the command line, in quotes",),
            )
        names.append(name + _marker(line, f"`{path}` line {number}"))
    return tuple(names)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with continuations joined and comments taken away, with the number of their first line."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not parts:
            first = number
        is_comment = line.lstrip().startswith("#")
        if line.endswith("\\") and not is_comment:
            parts.append(line[:-1])
            continue
        # A comment ends what goes on, and is one even where nothing stands between.
        joined = _COMMENT.sub("", "".join([*parts, " " if is_comment else "", line])).strip()
        parts = []
        if joined:
            yield first, joined
    rest = _COMMENT.sub("", "".join(parts)).strip()
    if rest:
        yield first, rest


def _value(options: tuple[str, str], line: str) -> str | None:
    """Return the value of an option that takes the rest of its line, quotes taken away; None for another line."""
    short, long = options
    match = re.match(rf"^(?:{short}\s*|{long}(?:\s*=\s*|\s+))(\S.*)$", line)
    if match is None:
        return None
    value = match[1].strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _name(requirement: str) -> str | None:
    egg = _EGG.search(requirement)
    if egg:
        return egg[1]
    place = re.split(rf"{_BEHIND_PLACE}|\s--", requirement)[0].strip()
    named = _REQUIREMENT.match(requirement)
    if named and not _is_place(place):
        return named[1]
    wheel = _WHEEL.match(re.split(r"[?#]", place)[0].rpartition("/")[2])
    return wheel[1] if wheel else None


def _marker(line: str, where: str) -> str:
    """Return `` ; marker`` of a requirement, empty if it has none.

    Raises:
        UsageError: the marker makes no sense.
    """
    text = re.split(r"\s--", line)[0]
    parts = re.split(_BEHIND_PLACE if "/" in text.partition(";")[0] else ";", text, maxsplit=1)
    if len(parts) < 2:
        return ""
    from packaging.markers import InvalidMarker, Marker

    try:
        return f" ; {Marker(parts[1])}"
    except InvalidMarker:
        raise UsageError(
            f"{where} has a marker that makes no sense: {parts[1].strip()}",
            help=("mend it or leave it out; `python_version < '3.11'` is one",),
        ) from None


def _is_place(requirement: str) -> bool:
    """Return whether a requirement is a path or an URL without a name in front of it."""
    return re.match(rf"^{_NAME}\s*(?:\[[^\]]*\])?\s*@", requirement) is None and (
        "/" in re.split(r"[;<>=!~\s]", requirement)[0] or requirement.lower().endswith(_ARCHIVES)
    )
