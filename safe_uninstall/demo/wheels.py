"""The three wheels of the incident in miniature: a program, its library, and a leftover that brings the same path."""

import base64
import hashlib
import os
import zipfile
from collections.abc import Mapping

from safe_uninstall.demo.elf import shared_library

PROGRAM = "demo-torch"
OWN = "demo-cudnn-cu12"
LEFTOVER = "demo-cudnn-cu13"
SONAME = "libdemocudnn.so.9"
_LIBRARY = f"demo_nvidia/cudnn/lib/{SONAME}"

_INIT = """\
import ctypes, os
ctypes.CDLL(os.path.join(os.path.dirname(__file__), "lib", "libdemotorch.so"))
print("demo_torch: all libraries loaded")
"""


def write_wheels(directory: str) -> None:
    """Write the wheels into ``directory``."""
    os.makedirs(directory, exist_ok=True)
    torch = shared_library("libdemotorch.so", needed=(SONAME,), rpath="$ORIGIN/../../demo_nvidia/cudnn/lib")
    _write(
        directory,
        PROGRAM,
        "2.9.1",
        {"demo_torch/__init__.py": _INIT.encode(), "demo_torch/lib/libdemotorch.so": torch},
        requires=f"{OWN}==9.10.2.21",
    )
    for name, version, note in ((OWN, "9.10.2.21", b"cu12"), (LEFTOVER, "9.24.0.43", b"cu13, and longer")):
        _write(
            directory,
            name,
            version,
            {
                _LIBRARY: shared_library(SONAME, filler=note),
                "demo_nvidia/cudnn/include/cudnn.h": b"/* " + note + b" */\n",
                f"demo_nvidia/cudnn/only_{name[-4:]}.txt": note,
            },
        )


def _write(directory: str, name: str, version: str, files: Mapping[str, bytes], *, requires: str | None = None) -> None:
    stem = f"{name.replace('-', '_')}-{version}"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    if requires is not None:
        metadata += f"Requires-Dist: {requires}\n"
    contents = {
        **files,
        f"{stem}.dist-info/METADATA": metadata.encode(),
        f"{stem}.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: demo\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in contents.items()]
    rows.append(f"{stem}.dist-info/RECORD,,")
    contents[f"{stem}.dist-info/RECORD"] = ("\n".join(rows) + "\n").encode()
    with zipfile.ZipFile(os.path.join(directory, f"{stem}-py3-none-any.whl"), "w") as archive:
        for path, data in contents.items():
            archive.writestr(path, data)


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
