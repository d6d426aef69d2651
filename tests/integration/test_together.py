"""Several programs at one environment, and installers that stop half-way."""

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.support.environments import EnvironmentBuilder, read_tree
from tests.support.installed import uv
from tests.support.program import clean_variables, safe_uninstall
from tests.support.runs import build_twins

OURS = (".lock", ".safe-uninstall")


def start(*words: str | Path) -> "subprocess.Popen[str]":
    """Start a program in the background."""
    return subprocess.Popen(
        [str(word) for word in words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=clean_variables({}),
    )


def start_ours(environment: EnvironmentBuilder, *words: str) -> "subprocess.Popen[str]":
    """Start the product in the background."""
    return start(sys.executable, "-m", "safe_uninstall", "-y", "-p", environment.prefix, *words)


def test_two_runs_at_once(environment: EnvironmentBuilder) -> None:
    """One does it; the other waits and sees that the environment changed, or does its own: nothing is lost."""
    build_twins(environment)
    environment.distribution("other", "1.0", {"other/a.py": "a = 1\n", "other/b.py": "b = 1\n"})
    runs = {name: start_ours(environment, name) for name in ("twin-cu11", "other")}
    said = {name: run.communicate(timeout=120)[0] for name, run in runs.items()}
    statuses = {name: run.returncode for name, run in runs.items()}
    assert 0 in statuses.values(), said
    for name, status in statuses.items():
        assert status in (0, 2), said
        if status == 2:
            assert "error[stale-plan]" in said[name] or "error[busy]" in said[name]
            assert safe_uninstall("-y", "-p", environment.prefix, name).status == 0
    left = {path.name for path in environment.site_packages.glob("*.dist-info")}
    assert not {name for name in left if name.startswith(("other-", "twin_cu11-"))}
    assert (environment.site_packages / "nvidia/nvtx/lib/libnvToolsExt.so.1").exists()
    assert safe_uninstall("recover", "-p", environment.prefix).out == "Nothing to recover.\n"


def test_uv_waits_for_a_run(environment: EnvironmentBuilder) -> None:
    """It locks the same file, and goes on when the run has ended."""
    build_twins(environment)
    environment.distribution("other", "1.0", {"other.py": "a = 1\n"})
    run = start_ours(environment, "--installer", "pip", "--probe", "import time; time.sleep(2)", "twin-cu11")
    deadline = time.monotonic() + 60
    while not any("probing" in path.read_text() for path in environment.prefix.glob(".safe-uninstall/*/journal.jsonl")):
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    waiting = start(uv(), "pip", "uninstall", "--python", environment.python, "other")
    time.sleep(0.7)
    assert run.poll() is None
    assert waiting.poll() is None, "uv did not wait"
    assert (environment.site_packages / "other.py").exists()
    said = run.communicate(timeout=60)[0]
    assert run.returncode == 0, said
    assert waiting.wait(60) == 0
    assert not (environment.site_packages / "other.py").exists()


def test_an_installer_that_stops_in_the_second_of_three(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """What it had removed comes back: exit 4, and the old tree by type, mode and bytes."""
    for name in ("one", "two", "three"):
        environment.distribution(name, "1.0", {f"{name}/__init__.py": "x = 1\n", f"{name}/data.txt": name})
    stops = tmp_path / "uv"
    stops.write_text(
        f"#!/bin/sh\ncase \"$*\" in *uninstall*) '{uv()}' pip uninstall --python '{environment.python}' one\n"
        f"rm -r '{environment.site_packages}/three/data.txt'; echo 'No space left on device' >&2; exit 2;; esac\n"
        f"exec '{uv()}' \"$@\"\n"
    )
    stops.chmod(0o755)
    before = read_tree(environment.prefix, ignore=OURS)
    words = ("-y", "--installer", "uv", "-p", environment.prefix, "one", "two", "three")
    done = safe_uninstall(*words, variables={"UV": str(stops), "PATH": os.defpath})
    assert done.status == 4, done.out + done.err
    assert "uv failed with status 2" in done.err
    assert "No space left on device" in done.err
    assert done.last == "Rolled back: the environment is as it was before."
    assert read_tree(environment.prefix, ignore=OURS) == before
