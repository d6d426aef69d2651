"""``why NAME`` and the graph it reads: providers, claims, users and unmet needs."""

import pytest

from safe_uninstall.analysis.graph import build_graph
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.why import explain_name
from safe_uninstall.model.errors import NotInstalled
from safe_uninstall.model.linkage import How
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.why import Why
from tests.support.fakes import PREFIX, Row, at, distribution, elf, snapshot

LIBRARY = "n/lib/libx.so.9"


def build() -> Snapshot:
    """Return two owners of one library, a consumer of it, and needs that nothing meets."""
    return snapshot(
        distribution("cu12", "12.0", {LIBRARY: b"12", "n/readme.txt": b"x", "own.so": b"o"}),
        distribution("unchecked", claims={LIBRARY: Row(content=b"u")}),
        distribution("app", "3.0", {"app.so": b"a"}, requires=("Cu12>=1", "cu13; extra == 'x'", "==broken")),
        distribution("elsewhere", requires=("cu12; sys_platform == 'win32'", "cu12 ; python_version >= '3'")),
        distribution("cu13", "13.0", {LIBRARY: b"13!"}),
        objects=[
            elf(at(LIBRARY), "libx.so.9"),
            elf(at("app.so"), None, "libx.so.9", "libmissing.so.1", rpath="$ORIGIN/n/lib"),
            elf(at("own.so"), None, "libx.so.9", rpath="$ORIGIN/n/lib"),
            elf(at("mine.so"), None, "libmissing.so.1"),
        ],
    )


def why(name: str) -> Why:
    """Ask about a name."""
    snap = build()
    owners = Owners(snap.distributions)
    return explain_name(snap, build_graph(snap, owners), owners, name)


@pytest.mark.parametrize("name", ["libx.so.9", LIBRARY, "lib/libx.so.9"])
def test_a_library_by_soname_or_path(name: str) -> None:
    """Who claims it, whether the bytes are theirs, and who needs it, found how."""
    answer = why(name)
    (provider,) = answer.providers
    assert (provider.path, provider.soname) == (at(LIBRARY), "libx.so.9")
    assert [(item.distribution.name, item.holds_bytes) for item in provider.claims] == [
        ("cu12", False),
        ("cu13", True),
        ("unchecked", None),
    ]
    assert [
        (item.path, item.distribution and item.distribution.name, item.how, item.via) for item in provider.users
    ] == [
        (at("app.so"), "app", How.RPATH, "$ORIGIN/n/lib"),
        (at("own.so"), "cu12", How.RPATH, "$ORIGIN/n/lib"),
    ]
    assert (answer.distributions, answer.requirers) == ((), ())


def test_a_distribution() -> None:
    """Who requires it here, and which of its libraries others need; its own needs of them are no news."""
    answer = why("CU12")
    assert [item.label for item in answer.distributions] == ["cu12 12.0"]
    assert [(item.name, text) for item, text in answer.requirers] == [
        ("app", "Cu12>=1"),
        ("elsewhere", "cu12 ; python_version >= '3'"),
    ]
    assert [item.path for item in answer.providers] == [at(LIBRARY)]
    assert why("app").providers == ()


def test_any_claimed_file() -> None:
    """A file that is no library has claims, and no soname."""
    (provider,) = why("n/readme.txt").providers
    assert (provider.path, provider.soname, provider.users) == (at("n/readme.txt"), None, ())
    assert [item.distribution.name for item in provider.claims] == ["cu12"]
    assert why(at("n/readme.txt")).providers == (provider,)


def test_a_need_that_nothing_meets() -> None:
    """Who has it, distribution or not, and where was searched."""
    answer = why("libmissing.so.1")
    assert answer.providers == ()
    assert [(item.path, item.distribution and item.distribution.name) for item in answer.unmet] == [
        (at("app.so"), "app"),
        (at("mine.so"), None),
    ]
    assert answer.unmet[0].searched[0] == at("n/lib")


def test_a_name_of_nothing() -> None:
    """An error with what can be asked."""
    with pytest.raises(NotInstalled) as caught:
        why("libnothing.so")
    assert caught.value.names == ("libnothing.so",)
    assert caught.value.message == f"not installed in `{PREFIX}`: `libnothing.so`"
    assert caught.value.help


def test_the_graph_has_every_object_with_its_owner() -> None:
    """Each is the root of its own load; the first owner by name stands for a shared path."""
    snap = build()
    graph = build_graph(snap, Owners(snap.distributions))
    assert [(node.object.path, node.distribution) for node in graph.nodes] == [
        (at("app.so"), "app"),
        (at("mine.so"), None),
        (at(LIBRARY), "cu12"),
        (at("own.so"), "cu12"),
    ]
    assert [(need.name, need.provider, need.how) for need in graph.nodes[0].needs] == [
        ("libx.so.9", at(LIBRARY), How.RPATH),
        ("libmissing.so.1", None, How.MISSING),
    ]


def test_the_library_path_binds_in_the_graph_when_asked_for() -> None:
    """LD_LIBRARY_PATH of the shell is no property of the environment."""
    snap = snapshot(
        objects=[elf(f"{PREFIX}/x/l.so", "l.so"), elf(f"{PREFIX}/c.so", None, "l.so")], library_path=(f"{PREFIX}/x",)
    )
    owners = Owners(())
    (need,) = build_graph(snap, owners).nodes[0].needs
    assert need.provider is None
    (need,) = build_graph(snap, owners, use_library_path=True).nodes[0].needs
    assert (need.provider, need.how) == (f"{PREFIX}/x/l.so", How.LD_LIBRARY_PATH)


def test_what_would_become_of_a_need_without_the_file() -> None:
    """It is lost, or another file meets it: the loader is asked again over the files without it."""
    snap = snapshot(
        distribution("a", claims={"a/liba.so": b"a"}),
        distribution("b", claims={"b/liba.so": b"b"}),
        distribution("user", claims={"one.so": b"1", "two.so": b"2"}),
        objects=[
            elf(at("a/liba.so"), "liba.so"),
            elf(at("b/liba.so"), "liba.so"),
            elf(at("one.so"), None, "liba.so", rpath="$ORIGIN/a"),
            elf(at("two.so"), None, "liba.so", rpath="$ORIGIN/a:$ORIGIN/b"),
        ],
    )
    owners = Owners(snap.distributions)
    (provider,) = explain_name(snap, build_graph(snap, owners), owners, "a").providers
    assert [(user.path, user.without) for user in provider.users] == [
        (at("one.so"), None),
        (at("two.so"), at("b/liba.so")),
    ]
