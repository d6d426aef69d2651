"""Fixtures that all levels share."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.environments import EnvironmentBuilder

# A test run that was started in the background, or by nohup, ignores signals, and its children with it.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)


@pytest.fixture
def environment(tmp_path: Path) -> EnvironmentBuilder:
    """Return an empty virtual environment made by ``python -m venv``, without pip."""
    return EnvironmentBuilder(tmp_path / "env")


@pytest.fixture
def make_environment(tmp_path: Path) -> Callable[..., EnvironmentBuilder]:
    """Return a function that makes environments in directories of their own."""
    counter = iter(range(1000))
    return lambda **options: EnvironmentBuilder(tmp_path / f"env{next(counter)}", **options)
