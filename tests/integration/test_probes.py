"""Probes and files in use, end to end: the program as a process of its own, real interpreters, real libraries."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from safe_uninstall.render.schema import schema_text
from tests.support.environments import EnvironmentBuilder, library, read_tree
from tests.support.program import Finished, clean_variables, safe_uninstall

BOTH = pytest.mark.parametrize("installer", ["pip", "uv"])
pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs /proc")

READS_DATA = "import os; print(open(os.path.join(os.path.dirname(__file__), '..', 'model' + 's', 'w.bin')).read())"
OPENS_LIBRARY = (
    "import ctypes, os\n"
    "name = '-'.join(['lib', 'late']).replace('-', '') + '.so'\n"
    "ctypes.CDLL(os.path.join(os.path.dirname(__file__), '..', 'back' + 'end', name))\n"
)


@pytest.fixture
def app(environment: EnvironmentBuilder) -> EnvironmentBuilder:
    """Return an app that reads a file and opens a library of others, under names that it makes at run time."""
    environment.distribution("models", "1.0", {"models/w.bin": "weights"})
    environment.distribution("backend", "1.0", {"backend/liblate.so": library("liblate.so")})
    environment.distribution("app", "2.0", {"app/__init__.py": READS_DATA, "app/late.py": OPENS_LIBRARY})
    return environment


def valid(done: Finished) -> Any:
    """Return the document of a run, after holding it against the schema."""
    document = done.document
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(document)
    return document


@BOTH
def test_what_no_analysis_foresees_is_undone(app: EnvironmentBuilder, installer: str) -> None:
    """The probe passes before and fails after: exit 4, its output, and the tree byte for byte as before."""
    assert safe_uninstall("-n", "-p", app.prefix, "models").status == 0
    before = read_tree(app.prefix)
    done = safe_uninstall("-y", "-p", app.prefix, "--installer", installer, "--probe", "import app", "models")
    assert done.status == 4
    assert "error[failed]: the probe `import app` passed before, and fails now: it ended with status 1" in done.err
    assert "  | FileNotFoundError: [Errno 2] No such file or directory: " in done.err
    assert done.last == "Rolled back: the environment is as it was before."
    assert read_tree(app.prefix) == before


@BOTH
def test_a_probe_that_still_passes(app: EnvironmentBuilder, installer: str) -> None:
    """The change is kept, the probe is told of, and nothing but the change is done."""
    before = read_tree(app.prefix)
    done = safe_uninstall("-y", "-p", app.prefix, "--installer", installer, "--probe", "import app", "backend")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[-2:] == ["Probe passed: import app", done.last]
    assert done.last.startswith("Removed backend 1.0")
    after = read_tree(app.prefix, ignore=(".lock", ".safe-uninstall"))
    gone = {path.partition("site-packages/")[2].partition("/")[0] for path in before.keys() - after}
    assert gone == {"backend", "backend-1.0.dist-info"}
    assert after.keys() <= before.keys()


def test_a_mapped_library_blocks(app: EnvironmentBuilder) -> None:
    """The library is opened under a name that nobody can read in the source; the probe has seen it."""
    before = read_tree(app.prefix)
    assert safe_uninstall("-n", "-p", app.prefix, "backend").status == 0
    done = safe_uninstall("-n", "-p", app.prefix, "--probe", "import app.late", "backend")
    assert done.status == 3
    assert "error[library-lost]: removing `backend` 1.0 leaves liblate.so without a provider" in done.out
    assert "(mapped by the probe `import app.late`)" in done.out
    document = valid(
        safe_uninstall("-n", "-p", app.prefix, "--probe", "import app.late", "backend", "--format", "json")
    )
    assert document["verdict"] == "block"
    (loss,) = document["findings"]
    assert [item["strength"] for item in loss["consumers"]] == ["observed"]
    assert loss["path"] in document["probes"][0]["mapped"]
    assert read_tree(app.prefix) == before, "a probe leaves no byte code"


def test_a_probe_that_failed_before_is_not_blamed(app: EnvironmentBuilder) -> None:
    """It warns in the plan and is reported at the end; exit 0."""
    (app.site_packages / "models/w.bin").unlink()
    done = safe_uninstall("-y", "-p", app.prefix, "--probe", "import app", "models")
    assert done.status == 0
    assert "warning: the probe `import app` fails already: it ended with status 1" in done.out
    assert "  | FileNotFoundError: " in done.out
    assert done.out.splitlines()[-2] == "Probe failed: import app, as it did before: it ended with status 1"
    assert done.last.startswith("Removed models 1.0")


def test_a_probe_that_hangs_afterwards_is_undone(app: EnvironmentBuilder) -> None:
    """The time limit ends it, and that is a failure like any other."""
    before = read_tree(app.prefix)
    code = "import os, time, models_there\nprint('waiting')\ntime.sleep(0 if models_there.found else 600)"
    found = "import os; found = os.path.exists(os.path.join(os.path.dirname(__file__), 'models', 'w.bin'))"
    app.distribution("there", "1.0", {"models_there.py": found})
    before = read_tree(app.prefix)
    done = safe_uninstall("-y", "-p", app.prefix, "--probe", code, "--probe-timeout", "5", "models", "--format", "json")
    assert done.status == 4
    document = valid(done)
    assert document["state"] == "rolled-back"
    (after,) = document["probes"]
    assert (after["timed_out"], after["output"], after["passed"]) == (True, "waiting", False)
    assert document["plan"]["probes"][0]["passed"] is True
    assert read_tree(app.prefix) == before


def test_a_saved_plan_keeps_its_probes(app: EnvironmentBuilder, tmp_path: Path) -> None:
    """Who applies it later runs them too, under the same conditions."""
    saved = tmp_path / "plan.json"
    words = ("--probe", "import app", "--probe-timeout", "60", "--refuse-in-use")
    assert safe_uninstall("-n", "-p", app.prefix, "-o", saved, *words, "models").status == 0
    asked = json.loads(saved.read_text())["request"]
    assert (asked["probes"], asked["probe_timeout"], asked["refuse_in_use"]) == (["import app"], 60.0, True)
    before = read_tree(app.prefix)
    done = safe_uninstall("apply", "-y", saved)
    assert done.status == 4
    assert "the probe `import app` passed before, and fails now" in done.err
    assert read_tree(app.prefix) == before


def test_what_is_not_installed_is_said_before_a_probe_runs(app: EnvironmentBuilder, tmp_path: Path) -> None:
    """A typing error must not cost minutes."""
    mark = tmp_path / "mark"
    done = safe_uninstall("-n", "-p", app.prefix, "--probe", f"open({str(mark)!r}, 'w')", "modles")
    assert (done.status, mark.exists()) == (2, False)
    assert safe_uninstall("-n", "-p", app.prefix, "--probe", f"open({str(mark)!r}, 'w')", "models").status == 0
    assert mark.exists()


def test_probes_in_a_variable(app: EnvironmentBuilder) -> None:
    """Like every option; a line is a probe, since words are not."""
    variables = {"SAFE_UNINSTALL_PROBE": "import app\nimport app.late"}
    done = safe_uninstall("-n", "-p", app.prefix, "models", "--format", "json", variables=variables)
    assert [(run["code"], run["passed"]) for run in valid(done)["probes"]] == [
        ("import app", True),
        ("import app.late", True),
    ]


@pytest.mark.parametrize("seconds", ["0", "-1", "soon"])
def test_a_time_limit_is_a_number_above_zero(app: EnvironmentBuilder, seconds: str) -> None:
    """Anything else is a usage error."""
    done = safe_uninstall("-n", "-p", app.prefix, "--probe", "1", "--probe-timeout", seconds, "models")
    assert done.status == 2
    assert done.last == "Nothing changed."


def test_an_environment_without_interpreter(tmp_path: Path) -> None:
    """``--target`` directories have none: said at once."""
    target = tmp_path / "target"
    (target / "one-1.0.dist-info").mkdir(parents=True)
    (target / "one-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: one\nVersion: 1.0\n")
    (target / "one-1.0.dist-info/RECORD").write_text("one-1.0.dist-info/METADATA,,\none-1.0.dist-info/RECORD,,\n")
    done = safe_uninstall("-n", "-p", target, "--probe", "import one", "one")
    assert done.status == 2
    assert "has no interpreter that could run a probe" in done.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_first_probe(app: EnvironmentBuilder, tmp_path: Path, number: int) -> None:
    """The probe, in a session of its own, is ended too; nothing changed."""
    before = read_tree(app.prefix)
    pids = tmp_path / "pids"
    code = f"import os, time; open({str(pids)!r}, 'w').write(f'{{os.getpid()}}.'); time.sleep(600)"
    command = [sys.executable, "-m", "safe_uninstall", "-y", "-p", str(app.prefix), "--probe", code, "models"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=clean_variables({}), text=True) as process:
        while not pids.exists() or not pids.read_text().endswith("."):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said.strip()) == (1, "Interrupted. Nothing changed.")
    wait_for_end(int(pids.read_text().rstrip(".")))
    assert read_tree(app.prefix) == before


def wait_for_end(pid: int) -> None:
    """Wait until a process is gone or only waits to be asked, and fail if it stays."""
    for _ in range(1000):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] in ("Z", "X"):
                    return
        except OSError:
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} still runs")


def test_a_library_in_use(app: EnvironmentBuilder, tmp_path: Path) -> None:
    """The process is named with what it has mapped: a warning, or a refusal; when it has ended, neither."""
    saved = tmp_path / "plan.json"
    assert safe_uninstall("-n", "-p", app.prefix, "--refuse-in-use", "-o", saved, "backend").status == 0
    path = app.path("backend/liblate.so")
    code = f"import ctypes, time; ctypes.CDLL({path!r}); print('ready', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        dry = safe_uninstall("-n", "-p", app.prefix, "backend")
        refused = safe_uninstall("-y", "-p", app.prefix, "--refuse-in-use", "backend", "--format", "json")
        applied = safe_uninstall("apply", "-y", saved)
        process.kill()
    assert (applied.status, applied.last) == (3, "Blocked: 1 requested, 1 error. Nothing changed.")
    assert dry.status == 0
    row = f"  used by process {process.pid} ({os.path.basename(sys.executable)} -c)   backend/liblate.so   mapped"
    assert dry.out.splitlines()[:2] == ["warning[in-use]: 1 process uses a file that would go", row]
    assert refused.status == 3
    document = valid(refused)
    (finding,) = document["findings"]
    assert (finding["code"], finding["severity"]) == ("in-use", "error")
    assert [(use["pid"], use["how"]) for use in finding["uses"]] == [(process.pid, "mapped")]
    assert os.path.exists(path)
    done = safe_uninstall("-y", "-p", app.prefix, "--refuse-in-use", "backend")
    assert done.status == 0
    assert not os.path.exists(path)
