"""The tags of a wheel, which its WHEEL file keeps after the installation: what interpreters and platforms it is for."""

import os
import re
from collections.abc import Iterable

_TAG = re.compile(r"[A-Za-z0-9_.]+-[A-Za-z0-9_.]+-[A-Za-z0-9_.]+")
_ANY = "any"
"""The platform of wheels that hold nothing compiled."""


def read_tags(info: str) -> tuple[str, ...]:
    """Return the tags of a dist-info directory, ``cp311-cp311-manylinux2014_x86_64`` each; none where it tells none."""
    try:
        with open(os.path.join(info, "WHEEL"), encoding="utf-8", errors="surrogateescape") as file:
            return parse_tags(file.read())
    except OSError:
        return ()


def parse_tags(text: str) -> tuple[str, ...]:
    """Return the tags that the text of a WHEEL file names (binary distribution format); odd ones are left out."""
    values = (line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("Tag:"))
    return tuple(value for value in values if _TAG.fullmatch(value))


def wheel_file_name(info: str, tags: Iterable[str]) -> str:
    """Return the name of a wheel file.

    Args:
        info: name of its dist-info directory.
        tags: its tags; each part of them is written once, as compressed tag sets are (PEP 425).
    """
    parts = zip(*(tag.split("-") for tag in tags), strict=True)
    joined = "-".join(".".join(sorted(set(part))) for part in parts)
    return f"{info.removesuffix('.dist-info')}-{joined or 'py3-none-any'}.whl"


def platform_options(tags: Iterable[str]) -> tuple[str, ...]:
    """Return options by which pip chooses the wheel with these tags, and no other build that it would prefer."""
    platforms = {tag.rpartition("-")[2] for tag in tags}
    return () if _ANY in platforms else tuple(f"--platform={platform}" for platform in sorted(platforms))


def python_options(tags: Iterable[str], version: str) -> tuple[str, ...]:
    """Return the option by which any pip chooses a wheel for Python ``version``; none where it suits every Python 3.

    Args:
        tags: the wheel's tags; none: it is not known yet.
        version: ``X.Y``, or more of it.
    """
    short = ".".join(version.split(".")[:2])
    interpreters = {tag.partition("-")[0] for tag in tags}
    return () if "py3" in interpreters else (f"--python-version={short}",)
