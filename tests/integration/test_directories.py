"""Directories that pip filled without an interpreter in them: uv changes them, and what cannot be done is said."""

import os
import sys
from pathlib import Path

import pytest

from tests.integration.test_bad_input import refused, untouched, without_uv
from tests.support.environments import EnvironmentBuilder
from tests.support.program import safe_uninstall


def filled(root: Path, *, version: str | None = None, target: bool = False) -> EnvironmentBuilder:
    """Return what ``pip install --prefix`` (or ``--target``) leaves: a script, two owners of one file."""
    builder = EnvironmentBuilder(root, python_version=version, python=None)
    (builder.prefix / "pyvenv.cfg").unlink()
    if target:
        builder.site_packages = builder.prefix
    shared = {"shared/one.py": "x = 1\n"}
    builder.distribution("one", "1.0", {**shared, "one.py": ""}, scripts={"one": "one:main"})
    builder.distribution("two", "1.0", {**shared, "two.py": ""}, scripts={"two": "two:main"})
    return builder


@pytest.mark.parametrize("target", [False, True], ids=["prefix", "target"])
@pytest.mark.parametrize("by_site", [False, True], ids=["root", "site-packages"])
def test_a_distribution_goes_and_what_others_own_stays(tmp_path: Path, target: bool, by_site: bool) -> None:
    """As in any environment, its script included."""
    builder = filled(tmp_path / "my prefix", target=target)
    done = safe_uninstall("-y", "-p", builder.site_packages if by_site else builder.prefix, "one")
    assert done.status == 0, done.out + done.err
    left = {path.name for path in builder.site_packages.iterdir()} - {"bin", "lib"}
    assert left == {"shared", "two.py", "two-1.0.dist-info"} | ({".lock", ".safe-uninstall"} if target else set())
    assert (builder.site_packages / "shared" / "one.py").exists()
    assert os.listdir(builder.bin) == ["two"]


def test_a_prefix_for_a_python_that_is_not_there(tmp_path: Path) -> None:
    """Uv would look where the distributions of another version are, find none, and call that a success."""
    builder = filled(tmp_path / "prefix", version="3.7")
    with untouched(builder.prefix):
        refused(safe_uninstall("-n", "-p", builder.prefix, "one"), 0, "one 1.0")
        done = safe_uninstall("-y", "-p", builder.prefix, "one", variables={"PATH": "/nonexistent"})
        refused(done, 2, "uv needs a Python 3.7", "`python3.7` is on PATH")


@pytest.mark.parametrize("target", [False, True], ids=["prefix", "target"])
@pytest.mark.parametrize("installer", ["auto", "pip", "uv"])
def test_without_uv_every_way_leads_to_getting_it(tmp_path: Path, target: bool, installer: str) -> None:
    """No installer is recommended that would send back to the first."""
    builder = filled(tmp_path / "prefix", target=target)
    with untouched(builder.prefix):
        done = safe_uninstall(
            "-y", "--installer", installer, "-p", builder.prefix, "one", python=without_uv(tmp_path),
            variables={"PATH": "/nonexistent"},
        )  # fmt: skip
    refused(done, 2, "error[installer]: ", "install ", "-m pip install uv")
    assert "--installer" not in done.err


def test_pip_where_only_uv_can(tmp_path: Path) -> None:
    """It is there, and the help says how to let it."""
    builder = filled(tmp_path / "prefix")
    with untouched(builder.prefix):
        done = safe_uninstall("-y", "--installer", "pip", "-p", builder.prefix, "one")
    refused(done, 2, "which has no interpreter of its own", "use uv, which can: --installer uv")


def test_what_is_not_installed_is_looked_for_with_the_right_program(tmp_path: Path) -> None:
    """The help is a whole command, for that directory."""
    builder = filled(tmp_path / "prefix")
    done = safe_uninstall("-n", "-p", builder.prefix, "absent")
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    refused(done, 2, f"uv pip list --python {version} --prefix {builder.prefix}")
