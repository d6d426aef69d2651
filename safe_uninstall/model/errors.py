"""Errors that carry their evidence; the command line makes the sentence and the exit status of them."""

from safe_uninstall.model.outcome import ExitStatus
from safe_uninstall.model.wheel import WheelUnavailable, merged_help


class SafeUninstallError(Exception):
    """Something the user must be told; nothing was changed unless a subclass says otherwise."""

    slug = "failure"
    """Short stable name, shown as ``error[slug]`` and in JSON."""
    exit_status = ExitStatus.FAILURE

    def __init__(self, message: str, *, help: tuple[str, ...] = ()) -> None:
        """Keep the message (one sentence, names the thing) and the next steps (prose or whole commands)."""
        super().__init__(message)
        self.message = message
        self.help = help


class UsageError(SafeUninstallError):
    """The command line does not make sense."""

    slug = "usage"
    exit_status = ExitStatus.USAGE


class EnvironmentNotFound(SafeUninstallError):
    """There is no environment at the place given, or it cannot be read."""

    slug = "environment"
    exit_status = ExitStatus.USAGE


class NotInstalled(SafeUninstallError):
    """Names that no installed distribution bears."""

    slug = "not-installed"
    exit_status = ExitStatus.USAGE

    def __init__(
        self,
        names: tuple[str, ...],
        near: dict[str, tuple[str, ...]],
        *,
        where: str | None = None,
        help: tuple[str, ...] = (),
    ) -> None:
        """Keep the unknown names as written, per name the installed ones that look alike, and the environment."""
        listed = ", ".join(f"`{name}`" for name in names)
        place = "" if where is None else f" in `{where}`"
        super().__init__(f"not installed{place}: {listed}", help=help)
        self.names = names
        self.near = near


class InstallerUnavailable(SafeUninstallError):
    """Neither pip nor uv can serve the environment."""

    slug = "installer"
    exit_status = ExitStatus.USAGE


class WheelsUnavailable(SafeUninstallError):
    """Something that the request needs to install cannot be had; found out before anything changes."""

    slug = "wheel"
    exit_status = ExitStatus.BLOCKED

    def __init__(self, missing: tuple[WheelUnavailable, ...]) -> None:
        """Keep what is missing and why."""
        told = "; ".join(f"no wheel for {item.requirement}: {item.reason}" for item in missing)
        super().__init__(told, help=merged_help(text for item in missing for text in item.help))
        self.missing = missing


class TemporaryDirectoryUnusable(SafeUninstallError):
    """There is no room for what must be fetched first; nothing was changed."""

    slug = "temporary-directory"
    exit_status = ExitStatus.USAGE


class NoRoom(SafeUninstallError):
    """A file system has less room than the change would take; found out before anything changes."""

    slug = "space"
    exit_status = ExitStatus.USAGE


class EnvironmentBusy(SafeUninstallError):
    """Another run holds the environment's lock."""

    slug = "busy"
    exit_status = ExitStatus.USAGE


class StalePlan(SafeUninstallError):
    """The environment is no longer the one that the plan was made for."""

    slug = "stale-plan"
    exit_status = ExitStatus.USAGE

    def __init__(self, changes: tuple[str, ...], *, help: tuple[str, ...] = ()) -> None:
        """Keep what changed since, a sentence each."""
        super().__init__("the environment changed since the plan was made: " + "; ".join(changes), help=help)
        self.changes = changes


class InUse(SafeUninstallError):
    """Files are in use by now, and the request refuses to take away such files."""

    slug = "in-use"
    exit_status = ExitStatus.BLOCKED


class UnfinishedTransaction(SafeUninstallError):
    """An earlier run did not end; it must be recovered first."""

    slug = "unfinished"
    exit_status = ExitStatus.USAGE
