"""Losses that the user accepts by name: they warn instead of blocking, and a name that is no loss is an error."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from safe_uninstall.analysis.change import Judgement
from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.findings import (
    collision_findings,
    library_findings,
    ownership_findings,
    requirement_findings,
)
from safe_uninstall.analysis.losses import LibraryLoss, LinkageJudgement
from safe_uninstall.analysis.ownership import Overwritten, Owners
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.names import normalize_name
from safe_uninstall.model.plan import Code, Consumer, Finding, Severity

_ACCEPTABLE = frozenset({Code.LIBRARY_LOST, Code.FILE_LOST, Code.REQUIREMENT_LOST, Code.SYMBOLS_LOST, Code.DLOPEN_LOST})


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What the user accepts to lose."""

    names: tuple[str, ...]
    """Sonames, paths (maybe shortened) or distributions, as the user wrote them."""
    owners: Owners
    commands: Commands

    def apply(self, findings: Iterable[Finding]) -> list[Finding]:
        """Turn the errors that are accepted into warnings."""
        return [
            replace(item, severity=Severity.WARNING, accepted=True)
            if item.severity is Severity.ERROR and self._covers(item)
            else item
            for item in findings
        ]

    def check(self, findings: Iterable[Finding]) -> None:
        """Refuse names that mean nothing: a typing error must not pass for consent, nor may a script grow stale.

        Args:
            findings: all that could be meant, accepted or not.

        Raises:
            UsageError: a name that no loss bears.
        """
        losses = [item for item in findings if item.code in _ACCEPTABLE]
        borne = [name for item in losses for names in _subjects(item) for name in names]
        unknown = [name for name in dict.fromkeys(self.names) if not any(_is(name, subject) for subject in borne)]
        if not unknown:
            return
        listed = ", ".join(f"`{name}`" for name in unknown)
        acceptable = ", ".join(dict.fromkeys(_shortest(item) for item in losses))
        raise UsageError(
            f"--accept-loss {listed}: this plan loses no such thing",
            help=(f"what it loses: {acceptable}" if acceptable else "it loses nothing: leave the option out",),
        )

    def remaining(self, judgement: Judgement) -> Judgement:
        """Return a judgement without the losses that are accepted; of others, without the parts that are."""
        if not self.names:
            return judgement
        linkage = judgement.linkage
        return replace(
            judgement,
            ownership=replace(judgement.ownership, overwritten=tuple(self._overwritten(judgement))),
            linkage=replace(
                linkage,
                losses=tuple(self._losses(judgement)),
                changes=tuple(
                    item
                    for item in linkage.changes
                    if not self._accepts(self._library(judgement, LinkageJudgement(changes=(item,))))
                ),
            ),
            requirements=tuple(
                item
                for item in judgement.requirements
                if not self._accepts(requirement_findings((item,), (), self.commands))
            ),
            unmet=tuple(
                item for item in judgement.unmet if not self._accepts(requirement_findings((), (item,), self.commands))
            ),
            collisions=tuple(item for item in judgement.collisions if not self._accepts(collision_findings((item,)))),
        )

    def _overwritten(self, judgement: Judgement) -> Iterator[Overwritten]:
        for item in judgement.ownership.overwritten:
            alone = replace(judgement.ownership, overwritten=(item,), edited=(), damaged=())
            if not self._accepts(ownership_findings(alone, (), self.commands)):
                yield replace(item, paths=tuple(path for path in item.paths if not self._means(path)))

    def _losses(self, judgement: Judgement) -> Iterator[LibraryLoss]:
        for item in judgement.linkage.losses:
            if not self._accepts(self._library(judgement, LinkageJudgement(losses=(item,)))):
                left = tuple(consumer for consumer in item.consumers if not self._means(_name_of(consumer)))
                yield replace(item, consumers=left)

    def _library(self, judgement: Judgement, linkage: LinkageJudgement) -> Iterable[Finding]:
        return library_findings(linkage, self.owners, judgement.ownership, judgement.change.leaving, self.commands)

    def _accepts(self, findings: Iterable[Finding]) -> bool:
        return all(self._covers(item) for item in findings)

    def _covers(self, finding: Finding) -> bool:
        """Return whether the user named something that stands for all of a loss, or each of its parts."""
        if finding.code not in _ACCEPTABLE:
            return False
        whole, parts = _subjects(finding)
        return any(map(self._means, whole)) or (bool(parts) and all(map(self._means, parts)))

    def _means(self, subject: str) -> bool:
        return any(_is(name, subject) for name in self.names)


def _subjects(finding: Finding) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names by which a loss is accepted: those that each stand for all of it, and those for parts of it."""
    references = [finding.distribution, finding.lost, *(claimant.distribution for claimant in finding.claimants)]
    whole = [item.name for item in references if item is not None]
    if finding.soname is not None:
        whole.append(finding.soname)
    if finding.code is Code.FILE_LOST:
        return tuple(whole), finding.paths
    if finding.path is not None:
        whole.append(finding.path)
    return tuple(whole), tuple(sorted({_name_of(item) for item in finding.consumers}))


def _shortest(finding: Finding) -> str:
    """Return the name that says best what is lost."""
    if finding.soname is not None:
        return finding.soname
    lost = finding.lost or finding.distribution
    assert lost is not None
    return lost.name


def _name_of(consumer: Consumer) -> str:
    return consumer.path if consumer.distribution is None else consumer.distribution.name


def _is(name: str, subject: str) -> bool:
    """Return whether what the user wrote means ``subject``: a path, maybe shortened, a soname or a distribution."""
    if subject.startswith("/"):
        return subject == name or subject.endswith(f"/{name}")
    return name == subject or normalize_name(name) == subject
