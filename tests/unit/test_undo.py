"""The part of an undo that changes something: files from a backup, and facts of a dist-info."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.execute import installation, transaction
from safe_uninstall.execute.journal import DIRECTORY, Journal
from safe_uninstall.execute.processes import InstallerRun
from safe_uninstall.execute.stash import Stash
from safe_uninstall.execute.undo import bring, brings, brought, what_will_be_new
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.history import Undo
from safe_uninstall.model.outcome import OutcomeState
from safe_uninstall.model.plan import Plan
from tests.support.environments import EnvironmentBuilder, TreeEntry, read_tree, record_hash
from tests.support.runs import build_twins, carry_out, plan_for, plan_undo
from tests.support.wheels import wheel

OURS = (".lock", ".safe-uninstall")
BOTH = pytest.mark.parametrize("kind", list(InstallerKind), ids=lambda kind: kind.value)


def tree(builder: EnvironmentBuilder) -> dict[str, TreeEntry]:
    """Return all of an environment but what is ours."""
    return read_tree(builder.prefix, ignore=OURS)


@BOTH
@pytest.mark.parametrize("links", [True, False], ids=["linked", "copied"])
def test_a_backup_brings_all_of_it_back(
    environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch, kind: InstallerKind, links: bool
) -> None:
    """Types, modes, bytes, byte code, empty directories; also where nothing can be linked."""
    build_twins(environment)
    environment.distribution("odd", "1.0", {"odd/gone/sub/missing.txt": None, "odd/__init__.py": ""})
    (environment.site_packages / "odd/gone/sub").mkdir(parents=True)
    (environment.site_packages / "odd").chmod(0o750)
    (environment.site_packages / "odd/__init__.py").chmod(0o600)
    if not links:

        def refuse(*_: Any, **__: Any) -> None:
            raise OSError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)
    before = tree(environment)
    plan = plan_for(environment, "twin-cu11", "odd", installer=kind)
    assert carry_out(environment, plan, keep_backup=True).state is OutcomeState.COMMITTED
    assert not (environment.site_packages / "odd/__init__.py").exists()
    undo = plan_undo(environment)
    outcome = carry_out(environment, undo)
    assert (outcome.state, outcome.mismatches, outcome.stash) == (OutcomeState.COMMITTED, (), None)
    assert tree(environment) == before


def test_a_backup_serves_again(environment: EnvironmentBuilder) -> None:
    """Undone, done again and undone once more, from the same backup."""
    build_twins(environment)
    before = tree(environment)
    first = carry_out(environment, plan_for(environment, "twin-cu11"), keep_backup=True)
    removed = tree(environment)
    second = carry_out(environment, plan_undo(environment))
    assert tree(environment) == before
    carry_out(environment, plan_undo(environment, second.transaction))
    assert tree(environment) == removed
    plan = plan_undo(environment)
    assert plan.request.undo == first.transaction
    carry_out(environment, plan)
    assert tree(environment) == before


def test_a_backup_that_went_meanwhile_is_missed(
    environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleted by hand while the undo runs: rolled back, and said."""
    build_twins(environment)
    carry_out(environment, plan_for(environment, "twin-cu11"), keep_backup=True)
    before = tree(environment)
    plan = plan_undo(environment)
    assert plan.undo is not None
    assert plan.undo.backup is not None
    manifest = Path(plan.undo.backup) / "manifest.jsonl"

    def meanwhile(*arguments: Any) -> str | None:
        manifest.unlink()
        return bring(*arguments)

    monkeypatch.setattr(transaction, "bring", meanwhile)
    outcome = carry_out(environment, plan)
    assert outcome.state is OutcomeState.ROLLED_BACK
    assert outcome.reason == f"the backup {plan.undo.backup} cannot be read any more"
    assert tree(environment) == before


def test_what_cannot_be_put_back_is_named(environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory in the place of a file, or a file that is another one after all."""
    build_twins(environment)
    carry_out(environment, plan_for(environment, "twin-cu11"), keep_backup=True)
    plan = plan_undo(environment)
    assert plan.undo is not None
    blocked = environment.site_packages / "nvidia/nvtx/own11.py"
    journal, stash = Journal(str(environment.prefix / "j")), Stash(str(environment.prefix / "s"))
    installer: Any = None
    monkeypatch.setattr(Stash, "put_back", lambda *_: ())
    assert bring(plan, installer, journal, stash, []) == f"{min(plan.prediction.written)} is not as it was kept"
    monkeypatch.undo()
    blocked.mkdir()
    reason = bring(plan, installer, journal, stash, [])
    assert reason is not None
    assert reason.startswith(f"{blocked} could not be put back: ")
    blocked.rmdir()
    assert bring(plan, installer, journal, stash, []) is None
    assert blocked.read_text() == "y = 1\n"


def test_what_a_plan_brings(environment: EnvironmentBuilder) -> None:
    """Wheels, a backup, or nothing; directories to make again are new."""
    build_twins(environment)
    plan = plan_for(environment, "twin-cu11")
    assert (brings(plan), brought(plan)) == (False, [])
    assert brings(replace(plan, wheels=(wheel("w"),)))
    by_wheels = replace(plan, undo=Undo(transaction="t", backup=None))
    assert not brings(by_wheels)
    directory = f"{environment.site_packages}/empty"
    undo = replace(plan, undo=Undo(transaction="t", backup="/b", directories=frozenset({directory})))
    assert brings(undo)
    assert what_will_be_new(plan)["created"] == []
    assert what_will_be_new(undo)["created"] == [directory]
    carry_out(environment, plan, keep_backup=True)
    assert brought(plan_undo(environment)) == ["twin-cu11 11.8"]


FACTS = {"INSTALLER": "pip\n", "REQUESTED": "", "direct_url.json": '{"url": "u"}', "uv_cache.json": "{}"}


@pytest.mark.parametrize(
    ("installed", "wanted"),
    [
        ({"INSTALLER": "uv"}, FACTS),
        (FACTS, {"INSTALLER": "uv"}),
        ({"INSTALLER": "uv", "REQUESTED": ""}, {"INSTALLER": "pip\n", "REQUESTED": ""}),
        (FACTS, {}),
        (FACTS, FACTS),
        ({"INSTALLER": "uv"}, {"INSTALLER": "\udcfe"}),
    ],
)
def test_facts_are_given_back(
    environment: EnvironmentBuilder,
    monkeypatch: pytest.MonkeyPatch,
    installed: Mapping[str, str],
    wanted: Mapping[str, str],
) -> None:
    """Files that say how a distribution came there are as before, RECORD agrees, and nothing is written in place."""
    info = environment.distribution("one", "1.0", {"one.py": "1"}, installer=None, metadata=installed)
    hard_links = environment.prefix / "cache"
    hard_links.mkdir()
    for name in (*installed, "RECORD"):
        os.link(info / name, hard_links / name)
    cached = read_tree(hard_links)
    plan = replace(
        plan_for(environment, "one"),
        wheels=(wheel("one"),),
        undo=Undo(transaction="t", backup=None, facts={str(info): wanted}),
    )
    monkeypatch.setattr(installation, "install_wheels", lambda *_: None)
    none: Any = None
    before = (info / "RECORD").read_text()
    assert bring(plan, none, none, none, []) is None
    found = {name: (info / name).read_bytes() for name in FACTS if (info / name).exists()}
    assert found == {name: text.encode("utf-8", "surrogateescape") for name, text in wanted.items()}
    rows = (info / "RECORD").read_text().splitlines()
    listed = {row for row in rows if row.split(",")[0].rpartition("/")[2] in FACTS}
    assert listed == {f"{info.name}/{name},{record_hash(data)},{len(data)}" for name, data in found.items()}
    own = [row for row in before.splitlines() if row.split(",")[0].rpartition("/")[2] not in FACTS]
    assert [row for row in rows if row not in listed] == own
    assert read_tree(hard_links) == cached
    if wanted == installed:
        assert (info / "RECORD").samefile(hard_links / "RECORD")


def test_a_failed_installation_is_the_reason(environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is given back to what is not there."""
    environment.distribution("one", "1.0", {"one.py": "1"})
    plan = replace(plan_for(environment, "one"), wheels=(wheel("one"),))
    undo = replace(plan, undo=Undo(transaction="t", backup=None, facts={"/nowhere": {}}))
    monkeypatch.setattr(installation, "install_wheels", lambda *_: "no luck")
    none: Any = None
    for item in (plan, undo):
        assert bring(item, none, none, none, []) == "no luck"
    monkeypatch.setattr(installation, "install_wheels", lambda *_: None)
    assert bring(plan, none, none, none, []) is None


def test_an_undo_that_fails_leaves_what_was(environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rolled back like any other transaction; the history does not have it, and it can be tried again."""
    build_twins(environment)
    former = tree(environment)
    first = carry_out(environment, plan_for(environment, "twin-cu11"), keep_backup=True)
    before = tree(environment)
    monkeypatch.setattr(transaction, "compare_outcome", lambda *_: ("something else",))
    outcome = carry_out(environment, plan_undo(environment))
    assert (outcome.state, outcome.mismatches) == (OutcomeState.ROLLED_BACK, ("something else",))
    assert tree(environment) == before
    history = environment.prefix / DIRECTORY / "history"
    assert [path.stem for path in history.iterdir()] == [first.transaction]
    monkeypatch.undo()
    assert carry_out(environment, plan_undo(environment)).state is OutcomeState.COMMITTED
    assert tree(environment) == former


def test_no_installer_runs_for_a_backup(environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing that it could do better than the files themselves."""
    build_twins(environment)
    carry_out(environment, plan_for(environment, "twin-cu11"), keep_backup=True)

    def refuse(*_: Any) -> InstallerRun:
        raise AssertionError("an installer was run")

    monkeypatch.setattr(transaction, "run_installer", refuse)
    monkeypatch.setattr(installation, "run_installation", refuse)
    assert carry_out(environment, plan_undo(environment)).state is OutcomeState.COMMITTED


def test_what_is_left_to_do_after_a_commit_is_no_failure(
    environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is as planned, the place of what is left is named, and a recovery finishes it."""
    from safe_uninstall.execute.recovery import recover

    environment.distribution("one", "1.0", {"one.py": "1"})

    def refuse(_journal: Journal) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Journal, "publish_receipt", refuse)
    outcome = carry_out(environment, plan_for(environment, "one"))
    assert outcome.state is OutcomeState.COMMITTED
    assert outcome.stash is not None
    assert os.path.isdir(outcome.stash)
    monkeypatch.undo()
    assert [item.state for item in recover(str(environment.prefix))] == [OutcomeState.COMMITTED]
    assert os.listdir(environment.prefix / DIRECTORY) == ["history"]


def test_a_plan_made_before_something_changed_is_stale(environment: EnvironmentBuilder) -> None:
    """A file of nobody that came into the way since the plan was shown is not overwritten."""
    from safe_uninstall.model.errors import StalePlan

    environment.distribution("one", "1.0", {"one.py": "1"})
    carry_out(environment, plan_for(environment, "one"), keep_backup=True)
    plan: Plan = plan_undo(environment)
    (environment.site_packages / "one.py").write_text("mine")
    with pytest.raises(StalePlan, match="the files to bring back from the backup of"):
        carry_out(environment, plan)
    assert (environment.site_packages / "one.py").read_text() == "mine"
