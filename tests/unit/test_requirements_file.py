"""``-r FILE``: the names and markers that a requirements file gives, and no guess where it gives none."""

from pathlib import Path

import pytest

from safe_uninstall.cli.requirements_file import read_requirement_names
from safe_uninstall.model.errors import UsageError


def names(directory: Path, text: str | bytes, **variables: str) -> tuple[str, ...]:
    """Return the names of a file with that text."""
    path = directory / "requirements.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_requirement_names(str(path), variables=variables)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("torch", "torch"),
        ("  Torch_Geometric.x  ", "Torch_Geometric.x"),
        ("torch==2.9.1", "torch"),
        ("torch >= 2, < 3", "torch"),
        ("torch~=2.9", "torch"),
        ("torch (==2.9.1)", "torch"),
        ("torch[cuda,opt]==2.9.1", "torch"),
        ("torch [cuda]", "torch"),
        ("torch==2.9.1 --hash=sha256:abc --hash=sha256:def", "torch"),
        ("torch  # the framework", "torch"),
        ("torch @ https://example.org/torch-2.9.1-cp311-cp311-linux_x86_64.whl", "torch"),
        ("torch@file:///wheels/torch", "torch"),
        ("torch[cuda] @ git+https://example.org/torch@main#egg=torch", "torch"),
        ("git+https://example.org/pytorch#egg=torch&subdirectory=x", "torch"),
        ("-e git+ssh://git@example.org/pytorch@v2#egg=torch", "torch"),
        ("--editable=./here#egg=torch", "torch"),
        ("https://example.org/w/torch-2.9.1-cp311-cp311-linux_x86_64.whl#sha256=abc", "torch"),
        ("wheels/torch-2.9.1-py3-none-any.whl", "torch"),
        ("torch-2.9.1-py3-none-any.whl", "torch"),
        ("/a b/torch-2.9.1-py3-none-any.whl", "torch"),
    ],
)
def test_a_line_gives_a_name(tmp_path: Path, line: str, name: str) -> None:
    """Versions, extras and where it comes from do not matter for a removal, as with ``pip uninstall -r``."""
    assert names(tmp_path, line) == (name,)


@pytest.mark.parametrize(
    "line",
    [
        "torch; python_version>'3'",
        "torch==2.9.1;python_version > '3'",
        "torch[a]>=2 ; python_version > '3' --hash=sha256:abc",
        "torch @ https://example.org/torch.whl;x=1 ; python_version > '3'",
        "git+https://example.org/pytorch#egg=torch ; python_version > '3'",
        "https://example.org/w/torch-2.9.1-py3-none-any.whl; python_version > '3'",
        "./my-wheels/torch-2.9.1-py3-none-any.whl ; python_version > '3'  # why",
    ],
)
def test_a_marker_stays_with_its_name(tmp_path: Path, line: str) -> None:
    """Whether it holds is up to the environment, as for a requirement on the command line."""
    assert names(tmp_path, line) == ('torch ; python_version > "3"',)


@pytest.mark.parametrize("marker", ["python > '3'", "", "python_version >"])
def test_a_marker_that_makes_no_sense(tmp_path: Path, marker: str) -> None:
    """It is told by its line, with what one looks like."""
    with pytest.raises(UsageError) as caught:
        names(tmp_path, f"six\ntorch; {marker}\n")
    assert f"line 2 has a marker that makes no sense: {marker}" in caught.value.message
    assert "python_version < '3.11'" in caught.value.help[0]


@pytest.mark.parametrize(
    "line",
    [
        "nvidia-*-cu13",
        "torch and friends",
        ".",
        "./torch",
        "src/torch",
        "-e .",
        "torch-2.9.1.tar.gz",
        "./torch-2.9.1.tar.gz",
        "https://example.org/torch.zip",
        "${UNSET}",
        "=2.9.1",
        "<html>",
    ],
)
def test_a_line_that_gives_none(tmp_path: Path, line: str) -> None:
    """Something else must not be removed in its stead: the file and the line are named, and nothing happens."""
    with pytest.raises(UsageError, match=r"requirements\.txt` line 3 gives no distribution name") as caught:
        names(tmp_path, f"torch\n\n{line}\n")
    assert caught.value.help


def test_the_order_is_the_files(tmp_path: Path) -> None:
    """Blank lines, comments and options of pip are passed over."""
    text = """\
# all of it
--index-url https://example.org/simple
-c constraints.txt
--no-binary :all:

torch   # first
  # indented
six
"""
    assert names(tmp_path, text) == ("torch", "six")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch\\\n==2.9.1\nsix", ("torch", "six")),
        ("torch \\\n  --hash=sha256:a \\\n  --hash=sha256:b\nsix", ("torch", "six")),
        ("# a comment does not go on \\\nsix", ("six",)),
        ("torch\\\n# a comment ends it\nsix", ("torch", "six")),
        ("torch\\\n#\nsix", ("torch", "six")),
        ("torch \\", ("torch",)),
        ("\\\n\\\n", ()),
    ],
)
def test_lines_that_go_on(tmp_path: Path, text: str, expected: tuple[str, ...]) -> None:
    """A backslash at the end joins lines, as in pip; comments are not joined."""
    assert names(tmp_path, text) == expected


def test_a_problem_is_told_by_the_first_of_joined_lines(tmp_path: Path) -> None:
    """That is where a reader looks."""
    with pytest.raises(UsageError, match="line 2 gives"):
        names(tmp_path, "torch\nsix \\\nand more\n")


@pytest.mark.parametrize("encoded", [b"\xef\xbb\xbftorch\r\nsix\r\n", b"torch # \xff\nsix\n"])
def test_encodings(tmp_path: Path, encoded: bytes) -> None:
    """A byte order mark, line ends of Windows, and comments that are no UTF-8."""
    assert names(tmp_path, encoded) == ("torch", "six")


def test_variables(tmp_path: Path) -> None:
    """``${NAME}`` in capitals is replaced, as in pip."""
    assert names(tmp_path, "${WHAT}==1\n", WHAT="torch") == ("torch",)


@pytest.mark.parametrize("option", ["-r ", "-r", "--requirement ", "--requirement="])
@pytest.mark.parametrize("written", ["sub/more.txt", '"sub/more.txt"', "'sub/more.txt'", "sub/more.txt  # more"])
def test_nested_files(tmp_path: Path, option: str, written: str) -> None:
    """They are read where they stand, relative to the file that names them."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "more.txt").write_text("six\n-r last.txt\n")
    (tmp_path / "sub" / "last.txt").write_text("idna\n")
    assert names(tmp_path, f"torch\n{option}{written}\npip") == ("torch", "six", "idna", "pip")


def test_files_that_name_each_other(tmp_path: Path) -> None:
    """A circle ends."""
    (tmp_path / "more.txt").write_text("-r requirements.txt\nsix\n")
    assert names(tmp_path, "torch\n-r more.txt\n-r requirements.txt\n") == ("torch", "six")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-r absent.txt", "absent.txt` cannot be read: No such file or directory"),
        ("-r .", "` cannot be read: Is a directory"),
        ("-r https://example.org/x.txt", "`https://example.org/x.txt` is no file here"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, line: str, message: str) -> None:
    """The message names it, and there is a next step."""
    with pytest.raises(UsageError) as caught:
        names(tmp_path, line)
    assert caught.value.message.endswith(message)
    assert caught.value.help
