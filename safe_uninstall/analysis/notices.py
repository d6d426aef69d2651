"""What a plan tells beside its losses: names that stand somewhere, mixed CUDA majors, caches; none of it blocks.

It is worked out for the change that the plan makes and for no other that was considered on the way.
"""

from collections.abc import Iterator

from safe_uninstall.analysis.change import ChangeJudge, Judgement
from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.consumers import cache_findings
from safe_uninstall.analysis.findings import library_findings
from safe_uninstall.analysis.losses import LinkageJudgement
from safe_uninstall.analysis.mixed_cuda import mixed_cuda_afterwards, mixed_cuda_finding
from safe_uninstall.analysis.named import named_losses
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.model.plan import Finding
from safe_uninstall.model.snapshot import Snapshot


def notices(
    snapshot: Snapshot, owners: Owners, judge: ChangeJudge, judgement: Judgement, commands: Commands
) -> Iterator[Finding]:
    """Yield warnings and notes about a change that touches ELF files.

    Args:
        snapshot: the baseline.
        owners: who claims which path.
        judge: who judged the change.
        judgement: what it does.
        commands: makes the help.
    """
    if snapshot.system.libc != "glibc":
        return
    named = LinkageJudgement(losses=named_losses(snapshot, owners, judge, judgement))
    yield from library_findings(named, owners, judgement.ownership, judgement.change.leaving, commands)
    yield from map(mixed_cuda_finding, mixed_cuda_afterwards(snapshot, owners, judge, judgement))
    yield from cache_findings(snapshot, owners, judge, judgement)
