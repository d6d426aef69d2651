"""The Python interface in a program of its own: what scripts that migrate environments rely on."""

import subprocess
import sys
from pathlib import Path

import pytest

import safe_uninstall
from safe_uninstall.model import plan as plan_module
from tests.support.program import call, clean_variables
from tests.support.program import safe_uninstall as run

SCRIPT = """\
import os, sys
from safe_uninstall import OutcomeState, Request, Rewrite, Verdict, execute, plan, scan

prefix, wheels = sys.argv[1:]
snapshot = scan(prefix)
assert plan(snapshot, Request(names=("demo-cudnn-cu13",))).verdict is Verdict.BLOCK
judged = plan(
    snapshot,
    Request(
        names=("demo-cudnn-cu13",),
        rewrites=(Rewrite.RESTORE,),
        find_links=(wheels,),
        no_index=True,
        probes=("import demo_torch",),
    ),
)
print(judged.verdict.value, *(wheel.name for wheel in judged.wheels))
print(len(os.listdir(os.environ["TMPDIR"])))
print(execute(judged).state.value)
"""


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the incident in miniature, and its wheels."""
    directory = tmp_path_factory.mktemp("api")
    assert run("demo", "--into", directory / "playground").status == 0
    return directory / "playground"


def test_a_script_rewrites_a_removal(playground: Path, tmp_path: Path) -> None:
    """Wheels are fetched to plan, used to carry out, and gone with the process; a relative place of wheels is one."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py", playground / "env", "wheels"],
        capture_output=True,
        text=True,
        check=False,
        env=clean_variables({"TMPDIR": str(tmp_path / "tmp")}),
        cwd=playground,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["rewrite demo-cudnn-cu12", "1", "committed"]
    assert list((tmp_path / "tmp").iterdir()) == []
    assert run("-p", playground / "env", "check").status == 0


def test_what_the_package_names_is_there() -> None:
    """Types are loaded when they are asked for, and are the ones that plans are made of."""
    for name in safe_uninstall.__all__:
        assert getattr(safe_uninstall, name) is not None
    assert safe_uninstall.Request is plan_module.Request
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = safe_uninstall.absent


def test_importing_the_package_loads_next_to_nothing() -> None:
    """The command must start fast; the types of the interface wait until they are asked for."""
    code = "import sys, safe_uninstall; print(sorted(m for m in sys.modules if m.startswith('safe_uninstall')))"
    assert (
        call([sys.executable, "-c", code]).stdout.strip()
        == "['safe_uninstall', 'safe_uninstall.execute', 'safe_uninstall.scan']"
    )
