"""The fingerprint: the same for the same environment anywhere, another for whatever a plan depends on."""

from dataclasses import replace
from typing import Any

import pytest

from safe_uninstall.analysis.fingerprint import Parts, describe_changes, fingerprint, fingerprint_parts
from safe_uninstall.model.elf import FileIdentity
from safe_uninstall.model.snapshot import Snapshot
from tests.support.environments import EnvironmentBuilder, library
from tests.support.fakes import SITE, at, distribution, elf, environment, snapshot


def build(**changes: Any) -> Snapshot:
    """Return a snapshot with two distributions and a library."""
    return snapshot(
        distribution("one", claims={"one/l.so": b"1"}),
        distribution("two", claims={"two.py": b"2"}),
        objects=[elf(at("one/l.so"), "l.so", rpath="/env/lib:$ORIGIN")],
        **changes,
    )


def parts(snap: Snapshot, deleted: tuple[str, ...] = (), released: tuple[str, ...] = ()) -> Parts:
    """Return the parts of a snapshot's fingerprint."""
    return fingerprint_parts(snap, deleted=deleted, released=released)


BASE = parts(build())


def changed(snap: Snapshot, **paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return what differs from the base, after checking that the fingerprint does too."""
    now = parts(snap, **paths)
    differences = describe_changes(BASE, now)
    assert (fingerprint(now) != fingerprint(BASE)) is bool(differences)
    return differences


def test_form() -> None:
    """``sha256:`` and 64 hexadecimal digits, the same every time."""
    text = fingerprint(BASE)
    assert text.startswith("sha256:")
    assert len(text) == len("sha256:") + 64
    assert int(text.removeprefix("sha256:"), 16)
    assert fingerprint(parts(build())) == text


def test_times_and_inodes_do_not_count() -> None:
    """A copy of an environment is the same environment."""
    copy = build()
    path = at("one/l.so")
    moved = replace(copy, objects={path: replace(copy.objects[path], identity=FileIdentity(9, 9))})
    assert changed(moved) == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("size", 101),
        ("soname", "m.so"),
        ("needed", ("x.so",)),
        ("rpath", None),
        ("runpath", "$ORIGIN"),
        ("flags_1", 0x800),
        ("elf_type", 2),
    ],
)
def test_what_the_loader_reads_counts(field: str, value: Any) -> None:
    """Every fact of an ELF file that a binding depends on, named by its directory."""
    base = build()
    path = at("one/l.so")
    other = replace(base, objects={path: replace(base.objects[path], **{field: value})})
    assert changed(other) == ("the libraries in lib/python3.11/site-packages/one changed",)


def test_libraries_come_and_go() -> None:
    """A directory that gets its first library, or loses its last."""
    base = build()
    assert changed(replace(base, objects={})) == ("the libraries in lib/python3.11/site-packages/one are gone",)
    more = {**base.objects, "/env/x.so": elf("/env/x.so")}
    assert changed(replace(base, objects=more)) == ("the libraries in . are new",)


def test_distributions_count_by_version_record_and_requirements() -> None:
    """Each is named."""
    base = build()
    one, two = base.distributions
    assert changed(replace(base, distributions=(one,))) == ("distribution two is gone",)
    assert changed(replace(base, distributions=(one, two, replace(two, name="zwei")))) == ("distribution zwei is new",)
    for other in (
        replace(two, version="2.0"),
        replace(two, requires=("one",)),
        replace(two, record=replace(two.record, digest="0")),
        replace(two, metadata_path=f"{SITE}/two-2.0.dist-info"),
    ):
        assert changed(replace(base, distributions=(one, other))) == ("distribution two changed",)


def test_a_second_copy_of_a_name_changes_it() -> None:
    """Duplicates are one part together."""
    base = build()
    one, two = base.distributions
    second = replace(two, metadata_path=f"{SITE}/two-2.0.dist-info", version="2.0")
    assert changed(replace(base, distributions=(one, two, second))) == ("distribution two changed",)


def test_the_interpreter_counts() -> None:
    """Version, implementation and ABI decide what is loaded."""
    base = build()
    assert changed(replace(base, environment=environment(python_version="3.12.0"))) == ("the interpreter changed",)


def test_what_becomes_of_shared_paths_counts() -> None:
    """The same paths, released instead of deleted, are another plan: the bytes on disk changed meanwhile."""
    base = build()
    deleted = parts(base, deleted=(at("x"),))
    released = parts(base, released=(at("x"),))
    assert fingerprint(deleted) != fingerprint(released)
    assert describe_changes(deleted, released) == (
        "the files to leave in place changed",
        "the files to remove changed",
    )


def test_the_prefix_does_not_count(tmp_path: Any) -> None:
    """The same distributions installed under another prefix, scripts with other first lines included."""
    found = []
    for name in ("here", "somewhere-else"):
        builder = EnvironmentBuilder(tmp_path / name)
        builder.distribution(
            "one",
            "1.0",
            {"one/l.so": library("l.so", rpath="$ORIGIN"), "one/__init__.py": ""},
            scripts={"run-one": "one:main"},
        )
        snap = builder.snapshot()
        assert snap.distributions
        found.append(parts(snap, deleted=(builder.path("one/l.so"), str(builder.bin / "run-one"))))
    assert describe_changes(*found) == ()
    assert fingerprint(found[0]) == fingerprint(found[1])


def test_absolute_search_paths_inside_the_prefix_do_not_count() -> None:
    """An RPATH that names the prefix says the same as one under another prefix."""
    there = snapshot(
        objects=[elf("/other/lib/l.so", "l.so", rpath="/other/lib:$ORIGIN")],
        environment=environment(prefix="/other", site_packages=("/other/site",), scripts="/other/bin"),
    )
    here = snapshot(objects=[elf("/env/lib/l.so", "l.so", rpath="/env/lib:$ORIGIN")])
    assert describe_changes(parts(there), parts(here)) == ()


def test_consumers_outside_count() -> None:
    """A plan that looked there depends on what was there; under their own paths, which are no part of the prefix."""
    item = elf("/cache/a/x.so", None, "l.so")
    assert changed(build(outside={item.path: item})) == ("the libraries in /cache/a are new",)
