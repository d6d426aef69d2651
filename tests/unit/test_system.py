"""How the host's loader searches is read from its files, as glibc reads them, and never asked of a program."""

import os
import platform
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from safe_uninstall.model.elf import Abi
from safe_uninstall.model.system import CacheEntry
from safe_uninstall.scan import processor
from safe_uninstall.scan.ld_cache import RawEntry, parse_cache
from safe_uninstall.scan.processor import Processor, read_processor
from safe_uninstall.scan.system import read_system_libraries
from tests.support.ld_cache_writer import (
    AARCH64_FLAGS,
    I386_FLAGS,
    X86_64_FLAGS,
    Library,
    combined_cache,
    new_cache,
    old_cache,
)

X86_64, I386, AARCH64, S390X = Abi(64, True, 62), Abi(32, True, 3), Abi(64, True, 183), Abi(64, False, 22)
LOADER = "lib64/ld-linux-x86-64.so.2"

LIBRARIES = (
    Library("libz.so.1", "/usr/lib/x/libz.so.1"),
    Library("libfoo.so.2", "/opt/foo/libfoo.so.2", hwcap_name="x86-64-v3"),
    Library("libfoo.so.2", "/opt/foo/glibc-hwcaps/x86-64-v2/libfoo.so.2", hwcap_name="x86-64-v2"),
    Library("libfoo.so.2", "/opt/foo/libfoo.so.2"),
    Library("libold.so", "/usr/lib/haswell/libold.so", hwcap=1 << 50),
    Library("libc.so.6", "/lib32/libc.so.6", flags=I386_FLAGS),
)
RAW = tuple(RawEntry(item.name, item.path, item.flags, item.hwcap, item.hwcap_name) for item in LIBRARIES)


class TestCacheFile:
    """The forms of ``/etc/ld.so.cache``."""

    @pytest.mark.parametrize("little_endian", [True, False])
    @pytest.mark.parametrize("generator", ["", "ldconfig (GNU libc) 2.36"])
    def test_new_form(self, little_endian: bool, generator: str) -> None:
        """Entries come in the order of the file; a named hwcap is looked up in the extension section."""
        data = new_cache(LIBRARIES, little_endian=little_endian, generator=generator)
        assert parse_cache(data, little_endian=little_endian) == RAW

    def test_new_form_without_extension(self) -> None:
        """Before glibc 2.33 there were neither extensions nor a byte order flag."""
        data = new_cache((LIBRARIES[0],), endian_flag=0)
        assert parse_cache(data) == RAW[:1]

    def test_old_form(self) -> None:
        """The oldest form has no hwcaps."""
        assert parse_cache(old_cache((LIBRARIES[0], LIBRARIES[5]))) == (RAW[0], RAW[5])

    @pytest.mark.parametrize("alignment", [4, 8])
    @pytest.mark.parametrize("count", [1, 2])
    def test_new_form_behind_the_old_one(self, alignment: int, count: int) -> None:
        """Where both are there the loader goes by the new one, wherever alignment put it."""
        data = combined_cache(LIBRARIES, alignment=alignment, old=LIBRARIES[:count])
        assert parse_cache(data) == RAW

    def test_other_byte_order_is_not_used(self) -> None:
        """A cache copied from a machine of the other byte order says so, and glibc ignores it."""
        assert parse_cache(new_cache(LIBRARIES, little_endian=False), little_endian=True) == ()
        assert parse_cache(new_cache(LIBRARIES), little_endian=False) == ()
        assert parse_cache(new_cache(LIBRARIES, endian_flag=1)) == ()

    @pytest.mark.parametrize(
        "data",
        [b"", b"glibc", b"glibc-ld.so.cache1.1", b"glibc-ld.so.cache1.0" + bytes(100), b"ld.so-1.7.0\0", b"x" * 99],
    )
    def test_what_is_no_cache_has_no_entries(self, data: bytes) -> None:
        """Neither other files nor other versions of the form are taken for one."""
        assert parse_cache(data) == ()

    @pytest.mark.parametrize("write", [new_cache, old_cache, combined_cache])
    def test_truncated_anywhere(self, write: object) -> None:
        """A cache that ends too soon has no entries, or those that are whole; it never fails."""
        assert callable(write)
        data = write(LIBRARIES)
        for size in range(len(data)):
            assert set(parse_cache(data[:size])) <= {*RAW, *(item._replace(hwcap=0, hwcap_name=None) for item in RAW)}

    @pytest.mark.parametrize("offset", range(20, 48 + 24 * 6))
    def test_every_byte_of_the_tables_may_be_wrong(self, offset: int) -> None:
        """A wrong count, offset or flag costs entries, not the run."""
        data = bytearray(new_cache(LIBRARIES, generator="x"))
        for value in (0, 0x7F, 0xFF):
            data[offset] = value
            for entry in parse_cache(bytes(data)):
                assert isinstance(entry, RawEntry)

    def test_extension_without_its_magic_names_nothing(self) -> None:
        """An entry whose capability has no name cannot be judged: the file does not hold together."""
        data = new_cache(LIBRARIES).replace(b"\x74\x21\xa4\xea", b"\x74\x21\xa4\xeb")
        assert parse_cache(data) == ()


def write(root: Path, path: str, data: bytes) -> None:
    """Write a file of a tree."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)


def loader_file(*directories: str, banner: str = "stable release version 2.36.") -> bytes:
    """Return what matters of a dynamic loader's file: its list of directories and its banner."""
    listed = b"".join(os.fsencode(directory) + b"/\0" for directory in directories)
    return b"\x7fELF ... /var/tmp/\0not a list/\0/etc/ld.so.cache\0" + listed + b"\0ld.so (GNU libc) " + banner.encode()


@pytest.fixture
def haswell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let this machine's processor be an Intel one with AVX2 and without AVX-512."""
    set_processor(monkeypatch, tmp_path, "GenuineIntel", "x86-64-v3")


def set_processor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vendor: str, level: str, *, more: str = "", machine: str = "x86_64"
) -> None:
    """Let this machine have a processor of a vendor, an x86-64 level, and with more features."""
    flags = ["fpu", "sse2"]
    for name, asked in processor._LEVELS.items():
        if level >= name:
            flags += asked.split()
    path = tmp_path / "cpuinfo"
    path.write_text(
        f"processor\t: 0\nvendor_id\t: {vendor}\nmodel name\t: x\nflags\t\t: {' '.join(flags)} {more}\n\n"
        "processor\t: 1\nvendor_id\t: other\nflags\t\t: none\n"
    )
    monkeypatch.setattr(processor, "_CPUINFO", str(path))
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine=machine))


class TestProcessor:
    """Capabilities as glibc names them."""

    @pytest.mark.parametrize(
        ("level", "named"),
        [
            ("x86-64-v1", ()),
            ("x86-64-v2", ("x86-64-v2",)),
            ("x86-64-v3", ("x86-64-v3", "x86-64-v2")),
            ("x86-64-v4", ("x86-64-v4", "x86-64-v3", "x86-64-v2")),
        ],
    )
    def test_levels_best_first(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, level: str, named: tuple[str, ...]
    ) -> None:
        """Each level includes the ones below, and the best one is searched first."""
        set_processor(monkeypatch, tmp_path, "AuthenticAMD", level)
        assert read_processor(X86_64).named == named

    def test_levels_need_all_those_below(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """AVX-512 without AVX2 is not level 4: a level is reached through the ones before."""
        set_processor(monkeypatch, tmp_path, "GenuineIntel", "x86-64-v2", more=processor._LEVELS["x86-64-v4"])
        assert read_processor(X86_64).named == ("x86-64-v2",)

    @pytest.mark.parametrize(
        ("vendor", "level", "more", "name", "legacy"),
        [
            ("AuthenticAMD", "x86-64-v4", "", "x86_64", ("tls", "x86_64", "x86_64")),
            ("GenuineIntel", "x86-64-v2", "", "x86_64", ("tls", "x86_64", "x86_64")),
            ("GenuineIntel", "x86-64-v3", "", "haswell", ("tls", "haswell", "x86_64")),
            ("GenuineIntel", "x86-64-v4", "", "haswell", ("tls", "haswell", "avx512_1", "x86_64")),
            ("GenuineIntel", "x86-64-v3", "avx512cd avx512er avx512pf", "xeon_phi", ("tls", "xeon_phi", "x86_64")),
        ],
    )
    def test_platform(
        self,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
        vendor: str,
        level: str,
        more: str,
        name: str,
        legacy: tuple[str, ...],
    ) -> None:
        """``$PLATFORM`` is the kernel's word, save on Intel processors with AVX2 (``sysdeps/x86/cpu-features.c``)."""
        set_processor(monkeypatch, tmp_path, vendor, level, more=more)
        found = read_processor(X86_64)
        assert (found.platform, found.legacy) == (name, legacy)

    def test_legacy_directories_in_search_order(self) -> None:
        """All combinations are tried, the first names counting most (``elf/dl-hwcaps.c``, and ``strace``)."""
        assert Processor("haswell", (), ("tls", "haswell", "x86_64")).legacy_directories() == (
            "tls/haswell/x86_64",
            "tls/haswell",
            "tls/x86_64",
            "tls",
            "haswell/x86_64",
            "haswell",
            "x86_64",
        )
        assert Processor("x86_64", (), ("tls", "x86_64", "x86_64")).legacy_directories() == (
            "tls/x86_64/x86_64",
            "tls/x86_64",
            "tls",
            "x86_64/x86_64",
            "x86_64",
        )

    def test_nothing_is_known_of_a_processor_of_another_kind(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """An aarch64 environment looked at on x86-64 is not judged by this machine's processor, nor the other way."""
        set_processor(monkeypatch, tmp_path, "GenuineIntel", "x86-64-v4")
        assert read_processor(AARCH64) == Processor("aarch64")
        set_processor(monkeypatch, tmp_path, "GenuineIntel", "x86-64-v4", machine="aarch64")
        assert read_processor(X86_64) == Processor("x86_64")
        (tmp_path / "cpuinfo").write_text("processor\t: 0\nFeatures\t: fp asimd atomics\n")
        assert read_processor(AARCH64) == Processor("aarch64", (), ("tls", "aarch64", "atomics"))

    def test_32_bit_code_on_x86_64(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """32-bit x86 has no levels; its old directories are those of the 686 with SSE2."""
        set_processor(monkeypatch, tmp_path, "GenuineIntel", "x86-64-v4")
        assert read_processor(I386) == Processor("i686", (), ("tls", "i686", "sse2"))

    def test_without_proc_nothing_is_known(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """In a chroot without /proc the baseline is assumed."""
        set_processor(monkeypatch, tmp_path, "GenuineIntel", "x86-64-v4")
        (tmp_path / "cpuinfo").unlink()
        assert read_processor(X86_64).named == ()


@pytest.mark.usefixtures("haswell")
class TestSystem:
    """What the parts add up to, over a tree made for the purpose."""

    def test_directories_are_those_built_into_the_loader(self, tmp_path: Path) -> None:
        """Debian's, Fedora's and Nix's loaders differ in nothing but the list in the file; ``$LIB`` follows it."""
        for number, (directories, lib) in enumerate(
            [
                (("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib", "/usr/lib"), "lib/x86_64-linux-gnu"),
                (("/lib64", "/usr/lib64"), "lib64"),
                (("/usr/lib",), "lib"),
                (("/nix/store/abc-glibc-2.38/lib",), "lib"),
            ]
        ):
            root = tmp_path / str(number)
            write(root, LOADER, loader_file(*directories))
            system = read_system_libraries([X86_64], str(root))
            assert system.default_directories == {X86_64: directories}
            assert system.lib == {X86_64: lib}
            assert system.platform == {X86_64: "haswell"}
            assert system.libc == "glibc"

    @pytest.mark.parametrize("before", [b"\xff\xff", b"\0", b"/\0", b"/no/list/\0", b"A"])
    def test_list_of_directories_is_found_whatever_comes_before(self, tmp_path: Path, before: bytes) -> None:
        """In the file's data the list may follow numbers or other strings."""
        write(tmp_path, LOADER, before + b"/lib64/\0/usr/lib64/\0\0\0/lib/later/\0")
        system = read_system_libraries([X86_64], str(tmp_path))
        assert system.default_directories == {X86_64: ("/lib64", "/usr/lib64")}

    def test_loader_that_the_interpreter_asks_for_decides(self, tmp_path: Path) -> None:
        """Python's PT_INTERP is preferred to the usual path, and found through links inside the tree."""
        write(tmp_path, LOADER, loader_file("/lib64", "/usr/lib64"))
        write(tmp_path, "opt/glibc/ld-real.so", loader_file("/opt/glibc/lib"))
        (tmp_path / "own").mkdir()
        (tmp_path / "own/ld.so").symlink_to("/opt/glibc/ld-real.so")
        system = read_system_libraries([X86_64], str(tmp_path), interpreters={X86_64: "/own/ld.so"})
        assert system.default_directories == {X86_64: ("/opt/glibc/lib",)}

    @pytest.mark.parametrize(
        ("made", "expected"),
        [
            ("usr/lib/x86_64-linux-gnu", ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib", "/usr/lib")),
            ("usr/lib64", ("/lib64", "/usr/lib64")),
            ("usr/lib", ("/lib", "/usr/lib")),
        ],
    )
    def test_without_a_loader_the_layout_of_the_tree_tells(
        self, tmp_path: Path, made: str, expected: tuple[str, ...]
    ) -> None:
        """Objects of an ABI whose loader is not installed are looked up where it would look."""
        (tmp_path / made).mkdir(parents=True)
        assert read_system_libraries([X86_64], str(tmp_path)).default_directories == {X86_64: expected}

    @pytest.mark.parametrize(
        ("banner", "hwcaps"),
        [
            ("release version 2.31.", ("tls/haswell/x86_64", "tls/haswell", "tls/x86_64", "tls", "haswell/x86_64")),
            ("release version 2.36.", ("glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v2", "tls/haswell/x86_64")),
            ("release version 2.37.", ("glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v2")),
            ("no banner", ("glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v2")),
        ],
    )
    def test_capability_directories_by_release(self, tmp_path: Path, banner: str, hwcaps: tuple[str, ...]) -> None:
        """glibc-hwcaps came with 2.33; the older combinations went with 2.37."""
        write(tmp_path, LOADER, loader_file("/lib64", banner=banner))
        found = read_system_libraries([X86_64], str(tmp_path)).hwcaps[X86_64]
        assert found[: len(hwcaps)] == hwcaps
        assert (len(found) > len(hwcaps)) == ("tls/haswell/x86_64" in hwcaps)

    def test_release_of_an_old_loader_is_in_its_name(self, tmp_path: Path) -> None:
        """Loaders before 2.33 carry no banner, and are links to a file named after their release."""
        write(tmp_path, "lib64/ld-2.28.so", loader_file("/lib64", banner=""))
        (tmp_path / LOADER).symlink_to("ld-2.28.so")
        assert read_system_libraries([X86_64], str(tmp_path)).hwcaps[X86_64][0] == "tls/haswell/x86_64"

    def test_cache_entries_in_the_order_of_the_loader(self, tmp_path: Path) -> None:
        """Named capabilities come first, the best of them foremost; what the processor lacks is left out."""
        libraries = (
            Library("libx.so", "/v2/libx.so", hwcap_name="x86-64-v2"),
            Library("libx.so", "/v4/libx.so", hwcap_name="x86-64-v4"),
            Library("libx.so", "/v3/libx.so", hwcap_name="x86-64-v3"),
            Library("libx.so", "/plain/libx.so"),
            Library("libx.so", "/second/libx.so"),
            Library("libx.so", "/arm/libx.so", flags=AARCH64_FLAGS),
        )
        write(tmp_path, "etc/ld.so.cache", new_cache(libraries))
        write(tmp_path, LOADER, loader_file("/lib64"))
        system = read_system_libraries([X86_64, AARCH64], str(tmp_path))
        assert system.cache_flags == {X86_64: X86_64_FLAGS, AARCH64: AARCH64_FLAGS}
        assert [entry for entry in system.cache["libx.so"] if entry.flags == X86_64_FLAGS] == [
            CacheEntry("/v3/libx.so", X86_64_FLAGS, "x86-64-v3"),
            CacheEntry("/v2/libx.so", X86_64_FLAGS, "x86-64-v2"),
            CacheEntry("/plain/libx.so", X86_64_FLAGS, None),
            CacheEntry("/second/libx.so", X86_64_FLAGS, None),
        ]
        assert [entry.path for entry in system.cache["libx.so"] if entry.flags == AARCH64_FLAGS] == ["/arm/libx.so"]

    @pytest.mark.parametrize(("banner", "paths"), [("2.36", ["/haswell/x", "/plain/x"]), ("2.37", ["/plain/x"])])
    def test_entries_of_old_capabilities(self, tmp_path: Path, banner: str, paths: list[str]) -> None:
        """Loaders before 2.37 take an entry whose capabilities the processor has all; later ones take none."""
        libraries = (
            Library("x", "/xeon_phi/x", hwcap=1 << 51 | 1 << 1),
            Library("x", "/haswell/x", hwcap=1 << 50 | 1 << 1),
            Library("x", "/plain/x"),
        )
        write(tmp_path, "etc/ld.so.cache", new_cache(libraries))
        write(tmp_path, LOADER, loader_file("/lib64", banner=f"release version {banner}."))
        assert [entry.path for entry in read_system_libraries([X86_64], str(tmp_path)).cache["x"]] == paths

    def test_cache_of_a_big_endian_tree(self, tmp_path: Path) -> None:
        """A tree of another byte order is read in its own."""
        write(tmp_path, "etc/ld.so.cache", new_cache((Library("x", "/lib/x", flags=0x0403),), little_endian=False))
        assert read_system_libraries([S390X], str(tmp_path)).cache == {"x": (CacheEntry("/lib/x", 0x0403, None),)}

    def test_without_a_cache_there_are_no_entries(self, tmp_path: Path) -> None:
        """Neither a missing nor a broken cache is an error: the loader does without it, too."""
        assert read_system_libraries([X86_64], str(tmp_path)).cache == {}
        write(tmp_path, "etc/ld.so.cache", b"broken")
        assert read_system_libraries([X86_64], str(tmp_path)).cache == {}
        (tmp_path / "etc/ld.so.cache").unlink()
        (tmp_path / "etc/ld.so.cache").mkdir()
        assert read_system_libraries([X86_64], str(tmp_path)).cache == {}

    def test_unknown_machine(self, tmp_path: Path) -> None:
        """Code of a machine that is not known is searched for in the plainest places."""
        abi = Abi(32, False, 4242)
        system = read_system_libraries([abi], str(tmp_path))
        assert system.default_directories == {abi: ("/lib", "/usr/lib")}
        assert (system.lib[abi], system.platform[abi], system.hwcaps[abi]) == ("lib", "", ())

    def test_c_library(self, tmp_path: Path) -> None:
        """The interpreter decides; without one, what is installed does."""
        musl = "/lib/ld-musl-x86_64.so.1"
        assert read_system_libraries([X86_64], str(tmp_path)).libc == "glibc"
        write(tmp_path, musl[1:], b"\x7fELF")
        assert read_system_libraries([X86_64], str(tmp_path)).libc == "musl"
        write(tmp_path, LOADER, loader_file("/lib64"))
        assert read_system_libraries([X86_64], str(tmp_path)).libc == "glibc"
        assert read_system_libraries([X86_64], str(tmp_path), interpreters={X86_64: musl}).libc == "musl"
        interpreters = {X86_64: f"/{LOADER}"}
        assert read_system_libraries([X86_64], str(tmp_path), interpreters=interpreters).libc == "glibc"

    def test_without_linux_linkage_is_not_judged(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """On macOS there is no glibc."""
        monkeypatch.setattr("sys.platform", "darwin")
        assert read_system_libraries([Abi(64, True, 4242)]).libc == "none"


def diagnostics() -> dict[str, str]:
    """Return what the host's own loader says of itself; the product never asks it."""
    loader = f"/{LOADER}"
    if platform.machine() != "x86_64" or not os.path.exists(loader):
        pytest.skip("needs glibc on x86-64")
    done = subprocess.run([loader, "--list-diagnostics"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("needs glibc 2.33")
    return dict(re.findall(r'^([\w.\[\]]+)="?(.*?)"?$', done.stdout, re.MULTILINE))


def test_agrees_with_the_loader_of_this_machine() -> None:
    """Directories, ``$LIB``, ``$PLATFORM`` and capabilities are those that ``ld.so --list-diagnostics`` shows."""
    said = diagnostics()
    system = read_system_libraries([X86_64])
    directories = [value.rstrip("/") for key, value in said.items() if key.startswith("path.system_dirs")]
    assert list(system.default_directories[X86_64]) == directories
    assert system.lib[X86_64] == said["dl_dst_lib"]
    assert system.platform[X86_64] == said["dl_platform"]
    # A bit per name, the lowest for the first one (_dl_hwcaps_subdirs_build_bitmask).
    active = int(said["dl_hwcaps_subdirs_active"], 16)
    names = said["dl_hwcaps_subdirs"].split(":")
    expected = [name for index, name in enumerate(names) if active >> index & 1]
    found = [name for name in system.hwcaps[X86_64] if name.startswith("glibc-hwcaps/")]
    assert found == [f"glibc-hwcaps/{name}" for name in expected]
