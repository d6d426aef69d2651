"""Room is counted where it will be taken, and a transaction without enough of it does not begin."""

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.execute import space
from safe_uninstall.execute.installers import Installer
from safe_uninstall.execute.space import Need, refuse_without_room, require_room, require_room_for_wheel
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import NoRoom
from safe_uninstall.model.outcome import ExitStatus
from safe_uninstall.model.plan import Plan
from tests.support.environments import EnvironmentBuilder, read_tree
from tests.support.fakes import Row, distribution
from tests.support.runs import carry_out, plan_for
from tests.support.wheels import wheel

PIP = Installer(kind=InstallerKind.PIP, command=("pip",), options=())
MB = 1_000_000

Needs = list[tuple[str, int, str]]


@pytest.fixture
def needs(monkeypatch: pytest.MonkeyPatch) -> Needs:
    """Return what room is asked for, instead of comparing it with the disk."""
    found: Needs = []

    def note(asked: list[Need]) -> None:
        found.extend((item.place, item.bytes, item.what) for item in asked)

    monkeypatch.setattr(space, "refuse_without_room", note)
    return found


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that says how many bytes are free everywhere, in blocks of 512."""

    class Status:
        f_frsize = 512
        f_bavail = 0
        f_bfree = 1 << 40
        """What root may still use is no room for anybody else."""

    monkeypatch.setattr(os, "statvfs", lambda _path: Status)

    def set_free(number: int) -> None:
        Status.f_bavail = number // 512

    return set_free


def with_wheels(plan: Plan, *sizes: int) -> Plan:
    """Return a plan that installs wheels of these sizes."""
    return replace(plan, wheels=tuple(replace(wheel(f"w{size}"), installed_size=size) for size in sizes))


@pytest.fixture
def plan(environment: EnvironmentBuilder) -> Plan:
    """Return the plan of a removal."""
    environment.distribution("one", "1.0", {"one/a.bin": "x" * 1000, "one/b.bin": "y" * 500})
    return plan_for(environment, "one")


def touched(environment: EnvironmentBuilder) -> list[str]:
    """Return paths that a transaction would keep, among them a link, a directory, and what is not there."""
    (environment.site_packages / "one/link").symlink_to("a.bin")
    (environment.site_packages / "one/directory").mkdir(exist_ok=True)
    names = ("one/link", "one/missing", "one/directory", "nowhere/missing", "one/a.bin/below", "one/a.bin", "one/b.bin")
    return [f"{environment.site_packages}/{name}" for name in names]


def test_hard_links_take_no_room(environment: EnvironmentBuilder, plan: Plan, needs: Needs) -> None:
    """What is only removed needs nothing, and the probe leaves nothing behind."""
    paths = touched(environment)[5:]
    before = read_tree(environment.prefix)
    require_room(plan, PIP, paths, str(environment.prefix))
    assert [number for _, number, _ in needs] == [0]
    assert read_tree(environment.prefix) == before


@pytest.mark.parametrize("number", [errno.EPERM, errno.EXDEV, errno.EMLINK])
def test_copies_are_counted_where_links_cannot_be_made(
    environment: EnvironmentBuilder, plan: Plan, needs: Needs, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """One attempt tells; of the files that are there the bytes count, of links and directories nothing does."""
    attempts = []

    def refuse(*paths: Any, **_: Any) -> None:
        attempts.append(paths)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    require_room(plan, PIP, touched(environment), str(environment.prefix))
    assert needs[0][:2] == (str(environment.prefix), 1500)
    assert len(attempts) == 1


def test_another_error_is_no_answer(
    environment: EnvironmentBuilder, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails is not one without links."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(OSError, match="Input/output error"):
        require_room(plan, PIP, touched(environment), str(environment.prefix))


def test_other_file_systems_are_copied_from(
    environment: EnvironmentBuilder, plan: Plan, needs: Needs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is mounted inside of the environment cannot be linked out of its file system."""
    environment.distribution("two", "1.0", {"mounted/c.bin": "z" * 70})
    mounted = str(environment.site_packages / "mounted")
    real = os.stat

    def stat_with_mount(path: Any, **options: Any) -> Any:
        status = real(path, **options)
        if str(path) != mounted:
            return status
        return os.stat_result((*status[:2], status.st_dev + 1, *status[3:10]))

    monkeypatch.setattr(os, "stat", stat_with_mount)
    require_room(plan, PIP, [*touched(environment), f"{mounted}/c.bin"], str(environment.prefix))
    assert needs[0][1] == 70


def test_wheels_are_counted_unpacked(environment: EnvironmentBuilder, plan: Plan, needs: Needs) -> None:
    """The old files are kept until all is well, and make no room for the new ones."""
    require_room(with_wheels(plan, 300, 200), PIP, [], str(environment.prefix))
    assert needs[0][:2] == (str(environment.site_packages), 500)


@pytest.mark.parametrize("elsewhere", [True, False])
def test_uv_unpacks_into_its_cache(
    environment: EnvironmentBuilder, plan: Plan, needs: Needs, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    """On the same file system it links from there; on another one the room is needed twice."""
    cache = environment.prefix / "cache"
    cache.mkdir()
    real = os.stat

    def stat_with_cache(path: Any, **options: Any) -> Any:
        status = real(path, **options)
        if str(path) != str(cache) or not elsewhere:
            return status
        return os.stat_result((*status[:2], status.st_dev + 1, *status[3:10]))

    monkeypatch.setattr(os, "stat", stat_with_cache)
    uv = replace(PIP, kind=InstallerKind.UV, settings={"UV_CACHE_DIR": str(cache)})
    require_room(with_wheels(plan, 300), uv, [], str(environment.prefix))
    assert [item[:2] for item in needs[:-1]] == [
        (str(environment.site_packages), 300),
        *([(str(cache), 300)] if elsewhere else []),
    ]


def test_too_little_room_is_refused_with_numbers(tmp_path: Path, free: Callable[[int], None]) -> None:
    """Needed, available and the place; what is needed of one file system is added up. Exactly enough is enough."""
    needs = [
        Need(place=str(tmp_path / "not/yet/there"), bytes=3 * MB, what="wheels"),
        Need(place=str(tmp_path), bytes=400_000, what="copies"),
        Need(place=str(tmp_path), bytes=0, what="nothing"),
    ]
    free(3_400_192)
    refuse_without_room(needs)
    free(3_399_680)
    with pytest.raises(NoRoom) as caught:
        refuse_without_room(needs)
    assert caught.value.message == (
        f"there is no room on the file system of `{tmp_path}`: 3.4 MB are needed"
        " (3.0 MB for wheels; 400000 B for copies), 3.4 MB are available"
    )
    assert caught.value.exit_status is ExitStatus.USAGE
    assert caught.value.help == ("make room there, then run this again",)


def test_nothing_needs_no_room(tmp_path: Path, free: Callable[[int], None]) -> None:
    """A full disk does not stop a removal."""
    free(0)
    refuse_without_room([Need(place=str(tmp_path), bytes=0, what="nothing")])


def test_a_wheel_is_fetched_only_where_it_fits(tmp_path: Path, free: Callable[[int], None]) -> None:
    """Its files unpacked are the most that it takes; rows without a size count for nothing."""
    item = distribution("big", "1.0", {"a.so": Row(size=2000), "b.so": Row(size=96), "c.pyc": Row()}).distribution
    free(2560)
    require_room_for_wheel(item, str(tmp_path))
    free(1536)
    with pytest.raises(NoRoom, match=r"2096 B are needed \(2096 B for the wheel of big 1.0, at most\)") as caught:
        require_room_for_wheel(item, str(tmp_path))
    assert caught.value.help[0].startswith("set TMPDIR to a directory with room")


def test_a_transaction_without_room_changes_nothing(
    environment: EnvironmentBuilder, plan: Plan, free: Callable[[int], None]
) -> None:
    """Found out after the lock and before the first change; nothing of ours is left."""
    before = read_tree(environment.prefix)
    free(512)

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "link", refuse)
        with pytest.raises(NoRoom, match="512 B are available"):
            carry_out(environment, plan)
    assert read_tree(environment.prefix) == before
