"""``--root``: an environment in a mounted tree is judged as it would be in there; nothing of it is changed or run."""

import shlex
from pathlib import Path

import pytest

from tests.support.elf_writer import EM_AARCH64, EM_X86_64, ElfSpec
from tests.support.environments import EnvironmentBuilder, read_tree
from tests.support.mounted import NAMES, MountedRoot
from tests.support.program import Finished, safe_uninstall


def tagged(machine: int) -> dict[str, str]:
    """Return the WHEEL file of a wheel for a machine."""
    return {"WHEEL": f"Wheel-Version: 1.0\nTag: py3-none-manylinux2014_{NAMES[machine]}\n"}


def library(machine: int, soname: str | None = None, *needed: str, rpath: str | None = None, text: str = "") -> ElfSpec:
    """Return a shared library for a machine."""
    return ElfSpec(machine=machine, soname=soname, needed=needed, rpath=rpath, data=text.encode())


def fill(builder: EnvironmentBuilder, machine: int) -> None:
    """Install the incident in miniature: torch, and the leftover that overwrote its cuDNN."""
    wheel = tagged(machine)
    rpath = "$ORIGIN/../../nvidia/cudnn/lib"
    files = {"torch/lib/libtorch.so": library(machine, None, "libcudnn.so.9", "libcuda_host.so.1", rpath=rpath)}
    requires = ["cu12; platform_machine == 'aarch64'", "absent; platform_machine == 'mips'"]
    builder.distribution("torch", files=files, metadata=wheel, requires=requires)
    for name in ("cu12", "cu13"):
        path = "nvidia/cudnn/lib/libcudnn.so.9"
        builder.distribution(name, files={path: library(machine, "libcudnn.so.9", text=name)}, metadata=wheel)


def make(root: Path, machine: int) -> MountedRoot:
    """Make a tree with the incident in ``/opt/venv``."""
    mounted = MountedRoot(root, machine=machine)
    fill(mounted.venv(), machine)
    mounted.cache([mounted.library("/usr/local/cuda/lib/libcuda_host.so.1")])
    return mounted


@pytest.fixture
def mounted(tmp_path: Path) -> MountedRoot:
    """A tree of another machine."""
    return make(tmp_path / "mnt", EM_AARCH64)


@pytest.fixture(params=[EM_X86_64, EM_AARCH64], ids=["x86_64", "aarch64"])
def each(request: pytest.FixtureRequest, tmp_path: Path) -> MountedRoot:
    """A tree of one machine and of another."""
    return make(tmp_path / "mnt", request.param)


def look(mounted: MountedRoot, *words: str) -> Finished:
    """Run the program on a tree; whatever it says, nothing in the tree has changed."""
    before = read_tree(mounted.root)
    done = safe_uninstall("--root", mounted.root, *words)
    assert read_tree(mounted.root) == before
    return done


def test_a_plan_for_a_tree(each: MountedRoot) -> None:
    """It says what it looks at, blocks as it would in there, and its commands are those to run in there."""
    done = look(each, "-n", "cu13")
    assert done.status == 3
    assert done.err.startswith(f"Looking at /opt/venv in {each.root}. Commands in what follows")
    assert "error[library-lost]: removing `cu13` 1.0 leaves libcudnn.so.9 without a provider" in done.out
    assert "safe-uninstall -p /opt/venv cu13 --restore" in done.out
    assert done.out.endswith("Nothing changed.\n")


def test_a_plan_that_takes_no_harm(mounted: MountedRoot) -> None:
    """Removing all of it is allowed, and still only looked at."""
    done = look(mounted, "--format", "diff", "*")
    assert done.status == 0
    done = look(mounted, "-n", "*")
    assert done.status == 0
    assert "Would remove 3 distributions" in done.out
    assert done.out.endswith("Nothing changed.\n")


def test_documents_of_a_tree(mounted: MountedRoot) -> None:
    """Say where the tree is; nothing but the document is printed."""
    done = look(mounted, "-n", "--format", "json", "cu13")
    assert (done.status, done.err) == (3, "")
    assert done.document["environment"]["root"] == str(mounted.root)
    assert done.document["environment"]["prefix"] == "/opt/venv"


def test_the_graph_of_a_tree_goes_by_its_own_loader(each: MountedRoot) -> None:
    """What ld.so.cache of the tree has is found, by its path in there."""
    done = safe_uninstall("graph", "--root", each.root)
    nodes = {item["path"]: item for item in done.document["objects"]}
    needed = nodes["lib/python3.11/site-packages/torch/lib/libtorch.so"]["needed"]
    assert [(item["provider"], item["how"]) for item in needed] == [
        ("lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9", "rpath"),
        ("/usr/local/cuda/lib/libcuda_host.so.1", "cache"),
    ]
    assert nodes["lib/python3.11/site-packages/torch/lib/libtorch.so"]["machine"] == each.machine


def test_check_and_why_of_a_tree(mounted: MountedRoot) -> None:
    """They judge by its files, and by markers of its machine: a requirement for another one is none."""
    done = look(mounted, "check")
    assert done.status == 3
    assert "libcudnn" in done.out
    assert "absent" not in done.out
    done = look(mounted, "why", "libcudnn.so.9")
    assert done.status == 0
    assert "torch/lib/libtorch.so" in done.out


def test_markers_are_those_of_the_tree(each: MountedRoot) -> None:
    """What is required on aarch64 alone is lost there alone."""
    done = look(each, "-n", "cu12", "cu13", "torch")
    assert done.status == 0
    done = look(each, "-n", "--format", "json", "cu12", "cu13")
    codes = {item["code"] for item in done.document["findings"]}
    assert ("requirement-lost" in codes) is (each.machine == EM_AARCH64)


@pytest.mark.parametrize(
    ("words", "inside"),
    [
        (("cu13",), "cu13"),
        (("-y", "cu13"), "-y cu13"),
        (("-p", "/opt/venv", "-y", "cu13"), "-y cu13"),
        (("-n", "cu13", "--restore"), "-n cu13 --restore"),
        (("-n", "--rewrite", "cu13"), "-n --rewrite cu13"),
        (("-n", "--install", "x", "cu13"), "-n --install x cu13"),
        (("-n", "--probe", "import torch", "cu13"), "-n --probe 'import torch' cu13"),
        (("check", "--fix", "-y"), "check --fix -y"),
    ],
)
def test_whatever_would_change_a_tree_or_run_something_in_it_is_refused(
    mounted: MountedRoot, words: tuple[str, ...], inside: str
) -> None:
    """With status 2, and the whole command that does it in there."""
    done = look(mounted, *words)
    assert (done.status, done.out) == (2, "")
    assert f"help: run it inside the tree: safe-uninstall -p /opt/venv {inside}\n" in done.err
    assert done.last == "Nothing changed."


@pytest.mark.parametrize("command", ["apply", "undo", "recover", "history"])
def test_commands_about_changes_do_not_look_at_trees(mounted: MountedRoot, command: str) -> None:
    """They refuse, rather than act on this machine; the command inside is told."""
    words = [command, *(["plan.json"] if command == "apply" else []), "-p", "/opt/venv"]
    done = look(mounted, *words)
    assert (done.status, done.out) == (2, "")
    assert f"help: run it inside the tree: safe-uninstall {shlex.join(words)}\n" in done.err
    done = safe_uninstall(*words, variables={"SAFE_UNINSTALL_ROOT": str(mounted.root)})
    assert done.status == 2


def test_keep_needed_and_cascade_need_no_wheels(mounted: MountedRoot) -> None:
    """So they can be planned from outside."""
    done = look(mounted, "-n", "cu12", "cu13", "--cascade")
    assert done.status == 0
    assert "torch" in done.out


def test_consumers_in_a_directory_of_the_tree(mounted: MountedRoot) -> None:
    """By its path in there, or as this machine sees it."""
    site = "/opt/venv/lib/python3.11/site-packages/nvidia/cudnn/lib"
    mounted.library("/srv/cache/ext.so", "libcudnn.so.9", rpath=site)
    for directory in ("/srv/cache", str(mounted.root / "srv/cache")):
        done = look(mounted, "-n", "cu12", "cu13", "torch", "--consumers-in", directory)
        assert done.status == 3
        assert "/srv/cache/ext.so" in done.out


def test_a_tree_that_is_none(tmp_path: Path) -> None:
    """Status 2, and which directory is meant."""
    done = safe_uninstall("--root", tmp_path / "absent", "-n", "x")
    assert done.status == 2
    assert "there is no directory" in done.err


def test_a_venv_of_another_machine_that_was_copied_here(tmp_path: Path) -> None:
    """Its interpreter is then a link to this machine's: what its wheels are for tells; it can be looked at only."""
    builder = EnvironmentBuilder(tmp_path / "venv")
    foreign = EM_AARCH64
    fill(builder, foreign)
    done = safe_uninstall("-p", builder.prefix, "-n", "--format", "json", "cu12", "cu13")
    assert done.status == 3
    assert {item["code"] for item in done.document["findings"]} >= {"library-lost", "requirement-lost"}
    done = safe_uninstall("-p", builder.prefix, "-y", "torch", "cu12", "cu13")
    assert done.status == 2
    assert "is an environment for aarch64, and this machine is" in done.err
