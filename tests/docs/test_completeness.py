"""What must be on a page is on it."""

import importlib
import re
import sys

import pytest

from safe_uninstall.cli.arguments import COMMANDS
from safe_uninstall.model.outcome import ExitStatus
from safe_uninstall.model.plan import Code
from safe_uninstall.render.explain import explanation
from tests.docs.test_console_blocks import PAGES, ROOT


@pytest.mark.parametrize("code", list(Code), ids=lambda code: code.value)
def test_every_code_is_explained(code: Code) -> None:
    """``explain`` has a text for it, with all of its parts, and the page of codes includes that text."""
    text = explanation(code.value)
    assert text.startswith(f"# {code.value}\n")
    for part in ("## What it means", "## Example", "## What to do"):
        assert part in text
    page = (ROOT / "docs/reference/codes.md").read_text(encoding="utf-8")
    assert f"/explanations/{code.value}.md" in page


def test_every_exit_status_is_told() -> None:
    """The README and the reference name each."""
    for page in ("README.md", "docs/reference/exit-statuses.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert [int(number) for number in re.findall(r"^\| (\d) \|", text, re.MULTILINE)] == sorted(ExitStatus)


def test_every_command_is_in_the_reference() -> None:
    """The page is generated for the commands that there are."""
    sys.path.insert(0, str(ROOT / "docs/_ext"))
    click_reference = importlib.import_module("click_reference")

    text = click_reference.reference()
    for name in COMMANDS:
        assert f"## safe-uninstall {name}" in text


def test_no_page_names_a_host_or_a_machine_path() -> None:
    """Pages are true on every machine."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert "/root/" not in text
        assert "/home/" not in text
        assert "/tmp/" not in text
