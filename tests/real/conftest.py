"""Environments of small real wheels: made once per kind of client, copied for every test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.installed import KINDS, Installed, download, make

CASES: dict[str, tuple[tuple[str, ...], ...]] = {
    "twins": (("nvidia-nvtx-cu11==11.8.86",), ("nvidia-nvtx-cu12==12.1.105",)),
    "last-writer": (("--no-deps", "librmm-cu12==26.10.0"), ("--no-deps", "librmm-cu13==26.10.0")),
    "sole-provider": (("PyMuPDF==1.24.9",),),
    "private-twins": (
        ("numpy==2.2.6", "scipy==1.15.3"),
        ("--no-deps", "{xgboost}"),
        ("--no-deps", "xgboost-cpu==2.1.4"),
    ),
    "preloaded": (("--no-deps", "rapids-logger==0.3.0", "librmm-cu12==26.10.0", "rmm-cu12==26.10.0"),),
    "plugin": (("intel-cmplr-lib-ur==2025.1.1",),),
    "opencv": (
        ("--no-deps", "numpy==2.2.6", "opencv-python==4.10.0.84"),
        ("--no-deps", "opencv-python-headless==4.10.0.84"),
    ),
    "nvtx": (("nvidia-nvtx-cu12==12.1.105",),),
    "tbb": (("tbb==2023.2.0", "tcmlib==1.6.0"),),
}
"""Case to what is installed, one run of the client after the other: the order decides whose bytes are on disk."""

Builder = Callable[[str, str], Installed]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.real)


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Return a function that makes the environment of a case, once per kind of client."""
    root = tmp_path_factory.mktemp("originals")
    made: dict[tuple[str, str], Installed] = {}

    def build(case: str, kind: str) -> Installed:
        if (case, kind) not in made:
            environment = make(root / f"{case}-{kind}", kind)
            for words in CASES[case]:
                environment.install(*(word.format(xgboost=_xgboost(root)) for word in words))
            made[case, kind] = environment
        return made[case, kind]

    return build


def _xgboost(root: Path) -> Path:
    """Return the small wheel of xgboost, which the clients would pass over for the large one."""
    directory = root / "xgboost"
    if not directory.exists():
        return download(directory, "--platform", "manylinux2014_x86_64", "xgboost==2.1.4")
    return next(directory.glob("*.whl"))


@pytest.fixture
def case(request: pytest.FixtureRequest, originals: Builder, tmp_path: Path) -> Iterator[Installed]:
    """Return a fresh copy of the environment that the test's ``in_case`` names, for each kind of client."""
    name, kind = request.param
    environment = originals(name, kind)
    before = environment.state()
    yield environment.copy(tmp_path / "env")
    assert environment.state() == before, (
        "hard links into the original, as into uv's cache, must not be written through"
    )


def in_case(name: str, *kinds: str) -> pytest.MarkDecorator:
    """Run a test in the environment of a case; for every kind of client unless some are named."""
    chosen = kinds or KINDS
    return pytest.mark.parametrize("case", [(name, kind) for kind in chosen], ids=list(chosen), indirect=True)
