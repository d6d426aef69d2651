"""Fixtures that all levels share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.environments import EnvironmentBuilder


@pytest.fixture
def environment(tmp_path: Path) -> EnvironmentBuilder:
    """Return an empty virtual environment made by ``python -m venv``, without pip."""
    return EnvironmentBuilder(tmp_path / "env")


@pytest.fixture
def make_environment(tmp_path: Path) -> Callable[..., EnvironmentBuilder]:
    """Return a function that makes environments in directories of their own."""
    counter = iter(range(1000))
    return lambda **options: EnvironmentBuilder(tmp_path / f"env{next(counter)}", **options)
