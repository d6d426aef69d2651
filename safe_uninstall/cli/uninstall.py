"""``safe-uninstall [OPTIONS] PACKAGE...``: plan, show, ask, do."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from safe_uninstall import __version__
from safe_uninstall.cli.options import Common, common_options, take_common
from safe_uninstall.cli.output import ProgressLine, print_data, print_talk, terminal_width
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import EnvironmentNotFound, UsageError
from safe_uninstall.model.outcome import ExitStatus, OutcomeState
from safe_uninstall.model.plan import Request, Rewrite, Verdict

if TYPE_CHECKING:
    from safe_uninstall.cli.wheels import LazyWheels
    from safe_uninstall.model.environment import Environment
    from safe_uninstall.model.outcome import Outcome
    from safe_uninstall.model.plan import Plan
    from safe_uninstall.model.snapshot import Snapshot

_EPILOG = """\b
Commands:
  why NAME...    who provides, claims and needs a library, file or distribution
  graph          which file needs which, and how the loader finds it
  explain CODE   what a finding means and what to do
  recover        end a run that was killed
  schema         the JSON Schema of the documents
  demo           the incident this tool is for, in a throwaway environment

\b
A package that bears a command's name: safe-uninstall -- demo

\b
Exit status: 0 done, or a dry run that would be; 1 unexpected failure or
answered no; 2 usage or environment error; 3 blocked; 4 failed and rolled
back; 5 roll back incomplete."""

_STATUS = {
    OutcomeState.COMMITTED: ExitStatus.DONE,
    OutcomeState.ROLLED_BACK: ExitStatus.ROLLED_BACK,
    OutcomeState.ROLLBACK_INCOMPLETE: ExitStatus.ROLLBACK_INCOMPLETE,
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG, options_metavar="[OPTIONS]")
@click.argument("packages", nargs=-1, metavar="PACKAGE...")
@click.option("-r", "--requirement", multiple=True, metavar="FILE", help="Remove what FILE lists.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask; a blocked plan stays blocked.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would happen; change nothing.")
@click.option(
    "--accept-loss",
    multiple=True,
    metavar="NAME",
    help="Go on although NAME (a soname, path or distribution that an error names) is lost.",
)
@click.option("--format", type=click.Choice(["text", "json"]), default="text", help="How to print.")
@click.option("-o", "--output", metavar="FILE", help="Save the plan as JSON.")
@click.option(
    "--installer",
    type=click.Choice(["auto", "pip", "uv"]),
    default="auto",
    help="What carries it out. Default: uv where uv made the environment, else pip.",
)
@click.option("--restore", is_flag=True, help="Reinstall survivors whose own files are, or would be, gone.")
@click.option("--substitute", is_flag=True, help="Install what a consumer requires and nobody provides.")
@click.option("--keep-needed", is_flag=True, help="Keep what is still needed of what was named.")
@click.option("--cascade", is_flag=True, help="Remove what would break too; never implied.")
@click.option("--rewrite", is_flag=True, help="--restore, --substitute and --keep-needed, preferred in this order.")
@click.option("--install", multiple=True, metavar="REQ", help="Install REQ in the same transaction.")
@click.option("--find-links", multiple=True, metavar="PLACE", help="Look for wheels there first (directory or page).")
@click.option("--no-index", is_flag=True, help="Ask no index for wheels.")
@click.option("--keep-backup", is_flag=True, help="Keep the removed files, and print where.")
@click.option(
    "--use-ld-library-path",
    is_flag=True,
    help="Let LD_LIBRARY_PATH of this shell count as a place where libraries are found.",
)
@click.option("--break-system-packages", is_flag=True, help="Change a Python that its distributor manages (PEP 668).")
@common_options
@click.version_option(__version__, prog_name="safe-uninstall", allow_from_autoenv=False)
def command(**options: Any) -> int:  # fmt: skip
    """Uninstall distributions without losing files or libraries that the rest of the environment needs.

    PACKAGE is a name, or a glob such as 'nvidia-*-cu13'. Several are judged together, by their final state.
    """
    common = take_common(options)
    names = (*options["packages"], *_from_files(options["requirement"]))
    if not names and not options["install"]:
        raise UsageError("name at least one distribution to remove", help=("see all options: safe-uninstall --help",))
    as_json = options["format"] == "json"
    dry_run = options["dry_run"]
    if as_json and not dry_run and not options["yes"]:
        raise UsageError("--format json cannot ask: add --dry-run or --yes")
    return _Uninstall(common, options, names, as_json=as_json, dry_run=dry_run).run()


def _from_files(files: tuple[str, ...]) -> tuple[str, ...]:
    if not files:
        return ()
    from safe_uninstall.cli.requirements_file import read_requirement_names

    return tuple(name for file in files for name in read_requirement_names(file, variables=os.environ))


class _Uninstall:
    def __init__(
        self, common: Common, options: dict[str, Any], names: tuple[str, ...], *, as_json: bool, dry_run: bool
    ) -> None:
        self._common = common
        self._options = options
        self._as_json = as_json
        self._dry_run = dry_run
        installer = options["installer"]
        self._request = Request(
            names=names,
            rewrites=_rewrites(options),
            install=options["install"],
            accepted_losses=options["accept_loss"],
            use_library_path=options["use_ld_library_path"],
            break_system_packages=options["break_system_packages"],
            installer=None if installer == "auto" else InstallerKind(installer),
            python=self._common.python,
            tool_prefix=os.path.realpath(sys.prefix),
        )
        self._line = ProgressLine(enabled=not common.quiet and not as_json)
        self._wheels: LazyWheels | None = None

    def run(self) -> int:
        from safe_uninstall.scan.environment import find_environment

        environment = find_environment(self._common.python, variables=os.environ, directory=os.getcwd())
        if not self._request.rewrites and not self._request.install and not self._may_choose():
            return self._run(environment)
        from safe_uninstall.cli.wheels import LazyWheels

        with LazyWheels(
            environment,
            find_links=self._options["find_links"],
            no_index=self._options["no_index"],
            progress=self._tell,
            show=not self._common.quiet and not self._as_json and sys.stderr.isatty(),
        ) as self._wheels:
            return self._run(environment)

    def _may_choose(self) -> bool:
        return not self._options["yes"] and not self._dry_run and not self._as_json and _can_ask()

    def _tell(self, text: str) -> None:
        self._line.close()
        if not self._common.quiet and not self._as_json:
            print_talk(f"{text} …")

    def _run(self, environment: Environment) -> int:
        try:
            snapshot = self._scan(environment)
            plan = self._plan(snapshot)
        finally:
            self._line.close()
        if plan.alternatives and self._may_choose():
            self._show(plan)
            chosen = _choose(plan)
            if chosen is None:
                return ExitStatus.BLOCKED
            self._request = replace(self._request, rewrites=(*self._request.rewrites, *chosen))
            plan = self._plan(snapshot)
        if self._options["output"]:
            _save(plan, self._options["output"])
        if self._dry_run or plan.verdict is Verdict.BLOCK:
            self._show(plan)
            return ExitStatus.BLOCKED if plan.verdict is Verdict.BLOCK else ExitStatus.DONE
        _refuse_foreign_machine(environment)
        if not self._options["yes"] and not _can_ask():
            raise UsageError(
                "there is no terminal to ask on", help=("say yes beforehand: --yes", "or look only: --dry-run")
            )
        if not self._as_json:
            self._show(plan)
        if not self._options["yes"] and not _confirmed():
            print_talk("Nothing changed.")
            return ExitStatus.FAILURE
        return self._execute(plan, environment)

    def _scan(self, environment: Environment) -> Snapshot:
        from safe_uninstall.scan.snapshot import scan

        return scan(environment, variables=os.environ, progress=self._line.update)

    def _plan(self, snapshot: Snapshot) -> Plan:
        from safe_uninstall.analysis.plan import make_plan

        return make_plan(snapshot, self._request, self._wheels)

    def _show(self, plan: Plan) -> None:
        if self._as_json:
            from safe_uninstall.render.document import plan_document, to_json

            print_data(to_json(plan_document(plan, __version__)))
            return
        from safe_uninstall.render.text import render_plan

        print_data(
            render_plan(
                plan,
                verbose=self._common.verbose,
                color=self._common.paint,
                dry_run=self._dry_run,
                quiet=self._common.quiet,
                width=terminal_width(sys.stdout),
            )
        )

    def _execute(self, plan: Plan, environment: Environment) -> int:
        from safe_uninstall.execute.interrupts import Interrupted
        from safe_uninstall.execute.transaction import execute

        try:
            outcome = execute(
                plan,
                rescan=lambda: self._scan(environment),
                replan=self._plan,
                progress=self._line.update,
                keep_backup=self._options["keep_backup"],
            )
        except Interrupted:
            # Once anything is changed a signal ends in a roll back, and an outcome.
            raise KeyboardInterrupt from None
        finally:
            self._line.close()
        self._report(outcome)
        return _STATUS[outcome.state]

    def _report(self, outcome: Outcome) -> None:
        if self._as_json:
            from safe_uninstall.render.document import outcome_document, to_json

            print_data(to_json(outcome_document(outcome, __version__)))
            return
        from safe_uninstall.render.text import render_outcome

        committed = outcome.state is OutcomeState.COMMITTED
        color = self._common.paint_on(sys.stdout if committed else sys.stderr)
        text = render_outcome(outcome, verbose=self._common.verbose, color=color)
        (print_data if committed else print_talk)(text)


def _rewrites(options: dict[str, Any]) -> tuple[Rewrite, ...]:
    """Return the rewrites that the flags allow, preferred first."""
    names = {rewrite for rewrite in Rewrite if options[rewrite.value.replace("-", "_")]}
    if options["rewrite"]:
        names |= {Rewrite.RESTORE, Rewrite.SUBSTITUTE, Rewrite.KEEP_NEEDED}
    return tuple(rewrite for rewrite in Rewrite if rewrite in names)


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
    from safe_uninstall.render.document import plan_document, to_json

    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(to_json(plan_document(plan, __version__)) + "\n")
    except OSError as error:
        raise UsageError(f"the plan cannot be saved as `{path}`: {error.strerror}") from None


def _can_ask() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _confirmed() -> bool:
    click.echo("Proceed (Y/n)? ", nl=False, err=True)
    answer = sys.stdin.readline()
    # An empty line is a yes, as with pip; the end of the input is not.
    return answer != "" and answer.strip().lower() in ("", "y", "yes")


def _refuse_foreign_machine(environment: Environment) -> None:
    """Refuse to change an environment whose interpreter cannot run here: no installer could serve it."""
    from safe_uninstall.scan.environment import MACHINES

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
