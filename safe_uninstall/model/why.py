"""Who provides, claims and needs something: the answer to ``why NAME``."""

from dataclasses import dataclass

from safe_uninstall.model.linkage import How
from safe_uninstall.model.plan import DistributionRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A distribution that claims a provider's path."""

    distribution: DistributionRef
    holds_bytes: bool | None
    """Whether the bytes on disk are its own; None when its RECORD has no hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A file that needs a provider."""

    distribution: DistributionRef | None
    path: str
    """Absolute."""
    name: str
    """The DT_NEEDED entry."""
    how: How
    via: str | None
    """The search path entry that led there, as written."""
    without: str | None = None
    """Absolute path of the file that would meet the need if the provider were gone; None: nothing would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A file that a name leads to."""

    path: str
    """Absolute."""
    soname: str | None
    """None for a file that is no library."""
    claims: tuple[Claim, ...]
    """Sorted by name."""
    users: tuple[User, ...]
    """Sorted by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """A need by that name which nothing meets."""

    distribution: DistributionRef | None
    path: str
    searched: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What is known of one name."""

    name: str
    """As asked."""
    distributions: tuple[DistributionRef, ...]
    """Installed distributions of that name."""
    requirers: tuple[tuple[DistributionRef, str], ...]
    """Distributions that require them, with the requirement as written."""
    providers: tuple[Provider, ...]
    """Files that bear the name, or libraries of the distribution that others need; sorted by path."""
    unmet: tuple[Unmet, ...]
