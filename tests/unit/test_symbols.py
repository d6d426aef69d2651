"""Whether another provider can take over, by symbol versions and symbols."""

import pytest

from safe_uninstall.analysis.symbols import missing_symbols, missing_versions
from safe_uninstall.model.elf import SymbolTable
from tests.support.fakes import Disk


def table(
    exported: str = "", undefined: str = "", versions: str = "", needed: dict[str, str] | None = None
) -> SymbolTable:
    """Return a table; names are separated by blanks."""
    return SymbolTable(
        exported=frozenset(exported.split()),
        undefined=frozenset(undefined.split()),
        versions_defined=frozenset(versions.split()),
        versions_needed=tuple((name, frozenset(text.split())) for name, text in (needed or {}).items()),
    )


def evidence(**tables: SymbolTable) -> Disk:
    """Return evidence about files that are called by one word each."""
    disk = Disk({})
    disk.tables = dict(tables)
    return disk


@pytest.mark.parametrize(
    ("defined", "missing"),
    [("V1 V2", ()), ("V1", ("V2",)), ("V9", ("V1", "V2")), ("", ())],
)
def test_versions(defined: str, missing: tuple[str, ...]) -> None:
    """Required versions must be defined; a provider that defines none at all satisfies any (glibc, dl-version.c)."""
    found = evidence(consumer=table(needed={"l.so": "V2 V1", "m.so": "M1"}), provider=table(versions=defined))
    assert missing_versions(found, consumer="consumer", name="l.so", provider="provider") == missing


@pytest.mark.parametrize("known", ["consumer", "provider"])
def test_versions_of_what_cannot_be_read_are_no_loss(known: str) -> None:
    """Without both tables there is no proof."""
    found = evidence(**{known: table(versions="V9", needed={"l.so": "V1"})})
    assert missing_versions(found, consumer="consumer", name="l.so", provider="provider") == ()


def test_symbols_are_missing_that_nothing_exports_any_more() -> None:
    """Only what the consumer took from the old provider counts, and any object of the closure may export it."""
    found = evidence(
        consumer=table(undefined="a b c elsewhere"), before=table(exported="a b c d"), new=table("a"), other=table("b")
    )
    assert missing_symbols(found, consumer="consumer", before=["before"], after=["new", "other"]) == ("c",)
    assert missing_symbols(found, consumer="consumer", before=["before"], after=[]) == ("a", "b", "c")


def test_search_ends_when_all_is_found() -> None:
    """Tables are costly: those behind are not read, and cannot spoil the proof."""
    found = evidence(consumer=table(undefined="a"), before=table("a"), new=table("a"))
    assert missing_symbols(found, consumer="consumer", before=["before"], after=["new", "unreadable"]) == ()


@pytest.mark.parametrize(
    "known", [("before", "new"), ("consumer", "new"), ("consumer", "before")], ids=lambda item: "+".join(item)
)
def test_symbols_of_what_cannot_be_read_are_no_loss(known: tuple[str, ...]) -> None:
    """An unreadable consumer, old provider or member of the closure: no proof of a loss."""
    tables = {"consumer": table(undefined="a"), "before": table("a"), "new": table("b")}
    found = evidence(**{name: tables[name] for name in known})
    assert missing_symbols(found, consumer="consumer", before=["before"], after=["new"]) == ()


def versioned(exported: str = "", undefined: str = "", defined: str = "V1 V2") -> SymbolTable:
    """Return a table of symbols with versions, ``name@VERSION`` each."""
    return SymbolTable(
        exported=frozenset(text.partition("@")[0] for text in exported.split()),
        undefined=frozenset(text.partition("@")[0] for text in undefined.split()),
        versions_defined=frozenset(defined.split()),
        versions_needed=(),
        exported_versions=frozenset(text for text in exported.split() if "@" in text),
        undefined_versions=frozenset(text for text in undefined.split() if "@" in text),
    )


@pytest.mark.parametrize(
    ("new", "missing"),
    [
        (versioned("f@V2 g"), ()),
        (versioned("f@V1 g"), ("f",)),
        (versioned("f g", defined=""), ()),
        (versioned("f@V1 f@V2"), ("g",)),
    ],
)
def test_a_symbol_is_met_in_the_version_that_is_asked_for(new: SymbolTable, missing: tuple[str, ...]) -> None:
    """Both versions may be defined, and a symbol still be there in the other one only."""
    found = evidence(consumer=versioned(undefined="f@V2 g"), before=versioned("f@V2 g"), new=new)
    assert missing_symbols(found, consumer="consumer", before=["before"], after=["new"]) == missing


def test_what_only_the_old_provider_brought_in_counts() -> None:
    """Its own libraries export to the consumer too, and leave with it; one that cannot be read proves nothing."""
    found = evidence(consumer=table(undefined="a b"), before=table("a"), below=table("b"), new=table("a"))
    assert missing_symbols(found, consumer="consumer", before=["before", "below", "absent"], after=["new"]) == ("b",)
