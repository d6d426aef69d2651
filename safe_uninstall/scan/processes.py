"""Looks in ``/proc`` for processes that have files mapped or open (proc(5))."""

import os
import re
import sys
from collections.abc import Iterator, Set
from typing import NamedTuple

from safe_uninstall.model.processes import Use, UseKind, Uses

_MAPPED_FILE = re.compile(rb"^\S+ \S+ \S+ \S+ [1-9]\d* +(/.*)$", re.MULTILINE)
"""A line of ``maps`` that is of a file: address, permissions, offset, device, inode, path."""

_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD of the flags in ``stat`` (``include/linux/sched.h``): kernel threads have no files of their own."""

_ENDED = frozenset("ZX")
"""States of processes that have ended and only wait to be asked how: they use nothing any more."""


class ProcTable:
    """Implements ``model.processes.ProcessTable`` over ``/proc``; where there is none, nothing is found."""

    def __init__(self, root: str = "/proc", *, pid: int | None = None, uid: int | None = None) -> None:
        """Look below ``root``.

        Args:
            root: where proc(5) is mounted.
            pid: the process that is left out, with all that it started; None: this one.
            uid: the user who looks; None: the one that this process runs as.
        """
        self._root = root
        self._own = os.getpid() if pid is None else pid
        self._given_uid = uid
        self._unreadable = 0
        self._held: list[_Held] | None = None

    def using(self, paths: Set[str]) -> Uses:
        """Return which processes use which of ``paths``; they are looked at once, when this is first asked."""
        if self._held is None:
            self._held = list(self._look())
        wanted = _Wanted(paths)
        found = [use for held in self._held for use in self._uses(held, wanted)]
        by_root = self._unreadable > 0 and self._uid() == 0
        return Uses(found=tuple(found), unreadable=self._unreadable, asked_by_root=by_root)

    def _uid(self) -> int:
        return os.getuid() if self._given_uid is None else self._given_uid

    def _look(self) -> "Iterator[_Held]":
        """Yield what processes hold; one that ends meanwhile holds nothing."""
        own_view = self._view(self._own)
        for pid in self._others():
            directory = f"{self._root}/{pid}"
            try:
                is_elsewhere = self._view(pid) != own_view
                with open(f"{directory}/maps", "rb") as file:
                    mapped = frozenset(map(sys.intern, mapped_files(file.read())))
                opened = frozenset(_opened_files(f"{directory}/fd")) - mapped
            except PermissionError:
                self._unreadable += 1
            except OSError:
                continue
            else:
                yield _Held(pid, f"{directory}/root" if is_elsewhere else None, mapped, opened)

    def _others(self) -> list[int]:
        """Return the processes that may use files, without ourselves and what we started, sorted."""
        try:
            pids = sorted(int(name) for name in os.listdir(self._root) if name.isdecimal())
        except OSError:
            return []
        states = {pid: state for pid in pids if (state := self._state(pid)) is not None}
        return [pid for pid, state in states.items() if not state.has_no_files and not self._is_ours(pid, states)]

    def _state(self, pid: int) -> "_State | None":
        try:
            with open(f"{self._root}/{pid}/stat", "rb") as file:
                return _State.parse(file.read())
        except (OSError, ValueError, IndexError):
            return None

    def _is_ours(self, pid: int, states: "dict[int, _State]") -> bool:
        seen: set[int] = set()
        while pid in states and pid not in seen and pid != self._own:
            seen.add(pid)
            pid = states[pid].parent
        return pid == self._own

    def _view(self, pid: int) -> tuple[object, ...] | None:
        """Return what decides whether two processes mean the same file by a path: mount namespace and root directory.

        None where it cannot be told.
        """
        try:
            root = os.stat(f"{self._root}/{pid}/root")
            return os.readlink(f"{self._root}/{pid}/ns/mnt"), root.st_dev, root.st_ino
        except OSError:
            return None

    def _uses(self, held: "_Held", wanted: "_Wanted") -> Iterator[Use]:
        used: dict[str, UseKind] = {}
        for how, paths in ((UseKind.OPEN, held.opened), (UseKind.MAPPED, held.mapped)):
            for path in paths:
                used.update(dict.fromkeys(wanted.match(path, held.root), how))
        if not used:
            return
        command, user = self._command(held.pid), self._user(held.pid)
        for path in sorted(used):
            yield Use(pid=held.pid, command=command, user=user, path=path, how=used[path])

    def _command(self, pid: int) -> str:
        try:
            with open(f"{self._root}/{pid}/cmdline", "rb") as file:
                words = [os.fsdecode(word) for word in file.read().split(b"\0")]
            with open(f"{self._root}/{pid}/comm", "rb") as file:
                name = os.fsdecode(file.read()).rstrip("\n")
        except OSError:
            return "?"
        return described(words) or name

    def _user(self, pid: int) -> str | None:
        try:
            uid = os.stat(f"{self._root}/{pid}").st_uid
        except OSError:
            return None
        if uid == self._uid():
            return None
        import pwd

        try:
            return pwd.getpwuid(uid).pw_name
        except KeyError:
            return str(uid)


class _State(NamedTuple):
    """What ``/proc/PID/stat`` tells of a process, to everybody."""

    parent: int
    has_no_files: bool

    @classmethod
    def parse(cls, line: bytes) -> "_State":
        # The name, in brackets, may hold anything, brackets and spaces too.
        fields = line[line.rindex(b")") + 1 :].split()
        ended = fields[0].decode("ascii") in _ENDED
        return cls(parent=int(fields[1]), has_no_files=ended or bool(int(fields[6]) & _KERNEL_THREAD))


class _Held(NamedTuple):
    """What a process holds, by the paths that it sees."""

    pid: int
    root: str | None
    """Where its view of the file system can be reached; None where that is our own view."""
    mapped: frozenset[str]
    opened: frozenset[str]


class _Wanted:
    """The files that are asked about, by path and by identity."""

    def __init__(self, paths: Set[str]) -> None:
        self._paths = paths
        self._by_name: dict[str, list[str]] = {}
        for path in paths:
            self._by_name.setdefault(path.rpartition("/")[2], []).append(path)

    def match(self, path: str, root: str | None) -> list[str]:
        """Return which files a process means by a path.

        In our own view of the file system the path tells. A path that ends in `` (deleted)`` is of a file that has
        gone before: it is never one of those that are there now. The same file under another path is one of ours only
        if it has no second name (a bind mount): installers make hard links into their caches, and those stay.

        In another view (a container, a chroot) the same path may be another file, so that identity alone tells.

        Args:
            path: as the process sees it.
            root: where we reach the process's view; None where it is our own.
        """
        if root is None and path in self._paths:
            return [path]
        candidates = self._by_name.get(path.rpartition("/")[2])
        if not candidates:
            return []
        try:
            theirs = os.stat(path if root is None else root + path)
        except OSError:
            return []
        return [item for item in candidates if _is_same(item, theirs, sole=root is None)]


def mapped_files(maps: bytes) -> Iterator[str]:
    """Yield the paths of the files in the text of a ``maps``, once for each line; only line ends are escaped in it."""
    for path in _MAPPED_FILE.findall(maps):
        yield os.fsdecode(path.replace(rb"\012", b"\n"))


def described(words: list[str]) -> str:
    """Return a command line in short: the program, and what a Python runs.

    Other arguments may be secrets, and say little.

    Args:
        words: the command line; empty for a process that has none.
    """
    name = os.path.basename(words[0]) if words else ""
    if not name.startswith(("python", "pypy")):
        return name
    rest = iter(words[1:])
    for word in rest:
        if word in ("-X", "-W"):
            next(rest, None)
        elif word in ("-m", "-c"):
            return f"{name} -m {next(rest, '')}".rstrip() if word == "-m" else f"{name} -c"
        elif word and not word.startswith("-"):
            return f"{name} {os.path.basename(word)}"
    return name


def _opened_files(directory: str) -> Iterator[str]:
    for number in os.listdir(directory):
        try:
            path = os.readlink(f"{directory}/{number}")
        except FileNotFoundError:
            continue
        if path.startswith("/"):
            yield path


def _is_same(path: str, theirs: os.stat_result, *, sole: bool) -> bool:
    try:
        ours = os.stat(path)
    except OSError:
        return False
    return (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino) and not (sole and ours.st_nlink > 1)
