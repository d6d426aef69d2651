"""Caches of compiled libraries, outside of any environment, that need what a change takes."""

import posixpath
from collections.abc import Iterator
from dataclasses import replace

from safe_uninstall.analysis.change import ChangeJudge, Judgement
from safe_uninstall.analysis.linkage import judge_linkage
from safe_uninstall.analysis.loads import Baseline
from safe_uninstall.analysis.names import names_of
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.model.jit_caches import JitCache
from safe_uninstall.model.plan import Code, Consumer, Finding, Severity
from safe_uninstall.model.snapshot import Snapshot

_NAMES_SHOWN = 3


def cache_findings(snapshot: Snapshot, owners: Owners, judge: ChangeJudge, judgement: Judgement) -> Iterator[Finding]:
    """Yield a note for each cache that holds files which lose what they need; caches are read only if they could.

    A cache is nobody's in particular: its files may be of another environment, and are compiled anew when they fail.

    Args:
        snapshot: the baseline.
        owners: who claims which path.
        judge: who judged the change.
        judgement: what the environment itself loses.
    """
    gone = judge.gone(judgement)
    names = {name for path in snapshot.objects.keys() & gone for name in names_of(path, snapshot.objects[path])}
    for cache in snapshot.caches.read() if names else ():
        wanting = {
            path: item
            for path, item in cache.objects.items()
            if not names.isdisjoint(map(posixpath.basename, item.needed)) and path not in judge.baseline.objects
        }
        if wanting:
            yield from _finding(cache, replace(snapshot, outside=wanting), owners, judge, judgement)


def _finding(
    cache: JitCache, snapshot: Snapshot, owners: Owners, judge: ChangeJudge, judgement: Judgement
) -> Iterator[Finding]:
    change = judgement.change
    found = judge_linkage(
        snapshot,
        owners,
        deleted=judge.deleted(judgement),
        leaving=change.leaving,
        added={path: item for wheel in change.wheels for path, item in wheel.objects.items()},
        baseline=Baseline(snapshot, use_library_path=bool(judge.baseline.library_path)),
    )
    lost: dict[str, None] = {}
    consumers: dict[str, Consumer] = {}
    for loss in found.losses:
        for consumer in loss.consumers:
            if consumer.path in snapshot.outside:
                lost[loss.name] = None
                consumers.setdefault(consumer.path, consumer)
    if not consumers:
        return
    one, shown = len(consumers) == 1, list(lost)
    more = "" if len(shown) <= _NAMES_SHOWN else f" and {len(shown) - _NAMES_SHOWN} more"
    yield Finding(
        code=Code.LIBRARY_LOST,
        severity=Severity.NOTE,
        message=f"{'1 file' if one else f'{len(consumers)} files'} that {cache.name} compiled need{'s' if one else ''}"
        f" {', '.join(shown[:_NAMES_SHOWN])}{more}",
        soname=shown[0],
        consumers=tuple(consumers[path] for path in sorted(consumers)),
        notes=() if cache.is_whole else (f"{cache.directory} is large: only part of it was looked at",),
        help=(f"what is still used is compiled anew; delete {cache.directory} to be rid of the rest",),
    )
