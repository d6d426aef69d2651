"""A plan as text for people: findings with their evidence, what will happen, and the verdict last."""

from collections.abc import Iterable, Iterator

from safe_uninstall.model.environment import Environment
from safe_uninstall.model.outcome import Outcome, OutcomeState
from safe_uninstall.model.plan import ActionKind, Code, Consumer, Finding, Plan, Severity, Verdict
from safe_uninstall.render.style import Style, count, printable, size

_ROWS = 3
"""Evidence rows without ``-v``."""
_CACHE = "ld.so.cache"
_COMMANDS = ("safe-uninstall ", "pip ", "uv ", "conda ", "pixi ", "apt ", "/")


def render_plan(plan: Plan, *, verbose: bool, color: bool, dry_run: bool = False, quiet: bool = False) -> str:
    """Return a plan as text, without a last line end.

    Args:
        plan: what to show.
        verbose: all evidence, all paths.
        color: whether to use colour.
        dry_run: whether the plan is only shown.
        quiet: leave out what will happen to each distribution.
    """
    style = Style(color=color)
    blocks = [_finding(finding, plan, style, verbose) for finding in plan.findings]
    if plan.verdict is not Verdict.BLOCK and not quiet:
        blocks.append(_actions(plan, style, verbose))
    blocks.append(_verdict(plan, style, dry_run))
    return printable("\n".join(blocks))


def render_outcome(outcome: Outcome, *, verbose: bool, color: bool) -> str:
    """Return how a run ended, without a last line end."""
    style = Style(color=color)
    lines: list[str] = []
    if outcome.state is OutcomeState.COMMITTED:
        if verbose and outcome.installer_output:
            lines += outcome.installer_output.splitlines()
        if outcome.stash is not None:
            lines.append(f"Backup kept in {outcome.stash}")
        removed = [action for action in outcome.plan.actions if action.kind is ActionKind.UNINSTALL]
        labels = ", ".join(action.distribution.label for action in removed)
        kept = sum(len(action.paths) for action in outcome.plan.actions if action.kind is ActionKind.RELEASE)
        tail = f" Kept {count(kept, 'file')} that others own." if kept else ""
        lines.append(f"{style.paint('good', 'Removed')} {labels} ({size(outcome.bytes_freed)}).{tail}")
        return printable("\n".join(lines))
    relative = _Paths(outcome.plan.environment)
    lines.append(f"{style.paint('error', 'error[failed]')}: {outcome.reason}")
    shown = outcome.mismatches if verbose else outcome.mismatches[:_ROWS]
    lines += [f"  {relative.in_text(mismatch)}" for mismatch in shown]
    if len(shown) < len(outcome.mismatches):
        lines.append(f"  … {len(outcome.mismatches) - len(shown)} more")
    if outcome.installer_output:
        output = outcome.installer_output.splitlines()
        lines += [f"  | {line}" for line in (output if verbose else output[-10:])]
    if outcome.state is OutcomeState.ROLLED_BACK:
        lines.append("Rolled back: the environment is as it was before.")
    else:
        if outcome.stash is not None:
            lines.append(f"{style.paint('help', 'help')}: what is missing is in {outcome.stash}")
            lines.append("help: try again with more room or rights: safe-uninstall recover")
        else:
            lines.append(
                f"{style.paint('help', 'help')}: install the distributions named above again over what is there"
            )
        lines.append("Roll back incomplete: the environment is neither as before nor as planned.")
    return printable("\n".join(lines))


class _Paths:
    """Shows paths relative to site-packages, or else to the prefix."""

    def __init__(self, environment: Environment) -> None:
        self._roots = [f"{root}/" for root in (*environment.site_packages, environment.prefix)]

    def show(self, path: str) -> str:
        for root in self._roots:
            if path.startswith(root):
                return path[len(root) :]
        return path

    def in_text(self, text: str) -> str:
        for root in self._roots:
            text = text.replace(root, "")
        return text


def _finding(finding: Finding, plan: Plan, style: Style, verbose: bool) -> str:
    paths = _Paths(plan.environment)
    severity = finding.severity.value
    accepted = " (accepted)" if finding.accepted else ""
    lines = [f"{style.paint(severity, f'{severity}[{finding.code.value}]')}: {finding.message}{accepted}"]
    rows: list[tuple[str, str]] = []
    if finding.code in (Code.LIBRARY_LOST, Code.DLOPEN_LOST, Code.PROVIDER_CHANGED, Code.SYMBOLS_LOST):
        rows += _library_rows(finding, paths, verbose)
    elif finding.paths:
        rows += _labelled("path", _shortened([paths.show(path) for path in finding.paths], verbose))
    elif finding.path is not None:
        rows.append(("path", paths.show(finding.path)))
    width = max((len(label) for label, _ in rows), default=0)
    lines += [f"  {label:<{width}} {text}".rstrip() for label, text in rows]
    lines += [f"  {style.paint('note', 'note')}: {paths.in_text(note)}" for note in _shortened(finding.notes, verbose)]
    lines += _help(finding, style)
    return "\n".join(lines)


def _help(finding: Finding, style: Style) -> Iterator[str]:
    """Prose goes on the line of ``help:``, a whole command on a line of its own below it."""
    for text in finding.help:
        if text.startswith(_COMMANDS):
            yield f"        {text}"
        else:
            yield f"{style.paint('help', 'help')}: {text}"
    if finding.severity is Severity.ERROR:
        yield f"{style.paint('help', 'help')}: what this means   safe-uninstall explain {finding.code.value}"


def _library_rows(finding: Finding, paths: _Paths, verbose: bool) -> Iterator[tuple[str, str]]:
    if finding.path is not None:
        yield "library", paths.show(finding.path)
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


def _consumer_rows(consumers: tuple[Consumer, ...], paths: _Paths, verbose: bool) -> Iterator[str]:
    owners = [item.distribution.label if item.distribution is not None else "(unowned)" for item in consumers]
    files = [paths.show(item.path) for item in consumers]
    shown = len(consumers) if verbose else _ROWS
    owner_width = max((len(owner) for owner in owners[:shown]), default=0)
    file_width = max((len(file) for file in files[:shown]), default=0)
    last = ""
    for consumer, owner, file in zip(consumers, owners, files, strict=True):
        how = "" if consumer.how == last else f"({consumer.how})"
        last = consumer.how
        yield f"{owner:<{owner_width}}   {file:<{file_width}}   {how}".rstrip()
        if verbose and len(consumer.context) > 1:
            yield "  loaded by " + " → ".join(paths.show(path) for path in consumer.context)


def _also_tried(finding: Finding, paths: _Paths, verbose: bool) -> list[str]:
    """Return where else the loader looks in vain; directories of the host are one phrase."""
    searched = finding.consumers[0].searched
    own = finding.path.rpartition("/")[0] if finding.path else ""
    inside = [paths.show(place) for place in searched if place not in (own, _CACHE) and paths.show(place) != place]
    if not verbose and len(inside) > _ROWS:
        # The consumer's own directory says more than the tenth of a list of siblings.
        home = paths.show(finding.consumers[0].path.rpartition("/")[0])
        first = [home] if home in inside else inside[:1]
        inside = [*first, f"{len(inside) - 1} other directories of its search path"]
    tail = []
    if _CACHE in searched:
        tail.append(_CACHE)
        if any(place != _CACHE and paths.show(place) == place for place in searched):
            tail.append("default directories")
    return [*inside, *tail]


def _actions(plan: Plan, style: Style, verbose: bool) -> str:
    paths = _Paths(plan.environment)
    words = {
        ActionKind.UNINSTALL: "remove",
        ActionKind.RELEASE: "keep",
        ActionKind.RESTORE: "restore",
        ActionKind.INSTALL: "install",
        ActionKind.KEEP: "keep",
    }
    lines = []
    for action in plan.actions:
        what = f"{count(len(action.paths), 'file')}, {size(action.bytes)}"
        tail = f" of {action.distribution.label}" if action.kind is ActionKind.RELEASE else ""
        head = what if action.kind is ActionKind.RELEASE else f"{action.distribution.label}   {what}"
        reason = "" if action.kind is ActionKind.UNINSTALL and action.requested else f"   {action.reason}"
        lines.append(f"  {style.paint('code', f'{words[action.kind]:<7}')} {head}{tail}{reason}")
        if verbose:
            lines += [f"            {paths.show(path)}" for path in action.paths]
    return "\n".join(lines)


def _verdict(plan: Plan, style: Style, dry_run: bool) -> str:
    requested = len({action.distribution for action in plan.actions if action.requested})
    if plan.verdict is Verdict.BLOCK:
        tallies = [f"{requested} requested", *_tallies(plan.findings)]
        return f"{style.paint('error', 'Blocked')}: {', '.join(tallies)}. Nothing changed."
    freed = sum(action.bytes for action in plan.actions if action.kind is ActionKind.UNINSTALL)
    tallies = list(_tallies(plan.findings, notes=False))
    tail = f", {', '.join(tallies)}" if tallies else ""
    what = f"{count(requested, 'distribution')}, {size(freed)}{tail}"
    verb = "Would remove" if dry_run else "To remove"
    return f"{style.paint('good', verb)} {what}.{' Nothing changed.' if dry_run else ''}"


def _tallies(findings: Iterable[Finding], *, notes: bool = False) -> Iterator[str]:
    severities = [finding.severity for finding in findings]
    for severity in (Severity.ERROR, Severity.WARNING, *((Severity.NOTE,) if notes else ())):
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
