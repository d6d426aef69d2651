"""Finds out before anything changes whether the disks have room for what a transaction will write."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from safe_uninstall.execute.stash import CANNOT_LINK
from safe_uninstall.model.errors import NoRoom

if TYPE_CHECKING:
    from safe_uninstall.execute.installers import Installer
    from safe_uninstall.model.distribution import Distribution
    from safe_uninstall.model.plan import Plan

_PROBE = "probe"
_MAKE_ROOM = ("make room there, then run this again",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Room that something takes."""

    place: str
    """A path on the file system that it takes the room of; need not exist itself."""
    bytes: int
    what: str
    """In words."""


def require_room(plan: Plan, installer: Installer, touched: Iterable[str], directory: str) -> None:
    """Refuse a transaction for which there is no room.

    Args:
        plan: what is about to be done.
        installer: what will do it.
        touched: absolute paths of what will be kept in the stash.
        directory: the transaction's own, in the environment; a link is made in it to see whether links can be made.

    Raises:
        NoRoom: names the place, what is needed and what there is.
    """
    refuse_without_room([*_needs(plan, installer), *_copies(touched, directory)])


def require_room_for_wheel(distribution: Distribution, directory: str) -> None:
    """Refuse to fetch a wheel for which there is no room.

    Its files, unpacked, are the most that it can take: how far it is packed only the one who sends it knows.

    Args:
        distribution: what it is of.
        directory: where it goes.

    Raises:
        NoRoom: names the place, what is needed and what there is.
    """
    size = sum(row.size or 0 for row in distribution.record.rows)
    need = Need(place=directory, bytes=size, what=f"the wheel of {distribution.label}, at most")
    refuse_without_room([need], help=("set TMPDIR to a directory with room for it, then run this again",))


def refuse_without_room(needs: Iterable[Need], *, help: tuple[str, ...] = _MAKE_ROOM) -> None:
    """Compare what is needed with what file systems have left for this user (statvfs(3), ``f_bavail``).

    Args:
        needs: what is needed where; of one file system together.
        help: what to do where there is too little.

    Raises:
        NoRoom: names the place, what is needed and what there is.
    """
    by_device: dict[int, list[Need]] = {}
    for need in needs:
        if need.bytes:
            by_device.setdefault(os.stat(_existing(need.place)).st_dev, []).append(need)
    for group in by_device.values():
        place = _existing(group[0].place)
        status = os.statvfs(place)
        available = status.f_bavail * status.f_frsize
        needed = sum(need.bytes for need in group)
        if needed > available:
            parts = "; ".join(f"{_size(need.bytes)} for {need.what}" for need in group)
            raise NoRoom(
                f"there is no room on the file system of `{place}`:"
                f" {_size(needed)} are needed ({parts}), {_size(available)} are available",
                help=help,
            )


def _needs(plan: Plan, installer: Installer) -> Iterator[Need]:
    """Yield the room that wheels take: the old files are kept until all is well, and so do not make room for them."""
    size = sum(wheel.installed_size for wheel in plan.wheels)
    if not size:
        return
    site = plan.environment.site_packages[0]
    yield Need(place=site, bytes=size, what="what is installed")
    # uv unpacks into its cache and links from there; it copies where that is another file system.
    cache = installer.settings.get("UV_CACHE_DIR")
    if cache is not None and os.stat(_existing(cache)).st_dev != os.stat(_existing(site)).st_dev:
        yield Need(place=cache, bytes=size, what="what uv unpacks")


def _copies(touched: Iterable[str], directory: str) -> Iterator[Need]:
    """Yield the room that the stash takes where it must copy: on other file systems, or where links cannot be made."""
    device = os.stat(directory).st_dev
    can_link: bool | None = None
    devices: dict[str, int] = {}
    size = 0
    for path in touched:
        parent = posixpath.dirname(path)
        if parent not in devices:
            devices[parent] = _device(parent)
        if devices[parent] == device:
            if can_link is None:
                can_link = _links(path, directory)
            if can_link is not False:
                continue
        size += _file_size(path)
    yield Need(place=directory, bytes=size, what="copies of what is touched, since links cannot be made")


def _links(path: str, directory: str) -> bool | None:
    """Return whether a file can be linked into a directory; None where it is no file, and tells nothing."""
    probe = posixpath.join(directory, _PROBE)
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        os.link(path, probe, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in CANNOT_LINK:
            return False
        raise
    os.unlink(probe)
    return True


def _device(directory: str) -> int:
    try:
        return os.stat(directory).st_dev
    except OSError:
        # Nothing in it exists, and nothing of it is kept.
        return -1


def _file_size(path: str) -> int:
    try:
        status = os.lstat(path)
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _existing(path: str) -> str:
    """Return a path or the nearest directory above it that exists."""
    while not os.path.exists(path):
        path = posixpath.dirname(path)
    return path


def _size(number: int) -> str:
    """Return bytes in words, always rounded the same way, so that needs and room can be compared."""
    return f"{number} B" if number < 1_000_000 else f"{number / 1_000_000:.1f} MB"
