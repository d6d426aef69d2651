"""Parts of the graph: around names, and between distributions."""

import pytest

from safe_uninstall.analysis.graph import build_graph
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.subgraph import around, between_distributions, named
from safe_uninstall.model.graph import DistributionNeed, DistributionNode, Graph
from safe_uninstall.render.graph import (
    render_distributions_dot,
    render_distributions_mermaid,
    render_dot,
    render_mermaid,
)
from tests.support.fakes import at, distribution, elf, environment, snapshot


def build() -> Graph:
    """Return a chain of distributions: top needs mid needs low, each with two files; ``mine.so`` is nobody's."""
    snap = snapshot(
        distribution("low-level", claims={"low/liblow.so": b"l"}),
        distribution("mid", claims={"mid/libmid.so": b"m", "mid/libextra.so": b"e"}),
        distribution("top", claims={"top/top.so": b"t", "top/other.so": b"o"}),
        objects=[
            elf(at("low/liblow.so"), "liblow.so", "libc.so.6"),
            elf(at("mid/libmid.so"), "libmid.so.1", "liblow.so", "libextra.so", runpath="$ORIGIN/../low:$ORIGIN"),
            elf(at("mid/libextra.so"), "libextra.so"),
            elf(at("top/top.so"), None, "libmid.so", "libgone.so", runpath="$ORIGIN/../mid"),
            elf(at("top/other.so"), None, "libmid.so", runpath="$ORIGIN/../mid"),
            elf(at("mine.so"), None, "libmid.so", runpath="$ORIGIN/mid"),
        ],
    )
    return build_graph(snap, Owners(snap.distributions))


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("Low_Level", {"low/liblow.so"}),
        ("m*", {"mid/libmid.so", "mid/libextra.so"}),
        ("libmid.so.1", {"mid/libmid.so"}),
        ("libextra.so", {"mid/libextra.so"}),
        ("top/top.so", {"top/top.so"}),
        (at("mine.so"), {"mine.so"}),
    ],
)
def test_what_a_name_means(name: str, paths: set[str]) -> None:
    """A distribution however it is written, a glob, a soname, a file name, the end of a path."""
    assert named(build(), (name,)) == (frozenset(map(at, paths)), ())


def test_names_that_mean_nothing() -> None:
    """They are told apart from those that do."""
    found, unknown = named(build(), ("absent", "top", "a*"))
    assert found == {at("top/top.so"), at("top/other.so")}
    assert unknown == ("absent", "a*")


@pytest.mark.parametrize(
    ("depth", "paths"),
    [
        (0, {"low/liblow.so"}),
        (1, {"low/liblow.so", "mid/libmid.so"}),
        (
            2,
            {"low/liblow.so", "mid/libmid.so", "mid/libextra.so", "top/top.so", "top/other.so", "mine.so"},
        ),
        (9, {"low/liblow.so", "mid/libmid.so", "mid/libextra.so", "top/top.so", "top/other.so", "mine.so"}),
    ],
)
def test_depth_counts_needs_in_either_direction(depth: int, paths: set[str]) -> None:
    """Whoever needs it, and what it needs."""
    part = around(build(), {at("low/liblow.so")}, depth)
    assert {node.object.path for node in part.nodes} == {at(path) for path in paths}


def test_needs_between_distributions() -> None:
    """Within one nothing is told; files that need the same are counted; missing names stay."""
    assert between_distributions(build()) == (
        DistributionNode(name="low-level", needs=(), missing=()),
        DistributionNode(
            name="mid", needs=(DistributionNeed(provider="low-level", name="liblow.so", files=1),), missing=()
        ),
        DistributionNode(
            name="top",
            needs=(DistributionNeed(provider="mid", name="libmid.so", files=2),),
            missing=("libgone.so",),
        ),
        DistributionNode(name=None, needs=(DistributionNeed(provider="mid", name="libmid.so", files=1),), missing=()),
    )


def test_a_part_is_drawn_without_what_is_outside() -> None:
    """An edge that leads out of it would draw a file that is not there."""
    part = around(build(), {at("low/liblow.so")}, 1)
    assert "libextra" not in render_dot(part, environment(), part=True)
    assert "libextra" in render_dot(part, environment())
    assert '"mid/libmid.so" -> "low/liblow.so" [label="runpath"];' in render_dot(part, environment(), part=True)
    assert "libextra" not in render_mermaid(part, environment(), part=True)


def test_distributions_are_drawn() -> None:
    """Edges name the libraries; many are one label; what is missing is dashed."""
    nodes = between_distributions(build())
    dot = render_distributions_dot(nodes)
    assert '"top" -> "mid" [label="libmid.so"];' in dot
    assert '"(unowned)" -> "mid" [label="libmid.so"];' in dot
    assert '"top" -> "libgone.so (missing)" [label="missing", style=dashed];' in dot
    mermaid = render_distributions_mermaid(nodes)
    assert 'n3["top"]' in mermaid
    assert 'n3 -->|"libmid.so"| n2' in mermaid
    many = DistributionNode(
        name="a",
        needs=tuple(DistributionNeed(provider="b", name=f"lib{number}.so", files=1) for number in range(4)),
        missing=(),
    )
    assert 'label="lib0.so and 3 more"' in render_distributions_dot((many,))
    assert render_distributions_dot(()).splitlines()[-1] == "}"
