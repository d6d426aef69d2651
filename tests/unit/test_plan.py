"""Plans: verdict, findings, actions and prediction of whole requests, over environments in memory."""

from dataclasses import replace
from typing import Any

import pytest

from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.model.elf import ElfObject, SymbolTable
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import NotInstalled, UsageError
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.plan import ActionKind, Code, Finding, Plan, Request, Severity, Verdict
from safe_uninstall.model.snapshot import Snapshot
from tests.support.fakes import PREFIX, SITE, Disk, Link, at, distribution, elf, environment, snapshot

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
CUDNN = "nvidia/cudnn/lib/libcudnn.so.9"
TORCH = "torch/lib/libtorch_cuda.so"


def incident(**changes: Any) -> Snapshot:
    """Return the incident in miniature: cu13's library lies where cu12's did, and torch needs it."""
    return snapshot(
        distribution("nvidia-cudnn-cu12", "9.10.2.21", {CUDNN: b"cu12", "nvidia/cudnn/h.h": b"12"}),
        distribution("torch", "2.9.1", {TORCH: b"torch"}, requires=("nvidia-cudnn-cu12==9.10.2.21",)),
        distribution("nvidia-cudnn-cu13", "9.24.0.43", {CUDNN: b"cu13!", "nvidia/cudnn/h.h": b"13!"}),
        objects=[
            elf(at(CUDNN), "libcudnn.so.9"),
            elf(at(TORCH), "libtorch_cuda.so", "libcudnn.so.9", rpath="$ORIGIN/../../nvidia/cudnn/lib"),
        ],
        **changes,
    )


def plan(snap: Snapshot, *names: str, accept: tuple[str, ...] = (), **options: Any) -> Plan:
    """Plan a request."""
    return make_plan(snap, Request(names=names, accepted_losses=accept, **options))


def codes(found: Plan) -> list[tuple[Code, Severity]]:
    """Return code and severity of each finding, in order."""
    return [(item.code, item.severity) for item in found.findings]


def one(found: Plan, code: Code) -> Finding:
    """Return the one finding of a code."""
    (finding,) = [item for item in found.findings if item.code is code]
    return finding


def test_the_incident_is_told_as_it_is() -> None:
    """Headline, library, who needs it and how, who claims it, and how much of that was overwritten."""
    found = plan(incident(), "nvidia-cudnn-cu13")
    assert found.verdict is Verdict.BLOCK
    assert codes(found) == [(Code.LIBRARY_LOST, ERROR), (Code.FILE_LOST, ERROR)]
    lost = one(found, Code.LIBRARY_LOST)
    assert lost.message == "removing `nvidia-cudnn-cu13` 9.24.0.43 leaves libcudnn.so.9 without a provider"
    assert (lost.path, lost.soname) == (at(CUDNN), "libcudnn.so.9")
    (consumer,) = lost.consumers
    assert consumer.distribution is not None
    assert (consumer.distribution.label, consumer.path) == ("torch 2.9.1", at(TORCH))
    assert (consumer.strength, consumer.how) == (Strength.LINKED, "RPATH $ORIGIN/../../nvidia/cudnn/lib")
    assert consumer.searched == (at("nvidia/cudnn/lib"), "ld.so.cache")
    (claimant,) = lost.claimants
    assert (claimant.distribution.label, claimant.overwritten) == ("nvidia-cudnn-cu12 9.10.2.21", 2)
    file_lost = one(found, Code.FILE_LOST)
    assert file_lost.message == (
        "`nvidia-cudnn-cu12` 9.10.2.21 would lose 2 files that nvidia-cudnn-cu13 9.24.0.43 overwrote"
    )
    assert file_lost.paths == (at("nvidia/cudnn/h.h"), at(CUDNN))
    # Whole rewrites say what to do, once.
    assert (lost.help, file_lost.help) == ((), ())
    (restore,) = found.alternatives
    assert (restore.summary, restore.command) == (
        "remove it and restore nvidia-cudnn-cu12 9.10.2.21",
        "safe-uninstall nvidia-cudnn-cu13 --restore",
    )


def test_all_that_is_concerned_may_go_together() -> None:
    """Several names are judged by their final state: without torch and cu12 nothing is lost."""
    names = ("torch", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
    found = plan(incident(), *names)
    assert (found.verdict, found.findings) == (Verdict.ALLOW, ())
    assert plan(incident(), *names[::-1]).actions == found.actions
    assert at(CUDNN) in found.prediction.deleted


def test_a_library_without_another_owner_is_lost_and_a_cascade_offered() -> None:
    """No survivor to restore: what needs it goes too, or nothing does."""
    snap = snapshot(
        distribution("provider", claims={"lib/libp.so": b"p"}),
        distribution("consumer", claims={"c/c.so": b"c"}),
        objects=[elf(at("lib/libp.so"), "libp.so"), elf(at("c/c.so"), None, "libp.so", runpath="$ORIGIN/../lib")],
    )
    found = plan(snap, "provider")
    lost = one(found, Code.LIBRARY_LOST)
    assert (lost.claimants, lost.help) == ((), ())
    (cascade,) = found.alternatives
    assert (cascade.summary, cascade.command) == (
        "remove it and remove consumer 1.0 too",
        "safe-uninstall provider --cascade",
    )
    (elsewhere,) = plan(snap, "provider", python="/env").alternatives
    assert elsewhere.command == "safe-uninstall -p /env provider --cascade"


def test_a_consumer_of_nobody_counts_and_has_no_distribution_to_remove() -> None:
    """An ELF file that no distribution claims is a survivor."""
    snap = snapshot(
        distribution("provider", claims={"lib/libp.so": b"p"}),
        objects=[elf(at("lib/libp.so"), "libp.so"), elf(at("mine.so"), None, "libp.so", runpath="$ORIGIN/lib")],
    )
    lost = one(plan(snap, "provider"), Code.LIBRARY_LOST)
    assert [item.distribution for item in lost.consumers] == [None]
    assert lost.help == ()


def test_identical_bytes_are_released_by_an_action() -> None:
    """What goes and what stays are two actions, with their paths and sizes."""
    snap = snapshot(
        distribution("cu11", claims={"n/x.so": b"same", "n/own11": b"123"}),
        distribution("cu12", claims={"n/x.so": b"same"}),
    )
    found = plan(snap, "cu11")
    assert (found.verdict, found.findings) == (Verdict.ALLOW, ())
    uninstall, release = found.actions
    info = f"{SITE}/cu11-1.0.dist-info"
    assert (uninstall.kind, release.kind) == (ActionKind.UNINSTALL, ActionKind.RELEASE)
    assert uninstall.paths == (f"{info}/METADATA", f"{info}/RECORD", at("n/own11"))
    assert uninstall.bytes == 3
    assert (release.paths, release.bytes, release.reason) == ((at("n/x.so"),), 4, "owned by cu12")
    assert uninstall.metadata_path == release.metadata_path == info
    assert uninstall.requested
    assert found.prediction.removed == {info}
    assert found.prediction.released == {at("n/x.so")}
    assert found.prediction.deleted == set(uninstall.paths)


def test_a_path_that_two_leaving_distributions_share_is_counted_once() -> None:
    """The sum of the actions' bytes is what will be free."""
    snap = snapshot(distribution("a", claims={"x": b"12345"}), distribution("b", claims={"x": b"12345"}))
    assert sum(action.bytes for action in plan(snap, "a", "b").actions) == 5


def test_byte_code_belongs_to_the_action_of_its_source() -> None:
    """What installers remove without a row is foreseen, and counted."""
    snap = snapshot(
        distribution("a", claims={"a.py": b"1"}),
        distribution("b", claims={"b.py": b"1"}),
        disk={"__pycache__/a.cpython-311.pyc": b"abc"},
    )
    first, second = plan(snap, "a", "b").actions
    assert at("__pycache__/a.cpython-311.pyc") in first.paths
    assert at("__pycache__/a.cpython-311.pyc") not in second.paths


def test_everything_deleted_belongs_to_an_action() -> None:
    """The prediction and what is shown are the same."""
    snap = snapshot(
        distribution("a", claims={"a.py": b"1", "../../../bin/a": b"#!"}, scripts=("/env/bin/a", "/env/bin/b")),
        disk={"__pycache__/a.cpython-311.pyc": b"abc", "../../../bin/b": b"#!"},
    )
    found = plan(snap, "a")
    assert {path for action in found.actions for path in action.paths} == found.prediction.deleted


def test_a_requirement_that_is_lost_blocks() -> None:
    """With the requirement as written; a cascade removes both."""
    snap = snapshot(distribution("lib"), distribution("app", "3.0", requires=("Lib>=1",)))
    found = plan(snap, "lib")
    lost = one(found, Code.REQUIREMENT_LOST)
    assert (found.verdict, lost.severity) == (Verdict.BLOCK, ERROR)
    assert lost.message == "`app` 3.0 requires Lib>=1, which would no longer be installed"
    assert [item.command for item in found.alternatives] == ["safe-uninstall lib --cascade"]


def test_findings_are_sorted_errors_first() -> None:
    """Then warnings, then notes; within, by the order of the codes, and stable."""
    snap = snapshot(
        distribution("dup", "1.0", {"gone": None, "d/a": b"1"}),
        distribution("dup", "2.0"),
        distribution("b", requires=("dup",)),
        distribution("a", requires=("dup",)),
        disk={"d/mine": b""},
    )
    found = plan(snap, "dup")
    assert codes(found) == [
        (Code.REQUIREMENT_LOST, ERROR),
        (Code.REQUIREMENT_LOST, ERROR),
        (Code.UNOWNED_LEFT, WARNING),
        (Code.DUPLICATE_DISTRIBUTION, WARNING),
        (Code.ALREADY_MISSING, NOTE),
    ]
    assert [item.distribution.name for item in found.findings[:2] if item.distribution] == ["a", "b"]


def test_edited_files_are_warned_of() -> None:
    """They stay."""
    snap = snapshot(distribution("a", claims={"x": b"a"}), distribution("b", claims={"x": b"bb"}), disk={"x": b"mine!"})
    found = plan(snap, "b")
    assert (found.verdict, codes(found)) == (Verdict.ALLOW, [(Code.FILE_OVERWRITTEN, WARNING)])
    assert one(found, Code.FILE_OVERWRITTEN).message == "1 file that stays holds nobody's bytes: somebody edited it"


def test_damage_among_survivors_is_noted() -> None:
    """It was so before."""
    snap = snapshot(
        distribution("a", claims={"x": b"a"}),
        distribution("c", claims={"x": b"ccc"}),
        distribution("b", claims={"x": b"bb"}),
        disk={"x": b"ccc"},
    )
    found = plan(snap, "b")
    assert codes(found) == [(Code.FILE_OVERWRITTEN, NOTE)]
    assert one(found, Code.FILE_OVERWRITTEN).message == "1 file of `a` 1.0 already holds the bytes of c 1.0"


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"x": None}, "1 file of `a` 1.0 is missing already"),
        ({"x": None, "y": None}, "2 files of `a` 1.0 are missing already"),
    ],
)
def test_missing_claims_are_noted(claims: dict[str, None], message: str) -> None:
    """An installation that was killed half-way can still be removed."""
    found = plan(snapshot(distribution("a", claims=claims)), "a")
    assert (found.verdict, codes(found)) == (Verdict.ALLOW, [(Code.ALREADY_MISSING, NOTE)])
    assert one(found, Code.ALREADY_MISSING).message == message


def test_unreadable_files_are_warned_of_where_a_library_goes() -> None:
    """What they need is unknown; where no library goes it is only a note, and what goes itself is no news."""
    snap = snapshot(
        distribution("lib", claims={"l.so": b"l"}),
        distribution("text", claims={"t.txt": b"t"}),
        distribution("bad", claims={"bad.so": b"x"}),
        objects=[elf(at("l.so"), "l.so")],
        unreadable={at("bad.so"): "truncated"},
    )
    found = one(plan(snap, "lib"), Code.UNREADABLE_ELF)
    assert (found.severity, found.paths) == (WARNING, (at("bad.so"),))
    assert found.message == "1 ELF file cannot be read: what they need is unknown"
    assert found.notes == (f"{at('bad.so')}: truncated",)
    assert one(plan(snap, "text"), Code.UNREADABLE_ELF).severity is NOTE
    assert plan(snap, "bad").findings == ()


def changed_provider(*exports: str, imports: tuple[str, ...] = ("f", "g")) -> Snapshot:
    """Return an environment where a need falls to a second library when the first goes."""
    snap = snapshot(
        distribution("first", claims={"first/l.so": b"1"}),
        distribution("second", claims={"second/l.so": b"2"}),
        distribution("app", claims={"app.so": b"a"}),
        objects=[
            elf(at("first/l.so"), "l.so"),
            elf(at("second/l.so"), "l.so"),
            elf(at("app.so"), None, "l.so", rpath="$ORIGIN/first:$ORIGIN/second"),
        ],
    )
    assert isinstance(snap.evidence, Disk)

    def table(exported: tuple[str, ...] = (), undefined: tuple[str, ...] = ()) -> SymbolTable:
        return SymbolTable(
            exported=frozenset(exported),
            undefined=frozenset(undefined),
            versions_defined=frozenset(),
            versions_needed=(),
        )

    snap.evidence.tables = {
        at("first/l.so"): table(imports),
        at("second/l.so"): table(exports),
        at("app.so"): table((), imports),
    }
    return snap


def test_a_provider_that_fits_is_a_note() -> None:
    """The need is met by another file, which has all that is wanted of it."""
    found = plan(changed_provider("f", "g", "h"), "first")
    assert (found.verdict, codes(found)) == (Verdict.ALLOW, [(Code.PROVIDER_CHANGED, NOTE)])
    note = one(found, Code.PROVIDER_CHANGED)
    assert note.message == "app.so would load another l.so"
    assert (note.path, note.paths) == (at("first/l.so"), (at("second/l.so"),))


def test_a_provider_that_lacks_symbols_is_a_loss() -> None:
    """The first few of them are named."""
    found = plan(changed_provider("f"), "first")
    lost = one(found, Code.SYMBOLS_LOST)
    assert (found.verdict, lost.severity) == (Verdict.BLOCK, ERROR)
    assert lost.message == "app.so would load another l.so, which lacks what it needs"
    assert "missing symbols: g" in lost.notes
    many = plan(changed_provider("f", imports=("f", "a", "b", "c", "d", "e")), "first")
    assert "missing symbols: a, b, c and 2 more" in one(many, Code.SYMBOLS_LOST).notes


@pytest.mark.parametrize("name", ["l.so", "app", "first/l.so", at("first/l.so")])
def test_lost_symbols_can_be_accepted(name: str) -> None:
    """By soname, by the provider before, or by the consumer."""
    found = plan(changed_provider("f"), "first", accept=(name,))
    assert (found.verdict, codes(found)) == (Verdict.ALLOW, [(Code.SYMBOLS_LOST, WARNING)])
    assert found.findings[0].accepted


@pytest.mark.parametrize(
    "accept",
    [
        ("libcudnn.so.9", "nvidia-cudnn-cu12"),
        ("NVIDIA_cudnn.cu12",),
        ("torch", "nvidia-cudnn-cu12"),
        (at(CUDNN), "nvidia/cudnn/h.h"),
        ("libcudnn.so.9", "h.h"),
    ],
)
def test_accepted_losses_become_warnings(accept: tuple[str, ...]) -> None:
    """Named by soname, distribution or path, maybe shortened; the plan says that they were accepted."""
    found = plan(incident(), "nvidia-cudnn-cu13", accept=accept)
    assert found.verdict is Verdict.ALLOW
    assert codes(found) == [(Code.LIBRARY_LOST, WARNING), (Code.FILE_LOST, WARNING)]
    assert all(item.accepted for item in found.findings)


@pytest.mark.parametrize("accept", [("libcudnn.so.9",), ("torch",), ("h.h", "torch")])
def test_a_loss_is_accepted_as_a_whole_or_not(accept: tuple[str, ...]) -> None:
    """One file of two, or the library without the files: what was not named still blocks."""
    found = plan(incident(), "nvidia-cudnn-cu13", accept=accept)
    assert found.verdict is Verdict.BLOCK
    assert {item.code for item in found.findings if item.severity is ERROR} == {Code.FILE_LOST}


def test_every_consumer_must_be_accepted() -> None:
    """Accepting that torch breaks is not accepting that another breaks too."""
    base = incident()
    other = elf(at("other.so"), None, "libcudnn.so.9", rpath="$ORIGIN/nvidia/cudnn/lib")
    snap = snapshot(
        distribution("nvidia-cudnn-cu13", "9.24.0.43", {CUDNN: b"cu13!"}),
        distribution("torch", "2.9.1", {TORCH: b"torch"}),
        objects=[*base.objects.values(), other],
    )
    assert plan(snap, "nvidia-cudnn-cu13", accept=("torch",)).verdict is Verdict.BLOCK
    assert plan(snap, "nvidia-cudnn-cu13", accept=("torch", "other.so")).verdict is Verdict.ALLOW


def test_an_accepted_loss_that_is_none_is_a_mistake() -> None:
    """A typing error must not pass for consent."""
    with pytest.raises(UsageError) as caught:
        plan(incident(), "nvidia-cudnn-cu13", accept=("libcudnn.so.8", "torch", "libcudnn.so.8"))
    assert caught.value.message == "--accept-loss `libcudnn.so.8`: this plan loses no such thing"


def test_what_is_no_loss_cannot_be_accepted() -> None:
    """A missing RECORD is not the user's to wave through."""
    snap = snapshot(distribution("a"), environment=environment(externally_managed="no"))
    with pytest.raises(UsageError):
        plan(snap, "a", accept=("a",))


def test_unowned_files_are_listed_first() -> None:
    """Also below a directory of the distribution; byte code is no news; a link that will dangle is said to."""
    snap = snapshot(
        distribution("a", claims={"a/lib/l.so.1": b"1", "a/__init__.py": b""}),
        disk={
            "a/lib/l.so": Link("l.so.1"),
            "a/lib/broken": Link("nowhere"),
            "a/data/deep/log.txt": b"",
            "a/old.pyc": b"",
            "a/__pycache__/x.cpython-311.pyc": b"",
            "beside.txt": b"",
        },
    )
    found = plan(snap, "a")
    assert (found.verdict, codes(found)) == (Verdict.ALLOW, [(Code.UNOWNED_LEFT, WARNING)])
    finding = one(found, Code.UNOWNED_LEFT)
    assert finding.paths == (at("a/data/deep/log.txt"), at("a/lib/broken"), at("a/lib/l.so"))
    assert finding.notes == (f"{at('a/lib/l.so')} will lead nowhere",)
    assert finding.message == "3 files beside those of `a` 1.0 belong to nobody and will be left"


@pytest.mark.parametrize("shared", [b"same", b"other"])
def test_directories_that_a_survivor_uses_too_are_not_looked_at(shared: bytes) -> None:
    """In a namespace such as ``nvidia/`` it is not the leaving one that leaves something behind."""
    snap = snapshot(
        distribution("keeps", claims={"n/x": b"same", "n/k/k": b"1"}),
        distribution("goes", claims={"n/x": shared, "n/own/y": b"1", "n/k/z": b"1"}),
        disk={"n/mine": b"", "n/own/mine": b"", "n/k/mine": b""},
    )
    assert one(plan(snap, "goes"), Code.UNOWNED_LEFT).paths == (at("n/own/mine"),)


def test_unowned_files_between_two_leaving_distributions_are_told_once() -> None:
    """A directory that both use is looked at once."""
    snap = snapshot(
        distribution("a", claims={"n/a": b"1"}), distribution("b", claims={"n/b": b"1"}), disk={"n/mine": b""}
    )
    found = plan(snap, "a", "b")
    assert [item.paths for item in found.findings] == [(at("n/mine"),)]


def test_directories_of_everybody_are_not_looked_at() -> None:
    """Neither site-packages nor ``bin`` nor what is above them belongs to a distribution."""
    snap = snapshot(
        distribution("a", claims={"a.py": b"", "../../../bin/a": b"", "../x": b"", "../../../share/a/x": b""}),
        disk={"mine.py": b"", "../../../bin/mine": b"", "../mine": b"", "../../../share/mine": b""},
    )
    assert plan(snap, "a").findings == ()


def test_weak_needs_warn() -> None:
    """A loss whose strength does not block is ``dlopen-lost``."""
    from safe_uninstall.analysis.commands import Commands
    from safe_uninstall.analysis.findings import library_findings
    from safe_uninstall.analysis.losses import LibraryLoss, LinkageJudgement
    from safe_uninstall.analysis.ownership import Owners, judge_ownership

    snap = incident()
    loss = LibraryLoss(name="x.so", provider="", strength=Strength.NAMED, consumers=(), searched=())
    leaving = snap.distributions[:1]
    (finding,) = library_findings(
        LinkageJudgement(losses=(loss,)),
        Owners(snap.distributions),
        judge_ownership(snap, leaving),
        leaving,
        Commands(snap, InstallerKind.PIP),
    )
    assert (finding.code, finding.severity) == (Code.DLOPEN_LOST, WARNING)
    assert finding.message == "removing this leaves x.so without a provider"
    assert (finding.path, finding.help) == (None, ())


def test_no_such_name() -> None:
    """Nothing is planned for a request that cannot be understood in full."""
    with pytest.raises(NotInstalled):
        plan(incident(), "torch", "absent")


@pytest.mark.parametrize(
    ("created_by_uv", "asked", "expected"),
    [
        (False, None, InstallerKind.PIP),
        (True, None, InstallerKind.UV),
        (True, InstallerKind.PIP, InstallerKind.PIP),
        (False, InstallerKind.UV, InstallerKind.UV),
    ],
)
def test_the_installer_is_the_environments_unless_asked_for(
    created_by_uv: bool, asked: InstallerKind | None, expected: InstallerKind
) -> None:
    """Uv where uv made the environment, else pip."""
    target = environment(created_by_uv=created_by_uv)
    assert plan(incident(environment=target), "torch", installer=asked).installer is expected


def test_the_fingerprint_is_that_of_its_parts_and_changes_with_the_bytes_on_disk() -> None:
    """Cu12 reinstalled meanwhile: what blocked would be released, so that the old plan is stale."""
    before = plan(incident(), "nvidia-cudnn-cu13")
    assert plan(incident(), "nvidia-cudnn-cu13").fingerprint == before.fingerprint
    after = plan(incident(disk={CUDNN: b"cu12", "nvidia/cudnn/h.h": b"12"}), "nvidia-cudnn-cu13")
    assert after.verdict is Verdict.ALLOW
    assert after.fingerprint != before.fingerprint


def test_linkage_is_judged_on_glibc_only() -> None:
    """Elsewhere ownership still is."""
    snap = incident()
    found = plan(replace(snap, system=replace(snap.system, libc="musl")), "nvidia-cudnn-cu13")
    assert codes(found) == [(Code.FILE_LOST, ERROR)]


def test_a_library_path_binds_only_when_asked_for() -> None:
    """LD_LIBRARY_PATH of the planning shell is not that of the next one."""
    objects: list[ElfObject] = [elf(f"{PREFIX}/x/libp.so", "libp.so"), elf(at("c.so"), None, "libp.so")]
    snap = snapshot(
        distribution("p", claims={"../../../x/libp.so": b"p"}), objects=objects, library_path=(f"{PREFIX}/x",)
    )
    assert codes(plan(snap, "p")) == [(Code.DLOPEN_LOST, WARNING)]
    assert codes(plan(snap, "p", use_library_path=True)) == [(Code.LIBRARY_LOST, ERROR)]
