"""The journal says what is about to happen, and survives being cut short."""

import json
import os
import time
from pathlib import Path

import pytest

from safe_uninstall.execute.journal import (
    DIRECTORY,
    HISTORY,
    Journal,
    Step,
    create_journal,
    ended,
    receipt_path,
    stored_receipts,
    sweep,
    sync_directory,
    unfinished,
)


def test_lines_are_readable_and_in_order(tmp_path: Path) -> None:
    """Each step is one JSON line with its facts, its time and the version of the format."""
    journal = create_journal(str(tmp_path))
    journal.write(Step.PREPARED, names=["a"])
    journal.write(Step.STASHING, files=3)
    lines = [json.loads(line) for line in Path(journal.directory, "journal.jsonl").read_text().splitlines()]
    assert [(line["version"], line["step"]) for line in lines] == [(1, "prepared"), (1, "stashing")]
    assert lines[0]["names"] == ["a"]
    assert all(line["time"] for line in lines)
    assert journal.last_step() is Step.STASHING
    assert journal.facts(Step.PREPARED)["names"] == ["a"]
    assert journal.facts(Step.COMMITTED) == {}


def test_the_directory_is_for_its_user_alone(tmp_path: Path) -> None:
    """Nobody else may look into a stash: files may be readable that their directory hid."""
    journal = create_journal(str(tmp_path))
    assert os.stat(journal.directory).st_mode & 0o777 == 0o700
    assert os.stat(tmp_path / DIRECTORY).st_mode & 0o777 == 0o700


def test_two_transactions_of_one_second_have_two_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time alone is no name."""
    monkeypatch.setattr(time, "strftime", lambda _format: "20200101T000000")
    names = [create_journal(str(tmp_path)).identifier for _ in range(3)]
    assert names == ["20200101T000000", "20200101T000000-1", "20200101T000000-2"]


@pytest.mark.parametrize(
    "tail", [b'{"version": 1, "step": "committed"', b"not json\n", b"[1]\n", b'{"step": "later"}\n']
)
def test_what_is_no_complete_line_does_not_count(tmp_path: Path, tail: bytes) -> None:
    """A line that a crash cut short announces nothing, nor does one that this version does not know."""
    journal = create_journal(str(tmp_path))
    journal.write(Step.UNINSTALLING)
    with open(Path(journal.directory, "journal.jsonl"), "ab") as file:
        file.write(tail)
    assert journal.last_step() is Step.UNINSTALLING
    assert unfinished(str(tmp_path))[0].identifier == journal.identifier


def test_only_a_final_step_ends_a_transaction(tmp_path: Path) -> None:
    """A directory without a journal did not end either; one that ended is swept, a kept backup is not."""
    assert unfinished(str(tmp_path)) == ()
    empty = create_journal(str(tmp_path))
    os.mkdir(Path(empty.directory, "stash"))
    ended = create_journal(str(tmp_path))
    ended.write(Step.ROLLED_BACK)
    kept = create_journal(str(tmp_path))
    os.mkdir(kept.stash_directory)
    kept.write(Step.COMMITTED, keep_backup=True)
    assert {item.identifier for item in unfinished(str(tmp_path))} == {empty.identifier, kept.identifier}
    kept.keep_backup()
    (tmp_path / DIRECTORY / "a file").write_text("x")
    assert [item.identifier for item in unfinished(str(tmp_path))] == [empty.identifier]
    sweep(str(tmp_path))
    left = sorted(os.listdir(tmp_path / DIRECTORY))
    assert left == sorted(["a file", empty.identifier, kept.identifier])


def test_forgetting_leaves_no_directory(tmp_path: Path) -> None:
    """The last transaction takes our directory along."""
    journal = create_journal(str(tmp_path))
    other = create_journal(str(tmp_path))
    journal.forget()
    assert os.listdir(tmp_path / DIRECTORY) == [other.identifier]
    other.forget()
    assert os.listdir(tmp_path) == []


def test_names_tell_the_order_whatever_the_clock_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that was set back, and a receipt whose directory is gone, do not lead to an older or to a used name."""
    history = tmp_path / DIRECTORY / HISTORY
    history.mkdir(parents=True)
    for name in ("20300101T000000-9.json", "20300101T000000-10.json", "20200101T000000.json", "a-note.json", "x.txt"):
        (history / name).write_text("{}")
    (tmp_path / DIRECTORY / "of a later version").mkdir()
    monkeypatch.setattr(time, "strftime", lambda _format: "20290101T000000")
    assert create_journal(str(tmp_path)).identifier == "20300101T000000-11"
    assert create_journal(str(tmp_path)).identifier == "20300101T000000-12"
    names = ("a-note", "20200101T000000", "20300101T000000-9", "20300101T000000-10")
    assert stored_receipts(str(tmp_path)) == names


def test_a_receipt_is_published_once_the_transaction_is_committed(tmp_path: Path) -> None:
    """Until then nobody sees it; a committed transaction whose receipt was not published yet did not end."""
    journal = create_journal(str(tmp_path))
    journal.write_receipt({"name": "\udcff"})
    assert stored_receipts(str(tmp_path)) == ()
    assert os.stat(Path(journal.directory, "receipt.json")).st_mode & 0o777 == 0o600
    journal.write(Step.COMMITTED)
    assert [item.identifier for item in unfinished(str(tmp_path))] == [journal.identifier]
    journal.publish_receipt()
    assert (unfinished(str(tmp_path)), len(ended(str(tmp_path)))) == ((), 1)
    journal.publish_receipt()
    assert stored_receipts(str(tmp_path)) == (journal.identifier,)
    assert json.loads(Path(receipt_path(str(tmp_path), journal.identifier)).read_text()) == {"name": "\udcff"}
    assert os.stat(tmp_path / DIRECTORY / HISTORY).st_mode & 0o777 == 0o700
    journal.forget()
    assert os.listdir(tmp_path / DIRECTORY) == [HISTORY]


def test_a_receipt_that_will_not_be_published_goes(tmp_path: Path) -> None:
    """Of a transaction that was rolled back nothing is left, not even an empty history."""
    journal = create_journal(str(tmp_path))
    journal.write_receipt({})
    journal.drop_receipt()
    journal.drop_receipt()
    assert not journal.has_receipt
    journal.write(Step.ROLLED_BACK)
    journal.forget()
    assert os.listdir(tmp_path) == []


def test_a_kept_backup_is_kept_once(tmp_path: Path) -> None:
    """Said again, it is only told where the backup is."""
    journal = create_journal(str(tmp_path))
    os.mkdir(journal.stash_directory)
    assert journal.keep_backup() == journal.backup_directory
    assert journal.keep_backup() == journal.backup_directory
    assert os.path.isdir(journal.backup_directory)


def test_what_is_half_deleted_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that could not be deleted in full is not taken for one that did not end."""
    import shutil

    journal = create_journal(str(tmp_path))
    journal.write(Step.COMMITTED)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda path, **_: os.unlink(os.path.join(path, "journal.jsonl")))
        journal.forget()
    assert len(os.listdir(tmp_path / DIRECTORY)) == 1
    assert unfinished(str(tmp_path)) == ()
    sweep(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_a_directory_that_cannot_be_renamed_is_deleted_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Renaming is a precaution only."""

    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    journal = create_journal(str(tmp_path))
    monkeypatch.setattr(os, "rename", refuse)
    journal.forget()
    assert os.listdir(tmp_path) == []


def test_a_file_system_that_cannot_sync_directories_is_good_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network file systems refuse fsync(2) of a directory."""

    def refuse(_descriptor: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    sync_directory(str(tmp_path))


def test_a_journal_that_is_not_there_has_no_steps(tmp_path: Path) -> None:
    """Reading does not fail."""
    journal = Journal(str(tmp_path / "none"))
    assert list(journal.entries()) == []
    assert journal.last_step() is None
