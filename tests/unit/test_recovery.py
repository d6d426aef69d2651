"""A later command ends what a killed run left."""

import os
from pathlib import Path

import pytest

from safe_uninstall.execute.journal import DIRECTORY, HISTORY, Journal, Step, create_journal, stored_receipts
from safe_uninstall.execute.recovery import recover
from safe_uninstall.execute.rollback import roll_back
from safe_uninstall.execute.stash import Stash
from safe_uninstall.model.outcome import OutcomeState


def killed_at(prefix: Path, *steps: Step, stash: bool = True) -> Journal:
    """Leave what a run leaves that was killed after announcing ``steps``; ``file`` has been deleted."""
    journal = create_journal(str(prefix))
    (prefix / "directory").mkdir(exist_ok=True)
    (prefix / "directory/file").write_text("precious")
    if stash:
        Stash(journal.stash_directory).keep([str(prefix / "directory/file")], [str(prefix / "directory")])
    for step in steps:
        journal.write(step)
    (prefix / "directory/file").unlink()
    return journal


@pytest.mark.parametrize(
    "step", [Step.TRIMMING, Step.UNINSTALLING, Step.RELEASING, Step.VERIFYING, Step.ROLLING_BACK, Step.STASHED]
)
def test_a_run_that_changed_something_is_rolled_back(tmp_path: Path, step: Step) -> None:
    """Files come back, half-made files of ours and pip's temporary directories go, and nothing of ours is left."""
    killed_at(tmp_path, Step.PREPARED, step)
    (tmp_path / "directory/~ip").mkdir()
    (tmp_path / "directory/~link").symlink_to("~ip")
    (tmp_path / "directory/RECORD.safe-uninstall").write_text("half")
    (recovery,) = recover(str(tmp_path))
    assert recovery.state is OutcomeState.ROLLED_BACK
    assert (tmp_path / "directory/file").read_text() == "precious"
    assert os.listdir(tmp_path / "directory") == ["file"]
    assert not (tmp_path / DIRECTORY).exists()


@pytest.mark.parametrize("step", [None, Step.PREPARED, Step.STASHING])
def test_a_run_that_changed_nothing_is_forgotten(tmp_path: Path, step: Step | None) -> None:
    """A stash that was not completed is dropped, not put back."""
    killed_at(tmp_path, *([] if step is None else [step]))
    (recovery,) = recover(str(tmp_path))
    assert recovery.state is OutcomeState.ROLLED_BACK
    assert not (tmp_path / "directory/file").exists()
    assert not (tmp_path / DIRECTORY).exists()


def test_a_commit_is_swept(tmp_path: Path) -> None:
    """A run that was committed keeps its outcome; what is left of its stash goes."""
    killed_at(tmp_path, Step.PREPARED, Step.COMMITTED)
    assert recover(str(tmp_path)) == ()
    assert not (tmp_path / "directory/file").exists()
    assert not (tmp_path / DIRECTORY).exists()


def test_a_receipt_that_was_not_published_is(tmp_path: Path) -> None:
    """A run that died right after its commit is in the history after the recovery, and its stash is gone."""
    journal = killed_at(tmp_path, Step.PREPARED)
    journal.write_receipt({"id": journal.identifier})
    journal.write(Step.COMMITTED)
    (recovery,) = recover(str(tmp_path))
    assert recovery.state is OutcomeState.COMMITTED
    assert stored_receipts(str(tmp_path)) == (journal.identifier,)
    assert os.listdir(tmp_path / DIRECTORY) == [HISTORY]
    assert recover(str(tmp_path)) == ()


@pytest.mark.parametrize("step", [Step.STASHING, Step.STASHED, Step.UNINSTALLING, Step.ROLLING_BACK])
def test_a_run_that_was_not_committed_leaves_no_receipt(tmp_path: Path, step: Step) -> None:
    """The receipt is written before anything is touched, and counts only after the commit."""
    journal = killed_at(tmp_path, Step.PREPARED)
    journal.write_receipt({})
    journal.write(step)
    (recovery,) = recover(str(tmp_path))
    assert recovery.state is OutcomeState.ROLLED_BACK
    assert not (tmp_path / DIRECTORY).exists()


def test_a_backup_that_is_to_be_kept_is_kept(tmp_path: Path) -> None:
    """A run that died between its commit and the renaming of the stash still keeps the backup."""
    journal = killed_at(tmp_path, Step.PREPARED)
    journal.write(Step.COMMITTED, keep_backup=True)
    os.mkdir(journal.wheels_directory)
    (recovery,) = recover(str(tmp_path))
    assert recovery.state is OutcomeState.COMMITTED
    assert os.path.isdir(journal.backup_directory)
    assert not os.path.exists(journal.wheels_directory)


def test_a_stash_that_is_gone_is_said(tmp_path: Path) -> None:
    """Without a stash after files were removed nobody may claim that all is as before."""
    journal = killed_at(tmp_path, Step.PREPARED, Step.UNINSTALLING, stash=False)
    (recovery,) = recover(str(tmp_path))
    assert recovery.state is OutcomeState.ROLLBACK_INCOMPLETE
    assert recovery.problems == ("the stash cannot be read, though files may have been removed",)
    assert os.path.isdir(journal.directory)


def test_a_stash_that_went_after_the_roll_back_is_no_loss(tmp_path: Path) -> None:
    """A roll back drops the stash once everything is back, and may be killed before it says so."""
    killed_at(tmp_path, Step.PREPARED, Step.ROLLING_BACK, stash=False)
    (recovery,) = recover(str(tmp_path))
    assert recovery.state is OutcomeState.ROLLED_BACK


def test_a_failed_recovery_keeps_the_stash(tmp_path: Path) -> None:
    """What cannot be put back is named with the place of its copy; once it can be, a further recovery does it."""
    journal = killed_at(tmp_path, Step.PREPARED, Step.UNINSTALLING)
    (tmp_path / "directory/file").mkdir()
    (recovery,) = recover(str(tmp_path))
    assert recovery.state is OutcomeState.ROLLBACK_INCOMPLETE
    assert recovery.stash == journal.stash_directory
    assert recovery.problems[0].startswith(str(tmp_path / "directory/file"))
    (tmp_path / "directory/file").rmdir()
    (again,) = recover(str(tmp_path))
    assert again.state is OutcomeState.ROLLED_BACK
    assert (tmp_path / "directory/file").read_text() == "precious"


def test_a_full_disk_does_not_keep_files_from_coming_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that cannot be written does not stop a roll back."""
    journal = killed_at(tmp_path, Step.PREPARED, Step.UNINSTALLING)
    stash = Stash(journal.stash_directory)
    stash.load()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Journal, "write", full)
    assert roll_back(journal, stash) == ()
    assert (tmp_path / "directory/file").read_text() == "precious"


def test_what_looks_restored_is_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore that reports success without effect is found out, and the stash stays."""
    journal = killed_at(tmp_path, Step.PREPARED, Step.UNINSTALLING)
    stash = Stash(journal.stash_directory)
    stash.load()
    monkeypatch.setattr(Stash, "put_back", lambda *_: ())
    assert roll_back(journal, stash) == (f"{tmp_path / 'directory/file'} is not as it was",)
    assert os.path.isdir(journal.stash_directory)
