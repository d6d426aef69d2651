"""A plan as text for people: findings with their evidence, what will happen, and the verdict last."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from safe_uninstall.analysis.commands import our_command
from safe_uninstall.model.outcome import Outcome, OutcomeState
from safe_uninstall.model.plan import Action, ActionKind, Finding, Plan, Severity, Verdict
from safe_uninstall.render.findings import FindingText, shortened
from safe_uninstall.render.paths import Relative, relative_to_site_packages
from safe_uninstall.render.style import Style, count, escaped, printable, size, wrap

_PROBE_LINES = 3
"""Lines of a failed probe's output: the end of a traceback says what it was."""
_OUTPUT_LINES = 10
"""Last lines of a failed installer's output that are shown without ``-v``."""


def render_plan(
    plan: Plan,
    *,
    verbose: bool,
    color: bool,
    dry_run: bool = False,
    quiet: bool = False,
    width: int | None = None,
) -> str:
    """Return a plan as text, without a last line end.

    Args:
        plan: what to show.
        verbose: all evidence, all paths.
        color: whether to use colour.
        dry_run: whether the plan is only shown.
        quiet: errors and the verdict only.
        width: columns to fit into; None: as many as it takes.
    """
    shown = replace(
        plan,
        environment=replace(
            plan.environment,
            prefix=printable(plan.environment.prefix),
            site_packages=escaped(plan.environment.site_packages),
        ),
        actions=escaped(plan.actions),
        findings=escaped(plan.findings),
        alternatives=escaped(plan.alternatives),
    )
    return "\n".join(_PlanText(shown, Style(color=color), verbose, width).lines(dry_run=dry_run, quiet=quiet))


def render_outcome(outcome: Outcome, *, verbose: bool, color: bool) -> str:
    """Return how a run ended, without a last line end."""
    style = Style(color=color)
    output = [printable(line.expandtabs()) for line in outcome.installer_output.splitlines()]
    stash = None if outcome.stash is None else printable(outcome.stash)
    probes = zip(outcome.plan.probes, outcome.probes, strict=False)
    broken = next((run for before, run in probes if before.passed and not run.passed), None)
    if broken is not None:
        output = [printable(line.expandtabs()) for line in broken.output.splitlines()]
    if outcome.state is OutcomeState.COMMITTED:
        lines = output if verbose else []
        lines += _probe_lines(outcome, style)
        if stash is not None:
            lines.append(f"Backup kept in {stash}")
        actions = escaped(outcome.plan.actions)
        parts = []
        if labels := _labels(actions, ActionKind.UNINSTALL):
            parts.append(f"{style.paint('good', 'Removed')} {labels} ({size(outcome.bytes_freed)}).")
        for kind, verb in (
            (ActionKind.RESTORE, "Restored"),
            (ActionKind.INSTALL, "Installed"),
            (ActionKind.KEEP, "Kept"),
        ):
            if labels := _labels(actions, kind):
                parts.append(f"{style.paint('good', verb)} {labels}.")
        kept = sum(len(action.paths) for action in actions if action.kind is ActionKind.RELEASE)
        if kept:
            parts.append(f"Kept {count(kept, 'file')} that others own.")
        lines.append(" ".join(parts))
        return "\n".join(lines)
    relative = relative_to_site_packages(outcome.plan.environment)
    help = style.paint("help", "help")
    lines = [f"{style.paint('error', 'error[failed]')}: {printable(outcome.reason or 'the run did not end')}"]
    mismatches = [printable(relative.in_text(mismatch)) for mismatch in outcome.mismatches]
    lines += [f"  {mismatch}" for mismatch in shortened(mismatches, verbose)]
    lines += [f"  | {line}" for line in (output if verbose else output[-_OUTPUT_LINES:])]
    if outcome.state is OutcomeState.ROLLED_BACK:
        lines.append("Rolled back: the environment is as it was before.")
        return "\n".join(lines)
    if stash is not None:
        lines.append(f"{help}: what is missing is in {stash}")
        again = printable(our_command(outcome.plan.request.python, "recover"))
        lines.append(f"{help}: try again with more room or rights: {again}")
    else:
        lines.append(f"{help}: install the distributions named above again over what is there")
    lines.append("Roll back incomplete: the environment is neither as before nor as planned.")
    return "\n".join(lines)


def _probe_lines(outcome: Outcome, style: Style) -> Iterator[str]:
    for before, run in zip(outcome.plan.probes, outcome.probes, strict=True):
        label = printable(run.label)
        if run.passed:
            change = "" if before.passed else ", which failed before"
            yield f"{style.paint('good', 'Probe passed')}: {label}{change}"
        else:
            yield f"{style.paint('warning', 'Probe failed')}: {label}, as it did before: {run.failure}"


def _labels(actions: Iterable[Action], kind: ActionKind) -> str:
    return ", ".join(action.distribution.label for action in actions if action.kind is kind)


class _PlanText:
    """Writes one plan, line by line."""

    def __init__(self, plan: Plan, style: Style, verbose: bool, width: int | None) -> None:
        self._plan = plan
        self._style = style
        self._verbose = verbose
        self._width = width
        self._paths = relative_to_site_packages(plan.environment)

    def lines(self, *, dry_run: bool, quiet: bool) -> Iterator[str]:
        findings = [item for item in self._plan.findings if not quiet or item.severity is Severity.ERROR]
        writer = FindingText(self._plan.environment, self._style, verbose=self._verbose, width=self._width)
        yield from writer.lines(findings)
        for alternative in self._plan.alternatives:
            yield from self._wrapped(f"{self._style.paint('help', 'help')}: {alternative.summary}")
            yield f"        {alternative.command}"
        if not quiet:
            yield from self._probes()
        if self._plan.verdict is not Verdict.BLOCK and not quiet:
            yield from self._unseen()
            yield from _actions(self._plan, self._paths, self._style, self._verbose)
        yield from self._wrapped(_verdict(self._plan, self._style, dry_run))

    def _probes(self) -> Iterator[str]:
        """Say of probes what a user cannot know: that they failed before anything was changed, or told nothing."""
        for run in self._plan.probes:
            label = printable(run.label)
            if not run.passed:
                warning = self._style.paint("warning", "warning")
                yield from self._wrapped(f"{warning}: the probe `{label}` fails already: {run.failure}")
                lines = [line for line in run.output.splitlines() if line.strip()]
                yield from (f"  | {printable(line.expandtabs())}" for line in lines[-_PROBE_LINES:])
                help = self._style.paint("help", "help")
                yield from self._wrapped(f"{help}: mend it first, or leave it out: it will not be blamed on the change")
            elif run.mapped is None:
                note = self._style.paint("note", "note")
                yield from self._wrapped(f"{note}: the probe `{label}` ended without telling which libraries it mapped")

    def _unseen(self) -> Iterator[str]:
        number = self._plan.unseen_processes
        if number:
            who = "1 process" if number == 1 else f"{number} processes"
            note = self._style.paint("note", "note")
            yield from self._wrapped(f"{note}: {who} may not be looked at by this user; files in use may be missed")

    def _wrapped(self, text: str, *, indent: int = 2, sealed: str = "") -> list[str]:
        return wrap(text, self._width, indent=indent, sealed=sealed)


def _actions(plan: Plan, paths: Relative, style: Style, verbose: bool) -> Iterator[str]:
    words = {
        ActionKind.UNINSTALL: "remove",
        ActionKind.RELEASE: "keep",
        ActionKind.RESTORE: "restore",
        ActionKind.INSTALL: "install",
        ActionKind.KEEP: "keep",
    }
    for action in plan.actions:
        what = f"{count(len(action.paths), 'file')}, {size(action.bytes)}" if action.paths else ""
        tail = f" of {action.distribution.label}" if action.kind is ActionKind.RELEASE else ""
        head = what if action.kind is ActionKind.RELEASE else f"{action.distribution.label}   {what}".rstrip()
        reason = "" if action.kind is ActionKind.UNINSTALL and action.requested else f"   {action.reason}"
        yield f"  {style.paint('code', f'{words[action.kind]:<7}')} {head}{tail}{reason}"
        if verbose:
            yield from (f"            {paths(path)}" for path in action.paths)


def _verdict(plan: Plan, style: Style, dry_run: bool) -> str:
    removed = {action.distribution for action in plan.actions if action.kind is ActionKind.UNINSTALL}
    requested = len({action.distribution for action in plan.actions if action.requested})
    if plan.verdict is Verdict.BLOCK:
        tallies = [f"{requested} requested", *_tallies(plan.findings)]
        return f"{style.paint('error', 'Blocked')}: {', '.join(tallies)}. Nothing changed."
    freed = sum(action.bytes for action in plan.actions if action.kind is ActionKind.UNINSTALL)
    tallies = list(_tallies(plan.findings))
    tail = f", {', '.join(tallies)}" if tallies else ""
    parts = [f"remove {count(len(removed), 'distribution')}, {size(freed)}"] if removed else []
    for kind, word in ((ActionKind.RESTORE, "restore"), (ActionKind.INSTALL, "install")):
        others = [action for action in plan.actions if action.kind is kind]
        if others:
            number = str(len(others)) if parts else count(len(others), "distribution")
            parts.append(f"{word} {number}, {size(sum(action.bytes for action in others))}")
    if not parts:
        return f"{style.paint('good', 'Nothing to do')}{tail}. Nothing changed."
    verb, _, first = parts[0].partition(" ")
    lead = style.paint("good", f"{'Would' if dry_run else 'To'} {verb}")
    return f"{lead} {'; '.join([first, *parts[1:]])}{tail}.{' Nothing changed.' if dry_run else ''}"


def _tallies(findings: Iterable[Finding]) -> Iterator[str]:
    severities = [finding.severity for finding in findings]
    for severity in (Severity.ERROR, Severity.WARNING):
        number = severities.count(severity)
        if number:
            yield count(number, severity.value)
