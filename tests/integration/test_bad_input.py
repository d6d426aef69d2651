"""Bad input ends with a message that says what is wrong, the documented exit status, and an untouched environment."""

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.elf_writer import EM_AARCH64, ElfSpec, build
from tests.support.environments import EnvironmentBuilder, library, read_tree
from tests.support.program import Finished, safe_uninstall
from tests.support.runs import build_twins


@contextmanager
def untouched(*roots: Path) -> Iterator[None]:
    """Hold that nothing below ``roots`` changes: no byte, no mode, no path more or less."""
    before = [read_tree(root) for root in roots]
    yield
    assert [read_tree(root) for root in roots] == before


def refused(done: Finished, status: int, *sentences: str) -> None:
    """Hold that a run ended as documented: status, sentences on standard error, and a last line without a traceback."""
    assert done.status == status, done.out + done.err
    for sentence in sentences:
        assert sentence in done.out + done.err
    assert "Traceback" not in done.err
    assert done.last.endswith("Nothing changed.")


def test_an_unknown_name_offers_near_matches(environment: EnvironmentBuilder) -> None:
    """A typing error costs one more try, and nothing else."""
    build_twins(environment)
    with untouched(environment.prefix):
        done = safe_uninstall("-y", "-p", environment.prefix, "twin-cu21", "nothing-like-it")
    refused(
        done,
        2,
        f"error[not-installed]: not installed in `{environment.prefix}`: `twin-cu21`, `nothing-like-it`",
        "did you mean `twin-cu12`?",
    )
    assert done.out == "", "no data on standard output"


def test_one_unknown_name_among_known_ones_refuses_all(environment: EnvironmentBuilder) -> None:
    """A request is judged as a whole."""
    build_twins(environment)
    with untouched(environment.prefix):
        done = safe_uninstall("-y", "-p", environment.prefix, "twin-cu11", "absent")
    refused(done, 2, f"not installed in `{environment.prefix}`: `absent`", f"{environment.python} list")


def test_a_pattern_that_matches_nothing_is_an_error(environment: EnvironmentBuilder) -> None:
    """A glob without a match is a typing error too, not an empty success."""
    build_twins(environment)
    with untouched(environment.prefix):
        done = safe_uninstall("-y", "-p", environment.prefix, "nvidia-*-cu13")
    refused(done, 2, f"not installed in `{environment.prefix}`: `nvidia-*-cu13`")


@pytest.mark.parametrize("words", [("-y",), ("-y", "no/such/name"), ("-y", "--wrong", "x"), ("--color", "pink", "x")])
def test_a_wrong_command_line_is_a_usage_error(environment: EnvironmentBuilder, words: tuple[str, ...]) -> None:
    """Neither no name at all, nor something that is no name, nor an unknown option reaches the environment."""
    build_twins(environment)
    with untouched(environment.prefix):
        refused(safe_uninstall("-p", environment.prefix, *words), 2, "error[usage]")


def test_no_terminal_and_no_yes_is_never_a_silent_yes(environment: EnvironmentBuilder) -> None:
    """A script that forgot ``-y`` is told so."""
    build_twins(environment)
    with untouched(environment.prefix):
        done = safe_uninstall("-p", environment.prefix, "twin-cu11")
    refused(done, 2, "there is no terminal to ask on", "--yes")


def test_no_environment(tmp_path: Path) -> None:
    """A path that does not exist, a directory that is none, a variable that names none."""
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "file").write_text("x")
    absent = tmp_path / "absent"
    with untouched(tmp_path):
        refused(safe_uninstall("-y", "-p", absent, "x"), 2, "error[environment]", f"`{absent}`")
        refused(safe_uninstall("-y", "-p", empty, "x"), 2, "is a directory, but no Python environment")
        refused(safe_uninstall("-y", "-p", empty / "file", "x"), 2, "neither an environment nor an interpreter")
        named = safe_uninstall("-y", "x", variables={"VIRTUAL_ENV": str(absent)})
        refused(named, 2, f"VIRTUAL_ENV names `{absent}`, which is no environment")


def test_errors_are_json_where_json_is_asked_for(tmp_path: Path) -> None:
    """One document on standard output, nothing else, on errors too."""
    done = safe_uninstall("-n", "--format", "json", "-p", tmp_path / "absent", "x")
    assert (done.status, done.err) == (2, "")
    assert done.document["format"] == "safe-uninstall/error"


def test_an_environment_of_another_machine(tmp_path: Path) -> None:
    """Its files are judged, and no installer of this machine is let loose on it."""
    foreign = tmp_path / "python-aarch64"
    foreign.write_bytes(build(ElfSpec(machine=EM_AARCH64, elf_type=3, interpreter="/lib/ld-linux-aarch64.so.1")))
    foreign.chmod(0o755)
    environment = EnvironmentBuilder(tmp_path / "env", python=str(foreign))
    lost = ElfSpec(soname="liba.so.1", machine=EM_AARCH64)
    environment.distribution("provider", "1.0", {"lib/liba.so.1": lost})
    environment.distribution("bystander", "1.0", {"bystander.py": "x = 1\n"})
    consumer = ElfSpec(needed=("liba.so.1",), rpath="$ORIGIN/../lib", machine=EM_AARCH64)
    environment.distribution("consumer", "1.0", {"consumer/c.so": consumer})
    with untouched(environment.prefix):
        refused(safe_uninstall("-n", "-p", environment.prefix, "provider"), 3, "error[library-lost]", "consumer/c.so")
        refused(safe_uninstall("-n", "-p", environment.prefix, "bystander"), 0)
        done = safe_uninstall("-y", "-p", environment.prefix, "bystander")
        refused(done, 2, f"`{environment.prefix}` is an environment for aarch64")


def test_a_missing_record_names_the_repair(environment: EnvironmentBuilder) -> None:
    """Without RECORD nobody knows which files are whose: refused, with the whole command that brings it back."""
    environment.distribution("norecord", "1.2", {"norecord.py": "x = 1\n"}, record=None)
    with untouched(environment.prefix):
        done = safe_uninstall("-y", "-p", environment.prefix, "norecord")
    refused(done, 3, "error[record-missing]: `norecord` 1.2 has no RECORD", "--no-deps norecord==1.2")


@pytest.mark.parametrize(
    "record",
    [b"\x00\xff\xfe,,\n\x00", b'"unclosed,sha256=x,1\nnorecord.py,,\n', b"a,b,c,d,e\n,,\n", b""],
    ids=["binary", "unclosed-quote", "columns", "empty"],
)
def test_a_malformed_record_refuses(environment: EnvironmentBuilder, record: bytes) -> None:
    """What cannot be read in full is no ground for deleting."""
    environment.distribution("norecord", "1.2", {"norecord.py": "x = 1\n"}, record=record)
    with untouched(environment.prefix):
        done = safe_uninstall("-y", "-p", environment.prefix, "norecord")
    refused(done, 3, "error[record-missing]", "`norecord` 1.2", "--no-deps norecord==1.2")


def test_a_record_of_half_a_million_rows(environment: EnvironmentBuilder) -> None:
    """Size alone is no obstacle: rows of files that do not exist are neither claims nor a reason to fail."""
    rows = [f"huge/m{number}.py,sha256={'a' * 43},12" for number in range(500_000)]
    environment.distribution("huge", "1.0", {"huge/__init__.py": "x = 1\n"}, extra_rows=rows)
    environment.distribution("other", "1.0", {"other.py": "y = 1\n"})
    with untouched(environment.prefix):
        done = safe_uninstall("-n", "-p", environment.prefix, "huge")
    refused(done, 0, "huge 1.0")
    removed = safe_uninstall("-y", "-p", environment.prefix, "other")
    assert (removed.status, removed.err) == (0, "")
    assert not (environment.site_packages / "other.py").exists()
    assert (environment.site_packages / "huge/__init__.py").exists()


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_rows_that_leave_the_environment_are_never_touched(
    environment: EnvironmentBuilder, tmp_path: Path, installer: str
) -> None:
    """``../../../etc/passwd`` stays whatever RECORD says; the distribution itself goes, with a warning."""
    outside = tmp_path / "etc"
    outside.mkdir()
    (outside / "passwd").write_text("root\n")
    up = os.path.relpath(outside / "passwd", environment.site_packages)
    rows = [f"{up},,", f"{outside}/passwd,,", f"hostile/../{up},,"]
    environment.distribution("hostile", "1.0", {"hostile.py": "x = 1\n"}, extra_rows=rows)
    environment.distribution("other", "1.0", {"other.py": "y = 1\n"})
    with untouched(outside):
        done = safe_uninstall("-y", "--installer", installer, "-p", environment.prefix, "hostile")
    assert done.status == 0, done.out + done.err
    assert "warning[record-unsafe]" in done.out
    assert not (environment.site_packages / "hostile.py").exists()
    assert not (environment.site_packages / "hostile-1.0.dist-info").exists()
    assert (environment.site_packages / "other.py").exists()


TRUNCATED = build(ElfSpec(soname="libt.so.1", needed=("liba.so.1",)))[:70]
"""Cut after the ELF header."""
CRAFTED = bytearray(build(ElfSpec(soname="libt.so.1", needed=("liba.so.1",))))
CRAFTED[32:40] = (2**63).to_bytes(8, "little")
"""Its program headers lie beyond the end of the world."""


@pytest.mark.parametrize("damage", [TRUNCATED, bytes(CRAFTED)], ids=["truncated", "crafted"])
def test_a_broken_elf_file_is_said_and_is_not_no_needs(environment: EnvironmentBuilder, damage: bytes) -> None:
    """The file of a survivor that cannot be read is a warning that names it; the request is still judged and done."""
    environment.distribution("broken", "1.0", {"broken/libt.so.1": damage})
    environment.distribution("provider", "1.0", {"lib/liba.so.1": library("liba.so.1")})
    with untouched(environment.prefix):
        done = safe_uninstall("-n", "-p", environment.prefix, "provider")
    refused(done, 0, "warning[unreadable-elf]", "broken/libt.so.1")


def test_a_broken_provider_provides_nothing(environment: EnvironmentBuilder) -> None:
    """A truncated library that stays is no substitute for the one that goes."""
    environment.distribution("broken", "1.0", {"first/liba.so.1": TRUNCATED})
    environment.distribution("provider", "1.0", {"second/liba.so.1": library("liba.so.1")})
    consumer = library(None, "liba.so.1", rpath="$ORIGIN/../second:$ORIGIN/../first")
    environment.distribution("consumer", "1.0", {"consumer/c.so": consumer})
    with untouched(environment.prefix):
        done = safe_uninstall("-y", "-p", environment.prefix, "provider")
    refused(done, 3, "error[library-lost]", "liba.so.1", "consumer/c.so")


def test_an_elf_file_that_may_not_be_read(environment: EnvironmentBuilder) -> None:
    """Unreadable is unknown, and said so."""
    environment.distribution("secret", "1.0", {"secret/libs.so.1": library("libs.so.1", "liba.so.1")})
    environment.distribution("provider", "1.0", {"lib/liba.so.1": library("liba.so.1")})
    secret = environment.site_packages / "secret/libs.so.1"
    with untouched(environment.prefix):
        mode = stat.S_IMODE(secret.stat().st_mode)
        secret.chmod(0)
        try:
            done = safe_uninstall("-n", "-p", environment.prefix, "provider", obey_permissions=True)
        finally:
            secret.chmod(mode)
    refused(done, 0, "warning[unreadable-elf]", "secret/libs.so.1")


@pytest.mark.parametrize("which", ["site-packages", "prefix"])
def test_an_environment_that_may_not_be_written(environment: EnvironmentBuilder, which: str) -> None:
    """Without the right to change it nothing is begun, and the message says which right is missing."""
    build_twins(environment)
    locked = environment.site_packages if which == "site-packages" else environment.prefix
    with untouched(environment.prefix):
        mode = stat.S_IMODE(locked.stat().st_mode)
        locked.chmod(0o555)
        try:
            done = safe_uninstall("-y", "-p", environment.prefix, "twin-cu11", obey_permissions=True)
        finally:
            locked.chmod(mode)
    assert done.status in (2, 4), done.out + done.err
    assert str(environment.prefix) in done.out + done.err
    assert "Traceback" not in done.err


def program(path: Path, text: str) -> str:
    """Write a program."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_an_installer_that_fails_is_rolled_back(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """The installer's own words are shown, and every file is back, those it had deleted before it failed too."""
    build_twins(environment)
    own = environment.site_packages / "nvidia/nvtx/own11.py"
    uv = program(
        tmp_path / "uv", f'case "$*" in *uninstall*) rm {own}; echo disk on fire >&2; exit 7;; *) echo uv 0.13.9;; esac'
    )
    with untouched(environment.prefix):
        done = safe_uninstall("-y", "--installer", "uv", "-p", environment.prefix, "twin-cu11", variables={"UV": uv})
    assert done.status == 4, done.out + done.err
    assert "disk on fire" in done.err
    assert "Traceback" not in done.err


def test_an_installer_that_deletes_a_shared_file_is_made_good(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """What survivors own too is in the stash, and comes back whatever the installer does."""
    build_twins(environment)
    shared = environment.site_packages / "nvidia/nvtx/shared.py"
    uv = program(tmp_path / "uv", f'case "$*" in *uninstall*) rm {shared};; *) echo uv 0.13.9;; esac')
    done = safe_uninstall("-y", "--installer", "uv", "-p", environment.prefix, "twin-cu11", variables={"UV": uv})
    assert done.status == 0, done.out + done.err
    assert shared.read_text() == "x = 1\n"


def test_an_installer_that_goes_wild_is_not_glossed_over(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """A file that only a survivor has is in no stash: its loss is said, with the status of a roll back that is not."""
    build_twins(environment)
    own = environment.site_packages / "nvidia/nvtx/own12.py"
    uv = program(tmp_path / "uv", f'case "$*" in *uninstall*) rm {own};; *) echo uv 0.13.9;; esac')
    before = read_tree(environment.prefix)
    done = safe_uninstall("-y", "--installer", "uv", "-p", environment.prefix, "twin-cu11", variables={"UV": uv})
    after = read_tree(environment.prefix)
    del before[os.path.relpath(own, environment.prefix)]
    assert (done.status, after) == (5, before), done.err
    assert "nvidia/nvtx/own12.py of twin-cu12 12.1 is gone, and there is no copy of it" in done.err
    assert done.last.startswith("Roll back incomplete")


def test_the_last_distribution_leaves_an_environment(environment: EnvironmentBuilder) -> None:
    """Pip removes every directory that it empties; site-packages is kept, or nothing could be installed any more."""
    environment.distribution("only", "1.0", {"only.py": "x = 1\n"}, scripts={"only": "only:main"})
    done = safe_uninstall("-y", "--installer", "pip", "-p", environment.prefix, "only")
    assert done.status == 0, done.out + done.err
    assert list(environment.site_packages.iterdir()) == []
    assert list(environment.bin.iterdir()) == [environment.python]


def test_no_uv_where_uv_is_asked_for(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """A missing installer is found out before anything is done."""
    build_twins(environment)
    alone = tmp_path / "venv"
    os.makedirs(alone / "bin")
    with untouched(environment.prefix):
        done = safe_uninstall(
            "-y", "--installer", "uv", "-p", environment.prefix, "twin-cu11", python=without_uv(tmp_path),
            variables={"PATH": "/nonexistent"},
        )  # fmt: skip
    refused(done, 2, "error[installer]: uv is not found", "--installer pip")


def without_uv(directory: Path) -> Path:
    """Return an interpreter that sees what this one sees, and has no uv beside it."""
    import venv

    root = directory / "no-uv"
    venv.create(root, with_pip=False, symlinks=True)
    site = next(root.glob("lib/python*/site-packages"))
    (site / "tests.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")) + "\n")
    return root / "bin" / "python"


@pytest.mark.parametrize("version", ["3.8", "3.9"])
def test_a_python_that_pip_no_longer_serves_without_any_installer(tmp_path: Path, version: str) -> None:
    """Nothing can serve it: refused before anything happens, with the commands that help."""
    environment = EnvironmentBuilder(tmp_path / "env", python_version=version)
    build_twins(environment)
    pip = tmp_path / "newer"
    info = pip / "pip-99.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pip\nVersion: 99.0\nRequires-Python: >=3.10\n")
    with untouched(environment.prefix):
        done = safe_uninstall(
            "-y", "-p", environment.prefix, "twin-cu11", python=without_uv(tmp_path),
            variables={"PATH": "/nonexistent", "PYTHONPATH": str(pip)},
        )  # fmt: skip
    refused(done, 2, f"no longer serves Python {version}", "-m ensurepip", "install uv")


def test_a_requirements_file_that_is_not_there(environment: EnvironmentBuilder) -> None:
    """The file is named; nothing else is removed in its stead."""
    build_twins(environment)
    with untouched(environment.prefix):
        done = safe_uninstall("-y", "-p", environment.prefix, "-r", "absent.txt", "twin-cu11")
    refused(done, 2, "absent.txt")


def test_a_plan_that_cannot_be_saved_is_not_carried_out(environment: EnvironmentBuilder) -> None:
    """Whoever asked for the plan wants it before the deed."""
    build_twins(environment)
    with untouched(environment.prefix):
        done = safe_uninstall("-y", "-p", environment.prefix, "-o", "/nonexistent/plan.json", "twin-cu11")
    refused(done, 2, "/nonexistent/plan.json")


def test_a_program_that_is_no_interpreter(environment: EnvironmentBuilder) -> None:
    """One sentence; our own program text, which it may repeat, is not in it."""
    for name in ("ls", "cat", "true"):
        path = shutil.which(name)
        assert path is not None
        done = safe_uninstall("-n", "-p", path, "x")
        refused(done, 2, f"error[environment]: `{path}` is not a Python interpreter\n")
        assert len(done.err.splitlines()) == 3


def test_a_venv_whose_interpreter_is_gone(environment: EnvironmentBuilder) -> None:
    """It can be looked at; for a change the message says what is wrong with it, and takes it for no other kind."""
    build_twins(environment)
    environment.python.unlink()
    environment.python.symlink_to("/gone/python3.11")
    with untouched(environment.prefix):
        refused(safe_uninstall("-n", "-p", environment.prefix, "twin-cu11"), 0)
        for installer in ("auto", "pip", "uv"):
            done = safe_uninstall("-y", "--installer", installer, "-p", environment.prefix, "twin-cu11")
            refused(done, 2, f"`{environment.python}` leads to `/gone/python3.11`, which is not there")
            assert "--target" not in done.out + done.err
            assert "use uv" not in done.err


def test_requirements_that_do_not_apply_are_passed_over(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """In a file as on the command line: the marker is about another system, whether the name is installed or not."""
    build_twins(environment)
    listed = tmp_path / "r.txt"
    listed.write_text("twin-cu11==0.1\ntwin-cu12; sys_platform == 'win32'\nabsent; python_version < '3'\n")
    with untouched(environment.prefix):
        done = safe_uninstall("-n", "-p", environment.prefix, "-r", listed)
        refused(done, 0, "twin-cu11 11.8")
        assert "twin-cu12" not in done.out.partition("remove")[2].splitlines()[0]
        listed.write_text("absent; python_version < '3'\n")
        refused(safe_uninstall("-y", "-p", environment.prefix, "-r", listed), 2, "error[usage]: nothing of it applies")


@pytest.mark.parametrize("text", ["twin-*\n", "twin-cu11; nonsense\n", "./twin\n", "-r absent.txt\n"])
def test_a_requirements_file_that_cannot_be_understood(
    environment: EnvironmentBuilder, tmp_path: Path, text: str
) -> None:
    """The error has a next step, and nothing is removed of what can be understood."""
    build_twins(environment)
    (tmp_path / "r.txt").write_text(f"twin-cu11\n{text}")
    with untouched(environment.prefix):
        done = safe_uninstall("-y", "-p", environment.prefix, "-r", tmp_path / "r.txt")
    refused(done, 2, "error[usage]: ", "help: ")


@pytest.mark.parametrize("words", [("explain", "library-lost"), ("schema",)])
def test_options_of_every_command_are_taken_where_they_mean_nothing(words: tuple[str, ...]) -> None:
    """A script may pass them to all; the environment is not even looked for."""
    plain = safe_uninstall(*words)
    done = safe_uninstall("-p", "/absent", "-q", *words)
    assert (done.status, done.out, done.err) == (0, plain.out, "")
