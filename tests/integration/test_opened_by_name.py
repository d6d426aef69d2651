"""What is opened by name, and consumers outside of the environment, through the command line."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from safe_uninstall.render.schema import schema_text
from tests.integration.test_bad_input import refused, untouched
from tests.support.elf_writer import ElfSpec, Note, write_elf
from tests.support.environments import EnvironmentBuilder, library
from tests.support.program import Finished, safe_uninstall

PROVIDER = "engine/lib/libengine.so.1"
OPTIONAL = "import ctypes\ntry:\n    ctypes.CDLL('libengine.so.1')\nexcept OSError:\n    pass\n"


def run(environment: EnvironmentBuilder, *words: str | Path, **variables: str) -> Finished:
    """Run the product on an environment, for a user without caches unless a test gives some."""
    home = {"HOME": str(environment.prefix.parent / "nobody"), "LOGNAME": "nobody-at-all", "USER": "nobody-at-all"}
    return safe_uninstall("-p", environment.prefix, *words, variables={**home, **variables})


@pytest.fixture
def engine(environment: EnvironmentBuilder) -> EnvironmentBuilder:
    """Return an environment with a library that nobody in it needs."""
    environment.distribution("engine", "1.0", {PROVIDER: library("libengine.so.1"), "engine/__init__.py": ""})
    return environment


def outside(engine: EnvironmentBuilder, directory: Path) -> Path:
    """Write a consumer of the library outside of the environment; it loads, as the real loader says."""
    path = directory / "kernels/fused.so"
    write_elf(path, needed=("libengine.so.1",), rpath=str(engine.site_packages / "engine/lib"))
    assert loads(path)
    return path


def loads(path: Path) -> bool:
    """Return whether the real loader loads a library."""
    done = subprocess.run(
        [sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", path], capture_output=True, check=False
    )
    return done.returncode == 0


def test_a_named_library_goes_with_a_warning(engine: EnvironmentBuilder) -> None:
    """The survivor names it in data and source, runs without it, and is told of; the removal goes on."""
    engine.distribution(
        "optional",
        "2.0",
        {
            "optional/core.so": ElfSpec(data=b"\0libengine.so.1\0"),
            "optional/__init__.py": OPTIONAL,
        },
    )
    done = run(engine, "-y", "engine")
    assert done.status == 0, done.err
    assert done.out.splitlines()[:4] == [
        "warning[dlopen-lost]: removing `engine` 1.0 leaves libengine.so.1 without a provider",
        "  library   engine/lib/libengine.so.1",
        "  needed by optional 2.0   optional/__init__.py   (names it)",
        "            optional 2.0   optional/core.so       (its data names it)",
    ]
    assert not (engine.site_packages / PROVIDER).exists()
    subprocess.run([engine.python, "-c", "import optional"], check=True)


def test_a_required_note_blocks(engine: EnvironmentBuilder) -> None:
    """What a library says that it opens, and cannot do without."""
    text = json.dumps([{"soname": ["libengine.so.1"], "priority": "required", "feature": "rendering"}]).encode()
    engine.distribution(
        "viewer",
        "3.0",
        {"viewer/view.so": ElfSpec(notes=(Note("FDO", 0x407C0C0A, text),), runpath="$ORIGIN/../engine/lib")},
    )
    done = run(engine, "-n", "engine")
    assert done.status == 3
    assert "error[library-lost]: removing `engine` 1.0 leaves libengine.so.1 without a provider" in done.out
    assert "viewer 3.0   viewer/view.so   (.note.dlopen: required, for rendering)" in done.out
    document = run(engine, "-n", "engine", "--format", "json").document
    jsonschema.validate(document, json.loads(schema_text()))
    assert [item["strength"] for item in document["findings"][0]["consumers"]] == ["noted"]


def test_siblings_are_not_split(environment: EnvironmentBuilder) -> None:
    """The shim that another distribution claims too would stay, and what it opens would go: cascade takes both."""
    shim = ElfSpec(soname="libcore.so.9", data=b"\0libcore_ops.so\0")
    environment.distribution("core-cu12", "1.0", {"core/lib/libcore.so.9": shim}, hashes=False)
    ops = {"core/lib/libcore.so.9": shim, "core/lib/libcore_ops.so.9": library("libcore_ops.so.9")}
    environment.distribution("core-cu13", "2.0", ops, hashes=False)
    done = run(environment, "-y", "core-cu13")
    assert done.status == 3
    assert "core-cu12 1.0   core/lib/libcore.so.9   (opens it by name, both of core-cu13)" in done.out
    assert (environment.site_packages / "core/lib/libcore_ops.so.9").exists()
    both = run(environment, "-y", "core-cu13", "--cascade")
    assert both.status == 0, both.out
    assert not (environment.site_packages / "core/lib").exists()


def test_a_directory_outside_counts_when_it_is_named(engine: EnvironmentBuilder, tmp_path: Path) -> None:
    """Blocked for what is there, and allowed without looking; what is there is never deleted."""
    path = outside(engine, tmp_path / "cache")
    done = run(engine, "-y", "engine", "--consumers-in", tmp_path / "cache")
    assert done.status == 3
    assert f"needed by  (outside)   {path}   (RPATH {engine.site_packages}/engine/lib)" in done.out
    assert loads(path)
    accepted = run(engine, "-y", "engine", "--consumers-in", tmp_path / "cache", "--accept-loss", "libengine.so.1")
    assert accepted.status == 0, accepted.out
    assert path.exists()
    assert not loads(path)


def test_a_directory_is_part_of_the_request(engine: EnvironmentBuilder, tmp_path: Path) -> None:
    """A saved plan looks there again wherever it is applied, and is refused where something needs what goes by now."""
    cache = tmp_path / "cache"
    (cache / "kernels").mkdir(parents=True)
    plan = tmp_path / "plan.json"
    done = safe_uninstall(
        "-n", "-p", engine.prefix, "engine", "--consumers-in", "cache", "-o", plan, directory=tmp_path
    )
    assert done.status == 0, done.err
    assert json.loads(plan.read_text())["request"]["consumers_in"] == [str(cache)]
    outside(engine, cache)
    blocked = safe_uninstall("apply", plan, "-y", directory=tmp_path / "cache")
    refused(blocked, 2, "error[stale-plan]", f"the libraries in {cache}/kernels are new")
    assert (engine.site_packages / PROVIDER).exists()


def test_offered_commands_repeat_it(engine: EnvironmentBuilder, tmp_path: Path) -> None:
    """What is offered plans the very same."""
    (tmp_path / "cache").mkdir()
    engine.distribution("app", requires=["engine"])
    done = run(engine, "-n", "engine", "--consumers-in", tmp_path / "cache", "--format", "json")
    (alternative,) = done.document["alternatives"]
    assert f"--consumers-in {tmp_path / 'cache'}" in alternative["command"]


@pytest.mark.parametrize("words", [("engine", "-n"), ("check",), ("check", "--fix", "-n"), ("why", "engine")])
def test_a_directory_that_is_not_there_is_refused(
    engine: EnvironmentBuilder, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Exit 2: a typing error must not pass for "nothing there needs it"."""
    with untouched(engine.prefix):
        done = run(engine, *words, "--consumers-in", tmp_path / "absent")
    refused(done, 2, f"error[usage]: --consumers-in: there is no directory `{tmp_path / 'absent'}`")


def test_check_and_why_know_the_directory(engine: EnvironmentBuilder, tmp_path: Path) -> None:
    """What is missing there is told, and who needs a library from there."""
    path = outside(engine, tmp_path / "cache")
    write_elf(tmp_path / "cache/lone.so", needed=("libelse.so",))
    check = run(engine, "check", "--consumers-in", tmp_path / "cache")
    assert check.status == 0
    assert "libelse.so" in check.out
    assert str(tmp_path / "cache/lone.so") in check.out
    assert run(engine, "check").out.startswith("No damage.")
    why = run(engine, "why", "libengine.so.1", "--consumers-in", tmp_path / "cache")
    assert (why.status, str(path) in why.out) == (0, True)
    assert str(path) not in run(engine, "why", "libengine.so.1").out


def test_caches_are_noted_without_being_named(engine: EnvironmentBuilder, tmp_path: Path) -> None:
    """One note for a whole cache; it blocks nothing, and nothing in it is touched."""
    cache = tmp_path / "extensions"
    path = outside(engine, cache)
    write_elf(cache / "other.so", needed=("libengine.so.1",), rpath=str(engine.site_packages / "engine/lib"))
    done = run(engine, "-y", "engine", TORCH_EXTENSIONS_DIR=str(cache))
    assert done.status == 0, done.err
    assert done.out.splitlines()[0] == "note[library-lost]: 2 files that torch_extensions compiled need libengine.so.1"
    assert f"help: what is still used is compiled anew; delete {cache} to be rid of the rest" in done.out
    assert path.exists()
