"""Wheels of aarch64 on whatever machine this is: in a copied virtual environment, a directory, a root file system."""

import os
from pathlib import Path

import pytest

from tests.support.elf_writer import EM_AARCH64
from tests.support.environments import EnvironmentBuilder, read_tree
from tests.support.installed import blocked, removed, retry, uv
from tests.support.mounted import MountedRoot
from tests.support.program import call, safe_uninstall

PLATFORM = "aarch64-unknown-linux-gnu"
NVTX = "nvidia/nvtx/lib/libnvToolsExt.so.1"
RMM = "librmm/lib64/librmm.so"


def fill(site: Path, *words: str) -> None:
    """Install wheels of aarch64 into a directory, over what is there."""
    options = ["--python-platform", PLATFORM, "--python-version", "3.11", "--no-deps", "--target", str(site)]
    retry(lambda: call([uv(), "pip", "install", "--only-binary", ":all:", *options, *words]))


@pytest.fixture
def root(tmp_path: Path) -> MountedRoot:
    """A root file system of aarch64 with librmm of two CUDA majors, one over the other, and its host libraries."""
    mounted = MountedRoot(tmp_path / "mnt", machine=EM_AARCH64)
    site = mounted.venv("/opt/venv").site_packages
    for words in (("numpy==2.2.6", "rapids-logger==0.3.0"), ("librmm-cu12==26.10.0",), ("librmm-cu13==26.10.0",)):
        fill(site, *words)
    mounted.cache(
        mounted.library(f"/usr/lib/{mounted.triplet}/{name}", soname=name)
        for name in (
            "libgcc_s.so.1",
            "libstdc++.so.6",
            "libm.so.6",
            "libpthread.so.0",
            "libdl.so.2",
            "librt.so.1",
            "libz.so.1",
        )
    )
    return mounted


def test_the_incident_in_a_root_file_system_of_another_machine(root: MountedRoot) -> None:
    """The last writer of librmm.so is the one that must not go; nothing in the tree is changed, whatever is asked."""
    before = read_tree(root.root)
    done = safe_uninstall("--root", root.root, "-n", "librmm-cu13")
    assert done.status == 3
    assert "error[file-lost]: `librmm-cu12` 26.10.0 would lose 1 file that librmm-cu13 26.10.0 overwrote" in done.out
    assert "safe-uninstall -p /opt/venv librmm-cu13 --restore" in done.out
    done = safe_uninstall("--root", root.root, "-p", "/opt/venv", "-n", "librmm-cu12")
    assert (done.status, RMM in done.out) == (0, False)
    done = safe_uninstall("check", "--root", root.root)
    assert done.status == 3
    assert f"librmm-cu12` 26.10.0 hold{'s' if '1 file' in done.out else ''} the bytes of librmm-cu13" in done.out
    done = safe_uninstall("graph", "--root", root.root)
    objects = done.document["objects"]
    own = [item for item in objects if item["path"].startswith("lib/")]
    assert len(own) > 20
    assert {item["machine"] for item in objects} == {EM_AARCH64}
    unmet = {need["name"] for item in own for need in item["needed"] if need["provider"] is None}
    # What only some other library brings in, and the dynamic loader's own name.
    assert unmet <= {"librapids_logger.so"}
    assert safe_uninstall("--root", root.root, "-y", "librmm-cu12").status == 2
    assert read_tree(root.root) == before


def test_a_virtual_environment_that_was_copied_over(tmp_path: Path) -> None:
    """Its ``bin/python`` is a link to this machine's; its wheels are aarch64's, and so are the markers."""
    builder = EnvironmentBuilder(tmp_path / "venv", python_version="3.11")
    fill(builder.site_packages, "nvidia-nvtx-cu11==11.8.86", "numpy==2.2.6")
    fill(builder.site_packages, "nvidia-nvtx-cu12==12.4.127")
    builder.distribution(
        "needy", requires=["nvidia-nvtx-cu12; platform_machine == 'aarch64'", "x; sys_platform == 'win32'"]
    )
    done = safe_uninstall("-p", builder.prefix, "-n", "nvidia-nvtx-cu11")
    assert "owned by nvidia-nvtx-cu12" in removed(done)
    blocked(safe_uninstall("-p", builder.prefix, "-n", "nvidia-nvtx-cu12"), "requirement-lost")
    done = safe_uninstall("check", "-p", builder.prefix)
    assert (done.status, "library-lost" in done.out, "requirement-lost" in done.out) == (0, False, False)
    if os.uname().machine == "x86_64":
        done = safe_uninstall("-p", builder.prefix, "-y", "nvidia-nvtx-cu11")
        assert done.status == 2
        assert "is an environment for aarch64, and this machine is x86_64" in done.err


def test_a_directory_for_another_machine_is_changed_by_uv(tmp_path: Path) -> None:
    """What the overwritten twin gets back is its own build, not that of this machine."""
    site = tmp_path / "layer"
    fill(site, "nvidia-nvtx-cu11==11.8.86")
    fill(site, "nvidia-nvtx-cu12==12.8.90")
    before = (site / NVTX).read_bytes()
    blocked(safe_uninstall("-p", site, "-n", "nvidia-nvtx-cu12"), "file-lost")
    done = safe_uninstall("-p", site, "-y", "nvidia-nvtx-cu12", "--restore")
    assert done.status == 0, done.out + done.err
    assert (site / NVTX).read_bytes() == before
    assert int.from_bytes(before[18:20], "little") == EM_AARCH64
    assert safe_uninstall("check", "-p", site).status == 0
