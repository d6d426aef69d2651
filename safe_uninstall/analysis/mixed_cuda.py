"""Consumers whose CUDA libraries come from wheels of different CUDA majors."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from safe_uninstall.analysis.change import ChangeJudge, Judgement
from safe_uninstall.analysis.guards import reference
from safe_uninstall.analysis.loads import Baseline
from safe_uninstall.analysis.names import names_of
from safe_uninstall.analysis.ownership import Match, Owners, compare
from safe_uninstall.analysis.trace import Loaded
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.names import normalize_name
from safe_uninstall.model.plan import Code, DistributionRef, Finding, Severity
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import Wheel

_CUDA_WHEEL = re.compile(r"-cu(?P<major>1[0-9])(?:[0-9])?$")
"""``nvidia-cudnn-cu12``, ``librmm-cu13``, ``…-cu118``: the suffix that NVIDIA's and RAPIDS' wheels carry."""
_NAMED = 4
"""Libraries that a headline names."""
_LEADING_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedLibrary:
    """A library that a consumer loads, and whose bytes it holds."""

    path: str
    holder: DistributionRef
    required: str | None = None
    """The consumer's requirement, its marker left out, of another distribution that claims the path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedCuda:
    """One distribution that loads libraries of several CUDA majors."""

    consumer: Distribution
    libraries: tuple[MixedLibrary, ...]
    """The rarer majors first, then by path."""
    majors: tuple[int, ...]
    """Sorted."""

    @property
    def own_major(self) -> int | None:
        """The CUDA major of the wheels that the consumer requires, None where these do not agree on one."""
        matches = (_LEADING_NAME.match(text) for text in self.consumer.requires)
        found = {cuda_major(normalize_name(match[1])) for match in matches if match is not None} - {None}
        return found.pop() if len(found) == 1 else None

    @property
    def foreign(self) -> tuple[MixedLibrary, ...]:
        """The libraries of another major than the consumer's own; all of them where that is unknown."""
        own = self.own_major
        found = tuple(item for item in self.libraries if cuda_major(item.holder.name) != own)
        return self.libraries if own is None else found

    @property
    def intruders(self) -> tuple[str, ...]:
        """The names of the distributions that the foreign libraries are of, sorted."""
        return tuple(sorted({item.holder.name for item in self.foreign}))


def cuda_major(name: str) -> int | None:
    """Return the CUDA major that a distribution's name carries, None when it carries none."""
    match = _CUDA_WHEEL.search(name)
    return None if match is None else int(match["major"])


def find_mixed_cuda(snapshot: Snapshot, owners: Owners, baseline: Baseline) -> tuple[MixedCuda, ...]:
    """Return the distributions that load libraries out of wheels of different CUDA majors, sorted by name.

    What counts is whose bytes are on disk, not who claims the path: after an overwrite the metadata says cu12 and the
    library is cu13's. Wheels of CUDA themselves are left out, since they only say it again.

    Args:
        snapshot: the environment.
        owners: who claims which path.
        baseline: the loads of the environment as it is.
    """
    if not _are_several(item.name for item in snapshot.distributions):
        return ()
    loaded = _Loaded(snapshot, owners, ())
    for path in sorted(snapshot.objects):
        owner = next(iter(owners.of(path)), None)
        if owner is not None and cuda_major(owner.name) is None:
            loaded.add(owner, baseline.trace(snapshot.objects[path]).objects)
    return loaded.mixed()


def mixed_cuda_afterwards(
    snapshot: Snapshot, owners: Owners, judge: ChangeJudge, judgement: Judgement
) -> tuple[MixedCuda, ...]:
    """Return the same for the outcome of a change, of the distributions whose libraries it touches.

    Args:
        snapshot: the baseline.
        owners: who claims which path.
        judge: who judged the change.
        judgement: what it does.
    """
    change = judgement.change
    if not _are_several((*(item.name for item in snapshot.distributions), *(wheel.name for wheel in change.wheels))):
        return ()
    ownership = judgement.ownership
    touched = snapshot.objects.keys() & {*ownership.deleted, *ownership.released, *judgement.written}
    names = {name for path in touched for name in names_of(path, snapshot.objects[path])}
    added = {path: item for wheel in change.wheels for path, item in wheel.objects.items()}
    names.update(name for path, item in added.items() for name in names_of(path, item))
    gone = judge.gone(judgement)
    going = {item.metadata_path for item in change.leaving}
    loads = judge.outcome(judgement)
    loaded = _Loaded(snapshot, owners, change.wheels)
    for path in sorted(judge.baseline.names.reaching(names) - gone):
        owner = next((item for item in owners.of(path) if item.metadata_path not in going), None)
        if owner is not None and cuda_major(owner.name) is None:
            root: ElfObject = added.get(path) or judge.baseline.objects[path]
            loaded.add(owner, loads.trace(root).objects)
    return loaded.mixed()


def mixed_cuda_finding(item: MixedCuda) -> Finding:
    """Return what there is to tell of one consumer."""
    consumer = f"`{item.consumer.name}` {item.consumer.version}"
    groups: dict[tuple[str, str | None], list[str]] = {}
    for library in item.foreign:
        groups.setdefault((library.holder.label, library.required), []).append(library.path)
    if item.own_major is None:
        message = f"{consumer} loads libraries of {_in_words(item.majors)}"
    else:
        others = tuple(major for major in item.majors if major != item.own_major)
        message = (
            f"{consumer} requires CUDA {item.own_major}, and loads {_named(groups.values())} of {_in_words(others)}"
        )
    return Finding(
        code=Code.MIXED_CUDA,
        severity=Severity.WARNING,
        message=message,
        distribution=reference(item.consumer),
        path=item.libraries[0].path,
        paths=tuple(sorted(library.path for library in item.foreign)),
        notes=tuple(
            f"{_shortly(paths)} {'is' if len(paths) == 1 else 'are'} of {holder}"
            + ("" if required is None else f"; required is {required}")
            for (holder, required), paths in groups.items()
        ),
    )


def _in_words(majors: tuple[int, ...]) -> str:
    return " and ".join(f"CUDA {major}" for major in majors)


def _shortly(paths: list[str]) -> str:
    name = paths[0].rpartition("/")[2]
    return name if len(paths) == 1 else f"{name} and {len(paths) - 1} more"


def _named(groups: Iterable[list[str]]) -> str:
    """Return the first library of each group, in words."""
    names = [paths[0].rpartition("/")[2] for paths in groups]
    more = len(names) - _NAMED
    return _joined(names if more <= 0 else [*names[:_NAMED], f"{more} more"])


def _joined(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _are_several(names: Iterable[str]) -> bool:
    """Return whether the distributions of these names are of different CUDA majors."""
    return len({cuda_major(name) for name in names} - {None}) > 1


class _Loaded:
    """The CUDA libraries that each distribution loads."""

    def __init__(self, snapshot: Snapshot, owners: Owners, wheels: tuple[Wheel, ...]) -> None:
        self._evidence = snapshot.evidence
        self._owners = owners
        self._wheels = tuple((wheel, frozenset(row.path for row in wheel.rows)) for wheel in wheels)
        self._holders: dict[str, DistributionRef | None] = {}
        self._consumers: dict[str, Distribution] = {}
        self._found: dict[str, dict[str, DistributionRef]] = {}

    def add(self, consumer: Distribution, objects: Iterable[Loaded]) -> None:
        """Note what one load of a consumer brings in."""
        for item in objects:
            holder = self._holder(item.real_path)
            if holder is not None:
                self._consumers[consumer.metadata_path] = consumer
                self._found.setdefault(consumer.metadata_path, {})[item.real_path] = holder

    def mixed(self) -> tuple[MixedCuda, ...]:
        """Return the consumers with libraries of several majors."""
        return tuple(sorted(self._mixed(), key=lambda item: item.consumer.name))

    def _mixed(self) -> Iterator[MixedCuda]:
        for key, holders in self._found.items():
            majors = [cuda_major(holder.name) or 0 for holder in holders.values()]
            if len(set(majors)) < 2:
                continue
            counts = {major: majors.count(major) for major in majors}
            libraries = [
                MixedLibrary(path=path, holder=holder, required=self._required(self._consumers[key], path, holder))
                for path, holder in holders.items()
            ]
            libraries.sort(key=lambda item: (counts[cuda_major(item.holder.name) or 0], item.path))
            yield MixedCuda(
                consumer=self._consumers[key], libraries=tuple(libraries), majors=tuple(sorted(set(majors)))
            )

    def _required(self, consumer: Distribution, path: str, holder: DistributionRef) -> str | None:
        claiming = {item.name for item in self._owners.of(path)} - {holder.name}
        for text in consumer.requires:
            match = _LEADING_NAME.match(text)
            if match is not None and normalize_name(match[1]) in claiming:
                return text.partition(";")[0].strip()
        return None

    def _holder(self, path: str) -> DistributionRef | None:
        """Return whose bytes a library holds, among the wheels that carry a CUDA major."""
        if path not in self._holders:
            self._holders[path] = self._find_holder(path)
        return self._holders[path]

    def _find_holder(self, path: str) -> DistributionRef | None:
        writer = next((wheel for wheel, rows in reversed(self._wheels) if path in rows), None)
        if writer is not None:
            is_cuda = cuda_major(writer.name) is not None
            return DistributionRef(name=writer.name, version=writer.version) if is_cuda else None
        claiming = [item for item in self._owners.of(path) if cuda_major(item.name) is not None]
        if len(claiming) > 1:
            claiming = self._matching(claiming, path)
        return reference(claiming[0]) if claiming else None

    def _matching(self, claiming: list[Distribution], path: str) -> list[Distribution]:
        """Return those whose bytes a shared library holds; its hash is asked for only where its size does not tell."""
        size = self._evidence.size(path)
        rows = [(item, next(row for row in item.record.rows if row.path == path)) for item in claiming]
        fitting = [(item, row) for item, row in rows if row.size in (None, size)]
        if len(fitting) < 2:
            return [item for item, _ in fitting]
        return [item for item, row in fitting if compare(self._evidence, row) is Match.SAME]
