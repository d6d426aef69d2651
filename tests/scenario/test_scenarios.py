"""Runs every scenario file: builds its environment, plans its request, and compares what it expects."""

import json
from pathlib import Path
from typing import Any

import pytest

from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.model.plan import Finding, Plan, Request
from tests.support.elf_writer import ElfSpec, Note
from tests.support.environments import Content, EnvironmentBuilder, Link, read_tree

SCENARIOS = sorted(Path(__file__).parent.glob("*.json"))


def content(value: Any) -> "Content | Link":
    """Turn what a scenario says of a file into its content."""
    if value is None or isinstance(value, str):
        return value
    if "link" in value:
        return Link(value["link"])
    options = dict(value["elf"])
    for key in ("needed", "exports", "imports", "versions_defined"):
        if key in options:
            options[key] = tuple(options[key])
    if "versions_needed" in options:
        options["versions_needed"] = {name: tuple(names) for name, names in options["versions_needed"].items()}
    if "data" in options:
        options["data"] = options["data"].encode()
    if "dlopen" in options:
        options["notes"] = (Note("FDO", 0x407C0C0A, json.dumps(options.pop("dlopen")).encode()),)
    return ElfSpec(**options)


def build(scenario: dict[str, Any], root: Path) -> EnvironmentBuilder:
    """Build a scenario's environment."""
    builder = EnvironmentBuilder(root, uv=scenario.get("uv", False))
    for item in scenario["distributions"]:
        options = {key: item[key] for key in ("requires", "record", "scripts", "hashes", "extra_rows", "metadata")
                   if key in item}  # fmt: skip
        files = {path: content(value) for path, value in item.get("files", {}).items()}
        builder.distribution(item["name"], item.get("version", "1.0"), files, **options)
    for path, value in scenario.get("unowned", {}).items():
        builder._write(builder.site_packages, path, content(value), hashes=False)
    for path in scenario.get("removed", ()):
        (builder.site_packages / path).unlink()
    return builder


def described(finding: Finding, keys: set[str], builder: EnvironmentBuilder) -> dict[str, Any]:
    """Return what a scenario can expect of a finding, as far as it does."""

    def relative(path: str | None) -> str | None:
        if path is None:
            return None
        return path.removeprefix(f"{builder.site_packages}/").removeprefix(f"{builder.prefix}/")

    facts: dict[str, Any] = {
        "code": finding.code.value,
        "severity": finding.severity.value,
        "soname": finding.soname,
        "distribution": None if finding.distribution is None else finding.distribution.name,
        "path": relative(finding.path),
        "paths": [relative(path) for path in finding.paths],
        "consumers": [
            [item.distribution.name if item.distribution else None, relative(item.path), item.strength.value]
            for item in finding.consumers
        ],
        "claimants": [[item.distribution.name, item.overwritten] for item in finding.claimants],
    }
    return {key: facts[key] for key in keys}


@pytest.mark.parametrize("path", SCENARIOS, ids=[path.stem for path in SCENARIOS])
def test_scenario(path: Path, tmp_path: Path) -> None:
    """The plan of the scenario has the verdict, the findings and the outcome that the file expects."""
    scenario = json.loads(path.read_text())
    assert scenario["why"], "every scenario says why it is there"
    builder = build(scenario, tmp_path / "env")
    before = read_tree(builder.prefix)
    for case in scenario["cases"]:
        request = Request(names=tuple(case["request"]), accepted_losses=tuple(case.get("accept", ())))
        snapshot = builder.snapshot()
        plan = make_plan(snapshot, request)
        check(plan, case, builder)
        reversed_plan = make_plan(snapshot, Request(names=request.names[::-1], accepted_losses=request.accepted_losses))
        assert reversed_plan.findings == plan.findings, "the order of names does not matter"
    assert read_tree(builder.prefix) == before, "planning changes nothing"


def check(plan: Plan, case: dict[str, Any], builder: EnvironmentBuilder) -> None:
    """Compare a plan with one case of a scenario."""
    expected = case["findings"]
    label = f"request {case['request']}"
    found = [(item.code.value, item.severity.value) for item in plan.findings]
    assert found == [(item["code"], item["severity"]) for item in expected], label
    for finding, wanted in zip(plan.findings, expected, strict=True):
        assert described(finding, set(wanted), builder) == wanted, label
    assert plan.verdict.value == case["verdict"], label
    for key in ("deleted", "released"):
        paths = getattr(plan.prediction, key)
        relative = {item.removeprefix(f"{builder.site_packages}/").removeprefix(f"{builder.prefix}/") for item in paths}
        for item in case.get(key, ()):
            assert item in relative, f"{label}: {item} is not {key}"
        for item in case.get(f"not_{key}", ()):
            assert item not in relative, f"{label}: {item} is {key}"
