"""Sources of wheels that fetch nothing: to say which rewrites would work, and where there is no other."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import replace

from safe_uninstall.analysis.ownership import Match, Owners, compare
from safe_uninstall.model.distribution import Distribution, RecordRow
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import Wheel, WheelUnavailable


class PresumedWheels:
    """Implements ``WheelSource``: a wheel holds what the installed RECORD says, libraries as they are now.

    What a library needed that was overwritten is unknown: it is presumed to load those that its distribution alone has,
    and to lack nothing else. The run itself reads the real wheels.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        known: Mapping[str, Wheel | WheelUnavailable] | None = None,
        *,
        owners: Owners | None = None,
    ) -> None:
        """Presume over a snapshot.

        Args:
            snapshot: the baseline.
            known: what need not be presumed, by metadata path.
            owners: who claims which path, where that is known already.
        """
        self._snapshot = snapshot
        self._owners = owners or Owners(snapshot.distributions)
        self._known = {} if known is None else known
        self._presumed: dict[str, Wheel | WheelUnavailable] = {}

    def restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        """Return what a distribution's wheel must hold, or why it cannot come from anywhere; memoised."""
        path = distribution.metadata_path
        if path in self._known:
            return self._known[path]
        if path not in self._presumed:
            self._presumed[path] = self._presume(distribution)
        return self._presumed[path]

    def resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        """Presume nothing about what is not installed."""
        return WheelUnavailable(requirement=" ".join(requirements), reason="not looked for")

    def _presume(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        url = distribution.direct_url
        pin = f"{distribution.name}=={distribution.version}"
        if distribution.conda_package is not None:
            return WheelUnavailable(requirement=pin, reason="conda installed it")
        if url is not None and (url.editable or url.vcs is not None or url.is_directory):
            how = "as an editable install" if url.editable else "from a source tree"
            return WheelUnavailable(
                requirement=pin,
                reason=f"it was installed {how}, {url.url}, which no index has",
                help=(f"install {distribution.name} again from there yourself",),
            )
        info = distribution.metadata_path + "/"
        rows = tuple(row for row in distribution.record.rows if row.hash and not row.path.startswith(info))
        return Wheel(
            name=distribution.name,
            version=distribution.version,
            file="",
            sha256="",
            size=0,
            installed_size=sum(row.size or 0 for row in rows),
            source="presumed",
            metadata_path=distribution.metadata_path,
            rows=rows,
            objects={item.path: item for item in self._libraries(rows)},
            requires=distribution.requires,
            provides_extra=distribution.provides_extra,
        )

    def _libraries(self, rows: tuple[RecordRow, ...]) -> Iterator[ElfObject]:
        objects = self._snapshot.objects
        libraries = [row for row in rows if row.path in objects]
        shared = [row for row in libraries if len(self._owners.of(row.path)) > 1]
        overwritten = {row.path for row in shared if compare(self._snapshot.evidence, row) is Match.DIFFERENT}
        private = [row.path for row in libraries if row not in shared]
        names = tuple(posixpath.basename(path) for path in private)
        search = ":".join(dict.fromkeys(posixpath.dirname(path) for path in private))
        for row in libraries:
            there = objects[row.path]
            changed = row.path in overwritten
            yield replace(there, needed=names, rpath=search, runpath=None) if changed else there


class NoWheels:
    """Implements ``WheelSource`` where there is none."""

    def restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        """Have nothing."""
        return _nothing(f"{distribution.name}=={distribution.version}")

    def resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        """Have nothing."""
        return _nothing(" ".join(requirements))


def _nothing(requirement: str) -> WheelUnavailable:
    return WheelUnavailable(requirement=requirement, reason="there is no source of wheels")
