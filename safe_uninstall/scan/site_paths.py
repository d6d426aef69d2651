"""Reads ``.pth`` files: directories that they add to ``sys.path``; their import lines are never run."""

import os

from safe_uninstall.scan.layout import home
from safe_uninstall.scan.tree import HOST, Tree

_COMMON = frozenset(
    ("/", "/dev", "/dev/shm", "/home", "/proc", "/run", "/sys", "/tmp", "/usr", "/var", "/var/tmp")  # noqa: S108
)
"""Directories that are there for everybody (hier(7)); others below them may well hold distributions."""


def pth_directories(site: str, tree: Tree = HOST) -> tuple[str, ...]:
    """Return the real paths of the directories that the ``.pth`` files of a site directory add, in order, each once.

    The rules are those of the module ``site``: files in sorted order; hidden files, comments and lines that begin with
    ``import`` left out. What does not exist is left out, and so are the root directory, the user's home and the places
    for temporary files of all programs: they are no places for distributions, and walking them would take for ever.
    """
    not_ours = {*_COMMON, tree.real(home(tree))}
    try:
        names = sorted(name for name in tree.names(site) if name.endswith(".pth") and not name.startswith("."))
    except OSError:
        return ()
    found: dict[str, None] = {}
    for name in names:
        for raw in (tree.text(os.path.join(site, name)) or "").splitlines():
            line = raw.rstrip()
            if not line.strip() or line.startswith(("#", "import ", "import\t")):
                continue
            directory = tree.real(os.path.join(site, line))
            if directory not in not_ours and tree.is_directory(directory):
                found.setdefault(directory)
    return tuple(found)
