"""Reads ``-r FILE`` as ``pip uninstall -r`` does: the names in a requirements file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from safe_uninstall.model.errors import UsageError

_COMMENT = re.compile(r"(^|\s+)#.*$")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")
_DIRECT = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?\s*@\s")
_NAME = re.compile(r"^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


def read_requirement_names(path: str, *, seen: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the names that a requirements file holds, in order.

    Versions, extras and markers do not matter for a removal; options are passed over, nested ``-r`` files are read,
    ``-e`` and URLs count where they give a name.

    Args:
        path: the file; nested ones are relative to it.
        seen: files being read already, so that a circle ends.

    Raises:
        UsageError: a file that cannot be read, or a line that gives no name.
    """
    real = os.path.realpath(path)
    if real in seen:
        return ()
    try:
        with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
            text = file.read()
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}") from None
    names: list[str] = []
    for number, line in _logical_lines(text):
        nested = re.match(r"^(?:-r|--requirement)(?:\s*=?\s*)(\S.*)$", line)
        if nested:
            other = os.path.join(os.path.dirname(path), nested[1].strip())
            names += read_requirement_names(other, seen=seen | {real})
            continue
        editable = re.match(r"^(?:-e|--editable)(?:\s*=?\s*)(\S.*)$", line)
        if line.startswith("-") and not editable:
            continue
        name = _name(editable[1] if editable else line)
        if name is None:
            raise UsageError(f"`{path}` line {number} gives no distribution name: {line}")
        names.append(name)
    return tuple(names)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with continuations joined and comments taken away, with the number of their first line."""
    parts: list[str] = []
    first = 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw
        if not parts:
            first = number
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            parts.append(line[:-1])
            continue
        joined = _COMMENT.sub("", "".join([*parts, line])).strip()
        parts = []
        if joined:
            yield first, joined
    rest = _COMMENT.sub("", "".join(parts)).strip()
    if rest:
        yield first, rest


def _name(requirement: str) -> str | None:
    egg = _EGG.search(requirement)
    if egg:
        return egg[1]
    direct = _DIRECT.match(requirement)
    if direct:
        return direct[1]
    if "://" in requirement or requirement.startswith((".", "/")):
        wheel = re.search(r"([A-Za-z0-9][A-Za-z0-9._]*)-[^/]+\.whl$", requirement)
        return wheel[1] if wheel else None
    match = _NAME.match(requirement)
    return match[1] if match else None
