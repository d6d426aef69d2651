"""A few thousand of the mutated files of ``python -m tests.fuzz``, the same on every machine."""

from pathlib import Path

import pytest

from tests.fuzz.__main__ import Failure, agrees, built, run, seed


@pytest.mark.parametrize("number", [1, 2])
def test_mutated_files(number: int, tmp_path: Path) -> None:
    """No reader crashes, hangs or takes much memory, and pyelftools agrees wherever it reads the file too."""
    location = tmp_path / "libx.so"
    seeds = [seed(data, location) for data in built()]
    tally = run(1500, number, seeds, location, measure_every=5)
    assert tally["read"] + tally["refused"] + tally["none"] == 1500
    # Of what is read a good part must be read by both, or the comparison would say nothing.
    assert tally["agreed with pyelftools"] > tally["read"] / 2
    assert tally["refused"] > 300


def test_a_failure_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes a reader fail is told with where the file is."""

    def fail(location: str) -> str:
        raise MemoryError

    monkeypatch.setattr("tests.fuzz.__main__.read_all", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    location = tmp_path / "libx.so"
    seeds = [seed(data, location) for data in built()]
    with pytest.raises(Failure, match=r"file 0 of seed 7, kept as .*: MemoryError"):
        run(1, 7, seeds, location)
    assert (tmp_path / "elf-failed-7-0").read_bytes() == location.read_bytes()


def test_disagreement_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what both say."""
    location = tmp_path / "libx.so"
    location.write_bytes(next(iter(built())))
    assert agrees(str(location))
    monkeypatch.setattr("tests.fuzz.__main__.oracle_facts", lambda _: None)
    with pytest.raises(Failure, match="pyelftools disagrees"):
        agrees(str(location))
