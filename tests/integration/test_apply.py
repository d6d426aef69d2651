"""Plans that were saved, reviewed and applied: here, elsewhere, too late, and after somebody edited them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.environments import EnvironmentBuilder, library, read_tree
from tests.support.program import safe_uninstall
from tests.support.runs import build_twins


@pytest.fixture
def plan(environment: EnvironmentBuilder, tmp_path: Path) -> Path:
    """Return the saved plan of a removal that releases shared files."""
    build_twins(environment)
    environment.distribution("other", "1.0", {"other.py": "x = 1\n"})
    path = tmp_path / "plan.json"
    done = safe_uninstall("-n", "-p", environment.prefix, "-o", path, "twin-cu11")
    assert done.status == 0, done.err
    return path


def edit(path: Path, **changes: Any) -> None:
    """Change fields of a saved plan."""
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, **changes}))


def test_review_here_and_run_here(plan: Path, environment: EnvironmentBuilder) -> None:
    """Without ``-p`` it is the environment that the plan was made for; a dry run says whether it still fits."""
    before = read_tree(environment.prefix)
    dry = safe_uninstall("apply", plan, "--dry-run")
    assert (dry.status, dry.err) == (0, "")
    assert dry.last.startswith("Would remove 1 distribution")
    assert read_tree(environment.prefix) == before
    done = safe_uninstall("apply", plan, "-y")
    assert (done.status, done.err) == (0, "")
    assert done.last.startswith("Removed twin-cu11 11.8 ")
    assert (environment.site_packages / "nvidia/nvtx/lib/libnvToolsExt.so.1").exists()


def test_review_here_and_run_there(plan: Path, environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """A plan fits an identical environment under another prefix, and leaves the first alone."""
    there = tmp_path / "elsewhere" / "env"
    shutil.copytree(environment.prefix, there, symlinks=True)
    before = read_tree(environment.prefix)
    done = safe_uninstall("apply", "-p", there, plan, "-y", "--format", "json")
    assert done.status == 0, done.out
    assert done.document["state"] == "committed"
    assert not list(there.glob("lib/python*/site-packages/twin_cu11*"))
    assert read_tree(environment.prefix) == before


def test_a_changed_environment_is_refused_naming_the_change(plan: Path, environment: EnvironmentBuilder) -> None:
    """Whatever the plan depends on: a distribution that came, one that went, one that is another version."""
    environment.distribution("newcomer", "1.0", {"n.py": ""})
    before = read_tree(environment.prefix)
    done = safe_uninstall("apply", plan, "-y")
    assert done.status == 2
    assert (
        "error[stale-plan]: the environment changed since the plan was made: distribution newcomer is new" in done.err
    )
    assert "help: make the plan anew" in done.err
    assert read_tree(environment.prefix) == before


def test_applied_twice(plan: Path) -> None:
    """The second time there is nothing to remove."""
    assert safe_uninstall("apply", plan, "-y").status == 0
    done = safe_uninstall("apply", plan, "-y")
    assert done.status == 2
    assert "error[stale-plan]" in done.err
    assert "twin-cu11 11.8 is not installed any more" in done.err


def test_a_glob_that_matches_nothing_any_more(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """What the plan was to remove is named, not the pattern, and nothing else is suggested in its place."""
    build_twins(environment)
    saved = tmp_path / "glob.json"
    assert safe_uninstall("-p", environment.prefix, "-n", "-o", saved, "*-cu11").status == 0
    assert safe_uninstall("-p", environment.prefix, "-y", "twin-cu11").status == 0
    done = safe_uninstall("apply", saved, "-y")
    assert done.status == 2
    assert "since the plan was made: twin-cu11 11.8 is not installed any more\n" in done.err
    assert "did you mean" not in done.err


def test_a_plan_comes_from_standard_input(plan: Path) -> None:
    """``-``, as with other programs; what is wrong with it is told of standard input."""
    with plan.open() as file:
        done = safe_uninstall("apply", "-", "-y", stdin=file)
    assert done.status == 0, done.err
    with plan.open() as file:
        file.seek(5)
        broken = safe_uninstall("apply", "-", "-y", stdin=file)
    assert broken.status == 2
    assert "`standard input` is not JSON" in broken.err


def test_a_plan_that_was_edited_to_be_unsafe_is_caught(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """The request is planned again: neither a forged verdict nor forged actions get through."""
    environment.distribution("provider", "1.0", {"lib/liba.so.1": library("liba.so.1")})
    environment.distribution("consumer", "2.0", {"consumer/c.so": library(None, "liba.so.1", rpath="$ORIGIN/../lib")})
    path = tmp_path / "plan.json"
    assert safe_uninstall("-n", "-p", environment.prefix, "-o", path, "provider").status == 3
    before = read_tree(environment.prefix)
    honest = safe_uninstall("apply", path, "-y")
    assert (honest.status, honest.last.startswith("Blocked: ")) == (3, True)
    edit(path, verdict="allow", findings=[])
    forged = safe_uninstall("apply", path, "-y")
    assert forged.status == 2
    assert "error[edited-plan]" in forged.err
    assert "other verdict" in forged.err
    assert read_tree(environment.prefix) == before


def test_forged_actions_are_caught(plan: Path, environment: EnvironmentBuilder) -> None:
    """Paths of others cannot be smuggled in, nor released files taken out; reasons may read otherwise."""
    before = read_tree(environment.prefix)
    document = json.loads(plan.read_text())
    remove, release = document["actions"]
    edit(plan, actions=[{**remove, "paths": [*remove["paths"], "lib/python3/site-packages/other.py"]}, release])
    assert "other actions" in safe_uninstall("apply", plan, "-y").err
    edit(plan, actions=[remove])
    assert "other actions" in safe_uninstall("apply", plan, "-y").err
    request = {**document["request"], "names": ["other"]}
    edit(plan, actions=document["actions"], request=request)
    assert safe_uninstall("apply", plan, "-y").status == 2
    assert read_tree(environment.prefix) == before
    edit(plan, request=document["request"], actions=[{**remove, "reason": "because"}, release])
    assert safe_uninstall("apply", plan, "-n").status == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        ("not json", "is not JSON"),
        ("[]", "is not a plan of safe-uninstall"),
        ('{"format": "safe-uninstall/graph", "format_version": 1}', "is not a plan of safe-uninstall"),
        (
            '{"format": "safe-uninstall/plan", "format_version": 2, "tool_version": "9.9"}',
            "has format version 2, and this safe-uninstall knows 1",
        ),
        ('{"format": "safe-uninstall/plan", "format_version": 1}', "is not a whole plan"),
        (
            '{"format": "safe-uninstall/plan", "format_version": 1, "environment": {"prefix": 1, "fingerprint": ""},'
            ' "request": {"names": [], "rewrites": [], "install": [], "accepted_losses": []}, "actions": []}',
            "is not a whole plan: prefix",
        ),
        (
            '{"format": "safe-uninstall/plan", "format_version": 1, "environment": {"prefix": "", "fingerprint": ""},'
            ' "request": {"names": [], "rewrites": ["magic"], "install": [], "accepted_losses": []}, "actions": []}',
            "is not a whole plan: 'magic'",
        ),
        (
            '{"format": "safe-uninstall/plan", "format_version": 1, "environment": {"prefix": "", "fingerprint": ""},'
            ' "request": {"names": [], "rewrites": [], "install": [], "accepted_losses": []}, "actions": {}}',
            "is not a whole plan: actions",
        ),
    ],
)
def test_what_is_no_plan(tmp_path: Path, text: str | None, said: str) -> None:
    """Named, with the next step; exit 2."""
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(text)
    done = safe_uninstall("apply", path, "-y")
    assert done.status == 2
    assert said in done.err
    assert "help: " in done.err
    assert done.last == "Nothing changed."


def test_it_asks_unless_told_otherwise(plan: Path, environment: EnvironmentBuilder) -> None:
    """No terminal and no ``-y``: never a silent yes."""
    before = read_tree(environment.prefix)
    assert safe_uninstall("apply", plan).status == 2
    assert safe_uninstall("apply", plan, "--format", "json").status == 2
    assert read_tree(environment.prefix) == before
