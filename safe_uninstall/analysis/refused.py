"""Says with the findings of a blocked plan why the rewrites that the user allowed do not help."""

from collections.abc import Iterable
from dataclasses import replace

from safe_uninstall.analysis.rewriting import Unresolved
from safe_uninstall.model.plan import Finding, Rewrite, Severity
from safe_uninstall.model.wheel import merged_help


def explain_refusal(findings: Iterable[Finding], rewrites: tuple[Rewrite, ...], found: Unresolved) -> list[Finding]:
    """Add to each error which conditions contradict each other about it, and which wheels are missing.

    What no error is about is told with the first.

    Args:
        findings: of a blocked plan, at least one an error.
        rewrites: what the user allowed.
        found: what came of it.
    """
    told = list(findings)
    errors = [number for number, item in enumerate(told) if item.severity is Severity.ERROR]
    flags = ", ".join(f"--{item.value}" for item in rewrites)
    verb = "does" if len(rewrites) == 1 else "do"
    for cause in found.causes:
        about = [number for number in errors if cause.subject in _subjects(told[number])]
        number = (about or errors)[0]
        told[number] = _noted(told[number], f"{flags} {verb} not help: {cause.words}")
    helped: set[int] = set()
    for missing in found.unavailable:
        names = {text.partition("==")[0] for text in missing.requirement.split()}
        about = [number for number in errors if names & {*_subjects(told[number]), *_claimants(told[number])}]
        for number in about or errors[:1]:
            item = _noted(told[number], f"no wheel for {missing.requirement}: {missing.reason}")
            # How to supply what is missing says more than the help for the loss itself.
            before = item.help if number in helped or not missing.help else ()
            told[number] = replace(item, help=merged_help((*before, *missing.help)))
            helped.add(number)
    return told


def _noted(finding: Finding, note: str) -> Finding:
    return replace(finding, notes=(*finding.notes, note))


def _subjects(finding: Finding) -> tuple[str | None, ...]:
    return finding.soname, None if finding.distribution is None else finding.distribution.name


def _claimants(finding: Finding) -> tuple[str, ...]:
    return tuple(item.distribution.name for item in finding.claimants)
