"""Where pip and uv are found, and what a user types to start them."""

import importlib.util
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.execute.programs import find_programs, find_pythons, find_uv, tool_pip_requirement


def program(path: Path) -> Path:
    """Write a program."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory whose ``bin`` holds the interpreter and whose ``path`` is all of PATH."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("UV", raising=False)
    return tmp_path


def test_uv_is_looked_for_in_three_places(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable UV, beside the interpreter, PATH; what cannot be run is none."""
    named = places / "named"
    named.write_text("#!/bin/sh\n")
    monkeypatch.setenv("UV", str(named))
    assert find_uv() is None, "not executable"
    named.chmod(0o755)
    assert find_uv() == str(named)
    monkeypatch.delenv("UV")
    assert find_uv() is None
    for place in ("path", "bin"):
        assert find_uv() != str(program(places / place / "uv"))
        assert find_uv() == str(places / place / "uv")


def test_uv_is_found_by_an_absolute_path(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in another directory than the user's."""
    program(places / "path" / "uv")
    monkeypatch.chdir(places)
    monkeypatch.setenv("PATH", "path")
    assert find_uv() == str(places / "path" / "uv")


def test_uv_is_typed_by_name_only_where_the_name_leads_to_it(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command in the help must work in the user's shell."""
    assert find_programs().uv is None
    beside = program(places / "bin" / "uv")
    assert find_programs().uv == str(beside)
    program(places / "path" / "uv")
    assert find_programs().uv == str(beside), "another uv, perhaps an older one"
    beside.unlink()
    assert find_programs().uv == "uv"
    named = program(places / "my-uv")
    monkeypatch.setenv("UV", str(named))
    assert find_programs().uv == str(named)


def test_pip_is_typed_by_name_only_where_the_name_leads_to_the_tools(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any other may be too old to serve an environment that it is not in, or not be there at all."""
    ours = (sys.executable, "-m", "pip")
    assert find_programs().pip == ours
    program(places / "path" / "pip")
    assert find_programs().pip == ours
    program(places / "bin" / "pip")
    monkeypatch.setenv("PATH", os.pathsep.join([str(places / "bin"), str(places / "path")]))
    assert find_programs().pip == ("pip",)
    real = importlib.util.find_spec

    def without_pip(name: str, *rest: Any) -> Any:
        return None if name == "pip" else real(name, *rest)

    monkeypatch.setattr("importlib.util.find_spec", without_pip)
    assert find_programs().pip == ("pip",)
    monkeypatch.setenv("PATH", "")
    assert find_programs().pip is None


def test_interpreters_of_a_version(places: Path) -> None:
    """The running one first, then those that PATH finds by name."""
    running = f"{sys.version_info[0]}.{sys.version_info[1]}"
    named = [str(program(places / "path" / f"python{version}")) for version in (running, "3.7")]
    assert list(find_pythons(running)) == [sys.executable, named[0]]
    assert list(find_pythons("3.7")) == [named[1]]
    assert list(find_pythons("3.6")) == []


def test_the_tools_own_pip_states_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read from pip's metadata; no pip at all is told apart from one that states nothing."""
    assert tool_pip_requirement() == (metadata.metadata("pip")["Requires-Python"] or "")

    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "metadata", missing)
    assert tool_pip_requirement() is None
