"""What it takes to undo a transaction, judged over the environment as it is by now."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.errors import UsageError, WheelsUnavailable
from safe_uninstall.model.filesystem import FILE, Entry, EntryKind
from safe_uninstall.model.history import Backup, KeptFile, Pin, Receipt, Removed
from safe_uninstall.model.plan import ActionKind, Code, Finding, Plan, Request, Severity, Verdict
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import Wheel, WheelUnavailable
from tests.support.fakes import SITE, Installed, Link, at, distribution, elf, environment, record_hash, snapshot
from tests.support.wheels import wheel

ID = "20300101T000000"
BACKUP = f"/env/.safe-uninstall/{ID}/stash.kept"


@dataclass
class FakeBackup:
    """Implements ``Backup`` over a mapping of paths to what they held."""

    held: Mapping[str, bytes | Link]
    in_place: frozenset[str] = frozenset()
    objects: Mapping[str, ElfObject] = field(default_factory=dict)
    directories: frozenset[str] = frozenset()
    directory: str = BACKUP
    unreadable: frozenset[str] = frozenset()

    @property
    def files(self) -> Mapping[str, KeptFile]:
        """Return what is kept."""
        return {
            path: KeptFile(
                entry=Entry(EntryKind.SYMLINK, content.target) if isinstance(content, Link) else FILE,
                size=len(content.target if isinstance(content, Link) else content),
                in_place=path in self.in_place,
                object=self.objects.get(path),
            )
            for path, content in self.held.items()
        }

    def digest(self, path: str) -> str | None:
        """Return a digest."""
        content = self.held[path]
        assert isinstance(content, bytes)
        return None if path in self.unreadable else record_hash(content).partition("=")[2]


@dataclass
class FakeHistory:
    """Implements ``History`` with one transaction."""

    transaction: Receipt
    kept: FakeBackup | None = None

    def receipt(self, identifier: str) -> Receipt:
        """Return the receipt."""
        assert identifier == self.transaction.identifier
        return self.transaction

    def backup(self, identifier: str) -> Backup | None:
        """Return the backup."""
        assert identifier == self.transaction.identifier
        return self.kept


@dataclass
class FakeSource:
    """Implements ``WheelSource``: wheels by name."""

    wheels: Mapping[str, Wheel] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def restore(self, distribution: Distribution) -> Wheel | WheelUnavailable:
        """Return the wheel of that name."""
        self.asked.append(distribution.label)
        found = self.wheels.get(distribution.name)
        return found or WheelUnavailable(requirement=f"{distribution.name}=={distribution.version}", reason="nowhere")

    def resolve(self, requirements: tuple[str, ...]) -> tuple[Wheel, ...] | WheelUnavailable:
        """Nobody asks."""
        raise AssertionError(requirements)


def receipt(*removed: Installed, **more: Any) -> Receipt:
    """Return the receipt of a transaction that removed distributions."""
    facts: dict[str, Any] = {
        "identifier": ID,
        "time": "2030-01-01T00:00:00+00:00",
        "tool_version": "1",
        "removed": tuple(Removed(distribution=item.distribution, facts={"INSTALLER": "pip"}) for item in removed),
    }
    return Receipt(**{**facts, **more})


def pin(item: Installed) -> Pin:
    """Return a distribution as a receipt names what came."""
    found = item.distribution
    return Pin(name=found.name, version=found.version, metadata_path=found.metadata_path)


def by_wheels(snap: Snapshot, told: Receipt, *wheels: Wheel, accept: tuple[str, ...] = ()) -> Plan:
    """Plan an undo without a backup."""
    source = FakeSource({item.name: item for item in wheels})
    request = Request(names=(), undo=ID, accepted_losses=accept)
    return make_plan(snap, request, source, history=FakeHistory(told))


def by_backup(snap: Snapshot, told: Receipt, kept: FakeBackup, accept: tuple[str, ...] = (), **options: Any) -> Plan:
    """Plan an undo with a backup."""
    source = FakeSource()
    request = Request(names=(), undo=ID, accepted_losses=accept, **options)
    plan = make_plan(snap, request, source, history=FakeHistory(replace(told, backup_bytes=1), kept))
    assert source.asked == [], "what a backup has is not fetched"
    return plan


def found(plan: Plan, code: Code) -> tuple[Finding, ...]:
    """Return the findings of a code."""
    return tuple(item for item in plan.findings if item.code is code)


def paths(plan: Plan) -> set[str]:
    """Return what a plan writes, relative to site-packages."""
    return {path.removeprefix(f"{SITE}/") for path in plan.prediction.written}


def everything(*installed: Installed) -> dict[str, bytes | Link]:
    """Return what the installations of distributions wrote, the last one over the others."""
    held: dict[str, bytes | Link] = {}
    for item in installed:
        held.update(item.written)
    return held


GONE = distribution("gone", "1.0", {"gone/a.py": b"a", "gone/data.txt": b"d"}, requires=("absent>2",))
OTHER = distribution("other", "1.0", {"other.py": b"o"})
GONE_WHEEL = wheel("gone", "1.0", {"gone/a.py": b"a", "gone/data.txt": b"d"}, requires=("absent>2",))


def test_wheels_bring_back_what_was_removed() -> None:
    """The pins of the receipt are asked for, and what they say of how they came there goes with the plan."""
    plan = by_wheels(snapshot(OTHER), receipt(GONE), GONE_WHEEL)
    assert plan.verdict is Verdict.ALLOW
    assert [(action.kind, action.distribution.label) for action in plan.actions] == [(ActionKind.INSTALL, "gone 1.0")]
    assert plan.wheels == (GONE_WHEEL,)
    assert plan.undo is not None
    assert (plan.undo.transaction, plan.undo.backup) == (ID, None)
    assert plan.undo.facts == {GONE.distribution.metadata_path: {"INSTALLER": "pip"}}
    assert plan.prediction.installed == {GONE.distribution.metadata_path}
    # It missed that before it went as well: nothing that works now is lost.
    (unmet,) = found(plan, Code.REQUIREMENT_LOST)
    assert (unmet.severity, unmet.help) == (Severity.WARNING, ())


def test_without_wheels_nothing_comes_back() -> None:
    """Said before anything changes, and what a source of wheels or a history is for."""
    with pytest.raises(WheelsUnavailable, match=r"no wheel for gone==1\.0: nowhere"):
        by_wheels(snapshot(OTHER), receipt(GONE))
    with pytest.raises(UsageError, match="without a history"):
        make_plan(snapshot(OTHER), Request(names=(), undo=ID), FakeSource())


def test_a_backup_that_is_gone_is_not_counted_on() -> None:
    """The receipt says that one was kept, and it is not there any more."""
    told = receipt(GONE, backup_bytes=5)
    plan = make_plan(
        snapshot(OTHER), Request(names=(), undo=ID), FakeSource({"gone": GONE_WHEEL}), history=FakeHistory(told, None)
    )
    assert plan.wheels == (GONE_WHEEL,)


def test_what_was_installed_goes() -> None:
    """Also where it took the place of an older version, which comes back; what is gone already need not go."""
    new, never = distribution("gone", "2.0", {"gone/a.py": b"A"}), distribution("never", "1.0", {"never.py": b"n"})
    told = receipt(GONE, installed=(pin(new), pin(never)))
    plan = by_wheels(snapshot(new, OTHER), told, GONE_WHEEL)
    assert plan.verdict is Verdict.ALLOW
    labels = [(action.kind, action.distribution.label) for action in plan.actions]
    assert labels == [(ActionKind.UNINSTALL, "gone 2.0"), (ActionKind.INSTALL, "gone 1.0")]
    (note,) = found(plan, Code.NOT_INSTALLED)
    assert note.message == "`never` 1.0, which the transaction brought, is not installed any more"
    assert note.severity is Severity.NOTE


def test_what_was_installed_and_is_needed_by_now_stays() -> None:
    """An undo is judged like any other change."""
    came = distribution("came", "1.0", {"came/liba.so": b"\x7fELF"})
    user = distribution("user", "1.0", {"user.so": b"\x7fELF"})
    objects = [
        elf(at("came/liba.so"), "liba.so"),
        elf(at("user.so"), None, "liba.so", runpath="$ORIGIN/came"),
    ]
    told = receipt(installed=(pin(came),))
    plan = by_wheels(snapshot(came, user, objects=objects), told)
    assert plan.verdict is Verdict.BLOCK
    assert [item.soname for item in found(plan, Code.LIBRARY_LOST)] == ["liba.so"]
    accepted = by_wheels(snapshot(came, user, objects=objects), told, accept=("liba.so",))
    assert accepted.verdict is Verdict.ALLOW
    with pytest.raises(UsageError, match="this plan loses no such thing"):
        by_wheels(snapshot(came, user, objects=objects), told, accept=("libb.so",))


@pytest.mark.parametrize("keeps_backup", [True, False])
def test_what_is_installed_again(keeps_backup: bool) -> None:
    """The same version stays, which is noted; another one blocks, with the command that removes it."""

    def plan(now: Installed) -> Plan:
        if keeps_backup:
            return by_backup(snapshot(now), receipt(GONE), FakeBackup(everything(GONE)))
        return by_wheels(snapshot(now), receipt(GONE), GONE_WHEEL)

    same = plan(GONE)
    (note,) = found(same, Code.DUPLICATE_DISTRIBUTION)
    assert note.message == "`gone` 1.0 is installed again already, and stays as it is"
    assert (same.verdict, same.actions, same.prediction.written) == (Verdict.ALLOW, (), {})
    other = plan(distribution("gone", "2.0", {"gone/a.py": b"A"}))
    (error,) = (item for item in found(other, Code.DUPLICATE_DISTRIBUTION) if item.severity is Severity.ERROR)
    assert error.message == "`gone` is installed again, as 2.0: 1.0 cannot be brought back beside it"
    assert error.help[-1] == "safe-uninstall gone"
    assert other.verdict is Verdict.BLOCK


def test_what_is_merely_visible_is_not_installed_again() -> None:
    """Another version in the system's site-packages was there before, or does not matter."""
    seen = distribution("gone", "2.0", {}, owned_here=False, site_packages="/usr/lib/python3/dist-packages")
    plan = by_wheels(snapshot(seen), receipt(GONE), GONE_WHEEL)
    assert plan.verdict is Verdict.ALLOW


def test_several_of_one_name_come_back_from_a_backup_only() -> None:
    """No installer installs one beside the other."""
    twice = [distribution("dup", version, {f"dup/{version}.py": b"d"}) for version in ("1.0", "2.0")]
    told = receipt(*twice, GONE)
    plan = by_wheels(snapshot(OTHER), told, GONE_WHEEL)
    assert plan.verdict is Verdict.BLOCK
    (error,) = found(plan, Code.DUPLICATE_DISTRIBUTION)
    assert error.message == "`dup` was installed 2 times: no installer brings that back"
    assert error.help[-1].endswith(" dup==1.0")
    back = by_backup(snapshot(OTHER), told, FakeBackup(everything(*twice, GONE)))
    assert back.verdict is Verdict.ALLOW
    assert [action.distribution.label for action in back.actions] == ["dup 1.0", "dup 2.0", "gone 1.0"]


def test_what_was_restored_stays_so_without_a_backup() -> None:
    """And the plan says it; not of what is gone since."""
    told = receipt(GONE, restored=(pin(OTHER), pin(distribution("since", "1.0"))))
    plan = by_wheels(snapshot(OTHER), told, GONE_WHEEL)
    (note,) = found(plan, Code.FILE_OVERWRITTEN)
    assert note.message == "`other` 1.0 keeps the bytes that the transaction gave it: no backup was kept"
    assert note.severity is Severity.NOTE


def test_a_wheel_that_would_overwrite_a_survivor_can_be_accepted() -> None:
    """The incident without a backup: what comes back once overwrote what was restored."""
    cu12 = distribution("cu12", "9", {"cudnn/lib.so": b"twelve"})
    cu13 = distribution("cu13", "9", {"cudnn/lib.so": b"thirteen"})
    back = wheel("cu13", "9", {"cudnn/lib.so": b"thirteen"})
    plan = by_wheels(snapshot(cu12), receipt(cu13, restored=(pin(cu12),)), back)
    assert plan.verdict is Verdict.BLOCK
    (error,) = found(plan, Code.FILE_LOST)
    assert error.help == ("bring it back all the same", f"safe-uninstall undo {ID} --accept-loss cu12")
    accepted = by_wheels(snapshot(cu12), receipt(cu13, restored=(pin(cu12),)), back, accept=("cu12",))
    assert accepted.verdict is Verdict.ALLOW


def test_wheels_that_overwrite_each_other() -> None:
    """Whose bytes stay the installer decides: the outcome is held to neither."""
    one = distribution("one", "1", {"shared.py": b"1", "same.py": b"s"})
    two = distribution("two", "1", {"shared.py": b"2", "same.py": b"s"})
    wheels = [
        wheel("one", "1", {"shared.py": b"1", "same.py": b"s"}),
        wheel("two", "1", {"shared.py": b"2", "same.py": b"s"}),
    ]
    plan = by_wheels(snapshot(OTHER), receipt(one, two), *wheels, accept=("one",))
    assert plan.verdict is Verdict.ALLOW
    assert plan.prediction.written[at("shared.py")] == ""
    assert plan.prediction.written[at("same.py")] == record_hash(b"s")


def test_a_backup_brings_files_and_no_wheels() -> None:
    """Rows, scripts, metadata, byte code; nothing is installed, and no hash is asked for."""
    script = "/env/bin/gone"
    gone = distribution("gone", "1.0", {"gone/a.py": b"a"}, scripts=(script,))
    extra = {
        script: b"#!",
        at("gone/__pycache__/a.cpython-311.pyc"): b"c",
        at("gone-1.0.dist-info/licenses/LICENSE"): b"l",
        at("survivor/__pycache__/b.cpython-311.pyc"): b"not its own",
    }
    kept = FakeBackup({**everything(gone), **extra})
    plan = by_backup(snapshot(OTHER), receipt(gone), kept)
    assert plan.verdict is Verdict.ALLOW
    assert paths(plan) == {
        script,
        "gone/a.py",
        "gone/__pycache__/a.cpython-311.pyc",
        "gone-1.0.dist-info/METADATA",
        "gone-1.0.dist-info/RECORD",
        "gone-1.0.dist-info/licenses/LICENSE",
    }
    assert set(plan.prediction.written.values()) == {""}
    assert (plan.wheels, plan.undo is not None and plan.undo.backup) == ((), BACKUP)
    (action,) = plan.actions
    assert (action.kind, action.reason) == (ActionKind.INSTALL, f"from the backup of {ID}")
    assert action.bytes == sum(item.size for path, item in kept.files.items() if "survivor" not in path)


def test_released_files_are_left_alone() -> None:
    """What is still the very file is in place; what is another file with the same bytes is a survivor's."""
    gone = distribution("gone", "1.0", {"shared.py": b"s", "again.py": b"g", "own.py": b"o"})
    survivor = distribution("survivor", "1.0", {"shared.py": b"s", "again.py": b"g"})
    kept = FakeBackup(everything(gone), in_place=frozenset({at("shared.py")}))
    plan = by_backup(snapshot(survivor), receipt(gone), kept)
    assert plan.verdict is Verdict.ALLOW
    assert paths(plan) == {"own.py", "gone-1.0.dist-info/METADATA", "gone-1.0.dist-info/RECORD"}


@pytest.mark.parametrize(
    ("now", "content", "conflict"),
    [
        (b"mine", b"theirs", True),
        (b"same", b"same", False),
        (Link("there"), Link("there"), False),
        (Link("elsewhere"), Link("there"), True),
        (b"mine", Link("there"), True),
    ],
)
@pytest.mark.parametrize("owned", [True, False])
def test_what_came_since_is_not_overwritten(
    now: bytes | Link, content: bytes | Link, conflict: bool, owned: bool
) -> None:
    """Neither a newcomer's file, whatever hash its RECORD has, nor one of nobody; unless that is accepted."""
    gone = distribution("gone", "1.0", {"a.txt": b"x", "b.py": b"b"})
    kept = FakeBackup({**everything(gone), at("a.txt"): content})
    newcomer = (distribution("newcomer", "3", {"a.txt": None}),) if owned else ()
    snap = snapshot(OTHER, *newcomer, disk={"a.txt": now})
    plan = by_backup(snap, receipt(gone), kept)
    errors = found(plan, Code.FILE_LOST)
    assert (plan.verdict is Verdict.BLOCK) == conflict == bool(errors)
    assert ("a.txt" in paths(plan)) == conflict
    if not conflict:
        return
    whose = "of `newcomer` 3" if owned else "that nobody owns"
    assert errors[0].message == f"bringing `gone` 1.0 back would overwrite 1 file {whose}"
    assert errors[0].paths == (at("a.txt"),)
    name = "newcomer" if owned else "gone"
    assert errors[0].help[-1] == f"safe-uninstall undo {ID} --accept-loss {name}"
    assert by_backup(snap, receipt(gone), kept, accept=(name,)).verdict is Verdict.ALLOW
    assert by_backup(snap, receipt(gone), kept, accept=("a.txt",)).verdict is Verdict.ALLOW


def test_a_backup_that_cannot_be_read_is_not_the_same() -> None:
    """Unknown bytes are not put over anything."""
    gone = distribution("gone", "1.0", {"a.txt": b"x"})
    kept = FakeBackup(everything(gone), unreadable=frozenset({at("a.txt")}))
    plan = by_backup(snapshot(OTHER, disk={"a.txt": b"x"}), receipt(gone), kept)
    assert plan.verdict is Verdict.BLOCK


def test_a_file_shared_by_several_that_come_back_is_told_of_once() -> None:
    """Two that went own the path; one of them stands for it."""
    one, two = distribution("one", "1", {"a.txt": b"x", "b.txt": b"x"}), distribution("two", "1", {"a.txt": b"x"})
    plan = by_backup(
        snapshot(OTHER, disk={"a.txt": b"mine", "b.txt": b"mine"}),
        receipt(one, two),
        FakeBackup(everything(one, two)),
    )
    (error,) = found(plan, Code.FILE_LOST)
    assert error.message == "bringing `one` 1 back would overwrite 2 files that nobody owns"


def test_byte_code_goes_with_its_source() -> None:
    """Byte code of a source that stays is left as it is, whoever made it anew."""
    cache = "pkg/__pycache__/{}.cpython-311.pyc"
    gone = distribution("gone", "1.0", {"pkg/stays.py": b"s", "pkg/back.py": b"b", "pkg/lone.py": None})
    held = everything(gone) | {at(cache.format(stem)): b"old" for stem in ("stays", "back", "lone")}
    survivor = distribution("survivor", "1.0", {"pkg/stays.py": b"s"})
    disk = {cache.format("stays"): b"new", cache.format("back"): b"stray", cache.format("lone"): b"stray"}
    kept = FakeBackup(held, in_place=frozenset({at("pkg/stays.py")}))
    plan = by_backup(snapshot(survivor, disk=disk), receipt(gone), kept)
    assert plan.verdict is Verdict.ALLOW
    assert {path for path in paths(plan) if "__pycache__" in path} == {cache.format("back")}


CU12 = distribution("cu12", "9", {"cudnn/lib.so": b"twelve", "cudnn/twelve.py": b"1", "cudnn/new.py": b"n"})
CU13 = distribution("cu13", "9", {"cudnn/lib.so": b"thirteen"})


def incident(**more: Any) -> tuple[Snapshot, Receipt, FakeBackup]:
    """Return the environment after cu13 was removed and cu12 restored, one file of which had been missing."""
    told = receipt(CU13, restored=(pin(CU12),), created=(at("cudnn/new.py"),))
    before = everything(CU12, CU13)
    del before[at("cudnn/new.py")]
    intact = frozenset(path for path in before if "cu12-9.dist-info" in path)
    disk = {"cudnn/__pycache__/new.cpython-311.pyc": b"c", "cudnn/__pycache__/twelve.cpython-311.pyc": b"c"}
    objects = more.pop("objects", {})
    snap = snapshot(CU12, *more.pop("also", ()), disk={**disk, **more.pop("disk", {})}, **more)
    return snap, told, FakeBackup(before, in_place=intact, objects=objects)


def test_what_was_restored_goes_back_with_a_backup() -> None:
    """Its former bytes, its missing files, and no byte code of those that it has now."""
    snap, told, kept = incident()
    plan = by_backup(snap, told, kept)
    assert plan.verdict is Verdict.ALLOW
    assert paths(plan) == {"cudnn/lib.so", "cudnn/twelve.py", "cu13-9.dist-info/METADATA", "cu13-9.dist-info/RECORD"}
    assert plan.prediction.deleted == {
        at("cudnn/new.py"),
        at("cudnn/__pycache__/new.cpython-311.pyc"),
        at("cudnn/__pycache__/twelve.cpython-311.pyc"),
    }
    assert plan.prediction.restored == {CU12.distribution.metadata_path}
    labels = [(action.kind, action.distribution.label, action.reason) for action in plan.actions]
    assert labels == [
        (ActionKind.RESTORE, "cu12 9", f"the bytes it had before, from the backup of {ID}"),
        (ActionKind.INSTALL, "cu13 9", f"from the backup of {ID}"),
    ]
    (warning,) = found(plan, Code.FILE_OVERWRITTEN)
    assert warning.message == f"`cu12` 9 goes back to what it was before {ID}: 2 files replaced, 1 file missing again"
    assert warning.severity is Severity.WARNING
    assert warning.paths == (at("cudnn/lib.so"), at("cudnn/new.py"), at("cudnn/twelve.py"))


def test_only_missing_files_go_back() -> None:
    """A distribution of which nothing but a missing file was restored has it missing again."""
    snap, told, kept = incident()
    kept.in_place = frozenset(path for path in kept.held if "cu13-9.dist-info" not in path)
    plan = by_backup(snap, told, kept)
    (warning,) = found(plan, Code.FILE_OVERWRITTEN)
    assert warning.message == f"`cu12` 9 goes back to what it was before {ID}: 1 file missing again"
    assert plan.prediction.deleted == {at("cudnn/new.py"), at("cudnn/__pycache__/new.cpython-311.pyc")}


def test_what_is_as_it_was_is_not_touched() -> None:
    """A restored distribution that is as before, or gone since, has no action; the latter is noted."""
    snap, told, kept = incident()
    kept.in_place = frozenset(path for path in kept.held if "cu13-9.dist-info" not in path)
    plan = by_backup(snap, replace(told, created=()), kept)
    assert [action.kind for action in plan.actions] == [ActionKind.INSTALL]
    snap = snapshot(OTHER)
    plan = by_backup(snap, told, FakeBackup(everything(CU13)))
    assert [action.kind for action in plan.actions] == [ActionKind.INSTALL]
    assert [item.message for item in found(plan, Code.NOT_INSTALLED)] == [
        "`cu12` 9, which the transaction brought, is not installed any more"
    ]


def test_a_created_file_that_others_claim_by_now_stays() -> None:
    """It is missing again only for who had it alone."""
    newcomer = distribution("newcomer", "1", {"cudnn/new.py": b"n"})
    snap, told, kept = incident(also=(newcomer,))
    plan = by_backup(snap, told, kept)
    assert at("cudnn/new.py") not in plan.prediction.deleted
    gone_since, told, kept = incident(disk={"cudnn/new.py": None})
    assert at("cudnn/new.py") not in by_backup(gone_since, told, kept).prediction.deleted


def test_the_libraries_of_a_backup_count() -> None:
    """Going back may break what came since; what stays in place, or comes back too, still serves."""
    now = elf(at("cudnn/lib.so"), "libnew.so")
    before = elf(at("cudnn/lib.so"), "libold.so")
    user = distribution("user", "1", {"user.so": b"\x7fELF"})
    needs = elf(at("user.so"), None, "lib.so", runpath="$ORIGIN/cudnn")
    snap, told, kept = incident(also=(user,), objects={at("cudnn/lib.so"): before})
    snap = replace(snap, objects={item.path: item for item in (now, needs)})
    snap.files.objects.update({item.path: item for item in (now, needs)})  # type: ignore[attr-defined]
    assert by_backup(snap, told, kept).verdict is Verdict.ALLOW
    kept.objects = {}
    lost = by_backup(snap, told, kept)
    assert [item.soname for item in found(lost, Code.LIBRARY_LOST)] == ["lib.so"]


def test_directories_come_back_where_something_does() -> None:
    """Those above files that come back, and those that held no file; not those of what stays away."""
    directories = {at("gone"), at("gone/empty"), at("skipped"), SITE, at("gone/there")}
    skipped = distribution("skipped", "1.0", {"skipped/x.py": b"x"})
    kept = FakeBackup(everything(GONE, skipped), directories=frozenset(directories))
    snap = snapshot(distribution("skipped", "1.0", {}), disk={"gone/there/x": b""})
    plan = by_backup(snap, receipt(GONE, skipped), kept)
    assert plan.undo is not None
    assert plan.undo.directories == {at("gone/empty")}
    plan = by_backup(snapshot(distribution("skipped", "1.0", {})), receipt(GONE, skipped), kept)
    assert plan.undo is not None
    assert plan.undo.directories == {at("gone"), at("gone/empty"), at("gone/there")}


def fingerprints(*states: tuple[Mapping[str, bytes | Link | None], Iterable[str]]) -> set[str]:
    """Return the fingerprints of undoing the removal of ``gone`` in several states."""
    return {
        by_backup(
            snapshot(OTHER, disk=disk), receipt(GONE), FakeBackup(everything(GONE), in_place=frozenset(map(at, places)))
        ).fingerprint
        for disk, places in states
    }


def test_the_fingerprint_covers_what_comes_back() -> None:
    """What is in the way, or in place by now, makes another plan; the same state makes the same."""
    none: tuple[Mapping[str, bytes | Link | None], Iterable[str]] = ({}, ())
    assert len(fingerprints(none, none)) == 1
    assert len(fingerprints(none, ({"gone/data.txt": b"x"}, ()), ({}, ("gone/data.txt",)))) == 3
    plan = by_backup(snapshot(OTHER), receipt(GONE), FakeBackup(everything(GONE)))
    assert f"the files to bring back from the backup of {ID}" in dict(plan.fingerprint_parts)


def test_an_environment_that_others_manage_is_not_changed() -> None:
    """PEP 668 holds for an undo too."""
    managed = snapshot(OTHER, environment=environment(externally_managed="[externally-managed]\n"))
    assert by_backup(managed, receipt(GONE), FakeBackup(everything(GONE))).verdict is Verdict.BLOCK
    plan = by_backup(managed, receipt(GONE), FakeBackup(everything(GONE)), break_system_packages=True)
    assert plan.verdict is Verdict.ALLOW
