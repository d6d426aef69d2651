"""Which transactions are in effect, which one is undone next, and what their backups have."""

import json
import os
import shutil
from pathlib import Path

import pytest

from safe_uninstall.cli.past import stored_history
from safe_uninstall.execute.history import StoredHistory, choose, purge, read_history
from safe_uninstall.execute.journal import DIRECTORY, HISTORY, Journal, Step, create_journal
from safe_uninstall.execute.receipt import receipt_document
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.filesystem import FILE, EntryKind
from safe_uninstall.model.history import Backup, Receipt, Transaction, TransactionState
from safe_uninstall.model.outcome import OutcomeState
from tests.support.environments import EnvironmentBuilder, Link, library
from tests.support.runs import carry_out, plan_for

COMMITTED, UNDONE = TransactionState.COMMITTED, TransactionState.UNDONE


def identifier(number: int) -> str:
    """Return the name of a transaction."""
    return f"20300101T0000{number:02}"


def stored(prefix: Path, *undoes: int | None) -> tuple[Transaction, ...]:
    """Store receipts, each of a transaction that undoes the one with that number, and read the history."""
    directory = prefix / DIRECTORY / HISTORY
    directory.mkdir(parents=True, exist_ok=True)
    for number, other in enumerate(undoes):
        receipt = Receipt(
            identifier=identifier(number),
            time="2030-01-01T00:00:00+00:00",
            tool_version="1",
            undoes=None if other is None else identifier(other),
        )
        (directory / f"{receipt.identifier}.json").write_text(json.dumps(receipt_document(receipt, str(prefix))))
    transactions, problems = read_history(str(prefix))
    assert problems == ()
    return transactions


def test_no_history(tmp_path: Path) -> None:
    """Nothing was done; nothing can be undone."""
    assert read_history(str(tmp_path)) == ((), ())
    with pytest.raises(UsageError, match="there is nothing to undo") as caught:
        choose((), None, prefix="/env")
    assert caught.value.help == ()


@pytest.mark.parametrize(
    ("undoes", "states", "undone_by", "chosen"),
    [
        ((None, None), (COMMITTED, COMMITTED), (None, None), 1),
        ((None, None, 1), (COMMITTED, UNDONE, COMMITTED), (None, 2, None), 0),
        ((None, None, 0), (UNDONE, COMMITTED, COMMITTED), (2, None, None), 1),
        # The undo is undone: what it undid is in effect again, and can be undone once more.
        ((None, 0, 1), (COMMITTED, UNDONE, COMMITTED), (None, 2, None), 0),
        ((None, 0, 1, 0), (UNDONE, UNDONE, COMMITTED, COMMITTED), (3, 2, None, None), None),
        ((None, 0, 1, 2), (UNDONE, COMMITTED, UNDONE, COMMITTED), (1, None, 3, None), None),
    ],
)
def test_states(
    tmp_path: Path,
    undoes: tuple[int | None, ...],
    states: tuple[TransactionState, ...],
    undone_by: tuple[int | None, ...],
    chosen: int | None,
) -> None:
    """Undone is what a transaction in effect undoes; the next to be undone is the last in effect that is no undo."""
    transactions = stored(tmp_path, *undoes)
    assert [item.receipt.identifier for item in transactions] == [identifier(n) for n in range(len(undoes))][::-1]
    assert tuple(item.state for item in reversed(transactions)) == states
    names = tuple(None if number is None else identifier(number) for number in undone_by)
    assert tuple(item.undone_by for item in reversed(transactions)) == names
    if chosen is not None:
        assert choose(transactions, None, prefix="/env").receipt.identifier == identifier(chosen)
        return
    with pytest.raises(UsageError, match="all transactions of `/env` are undone") as caught:
        choose(transactions, None, prefix="/env", python="/env")
    again = f"safe-uninstall -p /env undo {identifier(len(undoes) - 1)}"
    assert caught.value.help == (f"do the last one again: {again}", "see what there is: safe-uninstall -p /env history")


def test_one_that_is_named(tmp_path: Path) -> None:
    """Any that is in effect, an undo too; not one that is undone, nor one that does not exist."""
    transactions = stored(tmp_path, None, 0)
    assert choose(transactions, identifier(1), prefix="/env").receipt.identifier == identifier(1)
    with pytest.raises(UsageError, match=f"`{identifier(0)}` is undone already, by {identifier(1)}") as caught:
        choose(transactions, identifier(0), prefix="/env")
    assert caught.value.help == (f"undo that, to do it again: safe-uninstall undo {identifier(1)}",)
    with pytest.raises(UsageError, match="`x` is no transaction in the history of `/env`"):
        choose(transactions, "x", prefix="/env")


def test_receipts_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """The others are there all the same."""
    stored(tmp_path, None)
    (tmp_path / DIRECTORY / HISTORY / "20300101T000009.json").write_text("[]")
    transactions, problems = read_history(str(tmp_path))
    assert len(transactions) == 1
    assert problems == ("the receipt of 20300101T000009 is left out: it is no receipt",)
    kept = StoredHistory(str(tmp_path), lambda *_: None)
    assert kept.receipt(identifier(0)) == transactions[0].receipt
    with pytest.raises(UsageError, match="the receipt of 20300101T000009 is of no use: it is no receipt"):
        kept.receipt("20300101T000009")
    with pytest.raises(UsageError, match=r"`\.\./x` is no transaction"):
        kept.receipt("../x")
    assert kept.backup(identifier(0)) is None


def test_a_history_that_may_not_be_read_is_no_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user made it; that is said."""
    stored(tmp_path, None)

    def refuse(_path: str) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    directory = tmp_path / DIRECTORY / HISTORY
    assert read_history(str(tmp_path)) == ((), (f"{directory} cannot be read: Permission denied",))


@pytest.fixture
def libraries(environment: EnvironmentBuilder, tmp_path: Path) -> EnvironmentBuilder:
    """Return an environment with a distribution that has libraries, links to them, and others."""
    outside = tmp_path / "outside.so"
    environment.distribution("tmp", "1", {"outside.so": library("outside.so")})
    os.rename(environment.site_packages / "outside.so", outside)
    shutil.rmtree(environment.site_packages / "tmp-1.dist-info")
    environment.distribution(
        "one",
        "1.0",
        {
            "one/liba.so.1": library("liba.so.1"),
            "one/liba.so": Link("liba.so.1"),
            "one/outside.so": Link(str(outside)),
            "one/dangling.so": Link("nowhere.so"),
            "one/module.py": "x = 1\n",
            "one/broken.so": b"\x7fELF and no more",
        },
    )
    return environment


def backup_of(builder: EnvironmentBuilder) -> Backup:
    """Remove ``one`` with a kept backup, and return that."""
    outcome = carry_out(builder, plan_for(builder, "one"), keep_backup=True)
    assert outcome.state is OutcomeState.COMMITTED
    assert outcome.transaction is not None
    backup = stored_history(builder.environment()).backup(outcome.transaction)
    assert backup is not None
    return backup


def test_what_a_backup_has(libraries: EnvironmentBuilder, tmp_path: Path) -> None:
    """Files and links under the paths that they had, with the ELF facts that the loader would find there."""
    backup = backup_of(libraries)
    at = libraries.path
    assert backup.directory.startswith(f"{libraries.prefix}/{DIRECTORY}/")
    assert {os.path.basename(path) for path in backup.files} >= {"liba.so.1", "liba.so", "module.py", "RECORD"}
    assert at("one") in backup.directories
    kept = backup.files[at("one/liba.so.1")]
    assert (kept.entry, kept.in_place) == (FILE, False)
    assert kept.object is not None
    assert (kept.object.path, kept.object.soname) == (at("one/liba.so.1"), "liba.so.1")
    link = backup.files[at("one/liba.so")]
    assert (link.entry.kind, link.entry.target) == (EntryKind.SYMLINK, "liba.so.1")
    assert link.object is not None
    assert (link.object.path, link.object.real_path) == (at("one/liba.so"), at("one/liba.so.1"))
    outside = backup.files[at("one/outside.so")].object
    assert outside is not None
    assert (outside.soname, outside.real_path) == ("outside.so", os.path.realpath(tmp_path / "outside.so"))
    for name in ("dangling.so", "module.py", "broken.so"):
        assert backup.files[at(f"one/{name}")].object is None


def test_digests_and_places(libraries: EnvironmentBuilder) -> None:
    """A digest is that of RECORD; what is back under another name of the very file is in place."""
    row = {item.path: item for item in libraries.snapshot().distributions[0].record.rows}
    backup = backup_of(libraries)
    path = libraries.path("one/module.py")
    assert f"sha256={backup.digest(path)}" == row[path].hash
    kept = Path(backup.directory)
    (file,) = (item for item in kept.iterdir() if not item.is_symlink() and item.read_bytes() == b"x = 1\n")
    (libraries.site_packages / "one").mkdir()
    os.link(file, path)
    again = stored_history(libraries.environment()).backup(kept.parent.name)
    assert again is not None
    assert again.files[path].in_place
    file.unlink()
    assert again.digest(path) is None


def test_a_backup_of_an_environment_elsewhere_is_none(libraries: EnvironmentBuilder, tmp_path: Path) -> None:
    """In a copy of an environment its backups still name the paths of the original."""
    identifier_ = Path(backup_of(libraries).directory).parent.name
    shutil.copytree(libraries.prefix, tmp_path / "copy", symlinks=True)
    assert StoredHistory(str(tmp_path / "copy"), lambda *_: None).backup(identifier_) is None
    assert StoredHistory(str(libraries.prefix), lambda *_: None).backup(identifier_) is not None


def test_what_the_reader_of_objects_is_asked(libraries: EnvironmentBuilder) -> None:
    """The path that a file is known by, its real path, and where it can be opened."""
    directory = backup_of(libraries).directory
    asked: list[tuple[str, str, str]] = []

    def read(*words: str) -> ElfObject | None:
        asked.append((words[0], words[1], words[2]))
        return None

    StoredHistory(str(libraries.prefix), read).backup(Path(directory).parent.name)
    known = {path: (real, location) for path, real, location in asked}
    real, location = known[libraries.path("one/liba.so.1")]
    assert real == libraries.path("one/liba.so.1")
    assert os.path.dirname(location) == directory
    assert known[libraries.path("one/liba.so")] == (real, location)


def test_a_purge_frees_what_nobody_else_has(environment: EnvironmentBuilder) -> None:
    """Two names in the backup are one file; a name elsewhere keeps the bytes; an unfinished run is left alone."""
    environment.distribution("one", "1.0", {"one.py": "x" * 100, "elsewhere.py": "y" * 1000, "twice.py": "z" * 10})
    os.link(environment.site_packages / "elsewhere.py", environment.prefix / "cache")
    os.link(environment.site_packages / "twice.py", environment.site_packages / "twice_.py")
    record = environment.site_packages / "one-1.0.dist-info/RECORD"
    record.write_text(record.read_text() + "twice_.py,,\n")
    outcome = carry_out(environment, plan_for(environment, "one"), keep_backup=True)
    environment.distribution("two", "1.0", {"two.py": "2"})
    assert carry_out(environment, plan_for(environment, "two")).state is OutcomeState.COMMITTED
    prefix = str(environment.prefix)
    sizes = [item.backup_bytes for item in read_history(prefix)[0]]
    assert sizes[0] is None
    assert sizes[1] is not None
    # 20 bytes for two names of one file, of which one is counted when they go.
    metadata = sizes[1] - 100 - 1000 - 20
    (environment.prefix / DIRECTORY / "20310101T000000").mkdir()
    swept_later = create_journal(prefix)
    swept_later.write(Step.ROLLED_BACK)
    purged = purge(prefix)
    assert (purged.transactions, purged.problems) == ((outcome.transaction,), ())
    assert purged.bytes_freed == 100 + 10 + metadata
    left = sorted(os.listdir(environment.prefix / DIRECTORY))
    assert left == ["20310101T000000", swept_later.identifier, HISTORY]
    assert [item.backup_bytes for item in read_history(prefix)[0]] == [None, None]
    assert purge(prefix).transactions == ()


def test_a_purge_that_cannot_delete_says_so(environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is still there is not counted as freed."""
    environment.distribution("one", "1.0", {"one.py": "x" * 100})
    outcome = carry_out(environment, plan_for(environment, "one"), keep_backup=True)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    monkeypatch.setattr(Journal, "forget", lambda _journal: None)
    purged = purge(str(environment.prefix))
    assert (purged.transactions, purged.bytes_freed) == ((), 0)
    assert purged.problems == (f"{outcome.stash} cannot be deleted in full",)
    # Half deleted it is no backup any more, and the next purge takes the rest.
    assert read_history(str(environment.prefix))[0][0].backup_bytes is None
    monkeypatch.undo()
    assert purge(str(environment.prefix)).transactions == (outcome.transaction,)
