"""Builds small root file systems by hand: a C library, a Python, an ld.so.cache, and a virtual environment."""

import os
from collections.abc import Iterable
from pathlib import Path

from tests.support.elf_writer import EM_AARCH64, EM_X86_64, ET_EXEC, write_elf
from tests.support.environments import EnvironmentBuilder
from tests.support.ld_cache_writer import AARCH64_FLAGS, X86_64_FLAGS, Library, new_cache

LOADERS = {EM_X86_64: "lib64/ld-linux-x86-64.so.2", EM_AARCH64: "lib/ld-linux-aarch64.so.1"}
TRIPLETS = {EM_X86_64: "x86_64-linux-gnu", EM_AARCH64: "aarch64-linux-gnu"}
NAMES = {EM_X86_64: "x86_64", EM_AARCH64: "aarch64"}
_FLAGS = {EM_X86_64: X86_64_FLAGS, EM_AARCH64: AARCH64_FLAGS}


class MountedRoot:
    """A root file system as Debian lays it out, below a directory of this machine."""

    def __init__(self, root: Path, *, machine: int = EM_X86_64, version: str = "3.11", patch: str = "2") -> None:
        """Make ``/usr`` with a Python, and the links of a merged ``/usr``.

        Args:
            root: must not exist.
            machine: ``e_machine`` of all that is in it.
            version: of its Python.
            patch: third part of that.
        """
        self.root = root
        self.machine = machine
        self.version = version
        for name in ("bin", "lib", "lib64"):
            (root / "usr" / name).mkdir(parents=True)
            (root / name).symlink_to(f"usr/{name}")
        self.triplet = TRIPLETS[machine]
        self.library(f"/usr/lib/{self.triplet}/libc.so.6", soname="libc.so.6")
        # What is compiled into a loader: its directories, one after the other.
        directories = [f"/lib/{self.triplet}/", f"/usr/lib/{self.triplet}/", "/lib/", "/usr/lib/"]
        loader = root / LOADERS[machine]
        loader.parent.mkdir(parents=True, exist_ok=True)
        write_elf(loader, machine=machine, data=b"\0" + b"\0".join(map(os.fsencode, directories)) + b"\0")
        write_elf(
            root / f"usr/bin/python{version}",
            machine=machine,
            elf_type=ET_EXEC,
            interpreter=f"/{LOADERS[machine]}",
            needed=("libc.so.6",),
        )
        (root / "usr/bin/python3").symlink_to(f"python{version}")
        (root / f"usr/lib/python{version}").mkdir()
        (root / f"usr/lib/python{version}/os.py").write_text("")
        (root / "var/lib/dpkg").mkdir(parents=True)
        (root / "var/lib/dpkg/status").write_text(
            f"Package: libpython{version}-minimal\nStatus: install ok installed\nVersion: {version}.{patch}-6+deb12u3\n"
        )

    def library(self, path: str, *needed: str, soname: str | None = None, rpath: str | None = None) -> str:
        """Write a shared library of the tree's machine at a path in the tree."""
        write_elf(self.root / path.lstrip("/"), machine=self.machine, soname=soname, needed=needed, rpath=rpath)
        return path

    def cache(self, paths: Iterable[str]) -> None:
        """Write ld.so.cache with libraries by their paths in the tree."""
        libraries = tuple(Library(os.path.basename(path), path, _FLAGS[self.machine]) for path in paths)
        (self.root / "etc").mkdir(exist_ok=True)
        (self.root / "etc/ld.so.cache").write_bytes(new_cache(libraries))

    def venv(self, path: str = "/opt/venv") -> EnvironmentBuilder:
        """Make a virtual environment whose interpreter is an absolute link to the tree's own."""
        builder = EnvironmentBuilder(self.root / path.lstrip("/"), python_version=self.version, python=None)
        builder.python.symlink_to("/usr/bin/python3")
        (builder.prefix / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {self.version}.2\n")
        return builder
