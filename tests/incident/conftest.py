"""The environments of the incident: some 6 GB each, made once, never changed; tests that change one copy links."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.installed import KINDS, PIP, UV, WITHOUT_PIP, Installed, make

TORCH = "torch==2.9.1"
LEFTOVERS = (
    "nvidia-cudnn-cu13==9.24.0.43",
    "nvidia-nccl-cu13==2.30.7",
    "nvidia-cusparselt-cu13==0.8.1",
    "nvidia-nvshmem-cu13==3.4.5",
)
DIRECTORY = "SAFE_UNINSTALL_TEST_DIRECTORY"
"""Variable: where the environments are made; they stay there and are used again. Default: a directory that goes."""

Builder = Callable[[str], Installed]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.incident)


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the directory in which everything large is made; on one file system, so that links can be made."""
    kept = os.environ.get(DIRECTORY)
    root = Path(kept) if kept else tmp_path_factory.mktemp("incident")
    root.mkdir(parents=True, exist_ok=True)
    yield root
    if not kept:
        shutil.rmtree(root)


@pytest.fixture(scope="session")
def originals(workshop: Path) -> Builder:
    """Return a function that makes the incident's environment with one kind of client, once."""

    def build(kind: str) -> Installed:
        prefix, done = workshop / f"incident-{kind}", workshop / f"incident-{kind}.done"
        if done.exists():
            return Installed(prefix, kind)
        shutil.rmtree(prefix, ignore_errors=True)
        if kind == WITHOUT_PIP:
            # What pip installs from outside is what it installs from inside: 3 GB need not come twice.
            environment = build(PIP).copy(prefix)
            for path in [*environment.site_packages.glob("pip"), *environment.site_packages.glob("pip-*.dist-info")]:
                shutil.rmtree(path)
            environment = Installed(prefix, kind)
        else:
            environment = make(prefix, kind)
            options = ("--no-cache-dir",) if kind == PIP else ("--cache-dir", str(workshop / "uv-cache"))
            environment.install(*options, TORCH)
            environment.install(*options, "--no-deps", *LEFTOVERS)
        done.touch()
        return environment

    return build


@pytest.fixture(params=KINDS)
def incident(request: pytest.FixtureRequest, originals: Builder) -> Iterator[Installed]:
    """Return the environment itself, for each kind of client; the test must leave it as it is."""
    environment = originals(request.param)
    before = environment.state()
    yield environment
    assert environment.state() == before, "nothing may change"


@pytest.fixture
def make_copy(workshop: Path, originals: Builder) -> Iterator[Callable[[str], Installed]]:
    """Return a function that makes a copy that a test may change, and hold that the original stays as it is."""
    prefix = workshop / "copy"
    shutil.rmtree(prefix, ignore_errors=True)
    before: dict[str, object] = {}

    def copy(kind: str) -> Installed:
        original = originals(kind)
        before[kind] = original.state()
        return original.copy(prefix)

    yield copy
    shutil.rmtree(prefix, ignore_errors=True)
    for kind, state in before.items():
        assert originals(kind).state() == state, "hard links into the original must not be written through"


both_clients = pytest.mark.parametrize("kind", [PIP, UV])
