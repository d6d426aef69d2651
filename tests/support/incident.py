"""Makes the environments of the incident at full size: some 6 GB each."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.installed import PIP, WITHOUT_PIP, Installed, make

TORCH = "torch==2.9.1"
LEFTOVERS = (
    "nvidia-cudnn-cu13==9.24.0.43",
    "nvidia-nccl-cu13==2.30.7",
    "nvidia-cusparselt-cu13==0.8.1",
    "nvidia-nvshmem-cu13==3.4.5",
)
DIRECTORY = "SAFE_UNINSTALL_TEST_DIRECTORY"
"""Variable: where the environments are made; they stay there and are used again. Default: a directory that goes."""


@contextmanager
def workshop() -> Iterator[Path]:
    """Give the directory in which everything large is made; on one file system, so that links can be made."""
    kept = os.environ.get(DIRECTORY)
    root = Path(kept or tempfile.mkdtemp(prefix="safe-uninstall-incident-"))
    root.mkdir(parents=True, exist_ok=True)
    try:
        yield root
    finally:
        if not kept:
            shutil.rmtree(root)


def incident(root: Path, kind: str) -> Installed:
    """Return the incident's environment as one kind of client makes it, made once per workshop."""
    prefix, done = root / f"incident-{kind}", root / f"incident-{kind}.done"
    if done.exists():
        return Installed(prefix, kind)
    shutil.rmtree(prefix, ignore_errors=True)
    if kind == WITHOUT_PIP:
        # What pip installs from outside is what it installs from inside: 3 GB need not come twice.
        copied = incident(root, PIP).copy(prefix)
        for path in [*copied.site_packages.glob("pip"), *copied.site_packages.glob("pip-*.dist-info")]:
            shutil.rmtree(path)
        environment = Installed(prefix, kind)
    else:
        environment = make(prefix, kind)
        options = ("--no-cache-dir",) if kind == PIP else ("--cache-dir", str(root / "uv-cache"))
        environment.install(*options, TORCH)
        environment.install(*options, "--no-deps", *LEFTOVERS)
    done.touch()
    return environment
