"""Where caches of compiled libraries are, and how much of them is read."""

import os
from pathlib import Path

import pytest

from safe_uninstall.scan import jit_caches
from safe_uninstall.scan.jit_caches import UserCaches, cache_directories
from tests.support.elf_writer import write_elf


def test_the_usual_places() -> None:
    """Of a user with a home and a name; where neither is known there are none."""
    assert cache_directories({"HOME": "/home/a", "USER": "a"}) == {
        "flashinfer": "/home/a/.cache/flashinfer",
        "torch_extensions": "/home/a/.cache/torch_extensions",
        "torchinductor": "/tmp/torchinductor_a",
        "triton": "/home/a/.triton/cache",
    }
    assert cache_directories({}) == {}


@pytest.mark.parametrize(
    ("variables", "name", "place"),
    [
        ({"TORCH_EXTENSIONS_DIR": "/x", "HOME": "/h"}, "torch_extensions", "/x"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "torch_extensions", "/x/torch_extensions"),
        ({"TORCHINDUCTOR_CACHE_DIR": "/x", "USER": "a"}, "torchinductor", "/x"),
        ({"TMPDIR": "/x", "LOGNAME": "a", "USER": "b"}, "torchinductor", "/x/torchinductor_a"),
        ({"USERNAME": 'DOMAIN\\a:*?"<>|'}, "torchinductor", "/tmp/torchinductor_DOMAIN_a_______"),
        ({"TRITON_CACHE_DIR": "/x", "HOME": "/h"}, "triton", "/x"),
        ({"TRITON_HOME": "/x", "HOME": "/h"}, "triton", "/x/.triton/cache"),
        ({"FLASHINFER_WORKSPACE_BASE": "/x", "HOME": "/h"}, "flashinfer", "/x/.cache/flashinfer"),
        ({"TORCH_EXTENSIONS_DIR": "", "HOME": "/h"}, "torch_extensions", "/h/.cache/torch_extensions"),
    ],
)
def test_variables_that_lead_elsewhere(variables: dict[str, str], name: str, place: str) -> None:
    """As torch, triton and flashinfer read them; an empty one says nothing."""
    assert cache_directories(variables)[name] == place


def cache(tmp_path: Path, *paths: str) -> UserCaches:
    """Return the caches of a user whose ``torch_extensions`` holds these libraries."""
    for path in paths:
        write_elf(tmp_path / "ext" / path, needed=("libtorch.so",))
    return UserCaches({"TORCH_EXTENSIONS_DIR": str(tmp_path / "ext"), "TRITON_CACHE_DIR": str(tmp_path / "absent")})


def test_libraries_are_read_once(tmp_path: Path) -> None:
    """By path, in all directories below; a cache that is not there, or holds none, is left out."""
    found = cache(tmp_path, "py311_cu128/b/b.so", "py311_cu128/a/a.so.1", "top.so")
    (tmp_path / "triton").mkdir()
    caches = found.read()
    root = os.path.realpath(tmp_path / "ext")
    (only,) = caches
    assert (only.name, only.directory, only.is_whole) == ("torch_extensions", root, True)
    assert list(only.objects) == [f"{root}/{path}" for path in ("py311_cu128/a/a.so.1", "py311_cu128/b/b.so", "top.so")]
    assert {item.needed for item in only.objects.values()} == {("libtorch.so",)}
    (tmp_path / "ext/top.so").unlink()
    assert found.read() is caches


def test_what_is_no_library_is_passed_over(tmp_path: Path) -> None:
    """Sources, objects, files that were cut off, and whatever a link leads to."""
    found = cache(tmp_path, "a.so")
    directory = tmp_path / "ext"
    write_elf(directory / "main.o")
    (directory / "text.so").write_text("no library")
    (directory / "cut.so").write_bytes((directory / "a.so").read_bytes()[:100])
    (directory / "dangling.so").symlink_to("nowhere")
    (directory / "loop").symlink_to(directory, target_is_directory=True)
    (only,) = found.read()
    assert list(only.objects) == [os.path.realpath(directory / "a.so")]


def test_a_link_to_a_cache_is_that_cache(tmp_path: Path) -> None:
    """Homes are links, often."""
    cache(tmp_path, "a.so")
    (tmp_path / "link").symlink_to("ext")
    (only,) = UserCaches({"TORCH_EXTENSIONS_DIR": str(tmp_path / "link")}).read()
    assert only.directory == os.path.realpath(tmp_path / "ext")


@pytest.mark.parametrize(
    ("limit", "number", "read", "is_whole"),
    [("_FILES", 2, 2, False), ("_FILES", 3, 3, True), ("_ENTRIES", 2, 2, False), ("_ENTRIES", 3, 3, True)],
)
def test_large_caches_are_read_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, number: int, read: int, is_whole: bool
) -> None:
    """Neither more files than a few nor more names than some thousand are looked at, and that is told."""
    monkeypatch.setattr(jit_caches, limit, number)
    (only,) = cache(tmp_path, "a.so", "b.so", "c.so").read()
    assert (len(only.objects), only.is_whole) == (read, is_whole)


def test_directories_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another user has put there is passed over."""
    found = cache(tmp_path, "a.so", "closed/b.so")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("closed"):
            raise PermissionError
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    (only,) = found.read()
    assert [os.path.basename(path) for path in only.objects] == ["a.so"]
