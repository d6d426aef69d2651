"""Whatever call a run dies at, what is there afterwards is the old environment or the planned one."""

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.execute import transaction
from safe_uninstall.execute.journal import stored_receipts
from safe_uninstall.execute.recovery import recover
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import SafeUninstallError
from safe_uninstall.model.outcome import OutcomeState
from tests.support.environments import EnvironmentBuilder, TreeEntry, read_tree
from tests.support.runs import build_twins, carry_out, plan_for

CHANGES = ("link", "rename", "unlink", "rmdir", "mkdir", "symlink", "chmod", "fsync", "write")
"""What of ``os`` changes a file system, or makes a change durable."""

OURS = (".lock", ".safe-uninstall")
"""What a run leaves of its own."""

Tree = dict[str, TreeEntry]


def build(root: Path) -> EnvironmentBuilder:
    """Build the environment of every trial."""
    builder = EnvironmentBuilder(root)
    build_twins(builder)
    return builder


def planned(tmp_path: Path, kind: InstallerKind) -> Tree:
    """Return the tree that a run without faults leaves."""
    builder = build(tmp_path / "planned")
    assert carry_out(builder, plan_for(builder, "twin-cu11", installer=kind)).state is OutcomeState.COMMITTED
    return normalised(read_tree(builder.prefix, ignore=OURS), builder)


def normalised(tree: Tree, builder: EnvironmentBuilder) -> Tree:
    """Leave out what differs between environments by their place."""
    return {path: entry for path, entry in tree.items() if path != "pyvenv.cfg" and not path.endswith("RECORD")} | {
        path: TreeEntry("RECORD", entry.mode, "")
        for path, entry in tree.items()
        if path.endswith("RECORD") and builder is not None
    }


def patch(counter: list[int], at: int, strike: Callable[[], None]) -> None:
    """Make the call number ``at`` of those that change something strike before it happens."""
    for name in CHANGES:
        real = getattr(os, name)

        def call(*arguments: Any, _real: Any = real, **options: Any) -> Any:
            counter[0] += 1
            if counter[0] == at:
                strike()
            return _real(*arguments, **options)

        setattr(os, name, call)


def in_child(action: Callable[[], int]) -> int:
    """Run ``action`` in a forked child and return its status as waitpid(2) gives it."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            status = action()
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def count_calls(builder: EnvironmentBuilder, kind: InstallerKind) -> int:
    """Return how many calls of a run change something."""
    read, write = os.pipe()

    def action() -> int:
        counter = [0]
        patch(counter, -1, lambda: None)
        carry_out(builder, plan_for(builder, "twin-cu11", installer=kind))
        number = counter[0]
        os.write(write, str(number).encode())
        return 0

    assert in_child(action) == 0
    return int(os.read(read, 20))


@pytest.mark.parametrize(("kind", "step"), [(InstallerKind.UV, 1), (InstallerKind.PIP, 6)], ids=["uv", "pip"])
def test_killed_at_every_change(tmp_path: Path, kind: InstallerKind, step: int) -> None:
    """After SIGKILL at any change and a recovery, the tree is the old or the planned one, by type, mode and bytes."""
    after_plan = planned(tmp_path, kind)
    calls = count_calls(build(tmp_path / "counted"), kind)
    assert calls > 60
    ends = {"old": 0, "planned": 0}
    for at in range(1, calls + 1, step):
        builder = build(tmp_path / f"trial{at}")
        before = read_tree(builder.prefix)

        def action(at: int = at, builder: EnvironmentBuilder = builder) -> int:
            patch([0], at, lambda: os.kill(os.getpid(), signal.SIGKILL))
            carry_out(builder, plan_for(builder, "twin-cu11", installer=kind))
            return 0

        assert in_child(action) == signal.SIGKILL
        states = {item.state for item in recover(str(builder.prefix))}
        assert OutcomeState.ROLLBACK_INCOMPLETE not in states
        tree = read_tree(builder.prefix, ignore=OURS)
        receipts = stored_receipts(str(builder.prefix))
        if tree == before:
            ends["old"] += 1
            assert receipts == (), f"killed at call {at} of {calls}"
        else:
            assert normalised(tree, builder) == after_plan, f"killed at call {at} of {calls}"
            assert len(receipts) == 1, f"killed at call {at} of {calls}"
            ends["planned"] += 1
    assert ends["old"] > ends["planned"] > 0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO], ids=errno.errorcode.get)
def test_failing_at_every_change(tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """When any one change fails, the run ends in the old or in the planned state, and says in which."""
    del monkeypatch
    kind = InstallerKind.UV
    after_plan = planned(tmp_path, kind)
    calls = count_calls(build(tmp_path / "counted"), kind)
    for at in range(1, calls + 1):
        builder = build(tmp_path / f"trial{at}")
        before = read_tree(builder.prefix)

        def action(at: int = at, builder: EnvironmentBuilder = builder) -> int:
            def strike() -> None:
                raise OSError(number, os.strerror(number))

            plan = plan_for(builder, "twin-cu11", installer=kind)
            patch([0], at, strike)
            try:
                outcome = carry_out(builder, plan)
            except SafeUninstallError:
                return 10
            return list(OutcomeState).index(outcome.state)

        status = os.waitstatus_to_exitcode(in_child(action))
        tree = read_tree(builder.prefix, ignore=OURS)
        label = f"call {at} of {calls} failed, status {status}"
        if status == list(OutcomeState).index(OutcomeState.COMMITTED):
            assert normalised(tree, builder) == after_plan, label
            assert {item.state for item in recover(str(builder.prefix))} <= {OutcomeState.COMMITTED}, label
            assert len(stored_receipts(str(builder.prefix))) == 1, label
            continue
        if status == list(OutcomeState).index(OutcomeState.ROLLBACK_INCOMPLETE):
            assert [item.state for item in recover(str(builder.prefix))] == [OutcomeState.ROLLED_BACK], label
            assert read_tree(builder.prefix, ignore=OURS) == before, label
        else:
            assert status in (10, list(OutcomeState).index(OutcomeState.ROLLED_BACK)), label
            assert tree == before, label
        assert stored_receipts(str(builder.prefix)) == (), label


def test_the_faults_strike_what_the_run_uses() -> None:
    """The patched functions are the ones that the transaction reaches through the module ``os``."""
    assert vars(transaction)["os"] is os
