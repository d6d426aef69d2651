"""Conda environments: what conda owns are claims and providers, and only conda takes them away."""

from pathlib import Path

import pytest

from tests.support.conda_prefix import SITE, CondaPrefix
from tests.support.environments import library, read_tree
from tests.support.program import Finished, safe_uninstall


@pytest.fixture
def prefix(tmp_path: Path) -> CondaPrefix:
    """A prefix with a noarch package, a library of ``$PREFIX/lib``, and what pip installed among them."""
    builder = CondaPrefix(tmp_path / "env")
    script = b"#!/env/bin/python\n"
    builder.package("libfoo", "1.2", {"lib/libfoo.so.1": library("libfoo.so.1")})
    builder.package(
        "tool",
        "2.0",
        {f"{SITE}/tool/__init__.py": "", f"{SITE}/tool/__pycache__/__init__.cpython-311.pyc": "x", "bin/tool": script},
        dist="tool",
        changes={"bin/tool": {"path_type": "unix_python_entry_point"}},
    )
    builder.distribution("app", files={"app/x.so": library(None, "libfoo.so.1", "libpip.so.1")})
    builder.distribution("pipped", files={"../../libpip.so.1": library("libpip.so.1")})
    return builder


def look(prefix: CondaPrefix, *words: str) -> Finished:
    """Run without changing anything."""
    before = read_tree(prefix.prefix)
    done = safe_uninstall("-p", prefix.prefix, *words)
    assert read_tree(prefix.prefix) == before
    return done


@pytest.mark.parametrize("name", ["tool", "libfoo"])
def test_what_conda_installed_is_condas_to_remove(prefix: CondaPrefix, name: str) -> None:
    """Whether it is a Python distribution or not; the command is whole."""
    done = look(prefix, "-y", name)
    assert done.status == 3
    assert f"`{name}`" in done.out
    assert "was installed by conda\n" in done.out
    assert f"conda remove -p {prefix.prefix} {name}" in done.out


@pytest.mark.parametrize(
    ("command", "program"), [("/x/bin/micromamba create", "micromamba"), ("mamba install x", "mamba"), ("", "conda")]
)
def test_the_program_that_made_it_is_named(tmp_path: Path, command: str, program: str) -> None:
    """``conda-meta/history`` tells."""
    builder = CondaPrefix(tmp_path / "env", command=command)
    builder.package("tool", "2.0", {f"{SITE}/tool.py": ""}, dist="tool")
    assert f"{program} remove -p {builder.prefix} tool" in look(builder, "-n", "tool").out
    (builder.prefix / "conda-meta/pixi").write_text("{}")
    assert "pixi remove tool" in look(builder, "-n", "tool").out


def test_the_interpreters_own_rpath_finds_the_libraries_of_the_prefix(prefix: CondaPrefix) -> None:
    """An extension without a search path of its own binds in ``$PREFIX/lib``, to conda's package and to pip's."""
    nodes = {item["path"]: item for item in safe_uninstall("graph", "-p", prefix.prefix).document["objects"]}
    assert nodes["lib/libfoo.so.1"]["distribution"] == "libfoo"
    done = look(prefix, "-n", "pipped")
    assert done.status == 3
    assert "error[library-lost]: removing `pipped` 1.0 leaves libpip.so.1 without a provider" in done.out
    assert "app/x.so   (RPATH $ORIGIN/../lib)" in done.out


def test_condas_libraries_are_consumers(prefix: CondaPrefix) -> None:
    """What a conda package loads may not go either."""
    prefix.package("libbar", "1", {"lib/libbar.so": library("libbar.so", "libpip.so.1", rpath="$ORIGIN")})
    done = look(prefix, "-n", "pipped", "app")
    assert done.status == 3
    assert "libbar 1" in done.out


def test_condas_files_that_pip_claims_too_stay(prefix: CondaPrefix) -> None:
    """The same bytes are left in place."""
    prefix.distribution("same", files={"../../libfoo.so.1": library("libfoo.so.1"), "same.py": ""})
    done = look(prefix, "-n", "same")
    assert done.status == 0
    assert "owned by libfoo" in done.out


def test_what_pip_wrote_over_condas_files_is_a_loss(prefix: CondaPrefix) -> None:
    """Its hash in ``paths_data`` tells; only conda can write it anew, so that no rewrite is offered."""
    prefix.distribution("other", files={"../../libfoo.so.1": library("libfoo.so.1", text="x"), "other.py": ""})
    done = look(prefix, "-n", "other")
    assert done.status == 3
    assert "error[file-lost]: `libfoo` 1.2 would lose 1 file that other 1.0 overwrote" in done.out
    assert "--restore" not in done.out
    assert f"conda install -p {prefix.prefix} --force-reinstall libfoo" in done.out
    # What has its prefix written into it has another hash, which conda tells or does not.
    for hash_, status in (({"sha256_in_prefix": "00" * 32}, 3), ({"sha256": "zz", "prefix_placeholder": "/p"}, 0)):
        prefix.package("libfoo", "1.2", {"lib/libfoo.so.1": None}, changes={"lib/libfoo.so.1": hash_})
        assert look(prefix, "-n", "other").status == status


def test_a_requirement_is_not_met_by_a_conda_package_without_metadata(prefix: CondaPrefix) -> None:
    """Pip would not see it; nor does a pattern mean it."""
    prefix.package("pipped", "9", {"share/x": "x"})
    prefix.distribution("needy", requires=["pipped"])
    done = look(prefix, "-n", "pipped", "app")
    assert "error[requirement-lost]" in done.out
    assert look(prefix, "-n", "app*").status == 0


def test_what_pip_has_replaced_is_no_survivor(prefix: CondaPrefix) -> None:
    """Conda still lists the old version, whose metadata pip has removed."""
    prefix.package("lib", "1", {f"{SITE}/lib.py": "1"}, dist="lib")
    info = prefix.prefix / SITE / "lib-1.dist-info"
    for path in info.iterdir():
        path.unlink()
    info.rmdir()
    prefix.distribution("lib", "2", files={"lib.py": "2"})
    done = look(prefix, "-n", "lib")
    assert done.status == 0, done.out


def test_check_leaves_to_conda_what_is_condas(prefix: CondaPrefix) -> None:
    """Files that differ from its list are not ours to restore, and records that cannot be read are told."""
    (prefix.prefix / "lib/libfoo.so.1").unlink()
    (prefix.prefix / "conda-meta/bad-1-0.json").write_text("[")
    done = look(prefix, "check")
    assert "already-missing" not in done.out
