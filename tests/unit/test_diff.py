"""Plans as diffs: the whole text of the incident, and what holds for every diff."""

import re
from dataclasses import replace

from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.analysis.presumed import PresumedWheels
from safe_uninstall.model.plan import Plan, Request, Rewrite
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.render.diff import render_diff
from tests.support.fakes import at, distribution, elf, environment, snapshot

CUDNN = "nvidia/cudnn/lib/libcudnn.so.9"
TORCH = "torch/lib/libtorch_cuda.so"


def incident() -> Snapshot:
    """Return the incident in miniature."""
    return snapshot(
        distribution("nvidia-cudnn-cu12", "9.10.2.21", {CUDNN: b"cu12", "nvidia/cudnn/h.h": b"12"}),
        distribution("torch", "2.9.1", {TORCH: b"torch"}, requires=("nvidia-cudnn-cu12==9.10.2.21",)),
        distribution("nvidia-cudnn-cu13", "9.24.0.43", {CUDNN: b"cu13!", "nvidia/cudnn/h.h": b"13!"}),
        objects=[
            elf(at(CUDNN), "libcudnn.so.9"),
            elf(at(TORCH), "libtorch_cuda.so", "libcudnn.so.9", rpath="$ORIGIN/../../nvidia/cudnn/lib"),
        ],
    )


def planned(snap: Snapshot, *names: str, rewrites: tuple[Rewrite, ...] = (), python: str | None = None) -> Plan:
    """Plan a request."""
    return make_plan(snap, Request(names=names, rewrites=rewrites, python=python), PresumedWheels(snap))


def lines(plan: Plan, *, verbose: bool = False, color: bool = False) -> list[str]:
    """Render a plan, its fingerprint left out."""
    text = render_diff(plan, verbose=verbose, color=color)
    return [line for line in text.splitlines() if not line.strip().startswith("sha256:")]


def test_the_incident() -> None:
    """What would go, which binding would be lost, why, and what to type instead."""
    assert lines(planned(incident(), "nvidia-cudnn-cu13", python="/env")) == [
        "--- /env   Python 3.11.7, pip",
        "+++ block: safe-uninstall nvidia-cudnn-cu13",
        "@@ distributions @@",
        "- nvidia-cudnn-cu13 9.24.0.43   4 files, 8 B",
        "@@ files @@",
        "- nvidia/cudnn/   2 files of nvidia-cudnn-cu13, 2 of them claimed by nvidia-cudnn-cu12 9.10.2.21",
        "- nvidia_cudnn_cu13-9.24.0.43.dist-info/   2 files of nvidia-cudnn-cu13",
        "@@ bindings @@",
        "- torch 2.9.1   torch/lib/libtorch_cuda.so   libcudnn.so.9: nvidia/cudnn/lib/libcudnn.so.9"
        " (RPATH $ORIGIN/../../nvidia/cudnn/lib) -> nothing",
        "@@ findings @@",
        "  error[library-lost]: removing `nvidia-cudnn-cu13` 9.24.0.43 leaves libcudnn.so.9 without a provider",
        "    library    nvidia/cudnn/lib/libcudnn.so.9",
        "    needed by  torch 2.9.1   torch/lib/libtorch_cuda.so   (RPATH $ORIGIN/../../nvidia/cudnn/lib)",
        "    claimed by nvidia-cudnn-cu12 9.10.2.21, whose own bytes were overwritten: 2 files",
        "    also tried ld.so.cache",
        "  help: what this means   safe-uninstall explain library-lost",
        "  error[file-lost]: `nvidia-cudnn-cu12` 9.10.2.21 would lose 2 files that nvidia-cudnn-cu13 9.24.0.43"
        " overwrote",
        "    path nvidia/cudnn/h.h",
        "         nvidia/cudnn/lib/libcudnn.so.9",
        "  help: what this means   safe-uninstall explain file-lost",
        "  help: remove it and restore nvidia-cudnn-cu12 9.10.2.21",
        "          safe-uninstall nvidia-cudnn-cu13 --restore",
        "  Blocked: 2 errors. None of this is done.",
    ]


def test_the_incident_restored() -> None:
    """The same path with its own bytes is a binding that changes too."""
    assert lines(planned(incident(), "nvidia-cudnn-cu13", rewrites=(Rewrite.RESTORE,))) == [
        "--- /env   Python 3.11.7, pip",
        "+++ rewrite: safe-uninstall nvidia-cudnn-cu13 --restore",
        "@@ distributions @@",
        "- nvidia-cudnn-cu13 9.24.0.43   4 files, 8 B",
        "= nvidia-cudnn-cu12 9.10.2.21   2 files, 6 B   its own files again",
        "@@ files @@",
        "- nvidia/cudnn/   2 files of nvidia-cudnn-cu13",
        "- nvidia_cudnn_cu13-9.24.0.43.dist-info/   2 files of nvidia-cudnn-cu13",
        "= nvidia/cudnn/   2 files of nvidia-cudnn-cu12   written again",
        "@@ bindings @@",
        "= torch 2.9.1   torch/lib/libtorch_cuda.so   libcudnn.so.9: nvidia/cudnn/lib/libcudnn.so.9"
        " (the same path, then the bytes of nvidia-cudnn-cu12 9.10.2.21)",
    ]


def test_another_provider_and_released_files() -> None:
    """Both sides of a binding that moves; files that stay say whose they are; a consumer may be nobody's."""
    snap = snapshot(
        distribution("a", claims={"a/libx.so.1": b"x", "shared.h": b"s", "top.py": b""}),
        distribution("b", claims={"b/libx.so.1": b"x", "shared.h": b"s"}),
        objects=[
            elf(at("a/libx.so.1"), "libx.so.1"),
            elf(at("b/libx.so.1"), "libx.so.1"),
            elf(at("mine.so"), None, "libx.so.1", runpath="$ORIGIN/a:$ORIGIN/b"),
        ],
    )
    shown = lines(planned(snap, "a"))
    assert "= (unowned)   mine.so   libx.so.1: a/libx.so.1 -> b/libx.so.1 (RUNPATH $ORIGIN/b)" in shown
    assert "= shared.h   1 file of a   owned by b" in shown
    assert "- top.py   1 file of a" in shown
    assert "+++ allow: safe-uninstall a" in shown


def test_verbose_lists_paths() -> None:
    """One line each, with whose it is."""
    shown = lines(planned(incident(), "torch"), verbose=True)
    assert "- torch/lib/libtorch_cuda.so   torch" in shown
    assert not any(line.endswith("/   1 file of torch") for line in shown)


def test_the_request_is_told_whole() -> None:
    """With what was accepted and installed; a repair has no names."""
    plan = planned(incident(), "torch")
    more = replace(plan.request, accepted_losses=("libx.so",), install=("a>1",), rewrites=(Rewrite.CASCADE,))
    assert lines(replace(plan, request=more))[1] == (
        "+++ allow: safe-uninstall torch --cascade --install 'a>1' --accept-loss libx.so"
    )
    repair = Request(names=(), rewrites=(Rewrite.RESTORE,), repair=True)
    snap = incident()
    assert lines(make_plan(snap, repair, PresumedWheels(snap)))[1] == "+++ rewrite: safe-uninstall check --fix"


def test_nothing_depends_on_the_prefix_below_the_header() -> None:
    """Two environments alike give one text."""
    plan = planned(incident(), "nvidia-cudnn-cu13")
    text = lines(plan)
    assert lines(planned(incident(), "nvidia-cudnn-cu13")) == text
    assert not [line for line in text[1:] if "/env" in line]
    other = replace(plan, environment=environment(prefix="/elsewhere"))
    assert lines(other)[0] == "--- /elsewhere   Python 3.11.7, pip"


def test_colour_decorates_the_gutters() -> None:
    """Without the escapes the text is the same."""
    plan = planned(incident(), "nvidia-cudnn-cu13")
    painted = render_diff(plan, verbose=False, color=True)
    assert "\033[1;31m-\033[0m nvidia-cudnn-cu13" in painted
    assert re.sub("\033\\[[0-9;]*m", "", painted) == render_diff(plan, verbose=False, color=False)


def test_what_is_no_text_is_escaped() -> None:
    """A file name cannot forge a line."""
    snap = snapshot(distribution("a", claims={"evil\n+ line.py": b""}))
    assert "- evil\\n+ line.py   a" in lines(planned(snap, "a"), verbose=True)
