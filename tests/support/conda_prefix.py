"""Builds conda prefixes as the package specification describes them: ``conda-meta``, and what its records list."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.elf_writer import ET_EXEC, ElfSpec, build
from tests.support.environments import Content, EnvironmentBuilder, content_bytes

SITE = "lib/python3.11/site-packages"


class CondaPrefix(EnvironmentBuilder):
    """A conda environment with a Python whose RPATH is ``$ORIGIN/../lib``, as all of conda's have."""

    def __init__(self, root: Path, *, command: str = "/opt/conda/bin/conda create -n x python") -> None:
        super().__init__(root, python_version="3.11", python=None)
        (self.prefix / "pyvenv.cfg").unlink()
        (self.prefix / "conda-meta").mkdir()
        (self.prefix / "conda-meta/history").write_text(f"==> 2026-01-01 <==\n# cmd: {command}\n# conda version: 25\n")
        python = build(ElfSpec(elf_type=ET_EXEC, rpath="$ORIGIN/../lib", interpreter="/lib64/ld-linux-x86-64.so.2"))
        self.package("python", "3.11.4", {"bin/python3.11": python})
        (self.prefix / "bin/python3.11").chmod(0o755)
        self.python.symlink_to("python3.11")

    def package(
        self,
        name: str,
        version: str,
        files: Mapping[str, Content],
        *,
        dist: str | None = None,
        requires: tuple[str, ...] = (),
        changes: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> str:
        """Link a package into the prefix, and return its label.

        Args:
            name: conda's name.
            version: likewise.
            files: paths relative to the prefix, to contents.
            dist: name of the Python distribution in it; its RECORD is that of the build.
            requires: Requires-Dist of that.
            changes: per path what its entry of ``paths_data`` says besides or instead.
        """
        contents = {path: content_bytes(content) for path, content in files.items()}
        if dist is not None:
            info = f"{SITE}/{dist}-{version}.dist-info"
            headers = [f"Metadata-Version: 2.1\nName: {dist}\nVersion: {version}\n"]
            headers += [f"Requires-Dist: {item}\n" for item in requires]
            contents[f"{info}/METADATA"] = "".join(headers).encode()
            contents[f"{info}/INSTALLER"] = b"conda\n"
            rows = [path.removeprefix(f"{SITE}/") + ",," for path in contents if path.startswith(SITE)]
            contents[f"{info}/RECORD"] = "\n".join([*rows, ""]).encode()
        entries = []
        for path, data in contents.items():
            entry: dict[str, Any] = {"_path": path, "path_type": "hardlink"}
            if data is not None:
                target = self.prefix / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                target.write_bytes(data)
                entry |= {"sha256": hashlib.sha256(data).hexdigest(), "size_in_bytes": len(data)}
            entries.append({**entry, **(changes or {}).get(path, {})})
        label = f"{name}-{version}-h0_0"
        record: dict[str, Any] = {"name": name, "version": version, "build": "h0_0", "files": list(contents)}
        record["paths_data"] = {"paths_version": 1, "paths": entries}
        (self.prefix / f"conda-meta/{label}.json").write_text(json.dumps(record))
        return label
