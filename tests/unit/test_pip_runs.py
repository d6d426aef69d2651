"""What pip fetches goes into a directory of ours; that, and what it says, is all that it does."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from safe_uninstall.execute.pip_log import Failure
from safe_uninstall.execute.pip_runs import Needed, PipRuns
from tests.support.environments import EnvironmentBuilder, read_tree
from tests.support.index_server import Index, serve
from tests.support.wheel_files import put_wheel, write_wheel


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Serve ``tmp_path/served``."""
    with serve(tmp_path / "served") as index:
        yield index


def runs(builder: EnvironmentBuilder, tmp_path: Path, *, python_version: str | None = None) -> PipRuns:
    """Return the tool's pip, for an environment."""
    (tmp_path / "fetched").mkdir(exist_ok=True)
    target = () if python_version else ("--python", str(builder.python))
    return PipRuns(
        pip=(sys.executable, "-m", "pip", *target), directory=str(tmp_path / "fetched"), python_version=python_version
    )


def settings(index: Index | None = None) -> dict[str, str]:
    """Return the settings of a user who has this index only, and little patience."""
    if index is None:
        return {"PIP_NO_INDEX": "1"}
    return {"PIP_INDEX_URL": index.url, "PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1"}


def test_a_wheel_is_downloaded(environment: EnvironmentBuilder, tmp_path: Path, index: Index) -> None:
    """The file of the index, and that only; the environment is not touched."""
    file = write_wheel(tmp_path / "served", "demo", requires=["other"])
    before = read_tree(environment.prefix)
    for number in range(2):
        (found,) = _files(runs(environment, tmp_path).download("demo===1.0", place="it", settings=settings(index)))
        assert found == tmp_path / f"fetched/download-{number}/{file.name}"
        assert found.read_bytes() == file.read_bytes()
    assert read_tree(environment.prefix) == before
    assert not any(name.startswith("pip-") for name in os.listdir(tmp_path / "fetched"))


def _files(found: list[str] | Failure) -> list[Path]:
    assert isinstance(found, list), found
    return [Path(path) for path in found]


def test_what_goes_wrong_is_said(environment: EnvironmentBuilder, tmp_path: Path, index: Index) -> None:
    """By pip's own log, whatever pip this is; so these are the words of the pip that runs the tests."""
    served = tmp_path / "served"

    def why(wanted: str = "demo===1.0") -> Failure | list[str]:
        return runs(environment, tmp_path).download(wanted, place="it", settings=settings(index))

    served.mkdir()
    assert why() == Failure()
    write_wheel(served, "demo", "2.0")
    assert why() == Failure(reason="it has only 2.0")
    file = write_wheel(served, "demo")
    index.cut_files = True
    broken = why()
    assert isinstance(broken, Failure)
    assert broken.no_network
    index.cut_files = False
    file.write_bytes(file.read_bytes()[:200])
    assert why() == Failure(reason="demo-1.0-py3-none-any.whl from it is damaged", no_network=True)
    index.status = 503
    refused = why()
    assert isinstance(refused, Failure)
    assert refused.reason is not None
    assert refused.reason.startswith(f"it cannot be reached ({index.address}: 503")
    assert refused.no_network
    shutil.rmtree(served)


def test_nobody_answers(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Told apart from an answer, so that nothing else is asked in vain."""
    with serve(tmp_path) as gone:
        pass
    found = runs(environment, tmp_path).download("demo===1.0", place="it", settings=settings(gone))
    reason = f"it cannot be reached ({gone.address}: Connection refused)"
    assert found == Failure(reason=reason, no_network=True, no_answer=True)


def test_a_source_is_no_wheel(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Nothing is built: that would run code, and make another build anyway."""
    links = tmp_path / "links"
    links.mkdir()
    shutil.make_archive(str(links / "demo-1.0"), "gztar", root_dir=links, base_dir=".")
    options = ("--find-links", str(links))
    found = runs(environment, tmp_path).download("demo===1.0", place="it", options=options, settings=settings())
    assert found == Failure(reason="it has only its source, no wheel")


def test_a_wheel_for_another_python(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """That it is there for others is worth to know."""
    metadata = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nRequires-Python: >=4\n"
    write_wheel(tmp_path / "links", "demo", metadata=metadata)
    options = ("--find-links", str(tmp_path / "links"))
    found = runs(environment, tmp_path).download("demo===1.0", place="it", options=options, settings=settings())
    assert found == Failure(reason="it has it for other versions of Python only")


def test_pip_shows_how_far_it_is(
    environment: EnvironmentBuilder, tmp_path: Path, index: Index, capfd: pytest.CaptureFixture[str]
) -> None:
    """On standard error, where a terminal is; and only if that is wanted. Standard output is for data."""
    write_wheel(tmp_path / "served", "demo")
    runs(environment, tmp_path).download("demo===1.0", place="it", settings=settings(index))
    assert capfd.readouterr() == ("", "")
    runs(environment, tmp_path).download("demo===1.0", place="it", settings=settings(index), show=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "Downloading " in err


def test_what_a_requirement_needs(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """What is there already is not needed; the environment stays as it is."""
    links = tmp_path / "links"
    write_wheel(links, "demo", "2.0", requires=["other", "present"])
    write_wheel(links, "other", "3.0")
    put_wheel(environment, write_wheel(links, "present"))
    before = read_tree(environment.prefix)
    options = ("--find-links", str(links))
    found = runs(environment, tmp_path).resolve(("demo>1",), place="it", options=options, settings=settings())
    assert isinstance(found, list)
    assert sorted(found) == [Needed("demo", "2.0", None), Needed("other", "3.0", None)]
    url = (links / "other-3.0-py3-none-any.whl").as_uri()
    found = runs(environment, tmp_path).resolve((f"other @ {url}",), place="it", options=(), settings=settings())
    assert found == [Needed("other", "3.0", url)]
    assert read_tree(environment.prefix) == before


def test_requirements_that_contradict_each_other(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """What pip says first of it is the reason."""
    write_wheel(tmp_path / "links", "demo", requires=["other>3"])
    write_wheel(tmp_path / "links", "other", "3.0")
    options = ("--find-links", str(tmp_path / "links"))
    found = runs(environment, tmp_path).resolve(("demo", "other<4"), place="it", options=options, settings=settings())
    assert isinstance(found, Failure)
    assert found.reason is not None
    assert "other" in found.reason or "demo" in found.reason


def test_a_target_without_an_interpreter(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """It is said which version it has, and takes nothing of its own environment for something of the target's."""
    links = tmp_path / "links"
    write_wheel(links, "demo", tags=["cp39-none-any"], requires=["packaging"])
    options = ("--find-links", str(links))
    own = runs(environment, tmp_path, python_version="3.9")
    found = own.resolve(("demo",), place="it", options=options, settings=settings())
    assert found == [Needed("demo", "1.0", None)]
    assert len(_files(own.download("demo===1.0", place="it", options=options, settings=settings()))) == 1
    other = runs(environment, tmp_path, python_version="3.8")
    assert isinstance(other.download("demo===1.0", place="it", options=options, settings=settings()), Failure)


def test_words_that_look_like_options_are_none(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """What metadata says can never lead pip to another index."""
    found = runs(environment, tmp_path).download("--index-url=https://evil", place="it", settings=settings())
    assert isinstance(found, Failure)
    assert found.reason is not None
    assert found.reason.startswith("pip says of it: Invalid requirement")


def test_a_pip_that_writes_no_log(tmp_path: Path) -> None:
    """What it printed counts then; and one that cannot be started is a reason, too."""
    program = tmp_path / "pip"
    program.write_text("#!/bin/sh\necho 'ERROR: no such option'; exit 2\n")
    program.chmod(0o755)
    found = PipRuns(pip=(str(program),), directory=str(tmp_path)).download("demo", place="it", settings={})
    assert found == Failure(reason="pip says of it: no such option")
    found = PipRuns(pip=(str(tmp_path / "absent"),), directory=str(tmp_path)).download("demo", place="it", settings={})
    assert found == Failure(reason="pip cannot be run: No such file or directory")


def test_pip_has_its_temporary_files_in_ours(tmp_path: Path) -> None:
    """They go with the rest, whatever becomes of pip."""
    program = tmp_path / "pip"
    program.write_text('#!/bin/sh\necho "ERROR: $TMPDIR"; exit 2\n')
    program.chmod(0o755)
    found = PipRuns(pip=(str(program),), directory=str(tmp_path)).download("demo", place="it", settings={})
    assert found == Failure(reason=f"pip says of it: {tmp_path}")
