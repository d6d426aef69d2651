"""``safe-uninstall [OPTIONS] PACKAGE...``: plan, show, ask, do."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from safe_uninstall import __version__
from safe_uninstall.cli.options import (
    common_options,
    complete_distributions,
    consumers_option,
    root_option,
    take_common,
    take_consumers,
)
from safe_uninstall.cli.run import PlanRun, RunOptions
from safe_uninstall.execute.programs import find_programs
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.plan import PROBE_TIMEOUT, Request, Rewrite

_EPILOG = """\b
Commands:
  apply PLAN     carry out a plan that -o saved
  check          what is damaged already; --fix restores it
  why NAME...    who provides, claims and needs a library, file or distribution
  graph          which file needs which, and how the loader finds it
  explain CODE   what a finding means and what to do
  undo [ID]      bring back what the last run removed
  history        what was done here; --purge deletes kept backups
  recover        end a run that was killed
  completion SH  what makes bash, zsh or fish complete
  schema         the JSON Schema of the documents
  demo           the incident this tool is for, in a throwaway environment

\b
A package that bears a command's name: safe-uninstall -- demo

\b
Exit status: 0 done, or a dry run that would be; 1 unexpected failure or
answered no; 2 usage or environment error; 3 blocked; 4 failed and rolled
back; 5 roll back incomplete."""


class _Code(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Python code; in a variable, where click would take each word for a value, every line is one."""

    name = "code"
    envvar_list_splitter = "\n"


@click.command(context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG, options_metavar="[OPTIONS]")
@click.argument("packages", nargs=-1, metavar="PACKAGE...", shell_complete=complete_distributions)
@click.option("-r", "--requirement", multiple=True, metavar="FILE", help="Remove what FILE lists.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask; a blocked plan stays blocked.")
@click.option("-n", "--dry-run", is_flag=True, help="Show what would happen; change nothing.")
@click.option(
    "--accept-loss",
    multiple=True,
    metavar="NAME",
    help="Go on although NAME (a soname, path or distribution that an error names) is lost.",
)
@click.option(
    "--format",
    type=click.Choice(["text", "diff", "json", "html"]),
    default="text",
    help="How to print; a diff or a page is for review, and changes nothing.",
)
@click.option("-o", "--output", metavar="FILE", help="Save the plan as JSON; with --format html, the page.")
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
@consumers_option
@click.option("--refuse-in-use", is_flag=True, help="Stop if a running process uses a file that would go.")
@click.option(
    "--probe",
    multiple=True,
    type=_Code(),
    metavar="CODE",
    help="Python code that must work: the environment's interpreter runs it before and after, and if it fails after"
    " the change only, everything is undone.",
)
@click.option(
    "--probe-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=PROBE_TIMEOUT,
    metavar="SECONDS",
    help=f"How long one probe may take. Default: {PROBE_TIMEOUT:g}.",
)
@click.option("--break-system-packages", is_flag=True, help="Change a Python that its distributor manages (PEP 668).")
@root_option
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
    as_diff = options["format"] == "diff"
    as_html = options["format"] == "html"
    dry_run = options["dry_run"] or as_diff or as_html
    if as_json and not dry_run and not options["yes"]:
        raise UsageError("--format json cannot ask: add --dry-run or --yes")
    installer = options["installer"]
    request = Request(
        names=names,
        rewrites=_rewrites(options),
        install=options["install"],
        accepted_losses=options["accept_loss"],
        # Programs that we start may run in another directory.
        find_links=tuple(os.path.abspath(place) if os.path.exists(place) else place for place in options["find_links"]),
        no_index=options["no_index"],
        use_library_path=options["use_ld_library_path"],
        consumers_in=take_consumers(options),
        break_system_packages=options["break_system_packages"],
        refuse_in_use=options["refuse_in_use"],
        probes=options["probe"],
        probe_timeout=options["probe_timeout"],
        installer=None if installer == "auto" else InstallerKind(installer),
        python=common.python,
        programs=find_programs(),
        tool_prefix=os.path.realpath(sys.prefix),
    )
    how = RunOptions(
        yes=options["yes"],
        dry_run=dry_run,
        as_json=as_json,
        as_diff=as_diff,
        as_html=as_html,
        output=options["output"],
        keep_backup=options["keep_backup"],
    )
    return PlanRun(common, request, how).run()


def _from_files(files: tuple[str, ...]) -> tuple[str, ...]:
    if not files:
        return ()
    from safe_uninstall.cli.requirements_file import read_requirement_names

    return tuple(name for file in files for name in read_requirement_names(file, variables=os.environ))


def _rewrites(options: dict[str, Any]) -> tuple[Rewrite, ...]:
    """Return the rewrites that the flags allow, preferred first."""
    names = {rewrite for rewrite in Rewrite if options[rewrite.value.replace("-", "_")]}
    if options["rewrite"]:
        names |= {Rewrite.RESTORE, Rewrite.SUBSTITUTE, Rewrite.KEEP_NEEDED}
    return tuple(rewrite for rewrite in Rewrite if rewrite in names)
