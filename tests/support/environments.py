"""Builds small environments on disk: valid by default, each part overridable."""

import base64
import hashlib
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from safe_uninstall.model.environment import Environment
from safe_uninstall.model.processes import NoProcesses
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.scan.environment import find_environment
from safe_uninstall.scan.snapshot import scan
from tests.support.elf_writer import ElfSpec, build

Content = bytes | str | ElfSpec | None
"""What a file holds; None: it is named in RECORD and not there."""


@dataclass(frozen=True)
class Link:
    """A symbolic link in place of a file."""

    target: str


class EnvironmentBuilder:
    """A virtual environment whose distributions are written as an installer would write them."""

    def __init__(
        self, root: Path, *, python_version: str | None = None, uv: bool = False, python: str | None = sys.executable
    ) -> None:
        """Make the directories.

        Args:
            root: where; it must not exist or be empty.
            python_version: ``X.Y``; that of the running interpreter by default, so that installers can serve it.
            uv: whether uv made it.
            python: what ``bin/python`` links to; None for none.
        """
        version = python_version or f"{sys.version_info[0]}.{sys.version_info[1]}"
        self.prefix = Path(os.path.realpath(root))
        self.site_packages = self.prefix / "lib" / f"python{version}" / "site-packages"
        self.site_packages.mkdir(parents=True, exist_ok=True)
        self.bin = self.prefix / "bin"
        self.bin.mkdir(exist_ok=True)
        self.python = self.bin / "python"
        lines = [f"home = {os.path.dirname(os.path.realpath(sys.executable))}", "include-system-site-packages = false"]
        lines += ["uv = 0.13.9", f"version_info = {version}.0"] if uv else [f"version = {version}.0"]
        (self.prefix / "pyvenv.cfg").write_text("\n".join(lines) + "\n")
        if python is not None:
            os.symlink(os.path.realpath(python), self.python)

    def distribution(
        self,
        name: str,
        version: str = "1.0",
        files: Mapping[str, "Content | Link"] | None = None,
        *,
        requires: Iterable[str] = (),
        record: str | bytes | None = "auto",
        installer: str | None = "pip",
        scripts: Mapping[str, str] | None = None,
        hashes: bool = True,
        metadata: Mapping[str, str] | None = None,
        extra_rows: Iterable[str] = (),
        site: Path | None = None,
    ) -> Path:
        """Install a distribution over what is there, and return its dist-info directory.

        Args:
            name: as in the metadata.
            version: likewise.
            files: paths relative to site-packages (``../../`` allowed) to contents; later distributions overwrite
                earlier ones' files, as installers do.
            requires: Requires-Dist.
            record: ``auto`` for right rows, None for no RECORD, else its text.
            installer: INSTALLER, None for none.
            scripts: console scripts: name to ``module:function``; written to ``bin`` and recorded.
            hashes: whether rows have hashes and sizes.
            metadata: more files of the dist-info: name to text.
            extra_rows: more rows of RECORD, as text.
            site: another site-packages directory.
        """
        site = site or self.site_packages
        stem = f"{name.replace('-', '_')}-{version}.dist-info"
        contents: dict[str, Content | Link] = dict(files or {})
        headers = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
        headers += [f"Requires-Dist: {requirement}\n" for requirement in requires]
        contents[f"{stem}/METADATA"] = "".join(headers)
        contents[f"{stem}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
        if installer is not None:
            contents[f"{stem}/INSTALLER"] = f"{installer}\n"
        for script, target in (scripts or {}).items():
            up = os.path.relpath(self.bin, site)
            contents[f"{up}/{script}"] = f"#!{self.python}\nfrom {target.partition(':')[0]} import main\n"
        if scripts:
            lines = [f"{script} = {target}" for script, target in scripts.items()]
            contents[f"{stem}/entry_points.txt"] = "\n".join(["[console_scripts]", *lines, ""])
        for file, text in (metadata or {}).items():
            contents[f"{stem}/{file}"] = text
        rows = [self._write(site, path, content, hashes) for path, content in contents.items()]
        info = site / stem
        if record == "auto":
            rows = [*rows, *extra_rows, f"{stem}/RECORD,,"]
            _replace(info / "RECORD", "\n".join(rows).encode("utf-8", "surrogateescape") + b"\n")
        elif record is not None:
            _replace(info / "RECORD", record if isinstance(record, bytes) else record.encode())
        return info

    def environment(self) -> Environment:
        """Return what the product reads of it."""
        return find_environment(str(self.prefix), variables={}, directory="/")

    def snapshot(self, **variables: str) -> Snapshot:
        """Scan it anew; what else runs on the machine is no part of it."""
        return replace(scan(self.environment(), variables=variables), processes=NoProcesses())

    def path(self, relative: str) -> str:
        """Return the canonical path of a file of site-packages."""
        path = self.site_packages / relative
        return os.path.join(os.path.realpath(path.parent), path.name)

    def _write(self, site: Path, path: str, content: "Content | Link", hashes: bool) -> str:
        target = site / path
        if isinstance(content, Link):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            os.symlink(content.target, target)
            return f"{path},,"
        data = content_bytes(content)
        if data is not None:
            _replace(target, data)
        data = data or b""
        return f"{path},{record_hash(data)},{len(data)}" if hashes else f"{path},,"


def content_bytes(content: Content) -> bytes | None:
    """Return the bytes of a file's content."""
    if isinstance(content, ElfSpec):
        return build(content)
    return content.encode() if isinstance(content, str) else content


def record_hash(data: bytes) -> str:
    """Return a hash as RECORD writes it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def library(soname: str | None = None, *needed: str, rpath: str | None = None, text: str = "") -> ElfSpec:
    """Return a shared library; ``text`` makes its bytes differ."""
    return ElfSpec(soname=soname, needed=needed, rpath=rpath, data=text.encode())


@dataclass(frozen=True)
class TreeEntry:
    """What must not change of a path: type, permissions, and bytes or target."""

    kind: str
    mode: int
    content: str


def read_tree(root: Path | str, *, ignore: Iterable[str] = (".lock",)) -> dict[str, TreeEntry]:
    """Return every path below ``root`` with type, mode and SHA-256 (or link target)."""
    ignored = set(ignore)
    found: dict[str, TreeEntry] = {}
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if os.path.relpath(os.path.join(directory, name), root) not in ignored]
        for name in [*names, *files]:
            path = os.path.join(directory, name)
            relative = os.path.relpath(path, root)
            if relative in ignored:
                continue
            status = os.lstat(path)
            mode = stat.S_IMODE(status.st_mode)
            if stat.S_ISLNK(status.st_mode):
                found[relative] = TreeEntry("link", mode, os.readlink(path))
            elif stat.S_ISDIR(status.st_mode):
                found[relative] = TreeEntry("directory", mode, "")
            else:
                with open(path, "rb") as file:
                    found[relative] = TreeEntry("file", mode, hashlib.sha256(file.read()).hexdigest())
    return found


def _replace(path: Path, data: bytes) -> None:
    """Write a new file in the place of an old one, as installers do: never into it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(data)
