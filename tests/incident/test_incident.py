"""What the product is for: the truth instead of the loss of torch."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.incident.conftest import both_clients
from tests.support.installed import KINDS, PIP, UV, Installed, blocked, command_lines, follow, removed

CUDA = "torch/lib/libtorch_cuda.so"
LEFTOVER = "nvidia-cudnn-cu13"
LEFTOVERS = ("nvidia-cudnn-cu13", "nvidia-nccl-cu13", "nvidia-nvshmem-cu13", "nvidia-cusparselt-cu13")
SURVIVORS = tuple(name.replace("cu13", "cu12") for name in LEFTOVERS)
Copy = Callable[[str], Installed]


def test_the_truth_is_told_and_nothing_changes(incident: Installed) -> None:
    """Blocked: which library, who needs it, who claims it and was overwritten; torch works as before."""
    said = blocked(incident.safe_uninstall("-y", LEFTOVER), "library-lost", "file-lost")
    assert "removing `nvidia-cudnn-cu13` 9.24.0.43 leaves libcudnn.so.9 without a provider" in said
    assert re.search(rf"torch 2\.9\.1 +{re.escape(CUDA)} ", said)
    assert "nvidia-cudnn-cu12 9.10.2.21, whose own bytes were overwritten: 22 files" in said
    incident.run("import torch; torch.ones(2) + 1")
    incident.load(CUDA)


def test_the_pattern_is_judged_as_one_request(incident: Installed) -> None:
    """All four leftovers at once: every library that torch would lose is named, each with its overwritten owner."""
    done = incident.safe_uninstall("-n", "--format", "json", "nvidia-*-cu13")
    assert (done.status, done.err) == (3, "")
    lost = {item["soname"] for item in done.document["findings"] if item["code"] == "library-lost"}
    assert lost >= {"libcudnn.so.9", "libnccl.so.2", "libcusparseLt.so.0", "libnvshmem_host.so.3"}
    overwritten = {item["distribution"] for item in done.document["findings"] if item["code"] == "file-lost"}
    assert overwritten == {f"nvidia-{name}-cu12" for name in ("cudnn", "nccl", "cusparselt", "nvshmem")}
    assert done.document["verdict"] == "block"


@both_clients
def test_the_clients_themselves_break_torch(make_copy: Copy, kind: str) -> None:
    """The incident: the import fails, the metadata looks right, and the check finds nothing."""
    environment = make_copy(kind)
    environment.run("import torch")
    environment.pip_uninstall(LEFTOVER)
    said = environment.run("import torch", works=False)
    assert "libcudnn.so.9: cannot open shared object file" in said
    assert environment.installed()["nvidia-cudnn-cu12"] == "9.10.2.21"
    check = environment.pip_check()
    assert "No broken requirements found" in check or "compatible" in check


@both_clients
def test_the_command_of_the_help_makes_it_safe(make_copy: Copy, workshop: Path, kind: str) -> None:
    """The printed command removes the leftover, cu12 has all of its own bytes, and torch works."""
    environment = make_copy(kind)
    said = environment.safe_uninstall("-y", LEFTOVER).out
    (command,) = command_lines(said, "--restore")
    follow(command, **caches(workshop))
    assert LEFTOVER not in environment.installed()
    assert environment.damaged("nvidia-cudnn-cu12") == []
    environment.run("import torch; torch.ones(2) + 1")
    environment.load(CUDA)
    environment.load("nvidia/cudnn/lib/libcudnn.so.9")


@pytest.mark.parametrize("kind", KINDS)
def test_all_leftovers_go_and_torch_has_its_own_libraries_again(make_copy: Copy, workshop: Path, kind: str) -> None:
    """One command: four wheels removed, four restored; by pip, by uv without pip inside, and from outside."""
    environment = make_copy(kind)
    assert environment.safe_uninstall("-n", *LEFTOVERS).status == 3
    done = removed(environment.safe_uninstall("-y", *LEFTOVERS, "--restore", **caches(workshop)))
    assert done.splitlines()[-1].startswith("Removed nvidia-cudnn-cu13 9.24.0.43, ")
    left = environment.installed()
    assert not [name for name in left if name.endswith("-cu13")]
    for name in SURVIVORS:
        assert environment.damaged(name) == []
        assert (environment.site_packages / metadata(environment, name) / "INSTALLER").read_text().strip() in (
            "pip",
            "uv",
        )
    environment.run("import torch; torch.ones(2) + 1; assert torch.backends.cudnn.version() == 91002")
    check = environment.safe_uninstall("check")
    assert "error[" not in check.out
    assert "mixed-cuda" not in check.out


@pytest.mark.parametrize("kind", [PIP, UV])
def test_without_the_wheels_nothing_changes(make_copy: Copy, tmp_path: Path, kind: str) -> None:
    """No network and no cache: blocked before anything is touched, naming each wheel and how to supply it."""
    environment = make_copy(kind)
    before = environment.state()
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "UV_CACHE_DIR": str(tmp_path)}
    done = environment.safe_uninstall("-y", *LEFTOVERS, "--restore", **nowhere, PIP_NO_CACHE_DIR="1")
    assert done.status == 3, done.out + done.err
    for name in SURVIVORS:
        assert f"{name}==" in done.out + done.err
    assert "--find-links" in done.out + done.err
    assert done.out.rstrip().endswith("Nothing changed.")
    assert environment.state() == before


@both_clients
def test_undone_too_late(make_copy: Copy, workshop: Path, kind: str) -> None:
    """Pip has been there already: check names what is gone and who misses it, and its repair makes torch work."""
    environment = make_copy(kind)
    told = environment.safe_uninstall("check")
    assert told.status == 3
    assert "error[file-overwritten]: 22 files of `nvidia-cudnn-cu12` 9.10.2.21 hold the bytes of" in told.out
    # What a terminal shows at once tells what torch runs with, and the one command that mends it.
    screen = "\n".join(told.out.splitlines()[:24])
    assert (
        "warning[mixed-cuda]: `torch` 2.9.1 requires CUDA 12, and loads libcudnn.so.9, libcusparseLt.so.0, libnccl.so.2"
        " and libnvshmem_host.so.3 of CUDA 13" in screen
    )
    (mends,) = command_lines(screen, "--restore")
    assert mends[-5:] == [*sorted(LEFTOVERS), "--restore"]
    for name in LEFTOVERS:
        environment.pip_uninstall(name)
    environment.run("import torch", works=False)
    told = environment.safe_uninstall("check")
    assert told.status == 3
    gone = re.search(r"`nvidia-cudnn-cu12` 9\.10\.2\.21 is installed, but (\d+) of its \d+ files are missing", told.out)
    assert gone is not None
    assert int(gone[1]) >= 21
    assert "libcudnn.so.9 is needed and not there, though nvidia-cudnn-cu12 9.10.2.21 should provide it" in told.out
    assert re.search(rf"torch 2\.9\.1 +{re.escape(CUDA)} ", told.out)
    (command, *_) = command_lines(told.out, "check --fix")
    follow(command, **caches(workshop))
    environment.run("import torch; torch.ones(2) + 1")
    for name in SURVIVORS:
        assert environment.damaged(name) == []
    assert environment.safe_uninstall("check").status == 0


@pytest.mark.parametrize("kind", [UV])
def test_a_migration_is_one_command(make_copy: Copy, workshop: Path, kind: str) -> None:
    """The leftovers go and what torch requires has its own bytes again, proven by a probe, in one transaction."""
    environment = make_copy(kind)
    pins = [f"{name}=={environment.installed()[name]}" for name in SURVIVORS]
    words = [word for pin in pins for word in ("--install", pin)]
    done = environment.safe_uninstall("-y", "nvidia-*-cu13", *words, "--probe", "import torch", **caches(workshop))
    assert done.status == 0, done.out + done.err
    assert "Probe passed: import torch" in done.out
    for name in SURVIVORS:
        assert environment.damaged(name) == []
    environment.run("import torch; torch.ones(2) + 1")


@pytest.mark.parametrize("kind", [PIP])
def test_the_restoration_can_be_taken_back(make_copy: Copy, workshop: Path, kind: str) -> None:
    """From the kept backup, offline: the contaminated environment again, file by file."""
    environment = make_copy(kind)
    before = contents(environment)
    removed(environment.safe_uninstall("-y", *LEFTOVERS, "--restore", "--keep-backup", **caches(workshop)))
    assert contents(environment) != before
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    done = environment.safe_uninstall("undo", "-y", **nowhere)
    assert done.status == 0, done.out + done.err
    assert contents(environment) == before
    environment.run("import torch; torch.ones(2) + 1")


def contents(environment: Installed) -> dict[str, tuple[int, int, int]]:
    """Return mode, size and time of every file of the environment that is not ours."""
    return {
        path: (state.mode, state.size, state.modified)
        for path, state in environment.state().items()
        if "/.safe-uninstall" not in path
    }


def caches(workshop: Path) -> dict[str, str]:
    """Return the variables that make uv's cache that of the tests, and keep gigabytes out of pip's."""
    return {"UV_CACHE_DIR": str(workshop / "uv-cache"), "PIP_NO_CACHE_DIR": "1"}


def metadata(environment: Installed, name: str) -> str:
    """Return the name of a distribution's dist-info directory."""
    return f"{name.replace('-', '_')}-{environment.installed()[name]}.dist-info"


@both_clients
def test_the_whole_stack_goes_at_once(make_copy: Copy, kind: str) -> None:
    """Torch together with all that it needs: done, without a word too much, and what nobody named is whole."""
    environment = make_copy(kind)
    removed(environment.safe_uninstall("-y", "torch", "triton", "nvidia-*"))
    left = set(environment.installed())
    assert left >= {"filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "sympy", "typing-extensions"}
    assert not [name for name in left if name.startswith(("nvidia", "torch", "triton"))]
    assert not (environment.site_packages / "nvidia").exists()
    assert not (environment.site_packages / "torch").exists()
    for name in left - {"pip", "setuptools"}:
        assert environment.damaged(name) == []
    environment.run("import sympy, jinja2, networkx")
    assert "torch" not in environment.pip_check()


@both_clients
def test_what_nothing_needs_goes_without_noise(make_copy: Copy, kind: str) -> None:
    """Torch itself has no consumer here."""
    environment = make_copy(kind)
    said = removed(environment.safe_uninstall("-y", "torch"))
    assert "note" not in said
    assert not (environment.site_packages / "torch").exists()
    assert environment.damaged("triton") == []
    # The overwritten wheels are as overwritten as before.
    environment.load("nvidia/cudnn/lib/libcudnn.so.9")


def test_a_consumer_that_declares_nothing(make_copy: Copy) -> None:
    """Torchcodec names no requirement: only its ELF files tell that it needs torch; FFmpeg was missing before."""
    environment = make_copy(PIP)
    environment.install("--no-deps", "torchcodec==0.7.0")
    before = environment.state()
    said = blocked(environment.safe_uninstall("-y", "-v", "torch"), "library-lost")
    assert environment.state() == before
    builds = set(re.findall(r"torchcodec/libtorchcodec_core(\d)\.so", said))
    assert builds == {"4", "5", "6", "7"}
    assert "leaves libtorch.so without a provider" in said
    assert "libavcodec" not in said
    removed(environment.safe_uninstall("-y", "torch", "torchcodec"))


def test_uv_and_pip_are_told_the_same(originals: Copy) -> None:
    """The verdict does not depend on who made the environment."""
    told = []
    for kind in (PIP, UV):
        document = originals(kind).safe_uninstall("-n", "--format", "json", LEFTOVER).document
        findings = [{key: value for key, value in item.items() if key != "help"} for item in document["findings"]]
        told.append((document["verdict"], findings))
    assert told[0] == told[1]


def test_ld_library_path_binds_only_when_asked_to(originals: Copy, tmp_path: Path) -> None:
    """A directory that happens to be set in this shell is no reason to call a removal safe."""
    environment = originals(PIP)
    shutil.copy(environment.site_packages / "nvidia/cudnn/lib/libcudnn.so.9", tmp_path)
    for more, lost in (((), True), (("--use-ld-library-path",), False)):
        done = environment.safe_uninstall("-n", "--format", "json", *more, LEFTOVER, LD_LIBRARY_PATH=str(tmp_path))
        codes = {item["code"] for item in done.document["findings"]}
        assert ("library-lost" in codes) is lost
        assert "file-lost" in codes
