"""Processes that use files are found in ``/proc``, whatever they see of the file system; the unknown is counted."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.model.processes import NoProcesses, Use, UseKind, Uses
from safe_uninstall.scan import processes
from safe_uninstall.scan.processes import ProcTable, described, mapped_files

OWN = 100
KERNEL_THREAD = 0x00200000


class FakeProc:
    """A tree like ``/proc``, with our own process in it."""

    def __init__(self, root: Path) -> None:
        """Make it below ``root``."""
        self.root = root / "proc"
        self.root.mkdir()
        (self.root / "self").symlink_to("nowhere")
        (self.root / "meminfo").write_text("")
        self.process(OWN, parent=1)

    def process(
        self,
        pid: int,
        *,
        parent: int = 1,
        mapped: Iterable[Path | str] = (),
        opened: Iterable[Path | str] = (),
        command: str = "python\0train.py\0",
        name: str = "python",
        view: str = "mnt:[1]",
        root: Path | str = "/",
        state: str = "S",
        flags: int = 0x400000,
    ) -> Path:
        """Add a process, and return its directory."""
        directory = self.root / str(pid)
        (directory / "fd").mkdir(parents=True)
        (directory / "ns").mkdir()
        (directory / "ns/mnt").symlink_to(view)
        (directory / "root").symlink_to(root)
        (directory / "stat").write_text(f"{pid} ({name}) {state} {parent} 1 1 0 -1 {flags} 0 0 0\n")
        (directory / "comm").write_text(f"{name}\n")
        (directory / "cmdline").write_text(command)
        lines = ["7f10-7f20 rw-p 00000000 00:00 0 ", "7ffc-7ffd rw-p 00000000 00:00 0          [stack]"]
        for number, path in enumerate(mapped):
            escaped = str(path).replace("\n", "\\012")
            lines += [f"7f{number:x}0-7f{number:x}1 r-xp 00000000 103:02 77         {escaped}"] * 2
        (directory / "maps").write_text("\n".join([*lines, ""]))
        for number, path in enumerate(["/dev/null", "socket:[5]", *opened]):
            (directory / "fd" / str(number)).symlink_to(path)
        return directory

    def using(self, *paths: Path, **options: Any) -> Uses:
        """Ask who uses some files."""
        return ProcTable(str(self.root), pid=OWN, **options).using({str(path) for path in paths})


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    """Return a tree with our own process."""
    return FakeProc(tmp_path)


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Return a file that may be in use."""
    path = tmp_path / "env" / "liba.so.1"
    path.parent.mkdir()
    path.write_bytes(b"a")
    return path


def pids(uses: Uses) -> list[int]:
    """Return whose uses they are."""
    return [use.pid for use in uses.found]


def test_mapped_and_open_files_are_found(proc: FakeProc, library: Path) -> None:
    """PID, command, file and how; each file of a process once, mapped files as that; other files are no news."""
    data = library.with_name("data.bin")
    data.write_bytes(b"")
    proc.process(300, opened=[data, library], mapped=[library, "/usr/lib/libc.so.6"])
    proc.process(200, opened=[data], command="", name="tail (1) x")
    uses = proc.using(library, data)
    assert uses == Uses(
        found=(
            Use(pid=200, command="tail (1) x", path=str(data), how=UseKind.OPEN),
            Use(pid=300, command="python train.py", path=str(data), how=UseKind.OPEN),
            Use(pid=300, command="python train.py", path=str(library), how=UseKind.MAPPED),
        )
    )


def test_we_and_what_we_started_are_left_out(proc: FakeProc, library: Path) -> None:
    """Our own process and its descendants go with us; our parent does not."""
    (proc.root / "100/maps").write_text(f"7f10-7f20 r-xp 00000000 00:01 7    {library}\n")
    proc.process(1, parent=0, mapped=[library])
    proc.process(101, parent=OWN, mapped=[library])
    proc.process(102, parent=101, mapped=[library])
    proc.process(103, parent=103, mapped=[library])
    assert pids(proc.using(library)) == [1, 103]


def test_a_deleted_file_is_not_the_one_that_is_there(proc: FakeProc, library: Path) -> None:
    """Who maps a file that was replaced before keeps that one; the file that is there now is not theirs."""
    proc.process(200, mapped=[f"{library} (deleted)"], opened=[f"{library} (deleted)"])
    assert pids(proc.using(library)) == []


def test_a_hard_link_elsewhere_is_not_ours(proc: FakeProc, library: Path, tmp_path: Path) -> None:
    """Installers link files into caches and other environments; those stay when ours goes."""
    other = tmp_path / "liba.so.1"
    os.link(library, other)
    proc.process(200, mapped=[other])
    assert pids(proc.using(library)) == []
    assert pids(proc.using(other)) == [200]


def test_the_same_file_under_another_path_is_ours(proc: FakeProc, library: Path, tmp_path: Path) -> None:
    """A file with one name only, seen by another path (a bind mount), is the very file; another of that name is not."""
    (tmp_path / "bound").symlink_to(library.parent)
    proc.process(200, mapped=[tmp_path / "bound/liba.so.1"])
    (tmp_path / "other").mkdir()
    (tmp_path / "other/liba.so.1").write_bytes(b"a")
    proc.process(201, mapped=[tmp_path / "other/liba.so.1"])
    proc.process(202, mapped=[tmp_path / "gone/liba.so.1"])
    assert [(use.pid, use.path) for use in proc.using(library).found] == [(200, str(library))]


def test_another_root_is_compared_by_identity(proc: FakeProc, library: Path, tmp_path: Path) -> None:
    """In a container the same path may be another file, and our file may have another path."""
    root = tmp_path / "container"
    (root / "opt").mkdir(parents=True)
    os.link(library, root / "opt/liba.so.1")
    proc.process(200, mapped=["/opt/liba.so.1"], root=root)
    proc.process(201, opened=["/opt/liba.so.1"], root=root, view="mnt:[2]")
    proc.process(202, mapped=[library], root=root)
    proc.process(203, mapped=[library], view="mnt:[2]")
    uses = proc.using(library).found
    assert [(use.pid, use.how) for use in uses] == [(200, UseKind.MAPPED), (201, UseKind.OPEN), (203, UseKind.MAPPED)]
    assert {use.path for use in uses} == {str(library)}


def test_a_file_that_is_gone_is_nobodys(proc: FakeProc, library: Path, tmp_path: Path) -> None:
    """A path that is asked about, and is not there any more, is not mixed up with one of its name."""
    (tmp_path / "liba.so.1").write_bytes(b"")
    proc.process(200, mapped=[tmp_path / "liba.so.1"])
    library.unlink()
    assert pids(proc.using(library)) == []


def test_kernel_threads_and_ended_processes_use_nothing(
    proc: FakeProc, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not counted among those that may not be looked at."""
    proc.process(2, parent=0, flags=KERNEL_THREAD, command="", name="kthreadd")
    proc.process(200, state="Z")
    proc.process(201, state="X")
    forbid(monkeypatch, "/2/", "/200/", "/201/")
    assert proc.using(library) == Uses()


def forbid(monkeypatch: pytest.MonkeyPatch, *parts: str, error: type[OSError] = PermissionError) -> None:
    """Let ``maps`` of some processes not be opened, as the kernel does for those of others."""

    def refuse(path: str, mode: str) -> Any:
        if path.endswith("/maps") and any(part in path for part in parts):
            raise error(13, "no", path)
        return open(path, mode)

    monkeypatch.setattr(processes, "open", refuse, raising=False)


def test_what_may_not_be_read_is_counted(proc: FakeProc, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process once; what is found of others is told all the same, and whether root has asked."""
    proc.process(200, mapped=[library])
    proc.process(201, mapped=[library])
    proc.process(202, mapped=[library])
    forbid(monkeypatch, "/200/", "/202/")
    uses = proc.using(library, uid=os.getuid())
    assert (pids(uses), uses.unreadable, uses.asked_by_root) == ([201], 2, os.getuid() == 0)
    assert (proc.using(library, uid=0).asked_by_root, proc.using(library, uid=1000).asked_by_root) == (True, False)


def test_processes_that_end_meanwhile_are_no_error(
    proc: FakeProc, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever of them is gone first: all, the directory, a descriptor, or the words of the command."""
    (proc.root / "200").mkdir()
    (proc.root / "201").mkdir()
    (proc.root / "201/stat").write_text("201 (x) S 1 1 1 0 -1 0\n")
    (proc.root / "202").mkdir()
    (proc.root / "202/stat").write_text("garbage")
    proc.process(203, mapped=[library])
    forbid(monkeypatch, "/203/", error=ProcessLookupError)
    held = proc.process(204, opened=[library])
    (held / "cmdline").unlink()
    real = os.readlink

    def vanish(path: str) -> str:
        if path.endswith("fd/0"):
            raise FileNotFoundError(path)
        return real(path)

    monkeypatch.setattr(os, "readlink", vanish)
    uses = proc.using(library)
    assert [(use.pid, use.command) for use in uses.found] == [(204, "?")]
    assert uses.unreadable == 0


def test_a_process_whose_directory_is_gone_has_no_user(proc: FakeProc, library: Path) -> None:
    """It ended after it was looked at: what it used is told, as far as it is known."""
    held = proc.process(200, opened=[library])
    table = ProcTable(str(proc.root), pid=OWN, uid=12345)
    table.using({"/nowhere"})
    for name in ("cmdline", "comm"):
        (held / name).unlink()
    held.rename(proc.root / "gone")
    assert table.using({str(library)}).found == (
        Use(pid=200, command="?", user=None, path=str(library), how=UseKind.OPEN),
    )


def test_processes_of_others_are_told_with_their_user(
    proc: FakeProc, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name, or by number where it has none; our own are not."""
    import pwd

    held = proc.process(200, opened=[library])
    name = pwd.getpwuid(held.stat().st_uid).pw_name
    assert [use.user for use in proc.using(library, uid=held.stat().st_uid).found] == [None]
    assert [use.user for use in proc.using(library, uid=held.stat().st_uid + 1).found] == [name]

    def nobody(_uid: int) -> Any:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    uses = proc.using(library, uid=held.stat().st_uid + 1).found
    assert [use.user for use in uses] == [str(held.stat().st_uid)]


def test_a_table_is_of_one_moment(proc: FakeProc, library: Path) -> None:
    """Two questions get the same answer; another table looks again."""
    table = ProcTable(str(proc.root), pid=OWN)
    assert table.using({str(library)}) == Uses()
    proc.process(200, mapped=[library])
    assert table.using({str(library)}) == Uses()
    assert pids(proc.using(library)) == [200]


def test_without_proc_nothing_is_known(tmp_path: Path, library: Path) -> None:
    """Where there is no ``/proc`` nothing is found, and nothing fails."""
    assert ProcTable(str(tmp_path / "none")).using({str(library)}) == Uses()
    assert NoProcesses().using({str(library)}) == Uses()


def test_names_may_hold_anything() -> None:
    """Spaces, line ends (escaped by the kernel) and bytes that are no UTF-8 are part of a name; the rest is no file."""
    maps = b"7f00-7f10 r--p 00000000 103:02 77        /a b/c\\012d\xff.so\n"
    maps += b"7f00-7f10 r--p 00000000 00:00 0          /not a file\n7f00-7f10 r--p 00000000 103:02 78  [heap]\n"
    assert list(mapped_files(maps)) == [os.fsdecode(b"/a b/c\nd\xff.so")]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], ""),
        ([""], ""),
        (["/usr/bin/mysqld", "--password=x", "secret"], "mysqld"),
        (["/env/bin/python3.11", "/home/a/train.py", "--token", "x"], "python3.11 train.py"),
        (["python", "-u", "-W", "error", "-X", "dev", "run.py"], "python run.py"),
        (["python", "-m", "ipykernel_launcher", "-f", "x"], "python -m ipykernel_launcher"),
        (["python", "-m"], "python -m"),
        (["python", "-c", "secret()"], "python -c"),
        (["python", "-i", ""], "python"),
        (["python", "-X"], "python"),
    ],
)
def test_commands_in_short(words: list[str], text: str) -> None:
    """The program, and the script or module of a Python; other arguments may be secrets."""
    assert described(words) == text


@pytest.fixture
def holder(library: Path) -> Iterator[int]:
    """Return a process that has the library mapped and a file beside it open."""
    other = library.with_name("open.txt")
    other.write_text("x")
    code = (
        "import mmap, sys, time\n"
        "file = open(sys.argv[1], 'rb')\n"
        "held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n"
        "file.close()\n"
        "other = open(sys.argv[2])\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-c", code, str(library), str(other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_a_real_process_is_found(holder: int, library: Path) -> None:
    """The kernel's own ``/proc`` is read as the fake one is."""
    other = library.with_name("open.txt")
    with subprocess.Popen(["sleep", "600"]) as stranger:
        uses = ProcTable(pid=stranger.pid).using({os.path.realpath(library), os.path.realpath(other)})
        stranger.kill()
    name = f"{os.path.basename(sys.executable)} -c"
    assert [(use.pid, use.command, use.user, os.path.basename(use.path), use.how) for use in uses.found] == [
        (holder, name, None, "liba.so.1", UseKind.MAPPED),
        (holder, name, None, "open.txt", UseKind.OPEN),
    ]
    assert ProcTable().using({os.path.realpath(library)}).found == (), "our own children are left out"
