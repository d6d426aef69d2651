"""What is printed depends on the environment alone: not on the order of hashes, nor of names in a directory."""

import shutil
from pathlib import Path

import pytest

from tests.support.environments import EnvironmentBuilder, library
from tests.support.program import safe_uninstall
from tests.support.runs import build_twins


@pytest.fixture
def several(environment: EnvironmentBuilder) -> EnvironmentBuilder:
    """Return an environment with several of everything: releases, losses, warnings, leftovers."""
    build_twins(environment)
    for number in range(6):
        environment.distribution(
            f"provider{number}", "1.0", {f"p{number}/libp{number}.so": library(f"libp{number}.so")}
        )
        needed = [f"libp{other}.so" for other in range(6)]
        rpath = ":".join(f"$ORIGIN/../p{other}" for other in range(6))
        environment.distribution(f"consumer{number}", "1.0", {f"c{number}/c.so": library(None, *needed, rpath=rpath)})
        (environment.site_packages / f"orphan{number}").mkdir()
    return environment


COMMANDS = [
    ("-n", "--format", "json", "twin-cu11", "provider*"),
    ("--format", "diff", "-v", "twin-cu11", "provider*"),
    ("-n", "-v", "provider3", "provider1"),
    ("--format", "html", "provider3", "provider1"),
    ("check", "--format", "json"),
    ("check", "-v"),
    ("why", "-v", "provider2", "libp3.so"),
    ("why", "--format", "json", "consumer1"),
    ("graph",),
    ("graph", "provider1", "--format", "dot"),
    ("graph", "--by", "distribution", "--format", "mermaid"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_order_is_always_the_same(several: EnvironmentBuilder, words: tuple[str, ...], tmp_path: Path) -> None:
    """The same text under two seeds, and of an environment whose directories were filled in another order."""
    place = ("-p", "env")
    first = safe_uninstall(*words, *place, directory=several.prefix.parent, variables={"PYTHONHASHSEED": "1"})
    assert first.out
    second = safe_uninstall(*words, *place, directory=several.prefix.parent, variables={"PYTHONHASHSEED": "2"})
    assert second == first
    other = tmp_path / "other"
    other.mkdir()
    _copy_backwards(several.prefix, other / "env")
    third = safe_uninstall(*words, *place, directory=other, variables={"PYTHONHASHSEED": "3"})
    assert third.status == first.status
    assert third.out.replace(str(other), "HERE") == first.out.replace(str(several.prefix.parent), "HERE")


def _copy_backwards(source: Path, target: Path) -> None:
    target.mkdir()
    for entry in sorted(source.iterdir(), reverse=True):
        if entry.is_symlink():
            (target / entry.name).symlink_to(entry.readlink())
        elif entry.is_dir():
            _copy_backwards(entry, target / entry.name)
        else:
            shutil.copy2(entry, target / entry.name)
