"""Commands in the help: each is whole, and leads to the environment in question with programs that are there."""

import shlex
from typing import Any

import pytest

from safe_uninstall.analysis.commands import Commands, our_command, preferred_installer
from safe_uninstall.model.distribution import DirectUrl, Distribution
from safe_uninstall.model.environment import EnvironmentKind, InstallerKind, Programs
from tests.support.fakes import distribution, environment, snapshot

PYTHON = "/env/bin/python"


def reinstall(installer: InstallerKind, *installed: Distribution, **changes: Any) -> list[str]:
    """Return the words of the command that reinstalls distributions."""
    commands = Commands(snapshot(environment=environment(**changes)), installer)
    return shlex.split(commands.reinstall(installed))


def test_reinstalling_names_exact_versions() -> None:
    """Over what is there, and nothing else."""
    one, two = distribution("one", "1.0").distribution, distribution("two", "2.0+cu12").distribution
    assert reinstall(InstallerKind.PIP, one, two) == [
        "pip", "--python", PYTHON, "install", "--force-reinstall", "--no-deps", "one==1.0", "two==2.0+cu12",
    ]  # fmt: skip
    assert reinstall(InstallerKind.UV, one) == [
        "uv", "pip", "install", "--python", PYTHON, "--reinstall", "--no-deps", "one==1.0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("conda", "conda install -p /env --force-reinstall libone"),
        ("mamba", "mamba install -p /env --force-reinstall libone"),
        ("pixi", "pixi reinstall libone"),
    ],
)
def test_what_conda_installed_is_condas_to_reinstall(manager: str, command: str) -> None:
    """By the package's own name, with the program that made the environment."""
    one = distribution("one", "1.0", conda_package="libone-1.0-h0").distribution
    commands = Commands(snapshot(environment=environment(managed_by=manager)), InstallerKind.PIP)
    assert commands.reinstall((one,)) == command


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (DirectUrl(url="https://example.org/one.whl"), ["one @ https://example.org/one.whl"]),
        (DirectUrl(url="file:///src/one", is_directory=True), ["one @ file:///src/one"]),
        (DirectUrl(url="https://example.org/one.git", vcs="git"), ["one @ git+https://example.org/one.git"]),
        (DirectUrl(url="file:///my%20src", is_directory=True, editable=True), ["--editable", "/my src"]),
    ],
)
def test_what_came_by_url_is_reinstalled_by_url(origin: DirectUrl, words: list[str]) -> None:
    """PEP 610: an index does not have it, or has another of that name."""
    one = distribution("one", direct_url=origin).distribution
    assert reinstall(InstallerKind.PIP, one)[-len(words) :] == words


def test_paths_with_blanks_are_quoted() -> None:
    """A command can be pasted as it is."""
    python = "/my env/bin/python"
    one = distribution("one").distribution
    assert reinstall(InstallerKind.PIP, one, python=python)[:3] == ["pip", "--python", python]


ONE = distribution("one", "1.0").distribution
TARGET: dict[str, Any] = {"kind": EnvironmentKind.TARGET, "python": None, "prefix": "/t", "site_packages": ("/t",)}
FILLED: dict[str, Any] = {
    "kind": EnvironmentKind.PREFIX,
    "python": None,
    "prefix": "/p",
    "site_packages": ("/p/lib/python3.11/site-packages",),
}
BROKEN: dict[str, Any] = {"python": None}


def commands(installer: InstallerKind, programs: Programs | None = None, **changes: Any) -> Commands:
    """Return the commands for an environment."""
    return Commands(snapshot(environment=environment(**changes)), installer, programs=programs)


def test_from_a_directory_pip_installs_and_uv_uninstalls() -> None:
    """Pip cannot uninstall from what --target or --prefix filled."""
    target = commands(InstallerKind.PIP, **TARGET)
    assert target.uninstall_with_installer(ONE) == "uv pip uninstall --target /t one"
    assert target.reinstall((ONE,)) == "pip install --target /t --upgrade --no-deps one==1.0"
    assert target.repair(ONE) == target.reinstall((ONE,))
    assert target.list_installed() == "pip list --path /t"
    assert target.ensure_pip() == "pip install --target /t pip"
    filled = commands(InstallerKind.PIP, **FILLED)
    assert filled.uninstall_with_installer(ONE) == "uv pip uninstall --python python3.11 --prefix /p one"
    assert filled.reinstall((ONE,)) == "python3.11 -m pip install --prefix /p --ignore-installed --no-deps one==1.0"
    assert filled.list_installed() == "pip list --path /p/lib/python3.11/site-packages"


def test_uv_leads_to_a_directory_by_what_filled_it() -> None:
    """And with an interpreter of the version that a prefix is for."""
    target, filled = commands(InstallerKind.UV, **TARGET), commands(InstallerKind.UV, **FILLED)
    assert target.reinstall((ONE,)) == "uv pip install --target /t --reinstall --no-deps one==1.0"
    assert target.repair(ONE) == target.reinstall((ONE,))
    assert filled.list_installed() == "uv pip list --python python3.11 --prefix /p"


@pytest.mark.parametrize(
    ("installer", "own_pip", "expected"),
    [
        (InstallerKind.UV, False, "uv pip list --python /env/bin/python"),
        (InstallerKind.PIP, False, "pip --python /env/bin/python list"),
        (InstallerKind.PIP, True, "/env/bin/python -m pip list"),
    ],
)
def test_what_is_installed_is_listed_for_the_environment(
    installer: InstallerKind, own_pip: bool, expected: str
) -> None:
    """A bare ``pip list`` would tell of whichever environment its pip is in."""
    snap = snapshot(*([distribution("pip")] if own_pip else []))
    assert Commands(snap, installer).list_installed() == expected


def test_programs_are_started_as_they_are_found() -> None:
    """Where the name does not lead to them, by path."""
    found = Programs(pip=("/tool/bin/python", "-m", "pip"), uv="/tool/bin/uv")
    assert commands(InstallerKind.PIP, found).list_installed() == f"/tool/bin/python -m pip --python {PYTHON} list"
    assert commands(InstallerKind.UV, found).uninstall_with_installer(ONE) == (
        f"/tool/bin/uv pip uninstall --python {PYTHON} one"
    )


def test_uv_is_not_recommended_where_it_is_not_found() -> None:
    """Not even for an environment that it made."""
    none = Programs(uv=None)
    assert commands(InstallerKind.UV, none).reinstall((ONE,)) == (
        f"pip --python {PYTHON} install --force-reinstall --no-deps one==1.0"
    )
    assert commands(InstallerKind.UV, none).repair(ONE).split()[4] == "--ignore-installed"
    assert commands(InstallerKind.UV, none, **TARGET).list_installed() == "pip list --path /t"
    assert commands(InstallerKind.UV, none, **TARGET).uninstall_with_installer(ONE).startswith("uv ")
    assert commands(InstallerKind.UV, Programs(pip=None, uv=None)).list_installed().startswith("pip ")


def test_a_venv_without_interpreter_is_still_a_venv() -> None:
    """Its commands lead to where the interpreter should be, not into the prefix as if pip had filled that."""
    assert commands(InstallerKind.PIP, **BROKEN).reinstall((ONE,)).startswith("pip --python /env/bin/python install ")
    assert commands(InstallerKind.UV, **BROKEN).reinstall((ONE,)).startswith("uv pip install --python /env/bin/python")
    assert commands(InstallerKind.PIP, **BROKEN).list_installed().startswith("pip list --path /env/lib/")


@pytest.mark.parametrize(
    ("changes", "uv", "expected"),
    [
        ({}, "uv", InstallerKind.PIP),
        ({"created_by_uv": True}, "uv", InstallerKind.UV),
        ({"created_by_uv": True}, None, InstallerKind.PIP),
        (TARGET, "uv", InstallerKind.UV),
        (TARGET, None, InstallerKind.UV),
        (FILLED, "uv", InstallerKind.UV),
        (BROKEN, "uv", InstallerKind.PIP),
    ],
)
def test_the_installer_that_an_environment_is_used_to(
    changes: dict[str, Any], uv: str | None, expected: InstallerKind
) -> None:
    """Uv where uv made it and is found, or where only uv can; else pip."""
    assert preferred_installer(environment(**changes), Programs(uv=uv)) is expected


def test_our_own_commands_lead_to_the_environment_that_was_asked_for() -> None:
    """``-p`` is repeated as it was given; without it the environment is found as before."""
    snap = snapshot()
    assert Commands(snap, InstallerKind.PIP).ours("a", "b") == "safe-uninstall a b"
    assert Commands(snap, InstallerKind.PIP, python="../e v").ours("a") == "safe-uninstall -p '../e v' a"
    assert our_command(None, "recover") == "safe-uninstall recover"
    assert our_command("e", "recover") == "safe-uninstall -p e recover"
