"""Paths as output shows them."""

import pytest

from safe_uninstall.render.paths import Relative, relative_to_prefix, relative_to_site_packages
from tests.support.fakes import PREFIX, SITE, environment


def test_people_read_paths_below_site_packages() -> None:
    """Else below the prefix; what is outside stays absolute."""
    show = relative_to_site_packages(environment())
    assert show.each((f"{SITE}/torch/a.so", f"{PREFIX}/bin/tool", "/usr/lib/x.so")) == [
        "torch/a.so",
        "bin/tool",
        "/usr/lib/x.so",
    ]


def test_documents_write_paths_below_the_prefix() -> None:
    """The prefix itself is a dot."""
    show = relative_to_prefix(environment())
    assert show(f"{SITE}/a.so") == "lib/python3.11/site-packages/a.so"
    assert show(PREFIX) == "."
    assert show(f"{PREFIX}ironment/a") == f"{PREFIX}ironment/a"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("found before as /env/lib/a.so", "found before as lib/a.so"),
        ("`/env/a` and (/env/b): gone", "`a` and (b): gone"),
        ("/env/a: /env/b", "a: b"),
        ("found in /opt/env/lib/a.so", "found in /opt/env/lib/a.so"),
        ("found in /opt/my-/env/a", "found in /opt/my-/env/a"),
        ("file:///env/a", "file:///env/a"),
        ("all of /env/", "all of /env/"),
        ("/environment/a", "/environment/a"),
    ],
)
def test_paths_in_sentences(text: str, shown: str) -> None:
    """Only a whole path is shortened, not one that has the root's name somewhere in it."""
    assert Relative("/env").in_text(text) == shown


def test_a_root_at_the_top() -> None:
    """An environment in ``/`` has paths without a first slash."""
    assert Relative("/")("/usr/lib/a.so") == "usr/lib/a.so"
