"""Which installer serves an environment, and how it is run."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from safe_uninstall.execute import installers
from safe_uninstall.execute.installers import Installer, find_installer, find_uv, run_installer, run_program
from safe_uninstall.execute.interrupts import Interrupted, interruptible, uninterrupted
from safe_uninstall.model.environment import Environment, EnvironmentKind, InstallerKind
from safe_uninstall.model.errors import InstallerUnavailable
from tests.support.environments import EnvironmentBuilder

UV, PIP = InstallerKind.UV, InstallerKind.PIP


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of a program that says it is uv 0.13.9."""
    path = tmp_path / "uv"
    path.write_text("#!/bin/sh\necho uv 0.13.9\n")
    path.chmod(0o755)
    monkeypatch.setattr(installers, "find_uv", lambda: str(path))
    return str(path)


@pytest.fixture
def no_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be no uv."""
    monkeypatch.setattr(installers, "find_uv", lambda: None)


@pytest.fixture
def by_pip(make_environment: Callable[..., EnvironmentBuilder]) -> Environment:
    """Return an environment that ``python -m venv`` made."""
    return make_environment().environment()


@pytest.fixture
def by_uv(make_environment: Callable[..., EnvironmentBuilder]) -> Environment:
    """Return an environment that uv made."""
    return make_environment(uv=True).environment()


def test_uv_serves_what_uv_made(by_uv: Environment, uv: str) -> None:
    """Uv is used for its own environments where it is found."""
    found = find_installer(by_uv, None, has_own_pip=False)
    assert (found.kind, found.command) == (UV, (uv, "pip"))
    assert found.options == ("--python", by_uv.python)
    assert found.respects_lock_timeout


def test_pip_serves_what_uv_made_where_there_is_no_uv(by_uv: Environment, no_uv: None) -> None:
    """The tool's pip needs none in the environment."""
    found = find_installer(by_uv, None, has_own_pip=False)
    assert found.kind is PIP
    assert found.command == (sys.executable, "-m", "pip", "--python", by_uv.python)
    assert found.options == ("-y",)


def test_the_users_choice_counts(by_uv: Environment, by_pip: Environment, uv: str) -> None:
    """--installer decides over who made the environment."""
    assert find_installer(by_uv, PIP, has_own_pip=False).kind is PIP
    assert find_installer(by_pip, UV, has_own_pip=False).kind is UV
    assert find_installer(by_pip, None, has_own_pip=True).kind is PIP


def test_a_missing_uv_is_an_error_with_a_way_out(by_pip: Environment, no_uv: None) -> None:
    """Asking for uv without one names the alternative."""
    with pytest.raises(InstallerUnavailable) as caught:
        find_installer(by_pip, UV, has_own_pip=True)
    assert "--installer pip" in caught.value.help[0]


@pytest.mark.parametrize("kind", [UV, PIP])
def test_break_system_packages_is_passed_on(by_pip: Environment, uv: str, kind: InstallerKind) -> None:
    """What the user overrides for us is overridden for the installer."""
    found = find_installer(by_pip, kind, break_system_packages=True, has_own_pip=True)
    assert found.options[-1] == "--break-system-packages"


def test_an_old_uv_is_known_to_wait_for_ever(by_uv: Environment, uv: str) -> None:
    """Before 0.10 uv may not know UV_LOCK_TIMEOUT, so it must be given the lock."""
    Path(uv).write_text("#!/bin/sh\necho uv 0.4.30\n")
    assert not find_installer(by_uv, None, has_own_pip=False).respects_lock_timeout
    Path(uv).write_text("#!/bin/sh\necho nonsense\n")
    assert not find_installer(by_uv, None, has_own_pip=False).respects_lock_timeout


def test_a_uv_that_cannot_run_is_named(by_uv: Environment, uv: str) -> None:
    """A broken program is an error before anything changes."""
    Path(uv).write_text("#!/no/such/interpreter\n")
    with pytest.raises(InstallerUnavailable, match="cannot be run"):
        find_installer(by_uv, None, has_own_pip=False)


def target_directory(environment: Environment) -> Environment:
    """Return a directory without an interpreter of its own."""
    return replace(environment, kind=EnvironmentKind.TARGET, python=None)


def test_uv_serves_target_directories(by_pip: Environment, uv: str) -> None:
    """Pip cannot uninstall from a directory without an interpreter; uv can."""
    found = find_installer(target_directory(by_pip), None, has_own_pip=False)
    assert (found.kind, found.options) == (UV, ("--target", by_pip.prefix))


@pytest.mark.parametrize("wanted", [None, PIP])
def test_target_directories_without_uv_are_refused(
    by_pip: Environment, no_uv: None, wanted: InstallerKind | None
) -> None:
    """The help names the installer that can."""
    with pytest.raises(InstallerUnavailable) as caught:
        find_installer(target_directory(by_pip), wanted, has_own_pip=False)
    assert "--installer uv" in caught.value.help[0]


def old(environment: Environment) -> Environment:
    """Return an environment of a Python that no current pip serves."""
    return replace(environment, python_version="3.8.20")


def test_an_old_python_is_served_by_its_own_pip(
    by_pip: Environment, no_uv: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pip that requires a newer Python than the target's is not run there."""
    monkeypatch.setattr(installers, "tool_pip_requirement", lambda: ">=3.10")
    assert find_installer(by_pip, None, has_own_pip=True).command[0] == sys.executable
    assert find_installer(old(by_pip), None, has_own_pip=True).command == (by_pip.python, "-m", "pip")


def test_an_old_python_without_pip_is_served_by_uv(
    by_pip: Environment, uv: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uv serves every Python."""
    monkeypatch.setattr(installers, "tool_pip_requirement", lambda: ">=3.10")
    assert find_installer(old(by_pip), None, has_own_pip=False).kind is UV


@pytest.mark.parametrize(("requirement", "why"), [(">=3.10", "no longer serves Python 3.8.20"), (None, "has no pip")])
def test_an_old_python_without_either_is_refused(
    by_pip: Environment, no_uv: None, monkeypatch: pytest.MonkeyPatch, requirement: str | None, why: str
) -> None:
    """Refused before anything changes, with the command that gives it a pip."""
    monkeypatch.setattr(installers, "tool_pip_requirement", lambda: requirement)
    with pytest.raises(InstallerUnavailable, match=why) as caught:
        find_installer(old(by_pip), None, has_own_pip=False)
    assert caught.value.help[0].endswith(f"{by_pip.python} -m ensurepip")


def test_an_unreadable_requirement_refuses_nothing(by_pip: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pip whose Requires-Python makes no sense is tried."""
    monkeypatch.setattr(installers, "tool_pip_requirement", lambda: "three")
    assert find_installer(by_pip, PIP, has_own_pip=False).command[0] == sys.executable


def test_the_tools_own_pip_states_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read from pip's metadata; no pip at all is told apart from one that states nothing."""
    assert installers.tool_pip_requirement() == (metadata.metadata("pip")["Requires-Python"] or "")

    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "metadata", missing)
    assert installers.tool_pip_requirement() is None


def test_uv_is_looked_for_in_three_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable UV, beside the interpreter, PATH; what cannot be run is none."""
    named = tmp_path / "named"
    named.write_text("#!/bin/sh\n")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("UV", str(named))
    assert find_uv() is None, "not executable"
    named.chmod(0o755)
    assert find_uv() == str(named)
    monkeypatch.delenv("UV")
    assert find_uv() is None
    for place in ("path", "bin"):
        (tmp_path / place).mkdir()
        program = tmp_path / place / "uv"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        assert find_uv() == str(program)


def test_variables_that_lead_astray_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """PIP_TARGET and the like would send the installer to another environment than the one that was judged."""
    for name in ("PIP_TARGET", "PIP_USER", "UV_SYSTEM_PYTHON", "PYTHONPATH"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PIP_INDEX_URL", "kept")
    run = run_program(("env",))
    variables = dict(line.partition("=")[::2] for line in run.output.splitlines())
    assert not {"PIP_TARGET", "PIP_USER", "UV_SYSTEM_PYTHON", "PYTHONPATH"} & variables.keys()
    assert (variables["PIP_INDEX_URL"], variables["UV_LOCK_TIMEOUT"]) == ("kept", "0")


def test_names_follow_the_options(tmp_path: Path) -> None:
    """The command is: program, uninstall, options, names; its output and status are kept."""
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "$@"\necho trouble >&2\nexit 7\n')
    program.chmod(0o755)
    run = run_installer(Installer(kind=UV, command=(str(program), "pip"), options=("-x",)), ("a", "b"))
    assert (run.returncode, run.output) == (7, "pip uninstall -x a b\ntrouble")


STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"


@pytest.mark.parametrize("code", ["import time; time.sleep(600)", STUBBORN], ids=["polite", "stubborn"])
def test_an_interrupt_ends_the_installer_first(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """When a signal arrives the installer is ended, by force if it must be, before the exception goes on."""
    monkeypatch.setattr(installers, "_KILL_AFTER", 0.3)
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen.communicate

    def interrupted(self: subprocess.Popen[bytes], *_: object) -> None:
        started.append(self)
        if code is STUBBORN:
            assert self.stdout is not None
            self.stdout.readline()
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(Interrupted):
        run_program((sys.executable, "-c", code))
    monkeypatch.setattr(subprocess.Popen, "communicate", real)
    assert started[0].returncode == (-signal.SIGKILL if code is STUBBORN else -signal.SIGTERM)


def test_an_installer_that_ended_by_itself_needs_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process may be gone when the interrupt arrives."""

    def interrupted(self: subprocess.Popen[bytes], *_: object) -> None:
        self.wait()
        raise Interrupted(signal.SIGINT)

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(Interrupted):
        run_program(("true",))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_become_interruptions(number: signal.Signals) -> None:
    """Each ending signal interrupts, and the handlers from before come back."""
    before = signal.getsignal(number)

    def raise_signal() -> None:
        os.kill(os.getpid(), number)
        time.sleep(5)

    with pytest.raises(Interrupted) as caught, interruptible():
        raise_signal()
    assert caught.value.name == number.name
    assert signal.getsignal(number) is before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """Nohup means that the run goes on when the terminal goes away."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
            with uninterrupted():
                os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_signals_are_held_back_while_something_is_finished() -> None:
    """A second Ctrl-C does not stop a roll back."""
    with interruptible():
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            finished = True
        assert finished


def test_other_threads_leave_signals_alone() -> None:
    """Only the main thread may set handlers; elsewhere both do nothing."""
    import threading

    seen: list[object] = []

    def work() -> None:
        with interruptible(), uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
