"""A plan as a diff that people review: ``-`` goes, ``+`` comes, ``=`` stays though something about it changes.

The text depends on the plan alone: it is sorted, holds no time, and no absolute path of the environment below its
header, so that two environments alike under two prefixes give two texts that differ in the header only.
"""

import posixpath
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from safe_uninstall.model.plan import (
    Action,
    ActionKind,
    BindingChange,
    Code,
    DistributionRef,
    Finding,
    Plan,
    Severity,
    Verdict,
)
from safe_uninstall.render.findings import FindingText
from safe_uninstall.render.paths import relative_to_site_packages
from safe_uninstall.render.style import Style, count, escaped, printable, size

_GUTTERS = {
    ActionKind.UNINSTALL: "-",
    ActionKind.RELEASE: "=",
    ActionKind.RESTORE: "=",
    ActionKind.INSTALL: "+",
    ActionKind.KEEP: "=",
}
_PAINT = {"-": "error", "+": "good", "=": "note", "@": "code"}
_DEPTH = 2
"""Directories by which files are grouped: ``nvidia/cudnn``."""


def render_diff(plan: Plan, *, verbose: bool, color: bool) -> str:
    """Return a plan as a diff, without a last line end.

    Args:
        plan: what to show.
        verbose: every path instead of directories.
        color: whether gutters are painted too; they carry the meaning.
    """
    return "\n".join(_Diff(plan, Style(color=color), verbose).lines())


class _Diff:
    def __init__(self, plan: Plan, style: Style, verbose: bool) -> None:
        self._style = style
        self._verbose = verbose
        environment = replace(
            plan.environment,
            prefix=printable(plan.environment.prefix),
            site_packages=escaped(plan.environment.site_packages),
        )
        self._plan = replace(
            plan,
            environment=environment,
            actions=escaped(plan.actions),
            findings=escaped(plan.findings),
            alternatives=escaped(plan.alternatives),
            bindings=escaped(plan.bindings),
        )
        self._paths = relative_to_site_packages(environment)
        self._here = "" if plan.request.python is None else f"-p {shlex.quote(plan.request.python)} "

    def lines(self) -> Iterator[str]:
        plan = self._plan
        yield f"--- {plan.environment.prefix}   Python {plan.environment.python_version}, {plan.installer.value}"
        yield f"+++ {plan.verdict.value}: {self._request()}"
        yield f"    {plan.fingerprint}"
        yield from self._hunk("distributions", self._distributions())
        yield from self._hunk("files", self._files())
        yield from self._hunk("bindings", (self._binding(item) for item in plan.bindings))
        yield from self._hunk("findings", self._findings())

    def _request(self) -> str:
        request = self._plan.request
        words = ["check", "--fix"] if request.repair else list(request.names)
        words += [f"--{rewrite.value}" for rewrite in request.rewrites if not request.repair]
        words += [f"--install {shlex.quote(item)}" for item in request.install]
        words += [f"--accept-loss {shlex.quote(item)}" for item in request.accepted_losses]
        return printable(" ".join(["safe-uninstall", *words]))

    def _hunk(self, title: str, lines: Iterable[str]) -> Iterator[str]:
        """Yield a heading with the lines below it; nothing where there is none."""
        found = list(lines)
        if found:
            yield self._style.paint("code", f"@@ {title} @@")
            yield from (self._painted(line) for line in found)

    def _painted(self, line: str) -> str:
        role = _PAINT.get(line[:1])
        return line if role is None else self._style.paint(role, line[0]) + line[1:]

    def _distributions(self) -> Iterator[str]:
        for action in self._plan.actions:
            if action.kind is ActionKind.RELEASE:
                continue
            label = action.distribution.label
            reason = "" if action.requested and action.kind is ActionKind.UNINSTALL else self._reason(action)
            what = f"   {count(len(action.paths), 'file')}, {size(action.bytes)}" if action.paths else ""
            yield f"{_GUTTERS[action.kind]} {label}{what}   {reason}".rstrip()

    def _reason(self, action: Action) -> str:
        """Return why; where a wheel comes from depends on what caches hold today."""
        reason = action.reason
        for wheel in self._plan.wheels:
            source = f"from {wheel.source}"
            reason = reason.removesuffix(f", {source}").removeprefix(f"{source}, ")
            reason = "" if reason == source else reason
        return reason

    def _files(self) -> Iterator[str]:
        lost = {
            path: finding.distribution
            for finding in self._plan.findings
            if finding.code is Code.FILE_LOST and finding.distribution is not None
            for path in finding.paths
        }
        for action in self._plan.actions:
            if not action.paths:
                continue
            gutter = _GUTTERS[action.kind]
            if self._verbose:
                yield from (f"{gutter} {path}   {action.distribution.name}" for path in self._paths.each(action.paths))
                continue
            for directory, paths in self._grouped(action):
                what = f"{gutter} {directory}   {count(len(paths), 'file')} of {action.distribution.name}"
                if action.kind is ActionKind.RELEASE:
                    what += f"   {action.reason}"
                elif action.kind is ActionKind.RESTORE:
                    what += "   written again"
                elif action.kind is ActionKind.UNINSTALL:
                    what += _claimed(paths, lost)
                yield what

    def _grouped(self, action: Action) -> Iterator[tuple[str, list[str]]]:
        """Yield directories with those files of an action that are below each, sorted."""
        groups: dict[str, list[str]] = {}
        for path in action.paths:
            shown = self._paths(path)
            parts = posixpath.dirname(shown).split("/")
            depth = 1 if parts[0].endswith(".dist-info") else _DEPTH
            groups.setdefault("/".join(parts[:depth]) + "/" if parts[0] else shown, []).append(path)
        yield from sorted(groups.items())

    def _binding(self, change: BindingChange) -> str:
        consumer = change.consumer
        owner = "(unowned)" if consumer.distribution is None else consumer.distribution.label
        what = f"{owner}   {self._paths(consumer.path)}   {change.name}"
        before = self._paths(change.before) if change.before else "?"
        if change.after is None:
            return f"- {what}: {before} ({consumer.how}) -> nothing"
        if change.after == change.before:
            return f"= {what}: {before} (the same path, {self._whose(change.after)})"
        return f"= {what}: {before} -> {self._paths(change.after)} ({consumer.how})"

    def _whose(self, path: str) -> str:
        """Return whose bytes a path has afterwards, where that changes."""
        for action in self._plan.actions:
            if action.kind in (ActionKind.RESTORE, ActionKind.INSTALL) and path in action.paths:
                return f"then the bytes of {action.distribution.label}"
        return "its own bytes"

    def _findings(self) -> Iterator[str]:
        plan = self._plan
        writer = FindingText(plan.environment, self._style, verbose=self._verbose, width=None)
        findings = [_without_place(item, self._here) for item in plan.findings]
        # Spaces keep the lines from being taken for gutters.
        yield from (f"  {line}" for line in writer.lines(findings))
        for alternative in plan.alternatives:
            yield f"  {self._style.paint('help', 'help')}: {alternative.summary}"
            yield f"          {alternative.command.replace(self._here, '', 1)}"
        if plan.verdict is Verdict.BLOCK:
            errors = sum(item.severity is Severity.ERROR for item in plan.findings)
            yield f"  Blocked: {count(errors, 'error')}. None of this is done."


def _without_place(finding: Finding, place: str) -> Finding:
    """Return a finding whose commands do not say where the environment is: the header does."""
    return replace(finding, help=tuple(text.replace(place, "", 1) if place else text for text in finding.help))


def _claimed(paths: Iterable[str], lost: Mapping[str, DistributionRef]) -> str:
    """Return which survivors claim some of ``paths`` that they would lose, in a clause."""
    numbers: dict[str, int] = {}
    for path in paths:
        if path in lost:
            numbers[lost[path].label] = numbers.get(lost[path].label, 0) + 1
    return "".join(f", {number} of them claimed by {label}" for label, number in sorted(numbers.items()))
