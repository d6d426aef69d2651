"""Survivors whose files are unknown: what of a removal may be theirs, and what surely is not."""

from typing import Any

import pytest

from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.model.distribution import DirectUrl, MetadataKind, RecordState
from safe_uninstall.model.plan import Code, Finding, Plan, Request, Severity, Verdict
from safe_uninstall.model.snapshot import Snapshot
from tests.support.fakes import Installed, at, distribution, snapshot

NVTX = "nvidia/nvtx/lib/libnvToolsExt.so.1"
MISSING = {"state": RecordState.MISSING, "path": None, "rows": ()}


def bare(name: str, *top_level: str, **changes: Any) -> Installed:
    """Return a distribution without RECORD."""
    return distribution(name, record=changes.pop("record", MISSING), top_level=top_level, **changes)


def plan(snap: Snapshot, *names: str) -> Plan:
    """Plan a removal."""
    return make_plan(snap, Request(names=names))


def unknown(found: Plan) -> list[Finding]:
    """Return the findings about survivors."""
    return [item for item in found.findings if item.code is Code.RECORD_MISSING]


def test_a_twin_without_a_record_blocks() -> None:
    """Its library may be the one that would be deleted; the help brings its RECORD back."""
    snap = snapshot(distribution("nvidia-nvtx-cu11", claims={NVTX: b"x"}), bare("nvidia-nvtx-cu12", "nvidia"))
    found = plan(snap, "nvidia-nvtx-cu11")
    assert found.verdict is Verdict.BLOCK
    (finding,) = unknown(found)
    assert finding.severity is Severity.ERROR
    assert finding.message == (
        "`nvidia-nvtx-cu12` 1.0 stays and has no RECORD: 1 file that would be deleted may be its own"
    )
    assert finding.paths == (at(NVTX),)
    assert "--ignore-installed --no-deps nvidia-nvtx-cu12==1.0" in finding.help[-1]


def test_a_record_that_cannot_be_read_in_full_is_as_bad() -> None:
    """The rows that can be read are claims as always; the rest is unknown."""
    snap = snapshot(
        distribution("pkg-cpu", claims={"pkg/a.py": b"a", "pkg/b.py": b"b"}),
        distribution(
            "pkg", claims={"pkg/a.py": b"a"}, record={"state": RecordState.MALFORMED, "problems": ("line 3: no path",)}
        ),
    )
    (finding,) = unknown(plan(snap, "pkg-cpu"))
    assert finding.message == (
        "`pkg` 1.0 stays and has a RECORD that cannot be read: 1 file that would be deleted may be its own"
    )
    assert finding.paths == (at("pkg/b.py"),)
    assert finding.notes == ("line 3: no path",)


@pytest.mark.parametrize(
    ("survivor", "path"),
    [
        (bare("other", "pkg"), "pkg/a.py"),
        (bare("pkg"), "pkg/a.py"),
        (bare("pkg"), "pkg.py"),
        (bare("pkg-headless"), "else/where.py"),
        (bare("pkg-core"), "pkg/core.py"),
        (bare("some-pkg"), "some_pkg/x.py"),
    ],
)
def test_what_may_be_a_survivors(survivor: Installed, path: str) -> None:
    """By the import names that it lists, by its name, by being another build of the project that goes."""
    snap = snapshot(distribution("pkg-gpu", claims={path: b"1"}), survivor)
    assert [item.paths for item in unknown(plan(snap, "pkg-gpu"))] == [(at(path),)]


@pytest.mark.parametrize(
    "survivor",
    [
        bare("other"),
        bare("other", "elsewhere"),
        bare("pkg", conda_package="pkg-1.0-0"),
        bare("pkg", metadata_kind=MetadataKind.EGG_INFO),
        bare("pkg", owned_here=False),
        bare("pkg", direct_url=DirectUrl(url="file:///src/pkg", editable=True)),
        distribution("pkg"),
    ],
    ids=["other-name", "other-import", "conda", "egg-info", "outside", "editable", "with-record"],
)
def test_what_is_surely_not_a_survivors(survivor: Installed) -> None:
    """No evidence, no alarm."""
    snap = snapshot(distribution("pkg-gpu", claims={"pkg/a.py": b"1", "../../../bin/pkg": b"1"}), survivor)
    found = plan(snap, "pkg-gpu")
    assert (unknown(found), found.verdict) == ([], Verdict.ALLOW)


def test_a_namespace_says_nothing_by_itself() -> None:
    """What lies in ``nvidia`` is a survivor's only where its name says so."""
    snap = snapshot(
        distribution("nvidia-nvtx-cu11", claims={NVTX: b"x", "nvidia/top.py": b""}),
        distribution("nvidia-cublas-cu12", claims={"nvidia/cublas/lib/libcublas.so.12": b"b"}),
        bare("nvidia-cufft-cu12", "nvidia"),
    )
    assert unknown(plan(snap, "nvidia-nvtx-cu11")) == []
    more = snapshot(
        distribution("vendor", claims={"nvidia/cufft/lib/libcufft.so.11": b"x", "nvidia/top.py": b""}),
        distribution("nvidia-cublas-cu12", claims={"nvidia/cublas/lib/libcublas.so.12": b"b"}),
        bare("nvidia-cufft-cu12", "nvidia"),
    )
    (finding,) = unknown(plan(more, "vendor"))
    assert finding.paths == (at("nvidia/cufft/lib/libcufft.so.11"),)
