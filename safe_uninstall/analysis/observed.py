"""What the user's probes say of a change: libraries that they mapped and that it takes away."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace

from safe_uninstall.analysis.losses import LibraryLoss, LinkageJudgement
from safe_uninstall.analysis.names import is_stub
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.plan import Consumer
from safe_uninstall.model.probe import ProbeRun
from safe_uninstall.model.snapshot import Snapshot


class Observed:
    """What the probes that passed had mapped, as paths of the environment."""

    def __init__(self, snapshot: Snapshot, probes: Iterable[ProbeRun]) -> None:
        """Keep the ELF files that were mapped; a probe that failed is no reason to keep anything."""
        self._snapshot = snapshot
        self._labels: dict[str, str] = {}
        for run in probes:
            if run.passed:
                for path in run.mapped or ():
                    self._labels.setdefault(path, run.label)
        self._paths: Mapping[str, tuple[str, ...]] = self._by_real_path() if self._labels else {}

    def _by_real_path(self) -> dict[str, tuple[str, ...]]:
        """Return the paths that lead to each mapped file, which may lie outside (links into uv's cache)."""
        paths: dict[str, tuple[str, ...]] = {}
        objects = self._snapshot.objects
        for path, item in objects.items():
            if item.real_path in self._labels:
                paths[item.real_path] = (*paths.get(item.real_path, ()), path)
        # Where the file itself is part of the environment, links to it may go.
        return {real: (real,) if real in objects else found for real, found in paths.items()}

    def add_losses(
        self, judgement: LinkageJudgement, *, gone: Set[str], added: Mapping[str, ElfObject]
    ) -> LinkageJudgement:
        """Return a judgement with the losses that only a probe knows of.

        A library is no loss where the linkage says already what becomes of it: a stronger loss, or another provider.
        Nor is it where another file that is there afterwards carries its soname: the probe after the change will tell.

        Args:
            judgement: what the loader's rules say.
            gone: canonical paths that are there no longer in the outcome.
            added: ELF files that wheels write.
        """
        lost = list(self._lost(judgement, gone, added))
        if not lost:
            return judgement
        providers = {self._real(loss.provider) for loss in lost}
        losses = [*(loss for loss in judgement.losses if self._real(loss.provider) not in providers), *lost]
        return replace(judgement, losses=tuple(sorted(losses, key=lambda loss: (loss.name, loss.provider))))

    def _lost(
        self, judgement: LinkageJudgement, gone: Set[str], added: Mapping[str, ElfObject]
    ) -> Iterator[LibraryLoss]:
        known: dict[str, list[LibraryLoss]] = {}
        for loss in judgement.losses:
            known.setdefault(self._real(loss.provider), []).append(loss)
        moved = {self._real(change.before) for change in judgement.changes}
        staying: dict[str, list[ElfObject]] | None = None
        for real, paths in self._paths.items():
            if not all(path in gone for path in paths):
                continue
            provider = paths[0]
            weaker = known.get(real, [])
            if real in moved or any(loss.blocks for loss in weaker):
                continue
            item = self._snapshot.objects[provider]
            if item.soname is not None:
                staying = self._staying(gone, added) if staying is None else staying
                if any(other.abi == item.abi for other in staying.get(item.soname, ())):
                    continue
            yield LibraryLoss(
                name=item.soname or provider.rpartition("/")[2],
                provider=provider,
                strength=Strength.OBSERVED,
                consumers=(self._consumer(real), *(consumer for loss in weaker for consumer in loss.consumers)),
                searched=(),
            )

    def _real(self, path: str) -> str:
        item = self._snapshot.objects.get(path)
        return path if item is None else item.real_path

    def _staying(self, gone: Set[str], added: Mapping[str, ElfObject]) -> dict[str, list[ElfObject]]:
        """Return the libraries of the outcome by soname."""
        staying: dict[str, list[ElfObject]] = {}
        for path, item in {**self._snapshot.objects, **added}.items():
            if item.soname is not None and path not in gone and not is_stub(path):
                staying.setdefault(item.soname, []).append(item)
        return staying

    def _consumer(self, real: str) -> Consumer:
        environment = self._snapshot.environment
        return Consumer(
            distribution=None,
            path=environment.python or environment.prefix,
            strength=Strength.OBSERVED,
            how=f"mapped by the probe `{self._labels[real]}`",
        )
