"""What is damaged in an environment as it stands, judged over environments in memory."""

from dataclasses import replace
from typing import Any

import pytest

from safe_uninstall.analysis.audit import audit
from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.damage import find_damage, is_essential
from safe_uninstall.analysis.loads import Baseline
from safe_uninstall.analysis.mixed_cuda import cuda_major, find_mixed_cuda
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.repair import choose_repairs
from safe_uninstall.analysis.unmet import find_unmet
from safe_uninstall.model.distribution import MetadataKind, RecordState
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.plan import Code, Finding, Severity
from safe_uninstall.model.snapshot import Snapshot
from tests.support.fakes import SITE, Link, Row, at, distribution, elf, snapshot

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
CUDNN = "nvidia/cudnn/lib/libcudnn.so.9"
CUBLAS = "nvidia/cublas/lib/libcublas.so.12"
TORCH = "torch/lib/libtorch_cuda.so"


def incident(*, torch: bool = True, **changes: Any) -> Snapshot:
    """Return the contaminated state: torch requires cu12, and loads cu13's cuDNN."""
    needy = [distribution("torch", "2.9.1", {TORCH: b"t"}, requires=("nvidia-cudnn-cu12==9.10.2.21",))]
    return snapshot(
        distribution("nvidia-cublas-cu12", "12.8", {CUBLAS: b"blas"}),
        distribution("nvidia-cudnn-cu12", "9.10.2.21", {CUDNN: b"cu12", "nvidia/cudnn/cu12.txt": b"12"}),
        *(needy if torch else []),
        distribution("nvidia-cudnn-cu13", "9.24.0.43", {CUDNN: b"cu13!"}),
        objects=[
            elf(at(CUBLAS), "libcublas.so.12"),
            elf(at(CUDNN), "libcudnn.so.9"),
            elf(
                at(TORCH),
                "libtorch_cuda.so",
                "libcudnn.so.9",
                "libcublas.so.12",
                rpath="$ORIGIN/../../nvidia/cudnn/lib:$ORIGIN/../../nvidia/cublas/lib",
            ),
        ],
        **changes,
    )


def found(snap: Snapshot, **options: Any) -> list[Finding]:
    """Audit an environment that ``-p /env`` leads to."""
    return list(audit(snap, Commands(snap, InstallerKind.PIP, python="/env"), **options))


def codes(snap: Snapshot, **options: Any) -> list[tuple[Code, Severity]]:
    """Return code and severity of each finding, in order."""
    return [(item.code, item.severity) for item in found(snap, **options)]


def test_nothing_is_wrong_with_a_healthy_environment() -> None:
    """Shared identical files, links, byte code that is gone, changed scripts and metadata are no damage."""
    snap = snapshot(
        distribution("a", claims={"n/__init__.py": b"", "a.py": b"1", "__pycache__/a.cpython-311.pyc": None}),
        distribution("b", claims={"n/__init__.py": b"", "link": Link("a.py"), "../../../bin/b": b"#!python"}),
        disk={"../../../bin/b": b"#!/env/bin/python", "a-1.0.dist-info/METADATA": b"changed"},
    )
    assert found(snap) == []
    assert found(snap, deep=True) == []


def test_the_contaminated_state_is_told_with_both_ways_out() -> None:
    """The one that is required is damaged; either the other goes, or only the bytes come back."""
    overwritten, mixed = found(incident())
    assert (overwritten.code, overwritten.severity) == (Code.FILE_OVERWRITTEN, ERROR)
    assert overwritten.message == (
        "1 file of `nvidia-cudnn-cu12` 9.10.2.21 holds the bytes of nvidia-cudnn-cu13 9.24.0.43"
    )
    assert overwritten.paths == (at(CUDNN),)
    assert overwritten.help == (
        "remove what overwrote them, and restore them",
        "safe-uninstall -p /env nvidia-cudnn-cu13 --restore",
        "restore what is damaged, remove nothing",
        "safe-uninstall -p /env check --fix",
    )
    assert (mixed.code, mixed.severity) == (Code.MIXED_CUDA, WARNING)
    assert mixed.message == "`torch` 2.9.1 requires CUDA 12, and loads libcudnn.so.9 of CUDA 13"
    assert mixed.notes == ("libcudnn.so.9 is of nvidia-cudnn-cu13 9.24.0.43; required is nvidia-cudnn-cu12==9.10.2.21",)
    assert mixed.paths == (at(CUDNN),)
    assert mixed.help == overwritten.help


def test_all_that_overwrote_something_goes_at_once() -> None:
    """One command mends two damaged distributions, and what one of the leftovers lacks need not be installed."""
    snap = snapshot(
        distribution("app", requires=("one", "two")),
        distribution("one", claims={"one.so": b"1"}),
        distribution("over-one", claims={"one.so": b"11"}, requires=("absent>=1",)),
        distribution("over-two", claims={"two.so": b"22"}),
        distribution("two", claims={"two.so": b"2"}),
        disk={"one.so": b"11", "two.so": b"22"},
    )
    first, second, unmet = found(snap)
    assert [item.code for item in (first, second)] == [Code.FILE_OVERWRITTEN] * 2
    assert first.help == second.help == unmet.help
    assert first.help[1] == "safe-uninstall -p /env over-one over-two --restore"
    assert unmet.code is Code.REQUIREMENT_LOST


def test_what_overwrote_something_and_is_needed_itself_is_not_to_be_removed() -> None:
    """Its removal would lose another library: only the bytes come back."""
    snap = snapshot(
        distribution("app", claims={"app.so": b"a"}, requires=("one",)),
        distribution("one", claims={"one.so": b"1"}),
        distribution("over-one", claims={"one.so": b"11", "more.so": b"m"}),
        objects=[elf(at("one.so")), elf(at("more.so")), elf(at("app.so"), None, "more.so", rpath="$ORIGIN")],
        disk={"one.so": b"11"},
    )
    (overwritten,) = found(snap)
    assert overwritten.help == ("restore what is damaged, remove nothing", "safe-uninstall -p /env check --fix")


def test_what_is_required_and_not_there_can_be_installed() -> None:
    """One command for all requirements, by the installer of the environment."""
    snap = snapshot(distribution("a", requires=("absent>=1", 'other; python_version > "3"')), distribution("b"))
    (unmet,) = found(snap)
    assert unmet.message == "2 requirements are not satisfied"
    assert unmet.help[0] == "install what is missing"
    assert unmet.help[1].endswith("install 'absent>=1' other")


def test_undone_too_late() -> None:
    """Pip took the library with cu13: cu12 is installed and has it not, and torch needs it."""
    snap = snapshot(
        distribution("nvidia-cudnn-cu12", "9.10.2.21", {CUDNN: b"cu12", "nvidia/cudnn/cu12.txt": b"12"}),
        distribution("torch", "2.9.1", {TORCH: b"t"}),
        objects=[elf(at(TORCH), None, "libcudnn.so.9", rpath="$ORIGIN/../../nvidia/cudnn/lib")],
        disk={CUDNN: None},
    )
    missing, lost = found(snap)
    assert (missing.code, missing.severity) == (Code.ALREADY_MISSING, ERROR)
    assert missing.message == "`nvidia-cudnn-cu12` 9.10.2.21 is installed, but 1 of its 2 files is missing"
    assert missing.help == ("restore what is damaged, remove nothing", "safe-uninstall -p /env check --fix")
    assert (lost.code, lost.severity) == (Code.LIBRARY_LOST, ERROR)
    assert lost.message == "libcudnn.so.9 is needed and not there, though nvidia-cudnn-cu12 9.10.2.21 should provide it"
    assert (lost.path, lost.soname) == (at(CUDNN), "libcudnn.so.9")
    (consumer,) = lost.consumers
    assert (consumer.path, consumer.how) == (at(TORCH), "not found")
    assert consumer.distribution is not None
    assert consumer.distribution.label == "torch 2.9.1"


def test_where_nothing_tells_which_is_needed_the_user_must_say() -> None:
    """Neither is required: removing either is offered, and ``--fix`` leaves both alone."""
    snap = incident(torch=False)
    overwritten, orphaned = found(snap)
    assert (orphaned.code, orphaned.paths) == (Code.UNOWNED_LEFT, (at("torch"),))
    assert (overwritten.code, overwritten.severity) == (Code.FILE_OVERWRITTEN, ERROR)
    assert overwritten.help == (
        "keep nvidia-cudnn-cu12",
        "safe-uninstall -p /env nvidia-cudnn-cu13 --restore",
        "keep nvidia-cudnn-cu13",
        "safe-uninstall -p /env nvidia-cudnn-cu12 --restore",
    )


def test_where_both_are_required_the_loss_must_be_accepted() -> None:
    """Removing either breaks a requirement: the command says so, and it works as it stands."""
    snap = snapshot(
        distribution("a", claims={"lib.so": b"1"}),
        distribution("b", claims={"lib.so": b"22"}),
        distribution("user", requires=("a", "b")),
    )
    (overwritten,) = found(snap)
    assert overwritten.help == (
        "keep a, though something requires b",
        "safe-uninstall -p /env b --restore --accept-loss b",
        "keep b, though something requires a",
        "safe-uninstall -p /env a --restore --accept-loss a",
    )


def test_what_cannot_be_removed_at_all_is_not_offered() -> None:
    """One has no RECORD that an installer could follow, and accepting its loss does not help."""
    snap = snapshot(
        distribution("a", claims={"lib.so": b"1"}),
        distribution("b", claims={"lib.so": b"22"}, conda_package="b-1.0-0"),
    )
    (overwritten,) = found(snap)
    assert overwritten.help == ("keep b", "safe-uninstall -p /env a --restore")


def test_a_leftover_that_gave_way_is_a_warning() -> None:
    """After a repair cu13 is the one that is overwritten, and nobody requires it."""
    snap = snapshot(
        distribution("nvidia-cudnn-cu13", "9.24.0.43", {CUDNN: b"cu13!"}),
        distribution("torch", requires=("nvidia-cudnn-cu12",)),
        distribution("nvidia-cudnn-cu12", "9.10.2.21", {CUDNN: b"cu12"}),
        objects=[elf(at(CUDNN), "libcudnn.so.9")],
    )
    (warning,) = found(snap)
    assert (warning.code, warning.severity) == (Code.FILE_OVERWRITTEN, WARNING)
    assert warning.help == ("nothing that is installed requires it", "safe-uninstall -p /env nvidia-cudnn-cu13")


def test_one_that_gave_way_and_misses_files_besides_is_damaged() -> None:
    """Giving way explains other bytes, not files that are gone."""
    snap = snapshot(
        distribution("loser", claims={"lib.so": b"1", "own.so": b"own"}),
        distribution("user", requires=("winner",)),
        distribution("winner", claims={"lib.so": b"22"}),
        disk={"own.so": None},
    )
    missing, overwritten = found(snap)
    assert [(item.code, item.severity) for item in (missing, overwritten)] == [
        (Code.ALREADY_MISSING, ERROR),
        (Code.FILE_OVERWRITTEN, ERROR),
    ]
    assert missing.help == overwritten.help
    assert overwritten.help == (
        "keep loser, though something requires winner",
        "safe-uninstall -p /env winner --restore --accept-loss winner",
        "keep winner",
        "safe-uninstall -p /env loser --restore",
    )


def test_needs_that_source_meets_are_met() -> None:
    """Two libraries that Python loads by their file names before the modules that need them."""
    source = b"CDLL('libone.so'); CDLL('libtwo.so')"
    snap = snapshot(
        distribution("a", claims={"a/__init__.py": source, "a/l/libone.so": b"1", "a/l/libtwo.so": b"2"}),
        distribution("b", claims={"b/one.so": b"1", "b/two.so": b"2", "b/three.so": b"3"}),
        objects=[
            elf(at("a/l/libone.so"), "libone.so"),
            elf(at("a/l/libtwo.so"), "libtwo.so"),
            elf(at("b/one.so"), None, "libone.so"),
            elf(at("b/two.so"), None, "libtwo.so"),
        ],
    )
    assert found(snap) == []


def test_files_left_out_of_an_image_on_purpose_are_notes() -> None:
    """Tests, headers and documents are missed by nobody; each kind is one note for all distributions."""
    snap = snapshot(
        distribution("a", claims={"a/__init__.py": b"", "a/tests/test_a.py": b"1", "a/x.h": b"1", "LICENSE": b"a"}),
        distribution("b", claims={"b/__init__.py": b"", "b/tests/test_b.py": b"1", "LICENSE": b"bb"}),
        distribution("c", claims={"c/__init__.py": b"c", "c/d.py": b"c"}),
        disk={"a/tests/test_a.py": None, "b/tests/test_b.py": None, "c/d.py": b"by hand"},
    )
    missing, overwritten, edited = found(snap)
    assert (missing.severity, missing.code) == (NOTE, Code.ALREADY_MISSING)
    assert missing.message == ("2 files of a, b are missing: none of them a library or the top of a package")
    assert missing.paths == (at("a/tests/test_a.py"), at("b/tests/test_b.py"))
    assert (overwritten.severity, overwritten.code) == (NOTE, Code.FILE_OVERWRITTEN)
    assert overwritten.message == (
        "1 file of a holds another distribution's bytes: none of them a library or the top of a package"
    )
    assert (edited.severity, edited.code) == (NOTE, Code.FILE_OVERWRITTEN)
    assert edited.message == "1 file of c holds nobody's bytes: somebody edited it"


def test_notes_name_three_distributions() -> None:
    """And how many more there are."""
    names = ("a", "b", "c", "d")
    snap = snapshot(
        *(distribution(name, claims={f"{name}/__init__.py": b"", f"{name}/x.h": b"1"}) for name in names),
        disk={f"{name}/x.h": None for name in names},
    )
    (missing,) = found(snap)
    assert missing.message.startswith("4 files of a, b, c and 1 more are missing")
    edited = snapshot(
        *(distribution(name, claims={f"{name}/x.py": b"1"}) for name in names[:2]),
        disk={f"{name}/x.py": b"longer" for name in names[:2]},
    )
    assert [item.message for item in found(edited)] == ["2 files of a, b hold nobody's bytes: somebody edited them"]


def test_an_edit_that_keeps_the_size_is_found_by_hashing() -> None:
    """Sizes are compared unless every file is to be hashed; a row without a size or hash says nothing."""
    snap = snapshot(
        distribution("a", claims={"a/b.py": b"1", "a/c.py": Row(), "a/d.py": Row(hash="sha256=x")}),
        disk={"a/b.py": b"2"},
    )
    assert find_damage(snap) == ()
    (damage,) = find_damage(snap, deep=True)
    assert damage.edited == (at("a/b.py"), at("a/d.py"))


@pytest.mark.parametrize(
    ("path", "missed"),
    [
        ("a/lib/libx.so", True),
        ("a/lib/libx.so.1.2", True),
        ("a/__init__.py", True),
        ("a.py", True),
        ("tests/__init__.py", False),
        ("a/b/__init__.py", False),
        ("a/b.py", False),
        ("a/b.h", False),
        ("../../../share/doc.py", False),
    ],
)
def test_what_a_program_surely_misses(path: str, missed: bool) -> None:
    """Libraries, and what an import of the package itself reads."""
    assert is_essential(at(path), (SITE,)) is missed


def test_an_installation_that_was_never_finished_is_damage() -> None:
    """More than half of the files are gone, whatever they are."""
    snap = snapshot(
        distribution("a", claims={"a/1.h": b"1", "a/2.h": b"2", "a/3.h": b"3"}),
        disk={"a/1.h": None, "a/2.h": None},
    )
    (missing,) = found(snap)
    assert (missing.severity, missing.message) == (
        ERROR,
        "`a` 1.0 is installed, but 2 of its 3 files are missing",
    )
    (damage,) = find_damage(snap)
    assert choose_repairs(snap, (damage,)).restore == (damage,)


def test_what_conda_or_somebody_else_owns_is_not_ours_to_audit() -> None:
    """Their files are not held against a RECORD of ours."""
    snap = snapshot(
        distribution("a", claims={"a.py": None}, conda_package="a-1.0-0"),
        distribution("b", claims={"b.py": None}, owned_here=False, record={"state": RecordState.MISSING}),
    )
    assert found(snap) == []


def test_needs_that_nothing_ever_met_are_one_note_with_modules_first() -> None:
    """Optional plugins are in every large environment; host libraries are nobody's news."""
    module = "a/m.cpython-311-x86_64-linux-gnu.so"
    snap = snapshot(
        distribution("a", claims={"a/plugin.so": b"p", module: b"m"}),
        objects=[
            elf(at("a/plugin.so"), None, "liboracle.so.1", "libcuda.so.1"),
            elf(at(module), None, "libmysql.so.2", "libodbc.so.1", "libx.so.1", "liby.so.1"),
            elf(at("unowned.so"), None, "liby.so.1"),
        ],
    )
    (note,) = found(snap)
    assert (note.code, note.severity) == (Code.LIBRARY_LOST, NOTE)
    assert note.message == (
        "3 files need libraries that nothing here ever provided: libmysql.so.2, libodbc.so.1, liboracle.so.1 and 2 more"
    )
    assert [item.path for item in note.consumers] == [at(module), at("a/plugin.so"), at("unowned.so")]
    assert [item.distribution is None for item in note.consumers] == [False, False, True]
    assert note.notes == ("1 file of these are extension modules",)


def test_a_single_plugin() -> None:
    """In the singular, and without a word on modules."""
    snap = snapshot(distribution("a", claims={"a/p.so": b"p"}), objects=[elf(at("a/p.so"), None, "libz9.so.1")])
    (note,) = found(snap)
    assert note.message == "1 file needs libraries that nothing here ever provided: libz9.so.1"
    assert note.notes == ()


def test_what_something_loads_first_is_met() -> None:
    """Torchvision's need of libtorch.so is nobody's worry: importing torch brings it."""
    module = "torch/_C.cpython-311-x86_64-linux-gnu.so"
    snap = snapshot(
        distribution("torch", claims={module: b"m", "torch/lib/libtorch.so": b"t"}),
        distribution("vision", claims={"vision/_C.so": b"v"}),
        objects=[
            elf(at(module), None, "libtorch.so", runpath="$ORIGIN/lib"),
            elf(at("torch/lib/libtorch.so"), "libtorch.so"),
            elf(at("vision/_C.so"), None, "libtorch.so"),
        ],
    )
    assert found(snap) == []


def test_linkage_is_not_judged_where_the_loader_is_another() -> None:
    """Musl's differs."""
    snap = incident()
    musl = replace(snap, system=replace(snap.system, libc="musl"))
    owners = Owners(musl.distributions)
    unmet = find_unmet(musl, owners, Baseline(musl))
    assert (unmet.certain, unmet.others) == ((), ())


def test_one_major_is_not_mixed() -> None:
    """Nor is a library whose bytes are nobody's, or that one of the majors merely has installed."""
    snap = incident(disk={CUDNN: b"edited by hand"})
    owners = Owners(snap.distributions)
    assert find_mixed_cuda(snap, owners, Baseline(snap)) == ()
    single = snapshot(distribution("nvidia-cudnn-cu12"), distribution("torch"))
    assert find_mixed_cuda(single, Owners(single.distributions), Baseline(single)) == ()


@pytest.mark.parametrize(
    ("name", "major"),
    [
        ("nvidia-cudnn-cu12", 12),
        ("librmm-cu13", 13),
        ("torch-cu118", 11),
        ("nvidia-cublas", None),
        ("accu12", None),
        ("cupy-cuda12x", None),
    ],
)
def test_the_major_of_a_wheel(name: str, major: int | None) -> None:
    """As NVIDIA's and RAPIDS' wheels write it."""
    assert cuda_major(name) == major


def test_requirements_duplicates_records_and_leftovers() -> None:
    """Each kind is told once, with what can be done."""
    snap = snapshot(
        distribution("app", requires=("lib>=2", "absent")),
        distribution("dup", "1.0"),
        distribution("dup", "2.0"),
        distribution("lib", "1.0"),
        distribution("bare", record={"state": RecordState.MISSING, "rows": (), "path": None}),
        distribution("torn", record={"state": RecordState.MALFORMED, "problems": ("line 3: no path",)}),
        distribution(
            "egg", metadata_kind=MetadataKind.EGG_INFO, record={"state": RecordState.MISSING, "rows": (), "path": None}
        ),
        distribution("evil", record={"unsafe": ("../../../../etc/passwd",)}),
        leftovers=(at("~orch"),),
    )
    told = found(snap)
    requirement, duplicate = told[:2]
    (bare, torn) = [item for item in told if item.code is Code.RECORD_MISSING]
    (unsafe,) = [item for item in told if item.code is Code.RECORD_UNSAFE]
    (leftover,) = [item for item in told if item.code is Code.UNOWNED_LEFT]
    assert requirement.message == "2 requirements are not satisfied"
    assert requirement.notes == ("app 1.0 requires lib>=2", "app 1.0 requires absent")
    assert duplicate.message == "`dup` is installed 2 times: 1.0, 2.0"
    assert bare.message == "`bare` 1.0 has no RECORD: which files are its own is unknown"
    assert "--ignore-installed --no-deps bare==1.0" in bare.help[-1]
    assert unsafe.notes == ("../../../../etc/passwd",)
    assert torn.message == "`torn` 1.0 has a RECORD that cannot be read: which files are its own is unknown"
    assert torn.notes == ("line 3: no path",)
    assert (leftover.severity, leftover.message) == (NOTE, "1 leftover of failed pip runs")
    assert all(item.severity is WARNING for item in (requirement, duplicate, bare, unsafe, torn))


def test_a_single_requirement_is_in_the_singular() -> None:
    """And several remains in the plural."""
    snap = snapshot(distribution("app", requires=("absent",)), leftovers=(at("~a"), at("~b")))
    assert [item.message for item in found(snap)] == [
        "1 requirement is not satisfied",
        "2 leftovers of failed pip runs",
    ]


def test_unreadable_files_are_said() -> None:
    """Unknown is not nothing."""
    snap = snapshot(distribution("a"), unreadable={at("a.so"): "truncated"})
    assert codes(snap) == [(Code.UNREADABLE_ELF, NOTE)]


def test_among_several_owners_the_one_whose_bytes_are_there_counts() -> None:
    """Consumers that are CUDA wheels themselves only say it again."""
    snap = incident()
    (mixed,) = find_mixed_cuda(snap, Owners(snap.distributions), Baseline(snap))
    assert (mixed.consumer.name, mixed.majors) == ("torch", (12, 13))
    assert [(item.path, item.holder.name) for item in mixed.libraries] == [
        (at(CUBLAS), "nvidia-cublas-cu12"),
        (at(CUDNN), "nvidia-cudnn-cu13"),
    ]


@pytest.mark.parametrize(("libc", "told"), [(True, [(Code.LIBRARY_LOST, NOTE)]), (False, [])])
def test_what_another_machine_provides_is_not_known(libc: bool, told: list[tuple[Code, Severity]]) -> None:
    """Where nothing here is the C library of some files, no library is missed that nobody here ever provided.

    What an installed distribution should provide is missed all the same.
    """
    host = [elf("/usr/lib/libc.so.6", "libc.so.6")] if libc else []
    snap = snapshot(
        distribution("a", claims={"a.so": b""}), objects=[elf(at("a.so"), None, "libc.so.6", "libz.so.1"), *host]
    )
    assert codes(snap) == told
    lost = snapshot(
        distribution("a", claims={"a.so": b""}),
        distribution("b", claims={"libb.so": None}),
        objects=[elf(at("a.so"), None, "libc.so.6", "libb.so"), *host],
    )
    assert (Code.LIBRARY_LOST, ERROR) in codes(lost)
