"""What a change does to the needs of survivors: losses, and needs that another file meets."""

from dataclasses import dataclass

from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.plan import Consumer

BLOCKING = frozenset({Strength.LINKED, Strength.PRELOADED, Strength.OBSERVED, Strength.NOTED})
"""Strengths whose loss blocks; a weaker one warns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryLoss:
    """A needed name that was satisfied in the baseline and is not in the outcome."""

    name: str
    """The DT_NEEDED entry that is no longer met."""
    provider: str
    """Absolute path that met it in the baseline."""
    strength: Strength
    """The strongest of the consumers'."""
    consumers: tuple[Consumer, ...]
    """Strongest first, then by path."""
    searched: tuple[str, ...]
    """Directories searched in vain in the outcome for the first consumer, absolute, in order."""
    certain: bool | None = None
    """Whether it blocks, where its strength alone does not say so: a note tells how much the library matters."""

    @property
    def blocks(self) -> bool:
        """Whether the loss is certain enough to block."""
        return self.strength in BLOCKING if self.certain is None else self.certain


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderChange:
    """A need that another provider would meet in the outcome."""

    consumer: Consumer
    """With how the loader finds the new provider."""
    name: str
    before: str
    after: str
    missing_versions: tuple[str, ...] = ()
    """Symbol versions that the consumer requires and the new provider does not define."""
    missing_symbols: tuple[str, ...] = ()
    """Symbols that the consumer took from the old provider and nobody exports any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkageJudgement:
    """What a change does to the needs of the survivors."""

    losses: tuple[LibraryLoss, ...] = ()
    """Sorted by name, then provider."""
    changes: tuple[ProviderChange, ...] = ()
    """Sorted by consumer, then name."""
    renewed: tuple[ProviderChange, ...] = ()
    """Needs whose provider is written anew at the same path; sorted alike."""

    @property
    def blocking(self) -> tuple[LibraryLoss, ...]:
        """The losses that are certain enough to block."""
        return tuple(loss for loss in self.losses if loss.blocks)

    @property
    def incompatible(self) -> tuple[ProviderChange, ...]:
        """The changes whose new provider lacks what its consumer needs."""
        return tuple(change for change in self.changes if change.missing_versions or change.missing_symbols)
