"""Requests and the decisions made about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from safe_uninstall.model.environment import Environment, InstallerKind, Programs
from safe_uninstall.model.history import Undo
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.probe import ProbeRun
from safe_uninstall.model.processes import Use
from safe_uninstall.model.wheel import Wheel

PROBE_TIMEOUT = 300.0
"""Seconds that a probe has unless the user says otherwise; a first import of a large framework may take a minute."""


class Rewrite(Enum):
    """A change to what was asked that avoids a loss."""

    RESTORE = "restore"
    SUBSTITUTE = "substitute"
    KEEP_NEEDED = "keep-needed"
    CASCADE = "cascade"


class Verdict(Enum):
    """What a plan says of the request."""

    ALLOW = "allow"
    REWRITE = "rewrite"
    BLOCK = "block"


class Severity(Enum):
    """What a finding does to the verdict: only an error blocks."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Code(Enum):
    """The closed set of findings; each has a section that ``explain`` prints."""

    LIBRARY_LOST = "library-lost"
    PROVIDER_CHANGED = "provider-changed"
    SYMBOLS_LOST = "symbols-lost"
    FILE_LOST = "file-lost"
    FILE_OVERWRITTEN = "file-overwritten"
    REQUIREMENT_LOST = "requirement-lost"
    ALREADY_MISSING = "already-missing"
    RECORD_MISSING = "record-missing"
    RECORD_UNSAFE = "record-unsafe"
    UNOWNED_LEFT = "unowned-left"
    IN_USE = "in-use"
    UNREADABLE_ELF = "unreadable-elf"
    DUPLICATE_DISTRIBUTION = "duplicate-distribution"
    SELF_REMOVAL = "self-removal"
    EXTERNALLY_MANAGED = "externally-managed"
    NOT_INSTALLED = "not-installed"
    DLOPEN_LOST = "dlopen-lost"
    MIXED_CUDA = "mixed-cuda"


class ActionKind(Enum):
    """What happens to a distribution."""

    UNINSTALL = "uninstall"
    RELEASE = "release"
    """Its claims that a survivor owns stay in place."""
    RESTORE = "restore"
    INSTALL = "install"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asked for."""

    names: tuple[str, ...]
    """Names or globs, as written."""
    rewrites: tuple[Rewrite, ...] = ()
    install: tuple[str, ...] = ()
    """PEP 508 requirements to install in the same transaction."""
    accepted_losses: tuple[str, ...] = ()
    """Sonames, paths or distributions whose loss the user accepts."""
    repair: bool = False
    """Restore what is damaged already, and remove nothing: ``check --fix``."""
    undo: str | None = None
    """Undo this transaction of the history, and nothing else."""
    find_links: tuple[str, ...] = ()
    """Directories or pages where wheels are looked for first."""
    no_index: bool = False
    """Whether no index may be asked for wheels."""
    use_library_path: bool = False
    """Whether LD_LIBRARY_PATH of the planning shell binds."""
    consumers_in: tuple[str, ...] = ()
    """Absolute paths of directories outside the environment whose ELF files count as consumers."""
    break_system_packages: bool = False
    refuse_in_use: bool = False
    """Whether files that a running process uses may not go."""
    probes: tuple[str, ...] = ()
    """Python code that must work afterwards if it works before."""
    probe_timeout: float = PROBE_TIMEOUT
    """Seconds after which a probe counts as failed."""
    installer: InstallerKind | None = None
    """None: the one that fits the environment."""
    python: str | None = None
    """What ``-p`` was given as, for the commands in the help; None where the environment was found without it."""
    programs: Programs = field(default_factory=Programs)
    """How the user starts pip and uv, for the commands in the help."""
    tool_prefix: str | None = None
    """Real prefix of the environment that runs the tool, which must not remove itself; None when it does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionRef:
    """A distribution as actions and evidence name it."""

    name: str
    version: str

    @property
    def label(self) -> str:
        """``name version``, as output shows it."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing the plan does, or deliberately does not do, to a distribution."""

    kind: ActionKind
    distribution: DistributionRef
    requested: bool
    """Whether the user named it."""
    reason: str
    paths: tuple[str, ...] = ()
    """Absolute paths deleted (uninstall), left in place (release) or written (restore, install), sorted."""
    bytes: int = 0
    """Total size of ``paths`` in bytes."""
    metadata_path: str | None = None
    """The dist-info this is about; tells duplicates of one name apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """Evidence of a need: who needs the subject of a finding, and how it was found."""

    distribution: DistributionRef | None
    """None for a file that no distribution claims."""
    path: str
    """Absolute path of the consumer."""
    strength: Strength
    how: str
    """How the loader found the provider, in words: ``RPATH $ORIGIN/../../nvidia/cudnn/lib``."""
    searched: tuple[str, ...] = ()
    """Directories tried in the outcome without success, absolute, in order; ``ld.so.cache`` as itself."""
    context: tuple[str, ...] = ()
    """Objects from the root of the load to the consumer, root first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimant:
    """A survivor that claims the subject of a finding."""

    distribution: DistributionRef
    overwritten: int = 0
    """How many of its claims hold another distribution's bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing the user should know, with the evidence for it."""

    code: Code
    severity: Severity
    message: str
    """One sentence that stands alone."""
    distribution: DistributionRef | None = None
    lost: DistributionRef | None = None
    """What goes and met a requirement of ``distribution``."""
    path: str | None = None
    """Absolute."""
    soname: str | None = None
    consumers: tuple[Consumer, ...] = ()
    claimants: tuple[Claimant, ...] = ()
    paths: tuple[str, ...] = ()
    """All paths concerned, where it is about several; absolute, sorted."""
    uses: tuple[Use, ...] = ()
    """Which processes use ``paths``; sorted by PID, then path."""
    notes: tuple[str, ...] = ()
    """Further facts, a sentence each."""
    help: tuple[str, ...] = ()
    """What to do: prose, or a whole command that starts with ``safe-uninstall``, ``pip`` or ``uv``."""
    accepted: bool = False
    """An error that ``--accept-loss`` turned into a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingChange:
    """A need of a survivor that is bound otherwise in the outcome."""

    consumer: Consumer
    name: str
    """The DT_NEEDED entry."""
    before: str
    """Absolute path of the provider in the baseline."""
    after: str | None
    """In the outcome; None where nothing meets it any more; equal to ``before`` where that file is written anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A rewrite that would work."""

    rewrites: tuple[Rewrite, ...]
    command: str
    """Arguments of a whole command line that parses."""
    actions: tuple[Action, ...]
    summary: str = ""
    """What it does, in a clause: ``remove it and restore nvidia-cudnn-cu12 9.10.2.21``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The outcome that the plan foresees; the run is held against it. Paths are absolute and canonical."""

    removed: frozenset[str]
    """Metadata paths of the distributions that go."""
    deleted: frozenset[str]
    """Paths that will be gone."""
    released: frozenset[str]
    """Paths of leaving distributions that must be there afterwards, the very files."""
    written: Mapping[str, str] = field(default_factory=dict)
    """Paths that restored and installed wheels write, each with its RECORD hash (``sha256=…``, or empty)."""
    restored: frozenset[str] = frozenset()
    """Metadata paths of the distributions that are installed again, the same version over itself."""
    installed: frozenset[str] = frozenset()
    """Metadata paths of the distributions that are new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Verdict, actions and findings, computed from one snapshot and one request."""

    environment: Environment
    fingerprint: str
    """``sha256:<hex>`` over what the plan depends on; independent of the prefix."""
    fingerprint_parts: tuple[tuple[str, str], ...] = ()
    """What the fingerprint is over: (what it is, hexadecimal digest), so that a stale plan can say what changed."""
    installer: InstallerKind
    request: Request
    verdict: Verdict
    actions: tuple[Action, ...]
    findings: tuple[Finding, ...]
    """Errors first, then warnings, then notes; stable order within."""
    alternatives: tuple[Alternative, ...] = ()
    prediction: Prediction
    bindings: tuple[BindingChange, ...] = ()
    """Sorted by the consumer's path, then name."""
    wheels: tuple[Wheel, ...] = ()
    """What is installed, restored distributions first, each list sorted by name."""
    undo: Undo | None = None
    """What an earlier transaction took and this one brings back; None for any other plan."""
    probes: tuple[ProbeRun, ...] = ()
    """How the probes of the request ended before anything was changed, in its order."""
    unseen_processes: int = field(default=0, compare=False)
    """Number of processes that may not be looked at, so that it is not known of them whether they use what goes."""

    @property
    def changes(self) -> bool:
        """Whether it does anything: what is merely kept is as it was."""
        return any(action.kind is not ActionKind.KEEP for action in self.actions)
