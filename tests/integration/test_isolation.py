"""What the user set for other purposes, and where the program is run, does not change what is removed."""

import sys
from pathlib import Path

import pytest

from tests.support.environments import EnvironmentBuilder
from tests.support.program import safe_uninstall

INSTALLERS = pytest.mark.parametrize("installer", ["pip", "uv"])


@pytest.fixture
def three(environment: EnvironmentBuilder) -> EnvironmentBuilder:
    """Return an environment with three distributions."""
    for name in ("one", "two", "three"):
        environment.distribution(name, "1.0", {f"{name}.py": "x = 1\n"})
    return environment


def installed(environment: EnvironmentBuilder) -> list[str]:
    """Return the names of what is left."""
    return sorted(path.stem for path in environment.site_packages.glob("*.py"))


@INSTALLERS
def test_variables_of_installers(three: EnvironmentBuilder, tmp_path: Path, installer: str) -> None:
    """More requirements, dry runs, other places, warnings as errors: none of it reaches the installer."""
    (tmp_path / "more.txt").write_text("two\n")
    more = str(tmp_path / "more.txt")
    variables = {
        "PIP_REQUIREMENT": more,
        "PIP_DRY_RUN": "1",
        "PIP_REQUIRE_VIRTUALENV": "1",
        "PIP_TARGET": str(tmp_path / "target"),
        "PIP_UPGRADE": "1",
        "PIP_VERBOSE": "nonsense",
        "PYTHONWARNINGS": "error",
        "UV_DRY_RUN": "1",
        "UV_TARGET": str(tmp_path / "target"),
        "UV_PREFIX": str(tmp_path / "target"),
        "UV_SYSTEM_PYTHON": "1",
        "UV_CONSTRAINT": more,
        "UV_NO_BINARY": "1",
    }
    done = safe_uninstall("-vy", "--installer", installer, "-p", three.prefix, "one", variables=variables)
    assert (done.status, installed(three)) == (0, ["three", "two"]), done.out + done.err
    assert "not installed" not in done.out, "the installer looked in the right place"


@INSTALLERS
def test_configuration_files(three: EnvironmentBuilder, tmp_path: Path, installer: str) -> None:
    """Of the user, and of the project that the user is in."""
    home = tmp_path / "home"
    (tmp_path / "more.txt").write_text("two\n")
    elsewhere = tmp_path / "elsewhere"
    for place, text in (
        (home / "pip" / "pip.conf", f"[uninstall]\nrequirement = {tmp_path}/more.txt\n[global]\nuser = true\n"),
        (home / "uv" / "uv.toml", f'[pip]\ntarget = "{elsewhere}"\n'),
        (tmp_path / "project" / "uv.toml", f'[pip]\nprefix = "{elsewhere}"\n'),
    ):
        place.parent.mkdir(parents=True)
        place.write_text(text)
    done = safe_uninstall(
        "-vy", "--installer", installer, "-p", three.prefix, "one", directory=tmp_path / "project",
        variables={"XDG_CONFIG_HOME": str(home), "PIP_CONFIG_FILE": str(home / "pip" / "pip.conf")},
    )  # fmt: skip
    assert (done.status, installed(three)) == (0, ["three", "two"]), done.out + done.err
    assert "not installed" not in done.out, "the installer looked in the right place"


@INSTALLERS
def test_modules_in_the_working_directory(three: EnvironmentBuilder, tmp_path: Path, installer: str) -> None:
    """``python -m pip`` would run them, with the rights of whoever cleans up."""
    here = tmp_path / "here"
    here.mkdir()
    for name in ("pip", "json", "subprocess", "sitecustomize"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'evil')!r}, 'w'); raise SystemExit(7)\n")
    # The program itself is started as its script does it, without the working directory on its path.
    done = safe_uninstall(
        "-y", "--installer", installer, "-p", "../env", "one", directory=here, python=wrapper(tmp_path)
    )
    assert (done.status, installed(three)) == (0, ["three", "two"]), done.out + done.err
    assert not (tmp_path / "evil").exists()


def wrapper(directory: Path) -> Path:
    """Return an interpreter that leaves the working directory out, as a console script does."""
    path = directory / "python-isolated"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -I "$@"\n')
    path.chmod(0o755)
    return path


def test_relative_places_of_wheels_mean_the_users_directory(three: EnvironmentBuilder, tmp_path: Path) -> None:
    """Installers run elsewhere."""
    made = safe_uninstall("demo", "--into", "play ground", directory=tmp_path)
    assert made.status == 0, made.out + made.err
    prefix = tmp_path / "play ground" / "env"
    done = safe_uninstall(
        "-y", "--restore", "--no-index", "--find-links", "wheels", "-p", "env", "demo-cudnn-cu13",
        directory=prefix.parent,
    )  # fmt: skip
    assert done.status == 0, done.out + done.err
    assert "Restored demo-cudnn-cu12 9.10.2.21." in done.out
