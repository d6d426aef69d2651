"""Builds shared objects with gcc and asks both the real dynamic loader and ours what they load."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from safe_uninstall.analysis.loader import Loader
from safe_uninstall.analysis.paths import View
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.scan.disk import DiskFileSystem
from safe_uninstall.scan.elf import read_elf
from safe_uninstall.scan.system import read_system_libraries
from tests.support.tracing import Load, simulated, trace

_STUBS = "link-time-stubs"


@dataclass(frozen=True)
class Loads:
    """What a loader brings in for one file: found files in load order, and names that nothing meets."""

    found: tuple[str, ...]
    """Real paths; the root, the dynamic loader and the vDSO left out."""
    missing: frozenset[str]


class Workshop:
    """A directory in which shared objects are built."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def build(
        self,
        path: str,
        *,
        soname: str | None = "",
        needs: Iterable[str] = (),
        rpath: str | None = None,
        runpath: str | None = None,
        options: Iterable[str] = (),
        source: str = "",
        libc: bool = False,
    ) -> Path:
        """Build a shared object.

        Args:
            path: relative to the workshop.
            soname: "" for the file name, None for none.
            needs: DT_NEEDED entries, as they will stand in the file.
            rpath: DT_RPATH.
            runpath: DT_RUNPATH.
            options: more options for gcc.
            source: C source text.
            libc: whether it needs libc too.
        """
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        command = [_gcc(), "-shared", "-fPIC", "-x", "c", "-", "-o", str(target), "-Wl,--no-as-needed"]
        if not libc:
            command.append("-nostdlib")
        name = target.name if soname == "" else soname
        if name is not None:
            command.append(f"-Wl,-soname,{name}")
        stubs = [self._stub(need) for need in needs]
        # The stubs come after the source, or they would be taken for C themselves.
        command += ["-x", "none", *stubs]
        if rpath is not None:
            command += ["-Wl,--disable-new-dtags", f"-Wl,-rpath,{rpath}"]
        if runpath is not None:
            command += ["-Wl,--enable-new-dtags", f"-Wl,-rpath,{runpath}"]
        subprocess.run([*command, *options], input=source, text=True, check=True, capture_output=True)
        return target

    def _stub(self, need: str) -> str:
        """Build an object whose soname is a needed name: that is what the linker copies into DT_NEEDED."""
        target = self.root / _STUBS / need.replace("/", "%").replace("$", "@")
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            subprocess.run(
                [_gcc(), "-shared", "-nostdlib", "-x", "c", "-", "-o", str(target), f"-Wl,-soname,{need}"],
                input="",
                text=True,
                check=True,
                capture_output=True,
            )
        return str(target)


def simulate(path: Path, *, library_path: str | None = None, directory: Path | None = None) -> Load:
    """Simulate the load of ``path`` as a program of its own."""
    root = read_object(path)
    loader = make_loader(root, library_path=library_path, directory=directory)
    return simulated(loader, loader.trace(root))


def make_loader(
    root: ElfObject,
    *,
    library_path: str | None = None,
    directory: Path | None = None,
    hidden: frozenset[str] = frozenset(),
) -> Loader:
    """Return a loader over the real file system."""
    view = View(DiskFileSystem(), deleted=hidden)
    entries = tuple(re.split("[:;]", library_path)) if library_path else ()
    return Loader(
        view,
        read_system_libraries([root.abi]),
        library_path=entries,
        working_directory=None if directory is None else str(directory),
    )


def read_object(path: Path) -> ElfObject:
    """Read one ELF file as the root of a load: opened by its path, its directory resolved."""
    item = read_elf(os.path.join(os.path.realpath(path.parent), path.name))
    assert item is not None
    return item


def assert_agree(path: Path, *, library_path: str | None = None, directory: Path | None = None) -> Loads:
    """Assert that both loaders load the same for ``path``: all objects in order, each search and what it finds."""
    real = trace(path, library_path=library_path, directory=directory)
    assert real.refused is None
    assert simulate(path, library_path=library_path, directory=directory) == real
    return Loads(tuple(found for _, found in real.objects), frozenset(real.missing))


def assert_refused(path: Path, name: str) -> None:
    """Assert that the host's loader gives up on ``path``, as ours does when it comes to ``name``."""
    assert trace(path).refused is not None
    assert [os.path.basename(item) for item in simulate(path).missing] == [os.path.basename(name)]


def names(loads: Loads) -> Mapping[str, str]:
    """Return file name to the name of its directory, for all files found."""
    return {os.path.basename(path): os.path.basename(os.path.dirname(path)) for path in loads.found}


def _gcc() -> str:
    found = shutil.which("gcc")
    assert found is not None, "the loader tests need gcc"
    return found
