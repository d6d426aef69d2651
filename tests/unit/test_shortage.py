"""What cannot be had is said in one sentence, with commands that supply it."""

from dataclasses import replace
from pathlib import Path

import pytest

from safe_uninstall.execute.pip_log import Failure
from safe_uninstall.execute.shortage import (
    Shortage,
    help_for_requirements,
    help_for_wheel,
    no_room,
    not_from_an_index,
)
from safe_uninstall.model.distribution import DirectUrl, Distribution, MetadataKind
from safe_uninstall.model.outcome import ExitStatus
from safe_uninstall.model.wheel import merged_help
from tests.support import fakes
from tests.support.environments import EnvironmentBuilder

PLAIN = fakes.distribution("demo", claims={"demo.py": b""}).distribution
URL = "file:///home/me/demo"
UNREACHABLE = Failure(reason="the index cannot be reached", no_network=True)


def again(place: str) -> str:
    """Return the command of the run."""
    return f"safe-uninstall x --restore --find-links {place} --no-index"


def test_places_that_have_nothing() -> None:
    """They are listed, once each; one that has something after all is not among them."""
    shortage = Shortage(no_index=False)
    shortage.lacking("wheels", None)
    assert shortage.sentence() == "wheels does not have it"
    shortage.lacking("uv's cache", None)
    shortage.lacking("pip's cache", Failure())
    assert shortage.sentence() == "wheels, uv's cache and pip's cache do not have it"
    shortage.having("pip's cache")
    shortage.having("pip's cache")
    assert shortage.sentence() == "wheels and uv's cache do not have it"
    assert not shortage.is_for_want_of_network


def test_files_that_are_no_good_come_first() -> None:
    """They say most about what to do."""
    shortage = Shortage(no_index=False)
    shortage.lacking("uv's cache", None)
    shortage.lacking("the index", UNREACHABLE)
    shortage.refused("x.whl is another build (from --find-links)")
    shortage.refused("x.whl is another build (from --find-links)")
    assert shortage.sentence() == (
        "x.whl is another build (from --find-links), uv's cache does not have it, and the index cannot be reached"
    )
    assert shortage.is_for_want_of_network


def test_that_no_index_may_be_asked_is_part_of_the_reason() -> None:
    """It is then the whole reason where there is no other place."""
    shortage = Shortage(no_index=True)
    assert shortage.sentence() == "no index may be asked"
    shortage.lacking("wheels", None)
    assert shortage.sentence() == "wheels does not have it, and no index may be asked"
    assert shortage.is_for_want_of_network


@pytest.mark.parametrize(
    ("tag", "options"),
    [
        ("py3-none-any", ""),
        ("py3-none-manylinux_2_27_x86_64", " --platform=manylinux_2_27_x86_64"),
        ("cp311-cp311-manylinux2014_x86_64", " --platform=manylinux2014_x86_64 --python-version=3.11"),
    ],
)
def test_the_commands_that_supply_a_wheel(environment: EnvironmentBuilder, tag: str, options: str) -> None:
    """They fetch the build that is installed, on whatever machine they are run, and use it then."""
    environment.distribution("demo", "1.0", metadata={"WHEEL": f"Wheel-Version: 1.0\nTag: {tag}\n"})
    (item,) = environment.snapshot().distributions
    assert help_for_wheel(item, "3.11.7", again, Shortage(no_index=True)) == (
        f"fetch it where there is a network: pip download --no-deps{options} demo==1.0 -d wheels",
        "then run this again with it: safe-uninstall x --restore --find-links wheels --no-index",
    )


def test_a_wheel_that_came_from_elsewhere_is_fetched_there() -> None:
    """An index need not have it; a file that is gone has no URL that would help."""
    item = fakes.distribution("demo", "1.0+cu1").distribution
    origin = DirectUrl(url="https://h/demo-1.0%2Bcu1-py3-none-any.whl")
    (fetch, _) = help_for_wheel(replace(item, direct_url=origin), "3.11", again, Shortage(no_index=True))
    assert fetch.endswith(": pip download --no-deps https://h/demo-1.0%2Bcu1-py3-none-any.whl -d wheels")
    origin = DirectUrl(url="https://h/demo-1.0.tar.gz")
    assert help_for_wheel(replace(item, direct_url=origin), "3.11", again, Shortage(no_index=True)) == (
        "build it again, which may give the same bytes: pip wheel --no-deps https://h/demo-1.0.tar.gz -w wheels",
        "then run this again with it: safe-uninstall x --restore --find-links wheels --no-index",
    )
    origin = DirectUrl(url="file:///gone.whl")
    (fetch, _) = help_for_wheel(replace(item, direct_url=origin), "3.11", again, Shortage(no_index=True))
    assert fetch.endswith(": pip download --no-deps --python-version=3.11 demo==1.0+cu1 -d wheels")


def test_what_no_network_would_help() -> None:
    """Where the index answered, fetching from it again is no advice."""
    shortage = Shortage(no_index=False)
    shortage.lacking("the index", Failure(reason="the index has only 2.0"))
    assert help_for_wheel(PLAIN, "3.11", again, shortage) == (
        "give the directory that has it: safe-uninstall x --restore --find-links DIRECTORY --no-index",
    )


def test_the_commands_that_supply_requirements() -> None:
    """With what they need in turn; for the Python of the environment."""
    assert help_for_requirements(("demo>=1", "other"), "3.12.1", again, Shortage(no_index=True)) == (
        "fetch it where there is a network: "
        "pip download --only-binary=:all: --python-version=3.12 'demo>=1' other -d wheels",
        "then run this again with it: safe-uninstall x --restore --find-links wheels --no-index",
    )


def test_help_for_several_wheels() -> None:
    """What they have in common comes last, once."""
    assert merged_help(("fetch a", "again", "fetch b", "again")) == ("fetch a", "fetch b", "again")


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (
            replace(PLAIN, direct_url=DirectUrl(url=URL, editable=True, is_directory=True)),
            f"it was installed as an editable install, {URL}, which no index has",
        ),
        (
            replace(PLAIN, direct_url=DirectUrl(url=URL, is_directory=True)),
            f"it was installed from a source tree, {URL}, which no index has",
        ),
        (
            replace(PLAIN, direct_url=DirectUrl(url="https://h/demo.git", vcs="git")),
            "it was installed from a source tree, https://h/demo.git, which no index has",
        ),
        (replace(PLAIN, conda_package="demo-1.0-0"), "conda installed it"),
        (replace(PLAIN, installer="conda"), "conda installed it"),
        (
            replace(PLAIN, metadata_kind=MetadataKind.EGG_LINK),
            "setuptools installed it from a source tree, without a wheel",
        ),
        (
            replace(PLAIN, record=replace(PLAIN.record, rows=())),
            "its RECORD has no hashes that a wheel could be held against",
        ),
        (replace(PLAIN, name="--index-url=x"), "its metadata has a name and a version that nobody can ask for"),
        (replace(PLAIN, version="unknown"), "its metadata has a name and a version that nobody can ask for"),
    ],
)
def test_what_no_index_has(item: Distribution, reason: str) -> None:
    """It is recognised before anything is fetched, and never replaced by what an index has under that name."""
    found = not_from_an_index(item)
    assert found is not None
    assert found.reason == reason
    assert found.requirement == f"{item.name}=={item.version}"


def test_what_an_index_may_have() -> None:
    """Also what came from an archive somewhere else: its bytes are known."""
    assert not_from_an_index(PLAIN) is None
    assert not_from_an_index(replace(PLAIN, direct_url=DirectUrl(url="https://h/demo-1.0-py3-none-any.whl"))) is None


def test_no_room(tmp_path: Path) -> None:
    """The directory and the reason are named, and how to name another one."""
    error = no_room("/t", OSError(28, "No space left on device"))
    assert error.message == "wheels cannot be kept in the temporary directory `/t`: No space left on device"
    assert no_room("/t").message == error.message
    assert no_room("/t", OSError("odd")).message.endswith(": odd")
    assert error.help == ("set TMPDIR to a directory with room for them, then run this again",)
    assert error.exit_status is ExitStatus.USAGE
