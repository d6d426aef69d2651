"""The HTML report as text: whole, inert, and the same for the same document. How it looks the browser tests tell."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from safe_uninstall.analysis.audit import audit
from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.analysis.presumed import PresumedWheels
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.plan import Request, Rewrite
from safe_uninstall.model.processes import Use, UseKind
from safe_uninstall.render.document import check_document, plan_document
from safe_uninstall.render.report import render_report
from safe_uninstall.render.report.drawing import draw
from safe_uninstall.render.report.markup import prose
from safe_uninstall.render.report.svg import render_svg
from tests.support.fakes import at, distribution, elf, snapshot
from tests.unit.test_diff import CUDNN, TORCH, incident


def planned(*names: str, rewrites: tuple[Rewrite, ...] = (), **request: Any) -> dict[str, Any]:
    """Return the document of a plan over the incident in miniature."""
    snap = incident()
    return plan_document(
        make_plan(snap, Request(names=names, rewrites=rewrites, **request), PresumedWheels(snap)), "1.2.3"
    )


def audited() -> dict[str, Any]:
    """Return the document of an audit of the incident in miniature."""
    snap = incident()
    return check_document(audit(snap, Commands(snap, InstallerKind.PIP)), snap.environment, "1.2.3")


def lines(page: str) -> str:
    """Return what a page shows, without its elements."""
    body = re.sub(r"<(style|script)[^>]*>.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", body)


def test_a_blocked_plan_tells_all() -> None:
    """The verdict, what would work, before and after of distributions and bindings, and the findings."""
    page = render_report(planned("nvidia-cudnn-cu13"))
    shown = re.sub(r"\s+", " ", lines(page))
    assert "Blocked: 2 errors. None of this is done." in shown
    assert "Remove it and restore nvidia-cudnn-cu12 9.10.2.21" in shown
    assert "safe-uninstall nvidia-cudnn-cu13 --restore" in shown
    assert "nvidia-cudnn-cu13 9.24.0.43 installed would be removed 4 8 B requested" in shown
    assert f"torch {TORCH} libcudnn.so.9 {CUDNN} nothing RPATH $ORIGIN/../../nvidia/cudnn/lib" in shown
    assert "error[library-lost]" in shown
    assert "error[file-lost]" in shown
    assert "nvidia-cudnn-cu12 9.10.2.21 (2 files of its own overwritten)" in shown


def test_a_rewrite_says_what_comes_back() -> None:
    """Whose own files, and that the binding keeps its path."""
    shown = re.sub(r"\s+", " ", lines(render_report(planned("nvidia-cudnn-cu13", rewrites=(Rewrite.RESTORE,)))))
    assert "Rewritten, so that nothing is lost" in shown
    assert "nvidia-cudnn-cu12 9.10.2.21 installed its own files again" in shown
    assert "the same path, written again" in shown


def test_an_audit_says_what_mends_it_on_top() -> None:
    """Each command once, and not again with the finding."""
    page = render_report(audited())
    shown = re.sub(r"\s+", " ", lines(page))
    assert re.search(r"Damaged: 1 error[^.]*\. Nothing was changed\.", shown)
    assert page.count("safe-uninstall nvidia-cudnn-cu13 --restore") == 1
    assert shown.index("What mends it") < shown.index("Findings")
    assert f"Bytes of nvidia-cudnn-cu13 9.24.0.43 Paths {CUDNN}" in shown


def test_nothing_to_tell() -> None:
    """An environment without damage, and a removal that touches nobody."""
    snap = snapshot(distribution("a", claims={"a.py": b""}))
    page = render_report(check_document((), snap.environment, "1.2.3"))
    assert "No damage. Nothing was changed." in lines(page)
    assert "Nothing that stays is bound to anything that changes." in page
    plan = make_plan(snap, Request(names=("a",)))
    assert "Allowed. Nothing has changed yet." in lines(render_report(plan_document(plan, "1.2.3")))


@pytest.mark.parametrize(
    ("request_fields", "title"),
    [
        ({"names": ("a b", "c"), "rewrites": (Rewrite.CASCADE,)}, "safe-uninstall 'a b' c --cascade"),
        ({"names": (), "repair": True, "rewrites": (Rewrite.RESTORE,)}, "safe-uninstall check --fix"),
        ({"names": (), "undo": "20260101"}, "safe-uninstall undo 20260101"),
        (
            {"names": ("a",), "install": ("b>1",), "accepted_losses": ("l.so",)},
            "safe-uninstall a --install 'b>1' --accept-loss l.so",
        ),
    ],
)
def test_the_title_is_the_request(request_fields: dict[str, Any], title: str) -> None:
    """As it was typed."""
    plan = make_plan(incident(), Request(names=("torch",)))
    page = render_report(plan_document(replace(plan, request=Request(**request_fields)), "1.2.3"))
    assert title in re.sub("&#x27;", "'", lines(page)).replace("&gt;", ">")


def test_the_page_needs_nothing_and_lets_nothing_in() -> None:
    """No address is asked, and the policy allows the two inline assets by their digests alone."""
    page = render_report(planned("nvidia-cudnn-cu13"))
    assert not re.search(r"""(?:src|href)=["'](?!#)""", page)
    assert "@import" not in page
    assert "url(" not in page
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "default-src 'none'" in policy
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_the_same_document_gives_the_same_page() -> None:
    """So that two reports can be compared."""
    assert render_report(planned("nvidia-cudnn-cu13")) == render_report(planned("nvidia-cudnn-cu13"))


def test_what_other_people_wrote_is_inert() -> None:
    """Markup, ends of scripts, control characters and undecodable bytes are text."""
    hostile = "</script><script>alert(1)</script>\x1b[31m\udcff&"
    document = json.loads(json.dumps(planned("nvidia-cudnn-cu13")).replace(TORCH, json.dumps(hostile)[1:-1]))
    page = render_report(document)
    assert "<script>alert" not in page
    assert "\x1b" not in page
    page.encode("utf-8")
    (text,) = re.findall(r'id="evidence-data">(.*?)</script>', page, flags=re.DOTALL)
    assert any("alert(1)" in node["title"] for node in json.loads(text)["nodes"].values())


def test_evidence_of_every_kind() -> None:
    """Chains, places searched, uses, notes; long lists are folded, not cut."""
    document = planned("nvidia-cudnn-cu13")
    finding = document["findings"][0]
    consumer = finding["consumers"][0]
    finding["consumers"] = [
        {**consumer, "path": f"x{number}.so", "context": ["root.so", "x.so"]} for number in range(9)
    ]
    finding["notes"] = ["a note about `it`"]
    finding["accepted"] = True
    use = Use(pid=7, command="python", user="me", path="/x", how=next(iter(UseKind)))
    finding["uses"] = [{"pid": use.pid, "command": use.command, "user": use.user, "path": "x", "how": use.how.value}]
    shown = re.sub(r"\s+", " ", lines(render_report(document)))
    for number in range(9):
        assert f"x{number}.so" in shown
    for told in ("3 more", "loaded by root.so", "searched: ", "process 7 (python)", "a note about", "(accepted)"):
        assert told in shown


def test_the_graph_holds_what_is_affected() -> None:
    """From who needs it to whose it is; states are those of the plan."""
    drawing = draw(planned("nvidia-cudnn-cu13"))
    assert [(node.column, node.label, node.state) for node in drawing.nodes] == [
        (0, "torch", ""),
        (1, TORCH, ""),
        (2, CUDNN, "lost"),
        (3, "nvidia-cudnn-cu12 9.10.2.21", "damaged"),
        (3, "nvidia-cudnn-cu13 9.24.0.43", "leaving"),
    ]
    assert [(edge.source[1], edge.target[1], edge.state) for edge in drawing.edges] == [
        ("torch", TORCH, "owns"),
        (CUDNN, "nvidia-cudnn-cu13 9.24.0.43", "owns"),
        (TORCH, CUDNN, "lost"),
        (CUDNN, "nvidia-cudnn-cu12 9.10.2.21", "owns"),
    ]
    restored = draw(planned("nvidia-cudnn-cu13", rewrites=(Rewrite.RESTORE,)))
    assert {node.label: node.state for node in restored.nodes}["nvidia-cudnn-cu12 9.10.2.21"] == "coming"


def test_the_graph_of_an_audit() -> None:
    """Overwritten libraries between whom they belong to and whose bytes they hold; who loads a mix."""
    document = audited()
    document["findings"].append(
        {**document["findings"][0], "code": "mixed-cuda", "severity": "warning", "distribution": "torch"}
    )
    drawing = draw(document)
    labels = {node.label: node.state for node in drawing.nodes}
    assert labels["nvidia-cudnn-cu12"] == "damaged"
    assert labels["nvidia-cudnn-cu13 9.24.0.43"] == ""
    assert labels["torch"] == ""


def test_a_binding_that_moves() -> None:
    """Both providers are drawn."""
    snap = snapshot(
        distribution("a", claims={"a/libx.so.1": b"x"}),
        distribution("b", claims={"b/libx.so.1": b"x"}),
        objects=[
            elf(at("a/libx.so.1"), "libx.so.1"),
            elf(at("b/libx.so.1"), "libx.so.1"),
            elf(at("mine.so"), None, "libx.so.1", runpath="$ORIGIN/a:$ORIGIN/b"),
        ],
    )
    document = plan_document(make_plan(snap, Request(names=("a",))), "1.2.3")
    drawing = draw(document)
    assert {edge.target[1] for edge in drawing.edges if edge.source[1] == "mine.so"} == {"a/libx.so.1", "b/libx.so.1"}
    assert "(unowned)" in {node.label for node in drawing.nodes}
    assert "b/libx.so.1" in lines(render_report(document))


def test_a_large_graph_says_what_it_leaves_out() -> None:
    """Forty nodes of a column can be read; the findings name all."""
    document = planned("nvidia-cudnn-cu13")
    (binding,) = document["bindings"]
    consumer = binding["consumer"]
    document["bindings"] = [
        {**binding, "consumer": {**consumer, "path": f"{'long' * 20}{number:03}.so"}} for number in range(60)
    ]
    drawing = draw(document)
    assert sum(node.column == 1 for node in drawing.nodes) == 40
    assert drawing.left_out == 21
    page = render_report(document)
    assert "21 more nodes left out" in page
    assert "<summary>48 more</summary>" in page
    assert f"{'long' * 20}059.so" in page
    svg = render_svg(drawing)
    assert "…" in svg


def test_prose() -> None:
    """Backticks are code, a stray one is itself."""
    assert prose("removing `a<b` now") == "Removing <code>a&lt;b</code> now"
    assert prose("it`s") == "it`s"
