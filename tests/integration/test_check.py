"""``check`` and ``check --fix`` end to end, on the incident in miniature."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from safe_uninstall.render.schema import schema_text
from tests.support.environments import EnvironmentBuilder, library, read_tree
from tests.support.program import Finished, call, safe_uninstall
from tests.support.terminal import on_terminal

LIBRARY = "demo_nvidia/cudnn/lib/libdemocudnn.so.9"


class Playground:
    """The environment that ``demo --into`` makes: cu13 overwrote cu12, which demo-torch requires."""

    def __init__(self, directory: Path) -> None:
        self.prefix = directory / "env"
        self.wheels = directory / "wheels"
        (self.site,) = self.prefix.glob("lib/python*/site-packages")

    def run(self, *words: str, **variables: str) -> Finished:
        """Run the product on it."""
        return safe_uninstall("-p", self.prefix, *words, variables=variables)

    def imports(self) -> bool:
        """Return whether the program in it finds its libraries."""
        done = subprocess.run([self.prefix / "bin/python", "-c", "import demo_torch"], capture_output=True, check=False)
        return done.returncode == 0

    def damaged(self, name: str) -> list[str]:
        """Return the paths of a distribution whose bytes are not those of its RECORD."""
        (record,) = self.site.glob(f"{name.replace('-', '_')}-*.dist-info/RECORD")
        found = []
        for line in record.read_text().splitlines():
            path, digest, _ = line.rsplit(",", 2)
            if digest.startswith("sha256=") and not path.endswith((".pyc", "INSTALLER", "direct_url.json")):
                file = self.site / path
                actual = hashlib.sha256(file.read_bytes()).digest() if file.exists() else b""
                if _urlsafe(actual) != digest.removeprefix("sha256="):
                    found.append(path)
        return found


def _urlsafe(digest: bytes) -> str:
    import base64

    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a playground that nobody changes."""
    directory = tmp_path_factory.mktemp("demo") / "playground"
    done = safe_uninstall("demo", "--into", directory)
    assert done.status == 0, done.err
    return directory


@pytest.fixture
def playground(original: Path, tmp_path: Path) -> Iterator[Playground]:
    """Return a playground of one's own."""
    shutil.copytree(original, tmp_path / "playground", symlinks=True)
    yield Playground(tmp_path / "playground")
    shutil.rmtree(tmp_path / "playground")


def test_a_healthy_environment(environment: EnvironmentBuilder) -> None:
    """One line, exit 0."""
    environment.distribution("a", "1.0", {"a.py": "x = 1\n"})
    done = safe_uninstall("-p", environment.prefix, "check")
    assert (done.status, done.out, done.err) == (0, "No damage. Nothing changed.\n", "")
    fixed = safe_uninstall("-p", environment.prefix, "check", "--fix", "-y")
    assert (fixed.status, fixed.out, fixed.err) == (0, "Nothing to do. Nothing changed.\n", "")


def test_the_contaminated_state(playground: Playground) -> None:
    """Exit 3, as text and as a document; nothing is changed by looking."""
    before = read_tree(playground.prefix)
    done = playground.run("check")
    assert (done.status, done.err) == (3, "")
    assert (
        "error[file-overwritten]: 2 files of `demo-cudnn-cu12` 9.10.2.21 hold the bytes of demo-cudnn-cu13" in done.out
    )
    assert done.last == "Damaged: 1 error. Nothing changed."
    assert playground.run("check", "--exit-zero").status == 0
    told = playground.run("check", "--format", "json")
    assert (told.status, told.err) == (3, "")
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(told.document)
    assert told.document["format"] == "safe-uninstall/check"
    assert [item["code"] for item in told.document["findings"]] == ["file-overwritten"]
    quiet = playground.run("check", "-q")
    assert quiet.out.splitlines()[-1] == done.last
    assert read_tree(playground.prefix) == before


def test_the_repair_of_the_contaminated_state(playground: Playground) -> None:
    """cu12's own bytes are back, cu13 is still installed, and can go without a word afterwards."""
    before = read_tree(playground.prefix)
    given = ("--find-links", str(playground.wheels), "--no-index")
    dry = playground.run("check", "--fix", "-n", *given)
    assert dry.status == 0, dry.err
    assert dry.out.splitlines()[-1] == "Would restore 1 distribution, 1.1 kB, 1 warning. Nothing changed."
    assert read_tree(playground.prefix) == before
    done = playground.run("check", "--fix", "-y", *given)
    assert done.status == 0, done.err
    assert done.out.splitlines()[-1] == "Restored demo-cudnn-cu12 9.10.2.21."
    assert playground.damaged("demo-cudnn-cu12") == []
    assert playground.imports()
    after = playground.run("check")
    assert (after.status, after.last) == (0, "No damage: 1 warning. Nothing changed.")
    removed = playground.run("-y", "demo-cudnn-cu13")
    assert removed.status == 0, removed.out
    assert playground.damaged("demo-cudnn-cu12") == []
    assert playground.run("check").out == "No damage. Nothing changed.\n"


def test_undone_too_late(playground: Playground) -> None:
    """After pip took cu13 and cu12's files with it: check explains, the command of its help mends it."""
    call(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            playground.prefix / "bin/python",
            "uninstall",
            "-y",
            "demo-cudnn-cu13",
        ]
    )
    assert not playground.imports()
    done = playground.run("check")
    assert done.status == 3
    assert "`demo-cudnn-cu12` 9.10.2.21 is installed, but 2 of its 3 files are missing" in done.out
    assert "libdemocudnn.so.9 is needed and not there, though demo-cudnn-cu12 9.10.2.21 should provide it" in done.out
    assert "needed by  demo-torch 2.9.1   demo_torch/lib/libdemotorch.so" in done.out
    assert f"safe-uninstall -p {playground.prefix} check --fix" in done.out
    fixed = playground.run("check", "--fix", "-y", "--find-links", str(playground.wheels), "--no-index")
    assert fixed.status == 0, fixed.err
    assert playground.imports()
    assert playground.damaged("demo-cudnn-cu12") == []
    assert playground.run("check").status == 0


def test_without_the_wheel(playground: Playground, tmp_path: Path) -> None:
    """Exit 3 before anything changes, naming the wheel."""
    before = read_tree(playground.prefix)
    (tmp_path / "empty").mkdir()
    given = ("--find-links", str(tmp_path / "empty"), "--no-index")
    # A cache that has the wheel would be a source, too.
    done = playground.run("check", "--fix", "-y", *given, UV_CACHE_DIR=str(tmp_path), PIP_CACHE_DIR=str(tmp_path))
    assert done.status == 3
    assert "error[wheel]: no wheel for demo-cudnn-cu12==9.10.2.21: " in done.err
    assert done.last == "Nothing changed."
    assert read_tree(playground.prefix) == before


def test_a_repair_is_confirmed(playground: Playground) -> None:
    """On a terminal it asks; without one and without ``-y`` it does nothing."""
    words = ("-p", playground.prefix, "check", "--fix", "--find-links", playground.wheels, "--no-index")
    before = read_tree(playground.prefix)
    assert on_terminal(*words, answer=b"n\n").status == 1
    assert safe_uninstall(*words).status == 2
    assert read_tree(playground.prefix) == before
    assert on_terminal(*words, answer=b"y\n").status == 0
    assert playground.imports()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-y",), "--yes makes sense with --fix only"),
        (("-n",), "--dry-run makes sense with --fix only"),
        (("--fix", "--format", "json"), "--format json cannot ask"),
    ],
)
def test_words_that_make_no_sense(environment: EnvironmentBuilder, words: tuple[str, ...], said: str) -> None:
    """Usage, exit 2."""
    environment.distribution("a", "1.0", {"a.py": ""})
    done = safe_uninstall("-p", environment.prefix, "check", *words)
    assert done.status == 2
    assert said in done.out + done.err


def test_a_need_without_a_provider_is_told_with_its_consumer(environment: EnvironmentBuilder) -> None:
    """An optional plugin is a note, and no damage."""
    environment.distribution("a", "1.0", {"a/plugin.so": library(None, "libnowhere.so.7")})
    done = safe_uninstall("-p", environment.prefix, "check")
    assert (done.status, done.last) == (0, "No damage: 1 note. Nothing changed.")
    assert "libraries that nothing here ever provided: libnowhere.so.7" in done.out
    assert "needed by a 1.0   a/plugin.so" in done.out
