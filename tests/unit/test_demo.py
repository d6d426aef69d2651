"""The demo: what it makes, what it refuses, and that nothing of where it is run gets into it."""

import shlex
import stat
import sys
from pathlib import Path

import pytest

from safe_uninstall.cli.main import run
from safe_uninstall.demo.story import Story
from safe_uninstall.model.errors import SafeUninstallError

Capture = pytest.CaptureFixture[str]


def test_the_command_that_it_offers_can_be_pasted(tmp_path: Path, capsys: Capture) -> None:
    """Whatever the directory is called; the environment is there, with the loss that it is about."""
    into = tmp_path / "my play ground"
    assert run(["demo", "--into", str(into)]) == 0
    words = shlex.split(capsys.readouterr().out.partition(": ")[2])
    assert words == ["safe-uninstall", "-p", f"{into}/env", "-n", "demo-cudnn-cu13"]
    assert run(words[1:]) == 3
    assert "error[library-lost]" in capsys.readouterr().out
    assert len(list((into / "wheels").glob("*.whl"))) == 3


@pytest.mark.parametrize("into", ["/proc/x", "", "/dev/null/x"])
def test_a_place_that_cannot_be_made(capsys: Capture, into: str) -> None:
    """A usage error, and nothing that looks like a failure of the program."""
    assert run(["demo", "--into", into]) == 2
    assert f"error[usage]: `{into}` cannot be made: " in capsys.readouterr().err


def test_a_place_that_is_there(tmp_path: Path, capsys: Capture) -> None:
    """It is somebody's."""
    assert run(["demo", "--into", str(tmp_path)]) == 2
    assert "is there already" in capsys.readouterr().err


def test_no_room_for_a_throwaway_environment(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """The help says how to give it some."""

    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    assert run(["demo"]) == 2
    err = capsys.readouterr().err
    assert "no room for a throwaway environment: No space left on device" in err
    assert "--into DIRECTORY" in err


def test_the_working_directory_and_settings_do_not_get_into_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that lie where the user is, and variables of Python and pip."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    for name in ("pip", "venv", "demo_torch", "safe_uninstall"):
        (here / f"{name}.py").write_text("raise SystemExit('not this one')\n")
    monkeypatch.chdir(here)
    for name in ("PYTHONPATH", "PIP_TARGET", "SAFE_UNINSTALL_DRY_RUN"):
        monkeypatch.setenv(name, str(here))
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    there.mkdir()
    told: list[str] = []
    Story(str(there), told.append, color="never").tell()
    assert told[-1].endswith("and demo_torch loads.")
    assert any("error[library-lost]" in line for line in told)


def test_a_step_that_goes_wrong_is_shown_as_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With blanks quoted, and with what it said."""
    broken = tmp_path / "my python"
    broken.write_text("#!/bin/sh\necho disk on fire\nexit 9\n")
    broken.chmod(stat.S_IRWXU)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(SafeUninstallError) as caught:
        Story(str(tmp_path / "x"), print, color="never").build()
    assert caught.value.message.startswith(f"the demo went wrong: `'{broken}' -m venv ")
    assert caught.value.message.endswith("ended with 9: disk on fire")
