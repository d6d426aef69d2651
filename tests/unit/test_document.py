"""Documents: every field of design's format version 1, paths relative to the prefix, and valid by the schema."""

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from safe_uninstall.model.errors import (
    EnvironmentNotFound,
    NotInstalled,
    SafeUninstallError,
    StalePlan,
    UsageError,
)
from safe_uninstall.model.graph import Graph, GraphNode
from safe_uninstall.model.linkage import Binding, How, Strength
from safe_uninstall.model.outcome import Outcome, OutcomeState
from safe_uninstall.model.plan import Alternative, BindingChange, Code, Consumer, Request, Rewrite
from safe_uninstall.model.wheel import Wheel
from safe_uninstall.model.why import Claim, Provider, Unmet, User, Why
from safe_uninstall.render.document import (
    error_document,
    graph_document,
    outcome_document,
    plan_document,
    to_json,
)
from safe_uninstall.render.schema import schema_text
from safe_uninstall.render.why import why_document
from tests.support.fakes import PREFIX, SITE, at, elf, environment
from tests.unit.test_text import CU12, CU13, CUDNN, TORCH, finding, plain, plan, remove

SCHEMA: dict[str, Any] = json.loads(schema_text())
BELOW = "lib/python3.11/site-packages"


def valid(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document as its readers get it, after holding it against the schema."""
    read: dict[str, Any] = json.loads(to_json(document))
    jsonschema.Draft202012Validator(SCHEMA).validate(read)
    return read


def test_a_plan() -> None:
    """The document of design.md, field by field."""
    alternative = Alternative(
        rewrites=(Rewrite.RESTORE,), command="safe-uninstall x --restore", actions=(remove(files=0),), summary="both"
    )
    request = Request(names=("nvidia-*-cu13",), accepted_losses=("libx.so",), rewrites=(Rewrite.CASCADE,))
    document = valid(plan_document(plan(finding(), request=request, alternatives=(alternative,)), "1.2.3"))
    (loss,) = document.pop("findings")
    assert document == {
        "format": "safe-uninstall/plan",
        "format_version": 1,
        "tool_version": "1.2.3",
        "environment": {
            "prefix": PREFIX,
            "python_version": "3.11.7",
            "site_packages": [BELOW],
            "kind": "venv",
            "installer": "pip",
            "fingerprint": "sha256:" + "0" * 64,
        },
        "request": {
            "names": ["nvidia-*-cu13"],
            "rewrites": ["cascade"],
            "install": [],
            "accepted_losses": ["libx.so"],
            "repair": False,
            "undo": None,
            "use_library_path": False,
            "consumers_in": [],
            "break_system_packages": False,
            "installer": None,
            "refuse_in_use": False,
            "probes": [],
            "probe_timeout": 300.0,
        },
        "verdict": "block",
        "actions": [
            {
                "kind": "uninstall",
                "distribution": {"name": "nvidia-cudnn-cu13", "version": "9.24.0.43"},
                "requested": True,
                "reason": "requested",
                "paths": [f"{BELOW}/file0", f"{BELOW}/file1"],
                "bytes": 966_000_000,
            }
        ],
        "alternatives": [
            {
                "rewrites": ["restore"],
                "command": "safe-uninstall x --restore",
                "summary": "both",
                "actions": [
                    {
                        "kind": "uninstall",
                        "distribution": {"name": "nvidia-cudnn-cu13", "version": "9.24.0.43"},
                        "requested": True,
                        "reason": "requested",
                        "paths": [],
                        "bytes": 966_000_000,
                    }
                ],
            }
        ],
        "bindings": [],
        "wheels": [],
        "fingerprint_parts": {},
        "probes": [],
        "unseen_processes": 0,
    }
    assert loss["consumers"][0] == {
        "distribution": "torch",
        "path": f"{BELOW}/torch/lib/libtorch_cuda.so",
        "strength": "linked",
        "how": "RPATH $ORIGIN/../../nvidia/cudnn/lib",
        "searched": [f"{BELOW}/torch/lib", f"{BELOW}/nvidia/cudnn/lib", "ld.so.cache", "/lib", "/usr/lib"],
        "context": [],
    }
    assert loss["claimants"] == [{"name": CU12.name, "version": CU12.version, "overwritten": 22}]
    assert (loss["code"], loss["severity"], loss["accepted"]) == ("library-lost", "error", False)
    assert (loss["distribution"], loss["soname"], loss["path"]) == (CU13.name, "libcudnn.so.9", f"{BELOW}/{CUDNN}")


def test_a_finding_about_nothing_in_particular() -> None:
    """What does not apply is null or empty, not absent; paths in notes are relative too."""
    note = plain(Code.EXTERNALLY_MANAGED, "managed", notes=(f"{SITE}/x is the distributor's",))
    (item,) = valid(plan_document(plan(note), "1"))["findings"]
    assert (item["distribution"], item["path"], item["soname"], item["consumers"]) == (None, None, None, [])
    assert item["notes"] == [f"{BELOW}/x is the distributor's"]


@pytest.mark.parametrize("code", list(Code))
def test_every_code_is_in_the_schema(code: Code) -> None:
    """The closed set is the same in both."""
    valid(plan_document(plan(plain(code, "x")), "1"))


def test_the_schema_holds_something() -> None:
    """A document of another version, with a code of its own, or without a field is none."""
    good = plan_document(plan(finding()), "1")
    for broken in (
        {**good, "format_version": 2},
        {**good, "verdict": "maybe"},
        {**good, "findings": [{**good["findings"][0], "code": "made-up"}]},
        {key: value for key, value in good.items() if key != "actions"},
        {},
    ):
        with pytest.raises(jsonschema.ValidationError):
            valid(broken)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("state", list(OutcomeState))
def test_an_outcome(state: OutcomeState) -> None:
    """How it ended, and the plan without an envelope of its own."""
    ended = Outcome(
        plan=plan(), state=state, reason="why", mismatches=("a",), stash="/s", transaction="1", bytes_freed=9
    )
    document = valid(outcome_document(ended, "1"))
    whole = plan_document(plan(), "1")
    envelope = ("format", "format_version", "tool_version")
    assert document.pop("plan") == {key: whole[key] for key in whole if key not in envelope}
    assert document == {
        "format": "safe-uninstall/outcome",
        "format_version": 1,
        "tool_version": "1",
        "state": state.value,
        "reason": "why",
        "mismatches": ["a"],
        "stash": "/s",
        "transaction": "1",
        "bytes_freed": 9,
        "probes": [],
    }


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (SafeUninstallError("x"), "failure", 1),
        (UsageError("x", help=("do this",)), "usage", 2),
        (EnvironmentNotFound("x"), "environment", 2),
        (NotInstalled(("torhc",), {"torhc": ("torch",)}), "not-installed", 2),
        (StalePlan(("torch is gone",)), "stale-plan", 2),
    ],
)
def test_an_error(error: SafeUninstallError, code: str, status: int) -> None:
    """Code, sentence, help and exit status; near matches where names are unknown."""
    document = valid(error_document(error, "1"))
    assert document["format"] == "safe-uninstall/error"
    assert document["exit_status"] == status
    assert document["error"] == {
        "code": code,
        "message": error.message,
        "help": list(error.help),
        "names": list(getattr(error, "names", ())),
        "near": {"torhc": ["torch"]} if isinstance(error, NotInstalled) else {},
    }


def test_a_graph() -> None:
    """Providers inside are relative, outside absolute, and null where there is none, however it was looked for."""
    a = at("a.so")
    node = GraphNode(
        object=elf(a, "liba.so"),
        distribution="app",
        needs=(
            Binding(consumer=a, name="libb.so", provider=at("b.so"), how=How.RPATH, via="$ORIGIN"),
            Binding(consumer=a, name="libc.so.6", provider="/lib/libc.so.6", how=How.CACHE),
            Binding(consumer=a, name="/x.so", provider=None, how=How.ABSOLUTE),
        ),
    )
    document = valid(graph_document(Graph(nodes=(node,)), environment(), "1"))
    assert document["objects"] == [
        {
            "path": f"{BELOW}/a.so",
            "distribution": "app",
            "soname": "liba.so",
            "machine": 62,
            "bits": 64,
            "needed": [
                {"name": "libb.so", "provider": f"{BELOW}/b.so", "how": "rpath"},
                {"name": "libc.so.6", "provider": "/lib/libc.so.6", "how": "cache"},
                {"name": "/x.so", "provider": None, "how": "missing"},
            ],
        }
    ]


def test_an_answer_to_why() -> None:
    """Providers with claims and users, requirers, and needs that nothing meets."""
    answer = Why(
        name="libcudnn.so.9",
        distributions=(CU12,),
        requirers=((TORCH, "nvidia-cudnn-cu12==9.10.2.21"),),
        providers=(
            Provider(
                path=at(CUDNN),
                soname="libcudnn.so.9",
                claims=(Claim(distribution=CU12, holds_bytes=False), Claim(distribution=CU13, holds_bytes=None)),
                users=(User(distribution=None, path=at("t.so"), name="libcudnn.so.9", how=How.RUNPATH, via="$ORIGIN"),),
            ),
        ),
        unmet=(Unmet(distribution=TORCH, path=at("u.so"), searched=(at("d"), "ld.so.cache")),),
    )
    torch = {"name": "torch", "version": "2.9.1"}
    (read,) = valid(why_document((answer,), environment(), "1"))["answers"]
    assert read == {
        "name": "libcudnn.so.9",
        "distributions": [{"name": CU12.name, "version": CU12.version}],
        "required_by": [{"distribution": torch, "requirement": "nvidia-cudnn-cu12==9.10.2.21"}],
        "providers": [
            {
                "path": f"{BELOW}/{CUDNN}",
                "soname": "libcudnn.so.9",
                "claims": [
                    {"distribution": {"name": CU12.name, "version": CU12.version}, "holds_bytes": False},
                    {"distribution": {"name": CU13.name, "version": CU13.version}, "holds_bytes": None},
                ],
                "needed_by": [
                    {
                        "distribution": None,
                        "path": f"{BELOW}/t.so",
                        "name": "libcudnn.so.9",
                        "how": "runpath",
                        "via": "$ORIGIN",
                        "without": None,
                    }
                ],
            }
        ],
        "unmet": [{"distribution": torch, "path": f"{BELOW}/u.so", "searched": [f"{BELOW}/d", "ld.so.cache"]}],
    }


def test_undecodable_paths_survive() -> None:
    """A path that is no UTF-8 is written as ASCII and read as the same path (PEP 383)."""
    odd = plain(Code.UNOWNED_LEFT, "left", path=at("lib\udcff.so"))
    text = to_json(plan_document(plan(odd), "1"))
    assert text.isascii()
    assert json.loads(text)["findings"][0]["path"] == f"{BELOW}/lib\udcff.so"


def test_bindings_and_wheels_of_a_plan() -> None:
    """Both sides of a binding; a wheel with the digest of its file."""
    consumer = Consumer(
        distribution=None, path=f"{PREFIX}/c.so", strength=Strength.LINKED, how="RPATH $ORIGIN", searched=(), context=()
    )
    bindings = (
        BindingChange(consumer=consumer, name="liba.so.1", before=f"{PREFIX}/liba.so.1", after=None),
        BindingChange(consumer=consumer, name="libb.so.1", before=f"{PREFIX}/libb.so.1", after="/usr/lib/libb.so.1"),
    )
    wheel = Wheel(
        name="a",
        version="1",
        file="/tmp/a.whl",
        sha256="0" * 64,
        size=1,
        installed_size=2,
        source="uv's cache",
        metadata_path=f"{PREFIX}/a-1.dist-info",
        rows=(),
    )
    document = valid(plan_document(replace(plan(), bindings=bindings, wheels=(wheel,)), "1"))
    assert [(item["before"], item["after"]) for item in document["bindings"]] == [
        ("liba.so.1", None),
        ("libb.so.1", "/usr/lib/libb.so.1"),
    ]
    assert document["wheels"] == [{"name": "a", "version": "1", "sha256": "0" * 64, "source": "uv's cache"}]
