"""The program end to end on environments built on the spot: what it prints, how it exits, what is left."""

import json
import re
import shutil
from pathlib import Path

import jsonschema
import pytest

from tests.support.environments import EnvironmentBuilder, library, read_tree
from tests.support.program import safe_uninstall
from tests.support.runs import build_twins

BOTH = pytest.mark.parametrize("installer", ["pip", "uv"])


@pytest.fixture
def chain(environment: EnvironmentBuilder) -> EnvironmentBuilder:
    """Return an environment in which one distribution needs the library of another."""
    environment.distribution("provider", "1.0", {"lib/liba.so.1": library("liba.so.1")})
    environment.distribution("consumer", "2.0", {"consumer/c.so": library(None, "liba.so.1", rpath="$ORIGIN/../lib")})
    return environment


@BOTH
def test_twins(environment: EnvironmentBuilder, installer: str) -> None:
    """Data on standard output, nothing on standard error, exit 0, and the other twin whole."""
    build_twins(environment)
    done = safe_uninstall("-y", "--installer", installer, "-p", environment.prefix, "twin-cu11")
    assert (done.status, done.err) == (0, "")
    assert done.last.startswith("Removed twin-cu11 11.8 ")
    assert (environment.site_packages / "nvidia/nvtx/lib/libnvToolsExt.so.1").exists()
    assert not (environment.site_packages / "nvidia/nvtx/own11.py").exists()


def test_a_dry_run_tells_the_same_and_changes_nothing(environment: EnvironmentBuilder) -> None:
    """It takes the path of the real run up to the deed."""
    build_twins(environment)
    before = read_tree(environment.prefix)
    dry = safe_uninstall("-n", "-p", environment.prefix, "twin-cu11")
    assert (dry.status, dry.err) == (0, "")
    assert dry.last.endswith("Nothing changed.")
    assert read_tree(environment.prefix) == before
    real = safe_uninstall("-y", "-p", environment.prefix, "twin-cu11")
    assert real.out.splitlines()[:2] == dry.out.splitlines()[:2]


def test_the_environment_of_the_shell(chain: EnvironmentBuilder, tmp_path: Path) -> None:
    """VIRTUAL_ENV decides, else ``.venv`` here or above; -p takes an interpreter, a directory, and site-packages."""
    done = safe_uninstall("-n", "provider", variables={"VIRTUAL_ENV": str(chain.prefix)})
    assert done.status == 3
    (tmp_path / ".venv").symlink_to(chain.prefix)
    below = tmp_path / "project" / "src"
    below.mkdir(parents=True)
    assert safe_uninstall("-n", "provider", directory=below).out == done.out
    for place in (chain.python, chain.site_packages, chain.bin):
        assert safe_uninstall("-n", "-p", place, "provider").status == 3


@pytest.mark.parametrize("words", [("-p", "{}", "why", "liba.so.1"), ("why", "-p", "{}", "liba.so.1")])
def test_common_options_stand_before_and_after_a_command(chain: EnvironmentBuilder, words: tuple[str, ...]) -> None:
    """``-p DIRECTORY why`` is ``why -p DIRECTORY``."""
    done = safe_uninstall(*(word.format(chain.prefix) for word in words))
    assert (done.status, done.err) == (0, "")
    assert "claimed by provider 1.0" in done.out
    assert "needed by consumer 2.0" in done.out


def test_a_package_with_the_name_of_a_command(environment: EnvironmentBuilder) -> None:
    """After ``--`` words are packages."""
    environment.distribution("why", "1.0", {"why.py": "x = 1\n"})
    done = safe_uninstall("-y", "-p", environment.prefix, "--", "why")
    assert done.status == 0, done.err
    assert not (environment.site_packages / "why.py").exists()


def test_options_come_from_variables_too(chain: EnvironmentBuilder) -> None:
    """``SAFE_UNINSTALL_<OPTION>`` is ``--option``."""
    variables = {"SAFE_UNINSTALL_PYTHON": str(chain.prefix), "SAFE_UNINSTALL_DRY_RUN": "1"}
    done = safe_uninstall("consumer", variables=variables)
    assert done.status == 0
    assert (chain.site_packages / "consumer/c.so").exists()


def test_requirements_files_name_what_goes(chain: EnvironmentBuilder, tmp_path: Path) -> None:
    """Versions, comments and markers of ``-r FILE`` are understood as pip understands them."""
    listed = tmp_path / "requirements.txt"
    listed.write_text("# both\nprovider==1.0\nconsumer ; python_version >= '3'\n")
    done = safe_uninstall("-y", "-p", chain.prefix, "-r", listed)
    assert (done.status, done.err) == (0, "")
    assert list(chain.site_packages.iterdir()) == []


def test_an_accepted_loss_goes_ahead(chain: EnvironmentBuilder) -> None:
    """What an error names can be accepted, by soname."""
    assert safe_uninstall("-y", "-p", chain.prefix, "provider").status == 3
    done = safe_uninstall("-y", "-p", chain.prefix, "--accept-loss", "liba.so.1", "provider")
    assert done.status == 0, done.out
    assert not (chain.site_packages / "lib").exists()


def test_ld_library_path_binds_only_when_asked_to(chain: EnvironmentBuilder, tmp_path: Path) -> None:
    """A directory that happens to be set in this shell is no reason to call a removal safe."""
    shutil.copy(chain.site_packages / "lib/liba.so.1", tmp_path)
    variables = {"LD_LIBRARY_PATH": str(tmp_path)}
    assert safe_uninstall("-n", "-p", chain.prefix, "provider", variables=variables).status == 3
    done = safe_uninstall("-n", "--use-ld-library-path", "-p", chain.prefix, "provider", variables=variables)
    assert (done.status, done.err) == (0, "")


def test_every_document_fits_the_schema(chain: EnvironmentBuilder, tmp_path: Path) -> None:
    """Plan, outcome, graph, why and error: one document on standard output, nothing else, and as the schema says."""
    schema = safe_uninstall("schema").document
    validator = jsonschema.Draft202012Validator(schema)
    here = ("-p", chain.prefix, "--format", "json")
    saved = tmp_path / "plan.json"
    runs = [
        (3, safe_uninstall(*here, "-n", "-o", saved, "provider")),
        (2, safe_uninstall(*here, "-n", "absent")),
        (2, safe_uninstall(*here, "consumer")),
        (0, safe_uninstall("graph", *here)),
        (0, safe_uninstall("why", *here, "liba.so.1", "consumer")),
        (0, safe_uninstall(*here, "-y", "consumer")),
    ]
    for status, done in runs:
        assert (done.status, done.err) == (status, ""), done.out
        validator.validate(done.document)
    assert json.loads(saved.read_text()) == runs[0][1].document


def test_a_failure_is_a_document_too(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Rolled back under ``--format json``: status 4, and the document says why."""
    build_twins(environment)
    uv = tmp_path / "uv"
    uv.write_text('#!/bin/sh\ncase "$*" in *uninstall*) exit 7;; *) echo uv 0.13.9;; esac\n')
    uv.chmod(0o755)
    words = ("-y", "--format", "json", "--installer", "uv", "-p", environment.prefix, "twin-cu11")
    done = safe_uninstall(*words, variables={"UV": str(uv)})
    assert (done.status, done.err) == (4, "")
    jsonschema.Draft202012Validator(safe_uninstall("schema").document).validate(done.document)


def test_no_colour_unless_it_is_wanted(chain: EnvironmentBuilder) -> None:
    """Never in a pipe, always with ``--color always``, and it carries no meaning."""
    plain = safe_uninstall("-n", "-p", chain.prefix, "provider").out
    painted = safe_uninstall("-n", "--color", "always", "-p", chain.prefix, "provider").out
    assert "\033[" not in plain
    assert "\033[" in painted
    assert re.sub(r"\033\[[0-9;]*m", "", painted) == plain


@BOTH
def test_a_kept_backup_is_where_it_says(environment: EnvironmentBuilder, installer: str) -> None:
    """``--keep-backup`` leaves the removed files, and names the place."""
    build_twins(environment)
    done = safe_uninstall("-y", "--keep-backup", "--installer", installer, "-p", environment.prefix, "twin-cu11")
    assert done.status == 0, done.err
    (line,) = (line for line in done.out.splitlines() if line.startswith("Backup kept in "))
    assert Path(line.removeprefix("Backup kept in ")).is_dir()


def test_the_demo_tells_the_incident() -> None:
    """It ends well only if each of its steps went as told: broken by pip, blocked, repaired, removed, and loading."""
    done = safe_uninstall("demo")
    assert (done.status, done.err) == (0, ""), done.out
    for sentence in (
        "cannot open shared object file",
        "No broken requirements found.",
        "error[library-lost]",
        "Blocked: ",
        "Removed demo-cudnn-cu13 ",
        "demo_torch: all libraries loaded",
    ):
        assert sentence in done.out


def test_nothing_is_done_where_all_of_it_is_needed(chain: EnvironmentBuilder) -> None:
    """``--keep-needed`` may keep everything: no transaction, no receipt, exit 0."""
    before = read_tree(chain.prefix)
    done = safe_uninstall("-y", "-p", chain.prefix, "provider", "--keep-needed")
    assert (done.status, done.last) == (0, "Nothing to do. Nothing changed.")
    assert "keep    provider 1.0   still needed: " in done.out
    assert read_tree(chain.prefix) == before
