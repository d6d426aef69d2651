"""Plans a request, shows it, asks, carries it out and reports: the one path of every command that changes things."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from safe_uninstall import __version__
from safe_uninstall.cli.options import Common
from safe_uninstall.cli.output import ProgressLine, print_data, print_talk, terminal_width
from safe_uninstall.cli.place import find_place, name_inside, paths_inside, refuse_change, words_given
from safe_uninstall.cli.unfinished import warn_of_unfinished
from safe_uninstall.model.environment import Programs
from safe_uninstall.model.errors import EnvironmentNotFound, NotInstalled, UsageError
from safe_uninstall.model.outcome import ExitStatus, OutcomeState
from safe_uninstall.model.plan import Request, Rewrite, Verdict

if TYPE_CHECKING:
    from safe_uninstall.cli.plan_file import SavedPlan
    from safe_uninstall.cli.wheels import LazyWheels
    from safe_uninstall.model.environment import Environment
    from safe_uninstall.model.history import History
    from safe_uninstall.model.outcome import Outcome
    from safe_uninstall.model.plan import Plan
    from safe_uninstall.model.probe import ProbeRun
    from safe_uninstall.model.snapshot import Snapshot

_STATUS = {
    OutcomeState.COMMITTED: ExitStatus.DONE,
    OutcomeState.ROLLED_BACK: ExitStatus.ROLLED_BACK,
    OutcomeState.ROLLBACK_INCOMPLETE: ExitStatus.ROLLBACK_INCOMPLETE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a request is carried out; what is asked for is in the request."""

    yes: bool
    dry_run: bool
    as_json: bool
    as_diff: bool = False
    """Show the plan as a diff; with ``dry_run`` only."""
    as_html: bool = False
    """Show the plan as a page, or save it as one; with ``dry_run`` only."""
    output: str | None = None
    """Where the plan is saved, None: nowhere."""
    keep_backup: bool = False
    reviewed: SavedPlan | None = None
    """What must be planned again for the run to go on."""


class PlanRun:
    """One request on one environment: planned once, shown, and carried out if that was wanted."""

    def __init__(self, common: Common, request: Request, options: RunOptions) -> None:
        """Keep what is asked for."""
        self._common = common
        self._request = request
        self._options = options
        self._line = ProgressLine(enabled=not common.quiet and not options.as_json)
        self._wheels: LazyWheels | None = None
        self._probes: tuple[ProbeRun, ...] = ()
        self._history: History | None = None

    def run(self) -> int:
        """Do it, and return the exit status.

        Raises:
            SafeUninstallError: the request cannot be judged or carried out; nothing was changed.
        """
        environment = find_place(self._common, tell=self._options.dry_run and not self._options.as_json)
        if self._common.root is not None:
            return self._run_mounted(environment)
        if self._request.undo is not None:
            from safe_uninstall.cli.past import stored_history

            self._history = stored_history(environment)
        elif not self._request.rewrites and not self._request.install and not self._may_choose():
            return self._run(environment)
        from safe_uninstall.cli.wheels import LazyWheels, repeated

        with LazyWheels(
            environment,
            find_links=self._request.find_links,
            no_index=self._request.no_index,
            progress=self._tell,
            show=not self._common.quiet and not self._options.as_json and sys.stderr.isatty(),
            again=lambda place: repeated(self._request, place),
        ) as self._wheels:
            return self._run(environment)

    def _run_mounted(self, environment: Environment) -> int:
        """Plan for an environment in a mounted tree; neither may anything change in it, nor run from it."""
        request, words = self._request, words_given()
        if request.probes:
            raise refuse_change(environment, "--root looks only, and a probe runs code of the environment", words)
        if request.install or {Rewrite.RESTORE, Rewrite.SUBSTITUTE} & {*request.rewrites}:
            what = "--root looks only, and the wheels for this are chosen by the environment's own installer"
            raise refuse_change(environment, what, words)
        if not self._options.dry_run:
            raise refuse_change(environment, "--root looks only", words, "look at it: add --dry-run")
        # What the help says is said to somebody in the tree, where nobody knows which programs there are.
        self._request = replace(
            request,
            python=name_inside(environment),
            programs=Programs(),
            tool_prefix=None,
            consumers_in=paths_inside(request.consumers_in, environment),
        )
        return self._run(environment)

    def _may_choose(self) -> bool:
        return not self._options.yes and not self._options.dry_run and not self._options.as_json and _can_ask()

    def _tell(self, text: str) -> None:
        self._line.close()
        if not self._common.quiet and not self._options.as_json:
            print_talk(f"{text} …")

    def _run(self, environment: Environment) -> int:
        installed: frozenset[str] = frozenset()
        try:
            snapshot = self._scan(environment)
            installed = frozenset(item.name for item in snapshot.distributions)
            plan = self._plan(snapshot)
            if self._request.probes:
                # What cannot be planned at all is said before a probe takes minutes.
                self._probe(environment)
                plan = self._plan(snapshot)
        except NotInstalled as error:
            if self._options.reviewed is None:
                raise
            raise self._options.reviewed.gone(error.names, installed) from None
        finally:
            self._line.close()
        if self._options.reviewed is not None:
            self._options.reviewed.refuse_unless_same(plan, __version__)
        elif plan.alternatives and self._may_choose():
            self._show(plan)
            chosen = _choose(plan)
            if chosen is None:
                return ExitStatus.BLOCKED
            self._request = replace(self._request, rewrites=(*self._request.rewrites, *chosen))
            plan = self._plan(snapshot)
        if self._options.output and not self._options.as_html:
            _save(plan, self._options.output)
        if self._options.dry_run or plan.verdict is Verdict.BLOCK or not plan.changes:
            warn_of_unfinished(environment, self._common)
            self._show(plan)
            return ExitStatus.BLOCKED if plan.verdict is Verdict.BLOCK else ExitStatus.DONE
        _refuse_foreign_machine(plan.environment)
        if not self._options.yes and not _can_ask():
            raise UsageError(
                "there is no terminal to ask on", help=("say yes beforehand: --yes", "or look only: --dry-run")
            )
        if not self._options.as_json:
            self._show(plan)
        if not self._options.yes and not _confirmed():
            print_talk("Nothing changed.")
            return ExitStatus.FAILURE
        return self._execute(plan, environment)

    def _scan(self, environment: Environment) -> Snapshot:
        from safe_uninstall.scan.snapshot import scan

        return scan(
            environment,
            variables=os.environ,
            progress=self._line.update,
            consumers_in=self._request.consumers_in,
        )

    def _probe(self, environment: Environment) -> None:
        """Run the probes, once for all plans of this run."""
        from safe_uninstall.execute.interrupts import Interrupted, interruptible

        self._line.update("probing")
        try:
            # A signal that ended this process at once would leave the probe running.
            with interruptible():
                self._probes = tuple(self._run_probe(environment, code) for code in self._request.probes)
        except Interrupted:
            raise KeyboardInterrupt from None

    def _run_probe(self, environment: Environment, code: str) -> ProbeRun:
        from safe_uninstall.scan.probe import run_probe

        return run_probe(environment, code, timeout=self._request.probe_timeout, variables=os.environ)

    def _plan(self, snapshot: Snapshot) -> Plan:
        from safe_uninstall.analysis.plan import make_plan

        return make_plan(snapshot, self._request, self._wheels, probes=self._probes, history=self._history)

    def _show(self, plan: Plan) -> None:
        if self._options.as_json:
            from safe_uninstall.render.document import plan_document, to_json

            print_data(to_json(plan_document(plan, __version__)))
            return
        if self._options.as_diff:
            from safe_uninstall.render.diff import render_diff

            print_data(render_diff(plan, verbose=self._common.verbose, color=self._common.paint))
            return
        if self._options.as_html:
            from safe_uninstall.cli.page import give_page
            from safe_uninstall.render.document import plan_document

            give_page(plan_document(plan, __version__), self._options.output, quiet=self._common.quiet)
            return
        from safe_uninstall.render.text import render_plan

        print_data(
            render_plan(
                plan,
                verbose=self._common.verbose,
                color=self._common.paint,
                dry_run=self._options.dry_run,
                quiet=self._common.quiet,
                width=terminal_width(sys.stdout),
            )
        )

    def _execute(self, plan: Plan, environment: Environment) -> int:
        from safe_uninstall.execute.interrupts import Interrupted
        from safe_uninstall.execute.transaction import execute
        from safe_uninstall.render.document import plan_document

        try:
            outcome = execute(
                plan,
                document=plan_document(plan, __version__),
                rescan=lambda: self._scan(environment),
                replan=self._plan,
                prober=lambda code: self._run_probe(environment, code),
                progress=self._line.update,
                keep_backup=self._options.keep_backup,
            )
        except Interrupted:
            # Once anything is changed a signal ends in a roll back, and an outcome.
            raise KeyboardInterrupt from None
        finally:
            self._line.close()
        self._report(outcome)
        if outcome.state is OutcomeState.COMMITTED:
            warn_of_unfinished(environment, self._common)
        return _STATUS[outcome.state]

    def _report(self, outcome: Outcome) -> None:
        if self._options.as_json:
            from safe_uninstall.render.document import outcome_document, to_json

            print_data(to_json(outcome_document(outcome, __version__)))
            return
        from safe_uninstall.render.text import render_outcome

        committed = outcome.state is OutcomeState.COMMITTED
        color = self._common.paint_on(sys.stdout if committed else sys.stderr)
        text = render_outcome(outcome, verbose=self._common.verbose, color=color)
        (print_data if committed else print_talk)(text)


def _choose(plan: Plan) -> tuple[Rewrite, ...] | None:
    """Ask which of a blocked plan's rewrites to take; None: none."""
    for number, alternative in enumerate(plan.alternatives, 1):
        print_talk(f"  {number}. {alternative.summary}")
    last = len(plan.alternatives)
    numbers = "1" if last == 1 else f"1-{last}"
    click.echo(f"Take {numbers}, or nothing [nothing]? ", nl=False, err=True)
    answer = sys.stdin.readline().strip()
    if not answer.isdecimal() or not 1 <= int(answer) <= last:
        print_talk("Nothing changed.")
        return None
    return plan.alternatives[int(answer) - 1].rewrites


def _save(plan: Plan, path: str) -> None:
    from safe_uninstall.cli.saved import save
    from safe_uninstall.render.document import plan_document, to_json

    save(to_json(plan_document(plan, __version__)), path, what="plan")


def _can_ask() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _confirmed() -> bool:
    click.echo("Proceed (Y/n)? ", nl=False, err=True)
    answer = sys.stdin.readline()
    # An empty line is a yes, as with pip; the end of the input is not.
    return answer != "" and answer.strip().lower() in ("", "y", "yes")


def _refuse_foreign_machine(environment: Environment) -> None:
    """Refuse to change an environment whose interpreter cannot run here: no installer could serve it."""
    from safe_uninstall.scan.markers import MACHINES

    host = os.uname().machine
    if environment.abi is None or environment.abi.machine not in MACHINES:
        return
    machine = MACHINES[environment.abi.machine]
    families = ({"x86_64", "i686", "i386"}, {"aarch64", "armv7l"})
    if machine != host and not any({machine, host} <= family for family in families):
        raise EnvironmentNotFound(
            f"`{environment.prefix}` is an environment for {machine}, and this machine is {host}",
            help=("look at it only: --dry-run", f"or run this on a {machine} machine"),
        )
