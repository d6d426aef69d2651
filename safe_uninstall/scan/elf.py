"""Reads the facts of one ELF file that the dynamic loader goes by."""

import os

from safe_uninstall.model.elf import ElfObject
from safe_uninstall.scan.elf_file import DLOPEN_OWNER, ElfError, open_elf

__all__ = ["ElfError", "read_elf"]


def read_elf(path: str, *, real_path: str | None = None, location: str | None = None) -> ElfObject | None:
    """Read one ELF file.

    Args:
        path: absolute, by which the object is known: its directory resolved, the last component not.
        real_path: ``path`` with every link resolved; found out when not given.
        location: where to open the file when that is not ``path`` (a tree mounted somewhere else).

    Returns:
        The facts, or None when there is no regular file or it does not start with the ELF magic. Relocatable files,
        core dumps and device code come back with nothing dynamic: the loader never loads them.

    Raises:
        ElfError: the file cannot be opened or read, is truncated, or contradicts itself.
    """
    file = open_elf(location or path)
    if file is None:
        return None
    with file:
        names = file.names()
        return ElfObject(
            path=path,
            real_path=real_path or os.path.realpath(path),
            identity=file.identity,
            size=file.size,
            abi=file.abi,
            elf_type=file.elf_type,
            is_dynamic=names is not None,
            interpreter=file.interpreter(),
            has_dlopen_notes=file.has_note_of(DLOPEN_OWNER),
            **({} if names is None else names._asdict()),
        )
