"""uv keeps wheels unpacked: what is in its cache becomes a wheel file again, if it is whole and the right build."""

import os
import shutil
from pathlib import Path

import pytest

from safe_uninstall.execute.uv_cache import cache_directory, wheels_in_uv_cache
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.scan.wheel import read_wheel
from tests.support.environments import Content, EnvironmentBuilder, library
from tests.support.installed import uv
from tests.support.program import call
from tests.support.wheel_files import put_wheel, write_wheel

INFO = "demo-1.0.dist-info"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Return a wheel for one platform."""
    tags = ["py3-none-manylinux_2_17_x86_64", "py3-none-manylinux2014_x86_64"]
    files: dict[str, Content] = {"demo/__init__.py": "x = 1\n", "demo/libdemo.so": library("libdemo.so")}
    return write_wheel(tmp_path / "wheels", "demo", files=files, tags=tags)


@pytest.fixture
def cache(environment: EnvironmentBuilder, wheel: Path, tmp_path: Path) -> Path:
    """Return a cache that has the wheel, which is installed."""
    cache = tmp_path / "cache"
    put_wheel(environment, wheel, installer="uv")
    archive(cache, "a", wheel)
    return cache


def archive(cache: Path, name: str, wheel: Path) -> Path:
    """Unpack a wheel as uv does, and return where."""
    place = cache / "archive-v0" / name
    shutil.unpack_archive(str(wheel), str(place), "zip")
    return place


def installed(builder: EnvironmentBuilder) -> Distribution:
    """Return the distribution that is looked for."""
    (found,) = builder.snapshot().distributions
    return found


def find(builder: EnvironmentBuilder, cache: Path | None, tmp_path: Path) -> list[str]:
    """Return the wheels that are made of a cache."""
    place = tmp_path / "made"
    place.mkdir(exist_ok=True)
    return list(wheels_in_uv_cache(installed(builder), str(place), None if cache is None else str(cache)))


def test_what_uv_itself_has_unpacked(environment: EnvironmentBuilder, wheel: Path, tmp_path: Path) -> None:
    """The file that is made has the same rows as the one that was installed, and a name that installers accept."""
    cache = tmp_path / "cache"
    where = ("--python", environment.python, "--cache-dir", cache)
    call([uv(), "pip", "install", *where, "--no-index", "--find-links", wheel.parent, "demo"])
    wheel.unlink()
    (made,) = find(environment, cache, tmp_path)
    assert Path(made).name == "demo-1.0-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
    found = read_wheel(made, environment.environment(), source="a test")
    rows = {row.path: row.hash for row in installed(environment).record.rows}
    assert {row.path: row.hash for row in found.rows}.items() <= rows.items()
    assert found.objects.keys() == {environment.path("demo/libdemo.so")}


def test_no_cache(environment: EnvironmentBuilder, cache: Path, tmp_path: Path) -> None:
    """Without uv, without a directory, with nothing in it: nothing, and no error."""
    assert find(environment, None, tmp_path) == []
    assert find(environment, tmp_path / "absent", tmp_path) == []
    shutil.rmtree(cache / "archive-v0")
    (cache / "archive-v0").write_text("a file")
    (cache / "wheels-v5").mkdir()
    assert find(environment, cache, tmp_path) == []


def test_another_build_is_passed_over(environment: EnvironmentBuilder, cache: Path, tmp_path: Path) -> None:
    """The right one is found wherever it stands among others."""
    tags = ["py3-none-manylinux_2_17_x86_64", "py3-none-manylinux2014_x86_64"]
    other = write_wheel(tmp_path / "other", "demo", files={"demo/__init__.py": "x = 2\n"}, tags=tags)
    archive(cache, "0-first", other)
    archive(cache, "1-unrelated", write_wheel(tmp_path / "other", "unrelated"))
    (made,) = find(environment, cache, tmp_path)
    assert read_wheel(made, environment.environment(), source="a test").objects


def test_a_cache_that_was_pruned(environment: EnvironmentBuilder, cache: Path, tmp_path: Path) -> None:
    """An archive that lacks a file of its RECORD is none; nor is one whose RECORD cannot be read."""
    record = cache / "archive-v0/a" / INFO / "RECORD"
    whole = record.read_text()
    library = cache / "archive-v0/a/demo/libdemo.so"
    library.unlink()
    assert find(environment, cache, tmp_path) == []
    record.write_text('"\n' + "x" * 200_000)
    assert find(environment, cache, tmp_path) == []
    record.write_text("\n".join(row for row in whole.splitlines() if "libdemo" not in row))
    assert len(find(environment, cache, tmp_path)) == 1


@pytest.mark.parametrize("row", ["../outside.txt,,", "/etc/hostname,,", "demo/../demo/__init__.py,,"])
def test_a_record_that_leaves_the_archive(
    environment: EnvironmentBuilder, cache: Path, tmp_path: Path, row: str
) -> None:
    """No file from elsewhere gets into a wheel."""
    (cache / "archive-v0/outside.txt").write_text("secret")
    with (cache / "archive-v0/a" / INFO / "RECORD").open("a") as file:
        file.write(f"\n{row}\n")
    assert find(environment, cache, tmp_path) == []


def test_times_and_short_rows_do_not_matter(environment: EnvironmentBuilder, cache: Path, tmp_path: Path) -> None:
    """Zip files know no time before 1980, and rows may have one column."""
    os.utime(cache / "archive-v0/a/demo/__init__.py", (0, 0))
    with (cache / "archive-v0/a" / INFO / "RECORD").open("a") as file:
        file.write("demo/__init__.py\n")
    assert len(find(environment, cache, tmp_path)) == 1


def test_no_room_is_an_error(environment: EnvironmentBuilder, cache: Path, tmp_path: Path) -> None:
    """That a wheel cannot be written is no reason to say that it is not there."""
    wheels = wheels_in_uv_cache(installed(environment), str(tmp_path / "absent"), str(cache))
    with pytest.raises(FileNotFoundError):
        list(wheels)


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What uv says, also where a variable does; a uv that fails or says nothing has none."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert cache_directory(uv()) == str(tmp_path / "elsewhere")
    assert cache_directory(str(tmp_path / "absent")) is None
    for number, text in enumerate(("exit 1", "exit 0", "echo /c; exit 2")):
        program = tmp_path / f"uv{number}"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        assert cache_directory(str(program)) is None
