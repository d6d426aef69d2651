"""What makes an environment one, and is never a distribution's own, whatever its RECORD says."""

import posixpath
import re
from dataclasses import replace

from safe_uninstall.model.distribution import Record
from safe_uninstall.model.environment import Environment, EnvironmentKind

_SCRIPTS = re.compile(
    r"(?:python|pythonw|pypy)(?:\d+(?:\.\d+)*)?t?(?:\.exe)?"
    r"|[Aa]ctivate(?:\.\w+)?|activate_this\.py|deactivate(?:\.\w+)?|pydoc\.bat"
)
"""Names beside the interpreter that venv, virtualenv and uv write; ``pip`` and its like are distributions' own."""

_AT_ROOT = frozenset({".lock", ".safe-uninstall", "conda-meta", "pyvenv.cfg"})


def shield(record: Record, environment: Environment, site_packages: str) -> Record:
    """Return a record without the rows that name a part of the environment itself; these count as unsafe.

    Args:
        record: as it was read.
        environment: whose skeleton it is.
        site_packages: what relative rows are relative to.
    """
    own = f"{site_packages}/"
    outside = [row.path for row in record.rows if not row.path.startswith(own)]
    hostile = {path for path in outside if is_skeleton(path, environment)}
    if not hostile:
        return record
    return replace(
        record,
        rows=tuple(row for row in record.rows if row.path not in hostile),
        unsafe=(*record.unsafe, *(posixpath.relpath(path, site_packages) for path in sorted(hostile))),
    )


def is_skeleton(path: str, environment: Environment) -> bool:
    """Return whether a canonical path is a part of the environment itself: its interpreter, its marker, its library.

    Args:
        path: absolute.
        environment: whose it would be.
    """
    directory, _, name = path.rpartition("/")
    if directory == environment.scripts and _SCRIPTS.fullmatch(name):
        return True
    prefix = f"{environment.prefix}/"
    if path.startswith(prefix) and path[len(prefix) :].partition("/")[0] in _AT_ROOT:
        return True
    if path in environment.site_packages:
        return True
    if environment.kind not in (EnvironmentKind.SYSTEM, EnvironmentKind.CONDA):
        return False
    # The standard library lies around site-packages; in a venv there is none.
    return any(
        path.startswith(f"{posixpath.dirname(site)}/") and not path.startswith(f"{site}/")
        for site in environment.site_packages
    )
