"""What a probe mapped is needed: its loss blocks, where no file that stays replaces it."""

from dataclasses import replace
from typing import Any

import pytest

from safe_uninstall.analysis.observed import Observed
from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.analysis.presumed import PresumedWheels
from safe_uninstall.model.elf import Abi, SymbolTable
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.plan import Code, Finding, Plan, Request, Rewrite, Severity, Verdict
from safe_uninstall.model.probe import ProbeRun
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.render.diff import render_diff
from safe_uninstall.render.text import render_plan
from tests.support.fakes import PREFIX, Disk, Link, at, distribution, elf, snapshot
from tests.unit.test_plan import CUDNN, incident

LIBRARY = "one/lib/liba.so.1"


def probe(*mapped: str, code: str = "import app", **changes: Any) -> ProbeRun:
    """Return a probe that passed, and mapped files of site-packages."""
    return ProbeRun(**{"code": code, "mapped": tuple(map(at, mapped)), **changes})


def environment(*more: Any, soname: str | None = "liba.so.1", **changes: Any) -> Snapshot:
    """Return a library that nothing links against, and somebody who may open it by a name made at run time."""
    return snapshot(
        distribution("one", "1.0", {LIBRARY: b"a"}),
        distribution("app", "1.0", {"app/__init__.py": b""}),
        *more,
        objects=[elf(at(LIBRARY), soname), *changes.pop("objects", ())],
        **changes,
    )


def plan(snap: Snapshot, *names: str, probes: tuple[ProbeRun, ...] = (), **options: Any) -> Plan:
    """Plan a removal."""
    wheels = PresumedWheels(snap, {})
    request = Request(names=names, probes=tuple(run.code for run in probes), **options)
    return make_plan(snap, request, wheels, probes=probes)


def lost(found: Plan) -> list[Finding]:
    """Return the findings about libraries."""
    return [item for item in found.findings if item.code in (Code.LIBRARY_LOST, Code.DLOPEN_LOST)]


def test_a_mapped_library_blocks() -> None:
    """Without the probe it goes; with it, the finding says who needs it and how that is known."""
    assert plan(environment(), "one").verdict is Verdict.ALLOW
    found = plan(environment(), "one", probes=(probe(LIBRARY),))
    assert found.verdict is Verdict.BLOCK
    (loss,) = lost(found)
    assert (loss.code, loss.severity, loss.path, loss.soname) == (
        Code.LIBRARY_LOST,
        Severity.ERROR,
        at(LIBRARY),
        "liba.so.1",
    )
    (consumer,) = loss.consumers
    assert (consumer.distribution, consumer.path) == (None, f"{PREFIX}/bin/python")
    assert (consumer.strength, consumer.how) == (Strength.OBSERVED, "mapped by the probe `import app`")
    assert loss.help == ("keep what the probe needs, or leave that probe out",)
    assert found.alternatives == ()
    assert render_plan(found, verbose=False, color=False).splitlines()[:3] == [
        "error[library-lost]: removing `one` 1.0 leaves liba.so.1 without a provider",
        "  library   one/lib/liba.so.1",
        "  needed by (probe)   bin/python   (mapped by the probe `import app`)",
    ]
    assert "- (unowned)   bin/python   liba.so.1: one/lib/liba.so.1" in render_diff(found, verbose=False, color=False)


def test_its_loss_can_be_accepted() -> None:
    """As that of any library; and the commands that are offered repeat the probe."""
    accepted = plan(environment(), "one", probes=(probe(LIBRARY),), accepted_losses=("liba.so.1",))
    assert (accepted.verdict, accepted.findings[0].accepted) == (Verdict.ALLOW, True)


def test_the_first_probe_that_mapped_it_is_named() -> None:
    """One finding for each library, whoever else needs it."""
    probes = (probe(code="import x"), probe(LIBRARY, code="import y\n\nimport z\n"), probe(LIBRARY, code="import w"))
    (loss,) = lost(plan(environment(), "one", probes=probes))
    assert [item.how for item in loss.consumers] == ["mapped by the probe `import y; import z`"]


def test_a_probe_that_failed_asks_for_nothing() -> None:
    """It does not work with the library either; nor does one that did not tell what it mapped."""
    failed = probe(LIBRARY, failure="it ended with status 1")
    silent = ProbeRun(code="import os; os._exit(0)")
    found = plan(environment(), "one", probes=(failed, silent))
    assert (found.verdict, lost(found), found.probes) == (Verdict.ALLOW, [], (failed, silent))


def test_what_is_not_taken_is_not_lost() -> None:
    """Files that stay, files of the host, and files that are no libraries block nothing."""
    probes = (probe(LIBRARY, "app/__init__.py", "../../../../usr/lib/libc.so.6"),)
    assert plan(environment(), "app", probes=probes).verdict is Verdict.ALLOW


def test_a_released_library_is_not_lost() -> None:
    """A survivor owns the very bytes."""
    snap = environment(distribution("twin", "1.0", {LIBRARY: b"a"}))
    assert plan(snap, "one", probes=(probe(LIBRARY),)).verdict is Verdict.ALLOW


def test_a_restored_library_is_not_lost() -> None:
    """The overwritten survivor brings it back; without that the loader's own finding is the only one."""
    probes = (probe(CUDNN),)
    blocked = plan(incident(), "nvidia-cudnn-cu13", probes=probes)
    (loss,) = lost(blocked)
    assert [item.strength for item in loss.consumers] == [Strength.LINKED]
    assert [item.rewrites for item in blocked.alternatives] == [(Rewrite.RESTORE,)]
    assert blocked.alternatives[0].command == "safe-uninstall nvidia-cudnn-cu13 --restore --probe 'import app'"
    restored = plan(incident(), "nvidia-cudnn-cu13", probes=probes, rewrites=(Rewrite.RESTORE,), probe_timeout=5.0)
    assert (restored.verdict, lost(restored)) == (Verdict.REWRITE, [])


def test_offered_commands_repeat_the_time_limit() -> None:
    """Where it is not the usual one."""
    found = plan(incident(), "nvidia-cudnn-cu13", probes=(probe(CUDNN),), probe_timeout=7.5)
    assert found.alternatives[0].command.endswith("--probe 'import app' --probe-timeout 7.5")


def test_a_cascade_does_not_take_what_a_probe_needs() -> None:
    """Removing the consumer meets its need, and breaks the probe's promise."""
    probes = (probe(CUDNN, "torch/lib/libtorch_cuda.so"),)
    plain = plan(incident(), "nvidia-cudnn-cu13", rewrites=(Rewrite.CASCADE,))
    assert plain.verdict is Verdict.REWRITE
    assert plan(incident(), "nvidia-cudnn-cu13", probes=probes, rewrites=(Rewrite.CASCADE,)).verdict is Verdict.BLOCK


def test_a_module_of_what_leaves_is_lost() -> None:
    """An extension module has no soname; the user said that the probe must work, whoever's code it imports."""
    (loss,) = lost(plan(environment(soname=None), "one", probes=(probe(LIBRARY),)))
    assert (loss.soname, loss.path) == ("liba.so.1", at(LIBRARY))


@pytest.mark.parametrize(
    ("path", "facts", "replaces"),
    [
        ("two/lib/liba.so.1", {}, True),
        ("two/lib/stubs/liba.so.1", {}, False),
        ("two/lib/liba.so.1", {"abi": Abi(32, True, 3)}, False),
    ],
    ids=["another", "stub", "another machine"],
)
def test_another_library_of_that_soname_replaces_it(path: str, facts: dict[str, Any], replaces: bool) -> None:
    """The second run of the probe tells whether it really does; stubs and other machines' libraries do not."""
    other = elf(at(path), "liba.so.1", **facts)
    snap = environment(distribution("two", "1.0", {path: b"b"}), objects=[other])
    found = plan(snap, "one", probes=(probe(LIBRARY),))
    assert (found.verdict is Verdict.ALLOW) is replaces
    if replaces:
        assert plan(snap, "one", "two", probes=(probe(LIBRARY),)).verdict is Verdict.BLOCK


def test_a_need_that_moves_is_told_by_the_loader() -> None:
    """The consumer finds another file: that is a change of provider, whatever its soname."""
    consumer = elf(at("app/c.so"), None, "liba.so.1", rpath="$ORIGIN/../one/lib:$ORIGIN/../two")
    other = elf(at("two/liba.so.1"), "libother.so")
    snap = environment(distribution("two", "1.0", {"two/liba.so.1": b"b"}), objects=[consumer, other])
    assert isinstance(snap.evidence, Disk)
    empty = SymbolTable(exported=frozenset(), undefined=frozenset(), versions_defined=frozenset(), versions_needed=())
    snap.evidence.tables.update({at(path): empty for path in ("app/c.so", "two/liba.so.1", LIBRARY)})
    found = plan(snap, "one", probes=(probe(LIBRARY),))
    assert (found.verdict, [item.code for item in found.findings]) == (Verdict.ALLOW, [Code.PROVIDER_CHANGED])


def test_a_weaker_loss_becomes_one_that_blocks() -> None:
    """Nothing is known to load the provider, so that alone only warns; the probe has seen it loaded."""
    consumer = elf(at("app/c.so"), None, "liba.so.1")
    snap = environment(objects=[consumer])
    (named,) = lost(plan(snap, "one"))
    assert (named.code, named.severity) == (Code.DLOPEN_LOST, Severity.WARNING)
    (seen,) = lost(plan(snap, "one", probes=(probe(LIBRARY),)))
    assert (seen.code, seen.severity) == (Code.LIBRARY_LOST, Severity.ERROR)
    assert [item.strength for item in seen.consumers] == [Strength.OBSERVED, Strength.NAMED]


def test_links_into_a_cache_lead_to_the_mapped_file() -> None:
    """The kernel knows the file by its real path, outside; it is lost when every link to it goes."""
    cached = "/cache/liba.so.1"
    links = [elf(at(f"{name}/liba.so.1"), "liba.so.1", real_path=cached) for name in ("one", "two")]
    snap = snapshot(
        *(distribution(name, "1.0", {f"{name}/liba.so.1": Link(cached)}) for name in ("one", "two")),
        objects=links,
    )
    probes = (ProbeRun(code="x", mapped=(cached,)),)
    assert plan(snap, "one", probes=probes).verdict is Verdict.ALLOW
    (loss,) = lost(plan(snap, "one", "two", probes=probes))
    assert loss.path == at("one/liba.so.1")


def test_a_link_to_a_mapped_file_may_go() -> None:
    """The file itself stays; whether the link is needed is for the loader's rules to say."""
    link = elf(at("dev/liba.so"), "liba.so.1", real_path=at(LIBRARY))
    snap = environment(distribution("dev", "1.0", {"dev/liba.so": Link(at(LIBRARY))}), objects=[link])
    assert plan(snap, "dev", probes=(probe(LIBRARY),)).verdict is Verdict.ALLOW


def test_without_glibc_a_probe_is_all_there_is() -> None:
    """Linkage is not judged there, and what a probe mapped still is."""
    snap = environment()
    musl = replace(snap, system=replace(snap.system, libc="musl"))
    assert plan(musl, "one", probes=(probe(LIBRARY),)).verdict is Verdict.BLOCK


def test_nothing_is_indexed_without_probes() -> None:
    """Cost follows the request: objects are not even looked through."""

    class Untouchable(dict[str, Any]):
        def items(self) -> Any:
            raise AssertionError

    Observed(replace(environment(), objects=Untouchable()), ())


def test_long_code_is_cut_in_messages() -> None:
    """A label fits a line."""
    assert ProbeRun(code="x" * 60).label == "x" * 60
    assert ProbeRun(code="x" * 61).label == "x" * 59 + "…"
