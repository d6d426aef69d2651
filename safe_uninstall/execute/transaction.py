"""Carries a plan out as one transaction: the environment ends as planned, or as it was."""

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from safe_uninstall.analysis.commands import our_command
from safe_uninstall.analysis.fingerprint import describe_changes
from safe_uninstall.execute.commit import finish_commit
from safe_uninstall.execute.installation import kept_paths
from safe_uninstall.execute.installers import Installer, find_installer, run_installer
from safe_uninstall.execute.interrupts import Interrupted, interruptible, uninterrupted
from safe_uninstall.execute.journal import Journal, Step, create_journal, sweep, unfinished
from safe_uninstall.execute.lock import EnvironmentLock
from safe_uninstall.execute.orphans import marked, this_process
from safe_uninstall.execute.probing import Prober, probe_again, refuse_without_prober
from safe_uninstall.execute.processes import InstallerRun
from safe_uninstall.execute.receipt import make_receipt, receipt_document
from safe_uninstall.execute.record_trim import needs_trimming, trim_record
from safe_uninstall.execute.rollback import roll_back
from safe_uninstall.execute.space import require_room
from safe_uninstall.execute.stash import Stash
from safe_uninstall.execute.undo import bring, brings, brought, what_will_be_new
from safe_uninstall.execute.verify import compare_outcome, lost_for_good
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import EnvironmentNotFound, InUse, StalePlan, UnfinishedTransaction, UsageError
from safe_uninstall.model.outcome import Outcome, OutcomeState
from safe_uninstall.model.plan import Code, Plan, Severity, Verdict
from safe_uninstall.model.probe import ProbeRun
from safe_uninstall.model.snapshot import Snapshot

Progress = Callable[[str], None]
"""Told in a few words what begins now."""


def execute(
    plan: Plan,
    *,
    document: Mapping[str, Any],
    rescan: Callable[[], Snapshot],
    replan: Callable[[Snapshot], Plan],
    prober: Prober | None = None,
    progress: Progress = lambda _stage: None,
    keep_backup: bool = False,
    lock_timeout: float = 10.0,
) -> Outcome:
    """Carry out a plan whose verdict is not ``block``.

    Args:
        plan: what to do.
        document: the plan as a document; the receipt holds it.
        rescan: reads the environment anew; called once under the lock, once after the installer.
        replan: judges the same request over a snapshot.
        prober: runs the plan's probes again; needed where it has some.
        progress: told what begins.
        keep_backup: keep the stash after a commit; its path is in the outcome.
        lock_timeout: seconds to wait for another process that works on the environment.

    Returns:
        How it ended; the environment is as planned (``committed``), as before (``rolled-back``), or neither.

    Raises:
        SafeUninstallError: nothing was changed: the plan blocks or is stale, the environment is busy or not writable,
            an earlier run did not end, no installer can serve, there is no room.
    """
    if plan.verdict is Verdict.BLOCK:
        raise UsageError("a plan that blocks cannot be carried out")
    if plan.environment.is_mounted:
        raise UsageError(
            f"`{plan.environment.prefix}` is in the tree mounted at {plan.environment.root}, which is only looked at",
            help=("run this inside the tree",),
        )
    refuse_without_prober(plan, prober)
    prefix = plan.environment.prefix
    with interruptible(), EnvironmentLock(prefix, timeout=lock_timeout) as lock:
        refuse_unfinished(prefix, plan.request.python)
        sweep(prefix)
        snapshot = rescan()
        current = replan(snapshot)
        if current.fingerprint != plan.fingerprint:
            changes = describe_changes(plan.fingerprint_parts, current.fingerprint_parts)
            raise StalePlan(changes, help=("look at the new plan: run the command again",))
        _refuse_in_use(current)
        leaving = tuple(item for item in snapshot.distributions if item.metadata_path in plan.prediction.removed)
        installer = find_installer(
            plan.environment,
            plan.request.installer,
            break_system_packages=plan.request.break_system_packages,
            has_own_pip=any(item.name == "pip" and item.owned_here for item in snapshot.distributions),
        )
        _check_writable(plan)
        return _Run(plan, document, snapshot, leaving, installer, lock, rescan, prober, progress, keep_backup).run()


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
        document: Mapping[str, Any],
        snapshot: Snapshot,
        leaving: tuple[Distribution, ...],
        installer: Installer,
        lock: EnvironmentLock,
        rescan: Callable[[], Snapshot],
        prober: Prober | None,
        progress: Progress,
        keep_backup: bool,
    ) -> None:
        self._plan = plan
        self._document = document
        self._snapshot = snapshot
        self._leaving = leaving
        self._installer = installer
        self._lock = lock
        self._rescan = rescan
        self._prober = prober
        self._progress = progress
        self._keep_backup = keep_backup
        self._output: list[str] = []
        self._probes: list[ProbeRun] = []

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
            with self._lock_for_installer(), marked(journal.directory):
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
        require_room(self._plan, self._installer, touched, journal.directory)
        directories = _directories(touched, self._plan.environment.prefix)
        journal.write(
            Step.PREPARED,
            names=list(self._plan.request.names),
            undoes=self._plan.request.undo,
            removed=sorted(item.label for item in self._leaving),
            installed=brought(self._plan),
            fingerprint=self._plan.fingerprint,
            process=this_process(),
            leftovers=_leftovers(directories),
            **what_will_be_new(self._plan),
        )
        journal.write(Step.STASHING, files=len(touched))
        stash.keep(touched, directories)
        receipt = make_receipt(
            self._plan,
            self._snapshot,
            identifier=journal.identifier,
            document=self._document,
            backup_bytes=stash.size if self._keep_backup else None,
        )
        journal.write_receipt(receipt_document(receipt, self._plan.environment.prefix))
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
        if brings(self._plan):
            self._progress("installing")
            journal.write(Step.INSTALLING, installed=brought(self._plan))
            reason = bring(self._plan, self._installer, journal, stash, self._output)
            if reason is not None:
                return reason, ()
        self._progress("verifying")
        journal.write(Step.VERIFYING)
        mismatches = compare_outcome(self._plan.prediction, self._snapshot, self._rescan(), stash)
        if mismatches:
            return "the outcome is not the one that was planned", mismatches
        return probe_again(self._plan, self._prober, journal, self._progress, self._probes), ()

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
        for distribution in (*self._leaving, *restored):
            # Missing files too: pip removes the directories above them.
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
        try:
            kept = finish_commit(journal, stash)
        except OSError:
            # The environment is as planned. The next run finds what is left to do, and `recover` does it.
            kept = journal.stash_directory
        return Outcome(
            plan=self._plan,
            state=OutcomeState.COMMITTED,
            stash=kept,
            installer_output="\n".join(self._output),
            transaction=journal.identifier,
            bytes_freed=sum(action.bytes for action in self._plan.actions if action.kind.value == "uninstall"),
            probes=tuple(self._probes),
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
            probes=tuple(self._probes),
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


def _refuse_in_use(plan: Plan) -> None:
    """Raise InUse when files of a plan came into use after it was shown, and the request refuses that."""
    for finding in plan.findings:
        if finding.code is Code.IN_USE and finding.severity is Severity.ERROR:
            processes = ", ".join(dict.fromkeys(f"{use.pid} ({use.command})" for use in finding.uses))
            raise InUse(f"{finding.message}: {processes}", help=finding.help)


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
