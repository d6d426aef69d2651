"""A plan as text for people: findings with their evidence, what will happen, and the verdict last."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from safe_uninstall.model.outcome import Outcome, OutcomeState
from safe_uninstall.model.plan import Action, ActionKind, Code, Consumer, Finding, Plan, Severity, Verdict
from safe_uninstall.render.paths import Relative, relative_to_site_packages
from safe_uninstall.render.style import Style, count, escaped, printable, size, wrap

_ROWS = 3
"""Evidence rows without ``-v``."""
_OUTPUT_LINES = 10
"""Last lines of a failed installer's output that are shown without ``-v``."""
_CACHE = "ld.so.cache"
_COMMANDS = ("safe-uninstall ", "pip ", "uv ", "conda ", "pixi ", "apt ", "/")


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
    if outcome.state is OutcomeState.COMMITTED:
        lines = output if verbose else []
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
    lines += [f"  {mismatch}" for mismatch in _shortened(mismatches, verbose)]
    lines += [f"  | {line}" for line in (output if verbose else output[-_OUTPUT_LINES:])]
    if outcome.state is OutcomeState.ROLLED_BACK:
        lines.append("Rolled back: the environment is as it was before.")
        return "\n".join(lines)
    if stash is not None:
        lines.append(f"{help}: what is missing is in {stash}")
        lines.append(f"{help}: try again with more room or rights: safe-uninstall recover")
    else:
        lines.append(f"{help}: install the distributions named above again over what is there")
    lines.append("Roll back incomplete: the environment is neither as before nor as planned.")
    return "\n".join(lines)


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
        for number, finding in enumerate(findings):
            following = findings[number + 1] if number + 1 < len(findings) else None
            yield from self._finding(finding, following)
        for alternative in self._plan.alternatives:
            yield from self._wrapped(f"{self._style.paint('help', 'help')}: {alternative.summary}")
            yield f"        {alternative.command}"
        if self._plan.verdict is not Verdict.BLOCK and not quiet:
            yield from _actions(self._plan, self._paths, self._style, self._verbose)
        yield from self._wrapped(_verdict(self._plan, self._style, dry_run))

    def _wrapped(self, text: str, *, indent: int = 2, sealed: str = "") -> list[str]:
        return wrap(text, self._width, indent=indent, sealed=sealed)

    def _finding(self, finding: Finding, following: Finding | None) -> Iterator[str]:
        severity = finding.severity.value
        accepted = " (accepted)" if finding.accepted else ""
        head = self._style.paint(severity, f"{severity}[{finding.code.value}]")
        yield from self._wrapped(f"{head}: {finding.message}{accepted}")
        rows: list[tuple[str, str]] = []
        if finding.code in (Code.LIBRARY_LOST, Code.DLOPEN_LOST, Code.PROVIDER_CHANGED, Code.SYMBOLS_LOST):
            rows += _library_rows(finding, self._paths, self._verbose)
        elif finding.paths:
            rows += _labelled("path", _shortened(self._paths.each(finding.paths), self._verbose))
        elif finding.path is not None:
            rows.append(("path", self._paths(finding.path)))
        column = max((len(label) for label, _ in rows), default=0)
        for label, text in rows:
            yield from self._wrapped(f"  {label:<{column}} {text}".rstrip(), indent=column + 5)
        for note in _shortened(finding.notes, self._verbose):
            text = f"  {self._style.paint('note', 'note')}: {self._paths.in_text(note)}"
            yield from self._wrapped(text, indent=4)
        yield from self._help(finding, following)

    def _help(self, finding: Finding, following: Finding | None) -> Iterator[str]:
        """Prose goes on the line of ``help:``, the command that it is about on a line of its own below it.

        What the next finding of the same code says again is left to it.
        """
        prompt = self._style.paint("help", "help")
        last_of_code = following is None or following.code is not finding.code
        if following is None or last_of_code or following.help != finding.help:
            for number, text in enumerate(finding.help):
                if text.startswith(_COMMANDS):
                    yield f"        {text}" if number else f"{prompt}: {text}"
                else:
                    yield from self._wrapped(f"{prompt}: {text}", sealed=text.partition(": ")[2])
        if finding.severity is Severity.ERROR and last_of_code:
            yield f"{prompt}: what this means   safe-uninstall explain {finding.code.value}"


def _library_rows(finding: Finding, paths: Relative, verbose: bool) -> Iterator[tuple[str, str]]:
    if finding.path is not None:
        yield "library", paths(finding.path)
    yield from _labelled("needed by", _shortened(list(_consumer_rows(finding.consumers, paths, verbose)), verbose))
    claims = []
    for claimant in finding.claimants:
        text = claimant.distribution.label
        if claimant.overwritten:
            text += f", whose own bytes were overwritten: {count(claimant.overwritten, 'file')}"
        claims.append(text)
    yield from _labelled("claimed by", _shortened(claims, verbose))
    if finding.consumers and finding.code in (Code.LIBRARY_LOST, Code.DLOPEN_LOST):
        tried = _also_tried(finding, paths, verbose)
        if tried:
            yield "also tried", ", ".join(tried)


def _consumer_rows(consumers: tuple[Consumer, ...], paths: Relative, verbose: bool) -> Iterator[str]:
    owners = [item.distribution.label if item.distribution is not None else "(unowned)" for item in consumers]
    files = [paths(item.path) for item in consumers]
    shown = len(consumers) if verbose else _ROWS
    owner_width = max((len(owner) for owner in owners[:shown]), default=0)
    file_width = max((len(file) for file in files[:shown]), default=0)
    last = ""
    for consumer, owner, file in zip(consumers, owners, files, strict=True):
        how = "" if consumer.how == last else f"({consumer.how})"
        last = consumer.how
        yield f"{owner:<{owner_width}}   {file:<{file_width}}   {how}".rstrip()
        if verbose and len(consumer.context) > 1:
            yield "  loaded by " + " → ".join(paths(path) for path in consumer.context)


def _also_tried(finding: Finding, paths: Relative, verbose: bool) -> list[str]:
    """Return where else the loader looks in vain; directories of the host are one phrase."""
    searched = finding.consumers[0].searched
    own = finding.path.rpartition("/")[0] if finding.path else ""
    inside = [paths(place) for place in searched if place not in (own, _CACHE) and paths(place) != place]
    if not verbose and len(inside) > _ROWS:
        # The consumer's own directory says more than the tenth of a list of siblings.
        home = paths(finding.consumers[0].path.rpartition("/")[0])
        first = [home] if home in inside else inside[:1]
        inside = [*first, f"{len(inside) - 1} other directories of its search path"]
    tail = []
    if _CACHE in searched:
        tail.append(_CACHE)
        if any(place != _CACHE and paths(place) == place for place in searched):
            tail.append("default directories")
    return [*inside, *tail]


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
    verb, *more = ("Would remove", "restore", "install") if dry_run else ("To remove", "to restore", "to install")
    what = f"{count(len(removed), 'distribution')}, {size(freed)}"
    for kind, word in zip((ActionKind.RESTORE, ActionKind.INSTALL), more, strict=True):
        others = [action for action in plan.actions if action.kind is kind]
        if others:
            what += f"; {word} {len(others)}, {size(sum(action.bytes for action in others))}"
    return f"{style.paint('good', verb)} {what}{tail}.{' Nothing changed.' if dry_run else ''}"


def _tallies(findings: Iterable[Finding]) -> Iterator[str]:
    severities = [finding.severity for finding in findings]
    for severity in (Severity.ERROR, Severity.WARNING):
        number = severities.count(severity)
        if number:
            yield count(number, severity.value)


def _labelled(label: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(texts):
        yield (label if number == 0 else "", text)


def _shortened(texts: "list[str] | tuple[str, ...]", verbose: bool) -> list[str]:
    if verbose or len(texts) <= _ROWS:
        return list(texts)
    return [*texts[:_ROWS], f"… {len(texts) - _ROWS} more"]
