"""A trimmed RECORD names nothing that must stay, and is a new file."""

import os
from pathlib import Path

import pytest

from safe_uninstall.execute.record_trim import needs_trimming, trim_record
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.outcome import OutcomeState
from tests.support.environments import EnvironmentBuilder
from tests.support.runs import carry_out, plan_for


def read(builder: EnvironmentBuilder, name: str) -> Distribution:
    """Return a distribution as scanned."""
    return next(item for item in builder.snapshot().distributions if item.name == name)


def names(distribution: Distribution) -> list[str]:
    """Return the paths in a RECORD on disk, as written."""
    assert distribution.record.path is not None
    return [line.split(",")[0] for line in Path(distribution.record.path).read_text().splitlines()]


def test_a_plain_record_needs_no_trimming(tmp_path: Path) -> None:
    """Nothing stays: the installer gets it as it is."""
    builder = EnvironmentBuilder(tmp_path / "env")
    builder.distribution("one", files={"one.py": "1"})
    assert not needs_trimming(read(builder, "one"), frozenset())


def test_a_missing_record_cannot_be_trimmed(tmp_path: Path) -> None:
    """There is nothing to write anew."""
    builder = EnvironmentBuilder(tmp_path / "env")
    builder.distribution("one", files={"one.py": "1"}, record=None)
    assert not needs_trimming(read(builder, "one"), frozenset({builder.path("one.py")}))


def test_released_unsafe_and_directory_rows_are_left_out(tmp_path: Path) -> None:
    """What is left has its hashes; a link to a directory is a file to an installer, and stays in."""
    builder = EnvironmentBuilder(tmp_path / "env")
    builder.distribution(
        "one",
        files={"pkg/a.py": "1", "pkg/b.py": "2"},
        extra_rows=["pkg,,", "pkg/,,", "../../../../../../etc/passwd,,", "link,,"],
    )
    os.symlink("pkg", builder.site_packages / "link")
    one = read(builder, "one")
    staying = frozenset({builder.path("pkg/b.py")})
    assert needs_trimming(one, frozenset())
    inode = os.stat(str(one.record.path)).st_ino
    before = os.open(str(one.record.path), os.O_RDONLY)
    trim_record(one, staying)
    try:
        assert os.stat(str(one.record.path)).st_ino != inode, "the old file may be a hard link into a cache"
    finally:
        os.close(before)
    left = names(one)
    assert {"pkg/a.py", "link", "one-1.0.dist-info/RECORD"} <= set(left)
    assert {"pkg", "pkg/", "pkg/b.py"}.isdisjoint(left)
    assert not any("passwd" in path for path in left)
    again = read(builder, "one")
    assert not needs_trimming(again, staying)
    hashes = {row.path: row.hash for row in one.record.rows}
    assert all(row.hash == hashes[row.path] for row in again.record.rows)


@pytest.mark.parametrize("kind", list(InstallerKind), ids=lambda kind: kind.value)
def test_installers_do_not_delete_a_directory_that_a_record_names(tmp_path: Path, kind: InstallerKind) -> None:
    """Both would take a survivor's files, and the user's own, with it."""
    builder = EnvironmentBuilder(tmp_path / "env")
    builder.distribution("keeps", files={"nvidia/keeps.py": "k"})
    builder.distribution("goes", files={"nvidia/goes.py": "g"}, extra_rows=["nvidia,,"])
    mine = builder.site_packages / "nvidia/mine.txt"
    mine.write_text("mine")
    outcome = carry_out(builder, plan_for(builder, "goes", installer=kind))
    assert outcome.state is OutcomeState.COMMITTED, (outcome.reason, outcome.mismatches)
    assert sorted(os.listdir(builder.site_packages / "nvidia")) == ["keeps.py", "mine.txt"]
