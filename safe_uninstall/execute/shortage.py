"""Why a wheel cannot be had, in one sentence, and how to supply it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from safe_uninstall.execute.builds import can_be_compared
from safe_uninstall.execute.wheel_tags import platform_options, python_options, read_tags
from safe_uninstall.model.distribution import MetadataKind
from safe_uninstall.model.errors import TemporaryDirectoryUnusable
from safe_uninstall.model.wheel import WheelUnavailable

if TYPE_CHECKING:
    from safe_uninstall.execute.pip_log import Failure
    from safe_uninstall.model.distribution import Distribution

Again = Callable[[str], str]
"""Returns the command of this run with a place of wheels added, and without an index."""

_DIRECTORY = "wheels"
"""Where the commands of the help put what they fetch."""


@dataclass(slots=True, kw_only=True)
class Shortage:
    """What was found on the way to nothing."""

    no_index: bool
    """Whether the user forbade to ask an index."""
    _refused: list[str] = field(default_factory=list)
    _lacking: dict[str, Failure | None] = field(default_factory=dict)

    def refused(self, clause: str) -> None:
        """Note that a file is no good, or that a place is not there."""
        self._refused.append(clause)

    def lacking(self, place: str, failure: Failure | None) -> None:
        """Note that a place has nothing; None: it was looked at, and that is all."""
        self._lacking[place] = failure

    def having(self, place: str) -> None:
        """Note that a place has something after all."""
        self._lacking.pop(place, None)

    @property
    def is_for_want_of_network(self) -> bool:
        """Whether it might be had where there is a network."""
        return self.no_index or any(item is not None and item.no_network for item in self._lacking.values())

    def sentence(self) -> str:
        """Return why there is nothing."""
        reasons = {place: item.reason if item is not None else None for place, item in self._lacking.items()}
        absent = [place for place, reason in reasons.items() if reason is None]
        clauses = list(self._refused)
        if absent:
            clauses.append(f"{_listed(absent)} {'does' if len(absent) == 1 else 'do'} not have it")
        clauses += [reason for reason in reasons.values() if reason is not None]
        if self.no_index:
            clauses.append("no index may be asked")
        clauses = list(dict.fromkeys(clauses))
        return clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])}, and {clauses[-1]}"


def not_from_an_index(distribution: Distribution) -> WheelUnavailable | None:
    """Return why no wheel of a distribution is worth looking for; None where one is."""
    from packaging.requirements import InvalidRequirement, Requirement

    pin = f"{distribution.name}=={distribution.version}"
    origin = distribution.direct_url
    reason: str
    help: tuple[str, ...] = ()
    if distribution.conda_package is not None or distribution.installer == "conda":
        reason = "conda installed it"
        help = (
            f"let conda install it again: {shlex.join(('conda', 'install', '--force-reinstall', distribution.name))}",
        )
    elif origin is not None and (origin.editable or origin.vcs is not None or origin.is_directory):
        how = "as an editable install" if origin.editable else "from a source tree"
        reason = f"it was installed {how}, {origin.url}, which no index has"
        help = (f"install {distribution.name} again from there yourself",)
    elif distribution.metadata_kind is not MetadataKind.DIST_INFO:
        reason = "setuptools installed it from a source tree, without a wheel"
        help = (f"install {distribution.name} again from there yourself",)
    elif not can_be_compared(distribution):
        reason = "its RECORD has no hashes that a wheel could be held against"
    else:
        try:
            Requirement(pin)
            return None
        except InvalidRequirement:
            reason = "its metadata has a name and a version that nobody can ask for"
    return WheelUnavailable(requirement=pin, reason=reason, help=help)


def help_for_wheel(distribution: Distribution, version: str, again: Again, shortage: Shortage) -> tuple[str, ...]:
    """Return how to supply the wheel of a distribution, as whole commands.

    Args:
        distribution: what is to be restored.
        version: of Python in the environment.
        again: makes the second command.
        shortage: why it is not there.
    """
    tags = read_tags(distribution.metadata_path)
    origin = distribution.direct_url
    wanted = f"{distribution.name}=={distribution.version}"
    options: tuple[str, ...] = ("--no-deps", *platform_options(tags), *python_options(tags, version))
    if origin is not None and not urlsplit(origin.url).path.endswith(".whl"):
        build = shlex.join(("pip", "wheel", "--no-deps", origin.url, "-w", _DIRECTORY))
        return (f"build it again, which may give the same bytes: {build}", _then(again))
    if origin is not None and urlsplit(origin.url).scheme in ("http", "https"):
        wanted, options = origin.url, ("--no-deps",)
    return _help(options, (wanted,), again, shortage)


def help_for_requirements(
    requirements: Iterable[str], version: str, again: Again, shortage: Shortage
) -> tuple[str, ...]:
    """Return how to supply wheels for requirements and what they need, as whole commands.

    Args:
        requirements: PEP 508.
        version: of Python in the environment.
        again: makes the second command.
        shortage: why they are not there.
    """
    return _help(("--only-binary=:all:", *python_options((), version)), tuple(requirements), again, shortage)


def no_room(directory: str, error: OSError | None = None) -> TemporaryDirectoryUnusable:
    """Return the error for a temporary directory that takes no more; None: it is full."""
    reason = "No space left on device" if error is None else error.strerror or str(error)
    return TemporaryDirectoryUnusable(
        f"wheels cannot be kept in the temporary directory `{directory}`: {reason}",
        help=("set TMPDIR to a directory with room for them, then run this again",),
    )


def _help(options: Iterable[str], wanted: Iterable[str], again: Again, shortage: Shortage) -> tuple[str, ...]:
    if not shortage.is_for_want_of_network:
        return (f"give the directory that has it: {again('DIRECTORY')}",)
    fetch = shlex.join(("pip", "download", *options, *wanted, "-d", _DIRECTORY))
    return (f"fetch it where there is a network: {fetch}", _then(again))


def _then(again: Again) -> str:
    return f"then run this again with it: {again(_DIRECTORY)}"


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
