"""An undo that is killed, or whose disk fails, at every call that changes something: undone, or not at all."""

import errno
import os
import signal
from pathlib import Path

import pytest

from safe_uninstall.execute.fetch import WheelFinder
from safe_uninstall.execute.history import read_history
from safe_uninstall.execute.recovery import recover
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import SafeUninstallError
from safe_uninstall.model.history import TransactionState
from safe_uninstall.model.outcome import OutcomeState
from safe_uninstall.model.wheel import Wheel, WheelUnavailable
from safe_uninstall.scan.wheel import read_wheel
from tests.faults.test_kill_points import OURS, in_child, patch
from tests.support.environments import Content, EnvironmentBuilder, TreeEntry, library, read_tree
from tests.support.installed import uv
from tests.support.program import call
from tests.support.runs import carry_out, plan_for, plan_undo
from tests.support.wheel_files import write_wheel

Tree = dict[str, TreeEntry]
UV = InstallerKind.UV


class WheelsOnDisk:
    """A source of the wheels in one directory."""

    def __init__(self, directory: Path, builder: EnvironmentBuilder) -> None:
        self._directory = directory
        self._environment = builder.environment()

    def restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        """Return the wheel of that name."""
        file = self._directory / f"{distribution.name}-{distribution.version}-py3-none-any.whl"
        return read_wheel(str(file), self._environment, source="a directory")

    def resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        """Nobody asks."""
        raise AssertionError(requirements)


class Trial:
    """An environment from which something was removed; ``former`` is the tree before that."""

    def __init__(self, root: Path, wheels: Path, *, keep_backup: bool) -> None:
        self.builder = EnvironmentBuilder(root)
        self.wheels = WheelsOnDisk(wheels, self.builder)
        words = ["--no-index", "--no-cache", "--find-links", str(wheels), "--compile-bytecode", "old", "shared"]
        call([uv(), "pip", "install", "-q", "--python", self.builder.python, *words])
        self.former = read_tree(self.builder.prefix, ignore=OURS)
        plan = plan_for(self.builder, "old", installer=UV)
        assert carry_out(self.builder, plan, keep_backup=keep_backup).state is OutcomeState.COMMITTED
        self.old = self.tree()
        assert self.old != self.former

    def tree(self) -> Tree:
        """Return all of the environment but what is ours."""
        return read_tree(self.builder.prefix, ignore=OURS)

    def undo(self) -> OutcomeState:
        """Undo the removal."""
        plan = plan_undo(self.builder, wheels=self.wheels, installer=UV)
        return carry_out(self.builder, plan, wheels=self.wheels).state

    def states(self) -> list[TransactionState]:
        """Return the states in the history, newest first."""
        transactions, problems = read_history(str(self.builder.prefix))
        assert problems == ()
        return [item.state for item in transactions]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with wheels."""
    directory = tmp_path_factory.mktemp("wheels")
    twins: dict[str, Content] = {"lib/libtwin.so.1": library("libtwin.so.1"), "lib/common.py": "x = 1\n"}
    write_wheel(directory, "old", files={**twins, "old/sub/__init__.py": "y = 1\n"}, scripts={"old": "old.sub:main"})
    write_wheel(directory, "shared", files=twins)
    return directory


def without_byte_code(tree: Tree) -> Tree:
    """Leave out what holds times, and how an installer wrote it down."""
    return {
        path: item for path, item in tree.items() if not path.endswith((".pyc", "RECORD", "__pycache__", "bin/old"))
    }


def count_calls(trial: Trial) -> int:
    """Return how many calls of an undo change something."""
    read, write = os.pipe()

    def action() -> int:
        counter = [0]
        patch(counter, -1, lambda: None)
        trial.undo()
        os.write(write, str(counter[0]).encode())
        return 0

    assert in_child(action) == 0
    return int(os.read(read, 20))


def hold(trial: Trial, ends: list[str], label: str, *, exact: bool) -> None:
    """Hold that an environment is one of the two that it may be, and that the history says which."""
    tree = trial.tree()
    if tree == trial.old:
        ends.append("old")
        assert trial.states() == [TransactionState.COMMITTED], label
        return
    ends.append("undone")
    assert trial.states() == [TransactionState.COMMITTED, TransactionState.UNDONE], label
    if exact:
        assert tree == trial.former, label
    else:
        assert without_byte_code(tree) == without_byte_code(trial.former), label


@pytest.mark.parametrize(("keep_backup", "step"), [(True, 1), (False, 9)], ids=["backup", "wheels"])
def test_killed_at_every_change(tmp_path: Path, wheels: Path, keep_backup: bool, step: int) -> None:
    """After SIGKILL and a recovery nothing or everything is back; from a backup byte for byte; and it can go on."""
    calls = count_calls(Trial(tmp_path / "counted", wheels, keep_backup=keep_backup))
    assert calls > 40
    ends: list[str] = []
    for at in range(1, calls + 1, step):
        trial = Trial(tmp_path / f"trial{at}", wheels, keep_backup=keep_backup)

        def action(at: int = at, trial: Trial = trial) -> int:
            patch([0], at, lambda: os.kill(os.getpid(), signal.SIGKILL))
            trial.undo()
            return 0

        assert in_child(action) == signal.SIGKILL
        states = {item.state for item in recover(str(trial.builder.prefix))}
        assert OutcomeState.ROLLBACK_INCOMPLETE not in states
        hold(trial, ends, f"killed at call {at} of {calls}", exact=keep_backup)
        if ends[-1] == "old" and at % 9 == 1:
            assert trial.undo() is OutcomeState.COMMITTED
            hold(trial, [], f"again after call {at}", exact=keep_backup)
    assert set(ends) == {"old", "undone"}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
def test_failing_at_every_change(tmp_path: Path, wheels: Path, number: int) -> None:
    """When any one change fails, the outcome says in which of the two states the environment is."""
    calls = count_calls(Trial(tmp_path / "counted", wheels, keep_backup=True))
    refused = 10
    ends: list[str] = []
    for at in range(1, calls + 1, 6):
        trial = Trial(tmp_path / f"trial{at}", wheels, keep_backup=True)

        def action(at: int = at, trial: Trial = trial) -> int:
            def strike() -> None:
                raise OSError(number, os.strerror(number))

            plan = plan_undo(trial.builder, installer=UV)
            patch([0], at, strike)
            try:
                return list(OutcomeState).index(carry_out(trial.builder, plan).state)
            except SafeUninstallError:
                return refused

        status = os.waitstatus_to_exitcode(in_child(action))
        label = f"call {at} of {calls} failed, status {status}"
        recover(str(trial.builder.prefix))
        hold(trial, ends, label, exact=True)
        committed = status == list(OutcomeState).index(OutcomeState.COMMITTED)
        assert (ends[-1] == "undone") == committed, label
    assert set(ends) == {"old", "undone"}


def test_the_finder_is_what_stands_in_here() -> None:
    """The source of wheels of these tests has what the product's has."""
    assert {"restore", "resolve"} <= vars(WheelFinder).keys() & vars(WheelsOnDisk).keys()
