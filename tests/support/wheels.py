"""Wheels in memory, and a source of them that remembers what it was asked for."""

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from safe_uninstall.analysis.presumed import PresumedWheels
from safe_uninstall.model.distribution import Distribution, RecordRow
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import Wheel, WheelUnavailable
from tests.support.fakes import SITE, at, record_hash


def wheel(
    name: str,
    version: str = "1.0",
    claims: Mapping[str, bytes] | None = None,
    *,
    objects: Iterable[ElfObject] = (),
    requires: tuple[str, ...] = (),
) -> Wheel:
    """Return a wheel.

    Args:
        name: normalised.
        version: as in its metadata.
        claims: paths relative to site-packages, to their bytes.
        objects: those of its files that are ELF.
        requires: Requires-Dist.
    """
    held = claims or {}
    return Wheel(
        name=name,
        version=version,
        file=f"/wheels/{name}-{version}.whl",
        sha256="0" * 64,
        size=10,
        installed_size=sum(map(len, held.values())),
        source="the index",
        metadata_path=posixpath.join(SITE, f"{name.replace('-', '_')}-{version}.dist-info"),
        rows=tuple(RecordRow(at(path), record_hash(data), len(data)) for path, data in held.items()),
        objects={item.path: item for item in objects},
        requires=requires,
    )


@dataclass
class FakeWheels:
    """Implements ``WheelSource``: what restores is as the RECORD says, unless a test has something else for it."""

    snapshot: Snapshot
    restores: Mapping[str, Wheel | None] = field(default_factory=dict)
    """By name, what there is instead; None: nothing."""
    index: Mapping[str, Iterable[Wheel]] = field(default_factory=dict)
    """Requirement to the wheels that it resolves to; of others there are none."""
    asked_to_restore: list[str] = field(default_factory=list)
    asked_to_resolve: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Presume once, so that each answer is given again."""
        self._presumed = PresumedWheels(self.snapshot)

    def restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        """Return a wheel, and remember for what."""
        if distribution.name not in self.asked_to_restore:
            self.asked_to_restore.append(distribution.name)
        if distribution.name not in self.restores:
            return self._presumed.restore(distribution)
        return self.restores[distribution.name] or self._nothing(f"{distribution.name}=={distribution.version}")

    def resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        """Return wheels, and remember for what."""
        self.asked_to_resolve += requirements
        absent = [item for item in requirements if item not in self.index]
        if absent:
            return self._nothing(" ".join(absent))
        return tuple(found for item in requirements for found in self.index[item])

    def _nothing(self, requirement: str) -> WheelUnavailable:
        return WheelUnavailable(
            requirement=requirement, reason="no network", help=(f"pip download --no-deps {requirement}",)
        )
