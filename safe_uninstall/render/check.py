"""What an audit found, as text for people."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from safe_uninstall.model.environment import Environment
from safe_uninstall.model.plan import Code, Finding, Severity
from safe_uninstall.render.findings import FindingText
from safe_uninstall.render.style import Style, count, escaped, printable


def render_check(
    findings: tuple[Finding, ...],
    environment: Environment,
    *,
    verbose: bool,
    color: bool,
    quiet: bool = False,
    width: int | None = None,
) -> str:
    """Return findings and the verdict as text, without a last line end.

    Findings that one command mends stand together, above it; the groups with errors come first.

    Args:
        findings: errors first.
        environment: what was looked at.
        verbose: all evidence, all paths.
        color: whether to use colour.
        quiet: errors and the verdict only.
        width: columns to fit into; None: as many as it takes.
    """
    style = Style(color=color)
    shown = replace(
        environment,
        prefix=printable(environment.prefix),
        site_packages=escaped(environment.site_packages),
    )
    writer = FindingText(shown, style, verbose=verbose, width=width, grouped=True)
    told = [item for item in escaped(findings) if not quiet or item.severity is Severity.ERROR]
    lines = [line for group in _grouped(told) for line in (*writer.lines(group), "")]
    severities = [item.severity for item in findings]
    tallies = [count(number, item.value) for item in Severity if (number := severities.count(item))]
    if Severity.ERROR in severities:
        verdict = f"{style.paint('error', 'Damaged')}: {', '.join(tallies)}."
    else:
        verdict = f"{style.paint('good', 'No damage')}{': ' if tallies else ''}{', '.join(tallies)}."
    return "\n".join([*lines, f"{verdict} Nothing changed."])


def _grouped(findings: Iterable[Finding]) -> Iterator[list[Finding]]:
    """Yield findings with the same help together, in the order of the first of each; what cannot be mended alone.

    What the damage does comes before a list of what is damaged.
    """
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for number, item in enumerate(findings):
        groups.setdefault(item.help or (str(number),), []).append(item)
    for group in groups.values():
        yield sorted(group, key=lambda item: item.code is not Code.MIXED_CUDA)
