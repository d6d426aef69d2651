"""Files that ``-o`` names: whole or untouched."""

import os
import stat
from pathlib import Path

import pytest

from safe_uninstall.cli.saved import save
from safe_uninstall.model.errors import UsageError


def test_a_file_is_replaced_with_its_mode(tmp_path: Path) -> None:
    """A new one gets what the umask leaves; a link is followed, not replaced."""
    target, link = tmp_path / "plan.json", tmp_path / "link.json"
    before = os.umask(0o027)
    try:
        save("{}", str(target), what="plan")
    finally:
        os.umask(before)
    assert target.read_text() == "{}\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    target.chmod(0o604)
    link.symlink_to(target)
    save("[]", str(link), what="plan")
    assert (link.is_symlink(), target.read_text(), stat.S_IMODE(target.stat().st_mode)) == (True, "[]\n", 0o604)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "plan.json"]


def test_a_device_is_written_to() -> None:
    """It must not be replaced by a file."""
    save("{}", "/dev/null", what="plan")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_failure_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither half a file nor a temporary one; the error names the file."""
    target = tmp_path / "plan.json"
    target.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(UsageError, match=r"the plan cannot be saved as `.*plan.json`: No space left on device"):
        save("new", str(target), what="plan")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
    assert target.read_text() == "old"


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    """Said as it is."""
    with pytest.raises(UsageError, match="the report cannot be saved as"):
        save("x", str(tmp_path / "absent" / "r.html"), what="report")
