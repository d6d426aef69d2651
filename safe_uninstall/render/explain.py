"""What each finding means: one Markdown file a code, printed by ``explain`` and part of the documentation."""

from __future__ import annotations

import posixpath
from importlib.resources import files

from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.plan import Code

_DIRECTORY = "explanations"


def explanation(code: str) -> str:
    """Return the Markdown text about a finding.

    Args:
        code: as findings show it: ``library-lost``.

    Raises:
        UsageError: there is no such code; the help names those that look alike.
    """
    known = [item.value for item in Code]
    if code not in known:
        import difflib

        near = difflib.get_close_matches(code, known, n=3)
        help = tuple(f"did you mean `{item}`?" for item in near) or ("the codes are: " + ", ".join(sorted(known)),)
        raise UsageError(f"there is no finding `{code}`", help=help)
    path = posixpath.join(_DIRECTORY, f"{code}.md")
    return files("safe_uninstall.render").joinpath(path).read_text(encoding="utf-8").rstrip("\n")
