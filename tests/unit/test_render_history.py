"""The history as text and as a document."""

import json

import jsonschema
import pytest

from safe_uninstall import __version__
from safe_uninstall.model.history import Pin, Receipt, Removed, Transaction, TransactionState
from safe_uninstall.render.document import history_document
from safe_uninstall.render.history import render_history, render_purge
from safe_uninstall.render.schema import schema_text
from tests.support.fakes import distribution, environment


def pin(name: str) -> Pin:
    """Return something that came."""
    return Pin(name=name, version="2", metadata_path=f"/env/{name}")


FIRST = Transaction(
    receipt=Receipt(
        identifier="20300101T000000",
        time="2030-01-01T00:00:00+01:00",
        tool_version="1",
        removed=tuple(Removed(distribution=distribution(name).distribution) for name in "abcde"),
        restored=(pin("r"),),
        installed=(pin("i"),),
    ),
    state=TransactionState.UNDONE,
    undone_by="20300101T000001",
    backup_bytes=1500,
)
SECOND = Transaction(
    receipt=Receipt(
        identifier="20300101T000001",
        time="2030-01-01T00:00:01+01:00",
        tool_version="1",
        installed=(pin("odd\nname"),),
        undoes="20300101T000000",
    ),
    state=TransactionState.COMMITTED,
)


def test_newest_first_with_what_became_of_each() -> None:
    """One head a transaction, then what it did; at most three names unless all are asked for."""
    text = render_history((SECOND, FIRST), verbose=False, color=False)
    assert text.splitlines() == [
        "20300101T000001  2030-01-01T00:00:01+01:00  undid 20300101T000000",
        r"  installed  odd\nname 2",
        "20300101T000000  2030-01-01T00:00:00+01:00  undone by 20300101T000001",
        "  removed    a 1.0, b 1.0, c 1.0, … 2 more",
        "  restored   r 2",
        "  installed  i 2",
        "  backup     1.5 kB",
        "2 transactions, 1 kept backup of 1.5 kB.",
    ]
    assert "c 1.0, d 1.0, e 1.0" in render_history((FIRST,), verbose=True, color=False)


def test_color_and_width() -> None:
    """The ID is painted; lines are broken where they do not fit."""
    assert "\033[" in render_history((SECOND,), verbose=False, color=True)
    narrow = render_history((FIRST,), verbose=True, color=False, width=40).splitlines()
    assert max(map(len, narrow)) <= 40
    assert render_history((SECOND,), verbose=False, color=False).endswith("\n1 transaction.")


def test_no_history() -> None:
    """It says so."""
    assert render_history((), verbose=False, color=False) == "Nothing was done here yet."


@pytest.mark.parametrize(
    ("transactions", "freed", "said"),
    [
        ((), 0, "No backup was kept: nothing is freed."),
        (("a",), 0, "Deleted 1 kept backup: 0 bytes freed."),
        (("a", "b"), 123456789, "Deleted 2 kept backups: 123456789 bytes freed."),
    ],
)
def test_a_purge(transactions: tuple[str, ...], freed: int, said: str) -> None:
    """Bytes are not rounded: they are the point."""
    assert render_purge(transactions, freed) == said


@pytest.mark.parametrize("purged", [None, (("20300101T000000",), 7)])
def test_the_document(purged: tuple[tuple[str, ...], int] | None) -> None:
    """Every field, as the schema has them."""
    document = history_document((SECOND, FIRST), ("p",), environment(), __version__, purged=purged)
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(document)
    assert document["format"] == "safe-uninstall/history"
    assert document["environment"]["prefix"] == "/env"
    assert document["problems"] == ["p"]
    second, first = document["transactions"]
    assert (second["undoes"], second["undone_by"], second["state"]) == ("20300101T000000", None, "committed")
    assert second["installed"] == [{"name": "odd\nname", "version": "2"}]
    assert second["backup"] is None
    assert (first["id"], first["state"], first["undone_by"]) == ("20300101T000000", "undone", "20300101T000001")
    assert first["removed"][0] == {"name": "a", "version": "1.0"}
    assert first["restored"] == [{"name": "r", "version": "2"}]
    assert first["backup"] == {"bytes": 1500}
    assert document["purged"] == (None if purged is None else {"transactions": ["20300101T000000"], "bytes_freed": 7})
