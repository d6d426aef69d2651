"""Carries a plan out as one transaction: the environment ends as planned, or as it was."""

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from safe_uninstall.analysis.commands import our_command
from safe_uninstall.analysis.fingerprint import describe_changes
from safe_uninstall.execute.installation import install_wheels, kept_paths, what_will_be_new
from safe_uninstall.execute.installers import Installer, find_installer, run_installer
from safe_uninstall.execute.interrupts import Interrupted, interruptible, uninterrupted
from safe_uninstall.execute.journal import Journal, Step, create_journal, sweep, unfinished
from safe_uninstall.execute.lock import EnvironmentLock
from safe_uninstall.execute.processes import InstallerRun
from safe_uninstall.execute.record_trim import needs_trimming, trim_record
from safe_uninstall.execute.rollback import roll_back
from safe_uninstall.execute.stash import Stash
from safe_uninstall.execute.verify import compare_outcome, lost_for_good
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import EnvironmentNotFound, StalePlan, UnfinishedTransaction, UsageError
from safe_uninstall.model.outcome import Outcome, OutcomeState
from safe_uninstall.model.plan import Plan, Verdict
from safe_uninstall.model.snapshot import Snapshot

Progress = Callable[[str], None]
"""Told in a few words what begins now."""


def execute(
    plan: Plan,
    *,
    rescan: Callable[[], Snapshot],
    replan: Callable[[Snapshot], Plan],
    progress: Progress = lambda _stage: None,
    keep_backup: bool = False,
    lock_timeout: float = 10.0,
) -> Outcome:
    """Carry out a plan whose verdict is not ``block``.

    Args:
        plan: what to do.
        rescan: reads the environment anew; called once under the lock, once after the installer.
        replan: judges the same request over a snapshot.
        progress: told what begins.
        keep_backup: keep the stash after a commit; its path is in the outcome.
        lock_timeout: seconds to wait for another process that works on the environment.

    Returns:
        How it ended; the environment is as planned (``committed``), as before (``rolled-back``), or neither.

    Raises:
        SafeUninstallError: nothing was changed: the plan blocks or is stale, the environment is busy or not writable,
            an earlier run did not end, no installer can serve.
    """
    if plan.verdict is Verdict.BLOCK:
        raise UsageError("a plan that blocks cannot be carried out")
    prefix = plan.environment.prefix
    with interruptible(), EnvironmentLock(prefix, timeout=lock_timeout) as lock:
        refuse_unfinished(prefix, plan.request.python)
        sweep(prefix)
        snapshot = rescan()
        current = replan(snapshot)
        if current.fingerprint != plan.fingerprint:
            changes = describe_changes(plan.fingerprint_parts, current.fingerprint_parts)
            raise StalePlan(changes, help=("look at the new plan: run the command again",))
        leaving = tuple(item for item in snapshot.distributions if item.metadata_path in plan.prediction.removed)
        installer = find_installer(
            plan.environment,
            plan.request.installer,
            break_system_packages=plan.request.break_system_packages,
            has_own_pip=any(item.name == "pip" and item.owned_here for item in snapshot.distributions),
        )
        _check_writable(plan)
        return _Run(plan, snapshot, leaving, installer, lock, rescan, progress, keep_backup).run()


def refuse_unfinished(prefix: str, python: str | None = None) -> None:
    """Raise UnfinishedTransaction when an earlier run in the environment, which ``-p python`` leads to, did not end."""
    pending = unfinished(prefix)
    if pending:
        raise UnfinishedTransaction(
            f"an earlier run on this environment did not end: {pending[0].directory}",
            help=(f"bring the environment back to what it was: {our_command(python, 'recover')}",),
        )


class _Run:
    def __init__(
        self,
        plan: Plan,
        snapshot: Snapshot,
        leaving: tuple[Distribution, ...],
        installer: Installer,
        lock: EnvironmentLock,
        rescan: Callable[[], Snapshot],
        progress: Progress,
        keep_backup: bool,
    ) -> None:
        self._plan = plan
        self._snapshot = snapshot
        self._leaving = leaving
        self._installer = installer
        self._lock = lock
        self._rescan = rescan
        self._progress = progress
        self._keep_backup = keep_backup
        self._output: list[str] = []

    def run(self) -> Outcome:
        """Stash, uninstall, put back, verify; commit or roll back."""
        prefix = self._plan.environment.prefix
        try:
            journal = create_journal(prefix)
        except OSError as error:
            raise _not_writable(prefix, error) from None
        stash = Stash(journal.stash_directory)
        try:
            self._prepare(journal, stash)
        except BaseException as error:
            # Nothing of the environment has been touched yet.
            with uninterrupted():
                stash.drop()
                journal.forget()
            if isinstance(error, OSError):
                raise _not_writable(prefix, error) from None
            raise
        try:
            with self._lock_for_installer():
                reason, mismatches = self._change(journal, stash)
            if reason is None:
                journal.write(Step.COMMITTED, keep_backup=self._keep_backup)
        except (Interrupted, Exception) as error:
            reason, mismatches = _in_words(error), ()
        if reason is None:
            with uninterrupted():
                return self._commit(journal, stash)
        with uninterrupted():
            return self._undo(journal, stash, reason, mismatches)

    @contextmanager
    def _lock_for_installer(self) -> Iterator[None]:
        """Give the lock back to an installer that would wait for it for ever, and take it again afterwards."""
        if self._installer.respects_lock_timeout:
            yield
            return
        self._lock.__exit__(None, None, None)
        try:
            yield
        finally:
            self._lock.__enter__()

    def _prepare(self, journal: Journal, stash: Stash) -> None:
        self._progress("keeping what will be touched")
        touched = self._touched()
        directories = _directories(touched, self._plan.environment.prefix)
        journal.write(
            Step.PREPARED,
            names=list(self._plan.request.names),
            removed=sorted(item.label for item in self._leaving),
            installed=[f"{wheel.name} {wheel.version}" for wheel in self._plan.wheels],
            fingerprint=self._plan.fingerprint,
            leftovers=_leftovers(directories),
            **what_will_be_new(self._plan.prediction),
        )
        journal.write(Step.STASHING, files=len(touched))
        stash.keep(touched, directories)
        journal.write(Step.STASHED)

    def _change(self, journal: Journal, stash: Stash) -> tuple[str | None, tuple[str, ...]]:
        """Do it; return why it must be rolled back, and what differs from the prediction."""
        kept = kept_paths(self._plan.prediction, stash)
        staying = self._plan.prediction.released
        journal.write(Step.TRIMMING)
        for distribution in self._leaving:
            if needs_trimming(distribution, staying):
                trim_record(distribution, staying)
        self._progress("uninstalling")
        journal.write(Step.UNINSTALLING, installer=self._installer.kind.value)
        run = self._uninstall()
        if run is not None and run.returncode != 0:
            return f"{self._installer.kind.value} failed with status {run.returncode}", ()
        journal.write(Step.RELEASING, files=len(kept))
        failed = stash.put_back(kept)
        if failed:
            return f"{failed[0].path} could not be put back: {failed[0].reason}", ()
        _finish_deletion(self._plan)
        if self._plan.wheels:
            self._progress("installing")
            journal.write(Step.INSTALLING, installed=[f"{item.name} {item.version}" for item in self._plan.wheels])
            reason = install_wheels(self._plan, self._installer, journal, stash, self._output)
            if reason is not None:
                return reason, ()
        self._progress("verifying")
        journal.write(Step.VERIFYING)
        mismatches = compare_outcome(self._plan.prediction, self._snapshot, self._rescan(), stash)
        if mismatches:
            return "the outcome is not the one that was planned", mismatches
        return None, ()

    def _uninstall(self) -> InstallerRun | None:
        """Run the installer: once for all names, and again for pip where a name is installed several times."""
        run: InstallerRun | None = None
        waiting = [item.name for item in self._leaving]
        while waiting:
            names = tuple(dict.fromkeys(waiting))
            run = run_installer(self._installer, names)
            self._output.append(run.output)
            if run.returncode != 0:
                break
            if self._installer.kind is InstallerKind.UV:
                waiting = []
            for name in names if waiting else ():
                waiting.remove(name)
        return run

    def _touched(self) -> list[str]:
        """Return every path that an installer may touch, sorted: rows, scripts, and whole byte-code directories.

        uv removes a ``__pycache__`` with all that is in it, whoever's source the byte code is of.
        """
        prediction = self._plan.prediction
        touched = {*prediction.deleted, *prediction.released, *prediction.written}
        restored = [item for item in self._snapshot.distributions if item.metadata_path in prediction.restored]
        for distribution in restored:
            touched.update(row.path for row in distribution.record.rows)
        for directory in {posixpath.dirname(path) for path in touched if path.endswith(".py")}:
            cache = posixpath.join(directory, "__pycache__")
            try:
                touched.update(posixpath.join(cache, name) for name in os.listdir(cache))
            except OSError:
                continue
        for distribution in (*self._leaving, *restored):
            for directory, _, names in os.walk(distribution.metadata_path):
                touched.update(posixpath.join(directory, name) for name in names)
        return sorted(touched)

    def _commit(self, journal: Journal, stash: Stash) -> Outcome:
        kept = None
        if self._keep_backup:
            kept = journal.keep_backup()
        else:
            stash.drop()
            journal.forget()
        return Outcome(
            plan=self._plan,
            state=OutcomeState.COMMITTED,
            stash=kept,
            installer_output="\n".join(self._output),
            transaction=journal.identifier,
            bytes_freed=sum(action.bytes for action in self._plan.actions if action.kind.value == "uninstall"),
        )

    def _undo(self, journal: Journal, stash: Stash, reason: str, mismatches: tuple[str, ...]) -> Outcome:
        self._progress("rolling back")
        problems = roll_back(journal, stash)
        if not problems:
            journal.forget()
        # An installer that went wild may have deleted what no plan foresaw.
        lost = lost_for_good(self._snapshot) if not problems else ()
        return Outcome(
            plan=self._plan,
            state=OutcomeState.ROLLBACK_INCOMPLETE if problems or lost else OutcomeState.ROLLED_BACK,
            reason=reason,
            mismatches=lost or mismatches + problems,
            stash=journal.stash_directory if problems else None,
            installer_output="\n".join(self._output),
            transaction=journal.identifier,
        )


def _directories(paths: Iterable[str], prefix: str) -> list[str]:
    """Return the directories above ``paths`` up to the prefix, parents first, as far as they exist."""
    found: set[str] = set()
    for path in paths:
        parent = posixpath.dirname(path)
        while parent not in found and parent not in ("/", prefix):
            found.add(parent)
            parent = posixpath.dirname(parent)
    return [directory for directory in sorted(found) if os.path.isdir(directory)]


def _leftovers(directories: Iterable[str]) -> list[str]:
    """Return the ``~``-prefixed names that are there before the run: those of a later pip can then be told apart."""
    found = []
    for directory in directories:
        found += [posixpath.join(directory, name) for name in os.listdir(directory) if name.startswith("~")]
    return sorted(found)


def _finish_deletion(plan: Plan) -> None:
    """Delete what the plan foresees and the installer left: scripts without a row, byte code, empty directories."""
    environment = plan.environment
    standing = {
        environment.prefix,
        environment.scripts,
        *environment.site_packages,
        *(posixpath.join(environment.prefix, name) for name in ("bin", "etc", "include", "lib", "lib64", "share")),
    }
    parents = set()
    for path in plan.prediction.deleted:
        parents.add(posixpath.dirname(path))
        try:
            os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
    for parent in sorted(parents, key=len, reverse=True):
        directory = parent
        while directory not in standing:
            try:
                os.rmdir(directory)
            except FileNotFoundError:
                pass
            except OSError:
                break
            directory = posixpath.dirname(directory)
    # pip removes the directories that it empties, even site-packages; without it there is no environment any more.
    for directory in (environment.scripts, *environment.site_packages):
        os.makedirs(directory, exist_ok=True)


def _check_writable(plan: Plan) -> None:
    """Refuse before anything changes when a directory that must change may not.

    Raises:
        EnvironmentNotFound: names the directory.
    """
    directories = {posixpath.dirname(path) for path in plan.prediction.deleted}
    for directory in sorted({plan.environment.prefix, *directories}):
        if os.path.isdir(directory) and not os.access(directory, os.W_OK | os.X_OK):
            raise EnvironmentNotFound(
                f"`{directory}` may not be changed by this user",
                help=("run this as a user who may change the environment",),
            )


def _not_writable(prefix: str, error: OSError) -> EnvironmentNotFound:
    reason = error.strerror or str(error)
    where = f" ({error.filename})" if error.filename else ""
    return EnvironmentNotFound(
        f"`{prefix}` cannot be prepared for the change: {reason}{where}",
        help=("make room or get permission there, then run this again",),
    )


def _in_words(error: BaseException) -> str:
    if isinstance(error, Interrupted):
        return f"interrupted by {error.name}"
    return f"{type(error).__name__}: {error}"
