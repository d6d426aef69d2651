"""The graph of a large environment against the real dynamic loader: every need of every object."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.installed import PIP, Installed
from tests.support.tracing import dynamic_loader

WHEELS = (
    "av", "cffi", "contourpy", "cryptography", "duckdb", "fiona", "grpcio", "h5py", "kiwisolver", "lightgbm", "lxml",
    "matplotlib", "msgpack", "numba", "numpy", "onnxruntime", "opencv-python-headless", "orjson", "pandas", "pillow",
    "polars", "protobuf", "psutil", "psycopg2-binary", "pyarrow", "pymupdf", "pyproj", "pyyaml", "pyzmq", "rasterio",
    "scikit-learn", "scipy", "sentencepiece", "shapely", "tokenizers", "torchvision==0.24.1", "umf", "xxhash",
)  # fmt: skip
"""Wheels with extension modules and vendored libraries, of many build tools."""

_OPTIONS = ("--no-cache-dir", "--only-binary", ":all:")


def test_the_graph_agrees_with_the_loader(make_copy: Callable[[str], Installed]) -> None:
    """Each object as the root of its own load: the file that meets each of its needs is the one that glibc takes."""
    environment = make_copy(PIP)
    environment.install(*_OPTIONS, "--upgrade-strategy", "only-if-needed", *WHEELS)
    host = {"x86_64": 62, "aarch64": 183}[os.uname().machine]
    objects = [item for item in environment.graph() if (item["machine"], item["bits"]) == (host, 64)]
    assert len(objects) > 600
    needs = 0
    differing = []
    for item in objects:
        path = environment.prefix / item["path"]
        real = trace(path)
        if real is None:
            assert not item["needed"], f"{path} has needs, and the loader does not load it"
            continue
        for need in item["needed"]:
            needs += 1
            ours = None if need["provider"] is None else os.path.realpath(environment.prefix / need["provider"])
            if real.get(need["name"], "(unknown to the loader)") != ours:
                differing.append((item["path"], need, real.get(need["name"], "(unknown to the loader)")))
    assert needs > 3000
    assert not differing, "\n".join(map(str, differing[:50]))


def trace(path: Path) -> dict[str, str | None] | None:
    """Return needed name to real path, None where not found; None for what is not loaded dynamically."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("LD_")}
    done = subprocess.run(
        [dynamic_loader(), str(path)],
        env={**variables, "LD_TRACE_LOADED_OBJECTS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "statically linked" in done.stdout:
        return None
    return dict(_lines(done.stdout))


def _lines(text: str) -> Iterator[tuple[str, str | None]]:
    for line in text.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if not arrow:
            # An absolute path, or the loader itself and the vDSO, which have no file name apart from their path.
            bare = name.rpartition(" (")[0] or name
            yield os.path.basename(bare), os.path.realpath(bare)
            yield bare, os.path.realpath(bare)
        elif rest == "not found":
            yield name, None
        else:
            yield name, os.path.realpath(rest.rpartition(" (")[0] or rest)
