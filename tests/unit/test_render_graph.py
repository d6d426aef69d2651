"""The graph as a drawing."""

from safe_uninstall.model.graph import Graph, GraphNode
from safe_uninstall.model.linkage import Binding, How
from safe_uninstall.render.graph import render_dot, render_mermaid
from tests.support.fakes import at, elf, environment

A, B, UNOWNED = at("a.so"), at('n/"b#<.so'), at("u.so")


def need(consumer: str, name: str, provider: str | None, how: How) -> Binding:
    """Return a need and what meets it."""
    return Binding(consumer=consumer, name=name, provider=provider, how=how)


def build() -> Graph:
    """Return two distributions and a file of nobody, with a need of each sort."""
    return Graph(
        nodes=(
            GraphNode(
                object=elf(A),
                distribution="torch",
                needs=(
                    need(A, "b.so", B, How.RPATH),
                    need(A, "libc.so.6", "/lib/libc.so.6", How.CACHE),
                    need(A, "libz.so.1", "/lib/libz.so.1", How.CACHE),
                    need(A, "gone.so", None, How.ABSOLUTE),
                ),
            ),
            GraphNode(object=elf(B), distribution="cudnn", needs=()),
            GraphNode(object=elf(UNOWNED), distribution=None, needs=(need(UNOWNED, "gone.so", None, How.MISSING),)),
            GraphNode(object=elf(at("alone.so")), distribution="alone", needs=()),
        )
    )


def test_dot() -> None:
    """Files in the cluster of their distribution; what the host provides and what has no edge is left out."""
    assert (
        render_dot(build(), environment())
        == r"""digraph needs {
  rankdir=LR;
  node [shape=box];
  subgraph cluster_0 {
    label="cudnn";
    "n/\"b#<.so";
  }
  subgraph cluster_1 {
    label="torch";
    "a.so";
  }
  "/lib/libz.so.1";
  "u.so";
  "gone.so (missing)" [style=dashed];
  "a.so" -> "n/\"b#<.so" [label="rpath"];
  "a.so" -> "/lib/libz.so.1" [label="cache"];
  "a.so" -> "gone.so (missing)" [label="missing", style=dashed];
  "u.so" -> "gone.so (missing)" [label="missing", style=dashed];
}"""
    )


def test_mermaid() -> None:
    """The same; characters that mean something to Mermaid are entities."""
    assert (
        render_mermaid(build(), environment())
        == """flowchart LR
  subgraph d0 ["cudnn"]
    n0["n/#quot;b#35;#lt;.so"]
  end
  subgraph d1 ["torch"]
    n1["a.so"]
  end
  n2["/lib/libz.so.1"]
  n3["u.so"]
  n4["gone.so (missing)"]
  n1 -->|"rpath"| n0
  n1 -->|"cache"| n2
  n1 -.->|"missing"| n4
  n3 -.->|"missing"| n4"""
    )


def test_hostile_names_stay_in_their_line() -> None:
    """A line end in a file's name ends no statement."""
    path = at("x\ny.so")
    graph = Graph(
        nodes=(GraphNode(object=elf(path), distribution="d", needs=(need(path, "b\n.so", None, How.RPATH),)),)
    )
    assert '"x\\\\ny.so" -> "b\\\\n.so (missing)"' in render_dot(graph, environment())
    assert 'n0["x\\ny.so"]' in render_mermaid(graph, environment())


def test_an_empty_environment() -> None:
    """Is a drawing too."""
    assert render_dot(Graph(nodes=()), environment()).splitlines()[-1] == "}"
    assert render_mermaid(Graph(nodes=()), environment()) == "flowchart LR"
