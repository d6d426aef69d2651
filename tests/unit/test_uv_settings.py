"""What the user configured uv for is told to pip: variables first, then the files of the user and of the system."""

import os
import sys
from pathlib import Path

import pytest

from safe_uninstall.execute import uv_settings
from safe_uninstall.execute.uv_settings import index_settings

needs_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 reads no TOML")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory for configuration; that of the system is in it too."""
    (tmp_path / "config/uv").mkdir(parents=True)
    monkeypatch.setattr(uv_settings, "SYSTEM_FILE", str(tmp_path / "etc.toml"))
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def settings(home: Path, **variables: str) -> dict[str, str]:
    """Return what pip is told."""
    return index_settings({"XDG_CONFIG_HOME": str(home / "config"), **variables})


def write(home: Path, text: str) -> None:
    """Write the user's file."""
    (home / "config/uv/uv.toml").write_text(text)


def test_nothing_is_configured(home: Path) -> None:
    """Then pip is told nothing, and asks its own index."""
    assert settings(home) == {}
    assert index_settings({}) == {}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"UV_INDEX_URL": "https://a/simple"}, {"PIP_INDEX_URL": "https://a/simple"}),
        (
            {"UV_DEFAULT_INDEX": "https://b/simple?x=1", "UV_INDEX_URL": "https://a/simple"},
            {"PIP_INDEX_URL": "https://b/simple?x=1"},
        ),
        ({"UV_DEFAULT_INDEX": "own=https://b/simple"}, {"PIP_INDEX_URL": "https://b/simple"}),
        (
            {"UV_INDEX": "x=https://x/s https://y/s", "UV_EXTRA_INDEX_URL": "https://z/s https://y/s"},
            {"PIP_EXTRA_INDEX_URL": "https://x/s https://y/s https://z/s"},
        ),
        (
            {"UV_FIND_LINKS": "wheels, https://page/l.html"},
            {"PIP_FIND_LINKS": "file://{home}/wheels https://page/l.html"},
        ),
        ({"UV_DEFAULT_INDEX": "my index"}, {"PIP_INDEX_URL": "file://{home}/my%20index"}),
        ({"UV_NO_INDEX": "true"}, {"PIP_NO_INDEX": "1"}),
        ({"UV_NO_INDEX": "0"}, {}),
        (
            {"UV_INDEX": "my-own=https://x/s", "UV_INDEX_MY_OWN_USERNAME": "me", "UV_INDEX_MY_OWN_PASSWORD": "a/b"},
            {"PIP_EXTRA_INDEX_URL": "https://me:a%2Fb@x/s"},
        ),
        (
            {"UV_INDEX": "own=https://you:it@x/s", "UV_INDEX_OWN_USERNAME": "me"},
            {"PIP_EXTRA_INDEX_URL": "https://you:it@x/s"},
        ),
    ],
)
def test_variables(home: Path, variables: dict[str, str], expected: dict[str, str]) -> None:
    """Names of indexes are no part of their URLs, credentials of variables become one; paths are made absolute."""
    assert settings(home, **variables) == {key: value.format(home=home) for key, value in expected.items()}


@needs_toml
def test_the_file_of_the_user(home: Path) -> None:
    """The default index, others, flat ones; explicit ones serve only what a project pins to them."""
    write(
        home,
        """
        find-links = ["my wheels"]
        [[index]]
        name = "own"
        url = "https://own/simple"
        [[index]]
        url = "https://main/simple"
        default = true
        [[index]]
        name = "pinned"
        url = "https://pinned/simple"
        explicit = true
        [[index]]
        url = "https://flat/page.html"
        format = "flat"
        [[index]]
        name = "no url"
        """,
    )
    assert settings(home, UV_INDEX_OWN_USERNAME="me") == {
        "PIP_INDEX_URL": "https://main/simple",
        "PIP_EXTRA_INDEX_URL": "https://me:@own/simple",
        "PIP_FIND_LINKS": f"file://{home}/config/uv/my%20wheels https://flat/page.html",
    }


@needs_toml
def test_what_comes_first_counts(home: Path) -> None:
    """A variable before the table of ``uv pip``, that before the rest of the file, the user before the system."""
    (home / "etc.toml").write_text(
        'index-url = "https://system/s"\nextra-index-url = ["https://more/s"]\nno-index = true'
    )
    assert settings(home)["PIP_INDEX_URL"] == "https://system/s"
    write(home, 'index-url = "https://user/s"')
    assert settings(home)["PIP_INDEX_URL"] == "https://user/s"
    write(home, 'index-url = "https://user/s"\n[pip]\nindex-url = "https://pip/s"')
    assert settings(home) == {
        "PIP_INDEX_URL": "https://pip/s",
        "PIP_EXTRA_INDEX_URL": "https://more/s",
        "PIP_NO_INDEX": "1",
    }
    assert settings(home, UV_DEFAULT_INDEX="https://variable/s")["PIP_INDEX_URL"] == "https://variable/s"


@needs_toml
def test_which_files_count(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None with UV_NO_CONFIG, one with UV_CONFIG_FILE; without XDG_CONFIG_HOME that below the home directory."""
    write(home, 'index-url = "https://user/s"')
    assert settings(home, UV_NO_CONFIG="1") == {}
    (home / "other.toml").write_text('index-url = "https://other/s"')
    assert settings(home, UV_CONFIG_FILE="other.toml") == {"PIP_INDEX_URL": "https://other/s"}
    monkeypatch.setenv("HOME", str(home))
    os.rename(home / "config", home / ".config")
    assert index_settings({}) == {"PIP_INDEX_URL": "https://user/s"}


@needs_toml
@pytest.mark.parametrize(
    "text",
    ["no toml", "index = 1", "pip = 2", "index-url = 3", 'find-links = "x"', "extra-index-url = [4]", "index=[5]"],
)
def test_what_nobody_understands_says_nothing(home: Path, text: str) -> None:
    """It is for uv itself to say what is wrong with it."""
    write(home, text)
    assert settings(home) == {}


@needs_toml
def test_a_python_that_reads_no_toml(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There, only variables count."""
    write(home, 'index-url = "https://user/s"')
    with monkeypatch.context() as older:
        older.setattr(sys, "version_info", (3, 10, 0))
        assert settings(home, UV_INDEX="https://x/s") == {"PIP_EXTRA_INDEX_URL": "https://x/s"}
