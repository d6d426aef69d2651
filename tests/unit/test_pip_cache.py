"""pip keeps wheels without their names: what they are is found out from what is in them."""

import sys
from pathlib import Path

import pytest

from safe_uninstall.execute.pip_cache import PipCache, cache_directory
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.scan.wheel import read_wheel
from tests.support.environments import Content, EnvironmentBuilder, library
from tests.support.wheel_files import put_wheel, write_wheel

PIP = (sys.executable, "-m", "pip")


@pytest.fixture
def wheel(environment: EnvironmentBuilder, tmp_path: Path) -> Path:
    """Return a wheel that is installed."""
    files: dict[str, Content] = {"demo/__init__.py": "x = 1\n", "demo/libdemo.so": library("libdemo.so")}
    wheel = write_wheel(tmp_path / "wheels", "demo", files=files, tags=["cp311-abi3-manylinux2014_x86_64"])
    put_wheel(environment, wheel)
    return wheel


def installed(builder: EnvironmentBuilder) -> Distribution:
    """Return the distribution that is looked for."""
    (found,) = builder.snapshot().distributions
    return found


def find(builder: EnvironmentBuilder, cache: PipCache, place: Path) -> list[Path]:
    """Return the wheels that are found, after holding them against what is installed."""
    place.mkdir()
    found = [Path(path) for path in cache.wheels(installed(builder), str(place))]
    rows = {row.path: row.hash for row in installed(builder).record.rows}
    for path in found:
        wheel = read_wheel(str(path), builder.environment(), source="a test")
        assert {row.path: row.hash for row in wheel.rows}.items() <= rows.items()
    return found


def keep(root: Path, bucket: str, name: str, data: bytes) -> Path:
    """Write a file into a cache, where pip would."""
    path = root / bucket / "a" / "b" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_an_answer_that_is_the_file(environment: EnvironmentBuilder, wheel: Path, tmp_path: Path) -> None:
    """Since pip 23.3: the body of an answer is a file of its own; it is not copied."""
    body = keep(tmp_path / "cache", "http-v2", "abc.body", wheel.read_bytes())
    keep(tmp_path / "cache", "http-v2", "abc", b"cc=4,headers")
    keep(tmp_path / "cache", "http-v2", "page.body", b"<html>PK\x03\x04</html>")
    (found,) = find(environment, PipCache(str(tmp_path / "cache")), tmp_path / "made")
    assert found.name == "demo-1.0-cp311-abi3-manylinux2014_x86_64.whl"
    assert found.resolve() == body


def test_an_answer_within_a_message(environment: EnvironmentBuilder, wheel: Path, tmp_path: Path) -> None:
    """Before: it stands between a head and the headers; the very bytes of the wheel are taken out."""
    data = wheel.read_bytes()
    keep(tmp_path / "cache", "http", "abc", b"cc=4,\x82\xa8response\x87\xa4body\xc5\x07" + data + b"\xa7headers" * 9)
    (found,) = find(environment, PipCache(str(tmp_path / "cache")), tmp_path / "made")
    assert found.read_bytes() == data


def test_a_wheel_that_pip_built(environment: EnvironmentBuilder, wheel: Path, tmp_path: Path) -> None:
    """It has its name already, and is used where it is."""
    kept = keep(tmp_path / "cache", "wheels", wheel.name, wheel.read_bytes())
    assert find(environment, PipCache(str(tmp_path / "cache")), tmp_path / "made") == [kept]


def test_all_builds_of_a_version_are_given(environment: EnvironmentBuilder, wheel: Path, tmp_path: Path) -> None:
    """Which of them is the right one is checked by whoever asked."""
    other = write_wheel(tmp_path / "other", "demo", files={"demo/__init__.py": "x = 2\n"})
    unrelated = write_wheel(tmp_path / "other", "demo", "1.1")
    cache = tmp_path / "cache"
    for number, file in enumerate((other, wheel, unrelated)):
        keep(cache, "http-v2", f"{number}.body", file.read_bytes())
    place = tmp_path / "made"
    place.mkdir()
    assert len(list(PipCache(str(cache)).wheels(installed(environment), str(place)))) == 2


def test_what_is_no_wheel_is_passed_over(environment: EnvironmentBuilder, wheel: Path, tmp_path: Path) -> None:
    """Truncated files, archives without a dist-info or with two, files that went meanwhile."""
    cache = tmp_path / "cache"
    data = wheel.read_bytes()
    keep(cache, "http-v2", "cut.body", data[: len(data) // 2])
    keep(cache, "http-v2", "dangling.body", b"").unlink()
    (cache / "http-v2/a/b/dangling.body").symlink_to("nowhere")
    two = write_wheel(tmp_path / "two", "demo", unlisted={"other-1.dist-info/RECORD": b""})
    keep(cache, "http-v2", "two.body", two.read_bytes())
    found = PipCache(str(cache))
    assert find(environment, found, tmp_path / "first") == []
    body = keep(cache, "http-v2", "good.body", data)
    assert find(environment, found, tmp_path / "second") == [], "a cache is looked through once"
    found = PipCache(str(cache))
    assert len(find(environment, found, tmp_path / "third")) == 1
    body.write_bytes(b"PK\x03\x04 damaged since")
    assert find(environment, found, tmp_path / "fourth") == []
    assert find(environment, PipCache(None), tmp_path / "fifth") == []


def test_where_the_cache_is(tmp_path: Path) -> None:
    """What pip says; none where it is switched off, or where there is no pip."""
    assert cache_directory(PIP, {"PIP_CACHE_DIR": str(tmp_path)}) == str(tmp_path)
    assert cache_directory(PIP, {"PIP_NO_CACHE_DIR": "1"}) is None
    assert cache_directory(("/bin/echo", "no"), {}) is None
