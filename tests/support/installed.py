"""Environments of real wheels, made by the ordinary clients, and what can be asked of them."""

import base64
import csv
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tests.support.program import Finished, call, safe_uninstall

PIP, UV, WITHOUT_PIP = "pip", "uv", "without-pip"
KINDS = (PIP, UV, WITHOUT_PIP)
"""Made by venv with pip inside; by uv; by venv without pip, and filled from outside."""

_ATTEMPTS = 3
_PAUSE = 10
"""Seconds before a download is tried again."""
_PYTHONS = ((3, 11), (3, 12), (3, 10))
"""Those for which all wheels of the cases exist, first choice first."""

Result = TypeVar("Result")


class FileState(NamedTuple):
    """What changes of a file when anything about it does; its bytes need not be read."""

    mode: int
    inode: int
    size: int
    modified: int


@dataclass(frozen=True)
class Installed:
    """An environment, with the client that fills it."""

    prefix: Path
    kind: str

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.prefix / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """Where its distributions are."""
        return next(self.prefix.glob("lib/python*/site-packages"))

    def install(self, *words: str) -> None:
        """Install requirements with the environment's client; downloads are tried again, then fail loudly."""
        retry(lambda: call([*self._client("install"), *words]))

    def pip_uninstall(self, name: str) -> None:
        """Uninstall as users do today."""
        call([*self._client("uninstall"), *(() if self.kind == UV else ("-y",)), name])

    def pip_check(self) -> str:
        """Return what ``pip check`` says."""
        return call(self._client("check"), check=False).stdout.strip()

    def safe_uninstall(self, *words: str, **variables: str) -> Finished:
        """Run the product on it."""
        return safe_uninstall("-p", self.prefix, *words, variables=variables)

    def graph(self) -> list[dict[str, Any]]:
        """Return the objects of the product's graph."""
        done = safe_uninstall("graph", "-p", self.prefix, "--format", "json")
        assert (done.status, done.err) == (0, "")
        objects: list[dict[str, Any]] = done.document["objects"]
        return objects

    def run(self, code: str, *, works: bool = True) -> str:
        """Run Python code in a process of its own and return its output."""
        done = call([self.python, "-c", code], check=works)
        assert works or done.returncode != 0, f"it was to fail: {code}\n{done.stdout}"
        return done.stdout

    def load(self, relative: str, *, works: bool = True) -> str:
        """Load a library of site-packages with ctypes, in a process of its own."""
        return self.run(f"import ctypes; ctypes.CDLL({str(self.site_packages / relative)!r})", works=works)

    def installed(self) -> dict[str, str]:
        """Return name and version of what is installed, as the names of its dist-info directories tell."""
        found = {}
        for path in self.site_packages.glob("*.dist-info"):
            name, _, version = path.name.removesuffix(".dist-info").rpartition("-")
            found[re.sub(r"[-_.]+", "-", name).lower()] = version
        return found

    def damaged(self, name: str) -> list[str]:
        """Return the files of a distribution that are not there, or not with the bytes that its RECORD names."""
        stem = re.sub(r"[-_.]+", "_", name).lower()
        found = [path for path in self.site_packages.glob("*.dist-info") if path.name.lower().startswith(f"{stem}-")]
        assert len(found) == 1, f"{name} is installed {len(found)} times"
        rows = list(csv.reader((found[0] / "RECORD").read_text().splitlines()))
        assert len(rows) > 2
        return [row[0] for row in rows if not self._is_whole(row[0], row[1])]

    def state(self) -> dict[str, FileState]:
        """Return the state of every path of the environment."""
        found: dict[str, FileState] = {}
        waiting = [str(self.prefix)]
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.name in (".lock", "__pycache__", "REQUESTED"):
                        # uv makes the first, imports of the tests write the second, pip writes anew into the third.
                        continue
                    status = entry.stat(follow_symlinks=False)
                    is_directory = entry.is_dir(follow_symlinks=False)
                    modified = 0 if is_directory else status.st_mtime_ns
                    size = 0 if is_directory else status.st_size
                    found[entry.path] = FileState(status.st_mode, status.st_ino, size, modified)
                    if is_directory:
                        waiting.append(entry.path)
        return found

    def copy(self, prefix: Path) -> "Installed":
        """Return a copy whose files are hard links; installers rename and unlink, and so leave the original alone."""
        call(["cp", "-al", self.prefix, prefix])
        return Installed(prefix, self.kind)

    def _client(self, command: str) -> list[str]:
        if self.kind == PIP:
            return [str(self.python), "-m", "pip", command]
        if self.kind == UV:
            return [uv(), "pip", command, "--python", str(self.python)]
        return [sys.executable, "-m", "pip", "--python", str(self.python), command]

    def _is_whole(self, relative: str, recorded: str) -> bool:
        path = self.site_packages / relative
        if not path.exists():
            return False
        algorithm, _, expected = recorded.partition("=")
        if not expected:
            return True
        digest = hashlib.new(algorithm)
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        return base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode() == expected


def make(prefix: Path, kind: str) -> Installed:
    """Make an empty environment."""
    if kind == UV:
        call([uv(), "venv", "--python", base_python(), prefix])
    else:
        options = ["--without-pip"] if kind == WITHOUT_PIP else []
        call([base_python(), "-m", "venv", *options, prefix])
    return Installed(prefix, kind)


def download(directory: Path, *words: str) -> Path:
    """Download one wheel with pip and return its path."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--dest", str(directory)]
    retry(lambda: call([*command, *words]))
    (wheel,) = directory.glob("*.whl")
    return wheel


def base_python() -> str:
    """Return an interpreter for which the wheels of the cases exist: the running one if it will do."""
    if sys.version_info[:2] in _PYTHONS:
        return getattr(sys, "_base_executable", sys.executable)
    for version in _PYTHONS:
        command = [uv(), "python", "find", "--system", "--no-python-downloads", ".".join(map(str, version))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    raise AssertionError("the wheels of the cases need CPython 3.10, 3.11 or 3.12")


def uv() -> str:
    """Return the uv that is installed with the tests."""
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if beside.exists() else shutil.which("uv")
    assert found is not None, "the tests need uv"
    return found


def retry(attempt: Callable[[], Result]) -> Result:
    """Try up to three times, with a pause; the last failure is the answer."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except AssertionError as error:
            print(f"trying again: {error}", file=sys.stderr)
            time.sleep(_PAUSE)
    return attempt()


def blocked(done: Finished, *codes: str) -> str:
    """Hold that a run was blocked by errors of exactly these codes, and return what it printed."""
    assert done.status == 3, done.out + done.err
    assert set(re.findall(r"^error\[([a-z-]+)\]", done.out, re.MULTILINE)) == set(codes), done.out
    assert done.last.startswith("Blocked: ")
    assert done.last.endswith("Nothing changed.")
    return done.out


def removed(done: Finished) -> str:
    """Hold that a run did what was asked, without an error or a warning, and return what it printed."""
    assert done.status == 0, done.out + done.err
    assert not re.search(r"^(error|warning)\[", done.out, re.MULTILINE), done.out
    # Only of downloads, which may take minutes, is anything said beside the result.
    assert all(line.startswith(("fetching ", "resolving ")) for line in done.err.splitlines()), done.err
    return done.out


def follow(command: list[str], **variables: str) -> None:
    """Run a command that a message offers; the programs are the tests' own, which need not be on PATH.

    Ours are said yes to beforehand, since there is no terminal to ask on.
    """
    if command[0] == "pip":
        command = [sys.executable, "-m", *command]
    elif command[0] == "uv":
        command = [uv(), *command[1:]]
    elif command[0] == "safe-uninstall":
        command = [sys.executable, "-m", "safe_uninstall", *command[1:], "-y"]
    retry(lambda: call(command, variables=variables))


def offered(done: Finished) -> list[str]:
    """Return the commands of the rewrites that a blocked plan's document offers."""
    assert done.document["verdict"] == "block"
    return [item["command"] for item in done.document["alternatives"]]


def command_lines(output: str, word: str) -> Iterable[list[str]]:
    """Yield the whole commands that a message offers and that hold ``word``."""
    for line in output.splitlines():
        if line.startswith("        ") and word in line:
            yield shlex.split(line)
