"""Which installer serves an environment, and how it is run."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from safe_uninstall.execute import installers
from safe_uninstall.execute.installers import Installer, find_installer, find_pip, run_installation, run_installer
from safe_uninstall.execute.processes import InstallerRun
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
    assert caught.value.help == (f"install it: {sys.executable} -m pip install uv", "or use pip: --installer pip")


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


def directory(environment: Environment, kind: EnvironmentKind = EnvironmentKind.TARGET) -> Environment:
    """Return a directory without an interpreter of its own."""
    return replace(environment, kind=kind, python=None)


def test_uv_serves_target_directories(by_pip: Environment, uv: str) -> None:
    """Pip cannot uninstall from a directory without an interpreter; uv can."""
    found = find_installer(directory(by_pip), None, has_own_pip=False)
    assert (found.kind, found.options) == (UV, ("--python", sys.executable, "--target", by_pip.prefix))


@pytest.mark.parametrize(
    ("machine", "host", "platform"),
    [
        ("aarch64", "x86_64", ("--python-platform", "aarch64-manylinux_2_40")),
        ("x86_64", "aarch64", ("--python-platform", "x86_64-manylinux_2_40")),
        ("x86_64", "x86_64", ()),
        ("mips", "x86_64", ()),
    ],
)
def test_uv_is_told_the_machine_that_a_directory_is_for(
    by_pip: Environment, uv: str, monkeypatch: pytest.MonkeyPatch, machine: str, host: str, platform: tuple[str, ...]
) -> None:
    """Where it is not this one; an environment with an interpreter tells that itself."""
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(machine=host))
    foreign = replace(by_pip, markers={"platform_machine": machine})
    assert find_installer(directory(foreign), None, has_own_pip=False).platform == platform
    assert find_installer(foreign, UV, has_own_pip=False).platform == ()


def test_uv_serves_prefixes(by_pip: Environment, uv: str) -> None:
    """With an interpreter of the version that the prefix was filled for, which need not be in it."""
    found = find_installer(directory(by_pip, EnvironmentKind.PREFIX), None, has_own_pip=False)
    assert (found.kind, found.options) == (UV, ("--python", sys.executable, "--prefix", by_pip.prefix))


def test_a_prefix_of_another_version_needs_an_interpreter_of_it(
    by_pip: Environment, uv: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked for on PATH; what is not what its name says is passed over, and none at all is said beforehand."""
    other = replace(directory(by_pip, EnvironmentKind.PREFIX), python_version="3.7")
    for place, text in (("fails", "exit 127"), ("lies", "echo 3.6"), ("works", "echo 3.7")):
        program = tmp_path / place / "python3.7"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    broken = tmp_path / "broken" / "python3.7"
    broken.parent.mkdir()
    broken.write_text("#!/no/such/program\n")
    broken.chmod(0o755)
    places = [str(tmp_path / place) for place in ("broken", "fails", "lies")]
    monkeypatch.setenv("PATH", os.pathsep.join(places))
    with pytest.raises(InstallerUnavailable, match=r"uv needs a Python 3\.7 to uninstall from") as caught:
        find_installer(other, None, has_own_pip=False)
    assert caught.value.help == ("install Python 3.7, and see that `python3.7` is on PATH",)
    monkeypatch.setenv("PATH", os.pathsep.join([*places, str(tmp_path / "works")]))
    assert find_installer(other, None, has_own_pip=False).options[1] == str(tmp_path / "works" / "python3.7")


@pytest.mark.parametrize("kind", [EnvironmentKind.TARGET, EnvironmentKind.PREFIX])
@pytest.mark.parametrize("wanted", [None, PIP, UV])
def test_directories_without_uv_are_refused(
    by_pip: Environment, no_uv: None, wanted: InstallerKind | None, kind: EnvironmentKind
) -> None:
    """The help says how to get the installer that can, and never sends to the one that cannot."""
    with pytest.raises(InstallerUnavailable) as caught:
        find_installer(directory(by_pip, kind), wanted, has_own_pip=False)
    (help,) = caught.value.help
    assert help.startswith("install ")
    assert help.endswith(f": {sys.executable} -m pip install uv")


def test_a_directory_for_which_pip_is_asked_although_there_is_uv(by_pip: Environment, uv: str) -> None:
    """The one that can is there already."""
    with pytest.raises(InstallerUnavailable) as caught:
        find_installer(directory(by_pip), PIP, has_own_pip=False)
    assert caught.value.help == ("use uv, which can: --installer uv",)


def test_uv_where_not_even_pip_could_install_it(
    by_pip: Environment, no_uv: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a pip beside the tool no command is promised."""
    monkeypatch.setattr(installers, "tool_pip_requirement", lambda: None)
    with pytest.raises(InstallerUnavailable) as caught:
        find_installer(directory(by_pip), None, has_own_pip=False)
    assert caught.value.help == ("install uv, which can, so that it is on PATH",)


@pytest.mark.parametrize("wanted", [None, PIP, UV])
def test_a_venv_whose_interpreter_is_gone(
    make_environment: Callable[..., EnvironmentBuilder], uv: str, wanted: InstallerKind | None
) -> None:
    """It is no directory of another kind: what is wrong with it is said, and where the interpreter should be."""
    builder = make_environment(python=None)
    python = builder.python
    with pytest.raises(InstallerUnavailable) as caught:
        find_installer(builder.environment(), wanted, has_own_pip=False)
    assert caught.value.message.endswith(f"has no interpreter that can be run: there is no `{python}`")
    assert caught.value.help[0].startswith(f"bring `{python}` back")
    os.symlink("/gone/python3.11", python)
    with pytest.raises(InstallerUnavailable) as caught:
        find_installer(builder.environment(), wanted, has_own_pip=False)
    assert caught.value.message.endswith(f"`{python}` leads to `/gone/python3.11`, which is not there")
    assert caught.value.help[0].startswith("bring `/gone/python3.11` back")
    python.unlink()
    python.write_text("")
    with pytest.raises(InstallerUnavailable) as caught:
        find_installer(builder.environment(), wanted, has_own_pip=False)
    assert caught.value.message.endswith(f"`{python}` may not be executed")


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
    assert caught.value.help[1].startswith("or install uv, which serves every Python")


def test_an_unreadable_requirement_refuses_nothing(by_pip: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pip whose Requires-Python makes no sense is tried."""
    monkeypatch.setattr(installers, "tool_pip_requirement", lambda: "three")
    assert find_installer(by_pip, PIP, has_own_pip=False).command[0] == sys.executable


def test_without_pip_beside_the_tool_wheels_are_fetched_by_the_environments(
    by_pip: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And by none where it has none, or no interpreter."""
    assert find_pip(directory(by_pip), has_own_pip=False) == (sys.executable, "-m", "pip")
    monkeypatch.setattr(installers, "tool_pip_requirement", lambda: None)
    assert find_pip(by_pip, has_own_pip=True) == (by_pip.python, "-m", "pip")
    assert find_pip(by_pip, has_own_pip=False) is None
    assert find_pip(directory(by_pip), has_own_pip=True) is None


def test_pip_is_kept_from_the_users_site_directory(by_pip: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes first on the search path, and is not what was judged; but a pip that is in it must be found."""
    assert find_installer(by_pip, PIP, has_own_pip=False).settings == {"PYTHONNOUSERSITE": "1"}
    place = str(metadata.distribution("pip").locate_file(""))
    monkeypatch.setattr("site.getusersitepackages", lambda: place)
    assert find_installer(by_pip, PIP, has_own_pip=False).settings == {}

    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installers, "tool_pip_requirement", lambda: None)
    monkeypatch.setattr(metadata, "distribution", missing)
    assert find_installer(by_pip, PIP, has_own_pip=True).settings == {"PYTHONNOUSERSITE": "1"}


def test_uv_keeps_the_cache_that_the_user_configured(by_uv: Environment, uv: str) -> None:
    """Its configuration is not read any more, so that the place is asked for beforehand."""
    Path(uv).write_text('#!/bin/sh\ncase "$*" in cache*) echo /scratch/cache;; *) echo uv 0.13.9;; esac\n')
    assert find_installer(by_uv, None, has_own_pip=False).settings == {"UV_CACHE_DIR": "/scratch/cache"}
    Path(uv).write_text('#!/bin/sh\ncase "$*" in cache*) exit 2;; *) echo uv 0.13.9;; esac\n')
    assert find_installer(by_uv, None, has_own_pip=False).settings == {}


@pytest.mark.parametrize(
    ("kind", "options", "how"),
    [
        (UV, ("--python", "p"), ["--python", "p", "--offline", "--reinstall", "--python-platform=x"]),
        (PIP, ("-y", "-b"), ["-b", "--no-warn-script-location", "--no-warn-conflicts", "--force-reinstall"]),
    ],
)
def test_wheels_at_hand_are_installed_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, kind: InstallerKind, options: tuple[str, ...], how: list[str]
) -> None:
    """No index, no dependencies, over what is there; ``-y`` is for uninstalling."""
    ran: list[tuple[Any, Any]] = []

    def run_program(command: tuple[str, ...], settings: Any) -> InstallerRun:
        ran.append((command, settings))
        return InstallerRun(command=command, returncode=0, output="")

    monkeypatch.setattr(installers, "run_program", run_program)
    platform = ("--python-platform=x",) if kind is UV else ()
    installer = Installer(kind=kind, command=("x",), options=options, platform=platform, settings={"A": "b"})
    run_installation(installer, ("a==1",), "/w")
    ((command, settings),) = ran
    assert (command[:2], command[-1], settings) == (("x", "install"), "a==1", {"A": "b"})
    assert sorted(command[2:-1]) == sorted([*how, "--no-deps", "--no-index", "--find-links", "/w"])


def test_names_follow_the_options(tmp_path: Path) -> None:
    """The command is: program, uninstall, options, names; its output and status are kept."""
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "$@"\necho trouble >&2\nexit 7\n')
    program.chmod(0o755)
    run = run_installer(Installer(kind=UV, command=(str(program), "pip"), options=("-x",)), ("a", "b"))
    assert (run.returncode, run.output) == (7, "pip uninstall -x a b\ntrouble")
