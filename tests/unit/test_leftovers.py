"""What former installations left behind, in environments in memory."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from safe_uninstall.analysis.leftovers import Leftovers, find_leftovers, leftover_findings
from safe_uninstall.model.distribution import RecordState
from safe_uninstall.model.environment import EnvironmentKind
from safe_uninstall.model.plan import Code, Severity
from tests.support.fakes import SITE, Installed, Row, at, distribution, snapshot


def left(*installed: Installed, disk: Mapping[str, bytes]) -> Leftovers:
    """Return the leftovers of an environment."""
    return find_leftovers(snapshot(*installed, disk=disk))


def test_what_is_claimed_is_no_leftover() -> None:
    """Nor is byte code beside claimed sources, or what a program writes into its own package."""
    found = left(
        distribution("a", claims={"a/__init__.py": b"", "n/a/x.py": b""}),
        disk={"a/__pycache__/__init__.cpython-311.pyc": b"", "a/cache/data.bin": b"1", "__pycache__/z.pyc": b""},
    )
    assert found == Leftovers(failed=(), hollow=(), orphaned=())


def test_directories_with_byte_code_alone_are_hollow() -> None:
    """The topmost of them is told, at the top of site-packages as in a namespace that others share."""
    found = left(
        distribution("a", claims={"nvidia/a/a.py": b""}),
        disk={
            "gone/__pycache__/__init__.cpython-311.pyc": b"",
            "gone/deep/er/__pycache__/x.cpython-311.pyc": b"",
            "nvidia/b/__pycache__/b.cpython-311.pyc": b"",
            "nvidia/c/old.pyo": b"",
        },
    )
    assert found.hollow == (at("gone"), at("nvidia/b"), at("nvidia/c"))
    assert found.orphaned == ()


def test_directories_with_files_that_nobody_claims_are_orphaned() -> None:
    """Only at the top: what lies inside a package is its program's."""
    found = left(
        distribution("a", claims={"a/__init__.py": b""}),
        disk={"mine/tool.py": b"", "mine/data/x": b"", "a/plugins/x.so": b"", ".hidden/x": b"", "env2/pyvenv.cfg": b""},
    )
    assert found.orphaned == (at("mine"),)
    assert found.hollow == ()


def test_directories_of_distributions_without_record_are_theirs() -> None:
    """Which files such a distribution has is unknown; its name tells the directory."""
    found = left(
        distribution("some-thing", record={"state": RecordState.MISSING, "rows": ()}),
        disk={"some_thing/x.py": b"", "other/x.py": b""},
    )
    assert found.orphaned == (at("other"),)


@pytest.mark.parametrize("kind", [EnvironmentKind.CONDA, EnvironmentKind.SYSTEM])
def test_where_others_put_files_only_failed_runs_are_told(kind: EnvironmentKind) -> None:
    """Conda and distributors install files that no RECORD names."""
    snap = snapshot(distribution("a"), disk={"theirs/x.py": b""}, leftovers=(at("~orch"),))
    found = find_leftovers(replace(snap, environment=replace(snap.environment, kind=kind)))
    assert found == Leftovers(failed=(at("~orch"),), hollow=(), orphaned=())


def test_each_kind_is_one_note_with_a_command() -> None:
    """A command of five paths is still typed; longer lists are shown by ``-v``."""
    many = tuple(at(f"d{number}") for number in range(6))
    failed, hollow, orphaned = leftover_findings(
        Leftovers(failed=(at("~orch"),), hollow=many, orphaned=(at("mine"), at("other")))
    )
    assert {(item.code, item.severity) for item in (failed, hollow, orphaned)} == {(Code.UNOWNED_LEFT, Severity.NOTE)}
    assert failed.message == "1 leftover of failed pip runs"
    assert failed.help == ("nothing reads what begins with ~", f"rm -r '{SITE}/~orch'")
    assert hollow.message == (
        "6 directories that no distribution claims hold nothing but byte code or empty directories"
    )
    assert hollow.help == ("nothing can be imported from there",)
    assert orphaned.message == "2 directories in site-packages are claimed by no distribution"
    assert orphaned.paths == (at("mine"), at("other"))


def test_a_row_that_names_a_directory_claims_it() -> None:
    """A directory in RECORD is somebody's."""
    found = left(distribution("a", claims={"a.py": b"", "data": Row(content=None)}), disk={"data/x": b""})
    assert found.orphaned == ()
