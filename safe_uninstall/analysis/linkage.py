"""Which needs a removal leaves unmet: the loader over the baseline held against the loader over the outcome."""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType

from safe_uninstall.analysis.dlopen import OpenedJudge
from safe_uninstall.analysis.loads import Baseline, Loads
from safe_uninstall.analysis.losses import LibraryLoss, LinkageJudgement, ProviderChange
from safe_uninstall.analysis.names import is_host_library, is_stub, names_of
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.paths import View
from safe_uninstall.analysis.preload import Preloads
from safe_uninstall.analysis.symbols import missing_symbols, missing_versions
from safe_uninstall.analysis.trace import Bound, Loaded, Trace
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.linkage import How, Strength
from safe_uninstall.model.plan import Consumer, DistributionRef
from safe_uninstall.model.snapshot import Snapshot

_NOTHING: Mapping[str, ElfObject] = MappingProxyType({})

_HOW_IN_WORDS = {
    How.RPATH: "RPATH",
    How.LD_LIBRARY_PATH: "LD_LIBRARY_PATH",
    How.RUNPATH: "RUNPATH",
    How.CACHE: "ld.so.cache",
    How.DEFAULT: "default directory",
    How.ABSOLUTE: "absolute path",
    How.LOADED: "already loaded",
    How.MISSING: "not found",
}


def judge_linkage(
    snapshot: Snapshot,
    owners: Owners,
    *,
    deleted: Set[str],
    leaving: tuple[Distribution, ...],
    use_library_path: bool = False,
    added: Mapping[str, ElfObject] = _NOTHING,
    baseline: Baseline | None = None,
) -> LinkageJudgement:
    """Hold the bindings of every surviving object in the outcome against those in the baseline.

    Every surviving ELF file is the root of a load of its own; whatever a root's closure had bound before and no
    longer binds is lost. Only roots that could reach something that leaves are loaded at all.

    Args:
        snapshot: the baseline.
        owners: who claims which path.
        deleted: canonical paths that will be gone.
        leaving: the distributions that go; what they need does not count.
        use_library_path: whether LD_LIBRARY_PATH of the planning shell binds; with a ``baseline``, that decides.
        added: canonical path to facts of ELF files that are written after the deletion.
        baseline: the loads of the baseline, where several changes are judged.
    """
    if snapshot.system.libc != "glibc":
        return LinkageJudgement()
    baseline = baseline or Baseline(snapshot, use_library_path=use_library_path)
    return _Judge(snapshot, owners, deleted, leaving, baseline, added).judge()


@dataclass(slots=True)
class _Evidence:
    """All that was found about one lost need of one consumer, over all roots."""

    need: Bound
    after: Bound
    trace: Trace
    direct: bool


class _Judge:
    def __init__(
        self,
        snapshot: Snapshot,
        owners: Owners,
        deleted: Set[str],
        leaving: tuple[Distribution, ...],
        baseline: Baseline,
        added: Mapping[str, ElfObject],
    ) -> None:
        self._snapshot = snapshot
        self._owners = owners
        self._deleted = deleted
        self._added = added
        self._leaving = leaving
        self._leaving_paths = frozenset(distribution.metadata_path for distribution in leaving)
        after = View(snapshot.files, deleted=deleted, added=added)
        self._before = baseline
        self._after = Loads(snapshot, after, baseline.library_path)
        self._names = baseline.names
        self._satisfied: set[tuple[str, str]] = set()
        self._met: set[tuple[str, str]] = set()
        """In the outcome, by any load: a library that is restored may load what nothing loaded in the baseline."""
        self._unmet: dict[tuple[str, str], Bound] = {}
        self._lost: dict[tuple[str, str], _Evidence] = {}
        self._changed: dict[tuple[str, str], tuple[Bound, Bound, Trace, Trace]] = {}
        self._renewed: dict[tuple[str, str], tuple[Bound, str]] = {}

    def judge(self) -> LinkageJudgement:
        touched = {path for path in (*self._deleted, *self._added) if path in self._snapshot.objects}
        names: set[str] = set()
        for path in touched:
            names |= names_of(path, self._snapshot.objects[path])
        for path, item in self._added.items():
            names |= names_of(path, item)
        if not names:
            return LinkageJudgement()
        for path in sorted({*self._names.reaching(names), *self._added}):
            if path in self._added:
                self._compare(self._added[path])
            elif path not in self._deleted:
                self._compare(self._before.objects[path])
        gone = self._deleted - self._added.keys()
        preloads = Preloads(self._snapshot, self._owners, self._names, self._before.trace, gone, self._leaving_paths)
        losses = [*self._linked(), *self._preloaded(names, preloads)]
        opened = OpenedJudge(
            snapshot=self._snapshot,
            owners=self._owners,
            before=self._before,
            after=self._after,
            preloads=preloads,
            gone=gone,
            written=self._added.keys(),
            leaving=self._leaving,
        )
        losses += opened.judge(names, losses)
        return LinkageJudgement(
            losses=tuple(sorted(losses, key=lambda loss: (loss.name, loss.provider, loss.strength.value))),
            changes=self._provider_changes(),
            renewed=tuple(self._renewals()),
        )

    def _compare(self, root: ElfObject) -> None:
        """Load one surviving root over the baseline and over the outcome, and note what differs."""
        after = self._after.trace(root)
        self._met.update((need.consumer.path, need.name) for need in after.needs if need.provider is not None)
        baseline_root = self._before.objects.get(root.path)
        if baseline_root is None:
            return
        before = self._before.trace(baseline_root)
        bound = {(need.consumer.path, need.name): need for need in before.needs}
        for need in before.needs:
            key = (need.consumer.path, need.name)
            if need.provider is None:
                self._unmet.setdefault(key, need)
            else:
                self._satisfied.add(key)
        for need in after.needs:
            key = (need.consumer.path, need.name)
            earlier = bound.get(key)
            if need.provider is None:
                # What a new library lacks by itself was nobody's before; where it stops others, they lose.
                if earlier.provider is not None if earlier is not None else root.path not in self._added:
                    self._note_loss(key, earlier or need, need, before if earlier else after)
            elif earlier is not None and earlier.provider is not None and need.consumer.real_path not in self._added:
                if need.provider.path == earlier.provider.path and need.provider.real_path in self._added:
                    # A restored library is the one that its consumer was installed with.
                    self._renewed.setdefault(key, (earlier, need.provider.path))
                elif earlier.provider.object.identity != need.provider.object.identity:
                    self._changed.setdefault(key, (earlier, need, before, after))

    def _note_loss(self, key: tuple[str, str], earlier: Bound, after: Bound, trace: Trace) -> None:
        if is_host_library(after.name) or (earlier.provider is not None and is_stub(earlier.provider.path)):
            return
        # The consumer as its own root shows the loader's own reason; a longer chain shows somebody else's.
        direct = trace.root is earlier.consumer and earlier.how is not How.LOADED
        known = self._lost.get(key)
        if known is None or (direct and not known.direct):
            self._lost[key] = _Evidence(earlier, after, trace, direct)

    def _linked(self) -> list[LibraryLoss]:
        """Gather the lost needs by name and provider."""
        groups: dict[tuple[str, str], list[_Evidence]] = {}
        for evidence in self._lost.values():
            provider = evidence.need.provider
            groups.setdefault((evidence.need.name, "" if provider is None else provider.path), []).append(evidence)
        losses = []
        for (name, provider_path), group in groups.items():
            ordered = sorted(group, key=lambda item: (not item.direct, item.need.consumer.path))
            searched = {id(item): self._after.searched(item.after) for item in ordered}
            losses.append(
                LibraryLoss(
                    name=name,
                    provider=provider_path,
                    strength=Strength.LINKED,
                    consumers=tuple(
                        self._consumer(item.need, Strength.LINKED, item.trace, searched[id(item)]) for item in ordered
                    ),
                    searched=searched[id(ordered[0])],
                )
            )
        return losses

    def _preloaded(self, names: set[str], preloads: Preloads) -> list[LibraryLoss]:
        """Judge needs that no closure ever met by path, but that an object loaded earlier may have met."""
        names = names | self._brought_in_by_leaving_roots(preloads)
        met = self._satisfied | self._met
        unmet = {
            key: need
            for key, need in self._unmet.items()
            if key not in met
            and need.name in names
            and not is_host_library(need.name)
            and not self._leaves(need.consumer.path)
        }
        groups: dict[tuple[str, str, Strength], list[Consumer]] = {}
        for need in unmet.values():
            lost = preloads.lost(need.name, need.consumer.object.abi)
            if lost is None:
                continue
            consumer = self._consumer(need, lost.strength, None, self._after.searched(need), how=lost.reason)
            groups.setdefault((need.name, lost.provider, lost.strength), []).append(consumer)
        return [
            LibraryLoss(
                name=name,
                provider=provider,
                strength=strength,
                consumers=tuple(sorted(consumers, key=lambda item: item.path)),
                searched=min(consumers, key=lambda item: item.path).searched,
            )
            for (name, provider, strength), consumers in groups.items()
        ]

    def _brought_in_by_leaving_roots(self, preloads: Preloads) -> set[str]:
        """Return the names of staying objects that only leaving extension modules may have loaded.

        The consumers of those names are loaded too, so that it is known which of their needs no path meets.
        """
        objects = self._before.objects
        roots = [objects[path] for path in sorted(self._deleted & objects.keys()) if preloads.is_import_root(path)]
        staying = {
            item.object.soname
            for root in roots
            for item in self._before.trace(root).objects
            if item.object.soname is not None and item.path in objects and not self._leaves(item.path)
        }
        wanted: set[str] = set()
        for path in self._names.wanting(staying):
            if self._leaves(path):
                continue
            unmet = {need.name for need in self._before.trace(objects[path]).needs if need.provider is None}
            if unmet & staying:
                wanted |= unmet & staying
                for root_path in sorted(self._names.reaching(names_of(path, objects[path])) | {path}):
                    if not self._leaves(root_path):
                        self._compare(objects[root_path])
        return wanted

    def _renewals(self) -> Iterator[ProviderChange]:
        for key in sorted(self._renewed):
            need, provider = self._renewed[key]
            yield ProviderChange(
                consumer=self._consumer(need, Strength.LINKED, None, ()),
                name=need.name,
                before=provider,
                after=provider,
            )

    def _provider_changes(self) -> tuple[ProviderChange, ...]:
        evidence = self._snapshot.evidence
        changes = []
        for key in sorted(self._changed):
            if key in self._lost or self._leaves(key[0]):
                continue
            before, after, trace_before, trace = self._changed[key]
            assert before.provider is not None
            assert after.provider is not None
            consumer = before.consumer.real_path
            versions: tuple[str, ...] = ()
            symbols: tuple[str, ...] = ()
            # The symbols of a file that is not on disk yet are checked by the probe of the run, not here.
            if after.provider.real_path not in self._added:
                versions = missing_versions(
                    evidence, consumer=consumer, name=before.name, provider=after.provider.real_path
                )
                symbols = missing_symbols(
                    evidence,
                    consumer=consumer,
                    before=_left_out(before.provider, trace_before, trace),
                    after=(*_nearest_first(after.provider, trace), *self._after.around(trace.root.object)),
                )
            changes.append(
                ProviderChange(
                    consumer=self._consumer(before, Strength.LINKED, None, (), how=in_words(after)),
                    name=before.name,
                    before=before.provider.path,
                    after=after.provider.path,
                    missing_versions=versions,
                    missing_symbols=symbols,
                )
            )
        return tuple(changes)

    def _leaves(self, path: str) -> bool:
        return path in self._deleted and path not in self._added

    def _consumer(
        self, need: Bound, strength: Strength, trace: Trace | None, searched: tuple[str, ...], *, how: str | None = None
    ) -> Consumer:
        path = need.consumer.path
        owner = next((item for item in self._owners.of(path) if item.metadata_path not in self._leaving_paths), None)
        return Consumer(
            distribution=None if owner is None else DistributionRef(name=owner.name, version=owner.version),
            path=path,
            strength=strength,
            how=how if how is not None else in_words(need),
            searched=searched,
            context=() if trace is None else _chain(need.consumer, trace),
        )


def in_words(need: Bound) -> str:
    """Return how the loader found the provider of a need: ``RPATH $ORIGIN/../lib``."""
    words = _HOW_IN_WORDS[need.how]
    return words if need.via is None else f"{words} {need.via}"


def _chain(consumer: Loaded, trace: Trace) -> tuple[str, ...]:
    """Return the paths from the root of a trace to one of its objects."""
    path = [consumer.path]
    item = consumer
    while item is not trace.root and item.loader is not None:
        item = item.loader
        path.append(item.path)
    return tuple(reversed(path))


def _nearest_first(provider: Loaded, trace: Trace) -> tuple[str, ...]:
    """Return the real paths of a closure, the new provider first: it most likely exports what is sought."""
    rest = (item.real_path for item in trace.objects if item is not provider)
    return (provider.real_path, *rest)


def _left_out(provider: Loaded, before: Trace, after: Trace) -> tuple[str, ...]:
    """Return the real paths of a provider and of all else that a load brought in before and not afterwards."""
    staying = {item.object.identity for item in after.objects}
    gone = (item.real_path for item in before.objects if item.object.identity not in staying)
    return tuple(dict.fromkeys((provider.real_path, *gone)))
