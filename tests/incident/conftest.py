"""The environments of the incident, made once and never changed; tests that change one copy links."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import incident as making
from tests.support.installed import KINDS, PIP, UV, Installed

Builder = Callable[[str], Installed]

both_clients = pytest.mark.parametrize("kind", [PIP, UV])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.incident)


@pytest.fixture(scope="session")
def workshop() -> Iterator[Path]:
    """Return the directory in which everything large is made."""
    with making.workshop() as root:
        yield root


@pytest.fixture(scope="session")
def originals(workshop: Path) -> Builder:
    """Return a function that makes the incident's environment with one kind of client, once."""
    return lambda kind: making.incident(workshop, kind)


@pytest.fixture(params=KINDS)
def incident(request: pytest.FixtureRequest, originals: Builder) -> Iterator[Installed]:
    """Return the environment itself, for each kind of client; the test must leave it as it is."""
    environment = originals(request.param)
    before = environment.state()
    yield environment
    assert environment.state() == before, "nothing may change"


@pytest.fixture
def make_copy(workshop: Path, originals: Builder) -> Iterator[Builder]:
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
