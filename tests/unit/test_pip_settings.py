"""Of the user's configuration of pip only what says where and how to fetch is handed on."""

import os
import sys
from pathlib import Path

import pytest

from safe_uninstall.execute.pip_settings import PipSettings

PIP = (sys.executable, "-m", "pip")

CONFIGURATION = """\
[global]
index-url = https://global.example/simple
timeout = 7
target = /elsewhere
user = true
find-links =
    https://one.example/it's
    wheels
constraint = versions.txt
[download]
timeout = 8
cert = certificates/mine.pem
requirement = more.txt
[install]
timeout = 9
require-hashes = true
[uninstall]
requirement = more.txt
"""


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return variables that name a configuration file, relative to the working directory like what is in it."""
    (tmp_path / "wheels").mkdir()
    (tmp_path / "versions.txt").write_text("")
    (tmp_path / "pip.conf").write_text(CONFIGURATION)
    monkeypatch.chdir(tmp_path)
    return {"PIP_CONFIG_FILE": "pip.conf"}


def test_files_say_where_and_how(configured: dict[str, str], tmp_path: Path) -> None:
    """The section of the command counts before the global one; relative paths mean the user's directory."""
    found = PipSettings(PIP, configured).for_command("download")
    assert {name: found.get(name) for name in ("PIP_INDEX_URL", "PIP_TIMEOUT", "PIP_FIND_LINKS", "PIP_CERT")} == {
        "PIP_INDEX_URL": "https://global.example/simple",
        "PIP_TIMEOUT": "8",
        "PIP_FIND_LINKS": f"https://one.example/it's {tmp_path}/wheels",
        "PIP_CERT": f"{tmp_path}/certificates/mine.pem",
    }
    assert PipSettings(PIP, configured).for_command("install")["PIP_TIMEOUT"] == "9"


def test_what_means_something_else_is_left_out(configured: dict[str, str]) -> None:
    """From files and from variables."""
    variables = {**configured, "PIP_PREFIX": "/p", "PIP_DRY_RUN": "1", "PIP_REQUIREMENT": "r.txt", "PIP_NO_BINARY": "x"}
    allowed = {"PIP_CERT", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_TIMEOUT", "PIP_TRUSTED_HOST"}
    for command in ("download", "install"):
        found = PipSettings(PIP, variables).for_command(command)
        assert found.keys() <= allowed
        assert found["PIP_INDEX_URL"] == "https://global.example/simple"


def test_variables_count_before_files(configured: dict[str, str]) -> None:
    """As in pip; an empty one says nothing."""
    variables = {**configured, "PIP_TIMEOUT": "1", "PIP_INDEX_URL": "", "PIP_DEFAULT_TIMEOUT": "2"}
    found = PipSettings(PIP, variables).for_command("download")
    assert (found["PIP_TIMEOUT"], found["PIP_DEFAULT_TIMEOUT"]) == ("1", "2")
    assert found["PIP_INDEX_URL"] == "https://global.example/simple"


def test_constraints_count_where_a_version_is_chosen(configured: dict[str, str], tmp_path: Path) -> None:
    """What is restored has its version already, and a constraint could forbid it."""
    settings = PipSettings(PIP, {**configured, "PIP_PRE": "1"})
    chosen = settings.for_command("install", choosing=True)
    assert (chosen["PIP_CONSTRAINT"], chosen["PIP_PRE"]) == (f"{tmp_path}/versions.txt", "1")
    assert not {"PIP_CONSTRAINT", "PIP_PRE"} & settings.for_command("download").keys()


def test_files_are_read_once_and_need_not_be_readable(tmp_path: Path) -> None:
    """A pip that cannot say what they say leaves the variables."""
    pip = tmp_path / "pip"
    pip.write_text(f"#!/bin/sh\necho called >> {tmp_path}/calls\necho \"global.timeout='5'\"\nexit 1\n")
    pip.chmod(0o755)
    settings = PipSettings((str(pip),), {"PIP_PROXY": "p"})
    assert settings.for_command("download") == settings.for_command("install") == {"PIP_PROXY": "p"}
    assert (tmp_path / "calls").read_text() == "called\n"


def test_no_file_is_one_that_says_nothing() -> None:
    """The null device, as in pip."""
    assert PipSettings(PIP, {"PIP_CONFIG_FILE": os.devnull}).for_command("install", choosing=True) == {}


def test_users_options_do_not_hide_files(tmp_path: Path) -> None:
    """``user = true`` is meant for installations, and would be taken for an option of the command that lists files."""
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nuser = true\nsite = true\nproxy = p\n")
    assert PipSettings(PIP, {"PIP_CONFIG_FILE": str(file)}).for_command("download")["PIP_PROXY"] == "p"
