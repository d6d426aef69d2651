"""Programs run isolated from the user's settings, and end when they are to end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from safe_uninstall.execute import processes
from safe_uninstall.execute.interrupts import Interrupted
from safe_uninstall.execute.processes import run_program


def variables_of_a_child(**settings: str) -> dict[str, str]:
    """Return the variables that a program gets."""
    run = run_program(("env",), settings=settings)
    return dict(line.partition("=")[::2] for line in run.output.splitlines())


@pytest.mark.parametrize(
    "name",
    [
        "PIP_REQUIREMENT",
        "PIP_TARGET",
        "PIP_USER",
        "PIP_SOMETHING_YET_TO_COME",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONWARNINGS",
        "UV_CONSTRAINT",
        "UV_DRY_RUN",
        "UV_NO_BINARY",
        "UV_SYSTEM_PYTHON",
        "_PIP_RUNNING_IN_SUBPROCESS",
        "__PYVENV_LAUNCHER__",
    ],
)
def test_variables_that_change_what_is_done_are_dropped(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What add to a removal, lead to another environment or break an installer never reaches it, whatever it is."""
    monkeypatch.setenv(name, "1")
    assert name not in variables_of_a_child()


def test_variables_that_say_how_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches, proxies, certificates, and what is nobody's setting."""
    kept = {"UV_LINK_MODE": "copy", "UV_CACHE_DIR": "/c", "https_proxy": "p", "SSL_CERT_FILE": "/x", "ANY": "1"}
    for name, value in kept.items():
        monkeypatch.setenv(name, value)
    assert kept.items() <= variables_of_a_child().items()


def test_configuration_files_are_not_read_unless_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither pip's nor uv's; settings of the caller come last."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/my/pip.conf")
    found = variables_of_a_child()
    assert (found["PIP_CONFIG_FILE"], found["UV_NO_CONFIG"], found["UV_LOCK_TIMEOUT"]) == (os.devnull, "1", "0")
    assert variables_of_a_child(PIP_CONFIG_FILE="/x", PIP_TIMEOUT="3").items() >= {
        ("PIP_CONFIG_FILE", "/x"),
        ("PIP_TIMEOUT", "3"),
    }


def test_the_working_directory_is_not_imported_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``python -m pip`` would run a ``pip.py`` that lies where the user is."""
    (tmp_path / "pip.py").write_text("print('not this one')\n")
    monkeypatch.chdir(tmp_path)
    run = run_program((sys.executable, "-m", "pip", "--version"))
    assert (run.returncode, run.output[:4]) == (0, "pip ")


def test_relative_paths_still_mean_the_users_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program runs elsewhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", "certificates/mine.pem")
    monkeypatch.setenv("TMPDIR", "")
    found = variables_of_a_child()
    assert (found["SSL_CERT_FILE"], found["TMPDIR"]) == (str(tmp_path / "certificates/mine.pem"), "")


def test_output_can_be_shown_and_errors_kept(capfd: pytest.CaptureFixture[str]) -> None:
    """Progress goes to standard error while it happens; what went wrong is still known afterwards."""
    run = run_program(("sh", "-c", "echo progress; echo trouble >&2; exit 3"), show=True)
    assert (run.returncode, run.output) == (3, "trouble")
    assert capfd.readouterr() == ("", "progress\n")


STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"


@pytest.mark.parametrize("code", ["import time; time.sleep(600)", STUBBORN], ids=["polite", "stubborn"])
def test_an_interrupt_ends_the_installer_first(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """When a signal arrives the installer is ended, by force if it must be, before the exception goes on."""
    monkeypatch.setattr(processes, "_KILL_AFTER", 0.3)
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
