"""Fixtures of the loader tests."""

from pathlib import Path

import pytest

from tests.loader.harness import Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """Return an empty directory in which objects are built."""
    return Workshop(tmp_path)
