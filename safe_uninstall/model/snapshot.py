"""Everything that is known of an environment at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.environment import Environment
from safe_uninstall.model.filesystem import Evidence, FileSystem
from safe_uninstall.model.jit_caches import JitCaches, NoCaches
from safe_uninstall.model.processes import NoProcesses, ProcessTable
from safe_uninstall.model.system import SystemLibraries


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The facts that ``analysis`` works on; ``scan`` is the only one to make it from a real environment."""

    environment: Environment
    distributions: tuple[Distribution, ...]
    """Sorted by name, then metadata path; several of one name are duplicates."""
    objects: Mapping[str, ElfObject]
    """Canonical path to facts, for every ELF file (or link to one) inside the environment."""
    outside: Mapping[str, ElfObject] = field(default_factory=dict)
    """The same of directories outside that the user names: consumers, never providers, and never deleted."""
    unreadable: Mapping[str, str]
    """Canonical path of an ELF file that could not be read, to the reason in words."""
    leftovers: tuple[str, ...] = ()
    """Absolute paths of ``~``-prefixed remains of failed pip runs; never providers."""
    system: SystemLibraries
    files: FileSystem
    evidence: Evidence
    processes: ProcessTable = field(default_factory=NoProcesses)
    caches: JitCaches = field(default_factory=NoCaches)
    library_path: tuple[str, ...] = ()
    """LD_LIBRARY_PATH of the planning shell, entry by entry: shown, and bound by only when asked for."""
    problems: tuple[str, ...] = ()
    """What else could not be read (a directory without permission, a bad ``.pth`` line), in words."""
