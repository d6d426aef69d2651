"""The command that removes, with the executor out of its way: what it hands on, saves, refuses and reports."""

import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import safe_uninstall
from safe_uninstall.cli.main import run
from safe_uninstall.execute import transaction
from safe_uninstall.execute.interrupts import Interrupted
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import NotInstalled, UsageError
from safe_uninstall.model.outcome import Outcome, OutcomeState
from safe_uninstall.model.plan import Plan, Request, Verdict
from safe_uninstall.render.schema import schema_text
from tests.support.elf_writer import EM_AARCH64
from tests.support.environments import EnvironmentBuilder, library, read_tree

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in list(os.environ):
        if name.startswith(("SAFE_UNINSTALL_", "VIRTUAL_ENV", "CONDA_", "NO_COLOR", "FORCE_COLOR")):
            monkeypatch.delenv(name)
    yield
    gc.enable()


@pytest.fixture
def app(environment: EnvironmentBuilder) -> EnvironmentBuilder:
    """Return an environment in which ``app`` needs the library of ``provider``."""
    environment.distribution("provider", "1.0", {"lib/liba.so.1": library("liba.so.1")})
    environment.distribution("app", "2.0", {"app/c.so": library(None, "liba.so.1", rpath="$ORIGIN/../lib")})
    return environment


class Executor:
    """Stands in for the executor, and remembers what it was given."""

    def __init__(self) -> None:
        """End as planned unless told otherwise."""
        self.plan: Plan | None = None
        self.options: dict[str, Any] = {}
        self.state = OutcomeState.COMMITTED
        self.error: BaseException | None = None

    def __call__(self, plan: Plan, **options: Any) -> Outcome:
        """Take note, and end."""
        self.plan = plan
        self.options = options
        if self.error is not None:
            raise self.error
        return Outcome(plan=plan, state=self.state, reason="it was to be", bytes_freed=7)


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Executor:
    """Put a stand-in in the place of the executor."""
    stand_in = Executor()
    monkeypatch.setattr(transaction, "execute", stand_in)
    return stand_in


def test_what_was_asked_for_is_in_the_request(app: EnvironmentBuilder, executor: Executor, tmp_path: Path) -> None:
    """Names of the line and of files, accepted losses, and how to carry it out."""
    listed = tmp_path / "r.txt"
    listed.write_text("provider\n")
    words = ["-y", "-p", str(app.prefix), "--installer", "uv", "--keep-backup", "--accept-loss", "liba.so.1"]
    words += ["--use-ld-library-path", "--break-system-packages", "-r", str(listed)]
    assert run(words) == 0
    assert executor.plan is not None
    request = executor.plan.request
    assert (request.names, request.accepted_losses, request.installer) == (
        ("provider",),
        ("liba.so.1",),
        InstallerKind.UV,
    )
    assert (request.use_library_path, request.break_system_packages) == (True, True)
    assert (request.python, request.tool_prefix is not None) == (str(app.prefix), True)
    assert executor.options["keep_backup"] is True


def test_the_executor_can_look_and_judge_again(app: EnvironmentBuilder, executor: Executor) -> None:
    """It is handed the same scan and the same request."""
    assert run(["-y", "-p", str(app.prefix), "app"]) == 0
    assert executor.plan is not None
    again = executor.options["replan"](executor.options["rescan"]())
    assert again == executor.plan


@pytest.mark.parametrize(
    ("state", "status", "last"),
    [
        (OutcomeState.COMMITTED, 0, "Removed app 2.0 (7 B)."),
        (OutcomeState.ROLLED_BACK, 4, "Rolled back: the environment is as it was before."),
        (
            OutcomeState.ROLLBACK_INCOMPLETE,
            5,
            "Roll back incomplete: the environment is neither as before nor as planned.",
        ),
    ],
)
def test_how_it_ended(
    app: EnvironmentBuilder, executor: Executor, capsys: Capture, state: OutcomeState, status: int, last: str
) -> None:
    """A status for each end; success is data, failure is talk; JSON is one document either way."""
    executor.state = state
    assert run(["-y", "-p", str(app.prefix), "app"]) == status
    out, err = capsys.readouterr()
    assert (out if status == 0 else err).splitlines()[-1] == last
    assert (err if status == 0 else out.partition("To remove")[2].partition("\n")[2]) == ""
    assert run(["-y", "-p", str(app.prefix), "--format", "json", "app"]) == status
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert (document["format"], document["state"], err) == ("safe-uninstall/outcome", state.value, "")


@pytest.mark.parametrize("words", [["-n"], ["-n", "-y"], ["-n", "--format", "json"]])
def test_a_dry_run_is_one_whatever_else_is_said(app: EnvironmentBuilder, executor: Executor, words: list[str]) -> None:
    """The executor is not even called."""
    assert run([*words, "-p", str(app.prefix), "app"]) == 0
    assert executor.plan is None


@pytest.mark.parametrize("words", [["-y"], ["-n"], []])
def test_a_blocked_plan_is_not_carried_out(
    app: EnvironmentBuilder, executor: Executor, capsys: Capture, words: list[str]
) -> None:
    """Status 3, whatever was said to the question that is not asked."""
    assert run([*words, "-p", str(app.prefix), "provider"]) == 3
    assert executor.plan is None
    assert capsys.readouterr().out.splitlines()[-1] == "Blocked: 1 requested, 1 error. Nothing changed."


def test_quiet(app: EnvironmentBuilder, executor: Executor, capsys: Capture) -> None:
    """Only the verdict of a plan, and how it ended."""
    assert run(["-q", "-y", "-p", str(app.prefix), "app"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["To", "Removed"]


def test_an_interrupted_scan_under_the_lock(app: EnvironmentBuilder, executor: Executor, capsys: Capture) -> None:
    """A signal before anything is changed is an interruption, not a traceback."""
    executor.error = Interrupted(15)
    assert run(["-y", "-p", str(app.prefix), "app"]) == 1
    assert capsys.readouterr().err.strip() == "Interrupted. Nothing changed."


def test_the_plan_is_saved_as_it_is_printed(app: EnvironmentBuilder, capsys: Capture, tmp_path: Path) -> None:
    """Of a blocked plan too."""
    saved = tmp_path / "plan.json"
    assert run(["-n", "--format", "json", "-o", str(saved), "-p", str(app.prefix), "provider"]) == 3
    assert saved.read_text() == capsys.readouterr().out


def test_another_machines_environment_can_be_looked_at_only(
    app: EnvironmentBuilder, executor: Executor, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No installer could run its interpreter; a dry run needs none."""
    from safe_uninstall.scan.markers import MACHINES

    other = "aarch64" if os.uname().machine != "aarch64" else "x86_64"
    assert MACHINES[EM_AARCH64] == "aarch64"
    real = os.uname()
    monkeypatch.setattr("os.uname", lambda: os.uname_result((*real[:4], other)))
    assert run(["-n", "-p", str(app.prefix), "app"]) == 0
    assert run(["-y", "-p", str(app.prefix), "app"]) == 2
    assert executor.plan is None
    assert f"and this machine is {other}" in capsys.readouterr().err


def test_machines_of_one_family_serve_each_other(
    app: EnvironmentBuilder, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 32-bit kernel name on the same family of processors is no other machine."""
    family = {"x86_64": "i686", "aarch64": "armv7l"}
    real = os.uname()
    if real.machine not in family:
        pytest.skip("no family is known of this machine")
    monkeypatch.setattr("os.uname", lambda: os.uname_result((*real[:4], family[real.machine])))
    assert run(["-y", "-p", str(app.prefix), "app"]) == 0


def test_the_public_interface(app: EnvironmentBuilder, executor: Executor) -> None:
    """Scan, plan and execute, by the names that the package gives them."""
    snapshot = safe_uninstall.scan(str(app.prefix))
    assert [item.name for item in snapshot.distributions] == ["app", "provider"]
    assert safe_uninstall.scan(snapshot.environment).environment == snapshot.environment
    assert safe_uninstall.plan(snapshot, Request(names=("provider",))).verdict is Verdict.BLOCK
    plan = safe_uninstall.plan(snapshot, Request(names=("app",)))
    assert safe_uninstall.execute(plan).state is OutcomeState.COMMITTED
    assert executor.options["replan"](executor.options["rescan"]()) == plan
    with pytest.raises(NotInstalled):
        safe_uninstall.plan(snapshot, Request(names=("absent",)))


def test_the_public_interface_carries_out(app: EnvironmentBuilder) -> None:
    """For real: a plan that blocks is refused, and changes nothing."""
    before = read_tree(app.prefix)
    with pytest.raises(UsageError):
        safe_uninstall.execute(safe_uninstall.plan(safe_uninstall.scan(str(app.prefix)), Request(names=("provider",))))
    assert read_tree(app.prefix) == before


def test_the_public_interface_finds_the_environment_of_the_process(
    app: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the command line does without ``-p``."""
    monkeypatch.setenv("VIRTUAL_ENV", str(app.prefix))
    assert safe_uninstall.scan().environment.prefix == str(app.prefix)


@pytest.mark.parametrize(
    ("words", "heads"),
    [
        (["why", "liba.so.1"], ["lib/liba.so.1   soname liba.so.1"]),
        (["why", "app", "liba.so.1"], ["app 2.0", "lib/liba.so.1   soname liba.so.1"]),
    ],
)
def test_why(app: EnvironmentBuilder, capsys: Capture, words: list[str], heads: list[str]) -> None:
    """An answer for each name, with an empty line between."""
    assert run([*words, "-p", str(app.prefix)]) == 0
    answers = capsys.readouterr().out.split("\n\n")
    assert [answer.splitlines()[0] for answer in answers] == heads


def test_why_nothing(app: EnvironmentBuilder, capsys: Capture) -> None:
    """Near names are offered; as a document too."""
    assert run(["why", "-p", str(app.prefix), "liba.so"]) == 2
    assert "help: did you mean `liba.so.1`?" in capsys.readouterr().err
    assert run(["why", "--format", "json", "-p", str(app.prefix), "liba.so"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["near"] == {"liba.so": ["liba.so.1"]}


def test_graph(app: EnvironmentBuilder, capsys: Capture) -> None:
    """Every object with its needs."""
    assert run(["graph", "-p", str(app.prefix)]) == 0
    objects = {
        item["path"].rpartition("site-packages/")[2]: item for item in json.loads(capsys.readouterr().out)["objects"]
    }
    (need,) = objects["app/c.so"]["needed"]
    assert (objects["app/c.so"]["distribution"], need["name"], need["how"]) == ("app", "liba.so.1", "rpath")
    assert need["provider"] == objects["lib/liba.so.1"]["path"]


def test_graph_around_a_name(app: EnvironmentBuilder, capsys: Capture) -> None:
    """As far as it is asked for, in every format; a name that means nothing is an error with the nearest ones."""
    assert run(["graph", "-p", str(app.prefix), "app", "--depth", "0"]) == 0
    (only,) = json.loads(capsys.readouterr().out)["objects"]
    assert only["distribution"] == "app"
    assert run(["graph", "-p", str(app.prefix), "app", "--format", "dot"]) == 0
    assert '"app/c.so" -> "lib/liba.so.1" [label="rpath"];' in capsys.readouterr().out
    assert run(["graph", "-p", str(app.prefix), "app", "--by", "distribution", "--format", "mermaid"]) == 0
    assert 'n0 -->|"liba.so.1"| n1' in capsys.readouterr().out
    assert run(["graph", "-p", str(app.prefix), "--by", "distribution", "--format", "dot"]) == 0
    assert '"app" -> "provider" [label="liba.so.1"];' in capsys.readouterr().out
    assert run(["graph", "-p", str(app.prefix), "--by", "distribution"]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(document)
    assert document["distributions"] == [
        {
            "name": "app",
            "needed": [{"distribution": "provider", "name": "liba.so.1", "files": 1}],
            "missing": [],
        },
        {"name": "provider", "needed": [], "missing": []},
        # The interpreter in bin is nobody's.
        {"name": None, "needed": [], "missing": []},
    ]
    assert run(["graph", "-p", str(app.prefix), "ap"]) == 2
    assert "help: did you mean `app`?" in capsys.readouterr().err


def test_nothing_to_recover(app: EnvironmentBuilder, capsys: Capture) -> None:
    """Where no run was killed."""
    assert run(["recover", "-p", str(app.prefix)]) == 0
    assert capsys.readouterr().out == "Nothing to recover.\n"
