"""The incident as documents: every line of them was read by a person before it was kept.

A change that alters one is looked at again: run with ``SAFE_UNINSTALL_GOLDEN`` naming the directory of the golden files
in the source tree, and review the difference.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.incident.test_incident import LEFTOVER, LEFTOVERS, caches
from tests.support.installed import PIP, Installed

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "SAFE_UNINSTALL_GOLDEN"


@pytest.fixture(scope="module")
def environment(originals: Callable[[str], Installed]) -> Installed:
    """Return the environment that pip made; it is only looked at."""
    return originals(PIP)


def neutral(text: str, environment: Installed) -> str:
    """Return a document without what differs between hosts, versions of Python and days."""
    text = text.replace(str(environment.prefix), "PREFIX")
    text = re.sub(r"sha256:[0-9a-f]{64}", "sha256:DIGEST", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", text)
    text = re.sub(r"\bpython3\.\d+/", "python3.X/", text)
    return re.sub(r"\b3\.\d+\.\d+\b(?=, pip|\",\n    \"site)", "3.X.Y", text)


def neutral_json(text: str, environment: Installed) -> str:
    """Return the same for JSON; where a host looks for libraries by default is left out."""
    document = json.loads(text)
    document["tool_version"] = "VERSION"
    document["environment"]["python_version"] = "3.X.Y"
    for finding in document["findings"]:
        for consumer in finding["consumers"]:
            searched = consumer["searched"]
            consumer["searched"] = searched[: searched.index("ld.so.cache") + 1]
    return neutral(json.dumps(document, indent=1) + "\n", environment)


def hold(name: str, text: str) -> None:
    """Compare a document with the golden file of a name, or write that."""
    if os.environ.get(UPDATE):
        Path(os.environ[UPDATE], name).write_text(text, encoding="utf-8")
    assert text == (GOLDEN / name).read_text(encoding="utf-8")


def test_the_blocked_plan_as_a_diff(environment: Installed) -> None:
    """What would break, why, and what to type; two runs give the same text."""
    first, second = (environment.safe_uninstall(LEFTOVER, "--format", "diff") for _ in range(2))
    assert (first.status, first.err) == (3, "")
    assert first == second
    hold("blocked.diff", neutral(first.out, environment))


def test_the_blocked_plan_as_json(environment: Installed) -> None:
    """The same for programs."""
    done = environment.safe_uninstall("-n", LEFTOVER, "--format", "json")
    assert (done.status, done.err) == (3, "")
    hold("blocked.json", neutral_json(done.out, environment))


def test_the_rewritten_plan_as_a_diff(environment: Installed, workshop: Path) -> None:
    """All four leftovers go and what they overwrote comes back: every binding that changes is there."""
    done = environment.safe_uninstall(*LEFTOVERS, "--restore", "--format", "diff", **caches(workshop))
    assert done.status == 0, done.err
    hold("restored.diff", neutral(done.out, environment))


def test_the_audit_as_text(environment: Installed) -> None:
    """What ``check`` says of the contaminated environment."""
    done = environment.safe_uninstall("check")
    assert (done.status, done.err) == (3, "")
    hold("check.txt", neutral(done.out, environment))
