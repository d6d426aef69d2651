"""Ownership: what is deleted, released, overwritten, edited and missing, by the bytes on disk."""

import pytest

from safe_uninstall.analysis.ownership import Owners, Ownership, judge_ownership, source_of_cache
from safe_uninstall.model.distribution import RecordRow
from safe_uninstall.model.snapshot import Snapshot
from tests.support.fakes import SITE, Disk, Installed, Link, Row, at, distribution, record_hash, snapshot


def judge(snap: Snapshot, *names: str) -> Ownership:
    """Judge the removal of distributions by name."""
    return judge_ownership(snap, tuple(item for item in snap.distributions if item.name in names))


def test_owners_of_a_path_are_all_that_claim_it_sorted_by_name() -> None:
    """A path's owners come in the order of the snapshot, which is by name; an unclaimed path has none."""
    snap = snapshot(distribution("two", claims={"x.txt": b"2"}), distribution("one", claims={"x.txt": b"1"}))
    owners = Owners(snap.distributions)
    assert [item.name for item in owners.of(at("x.txt"))] == ["one", "two"]
    assert owners.of(at("y.txt")) == ()


def test_a_path_of_one_owner_is_deleted() -> None:
    """What nobody else claims goes, the RECORD itself included."""
    snap = snapshot(distribution("one", claims={"one/a.py": b"1"}), distribution("two", claims={"two.py": b"2"}))
    found = judge(snap, "one")
    info = f"{SITE}/one-1.0.dist-info"
    assert found.deleted == {at("one/a.py"), f"{info}/METADATA", f"{info}/RECORD"}
    assert found.released == {}
    assert (found.overwritten, found.damaged, found.edited) == ((), (), ())


def test_identical_bytes_are_released() -> None:
    """A shared path whose bytes are the survivor's stays."""
    snap = snapshot(distribution("one", claims={"x": b"same"}), distribution("two", claims={"x": b"same"}))
    found = judge(snap, "one")
    assert at("x") not in found.deleted
    assert [item.name for item in found.released[at("x")]] == ["two"]
    assert found.overwritten == ()


@pytest.mark.parametrize(("order", "lost"), [(("one", "two"), True), (("two", "one"), False)])
def test_the_last_writer_decides(order: tuple[str, str], lost: bool) -> None:
    """Only where the leaving distribution's bytes are on disk has the survivor lost its own."""
    made = {name: distribution(name, claims={"x": name.encode()}) for name in order}
    found = judge(snapshot(*(made[name] for name in order)), "two")
    assert (at("x") in found.deleted) is lost
    assert (at("x") in found.released) is not lost
    assert [(item.survivor.name, [by.name for by in item.by], item.paths) for item in found.overwritten] == (
        [("one", ["two"], (at("x"),))] if lost else []
    )


def test_sizes_are_compared_before_anything_is_hashed() -> None:
    """A size that is not the survivor's settles it: the file is not read."""
    snap = snapshot(distribution("one", claims={"x": b"short"}), distribution("two", claims={"x": b"longer bytes"}))
    found = judge(snap, "two")
    assert [item.survivor.name for item in found.overwritten] == ["one"]
    assert isinstance(snap.evidence, Disk)
    assert snap.evidence.hashed == []


def test_only_shared_paths_are_hashed() -> None:
    """What nobody else claims is deleted unread."""
    snap = snapshot(
        distribution("one", claims={"own": b"own", "x": b"same"}), distribution("two", claims={"x": b"same"})
    )
    judge(snap, "one")
    assert isinstance(snap.evidence, Disk)
    assert snap.evidence.hashed == [at("x")]


def test_bytes_that_are_nobodys_were_edited() -> None:
    """They stay, and are told."""
    snap = snapshot(
        distribution("one", claims={"x": b"one"}), distribution("two", claims={"x": b"two"}), disk={"x": b"edited"}
    )
    found = judge(snap, "two")
    assert found.edited == (at("x"),)
    assert at("x") in found.released
    assert found.overwritten == ()


def test_an_edit_that_keeps_the_leaving_size_counts_as_the_leaving_bytes() -> None:
    """Between a loss that is told and unknown bytes that are kept silently, the loss is told."""
    snap = snapshot(
        distribution("one", claims={"x": b"first one"}), distribution("two", claims={"x": b"two"}), disk={"x": b"TWO"}
    )
    assert [item.survivor.name for item in judge(snap, "two").overwritten] == ["one"]


@pytest.mark.parametrize("hash_", ["", "sha3000=abc", "md2=abc", "rubbish"])
def test_a_row_without_a_usable_hash_is_released(hash_: str) -> None:
    """No hash, or one of an unknown algorithm, proves nothing against the survivor."""
    one = distribution("one", claims={"x": Row(hash=hash_, size=3, content=b"one")})
    found = judge(snapshot(one, distribution("two", claims={"x": b"two"})), "two")
    assert at("x") in found.released
    assert (found.overwritten, found.edited) == ((), ())


@pytest.mark.parametrize("algorithm", ["sha384", "sha512", "md5"])
def test_other_algorithms_are_checked(algorithm: str) -> None:
    """Any algorithm that hashlib guarantees decides, not only SHA-256."""
    right = Row(hash=record_hash(b"same", algorithm), size=4, content=b"same")
    wrong = Row(hash=record_hash(b"other", algorithm), size=4, content=b"same")
    two = distribution("two", claims={"x": b"same"})
    assert judge(snapshot(distribution("one", claims={"x": right}), two), "two").overwritten == ()
    assert judge(snapshot(distribution("one", claims={"x": wrong}), two), "two").overwritten


def test_padding_of_a_hash_does_not_matter() -> None:
    """Some writers pad base64; the digest is the same."""
    padded = Row(hash=record_hash(b"same") + "=", size=4, content=b"same")
    snap = snapshot(distribution("one", claims={"x": padded}), distribution("two", claims={"x": b"same"}))
    assert judge(snap, "two").overwritten == ()


def test_a_row_without_size_is_hashed() -> None:
    """The hash alone decides then."""
    row = Row(hash=record_hash(b"one"), size=None, content=b"one")
    snap = snapshot(distribution("one", claims={"x": row}), distribution("two", claims={"x": b"two"}))
    assert [item.survivor.name for item in judge(snap, "two").overwritten] == ["one"]


def test_a_leaving_row_without_size_is_taken_for_the_writer() -> None:
    """Whose bytes they are cannot be told from the row, and a survivor's are they not."""
    snap = snapshot(distribution("one", claims={"x": b"one"}), distribution("two", claims={"x": Row(content=b"two2")}))
    assert [item.survivor.name for item in judge(snap, "two").overwritten] == ["one"]


def test_distributions_that_both_leave_are_no_survivors() -> None:
    """What only leaving distributions share goes, in one final state."""
    one, two = distribution("one", claims={"x": b"one"}), distribution("two", claims={"x": b"two"})
    found = judge(snapshot(one, two), "one", "two")
    assert at("x") in found.deleted
    assert found.overwritten == ()


def test_the_writer_is_told_among_several_leaving_owners() -> None:
    """Only the leaving distribution whose bytes are on disk overwrote the survivor."""
    snap = snapshot(
        distribution("keeps", claims={"x": b"k"}),
        distribution("early", claims={"x": b"early"}),
        distribution("late", claims={"x": b"latest"}),
    )
    (found,) = judge(snap, "early", "late").overwritten
    assert (found.survivor.name, [item.name for item in found.by]) == ("keeps", ["late"])


def test_one_of_several_survivors_owns_the_bytes() -> None:
    """The path stays for it; the other survivor is damaged already, by that one."""
    snap = snapshot(
        distribution("first", claims={"x": b"first"}),
        distribution("goes", claims={"x": b"goes"}),
        distribution("second", claims={"x": b"second!"}),
    )
    found = judge(snap, "goes")
    assert [item.name for item in found.released[at("x")]] == ["first", "second"]
    assert [(item.survivor.name, [by.name for by in item.by]) for item in found.damaged] == [("first", ["second"])]
    assert found.overwritten == ()


def test_every_overwritten_survivor_is_named() -> None:
    """Two survivors lose the same file, each with its own count."""
    snap = snapshot(
        distribution("a", claims={"x": b"a", "y": b"a"}),
        distribution("b", claims={"x": b"bb"}),
        distribution("goes", claims={"x": b"goes", "y": b"goes"}),
    )
    found = judge(snap, "goes").overwritten
    assert [(item.survivor.name, len(item.paths)) for item in found] == [("a", 2), ("b", 1)]


def test_a_survivor_without_a_hash_keeps_the_path_for_itself_and_the_others() -> None:
    """A claim that cannot be checked must not be deleted because another survivor's claim can."""
    snap = snapshot(
        distribution("checked", claims={"x": b"checked"}),
        distribution("unchecked", claims={"x": Row(content=b"u")}),
        distribution("goes", claims={"x": b"goes"}),
    )
    found = judge(snap, "goes")
    assert at("x") in found.released
    assert at("x") not in found.deleted
    assert found.overwritten == ()
    assert [(item.survivor.name, [by.name for by in item.by]) for item in found.damaged] == [("checked", ["goes"])]


def test_edited_bytes_beside_a_claim_without_hash_are_no_damage_by_a_leaving_one() -> None:
    """Bytes of nobody are not said to be the leaving distribution's."""
    snap = snapshot(
        distribution("checked", claims={"x": b"checked"}),
        distribution("unchecked", claims={"x": Row(content=b"u")}),
        distribution("goes", claims={"x": b"goes"}),
        disk={"x": b"edited by hand"},
    )
    found = judge(snap, "goes")
    assert at("x") in found.released
    assert found.damaged == ()


def test_identical_empty_files_are_no_news() -> None:
    """``nvidia/__init__.py`` has eleven owners: it stays without a word."""
    found = judge(snapshot(*(distribution(name, claims={"nvidia/__init__.py": b""}) for name in "abc")), "b")
    assert at("nvidia/__init__.py") in found.released
    assert (found.overwritten, found.damaged, found.edited) == ((), (), ())


def test_missing_claims_are_told_and_not_deleted() -> None:
    """A row whose file is absent is no claim; byte code is left out, since it comes and goes."""
    snap = snapshot(distribution("one", claims={"a": b"1", "b": None, "__pycache__/c.cpython-311.pyc": None}))
    (one,) = snap.distributions
    found = judge(snap, "one")
    assert found.missing == {one.metadata_path: (at("b"),)}
    assert at("b") not in found.deleted


def test_a_survivors_claim_on_an_absent_file_matters_not() -> None:
    """Nothing is lost that is not there."""
    snap = snapshot(distribution("one", claims={"x": None}), distribution("two", claims={"x": None}))
    found = judge(snap, "two")
    assert at("x") not in {*found.deleted, *found.released}


def test_a_directory_named_in_a_record_claims_nothing() -> None:
    """Installers would delete all below it; neither it nor what survivors have there is deleted."""
    snap = snapshot(
        distribution("keeps", claims={"nvidia/lib/k.so": b"k"}),
        distribution("goes", claims={"nvidia": None, "nvidia/lib/g.so": b"g"}),
    )
    found = judge(snap, "goes")
    assert at("nvidia/lib/g.so") in found.deleted
    assert {at("nvidia"), at("nvidia/lib/k.so")}.isdisjoint(found.deleted)
    assert found.missing == {f"{SITE}/goes-1.0.dist-info": ()}


def test_byte_code_goes_with_its_source() -> None:
    """Installers remove it without a row: of any interpreter, and only that of the source."""
    snap = snapshot(
        distribution("one", claims={"p/a.py": b"1"}),
        distribution("two", claims={"p/ab.py": b"2"}),
        disk={
            "p/__pycache__/a.cpython-311.pyc": b"",
            "p/__pycache__/a.cpython-312.opt-1.pyc": b"",
            "p/__pycache__/ab.cpython-311.pyc": b"",
            "p/__pycache__/a.txt": b"",
        },
    )
    deleted = judge(snap, "one").deleted
    assert at("p/__pycache__/a.cpython-311.pyc") in deleted
    assert at("p/__pycache__/a.cpython-312.opt-1.pyc") in deleted
    assert at("p/__pycache__/ab.cpython-311.pyc") not in deleted
    assert at("p/__pycache__/a.txt") not in deleted


def test_byte_code_of_a_released_source_stays_with_it() -> None:
    """What stays keeps its byte code, though no row names it."""
    snap = snapshot(
        distribution("one", claims={"p/a.py": b"1"}),
        distribution("two", claims={"p/a.py": b"1"}),
        disk={"p/__pycache__/a.cpython-311.pyc": b"", "p/a.pyc": b""},
    )
    found = judge(snap, "one")
    for path in (at("p/__pycache__/a.cpython-311.pyc"), at("p/a.pyc")):
        assert path not in found.deleted
        assert [item.name for item in found.released[path]] == ["two"]


@pytest.mark.parametrize("suffix", ["c", "o"])
def test_byte_code_beside_a_source_is_a_survivors_where_it_claims_it(suffix: str) -> None:
    """Installers remove ``a.pyc`` with ``a.py``; who ships byte code instead of sources must keep it."""
    legacy = f"p/a.py{suffix}"
    snap = snapshot(distribution("goes", claims={"p/a.py": b"1"}), distribution("keeps", claims={legacy: b"code"}))
    assert at(legacy) in judge(snap, "goes").released
    alone = snapshot(distribution("goes", claims={"p/a.py": b"1"}), disk={legacy: b"code"})
    assert at(legacy) in judge(alone, "goes").deleted


def test_byte_code_that_was_made_anew_is_no_news() -> None:
    """An import rewrites it: other bytes than recorded are neither an edit nor a loss."""
    cache = "__pycache__/a.cpython-311.pyc"
    snap = snapshot(
        distribution("one", claims={"a.py": b"1", cache: b"old"}),
        distribution("two", claims={"a.py": b"1", cache: b"older"}),
        disk={cache: b"made anew"},
    )
    found = judge(snap, "two")
    assert at(cache) in found.released
    assert (found.overwritten, found.edited) == ((), ())


def script(name: str, claims: bool = True) -> Installed:
    """Return a distribution with an entry point for ``bin/tool``, claimed by a row or not."""
    written = {"../../../bin/tool": b"#!python"} if claims else {}
    return distribution(name, claims={f"{name}.py": b"", **written}, scripts=("/env/bin/tool",))


def test_a_script_that_an_entry_point_names_goes_without_a_row() -> None:
    """An installer removes it by name."""
    snap = snapshot(script("one", claims=False), disk={"../../../bin/tool": b"#!python"})
    assert "/env/bin/tool" in judge(snap, "one").deleted


@pytest.mark.parametrize("claims", [True, False])
def test_a_script_that_a_survivors_entry_point_names_stays(claims: bool) -> None:
    """By a row or by its entry point alone: the survivor's script is not pip's to remove."""
    found = judge(snapshot(script("one", claims=claims), script("two")), "two")
    assert [item.name for item in found.released["/env/bin/tool"]] == ["one"]
    assert "/env/bin/tool" not in found.deleted


def test_a_script_that_is_not_there_is_not_deleted() -> None:
    """An entry point without a file predicts nothing."""
    assert "/env/bin/tool" not in judge(snapshot(script("one", claims=False)), "one").deleted


def test_a_symbolic_link_is_judged_by_what_it_leads_to() -> None:
    """Symlink mode of uv puts links in the place of files: their bytes are those of the cache."""
    digest = record_hash(b"bytes")
    row = Row(hash=digest, size=5, content=b"bytes")
    disk: dict[str, bytes | Link | None] = {"x": Link("../../../../cache/x"), "../../../../cache/x": b"bytes"}
    snap = snapshot(distribution("one", claims={"x": row}), distribution("two", claims={"x": row}), disk=disk)
    assert at("x") in judge(snap, "one").released


def test_a_dangling_link_can_be_deleted() -> None:
    """A cleaned cache leaves links to nothing; they are claims, and go."""
    snap = snapshot(distribution("one", claims={"x": Link("../gone")}))
    found = judge(snap, "one")
    assert at("x") in found.deleted
    assert found.missing == {f"{SITE}/one-1.0.dist-info": ()}


def test_duplicates_of_one_name_are_told_apart_by_their_metadata() -> None:
    """Two dist-info of one name are two distributions: one can survive the other."""
    old = distribution("dup", "1.0", {"x": b"1"})
    new = distribution("dup", "2.0", {"x": b"22"})
    snap = snapshot(old, new)
    found = judge_ownership(snap, (new.distribution,))
    assert [item.survivor.version for item in found.overwritten] == ["1.0"]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("/p/__pycache__/a.cpython-311.pyc", "/p/a.py"),
        ("/p/__pycache__/a.cpython-311.opt-2.pyc", "/p/a.py"),
        ("/p/a.pyc", "/p/a.py"),
        ("/p/a.pyo", "/p/a.py"),
        ("/p/a.py", ""),
        ("/p/a.so", ""),
    ],
)
def test_source_of_byte_code(path: str, source: str) -> None:
    """PEP 3147 names, and those of before."""
    assert source_of_cache(path) == source


def test_a_path_named_twice_by_a_survivor_is_one_claim() -> None:
    """A row and an entry point for one path do not make the survivor two owners."""
    row = RecordRow("/env/bin/tool", record_hash(b"#!python"), len(b"#!python"))
    found = judge(snapshot(script("one"), script("two")), "two")
    assert found.released[row.path] == tuple(item.distribution for item in (script("one"),))
