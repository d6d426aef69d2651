"""Where uv fetches from, as the user configured it, in the words of pip.

What counts is uv's own: variables, then ``uv.toml`` of the user, then that of the system; in each the table ``pip``
before the rest (uv documentation, "Configuration files" and "Package indexes"). Files of projects are not read: what is
cleaned up is an environment, wherever it is done.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

_TRUE = frozenset({"1", "true", "yes", "on", "t", "y"})
SYSTEM_FILE = "/etc/uv/uv.toml"


@dataclass(slots=True, kw_only=True)
class _Indexes:
    """What one source says; what another one says is added where this one is silent."""

    main: str | None = None
    more: list[str] = field(default_factory=list)
    find_links: list[str] = field(default_factory=list)
    no_index: bool = False


def index_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables by which pip fetches from where uv would.

    Args:
        variables: of the process.

    Returns:
        ``PIP_INDEX_URL`` and the like; nothing where the user configured uv for nothing but the default index.
    """
    found = _of_variables(variables)
    for file in _files(variables):
        table = _read(file)
        pip = table.get("pip")
        for part in (pip if isinstance(pip, dict) else {}, table):
            _add(found, part, os.path.dirname(file), variables)
    settings = {
        "PIP_INDEX_URL": found.main or "",
        "PIP_EXTRA_INDEX_URL": " ".join(dict.fromkeys(found.more)),
        "PIP_FIND_LINKS": " ".join(dict.fromkeys(found.find_links)),
        "PIP_NO_INDEX": "1" if found.no_index else "",
    }
    return {name: value for name, value in settings.items() if value}


def _of_variables(variables: Mapping[str, str]) -> _Indexes:
    here = os.getcwd()
    main = variables.get("UV_DEFAULT_INDEX") or variables.get("UV_INDEX_URL")
    more = f"{variables.get('UV_INDEX', '')} {variables.get('UV_EXTRA_INDEX_URL', '')}".split()
    links = variables.get("UV_FIND_LINKS", "").split(",")
    return _Indexes(
        main=None if not main else _named(main, here, variables),
        more=[_named(item, here, variables) for item in more],
        find_links=[_url(item.strip(), None, here, variables) for item in links if item.strip()],
        no_index=variables.get("UV_NO_INDEX", "").lower() in _TRUE,
    )


def _named(item: str, directory: str, variables: Mapping[str, str]) -> str:
    """Return the URL of an index that may have a name: ``NAME=URL``."""
    name, equals, url = item.partition("=")
    if not equals or not re.fullmatch(r"[\w.-]+", name):
        return _url(item, None, directory, variables)
    return _url(url, name, directory, variables)


def _files(variables: Mapping[str, str]) -> list[str]:
    """Return the configuration files that count, first one first."""
    if variables.get("UV_NO_CONFIG", "").lower() in _TRUE:
        return []
    if variables.get("UV_CONFIG_FILE"):
        return [os.path.abspath(variables["UV_CONFIG_FILE"])]
    home = variables.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return [os.path.join(home, "uv", "uv.toml"), SYSTEM_FILE]


def _read(file: str) -> dict[str, Any]:
    """Return a configuration file, empty where there is none or it cannot be read."""
    # Python 3.10 has no reader for TOML, and this is no reason for a dependency: there only uv's variables count.
    if sys.version_info >= (3, 11):
        import tomllib

        try:
            with open(file, "rb") as stream:
                return tomllib.load(stream)
        except (OSError, ValueError):
            pass
    return {}


def _add(found: _Indexes, table: Mapping[str, Any], directory: str, variables: Mapping[str, str]) -> None:
    """Add what one table of a configuration file says."""
    main = table.get("index-url")
    more = [_url(item, None, directory, variables) for item in _texts(table.get("extra-index-url"))]
    links = [_url(item, None, directory, variables) for item in _texts(table.get("find-links"))]
    for index in _tables(table.get("index")):
        name = index.get("name")
        url = _url(index["url"], name if isinstance(name, str) else None, directory, variables)
        if index.get("format") == "flat":
            links.append(url)
        elif index.get("default") is True:
            found.main = found.main or url
        elif index.get("explicit") is not True:
            # An explicit index serves only the packages that a project pins to it.
            more.append(url)
    if isinstance(main, str):
        found.main = found.main or _url(main, None, directory, variables)
    found.more += more
    found.find_links += links
    found.no_index = found.no_index or table.get("no-index") is True


def _texts(value: Any) -> Iterable[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _tables(value: Any) -> Iterable[Mapping[str, Any]]:
    tables = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    return [item for item in tables if isinstance(item.get("url"), str)]


def _url(url: str, name: str | None, directory: str, variables: Mapping[str, str]) -> str:
    """Return the URL of a place, with the credentials that variables give a named index.

    Paths become URLs too: pip splits lists of places at white space.
    """
    place = _place(url, directory)
    if place.startswith("/"):
        return f"file://{quote(place)}"
    if name is None:
        return place
    key = re.sub(r"[^A-Z0-9]", "_", name.upper())
    user = variables.get(f"UV_INDEX_{key}_USERNAME", "")
    password = variables.get(f"UV_INDEX_{key}_PASSWORD", "")
    scheme, separator, rest = place.partition("://")
    if not (user or password) or "@" in rest.partition("/")[0]:
        return place
    return f"{scheme}{separator}{quote(user, safe='')}:{quote(password, safe='')}@{rest}"


def _place(text: str, directory: str) -> str:
    """Return a URL as it is, and a path made absolute; relative ones are meant from ``directory``."""
    return text if "://" in text else os.path.normpath(os.path.join(directory, os.path.expanduser(text)))
