"""What the product does to real wheels, judged by the environment itself: RECORD hashes, loads, imports, pip check."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.real.conftest import in_case
from tests.support.installed import (
    PIP,
    UV,
    WITHOUT_PIP,
    Installed,
    base_python,
    blocked,
    command_lines,
    download,
    follow,
    offered,
    removed,
)
from tests.support.installed import uv as uv_program
from tests.support.program import call, safe_uninstall

CLEAN = "No broken requirements found."
NVTX = "nvidia/nvtx/lib/libnvToolsExt.so.1"


def clean(environment: Installed) -> bool:
    """Return whether ``pip check`` or ``uv pip check`` finds nothing."""
    said = environment.pip_check()
    return said == CLEAN or "compatible" in said


@in_case("twins", PIP, UV)
def test_the_clients_themselves_break_twins(case: Installed) -> None:
    """What this is all about: pip and uv delete what the other twin owns, and find nothing wrong with it."""
    assert case.damaged("nvidia-nvtx-cu12") == []
    case.pip_uninstall("nvidia-nvtx-cu11")
    assert NVTX in case.damaged("nvidia-nvtx-cu12")
    assert clean(case)


@in_case("twins")
def test_twins(case: Installed) -> None:
    """One twin goes, every file of the other stays with its hash, and its library loads."""
    removed(case.safe_uninstall("-y", "nvidia-nvtx-cu11"))
    assert set(case.installed()) - {"pip", "setuptools"} == {"nvidia-nvtx-cu12"}
    assert case.damaged("nvidia-nvtx-cu12") == []
    case.load(NVTX)
    assert clean(case)
    # And then nothing is shared any more.
    removed(case.safe_uninstall("-y", "nvidia-nvtx-cu12"))
    assert not (case.site_packages / "nvidia").exists()
    assert clean(case)


@in_case("twins")
def test_both_twins_at_once(case: Installed) -> None:
    """Together they take everything with them, in whatever order they are named."""
    removed(case.safe_uninstall("-y", "nvidia-nvtx-cu12", "nvidia-nvtx-cu11"))
    assert set(case.installed()) <= {"pip", "setuptools"}
    assert not (case.site_packages / "nvidia").exists()


@in_case("last-writer")
def test_last_writer(case: Installed) -> None:
    """The one whose bytes are on disk stays, since the other's are nowhere; the overwritten one can go."""
    before = case.state()
    assert case.damaged("librmm-cu12") == ["librmm/lib64/librmm.so"]
    said = blocked(case.safe_uninstall("-y", "librmm-cu13"), "file-lost")
    assert "`librmm-cu12` 26.10.0 would lose 1 file that librmm-cu13 26.10.0 overwrote" in said
    assert "librmm/lib64/librmm.so" in said
    assert case.state() == before

    done = removed(case.safe_uninstall("-y", "librmm-cu12"))
    assert "owned by librmm-cu13" in done
    assert "librmm-cu12" not in case.installed()
    assert case.damaged("librmm-cu13") == []


@in_case("last-writer")
def test_last_writer_by_the_command_of_the_help(case: Installed) -> None:
    """What a blocked plan offers works: one goes, and the other has its own bytes again."""
    said = case.safe_uninstall("-y", "librmm-cu13").out
    assert "help: remove it and restore librmm-cu12 26.10.0" in said
    (command,) = command_lines(said, "--restore")
    follow(command)
    assert "librmm-cu13" not in case.installed()
    assert case.damaged("librmm-cu12") == []


@in_case("last-writer", PIP, UV)
def test_last_writer_without_the_wheel(case: Installed, tmp_path: Path) -> None:
    """Refused before anything changes, naming the wheel and how to supply it; with it, it is done."""
    before = case.state()
    empty = tmp_path / "empty"
    empty.mkdir()
    given = ("--restore", "--find-links", str(empty), "--no-index")
    # A cache that has the wheel would be a source, too.
    done = case.safe_uninstall("-y", "librmm-cu13", *given, UV_CACHE_DIR=str(tmp_path / "cache"))
    assert done.status == 3, done.out + done.err
    assert "librmm-cu12==26.10.0" in done.out + done.err
    assert "pip download --no-deps" in done.out + done.err
    assert case.state() == before
    download(tmp_path / "wheels", "librmm-cu12==26.10.0")
    given = ("--restore", "--find-links", str(tmp_path / "wheels"), "--no-index")
    removed(case.safe_uninstall("-y", "librmm-cu13", *given, UV_CACHE_DIR=str(tmp_path / "cache")))
    assert case.damaged("librmm-cu12") == []


@in_case("last-writer")
def test_check_explains_and_mends(case: Installed) -> None:
    """After pip took the last writer, check names what is missing, and the repair brings back every byte."""
    told = case.safe_uninstall("check")
    assert told.status == 3
    assert "error[file-overwritten]: 1 file of `librmm-cu12` 26.10.0 holds the bytes of librmm-cu13 26.10.0" in told.out
    case.pip_uninstall("librmm-cu13")
    told = case.safe_uninstall("check")
    assert told.status == 3
    assert "`librmm-cu12` 26.10.0 is installed, but " in told.out
    (command, *_) = command_lines(told.out, "check --fix")
    follow(command)
    assert case.damaged("librmm-cu12") == []
    assert "error[" not in case.safe_uninstall("check").out


@in_case("opencv", PIP, UV)
def test_two_builds_of_one_package(case: Installed) -> None:
    """The one that was installed first lost its bytes; either goes, and the other is whole and imports."""
    before = case.state()
    said = blocked(case.safe_uninstall("-y", "opencv-python-headless"), "file-lost")
    assert "`opencv-python` 4.10.0.84 would lose" in said
    assert case.state() == before
    (command,) = command_lines(said, "--restore")
    follow(command)
    assert set(case.installed()) - {"pip", "setuptools"} == {"numpy", "opencv-python"}
    assert case.damaged("opencv-python") == []
    assert clean(case)


@in_case("opencv", PIP)
def test_the_overwritten_build_of_two_can_go(case: Installed) -> None:
    """It has nothing left but its own libraries."""
    case.run("import cv2")
    removed(case.safe_uninstall("-y", "opencv-python"))
    assert case.damaged("opencv-python-headless") == []
    case.run("import cv2")


@pytest.mark.parametrize(
    ("case", "request_"),
    [
        (("last-writer", PIP), "librmm-cu13"),
        (("sole-provider", UV), "pymupdfb"),
        (("private-twins", WITHOUT_PIP), "xgboost-cpu"),
        (("preloaded", PIP), "rapids-logger"),
        (("plugin", UV), "umf"),
        (("plugin", PIP), "umf tcmlib"),
        (("opencv", UV), "opencv-python-headless"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else value.replace(" ", "+"),
    indirect=["case"],
)
def test_every_command_that_a_block_offers_works(case: Installed, request_: str, tmp_path: Path) -> None:
    """Each is run in an environment of its own, does what it says, and leaves nothing damaged."""
    commands = offered(case.safe_uninstall("-n", "--format", "json", *request_.split()))
    assert commands
    damaged = {name for name in case.installed() if case.damaged(name)}
    for number, command in enumerate(commands):
        words = shlex.split(command)
        assert words[:3] == ["safe-uninstall", "-p", str(case.prefix)]
        copy = case.copy(tmp_path / f"copy{number}")
        follow([*words[:2], str(copy.prefix), *words[3:]])
        left = copy.installed()
        assert left.keys() < case.installed().keys()
        assert {name for name in left if copy.damaged(name)} <= damaged
        check = copy.safe_uninstall("check")
        assert check.status == 0, check.out


@in_case("sole-provider")
def test_sole_provider_by_a_cascade(case: Installed) -> None:
    """What would break goes too, with its reason."""
    done = removed(case.safe_uninstall("-y", "pymupdfb", "--cascade"))
    assert "would break" in done
    assert set(case.installed()) <= {"pip", "setuptools"}
    assert clean(case)


@in_case("sole-provider", PIP, UV)
def test_what_is_needed_stays_of_what_was_named(case: Installed) -> None:
    """``--keep-needed`` says who needs what; alone with nothing to remove it changes nothing."""
    before = case.state()
    done = case.safe_uninstall("-y", "pymupdfb", "--keep-needed")
    assert "pymupdf 1.24.9" in done.out
    assert (done.status, done.last) == (0, "Nothing to do. Nothing changed.")
    assert case.state() == before


@in_case("nvtx", PIP, UV)
def test_a_migration_is_one_command(case: Installed) -> None:
    """One goes and another comes, in one transaction: the same path with other bytes."""
    done = case.safe_uninstall("-y", "nvidia-nvtx-cu12", "--install", "nvidia-nvtx-cu11==11.8.86")
    assert done.status == 0, done.out + done.err
    assert "Installed nvidia-nvtx-cu11 11.8.86" in done.out
    assert set(case.installed()) - {"pip", "setuptools"} == {"nvidia-nvtx-cu11"}
    assert case.damaged("nvidia-nvtx-cu11") == []
    case.load(NVTX)
    assert clean(case)


@in_case("sole-provider")
def test_sole_provider(case: Installed) -> None:
    """A library that only one distribution brings stays while another needs it, by loader and by metadata."""
    before = case.state()
    said = blocked(case.safe_uninstall("-y", "PyMuPDFb"), "library-lost", "requirement-lost")
    assert "leaves libmupdf.so.24.8 without a provider" in said
    assert "pymupdf 1.24.9" in said
    (command,) = command_lines(said, "--cascade")
    assert command[0] == "safe-uninstall"
    assert case.state() == before
    case.run("import fitz")

    removed(case.safe_uninstall("-y", "pymupdfb", "pymupdf"))
    assert set(case.installed()) <= {"pip", "setuptools"}
    assert not (case.site_packages / "pymupdf").exists()
    assert clean(case)


@in_case("sole-provider", PIP)
def test_what_nothing_needs_goes_without_noise(case: Installed) -> None:
    """A consumer may always go."""
    said = removed(case.safe_uninstall("-y", "pymupdf"))
    assert "note" not in said
    assert case.damaged("pymupdfb") == []


@in_case("private-twins")
def test_private_twins(case: Installed) -> None:
    """Two builds of one package: the one on disk stays; the two vendored libgomp of one soname are two libraries."""
    before = case.state()
    gomp = "libgomp-a34b3233.so.1.0.0"
    assert (case.site_packages / "xgboost.libs" / gomp).exists()
    assert (case.site_packages / "xgboost_cpu.libs" / gomp).exists()
    said = blocked(case.safe_uninstall("-y", "xgboost-cpu"), "file-lost")
    assert "xgboost/lib/libxgboost.so" in said
    assert case.state() == before
    case.run("import xgboost")

    graph = {item["path"]: item for item in case.graph()}
    (library,) = (item for path, item in graph.items() if path.endswith("xgboost/lib/libxgboost.so"))
    (need,) = (need for need in library["needed"] if need["name"] == gomp)
    assert need["provider"].endswith(f"xgboost_cpu.libs/{gomp}")

    # The overwritten build has nothing left but its own libgomp, which the library on disk does not load.
    removed(case.safe_uninstall("-y", "xgboost"))
    assert not (case.site_packages / "xgboost.libs").exists()
    assert case.damaged("xgboost-cpu") == []
    case.run("import xgboost; assert xgboost.__version__ == '2.1.4'")
    case.load("xgboost/lib/libxgboost.so")


@in_case("preloaded")
def test_preloaded(case: Installed) -> None:
    """A library that Python code loads first is needed although the loader alone never finds it."""
    before = case.state()
    works = "import librmm; librmm.load_library()"
    case.run(works)
    case.load("librmm/lib64/librmm.so", works=False)
    done = case.safe_uninstall("-n", "--format", "json", "rapids-logger")
    (lost,) = (item for item in done.document["findings"] if item["code"] == "library-lost")
    assert lost["soname"] == "librapids_logger.so"
    assert {item["strength"] for item in lost["consumers"]} == {"preloaded"}
    blocked(case.safe_uninstall("-y", "rapids-logger"), "library-lost", "requirement-lost")
    assert case.state() == before
    case.run(works)


@in_case("plugin")
def test_plugin(case: Installed) -> None:
    """Plugins in ``lib`` of the environment lose what they have, and are not blamed for what they never had."""
    before = case.state()
    done = case.safe_uninstall("-n", "--format", "json", "umf")
    lost = [item for item in done.document["findings"] if item["code"] == "library-lost"]
    assert [item["soname"] for item in lost] == ["libumf.so.0"]
    assert lost[0]["path"] == "lib/libumf.so.0"
    said = blocked(case.safe_uninstall("-y", "umf"), "library-lost", "requirement-lost")
    assert "libze_loader" not in said
    assert case.state() == before

    removed(case.safe_uninstall("-y", "intel-cmplr-lib-ur", "umf"))
    left = sorted(path.name for path in (case.prefix / "lib").iterdir() if path.name.startswith(("libur_", "libumf")))
    assert left == []
    assert case.damaged("tcmlib") == []


@in_case("nvtx")
def test_no_record(case: Installed) -> None:
    """Refused, with the command that brings RECORD back; after it the distribution can go."""
    (case.site_packages / "nvidia_nvtx_cu12-12.1.105.dist-info/RECORD").unlink()
    before = case.state()
    said = blocked(case.safe_uninstall("-y", "nvidia-nvtx-cu12"), "record-missing")
    assert case.state() == before
    case.load(NVTX)

    (command,) = command_lines(said, "nvidia-nvtx-cu12==12.1.105")
    follow(command)
    assert case.damaged("nvidia-nvtx-cu12") == []
    removed(case.safe_uninstall("-y", "nvidia-nvtx-cu12"))
    assert "nvidia-nvtx-cu12" not in case.installed()


@in_case("nvtx")
def test_a_link_made_by_hand_is_listed_first(case: Installed) -> None:
    """What no RECORD names and would dangle is said beforehand."""
    link = case.site_packages / "nvidia/nvtx/lib/libnvToolsExt.so"
    link.symlink_to("libnvToolsExt.so.1")
    done = case.safe_uninstall("-y", "nvidia-nvtx-cu12")
    assert done.status == 0, done.out + done.err
    assert "warning[unowned-left]" in done.out
    assert "nvidia/nvtx/lib/libnvToolsExt.so" in done.out
    assert done.out.index("unowned-left") < done.out.index("remove ")
    assert "nvidia-nvtx-cu12" not in case.installed()
    assert link.is_symlink()


@in_case("nvtx", WITHOUT_PIP)
def test_an_interrupted_install_provides_nothing(case: Installed) -> None:
    """Installed by metadata and absent on disk: it goes, and what is left of it too."""
    shutil.rmtree(case.site_packages / "nvidia")
    done = case.safe_uninstall("-y", "nvidia-nvtx-cu12")
    assert done.status == 0, done.out + done.err
    assert case.installed() == {}


@pytest.mark.parametrize("link_mode", ["hardlink", "symlink", "copy"])
def test_every_link_mode_of_uv(tmp_path: Path, link_mode: str) -> None:
    """Links into the cache of uv are taken apart in the environment, and the cache stays whole."""
    prefix, cache = tmp_path / "env", tmp_path / "cache"
    call([uv_program(), "venv", "--python", base_python(), prefix])
    for requirement in ("nvidia-nvtx-cu11==11.8.86", "nvidia-nvtx-cu12==12.1.105"):
        call(
            [uv_program(), "pip", "install", "--python", prefix / "bin/python", requirement],
            variables={"UV_CACHE_DIR": str(cache), "UV_LINK_MODE": link_mode},
        )
    environment, cached = Installed(prefix, UV), Installed(cache, UV).state()
    removed(environment.safe_uninstall("-y", "nvidia-nvtx-cu11"))
    assert environment.damaged("nvidia-nvtx-cu12") == []
    environment.load(NVTX)
    assert Installed(cache, UV).state() == cached


@pytest.mark.parametrize("version", ["3.8", "3.9"])
@pytest.mark.parametrize("own_pip", [True, False], ids=["own-pip", "without-pip"])
def test_pythons_that_the_tools_pip_left_behind(tmp_path: Path, version: str, own_pip: bool) -> None:
    """They are served by their own pip, or by uv; the outcome is the same."""
    find = [uv_program(), "python", "find", "--system", "--no-python-downloads", version]
    found = subprocess.run(find, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        pytest.skip(f"there is no Python {version} on this machine")
    prefix = tmp_path / "env"
    call([found.stdout.strip(), "-m", "venv", *([] if own_pip else ["--without-pip"]), prefix])
    environment = Installed(prefix, PIP if own_pip else UV)
    environment.install("nvidia-nvtx-cu11==11.8.86")
    environment.install("nvidia-nvtx-cu12==12.1.105")
    done = safe_uninstall("-y", "-p", prefix, "nvidia-nvtx-cu11", variables={"UV": uv_program(), "PATH": os.defpath})
    removed(done)
    assert environment.damaged("nvidia-nvtx-cu12") == []
    environment.load(NVTX)
