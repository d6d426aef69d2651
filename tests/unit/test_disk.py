"""Names on disk are answered cheaply, each the same way every time, and links never lead out of a tree."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from safe_uninstall.model.filesystem import DIRECTORY, FILE, Entry, EntryKind
from safe_uninstall.scan.disk import DiskFileSystem
from tests.support.elf_writer import write_elf


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a canonical directory with two files, a directory, and links of several kinds."""
    root = Path(os.path.realpath(tmp_path)) / "tree"
    (root / "lib/deep").mkdir(parents=True)
    (root / "lib/a.so").write_bytes(b"a")
    (root / "lib/deep/b.so").write_bytes(b"b")
    (root / "lib/link.so").symlink_to("a.so")
    (root / "lib/dangling.so").symlink_to("/nowhere/at/all")
    (root / "lib64").symlink_to("lib")
    (root / "lib/deep/up").symlink_to("..")
    (root / "lib/circle").symlink_to("circle")
    return root


class Counter:
    """Counts the calls of a function of ``os``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.count = 0
        original = getattr(os, name)

        def counting(*arguments: object) -> object:
            self.count += 1
            return original(*arguments)

        monkeypatch.setattr(os, name, counting)


def test_entries_by_kind(tree: Path) -> None:
    """Files, directories and links are told apart; what a link holds comes as written; the absent is None."""
    files = DiskFileSystem()
    lib = str(tree / "lib")
    expected = {
        "a.so": FILE,
        "deep": DIRECTORY,
        "link.so": Entry(EntryKind.SYMLINK, "a.so"),
        "dangling.so": Entry(EntryKind.SYMLINK, "/nowhere/at/all"),
        "missing.so": None,
    }
    assert {name: files.entry(lib, name) for name in expected} == expected
    listed = DiskFileSystem()
    listed.names(lib)
    assert {name: listed.entry(lib, name) for name in expected} == expected
    assert files.entry(str(tree / "missing"), "a.so") is None
    assert files.entry(str(tree / "lib/a.so"), "below") is None


def test_few_questions_do_not_list_a_directory_and_many_do_once(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory may hold thousands of names: it is listed when that is cheaper than asking, and then only once."""
    listings = Counter(monkeypatch, "scandir")
    files = DiskFileSystem()
    lib = str(tree / "lib")
    for index in range(10):
        assert files.entry(lib, f"missing{index}") is None
    assert files.entry(lib, "a.so") == FILE
    assert listings.count == 0
    for index in range(1000):
        assert files.entry(lib, f"missing{index}") is None
    assert files.entry(lib, "deep") == DIRECTORY
    assert listings.count == 1


def test_a_repeated_question_costs_nothing(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are kept, that a name is absent too."""
    files = DiskFileSystem()
    questions = Counter(monkeypatch, "lstat")
    for _ in range(5):
        files.entry(str(tree / "lib"), "missing")
        files.entry(str(tree / "lib"), "a.so")
    assert questions.count == 2


def test_two_questions_get_the_same_answer(tree: Path) -> None:
    """What was answered stays so when the disk changes, even when the directory is listed in between."""
    files = DiskFileSystem()
    lib = str(tree / "lib")
    assert files.entry(lib, "a.so") == FILE
    assert files.entry(lib, "new.so") is None
    (tree / "lib/a.so").unlink()
    (tree / "lib/new.so").write_bytes(b"")
    assert "link.so" in files.names(lib)
    assert files.entry(lib, "a.so") == FILE
    assert files.entry(lib, "new.so") is None


def test_link_that_goes_after_listing_is_absent(tree: Path) -> None:
    """The target of a link is read when asked for; a link that is gone by then is no entry, and stays none."""
    files = DiskFileSystem()
    lib = str(tree / "lib")
    assert "link.so" in files.names(lib)
    (tree / "lib/link.so").unlink()
    assert files.entry(lib, "link.so") is None
    (tree / "lib/link.so").symlink_to("a.so")
    assert files.entry(lib, "link.so") is None


@pytest.fixture
def forbidden(tree: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a directory that may be searched but not listed (mode 0711, and not for root)."""
    original = os.scandir
    lib = str(tree / "lib")

    def scandir(path: str) -> object:
        if path == lib:
            raise PermissionError(13, "Permission denied")
        return original(path)

    monkeypatch.setattr(os, "scandir", scandir)
    return lib


def test_names_in_a_directory_that_may_not_be_listed_are_asked_for(forbidden: str) -> None:
    """The loader opens libraries there by name; so are they asked for, however many."""
    files = DiskFileSystem()
    assert files.names(forbidden) == {}
    for index in range(100):
        assert files.entry(forbidden, f"missing{index}") is None
    assert files.entry(forbidden, "a.so") == FILE
    assert files.forbidden == {forbidden: "Permission denied"}


def test_walk_goes_on_beside_a_forbidden_directory(tree: Path, forbidden: str) -> None:
    """What cannot be listed is remembered with the reason; the rest is walked."""
    files = DiskFileSystem()
    (tree / "other").mkdir()
    (tree / "other/c.so").write_bytes(b"")
    assert sorted(files.walk(str(tree))) == [f"{tree}/lib64", f"{tree}/other/c.so"]
    assert list(files.forbidden) == [forbidden]


def test_walk_yields_files_and_links_and_follows_none(tree: Path) -> None:
    """Links to directories are entries, not ways: a link to the directory above makes no circle."""
    assert sorted(DiskFileSystem().walk(str(tree))) == [
        f"{tree}/lib/a.so",
        f"{tree}/lib/circle",
        f"{tree}/lib/dangling.so",
        f"{tree}/lib/deep/b.so",
        f"{tree}/lib/deep/up",
        f"{tree}/lib/link.so",
        f"{tree}/lib64",
    ]


def test_walk_prunes_below_but_not_at_its_start(tree: Path) -> None:
    """The directory that was asked for is walked whatever the rule says; the rule sees the names of the others."""
    seen: list[str] = []

    def prune(directory: str, names: Mapping[str, Entry]) -> bool:
        seen.append(directory)
        return "b.so" in names

    found = list(DiskFileSystem().walk(str(tree), prune))
    assert f"{tree}/lib/a.so" in found
    assert f"{tree}/lib/deep/b.so" not in found
    assert seen == [f"{tree}/lib", f"{tree}/lib/deep"]


def test_walk_fills_the_answers(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a walk, questions about entries cost no system call, and a second walk lists nothing anew."""
    files = DiskFileSystem()
    first = list(files.walk(str(tree)))
    listings, questions = Counter(monkeypatch, "scandir"), Counter(monkeypatch, "lstat")
    assert list(files.walk(str(tree))) == first
    assert files.entry(f"{tree}/lib/deep", "b.so") == FILE
    assert files.entry(f"{tree}/lib/deep", "missing") is None
    assert (listings.count, questions.count) == (0, 0)


def test_paths_are_resolved_as_the_kernel_does(tree: Path) -> None:
    """Directories resolve through links and ``..``; a dangling or circular link leads nowhere."""
    files = DiskFileSystem()
    assert files.real_directory(f"{tree}/lib64/deep/up/./deep/../") == f"{tree}/lib"
    assert files.real_directory(f"{tree}/lib/a.so") is None
    assert files.real_path(f"{tree}/lib64/link.so") == f"{tree}/lib/a.so"
    assert files.exists(f"{tree}/lib64/link.so")
    assert files.exists(f"{tree}/lib64")
    assert not files.exists(f"{tree}/lib/dangling.so")
    assert not files.exists(f"{tree}/lib/circle")
    assert not files.exists(f"{tree}/lib/missing")


def test_objects_are_read_once(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ELF facts are kept; what is no ELF file, or a broken one, is None."""
    write_elf(tree / "lib/real.so", soname="real.so")
    (tree / "lib/broken.so").write_bytes(b"\x7fELF broken")
    files = DiskFileSystem()
    opened = Counter(monkeypatch, "open")
    for _ in range(3):
        found = files.object(f"{tree}/lib/real.so")
        assert found is not None
        assert (found.soname, found.real_path) == ("real.so", f"{tree}/lib/real.so")
        assert files.object(f"{tree}/lib/a.so") is None
        assert files.object(f"{tree}/lib/broken.so") is None
    assert opened.count == 3
    files.remember("/elsewhere.so", found)
    assert files.object("/elsewhere.so") is found


@pytest.fixture
def mounted(tmp_path: Path) -> tuple[str, DiskFileSystem]:
    """Return a tree mounted elsewhere, whose absolute links are meant to stay inside."""
    root = tmp_path / "mnt"
    write_elf(root / "opt/real/libx.so.1", soname="libx.so.1")
    (root / "usr/lib").mkdir(parents=True)
    (root / "usr/lib/libx.so").symlink_to("/opt/real/libx.so.1")
    (root / "usr/lib/escape").symlink_to("../../../../../../../../opt/real")
    (root / "lib").symlink_to("/usr/lib")
    return str(root), DiskFileSystem(f"{root}/")


def test_links_of_a_mounted_tree_stay_inside(mounted: tuple[str, DiskFileSystem]) -> None:
    """Absolute links start at the top of the tree, and ``..`` does not leave it."""
    root, files = mounted
    assert files.real_directory("/lib") == "/usr/lib"
    assert files.real_path("/lib/libx.so") == "/opt/real/libx.so.1"
    assert files.real_directory("/lib/escape") == "/opt/real"
    assert files.location("/lib/libx.so") == f"{root}/opt/real/libx.so.1"
    assert files.location("/lib/missing") is None
    found = files.object("/opt/real/libx.so.1")
    assert found is not None
    assert (found.path, found.soname) == ("/opt/real/libx.so.1", "libx.so.1")
    assert sorted(files.walk("/")) == ["/lib", "/opt/real/libx.so.1", "/usr/lib/escape", "/usr/lib/libx.so"]


def test_location_on_the_host_is_the_path_itself(tree: Path) -> None:
    """On the host's own tree the kernel resolves links."""
    assert DiskFileSystem().location(f"{tree}/lib/link.so") == f"{tree}/lib/link.so"
