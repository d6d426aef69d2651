"""``safe-uninstall check``: what is damaged in an environment as it stands, and ``--fix`` to restore it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from safe_uninstall import __version__
from safe_uninstall.cli.options import common_options, consumers_option, root_option, take_common, take_consumers
from safe_uninstall.cli.output import ProgressLine, print_data, terminal_width
from safe_uninstall.cli.place import find_place, paths_inside, refuse_change, words_given
from safe_uninstall.cli.unfinished import warn_of_unfinished
from safe_uninstall.execute.programs import find_programs
from safe_uninstall.model.environment import Programs
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.outcome import ExitStatus
from safe_uninstall.model.plan import Request, Rewrite, Severity

if TYPE_CHECKING:
    from safe_uninstall.cli.options import Common
    from safe_uninstall.model.environment import Environment
    from safe_uninstall.model.plan import Finding


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--fix", is_flag=True, help="Restore what is damaged, and remove nothing.")
@click.option("-y", "--yes", is_flag=True, help="With --fix: do not ask.")
@click.option("-n", "--dry-run", is_flag=True, help="With --fix: show what would happen; change nothing.")
@click.option("--deep", is_flag=True, help="Hash every file instead of comparing sizes: minutes for gigabytes.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever is found.")
@click.option("--format", type=click.Choice(["text", "json", "html"]), default="text", help="How to print.")
@click.option("-o", "--output", metavar="FILE", help="Write to FILE instead; with --fix, save the plan.")
@click.option("--find-links", multiple=True, metavar="PLACE", help="Look for wheels there first (directory or page).")
@click.option("--no-index", is_flag=True, help="Ask no index for wheels.")
@click.option(
    "--use-ld-library-path",
    is_flag=True,
    help="Let LD_LIBRARY_PATH of this shell count as a place where libraries are found.",
)
@consumers_option
@root_option
@click.option("--break-system-packages", is_flag=True, help="Change a Python that its distributor manages (PEP 668).")
@common_options
def command(**options: Any) -> int:
    """Say what is damaged: files that are gone or overwritten, libraries that nothing provides, mixed CUDA majors."""
    common = take_common(options)
    as_json = options["format"] == "json"
    if not options["fix"]:
        for name in ("yes", "dry_run"):
            if options[name]:
                raise UsageError(f"--{name.replace('_', '-')} makes sense with --fix only")
        environment = find_place(common, tell=not as_json)
        warn_of_unfinished(environment, common)
        findings = _audit(common, options, environment, as_json=as_json)
        lost = any(item.severity is Severity.ERROR for item in findings)
        return ExitStatus.BLOCKED if lost and not options["exit_zero"] else ExitStatus.DONE
    if common.root is not None:
        environment = find_place(common, tell=False)
        raise refuse_change(environment, "--root looks only, and --fix restores", words_given())
    from safe_uninstall.cli.run import PlanRun, RunOptions

    if as_json and not options["dry_run"] and not options["yes"]:
        raise UsageError("--format json cannot ask: add --dry-run or --yes")
    request = Request(
        names=(),
        rewrites=(Rewrite.RESTORE,),
        repair=True,
        find_links=tuple(os.path.abspath(place) if os.path.exists(place) else place for place in options["find_links"]),
        no_index=options["no_index"],
        use_library_path=options["use_ld_library_path"],
        consumers_in=take_consumers(options),
        break_system_packages=options["break_system_packages"],
        python=common.python,
        programs=find_programs(),
        tool_prefix=os.path.realpath(sys.prefix),
    )
    as_html = options["format"] == "html"
    how = RunOptions(
        yes=options["yes"],
        dry_run=options["dry_run"] or as_html,
        as_json=as_json,
        as_html=as_html,
        output=options["output"],
    )
    return PlanRun(common, request, how).run()


def _audit(common: Common, options: dict[str, Any], environment: Environment, *, as_json: bool) -> tuple[Finding, ...]:
    from safe_uninstall.analysis.audit import audit
    from safe_uninstall.analysis.commands import Commands, preferred_installer
    from safe_uninstall.scan.snapshot import scan

    line = ProgressLine(enabled=not common.quiet and not as_json)
    # Which programs there are in a mounted tree nobody knows; their usual names will do.
    programs = Programs() if environment.is_mounted else find_programs()
    consumers = paths_inside(take_consumers(options), environment)
    try:
        snapshot = scan(environment, variables=os.environ, progress=line.update, consumers_in=consumers)
        line.update("judging")
        findings = audit(
            snapshot,
            Commands(
                snapshot,
                preferred_installer(environment, programs),
                python=common.python,
                programs=programs,
            ),
            use_library_path=options["use_ld_library_path"],
            deep=options["deep"],
        )
    finally:
        line.close()
    _give(findings, environment, common, options)
    return findings


def _give(findings: tuple[Finding, ...], environment: Environment, common: Common, options: dict[str, Any]) -> None:
    """Print what was found, or write it where ``-o`` says."""
    output = options["output"]
    if options["format"] == "html":
        from safe_uninstall.cli.page import give_page
        from safe_uninstall.render.document import check_document

        give_page(check_document(findings, environment, __version__), output, quiet=common.quiet)
        return
    if options["format"] == "json":
        from safe_uninstall.render.document import check_document, to_json

        text = to_json(check_document(findings, environment, __version__))
    else:
        from safe_uninstall.render.check import render_check

        text = render_check(
            findings,
            environment,
            verbose=common.verbose,
            quiet=common.quiet,
            color=common.paint and output is None,
            width=terminal_width(sys.stdout) if output is None else None,
        )
    if output is None:
        print_data(text)
        return
    from safe_uninstall.cli.saved import save

    save(text, output, what="report")
