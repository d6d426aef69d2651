"""A wheel is looked for where the user says, in the order that is promised; only the build that was installed will do.

The pip is the real one; the index is on this machine.
"""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.execute.fetch import Cache, WheelFinder
from safe_uninstall.execute.indexes import Indexes
from safe_uninstall.execute.pip_runs import PipRuns
from safe_uninstall.execute.pip_settings import PipSettings
from safe_uninstall.model.distribution import DirectUrl, Distribution
from safe_uninstall.model.errors import TemporaryDirectoryUnusable, UsageError
from safe_uninstall.model.outcome import ExitStatus
from safe_uninstall.model.wheel import Wheel, WheelUnavailable
from safe_uninstall.scan.wheel import read_wheel
from tests.support.environments import EnvironmentBuilder, read_tree
from tests.support.index_server import Index, serve
from tests.support.wheel_files import put_wheel, write_wheel

FILES = {"demo/__init__.py": "x = 1\n"}
OTHER = {"demo/__init__.py": "x = 2\n"}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Serve ``tmp_path/served``, which is empty."""
    (tmp_path / "served").mkdir()
    with serve(tmp_path / "served") as index:
        yield index


@dataclass
class Bench:
    """An environment in which one wheel is installed, and what is needed to look for that wheel."""

    builder: EnvironmentBuilder
    directory: Path
    file: Path
    """The wheel, in a directory where nobody looks."""
    told: list[str] = field(default_factory=list)

    def finder(
        self, *, pip: Mapping[str, str] | None = None, uv: Mapping[str, str] | None = None, **options: Any
    ) -> WheelFinder:
        """Return a finder for a user who configured pip and uv so."""
        environment = self.builder.environment()
        # Which interpreter it is for matters only to what looks at the environment; without, pip starts only once.
        target = ("--python", str(self.builder.python)) if options.pop("target", False) else ()
        command = (sys.executable, "-m", "pip", *target)
        fetched = self.directory / "fetched"
        fetched.mkdir(exist_ok=True)
        variables = {"PIP_CONFIG_FILE": "/dev/null", "PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1", **(pip or {})}
        indexes = Indexes(
            pip=PipSettings(command, variables),
            uv=uv or {},
            prefer_uv=options.pop("prefer_uv", False),
            no_index=options.pop("no_index", False),
        )
        return WheelFinder(
            runs=options.pop("runs", PipRuns(pip=command, directory=str(fetched))),
            indexes=indexes,
            read=options.pop("read", lambda file, source: read_wheel(file, environment, source=source)),
            scripts=environment.scripts,
            python_version=environment.python_version,
            again=lambda place: f"again {place}",
            progress=self.told.append,
            **options,
        )

    @property
    def distribution(self) -> Distribution:
        """What is installed."""
        return next(item for item in self.builder.snapshot().distributions if item.name == "demo")


@pytest.fixture
def bench(environment: EnvironmentBuilder, tmp_path: Path) -> Bench:
    """Return an environment with a wheel in it."""
    file = write_wheel(tmp_path / "own", "demo", files=FILES)
    put_wheel(environment, file)
    return Bench(environment, tmp_path, file)


def offer(bench: Bench, directory: Path, file: Path | None = None) -> Path:
    """Copy a wheel, that which is installed by default, into a directory where it will be looked for."""
    directory.mkdir(exist_ok=True)
    return Path(shutil.copy(file or bench.file, directory))


def found(result: object) -> Wheel:
    """Return the wheel that a search ended with."""
    assert isinstance(result, Wheel), result
    return result


def missing(result: object) -> WheelUnavailable:
    """Return what a search in vain ended with."""
    assert isinstance(result, WheelUnavailable), result
    return result


def test_what_the_user_gives_comes_first(bench: Bench, tmp_path: Path, index: Index) -> None:
    """Neither a cache nor an index is asked then, and the file is used where it is."""
    given = offer(bench, tmp_path / "given")
    offer(bench, tmp_path / "served")
    asked: list[str] = []

    def wheels(item: Distribution, _place: str) -> Iterator[str]:
        asked.append(item.name)
        yield from ()

    finder = bench.finder(
        pip={"PIP_INDEX_URL": index.url},
        find_links=(str(tmp_path / "given"),),
        caches=(Cache(name="a cache", wheels=wheels),),
    )
    wheel = found(finder.restore(bench.distribution))
    assert (wheel.file, wheel.source) == (str(given), "--find-links")
    assert (asked, index.asked) == ([], [])
    assert bench.told == ["fetching demo==1.0"]
    given.unlink()
    assert finder.restore(bench.distribution) is wheel, "the answer is remembered"


@pytest.mark.parametrize(
    "form", ["{directory}", "file://{directory}", "{directory}/{name}", "file://{directory}/{name}"]
)
def test_forms_of_a_place(bench: Bench, tmp_path: Path, form: str) -> None:
    """A directory or a wheel file, as path or as URL."""
    given = offer(bench, tmp_path / "given dir")
    directory = str(given.parent) if form.startswith("{") else str(given.parent).replace(" ", "%20")
    link = form.format(directory=directory, name=given.name)
    wheel = found(bench.finder(find_links=(link,), no_index=True).restore(bench.distribution))
    assert wheel.file == str(given)


def test_a_page_with_links(bench: Bench, tmp_path: Path, index: Index) -> None:
    """It is for pip to read, on a server or on this machine; what it does not have is said by its name."""
    offer(bench, tmp_path / "served")
    finder = bench.finder(find_links=(index.page,), no_index=True)
    wheel = found(finder.restore(bench.distribution))
    assert wheel.source == "--find-links"
    assert Path(wheel.file).read_bytes() == bench.file.read_bytes()
    page = tmp_path / "page.html"
    page.write_text(f'<a href="{bench.file.as_uri()}">{bench.file.name}</a>')
    wheel = found(bench.finder(find_links=(str(page),), no_index=True).restore(bench.distribution))
    assert wheel.source == "--find-links"
    page.write_text("")
    nothing = missing(bench.finder(find_links=(str(page),), no_index=True).restore(bench.distribution))
    assert nothing.reason == f"{page} does not have it, and no index may be asked"


def test_caches_come_before_the_index(bench: Bench, tmp_path: Path, index: Index) -> None:
    """In their order, the first that has the right build; no network is needed then."""
    wrong = write_wheel(tmp_path / "wrong", "demo", files=OTHER)
    offer(bench, tmp_path / "served")
    caches = (
        Cache(name="empty cache", wheels=lambda _item, _place: ()),
        Cache(name="first cache", wheels=lambda _item, _place: (str(wrong), str(bench.file))),
        Cache(name="second cache", wheels=lambda _item, _place: pytest.fail("asked in vain")),
    )
    finder = bench.finder(pip={"PIP_INDEX_URL": index.url}, caches=caches)
    wheel = found(finder.restore(bench.distribution))
    assert (wheel.file, wheel.source) == (str(bench.file), "first cache")
    assert index.asked == []


def test_then_the_index_that_pip_is_configured_for(bench: Bench, tmp_path: Path, index: Index) -> None:
    """By variable or by file; the wheel is fetched before anything changes."""
    offer(bench, tmp_path / "served")
    before = read_tree(bench.builder.prefix)
    wheel = found(bench.finder(pip={"PIP_INDEX_URL": index.url}).restore(bench.distribution))
    assert wheel.source == "the index"
    assert Path(wheel.file).parent.parent == tmp_path / "fetched"
    configuration = tmp_path / "pip.conf"
    configuration.write_text(f"[global]\nindex-url = {index.url}\n")
    found(bench.finder(pip={"PIP_CONFIG_FILE": str(configuration)}).restore(bench.distribution))
    assert read_tree(bench.builder.prefix) == before


def test_or_the_one_that_uv_is_configured_for(bench: Bench, tmp_path: Path, index: Index) -> None:
    """Where both are, one after the other, that of the environment's own installer first."""
    offer(bench, tmp_path / "served")
    of_uv = {"PIP_INDEX_URL": index.url}
    assert found(bench.finder(uv=of_uv).restore(bench.distribution)).source == "the index"
    with serve(tmp_path / "own") as of_pip:
        pip = {"PIP_INDEX_URL": of_pip.url}
        index.asked.clear()
        found(bench.finder(uv=of_uv, pip=pip).restore(bench.distribution))
        assert (bool(of_pip.asked), index.asked) == (True, [])
        bench.file.unlink()
        found(bench.finder(uv=of_uv, pip=pip).restore(bench.distribution))
        of_pip.asked.clear()
        found(bench.finder(uv=of_uv, pip=pip, prefer_uv=True).restore(bench.distribution))
        assert of_pip.asked == []


def test_configured_places_are_no_index(bench: Bench, tmp_path: Path) -> None:
    """``--no-index`` does not forbid what pip is configured to look at without one."""
    offer(bench, tmp_path / "links")
    links = {"PIP_FIND_LINKS": str(tmp_path / "links")}
    wheel = found(bench.finder(pip=links, no_index=True).restore(bench.distribution))
    assert wheel.source == "the configured place"


def test_last_the_url_that_it_came_from(bench: Bench, tmp_path: Path, index: Index) -> None:
    """Where the index has nothing; and never where no index may be asked."""
    offer(bench, tmp_path / "served")
    url = f"http://{index.address}/files/{bench.file.name}"
    item = replace(bench.distribution, direct_url=DirectUrl(url=url))
    (tmp_path / "empty").mkdir()
    with serve(tmp_path / "empty") as empty:
        wheel = found(bench.finder(pip={"PIP_INDEX_URL": empty.url}).restore(item))
        assert wheel.source == "the URL that it was installed from"
        assert empty.asked
        index.asked.clear()
        nothing = missing(bench.finder(pip={"PIP_INDEX_URL": empty.url}, no_index=True).restore(item))
        assert index.asked == []
        assert nothing.help[0].endswith(f"pip download --no-deps {url} -d wheels")
        archive = url.replace("-py3-none-any.whl", ".tar.gz")
        source = replace(item, direct_url=DirectUrl(url=archive))
        assert missing(bench.finder(pip={"PIP_INDEX_URL": empty.url}).restore(source)).reason == (
            f"it was built from {archive}, which is no wheel, and the index does not have it"
        )


def test_a_file_on_this_machine_that_it_came_from(bench: Bench, tmp_path: Path, index: Index) -> None:
    """It comes before an index, which may have another build; when it is gone, that is said."""
    item = replace(bench.distribution, direct_url=DirectUrl(url=bench.file.as_uri()))
    finder = bench.finder(pip={"PIP_INDEX_URL": index.url}, no_index=True)
    assert found(finder.restore(item)).source == bench.file.as_uri()
    bench.file.unlink()
    nothing = missing(bench.finder(pip={"PIP_INDEX_URL": index.url}).restore(item))
    assert nothing.reason == (
        f"{bench.file}, from which it was installed, is not there any more, and the index does not have it"
    )
    source = replace(item, direct_url=DirectUrl(url=f"file://{tmp_path}/demo-1.0.tar.gz"))
    assert missing(bench.finder(no_index=True).restore(source)).reason == (
        f"it was built from file://{tmp_path}/demo-1.0.tar.gz, which is no wheel, and no index may be asked"
    )


def test_another_build_will_not_do(bench: Bench, tmp_path: Path, index: Index) -> None:
    """Wherever it is found; the reason names the file, what is different in it, and where it is from."""
    write_wheel(tmp_path / "given", "demo", files=OTHER)
    write_wheel(tmp_path / "served", "demo", files={"demo/more.py": "", **FILES})
    finder = bench.finder(pip={"PIP_INDEX_URL": index.url}, find_links=(str(tmp_path / "given"),))
    nothing = missing(finder.restore(bench.distribution))
    name = "demo-1.0-py3-none-any.whl"
    assert nothing.requirement == "demo==1.0"
    assert nothing.reason == (
        f"{name} is another build than the one installed: demo/__init__.py has other bytes (from --find-links), and "
        f"{name} is another build than the one installed, which has no demo/more.py (from the index)"
    )
    assert nothing.help == ("give the directory that has it: again DIRECTORY",)


def test_the_right_build_among_others(bench: Bench, tmp_path: Path, index: Index) -> None:
    """What was installed for older platforms is fetched for those, though pip prefers newer ones."""
    older, newer = "py3-none-manylinux_2_5_x86_64", "py3-none-manylinux_2_17_x86_64"
    own = write_wheel(tmp_path / "served", "demo", files=FILES, tags=[older])
    write_wheel(tmp_path / "served", "demo", files=OTHER, tags=[newer])
    put_wheel(bench.builder, own)
    wheel = found(bench.finder(pip={"PIP_INDEX_URL": index.url}).restore(bench.distribution))
    assert Path(wheel.file).name == own.name
    wheel = found(bench.finder(find_links=(str(tmp_path / "served"),), no_index=True).restore(bench.distribution))
    assert wheel.file == str(own)


def test_a_build_whose_tags_are_not_those_of_its_file(bench: Bench, tmp_path: Path, index: Index) -> None:
    """Then whatever pip chooses is tried."""
    tags = ["py3-none-linux_armv7l"]
    own = write_wheel(tmp_path / "served", "demo", files=FILES, tags=tags, file_tag="py3-none-any")
    put_wheel(bench.builder, own)
    wheel = found(bench.finder(pip={"PIP_INDEX_URL": index.url}).restore(bench.distribution))
    assert Path(wheel.file).name == own.name


def test_a_version_is_exactly_that(bench: Bench, tmp_path: Path, index: Index) -> None:
    """``==1.0`` would accept ``1.0+local`` too, which is another build."""
    write_wheel(tmp_path / "served", "demo", "1.0+local", files=OTHER)
    offer(bench, tmp_path / "served")
    links = (str(tmp_path / "served"),)
    assert found(bench.finder(pip={"PIP_INDEX_URL": index.url}).restore(bench.distribution)).version == "1.0"
    assert found(bench.finder(find_links=links, no_index=True).restore(bench.distribution)).version == "1.0"


def test_places_without_it(bench: Bench, tmp_path: Path) -> None:
    """Each is told: a directory without it, one that is not there, one that may not be read, files of other names."""
    given = tmp_path / "given"
    write_wheel(given, "demo", "2.0")
    write_wheel(given, "other")
    (given / "demo-1.0.tar.gz").write_text("")
    (given / "no-wheel-name.whl").write_text("")
    (given / "demo-x!y-py3-none-any.whl").write_text("")
    links = (str(given), str(tmp_path / "absent"))
    nothing = missing(bench.finder(find_links=links, no_index=True).restore(bench.distribution))
    assert nothing.reason == (
        f"{tmp_path / 'absent'} is not there, {given} does not have it, and no index may be asked"
    )
    assert nothing.help == (
        "fetch it where there is a network: pip download --no-deps demo==1.0 -d wheels",
        "then run this again with it: again wheels",
    )


def test_a_directory_that_may_not_be_read(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is the system's."""
    (tmp_path / "given").mkdir()
    finder = bench.finder(find_links=(str(tmp_path / "given"),), no_index=True)
    item = bench.distribution

    def listdir(_path: str) -> list[str]:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as forbidden:
        forbidden.setattr(os, "listdir", listdir)
        nothing = missing(finder.restore(item))
    assert nothing.reason == f"{tmp_path / 'given'} cannot be read: Permission denied, and no index may be asked"


def test_wheels_that_are_no_good(bench: Bench, tmp_path: Path) -> None:
    """One that is truncated or crafted is a reason, never a failure."""
    given = offer(bench, tmp_path / "given")
    given.write_bytes(given.read_bytes()[:100])
    finder = bench.finder(find_links=(str(tmp_path / "given"),), no_index=True)
    assert missing(finder.restore(bench.distribution)).reason == (
        f"{given.name} cannot be read: File is not a zip file (from --find-links), and no index may be asked"
    )


def test_what_is_recognised_before_anything_is_fetched(bench: Bench, index: Index) -> None:
    """An editable install is never replaced by what an index has under that name."""
    item = replace(bench.distribution, direct_url=DirectUrl(url="file:///src", editable=True, is_directory=True))
    nothing = missing(bench.finder(pip={"PIP_INDEX_URL": index.url}).restore(item))
    assert "editable" in nothing.reason
    assert (bench.told, index.asked) == ([], [])


def test_without_a_network_it_is_asked_once(bench: Bench, tmp_path: Path) -> None:
    """The sentence says what is missing and why; the next distribution is not waited for again."""
    with serve(tmp_path) as gone:
        pass
    tags = ["py3-none-manylinux2014_x86_64"]
    put_wheel(bench.builder, write_wheel(tmp_path / "own", "second", tags=tags))
    (second,) = (item for item in bench.builder.snapshot().distributions if item.name == "second")
    finder = bench.finder(pip={"PIP_INDEX_URL": gone.url})
    nothing = missing(finder.restore(bench.distribution))
    assert nothing.reason == f"the index cannot be reached ({gone.address}: Connection refused)"
    assert nothing.help == (
        "fetch it where there is a network: pip download --no-deps demo==1.0 -d wheels",
        "then run this again with it: again wheels",
    )
    runs = len(list((tmp_path / "fetched").iterdir()))
    later = missing(finder.restore(second))
    assert later.reason == "the index cannot be reached"
    assert later.help[0].endswith("pip download --no-deps --platform=manylinux2014_x86_64 second==1.0 -d wheels")
    assert len(list((tmp_path / "fetched").iterdir())) == runs


def test_a_page_that_does_not_answer_says_nothing_of_another(bench: Bench, tmp_path: Path, index: Index) -> None:
    """Each place is asked, whatever became of the one before."""
    offer(bench, tmp_path / "served")
    with serve(tmp_path) as gone:
        pass
    finder = bench.finder(find_links=(gone.page, index.page), no_index=True)
    assert found(finder.restore(bench.distribution)).source == "--find-links"


def test_no_room_for_a_wheel(bench: Bench, tmp_path: Path, index: Index) -> None:
    """A clear error that ends the run: nothing was changed, and it is nobody's fault but the machine's."""
    offer(bench, tmp_path / "given")
    links = (str(tmp_path / "given"),)
    item = bench.distribution

    def full(_file: str, _source: str) -> Wheel:
        raise OSError(28, "No space left on device")

    with pytest.raises(TemporaryDirectoryUnusable, match="No space left on device") as caught:
        bench.finder(find_links=links, no_index=True, read=full).restore(item)
    assert caught.value.exit_status is ExitStatus.USAGE
    write_wheel(tmp_path / "given", "new")
    with pytest.raises(TemporaryDirectoryUnusable, match="No space left on device"):
        bench.finder(find_links=links, no_index=True, read=full).resolve(("new",))
    pip = tmp_path / "pip"
    pip.write_text(
        '#!/bin/sh\ncase "$1" in config) ;; *) echo "ERROR: [Errno 28] No space left on device"; exit 2; esac\n'
    )
    pip.chmod(0o755)
    runs = PipRuns(pip=(str(pip),), directory=str(tmp_path / "fetched"))
    for attempt in ("restore", "resolve"):
        finder = bench.finder(pip={"PIP_INDEX_URL": index.url}, runs=runs)
        with pytest.raises(TemporaryDirectoryUnusable, match="No space left on device"):
            finder.restore(item) if attempt == "restore" else finder.resolve(("demo",))


def test_requirements_bring_what_they_need(bench: Bench, tmp_path: Path, index: Index) -> None:
    """With what the environment lacks, and nothing that it has; from the index, or from what the user gives."""
    served = tmp_path / "served"
    write_wheel(served, "new", "2.0", requires=["needed>=1", "demo"])
    write_wheel(served, "needed", "1.5")
    before = read_tree(bench.builder.prefix)
    finder = bench.finder(target=True, pip={"PIP_INDEX_URL": index.url})
    wheels = finder.resolve(("new",))
    assert isinstance(wheels, tuple)
    assert {(item.name, item.version, item.source) for item in wheels} == {
        ("new", "2.0", "the index"),
        ("needed", "1.5", "the index"),
    }
    assert finder.resolve(("new",)) is wheels
    assert bench.told[0] == "resolving new"
    assert sorted(bench.told[1:]) == ["fetching needed==1.5", "fetching new==2.0"]
    index.asked.clear()
    wheels = bench.finder(target=True, find_links=(str(served),), no_index=True).resolve(("new>1",))
    assert isinstance(wheels, tuple)
    assert {(item.name, item.source) for item in wheels} == {("new", "--find-links"), ("needed", "--find-links")}
    assert index.asked == []
    assert bench.finder(target=True, find_links=(str(served),), no_index=True).resolve(("demo",)) == ()
    assert read_tree(bench.builder.prefix) == before


def test_a_requirement_with_a_url(bench: Bench, tmp_path: Path) -> None:
    """A wheel is fetched from there; a source is not built."""
    file = write_wheel(tmp_path / "own", "new", "2.0")
    wheels = bench.finder(target=True, no_index=True).resolve((f"new @ {file.as_uri()}",))
    assert isinstance(wheels, tuple)
    assert [item.name for item in wheels] == ["new"]
    for url in ("git+https://h/new.git", "https://h/new-2.0.tar.gz", "git+https://h/new.whl"):
        nothing = missing(bench.finder().resolve((f"new @ {url}",)))
        assert nothing.reason == "it names a source, and only wheels can be checked"
        assert nothing.requirement == f"new @ {url}"


@pytest.mark.parametrize("text", ["", "./directory", "--index-url=https://evil", "demo==", "a b"])
def test_what_is_no_requirement(bench: Bench, text: str) -> None:
    """It never reaches pip, which would take some of these for options."""
    with pytest.raises(UsageError, match="is not a requirement"):
        bench.finder(no_index=True).resolve((text,))


def test_requirements_that_cannot_be_had(bench: Bench, tmp_path: Path, index: Index) -> None:
    """In the same words as for what is restored; the commands fetch what is needed in turn, too."""
    (tmp_path / "given").mkdir()
    nothing = missing(bench.finder(find_links=(str(tmp_path / "given"),), no_index=True).resolve(("new>1", "b")))
    assert nothing.requirement == "new>1 b"
    assert nothing.reason == f"{tmp_path / 'given'} does not have it, and no index may be asked"
    version = bench.builder.site_packages.parent.name.removeprefix("python")
    assert nothing.help == (
        f"fetch it where there is a network: pip download --only-binary=:all: --python-version={version} 'new>1' b"
        " -d wheels",
        "then run this again with it: again wheels",
    )
    write_wheel(tmp_path / "served", "new")
    assert missing(bench.finder(pip={"PIP_INDEX_URL": index.url}).resolve(("new>1",))).reason == (
        "the index has only 1.0"
    )


def test_a_wheel_for_a_requirement_that_is_no_good(bench: Bench, tmp_path: Path, index: Index) -> None:
    """It is held against its own RECORD, since there is no other."""
    write_wheel(tmp_path / "served", "new", files={"new.py": "x"}, record="new.py,sha256=abc,1\n")
    nothing = missing(bench.finder(pip={"PIP_INDEX_URL": index.url}).resolve(("new",)))
    assert nothing.requirement == "new==1.0"
    assert nothing.reason == "new-1.0-py3-none-any.whl is damaged: new.py is not what its RECORD says"


def test_an_index_that_goes_away_half_way(bench: Bench, tmp_path: Path, index: Index) -> None:
    """What was resolved and cannot be fetched is named."""
    write_wheel(tmp_path / "served", "new")
    finder = bench.finder(pip={"PIP_INDEX_URL": index.url})

    def stop(text: str) -> None:
        if text.startswith("fetching"):
            index.status = 503

    finder.progress = stop
    nothing = missing(finder.resolve(("new",)))
    assert nothing.requirement == "new==1.0"
    assert nothing.reason.startswith("the index cannot be reached")
