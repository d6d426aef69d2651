"""A receipt says all that is needed to undo a transaction, and is understood again wherever the environment lies."""

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from safe_uninstall import __version__
from safe_uninstall.execute.receipt import ReceiptError, make_receipt, read_facts, read_receipt, receipt_document
from safe_uninstall.model.distribution import DirectUrl, Distribution
from safe_uninstall.model.history import Pin, Receipt, Undo
from safe_uninstall.model.plan import Action, ActionKind, DistributionRef, Plan
from safe_uninstall.render.document import plan_document
from safe_uninstall.render.schema import schema_text
from tests.support.environments import EnvironmentBuilder
from tests.support.runs import plan_for

ORIGIN = {"url": "file:///w/one-1.0.whl", "archive_info": {"hashes": {"sha256": "ab"}}}


def made(builder: EnvironmentBuilder, plan: Plan, **more: Any) -> Receipt:
    """Return the receipt of a plan."""
    facts = {"identifier": "20300101T000000", "document": plan_document(plan, __version__), "backup_bytes": None}
    return make_receipt(plan, builder.snapshot(), **{**facts, **more})


@pytest.fixture
def one(environment: EnvironmentBuilder) -> EnvironmentBuilder:
    """Return an environment with a distribution that has every fact that a receipt holds."""
    environment.distribution(
        "one",
        "1.0",
        {"one.py": "x = 1\n", "one/d\u00e4ta.txt": "", "../../../share/one.txt": "1"},
        requires=("two>1", "three; extra == 'more'"),
        scripts={"one": "one:main"},
        metadata={"REQUESTED": "", "direct_url.json": json.dumps(ORIGIN)},
        extra_rows=["one/__pycache__/gone.pyc,,"],
    )
    return environment


def test_it_holds_what_was_removed(one: EnvironmentBuilder) -> None:
    """Pin, rows, scripts, requirements, and how it came there; the plan is in it without its envelope."""
    plan = plan_for(one, "one")
    receipt = made(one, plan, backup_bytes=7)
    (removed,) = receipt.removed
    (installed,) = one.snapshot().distributions
    assert removed.distribution == installed
    assert removed.facts == {"INSTALLER": "pip\n", "REQUESTED": "", "direct_url.json": json.dumps(ORIGIN)}
    assert (receipt.identifier, receipt.tool_version, receipt.backup_bytes) == ("20300101T000000", __version__, 7)
    assert (receipt.restored, receipt.installed, receipt.created, receipt.undoes) == ((), (), (), None)
    assert datetime.fromisoformat(receipt.time).tzinfo is not None
    assert receipt.plan["verdict"] == "allow"
    assert "format" not in receipt.plan


def read_back(receipt: Receipt, prefix: Path, directory: Path) -> Receipt:
    """Store a receipt of an environment at ``/old`` and read it for one at ``prefix``."""
    file = directory / "receipt.json"
    file.write_text(json.dumps(receipt_document(receipt, str(prefix)), ensure_ascii=True))
    return read_receipt(str(file), str(prefix))


def essence(distribution: Distribution) -> Distribution:
    """Leave out what only the metadata on disk tells, and nothing needs later."""
    return replace(
        distribution,
        record=replace(distribution.record, path=None, digest=""),
        requires_python=None,
    )


def test_it_is_understood_again(one: EnvironmentBuilder, tmp_path: Path) -> None:
    """What is stored fits the schema, and read back it is the same."""
    plan = plan_for(one, "one")
    prefix = one.prefix
    receipt = replace(
        made(one, plan, backup_bytes=12),
        restored=(Pin(name="r", version="1", metadata_path=f"{prefix}/lib/r-1.dist-info"),),
        installed=(Pin(name="i", version="2", metadata_path="/elsewhere/i-2.dist-info"),),
        created=(f"{prefix}/lib/new.txt",),
        undoes="20290101T000000",
    )
    document = receipt_document(receipt, str(prefix))
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(document)
    assert str(prefix) not in json.dumps(document["removed"])
    again = read_back(receipt, prefix, tmp_path)
    (before,), (after,) = receipt.removed, again.removed
    assert after.distribution == essence(before.distribution)
    assert after.distribution.direct_url == DirectUrl(url=str(ORIGIN["url"]), archive_hash="sha256=ab")
    assert after.facts == before.facts
    assert replace(again, removed=()) == replace(receipt, removed=())


def test_it_moves_with_the_environment(one: EnvironmentBuilder, tmp_path: Path) -> None:
    """Paths are relative to where the environment lies now."""
    receipt = made(one, plan_for(one, "one"))
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(receipt_document(receipt, str(one.prefix))))
    (moved,) = read_receipt(str(file), "/elsewhere").removed
    site = f"/elsewhere/{one.site_packages.relative_to(one.prefix)}"
    assert moved.distribution.metadata_path == f"{site}/one-1.0.dist-info"
    assert f"{site}/one.py" in {row.path for row in moved.distribution.record.rows}
    assert moved.distribution.scripts == ("/elsewhere/bin/one",)


def test_names_that_are_no_utf8_survive(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Undecodable bytes come back as they were."""
    info = environment.distribution("odd", "1.0", {"odd/\udcff.txt": "x", "odd/b.txt": ""})
    (info / "direct_url.json").write_bytes(b"\xfe")
    receipt = made(environment, plan_for(environment, "odd"))
    again = read_back(receipt, environment.prefix, tmp_path)
    assert again.removed[0].facts["direct_url.json"] == "\udcfe"
    assert again.removed[0].distribution.record.rows == receipt.removed[0].distribution.record.rows
    assert any(row.path.endswith("\udcff.txt") for row in again.removed[0].distribution.record.rows)


def test_what_came_and_what_was_created(environment: EnvironmentBuilder) -> None:
    """Restored and installed pins come from the actions; only files of restored ones that were missing are created."""
    info = environment.distribution("r", "1.0", {"r/there.py": "1", "r/missing.py": None})
    plan = plan_for(environment, "r")
    actions = tuple(
        Action(
            kind=kind,
            distribution=DistributionRef(name=name, version="1.0"),
            requested=False,
            reason="",
            metadata_path=f"/e/{name}",
        )
        for kind, name in ((ActionKind.RESTORE, "r"), (ActionKind.INSTALL, "i"), (ActionKind.KEEP, "k"))
    )
    written = {environment.path(path): "" for path in ("r/there.py", "r/missing.py", "other.py")}
    plan = replace(
        plan,
        actions=actions,
        undo=Undo(transaction="20290101T000000", backup=None),
        prediction=replace(plan.prediction, removed=frozenset(), restored=frozenset({str(info)}), written=written),
    )
    receipt = made(environment, plan)
    assert receipt.removed == ()
    assert receipt.restored == (Pin(name="r", version="1.0", metadata_path="/e/r"),)
    assert receipt.installed == (Pin(name="i", version="1.0", metadata_path="/e/i"),)
    assert receipt.installed[0].label == "i 1.0"
    assert receipt.created == (environment.path("r/missing.py"),)
    assert receipt.undoes == "20290101T000000"


def test_facts_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    """A directory in the place of a file is none."""
    (tmp_path / "INSTALLER").write_text("uv")
    (tmp_path / "REQUESTED").mkdir()
    assert read_facts(str(tmp_path)) == {"INSTALLER": "uv"}


def spoil(**changes: Any) -> str:
    """Return a receipt of nothing, with changes; None takes a field out."""
    whole: dict[str, Any] = {
        "format": "safe-uninstall/receipt",
        "format_version": 1,
        "tool_version": "1",
        "id": "x",
        "time": "t",
        "undoes": None,
        "backup": None,
        "removed": [],
        "restored": [],
        "installed": [],
        "created": [],
        "plan": {},
    }
    merged = {**whole, **changes}
    return json.dumps({key: value for key, value in merged.items() if value != "absent"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "it cannot be read: No such file or directory"),
        ("half", "it is not JSON"),
        ("[]", "it is no receipt"),
        ('{"format": "safe-uninstall/plan"}', "it is no receipt"),
        (spoil(format_version=2), "it has format version 2, and this safe-uninstall knows 1"),
        (spoil(backup="absent"), "it is not whole: 'backup'"),
        (spoil(removed=[{}]), "it is not whole: 'direct_url'"),
        (spoil(removed=3), "it is not whole: 'int' object is not iterable"),
        (spoil(plan=[1]), "it is not whole"),
        (spoil(restored=["x"]), "it is not whole"),
    ],
)
def test_what_is_no_receipt(tmp_path: Path, text: str | None, said: str) -> None:
    """The reason is a sentence."""
    file = tmp_path / "receipt.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ReceiptError) as caught:
        read_receipt(str(file), "/env")
    assert said in str(caught.value)


def test_an_empty_one_is_whole(tmp_path: Path) -> None:
    """What the spoilt ones are made of can be read."""
    file = tmp_path / "receipt.json"
    file.write_text(spoil())
    assert read_receipt(str(file), "/env") == Receipt(identifier="x", time="t", tool_version="1")
