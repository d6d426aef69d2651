"""A Python environment: where its files are and what its interpreter is."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from safe_uninstall.model.elf import Abi


class EnvironmentKind(Enum):
    """How the environment came to be; it decides how it is read and what may change it."""

    VENV = "venv"
    """Has a ``pyvenv.cfg``: read statically."""
    CONDA = "conda"
    """Has a ``conda-meta``: conda owns paths too."""
    SYSTEM = "system"
    """Any other interpreter: asked once with ``-I -S``."""
    TARGET = "target"
    """A directory filled by ``pip install --target``: no interpreter of its own."""
    PREFIX = "prefix"
    """A directory filled by ``pip install --prefix``, with ``lib/pythonX.Y``: no interpreter of its own either."""

    @property
    def has_interpreter(self) -> bool:
        """Whether an environment of this kind has an interpreter unless something is wrong with it."""
        return self not in (EnvironmentKind.TARGET, EnvironmentKind.PREFIX)


class InstallerKind(Enum):
    """The program that carries out uninstallations and installations."""

    PIP = "pip"
    UV = "uv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """How the user can start the installers: words of commands in the help."""

    pip: tuple[str, ...] | None = ("pip",)
    """A pip that serves environments it is not in (``--python``), None where there is none."""
    uv: str | None = "uv"
    """None where uv is not found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where an environment's files are. All paths are absolute and real, save ``python``."""

    prefix: str
    """Root of the environment; paths shown to users are relative to it."""
    kind: EnvironmentKind
    python: str | None
    """The interpreter to run for it, as its user would type it (a venv's ``bin/python``); None for TARGET and
    PREFIX, and where it cannot be run."""
    python_version: str
    """``X.Y.Z``, or ``X.Y`` where no more is known."""
    implementation: str
    """``cpython``, ``pypy``: normalised ``sys.implementation.name``."""
    site_packages: tuple[str, ...]
    """Directories whose distributions belong to the environment, in ``sys.path`` order."""
    visible_site_packages: tuple[str, ...] = ()
    """Directories that the interpreter sees too but that are not the environment's to change: system or user
    site-packages, and directories outside the prefix that ``.pth`` files add."""
    scripts: str
    """Directory of console scripts."""
    base_prefix: str | None = None
    """A venv's base installation."""
    interpreter_path: str | None = None
    """Real path of the interpreter's ELF file: main program of every import."""
    abi: Abi | None = None
    """ABI of the interpreter, None when unknown (TARGET, not ELF)."""
    markers: Mapping[str, str]
    """PEP 508 environment markers of the *target*, without ``extra``."""
    created_by_uv: bool = False
    externally_managed: str | None = None
    """The ``Error`` text of an EXTERNALLY-MANAGED file (PEP 668); None when there is no such file."""
    managed_by: str | None = None
    """Who else looks after it: ``conda``, ``mamba``, ``micromamba``, ``pixi``, ``poetry``, ``uv`` (a project),
    ``pdm``, ``pipenv``, ``debian`` or None."""
    project: str | None = None
    """Directory of the project whose environment it is, where a lock file tells."""
    locked: frozenset[str] = frozenset()
    """Normalised names that the project's lock file holds."""
    root: str = "/"
    """Top of the tree that these paths are inside of, absolute and real: ``/``, or that of a mounted file system."""

    @property
    def is_mounted(self) -> bool:
        """Whether it is in a mounted tree: it can be looked at, and nothing of it may be run or changed from here."""
        return self.root != "/"
