"""The source of wheels for a command: nothing happens before it is asked, and nothing is left when the command ends."""

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from safe_uninstall.cli.wheels import LazyWheels, repeated
from safe_uninstall.execute import installers, programs
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import InstallerUnavailable, TemporaryDirectoryUnusable
from safe_uninstall.model.plan import Request, Rewrite
from safe_uninstall.model.wheel import Wheel, WheelUnavailable
from tests.support.environments import EnvironmentBuilder
from tests.support.index_server import Index, serve
from tests.support.installed import uv
from tests.support.program import call
from tests.support.wheel_files import put_wheel, write_wheel


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this user have configured nothing, and have empty caches."""
    for name in os.environ:
        if name.startswith(("PIP_", "UV_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def file(environment: EnvironmentBuilder, tmp_path: Path) -> Path:
    """Return the wheel that is installed."""
    file = write_wheel(tmp_path / "own", "demo", files={"demo.py": "x = 1\n"})
    put_wheel(environment, file)
    return file


def installed(builder: EnvironmentBuilder) -> Distribution:
    """Return what is to be restored."""
    return next(item for item in builder.snapshot().distributions if item.name == "demo")


def lazy(
    builder: EnvironmentBuilder,
    *links: str,
    no_index: bool = False,
    told: Callable[[str], None] = lambda _text: None,
    show: bool = False,
) -> LazyWheels:
    """Return the source of a command."""
    return LazyWheels(
        builder.environment(),
        find_links=links,
        no_index=no_index,
        progress=told,
        show=show,
        again=lambda place: f"again {place}",
    )


def found(result: Wheel | WheelUnavailable) -> Wheel:
    """Return the wheel that was found."""
    assert isinstance(result, Wheel), result
    return result


def fetched(tmp_path: Path) -> list[Path]:
    """Return the temporary directories that there are."""
    return list(tmp_path.glob("safe-uninstall-*"))


def test_nothing_is_made_before_it_is_asked(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Most commands need no wheel."""
    with lazy(environment):
        assert fetched(tmp_path) == []
    assert fetched(tmp_path) == []


def test_nothing_is_left_when_the_command_ends(environment: EnvironmentBuilder, file: Path, tmp_path: Path) -> None:
    """What was fetched goes, and what the user gave stays."""
    told: list[str] = []
    with lazy(environment, str(file.parent), no_index=True, told=told.append) as wheels:
        wheel = found(wheels.restore(installed(environment)))
        assert wheel.file == str(file)
        assert len(fetched(tmp_path)) == 1
        assert wheels.restore(installed(environment)) is wheel
        assert wheels.resolve(("demo",)) == ()
    assert fetched(tmp_path) == []
    assert file.exists()
    assert told == ["fetching demo==1.0", "resolving demo"]


def test_a_signal_ends_what_was_started(environment: EnvironmentBuilder, file: Path, tmp_path: Path) -> None:
    """SIGTERM leaves no directory, and no pip that goes on fetching; it is an interruption like any other."""

    def strike(_text: str) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), lazy(environment, str(file.parent), told=strike) as wheels:
        wheels.restore(installed(environment))
    assert fetched(tmp_path) == []
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_error_passes_through(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """It is for the command to say."""
    with pytest.raises(ZeroDivisionError), lazy(environment):
        raise ZeroDivisionError
    assert fetched(tmp_path) == []


def test_what_uv_has_in_its_cache(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """It is found without a network, and without being told of."""
    file = write_wheel(tmp_path / "own", "demo", files={"demo.py": "x = 1\n"})
    where = ("--python", environment.python, "--no-index", "--find-links", file.parent)
    call([uv(), "pip", "install", *where, "demo"], variables={"UV_CACHE_DIR": str(tmp_path / "caches/uv")})
    with lazy(environment, no_index=True) as wheels:
        assert found(wheels.restore(installed(environment))).source == "uv's cache"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Serve ``tmp_path/own``."""
    with serve(tmp_path / "own") as index:
        yield index


def test_what_pip_has_in_its_cache(
    environment: EnvironmentBuilder, file: Path, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once fetched, a wheel need not be fetched again, even when the index is gone."""
    monkeypatch.setattr(programs, "find_uv", lambda: None)
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    monkeypatch.setenv("PIP_TRUSTED_HOST", index.address)
    monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "caches/pip"))
    with lazy(environment) as wheels:
        assert found(wheels.restore(installed(environment))).source == "the index"
    file.unlink()
    with lazy(environment, no_index=True) as wheels:
        assert found(wheels.restore(installed(environment))).source == "pip's cache"


def test_the_index_of_uv(
    environment: EnvironmentBuilder, file: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the user configured uv for one, and pip for none."""
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
    with lazy(environment) as wheels:
        assert found(wheels.restore(installed(environment))).source == "the index"
    assert index.asked


def test_no_network(environment: EnvironmentBuilder, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every place is named, and the command that goes on from there."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with lazy(environment) as wheels:
        missing = wheels.restore(installed(environment))
    assert isinstance(missing, WheelUnavailable)
    assert missing.reason == (
        "uv's cache and pip's cache do not have it, and the index cannot be reached (127.0.0.1:9: Connection refused)"
    )
    assert missing.help[-1] == "then run this again with it: again wheels"


def test_a_target_without_an_interpreter(tmp_path: Path) -> None:
    """Its Python is told to pip; nothing of the tool's own environment counts for it."""
    links = tmp_path / "links"
    target = tmp_path / "target"
    call([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--target", target, write_wheel(links, "demo")])
    write_wheel(links, "new", requires=["packaging"])
    from safe_uninstall.scan.environment import find_environment

    found_environment = find_environment(str(target), variables={}, directory="/")
    assert found_environment.python is None
    source = LazyWheels(
        found_environment,
        find_links=(str(links),),
        no_index=True,
        progress=lambda _text: None,
        show=False,
        again=lambda place: place,
    )
    with source as wheels:
        new = wheels.resolve(("new",))
    assert isinstance(new, tuple)
    assert [item.name for item in new] == ["new"]


def test_no_pip(environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the tool's nor the environment's own: what to do is said."""
    monkeypatch.setattr(installers, "tool_pip_requirement", lambda: None)
    environment.distribution("demo")
    with pytest.raises(InstallerUnavailable) as caught, lazy(environment) as wheels:
        wheels.restore(installed(environment))
    assert caught.value.help == (f"give the environment one: {environment.python} -m ensurepip",)
    environment.distribution("pip", "22.0")
    with lazy(environment, no_index=True) as wheels:
        assert isinstance(wheels.restore(installed(environment)), WheelUnavailable)


def test_no_temporary_directory(environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that says so, before anything changes."""
    environment.distribution("demo")
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    monkeypatch.setenv("TMPDIR", "/nowhere/at/all")
    with pytest.raises(TemporaryDirectoryUnusable) as caught, lazy(environment) as wheels:
        wheels.restore(installed(environment))
    assert caught.value.message == (
        "wheels cannot be kept in the temporary directory `/nowhere/at/all`: No such file or directory"
    )
    monkeypatch.delenv("TMPDIR")
    with pytest.raises(TemporaryDirectoryUnusable, match="/nowhere/at/all"), lazy(environment) as wheels:
        wheels.restore(installed(environment))


def test_the_command_that_goes_on() -> None:
    """All that was asked for, with the wheels; and without an index, since that was not there."""
    request = Request(
        names=("a", "b*"),
        rewrites=(Rewrite.RESTORE,),
        install=("c>1",),
        find_links=("/given",),
        installer=InstallerKind.UV,
        python="env",
    )
    assert repeated(request, "wheels") == (
        "safe-uninstall -p env a 'b*' --restore --install 'c>1' --find-links /given --find-links wheels --no-index"
        " --installer uv"
    )
    undo = Request(names=(), undo="20260101T000000")
    assert repeated(undo, "wheels") == "safe-uninstall undo 20260101T000000 --find-links wheels --no-index"
    repair = Request(names=(), rewrites=(Rewrite.RESTORE,), repair=True, use_library_path=True)
    assert repeated(repair, "wheels") == (
        "safe-uninstall check --fix --find-links wheels --no-index --use-ld-library-path"
    )
