"""The texts about findings, and the schema: data that ships with the package."""

from importlib.resources import files

import pytest

from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.plan import Code
from safe_uninstall.render.explain import explanation

CODES = [code.value for code in Code]


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_explained(code: str) -> None:
    """Its name, one sentence, what it means, an example and what to do; and it fits a page of text."""
    lines = explanation(code).splitlines()
    assert lines[:2] == [f"# {code}", ""]
    assert lines[2].endswith(".")
    assert [line for line in lines if line.startswith("## ")] == ["## What it means", "## Example", "## What to do"]
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize("code", CODES)
def test_an_example_shows_its_own_finding(code: str) -> None:
    """The block of the example names the code as output does."""
    example = explanation(code).partition("## Example")[2].partition("## What to do")[0]
    assert f"[{code}]" in example


def test_there_is_no_text_about_anything_else() -> None:
    """A file that belongs to no code would be printed by nothing."""
    names = {item.name for item in files("safe_uninstall.render").joinpath("explanations").iterdir()}
    assert names == {f"{code}.md" for code in CODES}


def test_an_unknown_code() -> None:
    """Near ones are offered, else all."""
    with pytest.raises(UsageError, match="there is no finding `libary-lost`") as caught:
        explanation("libary-lost")
    assert caught.value.help[0] == "did you mean `library-lost`?"
    with pytest.raises(UsageError) as caught:
        explanation("../schema")
    assert all(code in caught.value.help[0] for code in CODES)
