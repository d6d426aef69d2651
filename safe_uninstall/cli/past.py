"""The history of an environment for a command: what ``execute`` stores, read with what ``scan`` can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from safe_uninstall.model.elf import ElfObject
    from safe_uninstall.model.environment import Environment
    from safe_uninstall.model.history import History

_NO_LIBRARIES = (".py", ".pyc", ".pyi", ".txt", ".h")
"""What is not opened to look for the ELF magic: most files of most distributions."""


def stored_history(environment: Environment) -> History:
    """Return the history of an environment."""
    from safe_uninstall.execute.history import StoredHistory

    return StoredHistory(environment.prefix, _read_object)


def _read_object(path: str, real_path: str, location: str) -> ElfObject | None:
    """Return the ELF facts of a file in a backup; what cannot be read counts as none, as it does in a wheel."""
    from safe_uninstall.scan.elf import ElfError, read_elf

    if path.endswith(_NO_LIBRARIES):
        return None
    try:
        return read_elf(path, real_path=real_path, location=location)
    except ElfError:
        return None
