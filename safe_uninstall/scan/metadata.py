"""Reads the small files of a dist-info directory: METADATA, INSTALLER, direct_url.json, entry_points.txt."""

import os
from collections.abc import Iterator

from safe_uninstall.model.distribution import DirectUrl

_LIMIT = 16 << 20
"""Bytes read of one metadata file; long descriptions stay far below."""


def read_text(location: str | None) -> str | None:
    """Return a small file as text, undecodable bytes kept by surrogateescape; None when it cannot be read."""
    if location is None:
        return None
    try:
        descriptor = os.open(location, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        with open(descriptor, "rb") as file:
            return file.read(_LIMIT).decode("utf-8", "surrogateescape")
    except OSError:
        return None


def parse_headers(text: str) -> dict[str, list[str]]:
    """Return the headers of a METADATA or PKG-INFO (core metadata specification): lower-case name to values.

    Only what stands before the first blank line counts; folded lines are joined by a blank.
    """
    headers: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in _header_lines(text):
        if line[0] in " \t":
            if current:
                current[-1] += " " + line.strip()
            continue
        name, colon, value = line.partition(":")
        if not colon:
            current = None
            continue
        current = headers.setdefault(name.strip().lower(), [])
        current.append(value.strip())
    return headers


def _header_lines(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        if end < 0:
            end = len(text)
        line = text[start:end].rstrip("\r")
        if not line:
            return
        yield line
        start = end + 1


def parse_direct_url(text: str) -> DirectUrl | None:
    """Return the contents of a ``direct_url.json`` (PEP 610), None when it is not one."""
    import json

    try:
        data = json.loads(text)
        url = data["url"]
        directory = data.get("dir_info")
        vcs = data.get("vcs_info")
        archive = data.get("archive_info") or {}
        hashes = archive.get("hashes") or {}
        digest = hashes.get("sha256")
        if digest is None and str(archive.get("hash", "")).startswith("sha256="):
            digest = str(archive["hash"])[len("sha256=") :]
        return DirectUrl(
            url=str(url),
            editable=bool((directory or {}).get("editable", False)),
            vcs=None if vcs is None else str(vcs.get("vcs", "unknown")),
            is_directory=directory is not None,
            archive_hash=None if digest is None else f"sha256={digest}",
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def parse_scripts(text: str) -> tuple[str, ...]:
    """Return the names of the console and GUI scripts in an ``entry_points.txt`` (entry points specification), sorted.

    Names that are no plain file names are left out: they could not be installed either.
    """
    names: set[str] = set()
    wanted = False
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            wanted = line in ("[console_scripts]", "[gui_scripts]")
        elif wanted and line and line[0] not in "#;":
            name = line.partition("=")[0].strip()
            if name and "/" not in name and name not in (".", ".."):
                names.add(name)
    return tuple(sorted(names))
