"""Shell completion: ``safe-uninstall completion SHELL`` prints what a shell must read, and the shell then asks back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from safe_uninstall.cli.arguments import COMMANDS, DEFAULT, ENVIRONMENT_PREFIX, split
from safe_uninstall.cli.options import common_options, take_common
from safe_uninstall.cli.output import print_data
from safe_uninstall.model.errors import SafeUninstallError
from safe_uninstall.model.outcome import ExitStatus

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem, ShellComplete

PROGRAM = "safe-uninstall"
VARIABLE = "_SAFE_UNINSTALL_COMPLETE"
"""Set by the shell when it asks: ``bash_complete``."""
SHELLS = ("bash", "zsh", "fish")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("shell", type=click.Choice(SHELLS))
@common_options
def command(**options: Any) -> int:
    """Print what makes a shell complete commands, options and names of installed distributions.

    bash: eval "$(safe-uninstall completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc, after compinit;
    fish: safe-uninstall completion fish | source in ~/.config/fish/config.fish.
    """
    take_common(options)
    print_data(_completer(options["shell"]).source())
    return ExitStatus.DONE


def answer(instruction: str) -> int:
    """Answer a shell that asks for completions of COMP_WORDS; what goes wrong completes to nothing.

    Args:
        instruction: ``bash_complete``, as the printed script sets it.
    """
    shell, _, action = instruction.partition("_")
    if shell not in SHELLS or action != "complete":
        return ExitStatus.FAILURE
    print_data(_completer(shell).complete())
    return ExitStatus.DONE


def _completer(shell: str) -> ShellComplete:
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None, shell
    kind: type[ShellComplete] = found

    class Completer(kind):  # type: ignore[misc, valid-type]
        """Completes the command that the words name: which one that is click does not know."""

        def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
            try:
                return _completions(kind, args, incomplete)
            except Exception:
                return []

    completer: ShellComplete = Completer(click.Command(PROGRAM), {}, PROGRAM, VARIABLE)
    return completer


def _completions(kind: type[ShellComplete], words: Sequence[str], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from safe_uninstall.cli.commands import load_command

    name, rest = split(words)
    settings = {"auto_envvar_prefix": ENVIRONMENT_PREFIX}
    found = kind(load_command(name), settings, PROGRAM, VARIABLE).get_completions(list(rest), incomplete)
    if name == DEFAULT and not incomplete.startswith("-") and split([*words, "check"])[0] == "check":
        found += [CompletionItem(word) for word in COMMANDS if word.startswith(incomplete)]
    return found


def complete_distributions(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Return installed distributions whose names begin so; only the names of their metadata are read."""
    from click.shell_completion import CompletionItem

    from safe_uninstall.model.names import normalize_name
    from safe_uninstall.scan.disk import DiskFileSystem
    from safe_uninstall.scan.environment import find_environment

    try:
        environment = find_environment(context.params.get("python"), variables=os.environ, directory=os.getcwd())
    except SafeUninstallError:
        # A command can be completed all the same.
        return []
    files = DiskFileSystem()
    names = {
        normalize_name(entry.partition("-")[0])
        for site in environment.site_packages
        for entry in files.names(site)
        if entry.endswith((".dist-info", ".egg-info"))
    }
    wanted = normalize_name(incomplete) if incomplete else ""
    return [CompletionItem(name) for name in sorted(names) if name.startswith(wanted)]
