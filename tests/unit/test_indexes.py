"""Where pip is told to look: what the user configured for pip or for uv, whichever the environment is used to first."""

import sys
from collections.abc import Mapping

import pytest

from safe_uninstall.execute.indexes import Indexes
from safe_uninstall.execute.pip_settings import PipSettings

UV = {"PIP_INDEX_URL": "https://uv/s", "PIP_EXTRA_INDEX_URL": "https://more/s"}


def indexes(
    pip: Mapping[str, str], uv: Mapping[str, str] | None = None, *, prefer_uv: bool = False, no_index: bool = False
) -> Indexes:
    """Return the indexes of a user who has these variables for pip, and these words of pip for uv."""
    settings = PipSettings((sys.executable, "-m", "pip"), {"PIP_CONFIG_FILE": "/dev/null", **pip})
    return Indexes(pip=settings, uv=uv or {}, prefer_uv=prefer_uv, no_index=no_index)


def test_nothing_is_configured() -> None:
    """Then pip asks the index that it asks by default."""
    found = indexes({"PIP_TIMEOUT": "3"})
    assert found.to_restore() == [{"PIP_TIMEOUT": "3"}]
    assert found.to_install("install") == {"PIP_TIMEOUT": "3"}
    assert found.nowhere_else() == {"PIP_TIMEOUT": "3", "PIP_NO_INDEX": "1"}


@pytest.mark.parametrize("prefer_uv", [False, True])
def test_one_of_them_is_configured(prefer_uv: bool) -> None:
    """It counts for every environment."""
    pip = {"PIP_INDEX_URL": "https://pip/s"}
    assert indexes(pip, prefer_uv=prefer_uv).to_restore() == [pip]
    assert indexes({}, UV, prefer_uv=prefer_uv).to_restore() == [UV]
    assert indexes({}, UV, prefer_uv=prefer_uv).to_install("download") == UV


def test_both_are_configured() -> None:
    """One after the other, never mixed, for a build that is known; only the first one for what is new."""
    pip = {"PIP_FIND_LINKS": "https://pip/links", "PIP_TIMEOUT": "3"}
    of_uv = {"PIP_TIMEOUT": "3", **UV}
    assert indexes(pip, UV).to_restore() == [pip, of_uv]
    assert indexes(pip, UV, prefer_uv=True).to_restore() == [of_uv, pip]
    assert indexes(pip, UV).to_install("install") == pip
    assert indexes(pip, UV, prefer_uv=True).to_install("install") == of_uv


def test_no_index_may_be_asked() -> None:
    """Places of wheels that are configured may be looked at all the same; without any, pip looks nowhere."""
    assert indexes({}, no_index=True).to_restore() == []
    assert indexes({"PIP_INDEX_URL": "https://pip/s"}, UV, no_index=True).to_restore() == []
    links = {"PIP_FIND_LINKS": "https://pip/links"}
    assert indexes(links, UV, no_index=True).to_restore() == [{**links, "PIP_NO_INDEX": "1"}]
    assert indexes({"PIP_INDEX_URL": "https://pip/s"}, no_index=True).to_install("install") == {"PIP_NO_INDEX": "1"}


def test_only_who_chooses_is_constrained() -> None:
    """Constraints are about versions; what is restored has its own already."""
    found = indexes({"PIP_CONSTRAINT": "https://c/c.txt"})
    assert found.to_install("install", choosing=True) == {"PIP_CONSTRAINT": "https://c/c.txt"}
    assert found.to_install("download") == {}
    assert found.to_restore() == [{}]
