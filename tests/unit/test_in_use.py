"""Files in use: who uses what, what it means for them, and when it blocks."""

from collections.abc import Set
from dataclasses import replace
from typing import Any

import pytest

from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.analysis.presumed import PresumedWheels
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.plan import Code, Finding, Plan, Request, Rewrite, Severity, Verdict
from safe_uninstall.model.processes import Use, UseKind, Uses
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.render.document import plan_document
from safe_uninstall.render.text import render_plan
from tests.support.fakes import at, distribution, elf, snapshot
from tests.unit.test_plan import CUDNN, incident

LIBRARY, DATA = "one/liba.so.1", "one/data.bin"
GONE = "what runs keeps the old file; what is started again will not find it"
REPLACED = "what runs keeps the old file; what is started again gets the new one"


class Table:
    """Processes that use certain files, and a count of the questions."""

    def __init__(self, *uses: Use, unreadable: int = 0, asked_by_root: bool = False) -> None:
        """Know ``uses``."""
        self.uses = uses
        self.unreadable = unreadable
        self.asked_by_root = asked_by_root
        self.asked: list[frozenset[str]] = []

    def using(self, paths: Set[str]) -> Uses:
        """Answer, and take note."""
        self.asked.append(frozenset(paths))
        found = tuple(use for use in self.uses if use.path in paths)
        return Uses(found=found, unreadable=self.unreadable, asked_by_root=self.asked_by_root)


def use(pid: int, path: str, how: UseKind = UseKind.MAPPED, **changes: Any) -> Use:
    """Return the use of a file of site-packages."""
    facts: dict[str, Any] = {"pid": pid, "command": "python train.py", "path": at(path), "how": how}
    return Use(**{**facts, **changes})


def environment(table: Table) -> Snapshot:
    """Return two distributions, one of which has a library and a data file."""
    return snapshot(
        distribution("one", "1.0", {LIBRARY: b"a", DATA: b"b"}),
        distribution("two", "1.0", {"two/x.py": b""}),
        objects=[elf(at(LIBRARY), "liba.so.1")],
        processes=table,
    )


def plan(table: Table, *names: str, **options: Any) -> Plan:
    """Plan a removal."""
    return make_plan(environment(table), Request(names=names, **options))


def in_use(found: Plan) -> list[Finding]:
    """Return the findings about use."""
    return [item for item in found.findings if item.code is Code.IN_USE]


def test_a_file_in_use_warns() -> None:
    """One finding with all processes and files, in words what it means for them, and what to do."""
    uses = (use(7, DATA, UseKind.OPEN), use(7, LIBRARY), use(9, LIBRARY, user="alice"))
    found = plan(Table(*uses), "one")
    assert found.verdict is Verdict.ALLOW
    (finding,) = in_use(found)
    assert (finding.severity, finding.message) == (Severity.WARNING, "2 processes use 2 files that would go")
    assert (finding.path, finding.paths, finding.uses) == (at(DATA), (at(DATA), at(LIBRARY)), uses)
    assert finding.notes == (GONE,)
    assert finding.help == ("end them first, or start them again afterwards",)


def test_other_files_of_the_environment_may_be_in_use() -> None:
    """What stays is nobody's trouble; the question is about all that goes, and about that alone."""
    table = Table(use(7, LIBRARY))
    found = plan(table, "two")
    assert in_use(found) == []
    (asked,) = set(table.asked)
    assert at("two/x.py") in asked
    assert at(LIBRARY) not in asked


def test_nothing_is_asked_where_nothing_is_touched() -> None:
    """The look at all processes is for plans that need it."""
    table = Table()
    missing = snapshot(distribution("one", record={"rows": ()}), processes=table)
    make_plan(missing, Request(names=("one",)))
    assert table.asked == []


def test_use_can_be_refused() -> None:
    """Then it blocks, and no accepted loss lets it pass."""
    table = Table(use(7, LIBRARY))
    found = plan(table, "one", refuse_in_use=True)
    assert (found.verdict, found.alternatives) == (Verdict.BLOCK, ())
    (finding,) = in_use(found)
    assert (finding.severity, finding.message) == (Severity.ERROR, "1 process uses a file that would go")
    assert finding.help == ("end it first, then run again",)
    with pytest.raises(UsageError, match="loses no such thing"):
        plan(table, "one", refuse_in_use=True, accepted_losses=(at(LIBRARY),))
    assert plan(Table(), "one", refuse_in_use=True).verdict is Verdict.ALLOW


def test_what_is_replaced_is_told_apart() -> None:
    """A restored library is there again, with other bytes than those that the process has."""
    header = "nvidia/cudnn/h.h"
    snap = incident()
    only = replace(snap, processes=Table(use(7, CUDNN)))
    request = Request(names=("nvidia-cudnn-cu13",), rewrites=(Rewrite.RESTORE,))
    found = make_plan(only, request, PresumedWheels(only, {}))
    assert found.verdict is Verdict.REWRITE
    (finding,) = in_use(found)
    assert (finding.message, finding.notes) == ("1 process uses a file that would be replaced", (REPLACED,))
    record = next(item for item in snap.distributions if item.name == "nvidia-cudnn-cu13").record.path
    assert record is not None
    both = replace(snap, processes=Table(use(7, CUDNN), use(7, header), replace(use(8, ""), path=record)))
    (finding,) = in_use(make_plan(both, request, PresumedWheels(both, {})))
    assert finding.message == "2 processes use 3 files that would go or be replaced"
    assert finding.notes == (GONE, REPLACED)


def test_a_rewrite_may_keep_what_is_in_use() -> None:
    """Refused is only a change that would really take it; alternatives that would take it are not offered either."""
    snap = snapshot(
        distribution("provider", "1.0", {"p/liba.so.1": b"a"}),
        distribution("leaf", "1.0", {"leaf/l.py": b""}),
        distribution("app", "1.0", {"app/c.so": b"c"}),
        objects=[
            elf(at("p/liba.so.1"), "liba.so.1"),
            elf(at("app/c.so"), None, "liba.so.1", rpath="$ORIGIN/../p"),
        ],
        processes=Table(use(7, "p/liba.so.1")),
    )
    request = Request(names=("provider", "leaf"), refuse_in_use=True)
    blocked = make_plan(snap, request)
    assert {item.code for item in blocked.findings if item.severity is Severity.ERROR} == {
        Code.IN_USE,
        Code.LIBRARY_LOST,
    }
    assert [item.rewrites for item in blocked.alternatives] == [(Rewrite.KEEP_NEEDED,)]
    assert "--refuse-in-use" in blocked.alternatives[0].command
    kept = make_plan(snap, replace(request, rewrites=(Rewrite.KEEP_NEEDED,)))
    assert (kept.verdict, in_use(kept)) == (Verdict.REWRITE, [])
    cascaded = make_plan(snap, replace(request, rewrites=(Rewrite.CASCADE,)))
    assert cascaded.verdict is Verdict.BLOCK


def test_processes_that_cannot_be_looked_at_are_told() -> None:
    """Where a library goes, that it may be in use is not known of them: no finding, and not hidden."""
    found = plan(Table(unreadable=2), "one")
    assert (found.verdict, found.findings, found.unseen_processes) == (Verdict.ALLOW, (), 2)
    note = "note: 2 processes may not be looked at by this user; files in use may be missed"
    assert render_plan(found, verbose=False, color=False).splitlines()[0] == note
    assert plan_document(found, "1")["unseen_processes"] == 2
    one = plan(Table(use(7, LIBRARY), unreadable=1), "one")
    assert (len(in_use(one)), one.unseen_processes) == (1, 1)
    assert "note: 1 process may not be looked at by this user" in render_plan(one, verbose=False, color=False)


def test_they_are_not_told_each_time() -> None:
    """Not where no library goes, and not to root, who sees all but what the system hides; unless use is refused."""
    for table, name in ((Table(unreadable=2), "two"), (Table(unreadable=2, asked_by_root=True), "one")):
        assert plan(table, name).unseen_processes == 0
        refused = plan(table, name, refuse_in_use=True)
        assert (refused.verdict, refused.unseen_processes) == (Verdict.ALLOW, 2)


def test_as_text() -> None:
    """A row for each process, the user where it is another's; with -v one for each file."""
    uses = [use(7, DATA, UseKind.OPEN), use(7, LIBRARY), use(9, LIBRARY, user="alice")]
    uses += [use(10, LIBRARY), use(11, LIBRARY, command="evil\033[2J")]
    found = plan(Table(*uses), "one")
    assert render_plan(found, verbose=False, color=False).splitlines()[:7] == [
        "warning[in-use]: 4 processes use 2 files that would go",
        "  used by process 7 (python train.py)   one/data.bin   open, and 1 more",
        "          process 9 (python train.py, alice)   one/liba.so.1   mapped",
        "          process 10 (python train.py)   one/liba.so.1   mapped",
        "          … 1 more",
        f"  note: {GONE}",
        "help: end them first, or start them again afterwards",
    ]
    assert render_plan(found, verbose=True, color=False).splitlines()[1:6] == [
        "  used by process 7 (python train.py)   one/data.bin   open",
        "          process 7 (python train.py)   one/liba.so.1   mapped",
        "          process 9 (python train.py, alice)   one/liba.so.1   mapped",
        "          process 10 (python train.py)   one/liba.so.1   mapped",
        "          process 11 (evil\\x1b[2J)   one/liba.so.1   mapped",
    ]


def test_as_a_document() -> None:
    """Each use as an object, its path relative to the prefix; and whether it was refused."""
    document = plan_document(plan(Table(use(7, LIBRARY, user="alice")), "one", refuse_in_use=True), "1")
    assert document["request"]["refuse_in_use"] is True
    assert document["findings"][0]["uses"] == [
        {
            "pid": 7,
            "command": "python train.py",
            "user": "alice",
            "path": f"lib/python3.11/site-packages/{LIBRARY}",
            "how": "mapped",
        }
    ]
