"""Which environment is meant, and where its files are; what is none, and why, in one sentence."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.model.environment import Environment, EnvironmentKind
from safe_uninstall.model.errors import EnvironmentNotFound
from safe_uninstall.scan import interpreter as asked
from safe_uninstall.scan.environment import find_environment
from tests.support.environments import EnvironmentBuilder

Make = Callable[..., EnvironmentBuilder]


def find(python: Path | str | None = None, directory: Path | str = "/", **variables: str) -> Environment:
    """Find an environment."""
    return find_environment(None if python is None else str(python), variables=variables, directory=str(directory))


def why_not(python: Path | str, **variables: str) -> str:
    """Return why something is no environment; there is always a next step."""
    with pytest.raises(EnvironmentNotFound) as caught:
        find(python, **variables)
    assert caught.value.help
    return caught.value.message


def program(path: Path, text: str = "") -> Path:
    """Write a shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def interpreter(path: Path, prefix: Path, version: str = "3.11.4", **facts: Any) -> Path:
    """Write a program that answers as a Python interpreter of a prefix would."""
    site = prefix / "lib" / f"python{version[:4]}" / "site-packages"
    site.mkdir(parents=True, exist_ok=True)
    answer = {
        "version": version,
        "implementation": "cpython",
        "prefix": str(prefix),
        "base_prefix": str(prefix),
        "executable": str(path),
        "stdlib": str(site.parent),
        "scripts": str(prefix / "bin"),
        "site_packages": [str(site), str(prefix / "absent")],
        "user_site": str(prefix / "user"),
        "markers": {"python_version": version[:4]},
        **facts,
    }
    return program(path, f"echo {shlex.quote(json.dumps(answer))}")


def fill(site: Path) -> None:
    """Install something into a site directory."""
    (site / "one-1.0.dist-info").mkdir(parents=True)


def test_a_venv_by_each_of_its_names(make_environment: Make, tmp_path: Path) -> None:
    """Its directory, its interpreter, a directory of it, relative or not; by variables, and here or above."""
    builder = make_environment()
    prefix = str(builder.prefix)
    for name in (builder.prefix, builder.python, builder.bin, builder.site_packages):
        found = find(name)
        assert (found.prefix, found.kind, found.python) == (prefix, EnvironmentKind.VENV, str(builder.python))
    assert find(builder.prefix.name, builder.prefix.parent).prefix == prefix
    assert find(VIRTUAL_ENV=prefix, CONDA_PREFIX="/c").prefix == prefix
    (tmp_path / "project" / "deep").mkdir(parents=True)
    os.symlink(builder.prefix, tmp_path / "project" / ".venv")
    assert find(directory=tmp_path / "project" / "deep").prefix == prefix


def test_a_directory_in_a_venv_that_is_merely_kept_there_is_not_the_venv(make_environment: Make) -> None:
    """Such as one that pip filled."""
    builder = make_environment()
    fill(builder.prefix / "kept")
    assert find(builder.prefix / "kept").kind is EnvironmentKind.TARGET


def test_the_running_environment_is_the_last_resort(make_environment: Make, tmp_path: Path) -> None:
    """Where nothing else says which; a prefix that is no environment any more is asked about."""
    builder = make_environment()
    found = find_environment(variables={}, directory="/", running=str(builder.prefix))
    assert found.prefix == str(builder.prefix)
    other = find_environment(variables={}, directory="/", running=str(tmp_path / "absent"))
    assert other.prefix == os.path.realpath(sys.prefix)


def test_a_venv_that_has_no_interpreter_is_still_one(make_environment: Make) -> None:
    """What is installed in it can be judged; a link that leads nowhere is no interpreter."""
    builder = make_environment(python=None)
    os.symlink("/gone/python", builder.python)
    for name in (builder.prefix, builder.python):
        found = find(name)
        assert (found.kind, found.python, found.abi) == (EnvironmentKind.VENV, None, None)


def test_a_venv_without_site_packages(make_environment: Make) -> None:
    """Made on another system, or half removed."""
    builder = make_environment()
    builder.site_packages.rename(builder.prefix / "away")
    assert why_not(builder.prefix).endswith("has no lib/pythonX.Y/site-packages")
    (builder.prefix / "Lib").mkdir()
    assert why_not(builder.prefix).endswith("was made on Windows")


def test_a_venv_that_does_not_tell_its_version(make_environment: Make) -> None:
    """The name of its library directory does, that of a free-threaded Python too."""
    builder = make_environment(python_version="3.13")
    (builder.prefix / "pyvenv.cfg").write_text("home = /usr/bin\n")
    assert find(builder.prefix).python_version == "3.13"
    library = builder.site_packages.parent
    library.rename(library.with_name("python3.13t"))
    assert find(builder.prefix).python_version == "3.13"


def test_a_venv_that_sees_the_system(make_environment: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its base's site-packages and the user's are visible, and not the environment's own."""
    builder = make_environment()
    version = builder.site_packages.parent.name
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    places = [tmp_path / place / "lib" / version / "site-packages" for place in ("base", "home/.local")]
    for place in places:
        place.mkdir(parents=True)
    (builder.prefix / "pyvenv.cfg").write_text(f"home = {tmp_path}/base/bin\ninclude-system-site-packages = TRUE\n")
    found = find(builder.prefix)
    assert (found.site_packages, found.visible_site_packages) == (
        (str(builder.site_packages),),
        tuple(map(str, places)),
    )


def conda(prefix: Path, version: str = "3.12") -> Path:
    """Make a conda environment."""
    site = prefix / "lib" / f"python{version}" / "site-packages"
    site.mkdir(parents=True)
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta" / f"python-{version}.3-h1.json").write_text("{}")
    return site


def test_a_conda_environment(tmp_path: Path) -> None:
    """By its prefix, its interpreter and its site-packages; who looks after it is told by where it is."""
    prefix = tmp_path / "c"
    site = conda(prefix)
    (site.parent / "EXTERNALLY-MANAGED").write_text("[externally-managed]\nError=Ask\n first.\nOther=x\n")
    python = program(prefix / "bin" / "python")
    for name in (prefix, python, site):
        found = find(name)
        assert (found.kind, found.prefix, found.python_version) == (EnvironmentKind.CONDA, str(prefix), "3.12.3")
        assert (found.externally_managed, found.managed_by, found.python) == ("Ask\nfirst.", "conda", str(python))
    conda(tmp_path / ".pixi" / "envs" / "default")
    assert find(tmp_path / ".pixi" / "envs" / "default").managed_by == "pixi"


def test_a_conda_environment_without_python(tmp_path: Path) -> None:
    """There is nothing in it to uninstall with this."""
    (tmp_path / "conda-meta").mkdir()
    assert why_not(tmp_path).endswith("has no Python")


def test_any_other_interpreter_is_asked(tmp_path: Path) -> None:
    """By its path, its prefix, its name on PATH, or its version alone; what it names and is not there is left out."""
    prefix = tmp_path / "p"
    python = interpreter(prefix / "bin" / "python3", prefix, user_site=str(tmp_path / "user"))
    named = interpreter(tmp_path / "path" / "python3.11", prefix)
    (tmp_path / "user").mkdir()
    for name in (python, prefix, prefix / "lib/python3.11/site-packages"):
        found = find(name)
        assert (found.kind, found.prefix, found.python) == (EnvironmentKind.SYSTEM, str(prefix), str(python))
        assert found.site_packages == (str(prefix / "lib/python3.11/site-packages"),)
        assert found.visible_site_packages == (str(tmp_path / "user"),)
    for word in ("python3.11", "3.11"):
        assert find(word, PATH=str(named.parent)).python == str(named)


def test_a_program_elsewhere_may_start_the_interpreter_of_an_environment(
    make_environment: Make, tmp_path: Path
) -> None:
    """A wrapper on PATH; the interpreter of a venv tells the prefix of its base when it is asked as we ask."""
    builder = make_environment()
    conda(tmp_path / "c")
    assert find(interpreter(tmp_path / "w" / "conda", tmp_path / "c")).kind is EnvironmentKind.CONDA
    assert find(interpreter(tmp_path / "w" / "venv", builder.prefix)).prefix == str(builder.prefix)
    real = program(tmp_path / "w" / "real", f'exec {builder.python} "$@"')
    assert (find(real).kind, find(real).prefix) == (EnvironmentKind.VENV, str(builder.prefix))


def test_a_directory_that_pip_filled_with_target(tmp_path: Path) -> None:
    """It is its own site-packages."""
    fill(tmp_path / "t")
    found = find(tmp_path / "t")
    assert (found.kind, found.python, found.site_packages) == (EnvironmentKind.TARGET, None, (str(tmp_path / "t"),))
    assert found.scripts == str(tmp_path / "t" / "bin")


@pytest.mark.parametrize(
    ("library", "version", "implementation"),
    [("python3.9", "3.9", "cpython"), ("python3.13t", "3.13", "cpython"), ("pypy3.10", "3.10", "pypy")],
)
def test_a_directory_that_pip_filled_with_prefix(
    tmp_path: Path, library: str, version: str, implementation: str
) -> None:
    """Its site-packages are found, and for which version it was filled; named by itself or by them."""
    site = tmp_path / "p" / "lib" / library / "site-packages"
    fill(site)
    for name in (tmp_path / "p", site):
        found = find(name)
        assert (found.kind, found.prefix, found.python) == (EnvironmentKind.PREFIX, str(tmp_path / "p"), None)
        assert (found.site_packages, found.scripts) == ((str(site),), str(tmp_path / "p" / "bin"))
        assert (found.python_version, found.markers["python_version"]) == (version, version)
        assert found.implementation == implementation


def test_a_prefix_with_platform_dependent_files_apart(tmp_path: Path) -> None:
    """Some systems put them into ``lib64``; a link to ``lib`` is no second place."""
    sites = [tmp_path / "p" / place / "python3.9" / "site-packages" for place in ("lib", "lib64")]
    fill(sites[1])
    assert find(tmp_path / "p").site_packages == (str(sites[1]),)
    sites[0].mkdir(parents=True)
    assert find(sites[1]).site_packages == tuple(map(str, sites))
    os.rename(tmp_path / "p" / "lib64", tmp_path / "away")
    os.symlink("lib", tmp_path / "p" / "lib64")
    assert find(tmp_path / "p").site_packages == (str(sites[0]),)


def test_a_prefix_of_several_versions(tmp_path: Path) -> None:
    """Which one is meant is asked, with commands that say it."""
    sites = [tmp_path / "my prefix" / "lib" / name / "site-packages" for name in ("python3.10", "python3.9")]
    for site in sites:
        fill(site)
    with pytest.raises(EnvironmentNotFound, match="has site-packages of several Python versions") as caught:
        find(tmp_path / "my prefix")
    assert caught.value.help == tuple(f"name one of them: safe-uninstall -p '{site}' PACKAGE" for site in sites)
    assert find(sites[1]).python_version == "3.9"


def test_a_prefix_beside_an_interpreter_that_does_not_use_it(tmp_path: Path) -> None:
    """The interpreter says where its own distributions are."""
    prefix = tmp_path / "p"
    interpreter(prefix / "bin" / "python3", prefix)
    other = prefix / "lib" / "python3.8" / "site-packages"
    fill(other)
    assert find(other).kind is EnvironmentKind.PREFIX
    assert find(prefix).kind is EnvironmentKind.SYSTEM


def test_an_installation_whose_interpreter_is_gone_is_no_prefix(tmp_path: Path) -> None:
    """What is wrong is said, instead of judging it as something that it is not."""
    fill(tmp_path / "lib" / "python3.9" / "site-packages")
    (tmp_path / "bin").mkdir()
    os.symlink("/gone/python3", tmp_path / "bin" / "python3")
    assert why_not(tmp_path) == f"`{tmp_path}/bin/python3` is a link that leads nowhere"


def test_what_is_no_environment(tmp_path: Path) -> None:
    """Each in one sentence that names it as it was given."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("x")
    os.symlink("nowhere", tmp_path / "link")
    assert why_not(tmp_path / "empty") == f"`{tmp_path}/empty` is a directory, but no Python environment"
    assert why_not(tmp_path / "text") == f"`{tmp_path}/text` is neither an environment nor an interpreter"
    assert why_not(tmp_path / "link") == f"`{tmp_path}/link` is a link that leads nowhere"
    assert why_not(tmp_path / "absent") == f"there is no interpreter or environment `{tmp_path}/absent`"
    assert why_not("python9.9", PATH="/") == "there is no interpreter or environment `python9.9`"
    with pytest.raises(EnvironmentNotFound, match="CONDA_PREFIX names"):
        find(CONDA_PREFIX=str(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('echo "$4"; echo "$4" >&2', "is not a Python interpreter"),
        ("exit 1", "is not a Python interpreter"),
        ('case "$1" in --version) echo no such version >&2; echo more >&2; exit 127;; esac',
         "is not a Python interpreter: no such version"),
        ('case "$1" in --version) echo Python 2.7.18 >&2;; *) echo unknown option -I >&2; exit 2;; esac',
         "is Python 2.7.18; 3.8 or later is needed"),
        ('case "$1" in --version) echo Python 3.12.1;; *) echo trace >&2; echo no encodings >&2; exit 1;; esac',
         "is Python 3.12.1 and does not work: no encodings"),
        ('case "$1" in --version) echo Python 3.12.1;; *) echo 1;; esac',
         "is Python 3.12.1 and does not work"),
    ],
)  # fmt: skip
def test_a_program_that_does_not_answer_as_python_does(tmp_path: Path, text: str, sentence: str) -> None:
    """One sentence; our question, which such programs like to repeat, is not in it."""
    path = program(tmp_path / "prog", text)
    assert why_not(path) == f"`{path}` {sentence}"


def test_an_interpreter_that_answers_and_is_too_old(tmp_path: Path) -> None:
    """Nothing serves it any more."""
    path = interpreter(tmp_path / "python3.7", tmp_path / "p", "3.7.17")
    assert why_not(path) == f"`{path}` is Python 3.7.17; 3.8 or later is needed"


def test_an_interpreter_that_cannot_be_started_or_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are said at once."""
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/program\n")
    broken.chmod(0o755)
    assert why_not(broken) == f"`{broken}` cannot be run as a Python interpreter: No such file or directory"
    monkeypatch.setattr(asked, "_SECONDS", 0.05)
    hangs = program(tmp_path / "hangs", "exec sleep 30")
    assert why_not(hangs) == f"`{hangs}` does not answer within 0.05 seconds"


def test_directories_that_pth_files_add(make_environment: Make, tmp_path: Path) -> None:
    """Inside the prefix they are the environment's, elsewhere only visible; what does not exist is nowhere."""
    builder = make_environment()
    for place in (builder.site_packages / "own", tmp_path / "project"):
        place.mkdir()
    (builder.site_packages / "a.pth").write_text(
        f"own\n{tmp_path}/project\n{tmp_path}/absent\n# {tmp_path}\nimport os\n\n{tmp_path}/project\n"
    )
    (builder.site_packages / ".hidden.pth").write_text(f"{tmp_path}\n")
    (builder.site_packages / "b.txt").write_text(f"{tmp_path}\n")
    found = find(builder.prefix)
    assert found.site_packages == (str(builder.site_packages), str(builder.site_packages / "own"))
    assert found.visible_site_packages == (str(tmp_path / "project"),)


@pytest.mark.parametrize("place", ["/", "/tmp", "/var/tmp", "/tmp/../tmp/", "~"])
def test_directories_of_everybody_hold_no_distributions(
    make_environment: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A ``.pth`` file that names such a place, left by some tool, does not make its files the environment's matter."""
    builder = make_environment()
    monkeypatch.setenv("HOME", str(tmp_path))
    (builder.site_packages / "a.pth").write_text(f"{tmp_path if place == '~' else place}\n")
    found = find(builder.prefix)
    assert (found.site_packages, found.visible_site_packages) == ((str(builder.site_packages),), ())
