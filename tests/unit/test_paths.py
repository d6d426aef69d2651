"""Paths resolve as the kernel resolves them, over disk and over what a plan would leave."""

import pytest

from safe_uninstall.analysis.paths import LOOP, View
from safe_uninstall.model.elf import Abi, ElfObject, FileIdentity
from safe_uninstall.model.filesystem import DIRECTORY, FILE, Entry, EntryKind


def link(target: str) -> Entry:
    """Return a symbolic link."""
    return Entry(EntryKind.SYMLINK, target)


def elf(path: str) -> ElfObject:
    """Return an ELF object at a path."""
    return ElfObject(
        path=path,
        real_path=path,
        identity=FileIdentity(1, sum(map(ord, path))),
        size=1,
        abi=Abi(64, True, 62),
        elf_type=3,
        is_dynamic=True,
    )


class Files:
    """An in-memory file system: canonical path to entry; directories above are there by themselves."""

    def __init__(self, entries: dict[str, Entry]) -> None:
        self.entries = dict(entries)
        for path in entries:
            parent = path.rpartition("/")[0]
            while parent:
                self.entries.setdefault(parent, DIRECTORY)
                parent = parent.rpartition("/")[0]

    def entry(self, directory: str, name: str) -> Entry | None:
        """Return an entry."""
        return self.entries.get(f"{directory.rstrip('/')}/{name}")

    def names(self, directory: str) -> dict[str, Entry]:
        """Return the names in a directory."""
        head = directory.rstrip("/") + "/"
        return {
            path[len(head) :]: entry
            for path, entry in self.entries.items()
            if path.startswith(head) and "/" not in path[len(head) :]
        }

    def object(self, path: str) -> ElfObject | None:
        """Return an object for every file called ``*.so``."""
        return elf(path) if self.entries.get(path) is FILE and path.endswith(".so") else None


TREE = {
    "/env/lib/a.so": FILE,
    "/env/lib/link.so": link("a.so"),
    "/env/lib/absolute.so": link("/env/lib/a.so"),
    "/env/lib/chain.so": link("link.so"),
    "/env/lib/dangling.so": link("gone.so"),
    "/env/lib/up.so": link("../other/b.so"),
    "/env/lib/to-directory": link(".."),
    "/env/lib/empty.so": link(""),
    "/env/lib64": link("lib"),
    "/env/other/b.so": FILE,
    "/env/loop1": link("loop2"),
    "/env/loop2": link("loop1"),
    "/env/outside": link("/opt/store"),
    "/env/root": link("/"),
    "/opt/store/c.so": FILE,
    "/opt/d.so": FILE,
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "/"),
        ("/env/lib", "/env/lib"),
        ("/env//lib/.", "/env/lib"),
        ("/env/lib/../lib64", "/env/lib"),
        ("/env/outside", "/opt/store"),
        ("/env/outside/..", "/opt"),
        ("/env/lib/to-directory", "/env"),
        ("/env/lib/to-directory/other", "/env/other"),
        ("/env/root/env", "/env"),
        ("/env/root", "/"),
        ("/..", "/"),
        ("/env/loop1", None),
        ("/env/loop1/x", None),
        ("/env/lib/a.so", None),
        ("/env/lib/link.so", None),
        ("/env/lib/a.so/x", None),
        ("/env/lib/dangling.so", None),
        ("/env/none", None),
    ],
)
def test_directories_are_resolved_component_by_component(path: str, expected: str | None) -> None:
    """``..`` after a link is the parent of the link's target; what leads to no directory is None."""
    assert View(Files(TREE)).real_directory(path) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.so", "/env/lib/a.so"),
        ("link.so", "/env/lib/a.so"),
        ("absolute.so", "/env/lib/a.so"),
        ("chain.so", "/env/lib/a.so"),
        ("up.so", "/env/other/b.so"),
        ("dangling.so", None),
        ("empty.so", None),
        ("none.so", None),
    ],
)
def test_files_are_located_through_links(name: str, expected: str | None) -> None:
    """A link is as good as what it leads to, and a dangling one is nothing."""
    assert View(Files(TREE)).locate("/env/lib", name) == expected


def test_a_directory_is_located_too() -> None:
    """A directory in place of a library is not nothing: the loader stops at it."""
    assert View(Files(TREE)).locate("/env", "lib") == "/env/lib"


def test_links_that_lead_to_each_other_are_not_nothing() -> None:
    """ELOOP is told apart from ENOENT, since the loader does so."""
    assert View(Files(TREE)).locate("/env", "loop1") == LOOP


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/env/lib64/link.so", "/env/lib/a.so"),
        ("/env/lib/..", "/env"),
        ("/env/lib64", "/env/lib"),
        ("/none/a.so", None),
        ("/env/loop1", None),
    ],
)
def test_real_path_follows_everything(path: str, expected: str | None) -> None:
    """The real path has no link in it, the last component included."""
    assert View(Files(TREE)).real_path(path) == expected


def test_canonical_path_keeps_the_last_component() -> None:
    """Only the directory is resolved, since a removal takes the link and not its target."""
    view = View(Files(TREE))
    assert view.canonical("/env/lib64/link.so") == "/env/lib/link.so"
    assert view.canonical("/none/link.so") is None


def test_deleted_paths_are_gone_and_take_their_links_along() -> None:
    """What a plan deletes is not there, and a link to it dangles."""
    view = View(Files(TREE), deleted=frozenset({"/env/lib/a.so"}))
    assert view.locate("/env/lib", "a.so") is None
    assert view.locate("/env/lib", "chain.so") is None
    assert view.exists("/env/lib", "chain.so")
    assert not view.exists("/env/lib", "a.so")


def test_deleting_a_link_leaves_its_target() -> None:
    """Deleting a link removes one name of the file."""
    view = View(Files(TREE), deleted=frozenset({"/env/lib/link.so"}))
    assert view.locate("/env/lib", "link.so") is None
    assert view.locate("/env/lib", "a.so") == "/env/lib/a.so"


def test_added_objects_are_there_with_their_directories() -> None:
    """What a plan installs is found, in directories that do not exist yet too."""
    added = {path: elf(path) for path in ("/env/new/deep/n.so", "/env/lib/a.so", "/env/lib/dangling.so")}
    view = View(Files(TREE), deleted=frozenset({"/env/lib/a.so"}), added=added)
    assert view.real_directory("/env/new/deep/..") == "/env/new"
    assert view.locate("/env/new/deep", "n.so") == "/env/new/deep/n.so"
    assert view.object("/env/new/deep/n.so") is added["/env/new/deep/n.so"]
    assert view.locate("/env/lib", "link.so") == "/env/lib/a.so"
    assert view.object("/env/lib/a.so") is added["/env/lib/a.so"]
    assert view.locate("/env/lib", "dangling.so") == "/env/lib/dangling.so"


def test_objects_on_disk_are_read_through() -> None:
    """What is not added is asked of the file system."""
    view = View(Files(TREE))
    found = view.object("/env/other/b.so")
    assert found is not None
    assert found.path == "/env/other/b.so"
    assert view.object("/env/none.so") is None
