"""The stash brings back what was, byte for byte."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.execute.stash import Stash
from tests.support.environments import read_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a directory with files, links, an empty directory and modes of every kind."""
    root = tmp_path / "tree"
    (root / "sub" / "empty").mkdir(parents=True)
    (root / "sub" / "file").write_bytes(b"bytes")
    (root / "sub" / "file").chmod(0o640)
    (root / "program").write_bytes(b"#!")
    (root / "program").chmod(0o755)
    os.symlink("sub/file", root / "link")
    os.symlink("nowhere", root / "dangling")
    (root / "sub").chmod(0o750)
    return root


def paths(tree: Path) -> list[str]:
    """Return what is kept of the tree, and two paths that do not exist."""
    names = ["sub/file", "program", "link", "dangling", "none", "program/below"]
    return [str(tree / name) for name in names]


def directories(tree: Path) -> list[str]:
    """Return the directories of the tree, parents first."""
    return [str(tree), str(tree / "sub"), str(tree / "sub/empty")]


def no_links(monkeypatch: pytest.MonkeyPatch, number: int = errno.EXDEV) -> None:
    """Make hard links impossible."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)


@pytest.mark.parametrize("links", [True, False], ids=["linked", "copied"])
def test_everything_comes_back(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    """Deleted, changed and replaced things come back with type, mode and bytes; a second process can do it too."""
    import shutil

    if not links:
        no_links(monkeypatch)
    before = read_tree(tree)
    stash = Stash(str(tmp_path / "stash"))
    stash.keep(paths(tree), directories(tree))
    assert stash.differences() == ()
    shutil.rmtree(tree / "sub")
    (tree / "program").unlink()
    (tree / "program").write_bytes(b"other bytes")
    (tree / "link").unlink()
    os.symlink("elsewhere", tree / "link")
    (tree / "dangling").unlink()
    (tree / "dangling").write_text("a file now")
    assert len(stash.differences()) == 6
    again = Stash(str(tmp_path / "stash"))
    assert again.load()
    assert again.put_back() == ()
    assert again.differences() == ()
    assert read_tree(tree) == before


def test_links_cost_nothing_and_are_the_very_files(tree: Path, tmp_path: Path) -> None:
    """A stashed file is a second name of the same inode, and comes back as that inode."""
    inode = (tree / "program").stat().st_ino
    stash = Stash(str(tmp_path / "stash"))
    stash.keep(paths(tree), [])
    assert {entry.linked for entry in stash.entries} == {True}
    (tree / "program").unlink()
    stash.put_back([str(tree / "program")])
    assert (tree / "program").stat().st_ino == inode


def test_only_what_is_asked_for_is_put_back(tree: Path, tmp_path: Path) -> None:
    """A release brings back single paths and their directories, and nothing else."""
    import shutil

    stash = Stash(str(tmp_path / "stash"))
    stash.keep(paths(tree), directories(tree))
    shutil.rmtree(tree / "sub")
    (tree / "program").unlink()
    assert stash.put_back([str(tree / "sub/file")]) == ()
    assert (tree / "sub/file").read_bytes() == b"bytes"
    assert not (tree / "program").exists()
    assert not (tree / "sub/empty").exists()


def test_directories_are_put_back_by_name_too(tree: Path, tmp_path: Path) -> None:
    """An empty directory has no file by which it could be asked for."""
    import shutil

    stash = Stash(str(tmp_path / "stash"))
    stash.keep(paths(tree), directories(tree))
    assert stash.size == len(b"bytes") + len(b"#!")
    shutil.rmtree(tree / "sub")
    assert stash.put_back([str(tree / "sub"), str(tree / "sub/empty")]) == ()
    assert (tree / "sub/empty").is_dir()
    assert not (tree / "sub/file").exists()


def test_a_copy_is_told_by_its_bytes(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where links fail, a file that has the same bytes and mode is as it was, and any other is not."""
    no_links(monkeypatch)
    stash = Stash(str(tmp_path / "stash"))
    stash.keep(paths(tree), [])
    program = tree / "program"
    assert stash.holds(str(program))
    assert stash.holds(str(tree / "link"))
    program.chmod(0o700)
    assert not stash.holds(str(program))
    program.chmod(0o755)
    program.write_bytes(b"!#")
    assert not stash.holds(str(program))


def test_a_copy_keeps_what_the_owner_may_keep(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the right to give files away the copy belongs to who makes it, and that is no error."""
    no_links(monkeypatch)

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    stash = Stash(str(tmp_path / "stash"))
    stash.keep(paths(tree), [])
    (tree / "program").unlink()
    assert stash.put_back() == ()
    assert (tree / "program").read_bytes() == b"#!"


def test_another_error_than_no_links_is_an_error(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is not answered with a copy."""
    no_links(monkeypatch, errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        Stash(str(tmp_path / "stash")).keep(paths(tree), [])


def test_directories_are_not_kept_as_files(tree: Path, tmp_path: Path) -> None:
    """A directory that a RECORD names is no file, and a link to a directory is no directory."""
    os.symlink("sub", tree / "to-sub")
    stash = Stash(str(tmp_path / "stash"))
    stash.keep([str(tree / "sub")], [str(tree / "to-sub")])
    assert stash.entries == ()


def test_what_cannot_be_put_back_is_named(tree: Path, tmp_path: Path) -> None:
    """A directory in the place of a file stops that file alone; all others come back."""
    stash = Stash(str(tmp_path / "stash"))
    stash.keep(paths(tree), directories(tree))
    (tree / "sub/file").unlink()
    (tree / "program").unlink()
    (tree / "program").mkdir()
    (failed,) = stash.put_back()
    assert failed.path == str(tree / "program")
    assert "directory" in failed.reason
    assert (tree / "sub/file").exists()


@pytest.mark.parametrize("manifest", [None, "{}\n", "not json\n"])
def test_a_stash_that_was_never_completed_does_not_load(tmp_path: Path, manifest: str | None) -> None:
    """Without its manifest a stash is none."""
    (tmp_path / "stash").mkdir()
    if manifest is not None:
        (tmp_path / "stash/manifest.jsonl").write_text(manifest)
    assert not Stash(str(tmp_path / "stash")).load()


def test_dropping_twice_is_no_error(tree: Path, tmp_path: Path) -> None:
    """What is not there is dropped."""
    stash = Stash(str(tmp_path / "stash"))
    stash.keep(paths(tree), [])
    stash.drop()
    stash.drop()
    assert not (tmp_path / "stash").exists()
    assert (tree / "program").exists()
