"""Running processes that use files of an environment, and the port by which the pure analysis asks for them."""

from collections.abc import Set
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class UseKind(Enum):
    """How a process uses a file."""

    MAPPED = "mapped"
    """Part of its memory: a library that it has loaded, a file read with mmap."""
    OPEN = "open"
    """Open under a file descriptor, and not mapped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A file that a process uses."""

    pid: int
    command: str
    """Name of the program; of a Python, with the script or module that it runs."""
    user: str | None = None
    """Name of the user whose process it is, None where it is that of the user who asks."""
    path: str
    """The path that was asked about."""
    how: UseKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """What is known of the use of some files."""

    found: tuple[Use, ...] = ()
    """Sorted by PID, then path; each file of a process once."""
    unreadable: int = 0
    """Number of processes that may not be looked at, so that what they use is unknown."""
    asked_by_root: bool = False
    """Whether it was root who looked; what root may not look at belongs to the system (or to the container's host)."""


class ProcessTable(Protocol):
    """Looks at the processes that run; nothing is looked at before somebody asks."""

    def using(self, paths: Set[str]) -> Uses:
        """Return which processes use which of ``paths`` at this moment.

        Our own process and those that it started are left out. Costs a look at every process: asked once a plan
        touches files, and for all of them together.

        Args:
            paths: absolute and canonical.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class NoProcesses:
    """Stands for the processes where none can be looked at, and in tests."""

    def using(self, paths: Set[str]) -> Uses:  # noqa: ARG002 - the port's signature
        """Return that nothing is known to be in use."""
        return Uses()
