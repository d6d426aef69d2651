"""Imports point one way."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import safe_uninstall

PACKAGE = Path(safe_uninstall.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
ALLOWED = {
    "model": {"model"},
    "analysis": {"analysis", "model"},
    "scan": {"scan", "analysis", "model"},
    "render": {"render", "analysis", "model"},
    "execute": {"execute", "analysis", "model"},
    "demo": {"demo", "model"},
    "cli": {"cli", "demo", "render", "execute", "scan", "analysis", "model"},
}
PURE = {"os", "subprocess", "click", "shutil", "pathlib", "tempfile"}


def imported(path: Path) -> Iterator[str]:
    """Yield the modules that a module imports, those inside of functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield node.module


def layer(path: Path) -> str:
    """Return the sub-package that a module is in, "" at the top."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def test_there_are_modules_to_look_at() -> None:
    """The test sees the package."""
    assert {layer(path) for path in MODULES} == {*ALLOWED, ""}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    """Cli -> render, execute, scan -> analysis -> model."""
    own = layer(path)
    for module in imported(path):
        parts = module.split(".")
        if parts[0] != "safe_uninstall" or own == "":
            continue
        if len(parts) == 1:
            assert own == "cli", f"{path} imports the package's top"
        else:
            assert parts[1] in ALLOWED[own], f"{path} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_each_library_has_its_place(path: Path) -> None:
    """Elftools in scan/elf* alone, resolvelib in analysis/rewrite* alone, nothing impure in analysis and render."""
    tops = {module.split(".")[0] for module in imported(path)}
    if "elftools" in tops:
        assert (layer(path), path.name.startswith("elf")) == ("scan", True)
    if "resolvelib" in tops:
        assert (layer(path), path.name.startswith("rewrite")) == ("analysis", True)
    if layer(path) in ("analysis", "render", "model"):
        assert not tops & PURE
