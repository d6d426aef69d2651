"""Real wheels, with pip and with uv: killed anywhere, a run leaves the old environment or the planned one.

Two hundred kill points: most at calls of the run itself that change something, spread evenly over all of them, the rest
at moments spread over the run, which mostly hit the installer at work.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from safe_uninstall.cli.main import run
from tests.faults.test_kill_points import in_child, patch
from tests.support.environments import TreeEntry, read_tree
from tests.support.installed import PIP, UV, Installed, download, make
from tests.support.program import clean_variables, safe_uninstall

CALLS, MOMENTS = 40, 10
"""Kill points per case and installer."""

CASES = {
    "twins": ((("nvidia-nvtx-cu11==11.8.86",), ("nvidia-nvtx-cu12==12.1.105",)), ("nvidia-nvtx-cu11",)),
    "last-writer": (
        (("--no-deps", "librmm-cu12==26.10.0"), ("--no-deps", "librmm-cu13==26.10.0")),
        ("librmm-cu13", "--restore", "--no-index"),
    ),
}
"""What is installed one after the other, and what is asked for."""

OURS = (".lock", ".safe-uninstall")
Tree = dict[str, TreeEntry]


class Trial:
    """One case with one installer."""

    def __init__(self, root: Path, case: str, kind: str) -> None:
        installs, words = CASES[case]
        self.root = root
        self.original = make(root / "original", kind)
        for requirement in installs:
            self.original.install(*requirement)
        self.words = ["-y", "-q", "--installer", kind, *words]
        if "--restore" in words:
            download(root / "wheels", "librmm-cu12==26.10.0")
            self.words += ["--find-links", str(root / "wheels")]
        self.old = read_tree(self.original.prefix, ignore=OURS)
        planned = self.copy()
        began = time.monotonic()
        done = safe_uninstall("-p", planned.prefix, *self.words)
        self.seconds = time.monotonic() - began
        assert done.status == 0, done.out + done.err
        self.planned = without_byte_code(read_tree(planned.prefix, ignore=OURS))
        assert self.planned != without_byte_code(self.old)
        self.discard(planned)

    def copy(self) -> Installed:
        """Return a copy of the environment."""
        shutil.rmtree(self.root / "copy", ignore_errors=True)
        return self.original.copy(self.root / "copy")

    def discard(self, copy: Installed) -> None:
        """Remove a copy, and hold that the original was not written through its links."""
        shutil.rmtree(copy.prefix)

    def end_of(self, copy: Installed, label: str) -> str:
        """Recover a copy, and return whether it is the old or the planned environment: anything else fails."""
        done = safe_uninstall("recover", "-p", copy.prefix)
        assert done.status == 0, f"{label}: {done.out}{done.err}"
        tree = read_tree(copy.prefix, ignore=OURS)
        self.discard(copy)
        if tree == self.old:
            return "old"
        assert without_byte_code(tree) == self.planned, label
        return "planned"


def without_byte_code(tree: Tree) -> Tree:
    """Leave out what holds the time at which it was made."""
    return {
        path: entry for path, entry in tree.items() if not path.endswith(".pyc") and Path(path).name != "__pycache__"
    }


@pytest.fixture(scope="module", params=[(case, kind) for case in CASES for kind in (PIP, UV)], ids="-".join)
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """Return a trial; its original must be as it was in the end."""
    root = tmp_path_factory.mktemp("trial")
    made = Trial(root, *request.param)
    yield made
    assert read_tree(made.original.prefix, ignore=OURS) == made.old, "links into the original were written through"
    shutil.rmtree(root)


def in_process(trial: Trial, copy: Installed) -> int:
    """Run the command line in this process, as silent as one that nobody looks at."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        os.environ.pop(name, None)
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(quiet, descriptor)
    return run(["-p", str(copy.prefix), *trial.words])


def count_calls(trial: Trial) -> int:
    """Return how many calls of a run change something."""
    copy = trial.copy()
    read, write = os.pipe()

    def action() -> int:
        counter = [0]
        patch(counter, -1, lambda: None)
        in_process(trial, copy)
        number = counter[0]
        os.write(write, str(number).encode())
        return 0

    assert in_child(action) == 0
    trial.discard(copy)
    return int(os.read(read, 20))


def test_killed_at_calls_that_change_something(trial: Trial) -> None:
    """SIGKILL before the call, then ``recover``: by path, type, mode and SHA-256."""
    calls = count_calls(trial)
    points = sorted({1 + number * (calls - 1) // (CALLS - 1) for number in range(CALLS)})
    assert len(points) == CALLS
    ends = []
    for at in points:
        copy = trial.copy()

        def action(at: int = at, copy: Installed = copy) -> int:
            patch([0], at, lambda: os.kill(os.getpid(), signal.SIGKILL))
            return in_process(trial, copy)

        assert in_child(action) == signal.SIGKILL, f"call {at} of {calls} was not reached"
        ends.append(trial.end_of(copy, f"killed at call {at} of {calls}"))
    assert ends[0] == "old"
    assert ends[-1] == "planned"


def test_killed_at_moments_of_the_run(trial: Trial) -> None:
    """Whatever the run was doing: its installer does not go on behind the recovery's back."""
    ends = []
    for number in range(MOMENTS):
        copy = trial.copy()
        process = subprocess.Popen(
            [sys.executable, "-m", "safe_uninstall", "-p", str(copy.prefix), *trial.words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=clean_variables({}),
        )
        delay = trial.seconds * (number + 1) / (MOMENTS + 1)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        ends.append(trial.end_of(copy, f"killed after {delay:.2f} s"))
    assert len(ends) == MOMENTS
