"""Restoring and installing, end to end: real environments, real installers, wheels that are made here."""

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.environments import TreeEntry, read_tree
from tests.support.index_server import Index, serve
from tests.support.installed import KINDS, UV, Installed, make, uv
from tests.support.program import Finished, call, clean_variables, safe_uninstall
from tests.support.terminal import on_terminal
from tests.support.wheel_files import write_wheel

OWN, OTHER = "lw-cu12", "lw-cu13"
FILES = {"lw/__init__.py": "", "lw/shared.py": "x = 12\n", "lw/only12.py": "y = 12\n", "lw/data/table.bin": "t" * 5000}

KILLED = """\
import os, signal, sys
from safe_uninstall.cli.main import main
from safe_uninstall.execute import installation

real = installation.run_installation

def strike(*arguments):
    real(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

installation.run_installation = strike
main(sys.argv[1:])
"""
"""Dies when the installer has done its work, and nothing of ours has followed."""


@dataclass
class Place:
    """An environment with the last writer's bytes on disk, and what is needed to put that right."""

    environment: Installed
    directory: Path
    wheels: Path
    """Has the wheel of the survivor."""

    @property
    def variables(self) -> dict[str, str]:
        """Of a user who has configured nothing, and whose caches are empty."""
        mine = {name: "" for name in os.environ if name.startswith("PIP_")}
        return {
            **mine,
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_RETRIES": "0",
            "PIP_CACHE_DIR": str(self.directory / "pip-cache"),
            "UV_CACHE_DIR": str(self.directory / "uv-cache"),
            "XDG_CONFIG_HOME": str(self.directory / "config"),
            "TMPDIR": str(self.directory / "tmp"),
        }

    def run(self, *words: str | Path, **more: str) -> Finished:
        """Run the product."""
        return safe_uninstall("-p", self.environment.prefix, *words, variables={**self.variables, **more})

    def tree(self) -> dict[str, TreeEntry]:
        """Return everything that is there."""
        return read_tree(self.environment.prefix)

    def metadata(self) -> dict[str, str]:
        """Return the files that say who installed the survivor, and why."""
        (info,) = self.environment.site_packages.glob("lw_cu12-*.dist-info")
        return {file.name: file.read_text() for file in info.iterdir()}

    def x(self) -> str:
        """Return what the shared module says when it is imported, byte code and all."""
        return self.environment.run("import lw.shared; print(lw.shared.x)").strip()

    def is_mended(self) -> bool:
        """Return whether the survivor has its own bytes, and the other one is gone."""
        gone = OTHER not in self.environment.installed()
        return gone and self.environment.damaged(OWN) == [] and self.x() == "12"


@pytest.fixture(scope="module", params=KINDS)
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Return an environment of each kind in which the last writer was installed over the survivor."""
    directory = tmp_path_factory.mktemp("original")
    environment = make(directory / request.param, request.param)
    own = write_wheel(directory / "first", OWN, files=FILES, scripts={"lw-info": "lw:main"})
    write_wheel(directory / "links", OTHER, "1.1", files={"lw/__init__.py": "", "lw/shared.py": "x = 130\n"})
    write_wheel(directory / "links", "tool", files={"tool.py": "v = 1\n"}, scripts={"tool": "tool:main"})
    # By path, so that there is a direct_url.json; the file is gone afterwards.
    environment.install("--no-index", str(own))
    own.unlink()
    environment.install("--no-index", "--no-deps", "--find-links", str(directory / "links"), OTHER, "tool")
    return environment


@pytest.fixture
def place(original: Installed, tmp_path: Path) -> Place:
    """Return a copy of it, with the survivor's wheel beside it."""
    (tmp_path / "tmp").mkdir()
    wheels = tmp_path / "wheels"
    write_wheel(wheels, OWN, files=FILES, scripts={"lw-info": "lw:main"})
    place = Place(original.copy(tmp_path / "env"), tmp_path, wheels)
    assert place.environment.damaged(OWN) == ["lw/shared.py"]
    return place


only_uv = pytest.mark.parametrize("original", [UV], indirect=True)
"""For what does not depend on the installer."""


def given(place: Place) -> tuple[str, ...]:
    """Return the options that give the wheel, and forbid every other source."""
    return ("--find-links", str(place.wheels), "--no-index")


def test_the_survivor_has_its_own_bytes_again(place: Place) -> None:
    """The last writer goes, every file of the survivor is as its RECORD says, and nobody can tell who restored it."""
    before = place.metadata()
    assert {"INSTALLER", "direct_url.json"} <= before.keys()
    done = place.run("-y", OTHER, "--restore", *given(place))
    assert done.status == 0, done.out + done.err
    last = done.out.splitlines()[-1]
    assert last.startswith("Removed lw-cu13 1.1 ")
    assert "Restored lw-cu12 1.0." in last
    assert place.is_mended()
    assert place.metadata() == before
    assert (place.environment.prefix / "bin/lw-info").exists()
    assert list((place.directory / "tmp").iterdir()) == []


@only_uv
def test_a_dry_run_fetches_and_changes_nothing(place: Place) -> None:
    """It tells what the real run tells, since it takes the same path."""
    before = place.tree()
    dry = place.run("-n", OTHER, "--restore", *given(place))
    assert dry.status == 0, dry.err
    assert place.tree() == before
    real = place.run("-y", OTHER, "--restore", *given(place))
    assert real.out.splitlines()[:3] == dry.out.splitlines()[:3]


def test_without_the_wheel(place: Place) -> None:
    """Exit 3 before anything changes; the wheel is named, why it is not there, and how to supply it."""
    shutil.rmtree(place.wheels)
    place.wheels.mkdir()
    before = place.tree()
    done = place.run("-y", OTHER, "--restore", *given(place))
    assert done.status == 3, done.out + done.err
    (note,) = re.findall(r"no wheel for lw-cu12==1\.0: (.*)", done.out.replace("\n    ", " "))
    assert f"{place.wheels}, uv's cache and pip's cache do not have it" in note
    assert note.endswith("and no index may be asked")
    assert done.out.endswith("Nothing changed.\n")
    assert place.tree() == before
    assert list((place.directory / "tmp").iterdir()) == []


@only_uv
def test_another_build(place: Place) -> None:
    """The same version with other bytes is no restore: refused, and what differs is named."""
    write_wheel(place.wheels, OWN, files={**FILES, "lw/only12.py": "y = 99\n"}, scripts={"lw-info": "lw:main"})
    before = place.tree()
    done = place.run("-y", OTHER, "--restore", *given(place))
    assert done.status == 3, done.out + done.err
    assert "is another build than the one installed: lw/only12.py has other bytes" in done.out.replace("\n    ", " ")
    assert place.tree() == before


@only_uv
@pytest.mark.parametrize("damage", ["truncated", "crafted"])
def test_a_wheel_that_is_no_good(place: Place, damage: str) -> None:
    """A reason in words, exit 3, no traceback, and nothing outside of the environment."""
    (file,) = place.wheels.iterdir()
    if damage == "truncated":
        file.write_bytes(file.read_bytes()[:-100])
        reason = "cannot be read: File is not a zip file"
    else:
        write_wheel(place.wheels, OWN, files=FILES, unlisted={"../../../../../evil.py": b""})
        reason = "would write outside of the environment: ../../../../../evil.py"
    before = place.tree()
    done = place.run("-y", OTHER, "--restore", *given(place))
    assert done.status == 3, done.out + done.err
    assert reason in done.out.replace("\n    ", " ")
    assert "Traceback" not in done.out + done.err
    assert place.tree() == before
    assert not list(place.directory.rglob("evil.py"))


def test_a_new_distribution_and_a_newer_version(place: Place) -> None:
    """In the same transaction: what is asked for comes with what it needs, scripts of a replaced version stay."""
    write_wheel(place.wheels, "tool", "2.0", files={"tool.py": "v = 2\n"}, scripts={"tool": "tool:main"})
    write_wheel(place.wheels, "fresh", files={"fresh/__init__.py": ""}, requires=["needed"], scripts={"fr": "fresh:m"})
    write_wheel(place.wheels, "needed", files={"needed.py": ""})
    before = place.tree()
    installs = ("--install", "fresh", "--install", "tool>=2")
    done = place.run("-y", OTHER, "--restore", *installs, *given(place))
    assert done.status == 0, done.out + done.err
    assert place.is_mended()
    installed = place.environment.installed()
    assert (installed["fresh"], installed["needed"], installed["tool"]) == ("1.0", "1.0", "2.0")
    for name in ("fresh", "needed", "tool"):
        assert place.environment.damaged(name) == []
    for script in ("tool", "fr", "lw-info"):
        assert (place.environment.prefix / "bin" / script).exists()
    assert place.environment.run("import tool, fresh, needed; print(tool.v)").strip() == "2"
    assert place.tree() != before


def test_an_installation_that_fails_half_way(place: Place) -> None:
    """Exit 4, and the tree of before byte for byte: what was written is gone, what was taken is back.

    A file stands where the wheel wants a directory: the installer finds out when it has begun.
    """
    write_wheel(place.wheels, "fresh", files={"a_first.py": "", "fresh/__init__.py": ""}, scripts={"fr": "fresh:m"})
    (place.environment.site_packages / "fresh").write_text("in the way")
    before = place.tree()
    done = place.run("-y", OTHER, "--restore", "--install", "fresh", *given(place))
    assert done.status == 4, done.out + done.err
    assert done.last == "Rolled back: the environment is as it was before."
    assert place.tree() == before


@only_uv
def test_an_installer_that_lies(place: Place) -> None:
    """It ends well and has not done it all: the outcome is looked at, and everything is as before."""
    wrapper = place.directory / "uv"
    lost = place.environment.site_packages / "lw/data/table.bin"
    text = f'#!/bin/sh\n{uv()} "$@" || exit\ncase "$*" in *" install "*) rm {lost} ;; esac\n'
    wrapper.write_text(text.replace('*" install "*', '*"pip install "*'))
    wrapper.chmod(0o755)
    before = place.tree()
    done = place.run("-y", OTHER, "--restore", *given(place), UV=str(wrapper))
    assert done.status == 4, done.out + done.err
    assert "lw/data/table.bin was not written" in done.err
    assert place.tree() == before


def test_killed_while_installing(place: Place) -> None:
    """SIGKILL leaves something between old and new; ``recover`` makes it the old one."""
    write_wheel(place.wheels, "fresh", files={"fresh/__init__.py": ""}, scripts={"fr": "fresh:m"})
    before = place.tree()
    script = place.directory / "killed.py"
    script.write_text(KILLED)
    words = ("-p", str(place.environment.prefix), "-y", OTHER, "--restore", "--install", "fresh", *given(place))
    done = subprocess.run(
        [sys.executable, str(script), *words], env=clean_variables(place.variables), capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert "fresh" in place.environment.installed()
    assert place.tree() != before
    assert place.run("-y", OTHER).status == 2, "nothing else is done before it is recovered"
    recovered = safe_uninstall("recover", "-p", place.environment.prefix)
    assert recovered.status == 0, recovered.err
    assert place.tree() == before


@only_uv
def test_the_cache_of_uv(place: Place) -> None:
    """Its wheels are a source without a network."""
    where = ("--no-index", "--find-links", place.wheels, "--target", place.directory / "elsewhere")
    call([uv(), "pip", "install", *where, OWN], variables=place.variables)
    done = place.run("-y", OTHER, "--restore", "--no-index")
    assert done.status == 0, done.out + done.err
    assert "its own files again, from uv's cache" in done.out
    assert place.is_mended()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Serve what is in ``tmp_path/served``."""
    (tmp_path / "served").mkdir()
    with serve(tmp_path / "served") as index:
        yield index


@only_uv
def test_the_commands_of_the_help(place: Place, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network they are given; where there is one, and in their order, they do what they say."""
    (file,) = place.wheels.iterdir()
    nowhere = "http://127.0.0.1:9/simple"
    done = place.run("-y", OTHER, "--restore", PIP_INDEX_URL=nowhere)
    assert done.status == 3
    assert "the index cannot be reached (127.0.0.1:9: Connection refused)" in done.out.replace("\n    ", " ")
    helps = [line for line in done.out.splitlines() if line.startswith("help: ")]
    (fetch,) = (line.partition(": pip ")[2] for line in helps if ": pip " in line)
    (again,) = (line.partition(": safe-uninstall ")[2] for line in helps if "again with it" in line)
    shutil.move(file, place.directory / "served")
    monkeypatch.chdir(place.directory)
    shutil.rmtree(place.wheels)
    call([sys.executable, "-m", "pip", *shlex.split(fetch)], variables={**place.variables, "PIP_INDEX_URL": index.url})
    done = safe_uninstall("-y", *shlex.split(again), variables={**place.variables, "PIP_INDEX_URL": nowhere})
    assert done.status == 0, done.out + done.err
    assert place.is_mended()


@only_uv
def test_a_download_shows_how_far_it_is(place: Place, index: Index) -> None:
    """A terminal gets pip's own bar, a pipe nothing of it: one plain line says what takes so long."""
    noise = random.Random(7).randbytes(3_000_000).hex()
    write_wheel(place.directory / "served", "big", files={"big.py": "", "big.txt": noise})
    variables = {**place.variables, "PIP_INDEX_URL": index.url}
    words = ("-p", place.environment.prefix, "-n", "tool", "--install", "big")
    piped = safe_uninstall(*words, variables=variables)
    assert piped.status == 0, piped.err
    assert piped.err.splitlines() == ["resolving big …", "fetching big==1.0 …"]
    shown = on_terminal(*words, variables=variables)
    assert shown.status == 0, shown.screen
    assert "fetching big==1.0 …" in shown.screen
    assert "Downloading " in shown.screen
    assert re.search(r"━.* [kMG]?B/s", shown.screen)
