"""The real outcome is held against the predicted one, path by path."""

from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.execute.stash import Stash
from safe_uninstall.execute.verify import compare_outcome, lost_for_good
from safe_uninstall.model.plan import Prediction
from tests.support.environments import EnvironmentBuilder, library, record_hash
from tests.support.runs import build_twins, plan_for


def test_nothing_done_is_told_path_by_path(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """An environment in which nothing happened differs from the plan in all that was to go."""
    build_twins(environment)
    plan = plan_for(environment, "twin-cu11")
    stash = Stash(str(tmp_path / "stash"))
    stash.keep(sorted(plan.prediction.released), [])
    found = compare_outcome(plan.prediction, environment.snapshot(), environment.snapshot(), stash)
    assert "twin-cu11 11.8 is still installed" in found
    assert f"{environment.path('only11/sub/deep.txt')} is still there" in found
    assert not any("is not as it was" in item or "is gone" in item for item in found)


def test_a_released_file_must_be_the_very_file(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Another file with the same name is a mismatch, since nobody planned it."""
    build_twins(environment)
    plan = plan_for(environment, "twin-cu11")
    stash = Stash(str(tmp_path / "stash"))
    stash.keep(sorted(plan.prediction.released), [])
    before = environment.snapshot()
    shared = Path(environment.path("nvidia/nvtx/shared.py"))
    data = shared.read_bytes()
    shared.unlink()
    shared.write_bytes(data)
    found = compare_outcome(plan.prediction, before, environment.snapshot(), stash)
    assert f"{shared} is not as it was" in found


def test_claims_of_survivors_that_went_are_named(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """A survivor's file that nobody was to touch is missed, before and after a roll back; byte code is not."""
    build_twins(environment)
    environment.distribution("cached", "1.0", {"cached/__pycache__/a.cpython-311.pyc": "x", "cached/gone.txt": None})
    plan = plan_for(environment, "twin-cu11")
    before = environment.snapshot()
    for path in ("nvidia/nvtx/own12.py", "cached/__pycache__/a.cpython-311.pyc"):
        directory, _, name = environment.path(path).rpartition("/")
        assert before.files.entry(directory, name)
        Path(environment.path(path)).unlink()
    stash = Stash(str(tmp_path / "stash"))
    stash.keep(sorted(plan.prediction.released), [])
    found = compare_outcome(plan.prediction, before, environment.snapshot(), stash)
    own = environment.path("nvidia/nvtx/own12.py")
    assert [item for item in found if item.endswith("is gone")] == [f"{own} of twin-cu12 12.1 is gone"]
    assert lost_for_good(before) == (f"{own} of twin-cu12 12.1 is gone, and there is no copy of it",)


@pytest.fixture
def stash(tmp_path: Path) -> Stash:
    """Return a stash that is empty."""
    stash = Stash(str(tmp_path / "stash"))
    stash.keep([], [])
    return stash


def foreseen(**facts: Any) -> Prediction:
    """Return a prediction of nothing but what is given."""
    return Prediction(**{"removed": frozenset(), "deleted": frozenset(), "released": frozenset(), **facts})


def test_as_planned(environment: EnvironmentBuilder, stash: Stash) -> None:
    """What is gone as it was to go, and come as it was to come, is no mismatch."""
    old = environment.distribution("demo", "1.0", {"demo.py": "1", "old.py": "1"})
    environment.distribution("staying", "1.0", {"s.so": library("s.so")})
    before = environment.snapshot()
    for path in (*old.iterdir(), environment.site_packages / "old.py"):
        path.unlink()
    old.rmdir()
    new = environment.distribution("demo", "2.0", {"demo.py": "2"})
    prediction = foreseen(
        removed=frozenset({str(old)}),
        deleted=frozenset({environment.path("old.py")}),
        written={environment.path("demo.py"): record_hash(b"2")},
        installed=frozenset({str(new)}),
    )
    assert compare_outcome(prediction, before, environment.snapshot(), stash) == ()


def test_distributions_that_nobody_was_to_change(environment: EnvironmentBuilder, stash: Stash) -> None:
    """One that went, one that came, one that is another now, and one that did not come are told, a sentence each."""
    gone = environment.distribution("gone", "1.0")
    changed = environment.distribution("changed", "1.0", {"c.py": "1"})
    before = environment.snapshot()
    for path in gone.iterdir():
        path.unlink()
    gone.rmdir()
    environment.distribution("came", "1.0")
    with (changed / "RECORD").open("a") as file:
        file.write("more.py,,\n")
    missing = environment.path("new-1.0.dist-info")
    found = compare_outcome(foreseen(installed=frozenset({missing})), before, environment.snapshot(), stash)
    assert set(found) == {
        "gone 1.0 is gone",
        "changed 1.0 was changed by somebody else",
        "came 1.0 was installed by somebody else",
        f"{missing} was not installed",
        *(f"{gone}/{name} of gone 1.0 is gone" for name in ("METADATA", "WHEEL", "INSTALLER", "RECORD")),
    }


@pytest.mark.parametrize("name", ["INSTALLER", "REQUESTED", "direct_url.json"])
def test_who_installed_it_stays_as_it_was(environment: EnvironmentBuilder, stash: Stash, name: str) -> None:
    """A distribution that is restored keeps its metadata, whoever did it."""
    info = environment.distribution("demo", "1.0")
    before = environment.snapshot()
    text = '{"url": "https://h/demo.whl", "archive_info": {}}' if name.endswith("json") else "another\n"
    (info / name).write_text(text)
    prediction = foreseen(restored=frozenset({str(info)}))
    assert compare_outcome(prediction, before, environment.snapshot(), stash) == (
        "demo 1.0 was changed by somebody else",
    )


def test_what_wheels_were_to_write(environment: EnvironmentBuilder, stash: Stash) -> None:
    """Files that are missing or have other bytes are told; scripts have another first line, and some no hash."""
    site, scripts = environment.site_packages, environment.bin
    before = environment.snapshot()
    for path in (site / "right.py", site / "wrong.py", site / "any.py", scripts / "tool"):
        path.write_text("x")
    prediction = foreseen(
        written={
            str(site / "right.py"): record_hash(b"x"),
            str(site / "wrong.py"): record_hash(b"y"),
            str(site / "any.py"): "",
            str(site / "missing.py"): record_hash(b"x"),
            str(scripts / "tool"): record_hash(b"#!python"),
            str(scripts / "missing"): "",
        }
    )
    assert compare_outcome(prediction, before, environment.snapshot(), stash) == (
        f"{scripts}/missing was not written",
        f"{site}/missing.py was not written",
        f"{site}/wrong.py has other bytes than its wheel",
    )


def test_byte_code_of_sources_that_were_written(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Installers compile them anew, or do not: neither what was released nor what a wheel ships is compared.

    Byte code whose source no wheel writes, and byte code without a source, is.
    """
    caches = ("pkg/__pycache__/new.cpython-311.pyc", "pkg/__pycache__/same.cpython-311.pyc")
    environment.distribution("demo", "1.0", {"pkg/new.py": "1", "pkg/same.py": "1", **dict.fromkeys(caches, "old")})
    before = environment.snapshot()
    stash = Stash(str(tmp_path / "stash"))
    stash.keep([environment.path(path) for path in caches], [])
    for path in caches:
        (environment.site_packages / path).unlink()
        (environment.site_packages / path).write_text("compiled anew")
    (environment.site_packages / "bare.pyc").write_text("x")
    prediction = foreseen(
        released=frozenset(environment.path(path) for path in caches),
        written={
            environment.path("pkg/new.py"): record_hash(b"1"),
            environment.path("pkg/__pycache__/new.cpython-39.pyc"): record_hash(b"shipped"),
            environment.path("bare.pyc"): record_hash(b"y"),
        },
    )
    assert compare_outcome(prediction, before, environment.snapshot(), stash) == (
        f"{environment.path('bare.pyc')} has other bytes than its wheel",
        f"{environment.path(caches[1])} is not as it was",
    )


def test_a_library_of_a_survivor_that_is_another_file(environment: EnvironmentBuilder, stash: Stash) -> None:
    """The same bytes in a new file are an interference, too; what was to be written is not."""
    spec = library("a.so")
    environment.distribution("demo", "1.0", {"a.so": spec, "b.so": library("b.so"), "gone.txt": None})
    before = environment.snapshot()
    for name in ("a.so", "b.so"):
        path = environment.site_packages / name
        data = path.read_bytes()
        path.rename(environment.site_packages / f"kept-{name}")
        path.write_bytes(data)
    prediction = foreseen(written={environment.path("b.so"): ""})
    found = compare_outcome(prediction, before, environment.snapshot(), stash)
    assert found == (f"{environment.path('a.so')} of demo 1.0 is another file",)
    (environment.site_packages / "a.so").write_text("no library any more")
    found = compare_outcome(prediction, before, environment.snapshot(), stash)
    assert found == (f"{environment.path('a.so')} of demo 1.0 is another file",)


def test_twenty_of_many_are_enough(environment: EnvironmentBuilder, stash: Stash) -> None:
    """One is reason to roll back; the rest is only counted on."""
    before = environment.snapshot()
    written = {f"/{number:02}": "" for number in range(30)}
    found = compare_outcome(foreseen(written=written), before, environment.snapshot(), stash)
    assert len(found) == 21
    assert found[-1] == "and more"
