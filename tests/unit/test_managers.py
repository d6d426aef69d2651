"""Environments that another program looks after: who owns what, and which command belongs there; only notes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.analysis.managers import brought_back, managed_finding
from safe_uninstall.model.distribution import MetadataKind
from safe_uninstall.model.environment import EnvironmentKind
from safe_uninstall.model.plan import Code, Severity
from safe_uninstall.scan.projects import find_owner
from safe_uninstall.scan.tree import HOST
from tests.support.environments import EnvironmentBuilder
from tests.support.fakes import PREFIX, distribution, environment, snapshot

LOCK = '[[package]]\nname = "Needy_One"\nversion = "1"\ndependencies = [\n    { name = "inner" },\n]\n'


def notes(*names: str, installer: str | None = None, **facts: Any) -> list[str]:
    """Return the help for the removal of distributions."""
    leaving = [distribution(name, installer=installer).distribution for name in names]
    found = list(brought_back(environment(**facts), leaving))
    assert all((item.code, item.severity) == (Code.EXTERNALLY_MANAGED, Severity.NOTE) for item in found)
    return [line for item in found for line in (item.message, *item.help)]


@pytest.mark.parametrize(
    ("manager", "sync", "command"),
    [
        ("poetry", "poetry install", "poetry remove a"),
        ("uv", "uv sync", "uv remove a"),
        ("pdm", "pdm install", "pdm remove a"),
        ("pipenv", "pipenv sync", "pipenv uninstall a"),
        ("pixi", "pixi install", "pixi remove --pypi a"),
    ],
)
def test_what_is_locked_comes_back(manager: str, sync: str, command: str) -> None:
    """What the lock file does not name stays away, and nothing is said of it."""
    facts: dict[str, Any] = {"managed_by": manager, "project": "/p", "locked": frozenset({"a"})}
    assert notes("a", "b", **facts) == [
        f"{manager} looks after this environment: `{sync}` brings back a as long as its project requires it",
        "take out of the project what it names itself, in /p",
        command,
    ]
    assert notes("b", **facts) == []


def test_what_says_who_installed_it_comes_back() -> None:
    """Poetry's cache does not tell where the project is; INSTALLER tells what is poetry's."""
    found = notes("a", "b", "c", "d", installer="Poetry 1.8.3", managed_by="poetry")
    assert "brings back a, b, c and 1 more" in found[0]
    assert found[1:] == ["take out of the project what it names itself", "poetry remove a b c d"]
    assert notes("a", installer="pip", managed_by="poetry") == []
    assert notes("a", installer="pip", managed_by="conda", locked=frozenset({"a"})) == []
    assert notes("a", locked=frozenset({"a"})) == []


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("conda", f"conda remove -p {PREFIX} NAME"),
        ("micromamba", f"micromamba remove -p {PREFIX} NAME"),
        ("pixi", "pixi remove NAME"),
    ],
)
def test_check_says_what_is_condas(manager: str, command: str) -> None:
    """Python distributions and other packages are counted apart."""
    snap = snapshot(
        distribution("tool", conda_package="tool-1-0"),
        distribution("libfoo", conda_package="libfoo-1-0", metadata_kind=MetadataKind.CONDA, owned_here=False),
        distribution("app"),
        environment=environment(kind=EnvironmentKind.CONDA, managed_by=manager),
    )
    (found,) = managed_finding(snap)
    assert found.message == (
        f"{manager} installed 1 of the 2 distributions here and 1 other packages; it alone removes these"
    )
    assert (found.severity, found.help[-1]) == (Severity.NOTE, command)


def test_check_says_what_is_a_projects() -> None:
    """Nothing where nothing is."""
    facts: dict[str, Any] = {"managed_by": "uv", "project": "/p", "locked": frozenset({"a"})}
    (found,) = managed_finding(snapshot(distribution("a"), distribution("b"), environment=environment(**facts)))
    assert found.message == "uv looks after this environment: 1 of the 2 distributions are its own"
    assert found.help[-1] == "uv remove NAME"
    assert list(managed_finding(snapshot(distribution("b"), environment=environment(**facts)))) == []
    assert list(managed_finding(snapshot(distribution("b")))) == []


@pytest.mark.parametrize(
    ("file", "text", "manager", "names"),
    [
        ("uv.lock", LOCK, "uv", {"needy-one"}),
        ("poetry.lock", LOCK, "poetry", {"needy-one"}),
        ("pdm.lock", LOCK, "pdm", {"needy-one"}),
        ("Pipfile.lock", '{"default": {"Needy_One": {}}, "develop": {"x": {}}}', "pipenv", {"needy-one", "x"}),
        ("Pipfile.lock", "[", "pipenv", set()),
        ("other.lock", LOCK, None, set()),
    ],
)
def test_a_lock_file_beside_the_environment_tells(
    tmp_path: Path, file: str, text: str, manager: str | None, names: set[str]
) -> None:
    """An environment elsewhere, or one of another name, is not the project's."""
    (tmp_path / file).write_text(text)
    found = find_owner(str(tmp_path / ".venv"), HOST)
    assert (found.manager, set(found.locked)) == (manager, names)
    assert find_owner(str(tmp_path / "other"), HOST).manager is None


def test_environments_elsewhere(tmp_path: Path, make_environment: Callable[..., EnvironmentBuilder]) -> None:
    """Poetry's cache, and pipenv's ``.project``."""
    builder = make_environment()
    (tmp_path / "project").mkdir()
    (tmp_path / "project/Pipfile.lock").write_text('{"default": {"a": {}}}')
    (builder.prefix / ".project").write_text(f"{tmp_path}/project\n")
    found = builder.environment()
    assert (found.managed_by, found.project, set(found.locked)) == ("pipenv", f"{tmp_path}/project", {"a"})
    (builder.prefix / ".project").write_text(f"{tmp_path}/absent\n")
    assert builder.environment().managed_by is None
    assert find_owner("/c/pypoetry/virtualenvs/x-py3.11", HOST) == ("poetry", None, frozenset())
