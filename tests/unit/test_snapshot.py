"""A snapshot holds every ELF file that matters to an environment, and says what it could not read."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from safe_uninstall.model.elf import Abi
from safe_uninstall.model.environment import Environment, EnvironmentKind
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.scan import snapshot as snapshot_module
from safe_uninstall.scan.snapshot import scan
from tests.support.elf_writer import ET_EXEC, ET_REL, elf_bytes, write_elf

X86_64, AARCH64 = Abi(64, True, 62), Abi(64, True, 183)
SITE = "lib/python3.11/site-packages"


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """Return the canonical prefix of an environment with an empty site-packages."""
    prefix = Path(os.path.realpath(tmp_path)) / "env"
    (prefix / SITE).mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "pyvenv.cfg").write_text("home = /usr/bin\n")
    return prefix


def environment(prefix: Path, kind: EnvironmentKind = EnvironmentKind.VENV) -> Environment:
    """Describe the environment at a prefix."""
    return Environment(
        prefix=str(prefix),
        kind=kind,
        python=str(prefix / "bin/python"),
        python_version="3.11.7",
        implementation="cpython",
        site_packages=(str(prefix / SITE),),
        scripts=str(prefix / "bin"),
        abi=X86_64,
        markers={},
    )


def take(prefix: Path, kind: EnvironmentKind = EnvironmentKind.VENV) -> Snapshot:
    """Scan the environment at a prefix."""
    return scan(environment(prefix, kind), variables={})


def found(snapshot: Snapshot) -> list[str]:
    """Return the paths of all objects, relative to the prefix where they are inside, in the order they are kept."""
    return [path.removeprefix(snapshot.environment.prefix + "/") for path in snapshot.objects]


def install(prefix: Path, name: str, *rows: str) -> None:
    """Write the metadata of a distribution that claims ``rows``, relative to site-packages."""
    directory = prefix / SITE / f"{name}-1.0.dist-info"
    directory.mkdir()
    (directory / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    rows = (*rows, f"{name}-1.0.dist-info/METADATA", f"{name}-1.0.dist-info/RECORD")
    (directory / "RECORD").write_text("".join(f"{row},,\n" for row in rows))


def test_elf_files_are_found_by_magic_all_over_the_prefix(prefix: Path) -> None:
    """Neither name nor mode bit nor place matters; objects are kept in the order of their paths."""
    for path in (f"{SITE}/pkg/a.so", f"{SITE}/pkg.libs/libz-1234.so.1.2", f"{SITE}/pkg/plugin", "lib/libumf.so.1"):
        write_elf(prefix / path)
    write_elf(prefix / "bin/tool", elf_type=ET_EXEC)
    write_elf(prefix / "share/pkg/data.bin")
    (prefix / SITE / "pkg/a.so").chmod(0o644)
    (prefix / SITE / "pkg/text.so").write_text("INPUT(libx.so.1)")
    (prefix / SITE / "pkg/empty.so").write_bytes(b"")
    snapshot = take(prefix)
    assert found(snapshot) == [
        "bin/tool",
        "lib/libumf.so.1",
        f"{SITE}/pkg.libs/libz-1234.so.1.2",
        f"{SITE}/pkg/a.so",
        f"{SITE}/pkg/plugin",
        "share/pkg/data.bin",
    ]
    assert all(path == item.path == item.real_path for path, item in snapshot.objects.items())
    assert snapshot.unreadable == {}


def test_files_that_only_text_tools_read_are_not_opened(prefix: Path) -> None:
    """Sources and bytecode are most of an environment, and no loader is ever given such a name."""
    for suffix in (".py", ".pyc", ".h", ".txt", ".json"):
        write_elf(prefix / SITE / f"pkg/file{suffix}")
    write_elf(prefix / SITE / "pkg/py")
    write_elf(prefix / SITE / "pkg/file.python")
    assert found(take(prefix)) == [f"{SITE}/pkg/file.python", f"{SITE}/pkg/py"]


def test_links_are_objects_of_their_own_and_dangling_ones_absent(prefix: Path, tmp_path: Path) -> None:
    """With UV_LINK_MODE=symlink files are links into a cache: they are there as long as the cache is."""
    cache = Path(os.path.realpath(tmp_path)) / "cache"
    write_elf(cache / "libx.so", soname="libx.so")
    (prefix / SITE / "pkg").mkdir()
    (prefix / SITE / "pkg/libx.so").symlink_to(cache / "libx.so")
    (prefix / SITE / "pkg/gone.so").symlink_to(cache / "gone.so")
    (prefix / SITE / "pkg/circle.so").symlink_to("circle.so")
    (prefix / SITE / "pkg/directory.so").symlink_to(cache)
    (prefix / "lib64").symlink_to("lib")
    snapshot = take(prefix)
    assert found(snapshot) == [f"{SITE}/pkg/libx.so"]
    item = snapshot.objects[str(prefix / SITE / "pkg/libx.so")]
    assert (item.path, item.real_path) == (str(prefix / SITE / "pkg/libx.so"), str(cache / "libx.so"))
    assert snapshot.unreadable == {}


def test_unreadable_elf_files_are_listed_with_the_reason(prefix: Path) -> None:
    """Unknown is not "no needs": a truncated library is reported, a link to it too."""
    (prefix / SITE / "broken.so").write_bytes(elf_bytes(needed=("libx.so",))[:-1])
    (prefix / SITE / "link.so").symlink_to("broken.so")
    snapshot = take(prefix)
    assert snapshot.objects == {}
    assert list(snapshot.unreadable) == [str(prefix / SITE / "broken.so"), str(prefix / SITE / "link.so")]
    assert all("truncated" in reason for reason in snapshot.unreadable.values())


@pytest.mark.parametrize("mark", ["pyvenv.cfg", "conda-meta/history"])
def test_environments_inside_are_not_part_of_it(prefix: Path, mark: str) -> None:
    """Another environment below the prefix has its own runs of the tool."""
    write_elf(prefix / "nested/lib/a.so")
    write_elf(prefix / "beside/lib/b.so")
    (prefix / "nested" / mark).parent.mkdir(exist_ok=True)
    (prefix / "nested" / mark).write_text("")
    assert found(take(prefix)) == ["beside/lib/b.so"]


def test_a_site_directory_is_scanned_even_inside_another_environment(prefix: Path) -> None:
    """What Python imports from counts, wherever it lies."""
    write_elf(prefix / "nested/site/a.so")
    write_elf(prefix / "nested/b.so")
    (prefix / "nested/pyvenv.cfg").write_text("")
    described = replace(environment(prefix), visible_site_packages=(str(prefix / "nested/site"),))
    assert found(scan(described, variables={})) == ["nested/site/a.so"]


def test_own_stash_is_not_part_of_it(prefix: Path) -> None:
    """Files that a transaction put aside provide nothing; only the directory at the root is the tool's."""
    write_elf(prefix / ".safe-uninstall/stash/a.so")
    write_elf(prefix / "share/.safe-uninstall/b.so")
    assert found(take(prefix)) == ["share/.safe-uninstall/b.so"]


def test_leftovers_of_failed_runs_are_never_providers(prefix: Path) -> None:
    """Directly in site-packages, pip renames what it is about to delete to ``~…``; elsewhere the name means nothing."""
    write_elf(prefix / SITE / "~kg/a.so")
    write_elf(prefix / SITE / "~ingle.so")
    write_elf(prefix / SITE / "pkg/~b/c.so")
    write_elf(prefix / SITE / "pkg/~d.so")
    write_elf(prefix / "share/~e/f.so")
    snapshot = take(prefix)
    assert found(snapshot) == [f"{SITE}/pkg/~b/c.so", f"{SITE}/pkg/~d.so", "share/~e/f.so"]
    assert str(prefix / SITE / "~kg") in snapshot.leftovers


def test_directories_that_cannot_be_listed_are_a_problem(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is dropped in silence."""
    write_elf(prefix / SITE / "secret/a.so")
    original = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("secret"):
            raise PermissionError(13, "Permission denied")
        return original(path)

    monkeypatch.setattr(os, "scandir", refuse)
    snapshot = take(prefix)
    assert snapshot.objects == {}
    assert snapshot.problems == (f"cannot list {prefix / SITE / 'secret'}: Permission denied",)


def test_a_problem_is_told_once(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata and libraries are looked for in the same directories."""
    original = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("site-packages"):
            raise PermissionError(13, "Permission denied")
        return original(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert take(prefix).problems == (f"cannot list {prefix / SITE}: Permission denied",)


def test_visible_directories_count_too(prefix: Path, tmp_path: Path) -> None:
    """Objects of system site-packages consume and provide, though nothing there is removed."""
    outside = Path(os.path.realpath(tmp_path)) / "system/site-packages"
    write_elf(outside / "pkg/a.so")
    described = replace(environment(prefix), visible_site_packages=(str(outside),))
    assert list(scan(described, variables={}).objects) == [str(outside / "pkg/a.so")]


def test_of_a_system_prefix_only_what_python_installs_is_scanned(prefix: Path) -> None:
    """/usr holds much that is not Python's: site-packages, scripts and claimed files are looked at, no more."""
    write_elf(prefix / SITE / "pkg/a.so")
    write_elf(prefix / "bin/tool", elf_type=ET_EXEC)
    write_elf(prefix / "lib/libclaimed.so")
    write_elf(prefix / "lib/libother.so")
    (prefix / "lib/libtext.so").write_text("")
    install(
        prefix, "pkg", "pkg/a.so", "../../libclaimed.so", "../../libtext.so", "../../libgone.so", "../../../bin/tool"
    )
    install(prefix, "twin", "../../libclaimed.so", "../../../share/doc.txt")
    snapshot = take(prefix, EnvironmentKind.SYSTEM)
    assert found(snapshot) == ["bin/tool", "lib/libclaimed.so", f"{SITE}/pkg/a.so"]
    assert [item.name for item in snapshot.distributions] == ["pkg", "twin"]


def test_of_a_conda_prefix_libraries_and_programs_are_scanned(prefix: Path) -> None:
    """Conda's own libraries are found through python's RPATH; packages, headers and caches are not walked."""
    (prefix / "pyvenv.cfg").unlink()
    (prefix / "conda-meta").mkdir()
    for path in ("lib/libssl.so.3", "bin/openssl", f"{SITE}/a.so", "pkgs/openssl/lib/libssl.so.3", "plugins/b.so"):
        write_elf(prefix / path)
    install(prefix, "pkg", "../../../plugins/b.so")
    assert found(take(prefix, EnvironmentKind.CONDA)) == [
        "bin/openssl",
        "lib/libssl.so.3",
        f"{SITE}/a.so",
        "plugins/b.so",
    ]


def test_target_directory_is_walked_whole(prefix: Path) -> None:
    """``pip install --target`` puts everything into one directory, which is its own site-packages."""
    write_elf(prefix / SITE / "pkg/a.so")
    target = prefix / SITE
    described = replace(
        environment(target, EnvironmentKind.TARGET), site_packages=(str(target),), python=None, abi=None
    )
    assert found(scan(described, variables={})) == ["pkg/a.so"]


@pytest.mark.parametrize(
    ("value", "entries"),
    [(None, ()), ("", ()), ("/a", ("/a",)), ("/a:/b;$ORIGIN", ("/a", "/b", "$ORIGIN")), ("/a::", ("/a", "", ""))],
)
def test_library_path_is_recorded_entry_by_entry(prefix: Path, value: str | None, entries: tuple[str, ...]) -> None:
    """Colons and semicolons separate entries, and empty ones mean the working directory (ld.so(8))."""
    variables = {} if value is None else {"LD_LIBRARY_PATH": value}
    assert scan(environment(prefix), variables=variables).library_path == entries


def test_system_is_asked_for_every_abi_that_can_be_loaded(prefix: Path) -> None:
    """That of the interpreter and of dynamic objects; not of device code, object files or static programs."""
    write_elf(prefix / SITE / "arm.so", machine=183)
    write_elf(prefix / SITE / "kernel.cubin", machine=190, elf_type=ET_EXEC)
    write_elf(prefix / SITE / "a.o", machine=3, elf_type=ET_REL)
    write_elf(prefix / SITE / "static", machine=21, elf_type=ET_EXEC, is_dynamic=False)
    assert set(take(prefix).system.default_directories) == {X86_64, AARCH64}


def test_loader_of_the_interpreter_is_the_system_that_counts(prefix: Path) -> None:
    """Python's PT_INTERP names the loader whose directories and C library are meant."""
    (prefix / "lib/ld-own.so").write_bytes(b"\0/own/lib/\0")
    write_elf(prefix / "bin/python3.11", elf_type=ET_EXEC, interpreter=str(prefix / "lib/ld-own.so"))
    described = replace(environment(prefix), interpreter_path=str(prefix / "bin/python3.11"))
    snapshot = scan(described, variables={})
    assert snapshot.system.default_directories[X86_64] == ("/own/lib",)
    assert found(snapshot) == ["bin/python3.11"]


def test_interpreter_that_is_no_elf_file_tells_nothing(prefix: Path) -> None:
    """A script that stands for python has no loader; the host's usual one is taken."""
    (prefix / "bin/python3.11").write_text("#!/bin/sh\n")
    described = replace(environment(prefix), interpreter_path=str(prefix / "bin/python3.11"))
    assert scan(described, variables={}).system.default_directories[X86_64]


def test_files_answer_from_what_was_scanned(prefix: Path) -> None:
    """The port and the snapshot know one object as the same."""
    write_elf(prefix / SITE / "a.so")
    snapshot = take(prefix)
    path = str(prefix / SITE / "a.so")
    (prefix / SITE / "a.so").unlink()
    assert snapshot.files.object(path) is snapshot.objects[path]
    assert snapshot.files.entry(str(prefix / SITE), "a.so") is not None
    assert snapshot.evidence.size(path) is None


def test_progress_is_told_by_stage(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller can show that something happens: the stages in order, and every so many files."""
    monkeypatch.setattr(snapshot_module, "_PROGRESS_STEP", 2)
    for index in range(5):
        write_elf(prefix / SITE / f"{index}.so")
    told: list[tuple[str, int, int | None]] = []
    scan(environment(prefix), variables={}, progress=lambda stage, done, total: told.append((stage, done, total)))
    # The five files, and pyvenv.cfg.
    assert told == [("distributions", 0, None), ("files", 0, None), ("files", 2, None), ("files", 4, None)]


def test_a_mounted_tree_is_read_by_its_own_paths(tmp_path: Path) -> None:
    """Under another root, links and the loader's files are those of that tree."""
    root = tmp_path / "mnt"
    write_elf(root / "venv" / SITE / "a.so", needed=("libx.so",))
    write_elf(root / "opt/libx.so")
    (root / "venv" / SITE / "libx.so").symlink_to("/opt/libx.so")
    (root / "lib64").mkdir()
    (root / "lib64/ld-linux-x86-64.so.2").write_bytes(b"\0/only/here/lib/\0")
    snapshot = scan(replace(environment(Path("/venv")), root=str(root)), variables={})
    assert found(snapshot) == [f"{SITE}/a.so", f"{SITE}/libx.so"]
    assert snapshot.objects[f"/venv/{SITE}/libx.so"].real_path == "/opt/libx.so"
    assert snapshot.system.default_directories[X86_64] == ("/only/here/lib",)


def test_nothing_of_the_environment_is_imported(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scanning reads files; code in site-packages, ``.pth`` files included, does not run."""
    (prefix / SITE / "evil.pth").write_text("import evil\n")
    (prefix / SITE / "evil.py").write_text("raise SystemExit('ran')\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(prefix / SITE)])
    take(prefix)
    assert "evil" not in sys.modules


# Consumers outside.


def test_directories_outside_are_read_when_named(prefix: Path, tmp_path: Path) -> None:
    """Each ELF file below them, by its canonical path; sources are not opened, and what is broken is told."""
    cache = tmp_path / "cache"
    for name in ("b/x.so", "a.so"):
        write_elf(cache / name)
    (cache / "x.py").write_bytes(elf_bytes())
    (cache / "cut.so").write_bytes(elf_bytes()[:100])
    (cache / "text").write_text("text")
    (tmp_path / "link").symlink_to("cache")
    write_elf(prefix / "lib/own.so")
    snapshot = scan(environment(prefix), variables={}, consumers_in=[str(tmp_path / "link")])
    real = os.path.realpath(cache)
    assert list(snapshot.outside) == [f"{real}/a.so", f"{real}/b/x.so"]
    assert list(snapshot.unreadable) == [f"{real}/cut.so"]
    assert found(snapshot) == ["lib/own.so"]
    assert take(prefix).outside == {}


def test_what_is_inside_is_not_outside(prefix: Path) -> None:
    """Not even where the user names a directory of the environment, nor what the tool itself keeps there."""
    write_elf(prefix / "lib/own.so")
    write_elf(prefix / "other-env/x.so")
    (prefix / "other-env/pyvenv.cfg").write_text("")
    write_elf(prefix / ".safe-uninstall/stash/old.so")
    snapshot = scan(environment(prefix), variables={}, consumers_in=[str(prefix)])
    assert list(snapshot.outside) == [str(prefix / "other-env/x.so")]


@pytest.mark.parametrize("name", ["absent", "file", "dangling"])
def test_a_directory_outside_must_be_there(prefix: Path, tmp_path: Path, name: str) -> None:
    """A typing error must not pass for "nothing needs it"."""
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(UsageError, match=f"--consumers-in: there is no directory `{tmp_path / name}`"):
        scan(environment(prefix), variables={}, consumers_in=[str(tmp_path / name)])


def test_their_abis_count(prefix: Path, tmp_path: Path) -> None:
    """The host's directories for them are known, too."""
    write_elf(tmp_path / "cache/x.so", machine=183)
    snapshot = scan(environment(prefix), variables={}, consumers_in=[str(tmp_path / "cache")])
    assert AARCH64 in snapshot.system.default_directories


def test_caches_are_those_of_the_variables(prefix: Path, tmp_path: Path) -> None:
    """Nothing is read before somebody asks; a mounted tree has no caches of this user."""
    snapshot = scan(environment(prefix), variables={"TORCH_EXTENSIONS_DIR": str(tmp_path / "ext")})
    write_elf(tmp_path / "ext/a.so")
    assert [item.name for item in snapshot.caches.read()] == ["torch_extensions"]
    variables = {"TORCH_EXTENSIONS_DIR": str(tmp_path / "ext")}
    mounted = scan(replace(environment(prefix), root=str(tmp_path)), variables=variables)
    assert mounted.caches.read() == ()
