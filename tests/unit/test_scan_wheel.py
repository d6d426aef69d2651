"""A wheel is read as it would be installed; one that is damaged, or would write elsewhere, is refused in words."""

import base64
import hashlib
import io
import struct
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.model.wheel import Wheel
from safe_uninstall.scan import wheel as module
from safe_uninstall.scan.wheel import WheelError, read_wheel
from tests.support.environments import Content, EnvironmentBuilder, library, read_tree, record_hash
from tests.support.wheel_files import write_wheel

INFO = "demo-1.0.dist-info"


def read(builder: EnvironmentBuilder, file: Path) -> Wheel:
    """Read a wheel for an environment, which stays as it is."""
    before = read_tree(builder.prefix)
    try:
        return read_wheel(str(file), builder.environment(), source="a test")
    finally:
        assert read_tree(builder.prefix) == before


def refused(builder: EnvironmentBuilder, file: Path) -> str:
    """Return why a wheel is refused, without the name of its file."""
    with pytest.raises(WheelError) as caught:
        read(builder, file)
    name, _, reason = str(caught.value).partition(" ")
    assert name == file.name
    return reason


def test_everything_that_it_brings(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Files with their hashes and places, scripts of entry points, libraries, needs; RECORD itself left out."""
    shared = library("libdemo.so.1", "libother.so")
    files: dict[str, Content] = {"demo/__init__.py": "x = 1\n", "demo/libdemo.so": shared}
    file = write_wheel(tmp_path, "Demo", files=files, requires=["other>=1"], scripts={"demo": "demo:main"})
    site, prefix = str(environment.site_packages), str(environment.prefix)
    wheel = read(environment, file)
    assert (wheel.name, wheel.version, wheel.source, wheel.file) == ("demo", "1.0", "a test", str(file))
    assert wheel.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert wheel.metadata_path == f"{site}/Demo-1.0.dist-info"
    assert wheel.requires == ("other>=1",)
    hashes = {row.path: row.hash for row in wheel.rows}
    assert hashes.keys() == {
        f"{site}/demo/__init__.py",
        f"{site}/demo/libdemo.so",
        f"{prefix}/bin/demo",
        *(f"{site}/Demo-1.0.dist-info/{name}" for name in ("METADATA", "WHEEL", "entry_points.txt")),
    }
    assert hashes[f"{site}/demo/__init__.py"] == record_hash(b"x = 1\n")
    assert hashes[f"{prefix}/bin/demo"] == ""
    (found,) = wheel.objects.values()
    assert found.path == found.real_path == f"{site}/demo/libdemo.so"
    assert (found.soname, found.needed) == ("libdemo.so.1", ("libother.so",))


def test_the_schemes_of_a_data_directory(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Each goes where the format says; headers of a virtual environment are kept apart from those of its base."""
    files = {
        "demo-1.0.data/purelib/pure.py": "",
        "demo-1.0.data/platlib/plat.py": "",
        "demo-1.0.data/scripts/tool": "#!python\n",
        "demo-1.0.data/data/share/demo.txt": "data",
        "demo-1.0.data/headers/demo.h": "",
    }
    wheel = read(environment, write_wheel(tmp_path, "demo", files=files))
    site, prefix = str(environment.site_packages), str(environment.prefix)
    assert {row.path for row in wheel.rows if INFO not in row.path} == {
        f"{site}/pure.py",
        f"{site}/plat.py",
        f"{prefix}/bin/tool",
        f"{prefix}/share/demo.txt",
        f"{prefix}/include/site/{environment.site_packages.parent.name}/demo/demo.h",
    }


def test_sizes_are_those_of_the_files(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """What is installed is counted unpacked; rows have the sizes of files, whatever RECORD says."""
    file = write_wheel(tmp_path, "demo", files={"demo.py": "x" * 5000})
    wheel = read(environment, file)
    with zipfile.ZipFile(file) as archive:
        assert wheel.installed_size == sum(item.file_size for item in archive.infolist())
    assert wheel.size == file.stat().st_size < wheel.installed_size
    assert next(row.size for row in wheel.rows if row.path.endswith("/demo.py")) == 5000


def test_scripts_that_pip_names_by_version_are_not_foreseen(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """``pip3.11`` in a wheel becomes the name that suits the interpreter."""
    points = dict.fromkeys(("pip", "pip3", "pip3.99", "easy_install-3.9", "pipx"), "demo:main")
    wheel = read(environment, write_wheel(tmp_path, "demo", scripts=points))
    names = {Path(row.path).name for row in wheel.rows if "/bin/" in row.path}
    assert names == {"pip", "pipx"}


def test_what_a_record_need_not_list(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Files without a row are installed too, without a hash; rows of directories, and of signatures, are no files."""
    file = write_wheel(
        tmp_path,
        "demo",
        files={"demo/a.py": ""},
        extra_rows=["demo/,,", "demo/absent.txt,,"],
        unlisted={"demo/unlisted.py": b"x", f"{INFO}/RECORD.jws": b"{}"},
    )
    hashes = {row.path: row.hash for row in read(environment, file).rows}
    assert hashes[environment.path("demo/unlisted.py")] == ""
    assert hashes[environment.path(f"{INFO}/RECORD.jws")] == ""
    assert environment.path("demo/absent.txt") not in hashes


def test_hashes_of_any_kind_that_can_be_checked(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """The format asks for SHA-256 or better; padding does not matter."""
    digest = base64.urlsafe_b64encode(hashlib.sha512(b"x = 1\n").digest()).decode()
    record = f"demo.py,sha512={digest},6\n{INFO}/RECORD,,\n"
    wheel = read(environment, write_wheel(tmp_path, "demo", files={"demo.py": "x = 1\n"}, record=record))
    assert next(row.hash for row in wheel.rows if row.path.endswith("demo.py")) == f"sha512={digest}"


def test_an_elf_file_that_nobody_can_read_is_a_file(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Test data of other programs is often truncated; it is no library then."""
    files = {"demo/broken.so": b"\x7fELF\x02\x01", "demo/empty.so": b""}
    wheel = read(environment, write_wheel(tmp_path, "demo", files=files))
    assert wheel.objects == {}
    assert environment.path("demo/broken.so") in {row.path for row in wheel.rows}


CRAFTED: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "no metadata": ({"metadata": None}, f"is no wheel: it has no {INFO}/METADATA"),
    "no record": ({"record": None}, f"is no wheel: it has no {INFO}/RECORD"),
    "no name": ({"metadata": "Version: 1.0\n"}, "is no wheel: its METADATA has no Name"),
    "no version": ({"metadata": "Name: demo\n"}, "is no wheel: its METADATA has no Version"),
    "another name": (
        {"metadata": "Name: evil\nVersion: 1.0\n"},
        f"contradicts itself: its METADATA is of evil, its directory is {INFO}",
    ),
    "two of them": (
        {"unlisted": {"other-2.dist-info/METADATA": b""}},
        "is no wheel: it has 2 dist-info directories",
    ),
    "zip slip": ({"unlisted": {"../../evil.py": b""}}, "would write outside of the environment: ../../evil.py"),
    "hidden slip": ({"unlisted": {"demo/../../../x": b""}}, "would write outside of the environment: demo/../../../x"),
    "absolute": ({"unlisted": {"/etc/evil": b""}}, "would write outside of the environment: /etc/evil"),
    "root": ({"unlisted": {"/evil": b""}}, "would write outside of the environment: /evil"),
    "scheme": (
        {"unlisted": {"demo-1.0.data/stdlib/os.py": b""}},
        "would write outside of the environment: demo-1.0.data/stdlib/os.py",
    ),
    "data slip": (
        {"unlisted": {"demo-1.0.data/data/../../x": b""}},
        "would write outside of the environment: demo-1.0.data/data/../../x",
    ),
    "row that leaves": (
        {"extra_rows": ["../../../../../etc/passwd,sha256=abc,1"]},
        "would write outside of the environment: ../../../../../etc/passwd",
    ),
    "row that leaves without a hash": (
        {"extra_rows": ["/etc/passwd,,"]},
        "would write outside of the environment: /etc/passwd",
    ),
    "row without a file": (
        {"extra_rows": ["demo/gone.so,sha256=abc,1"]},
        "lists demo/gone.so, which is not in it",
    ),
    "malformed record": ({"extra_rows": [",sha256=abc,1"]}, "cannot be trusted: RECORD line 3 has no path"),
    "other bytes": (
        {"record": f"demo.py,{record_hash(b'other')},5\n", "files": {"demo.py": "x = 1\n"}},
        "is damaged: demo.py is not what its RECORD says",
    ),
    "other library": (
        {"record": f"demo.so,{record_hash(b'other')},5\n", "files": {"demo.so": library("demo.so")}},
        "is damaged: demo.so is not what its RECORD says",
    ),
    "no such hash": (
        {"record": "demo.py,crc32=abc,5\n", "files": {"demo.py": ""}},
        "has a RECORD with a hash that nobody can check: crc32",
    ),
    "one place twice": (
        {"files": {"demo.py": "1"}, "unlisted": {"demo-1.0.data/purelib/demo.py": b"2"}},
        "holds two files for one place: {site}/demo.py",
    ),
}


@pytest.mark.parametrize("crafted", CRAFTED, ids=str)
def test_what_contradicts_itself_is_refused(environment: EnvironmentBuilder, tmp_path: Path, crafted: str) -> None:
    """The reason is a sentence about the file; nothing is written anywhere."""
    options, reason = CRAFTED[crafted]
    file = write_wheel(tmp_path / "wheels", "demo", **options)
    assert refused(environment, file) == reason.format(site=environment.site_packages)
    assert {path.name for path in tmp_path.iterdir()} == {"env", "wheels"}


def truncated(data: bytes) -> bytes:
    """Cut the end off, as a download that broke off."""
    return data[:-40]


def without_magic(_data: bytes) -> bytes:
    """Return the page that a proxy sends instead of a file."""
    return b"<html>please log in</html>"


def corrupt(data: bytes) -> bytes:
    """Damage the first compressed file."""
    start = 30 + struct.unpack("<H", data[26:28])[0]
    return data[:start] + b"\xff" * 8 + data[start + 8 :]


def encrypted(data: bytes) -> bytes:
    """Claim in both directories that files are encrypted."""
    return _with_flag(data, flags=1)


def unknown_method(data: bytes) -> bytes:
    """Claim a compression that nobody has."""
    return _with_flag(data, method=77)


def _with_flag(data: bytes, *, flags: int = 0, method: int | None = None) -> bytes:
    changed = bytearray(data)
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = data.find(magic)
        while start >= 0:
            changed[start + offset] |= flags
            if method is not None:
                changed[start + offset + 2 : start + offset + 4] = struct.pack("<H", method)
            start = data.find(magic, start + 1)
    return bytes(changed)


@pytest.mark.parametrize("damage", [truncated, without_magic, corrupt, encrypted, unknown_method, lambda _data: b""])
def test_what_is_no_archive_is_refused(
    environment: EnvironmentBuilder, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    """Whatever the decoders raise becomes one sentence."""
    file = write_wheel(tmp_path, "demo", files={"demo.py": "x = 1\n" * 100})
    file.write_bytes(damage(file.read_bytes()))
    assert refused(environment, file).startswith("cannot be read: ")


def test_what_is_not_there_is_refused(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """The system's word for it, without a path twice."""
    assert refused(environment, tmp_path / "gone.whl") == "cannot be read: No such file or directory"


def test_an_archive_without_a_dist_info(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """A zip file need not be a wheel."""
    file = tmp_path / "demo.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("demo.py", "")
        archive.mkdir("empty") if hasattr(archive, "mkdir") else archive.writestr("empty/", "")
    assert refused(environment, file) == "is no wheel: it has no dist-info directories"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Installers disagree about which of them counts."""
    file = write_wheel(tmp_path, "demo", files={"demo.py": ""})
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("demo.py", "evil")
    assert refused(environment, file) == "holds two files of one name"


def test_a_link_that_is_there_already_leads_nowhere_else(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """A directory of the environment that is a link to another place is that place; inside, it is resolved."""
    (tmp_path / "outside").mkdir()
    (environment.site_packages / "demo").symlink_to(tmp_path / "outside")
    file = write_wheel(tmp_path / "wheels", "demo", files={"demo/x.py": ""})
    assert refused(environment, file) == "would write outside of the environment: demo/x.py"
    (environment.site_packages / "demo").unlink()
    (environment.site_packages / "real").mkdir()
    (environment.site_packages / "demo").symlink_to("real")
    assert environment.path("real/x.py") in {row.path for row in read(environment, file).rows}


@pytest.mark.parametrize(
    ("limit", "reason"),
    [("_SIZE_LIMIT", "would unpack to more than 0 GiB"), ("_TEXT_LIMIT", f"has a {INFO}/METADATA that is too large")],
)
def test_what_is_too_large_is_not_unpacked(
    environment: EnvironmentBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, reason: str
) -> None:
    """A few kilobytes can promise to become terabytes."""
    monkeypatch.setattr(module, limit, 10)
    assert refused(environment, write_wheel(tmp_path, "demo", files={"demo.py": "x" * 100})) == reason


def test_no_room_for_a_library_is_no_fault_of_the_wheel(
    environment: EnvironmentBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's error comes through as it is."""
    file = write_wheel(tmp_path, "demo", files={"demo.so": library("demo.so")})

    def full(**_options: object) -> io.FileIO:
        return io.FileIO("/dev/full", "w")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    with pytest.raises(OSError, match="No space left on device"):
        read(environment, file)

    def forbidden(**_options: object) -> io.FileIO:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", forbidden)
    with pytest.raises(OSError, match="Permission denied"):
        read(environment, file)
