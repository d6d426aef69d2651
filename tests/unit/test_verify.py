"""The real outcome is held against the predicted one, path by path."""

from pathlib import Path

from safe_uninstall.execute.stash import Stash
from safe_uninstall.execute.verify import compare_outcome, lost_for_good
from tests.support.environments import EnvironmentBuilder
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
