"""What a wheel was built for is read where it is installed, and said in the words of pip."""

from pathlib import Path

import pytest

from safe_uninstall.execute.wheel_tags import (
    parse_tags,
    platform_options,
    python_options,
    read_tags,
    wheel_file_name,
)

MANYLINUX = ("cp311-cp311-manylinux_2_17_x86_64", "cp311-cp311-manylinux2014_x86_64")


def test_tags_are_read_from_an_installed_wheel(tmp_path: Path) -> None:
    """One a line; lines that no tag is in are passed over, as is a file that is not there."""
    assert read_tags(str(tmp_path)) == ()
    (tmp_path / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\nTag: ../../x-y\nTag:\nTag: a-b\n")
    assert read_tags(str(tmp_path)) == ("py3-none-any",)
    assert parse_tags("") == ()


def test_the_name_of_a_file() -> None:
    """Parts that differ are joined by dots; without tags it is one for everything."""
    assert wheel_file_name("demo-1.0.dist-info", MANYLINUX) == (
        "demo-1.0-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
    )
    assert wheel_file_name("demo-1.0.dist-info", ()) == "demo-1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("tags", "platforms", "python"),
    [
        (("py3-none-any",), (), ()),
        (("py2-none-any", "py3-none-any"), (), ()),
        (("py3-none-manylinux2014_x86_64",), ("--platform=manylinux2014_x86_64",), ()),
        (
            MANYLINUX,
            ("--platform=manylinux2014_x86_64", "--platform=manylinux_2_17_x86_64"),
            ("--python-version=3.11",),
        ),
        ((), (), ("--python-version=3.11",)),
    ],
)
def test_the_options_that_choose_a_build(
    tags: tuple[str, ...], platforms: tuple[str, ...], python: tuple[str, ...]
) -> None:
    """Only what the build depends on is said."""
    assert platform_options(tags) == platforms
    assert python_options(tags, "3.11.7") == python
