"""A probe is run as the user's own program would be, in the environment and to its end, and tells what it mapped."""

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import safe_uninstall
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.plan import Request, Verdict
from safe_uninstall.model.probe import ProbeRun
from safe_uninstall.scan import probe as probe_module
from safe_uninstall.scan.probe import run_probe, run_probes
from tests.support.environments import EnvironmentBuilder, library, read_tree

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs /proc")


def run(
    builder: EnvironmentBuilder, code: str, *, timeout: float = 60, variables: Mapping[str, str] | None = None
) -> ProbeRun:
    """Run a probe with few variables."""
    kept = {"PATH": os.environ["PATH"]}
    return run_probe(builder.environment(), code, timeout=timeout, variables={**kept, **(variables or {})})


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and was not asked for its status does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def wait_for_end(pid: int) -> None:
    """Wait until a process is gone, and fail if it stays."""
    for _ in range(1000):
        if not is_alive(pid):
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} still runs")


def test_it_runs_in_the_environment(environment: EnvironmentBuilder) -> None:
    """With its interpreter and its distributions; what it prints on either stream is kept."""
    environment.distribution("app", "1.0", {"app.py": "value = 42\n"})
    done = run(environment, "import app, sys\nprint(app.value, sys.prefix)\nprint('err', file=sys.stderr)")
    assert (done.passed, done.failure, done.timed_out) == (True, None, False)
    assert done.output.splitlines() == [f"42 {environment.prefix}", "err"]


def test_it_tells_what_it_mapped(environment: EnvironmentBuilder) -> None:
    """Libraries that were loaded by any way, by their real paths; those that were not are not among them."""
    environment.distribution("app", "1.0", {f"app/lib{name}.so": library(f"lib{name}.so") for name in "ab"})
    used, unused = environment.path("app/liba.so"), environment.path("app/libb.so")
    done = run(environment, f"import ctypes; ctypes.CDLL({used!r})")
    assert done.mapped is not None
    assert used in done.mapped
    assert unused not in done.mapped
    assert list(done.mapped) == sorted(set(done.mapped))


@pytest.mark.parametrize(
    ("end", "failure"),
    [
        ("raise ValueError('wrong')", "it ended with status 1"),
        ("import sys; sys.exit(7)", "it ended with status 7"),
        ("import sys; sys.exit(0)", None),
    ],
)
def test_it_tells_whatever_its_end(environment: EnvironmentBuilder, end: str, failure: str | None) -> None:
    """After an exception too, and after an early exit."""
    environment.distribution("app", "1.0", {"app/liba.so": library("liba.so")})
    path = environment.path("app/liba.so")
    done = run(environment, f"import ctypes; ctypes.CDLL({path!r})\n{end}")
    assert done.failure == failure
    assert path in (done.mapped or ())
    assert ("ValueError: wrong" in done.output) is ("wrong" in end)


def test_code_that_does_not_compile_fails(environment: EnvironmentBuilder) -> None:
    """As with ``python -c``."""
    done = run(environment, "import (")
    assert done.failure == "it ended with status 1"
    assert "SyntaxError" in done.output


def test_a_hard_end_tells_nothing(environment: EnvironmentBuilder) -> None:
    """``os._exit`` and signals leave no time for it: unknown, and not nothing."""
    done = run(environment, "import os; os._exit(0)")
    assert (done.passed, done.mapped) == (True, None)
    done = run(environment, "import os; os.kill(os.getpid(), 11)")
    assert (done.failure, done.mapped) == ("it was ended by SIGSEGV", None)
    done = run(environment, "import os; os.kill(os.getpid(), 40)")
    assert done.failure == "it was ended by signal 40"


def test_children_do_not_tell(environment: EnvironmentBuilder) -> None:
    """A child that was forked and ends as programs do leaves the answer to its parent."""
    environment.distribution("app", "1.0", {"app/liba.so": library("liba.so")})
    path = environment.path("app/liba.so")
    code = (
        "import ctypes, os, sys\n"
        "if os.fork() == 0:\n"
        f"    ctypes.CDLL({path!r})\n"
        "    sys.exit(0)\n"
        "assert os.wait()[1] == 0\n"
    )
    done = run(environment, code)
    assert done.passed, done.output
    assert done.mapped is not None
    assert path not in done.mapped


def test_the_code_sees_what_python_c_shows(environment: EnvironmentBuilder) -> None:
    """It is ``__main__``, has no arguments, and nothing of ours stands in its way."""
    code = (
        "import sys, pickle, inspect\n"
        "class Thing: pass\n"
        "assert pickle.loads(pickle.dumps(Thing)) is Thing\n"
        "print(__name__, sys.argv, sorted(name for name in globals() if name[:1] != '_'))\n"
    )
    done = run(environment, code)
    assert done.output == "__main__ ['-c'] ['Thing', 'inspect', 'pickle', 'sys']"


def test_what_could_bring_in_other_code_does_not_count(
    environment: EnvironmentBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither variables of Python nor the working directory; files can still be named from there."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/app.py").write_text("")
    monkeypatch.chdir(tmp_path / "elsewhere")
    variables = {"PYTHONPATH": str(tmp_path / "elsewhere"), "PYTHONHOME": "/nowhere", "PYTHONINSPECT": "1"}
    done = run(environment, "import app", variables=variables)
    assert "No module named 'app'" in done.output
    assert run(environment, "open('app.py')", variables=variables).passed


def test_what_the_shell_says_of_libraries_counts(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """LD_LIBRARY_PATH and the rest are the user's; the environment is not asked for anything on a terminal."""
    code = "import os, sys; print(os.environ['LD_LIBRARY_PATH'], os.environ['CUDA_X'], repr(sys.stdin.read()))"
    done = run(environment, code, variables={"LD_LIBRARY_PATH": "/opt/x", "CUDA_X": "1"})
    assert done.output == "/opt/x 1 ''"


def test_it_leaves_no_byte_code(environment: EnvironmentBuilder) -> None:
    """Planning changes nothing; programs that it starts leave none either."""
    environment.distribution("app", "1.0", {"app/__init__.py": "", "app/more.py": ""})
    before = read_tree(environment.prefix)
    code = "import app.more, subprocess, sys; subprocess.run([sys.executable, '-c', 'import app.more'], check=True)"
    done = run(environment, code)
    assert done.passed, done.output
    assert read_tree(environment.prefix) == before


def test_only_the_end_of_a_long_output_is_kept(environment: EnvironmentBuilder) -> None:
    """However much there is of it."""
    done = run(environment, "print('x' * 300_000); print('the end')")
    assert done.passed
    assert done.output.endswith("x\nthe end")
    assert 16_000 < len(done.output) <= 16 * 1024


def test_bytes_that_are_no_text_are_replaced(environment: EnvironmentBuilder) -> None:
    """They fail nothing."""
    assert run(environment, "import os; os.write(1, b'a\\xff')").output == "a\ufffd"


def test_the_time_limit_ends_it_and_all_it_started(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """What it had printed is kept; that it did not tell what it mapped is known."""
    pids = tmp_path / "pids"
    code = (
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "print('begun')\n"
        "time.sleep(600)\n"
    )
    done = run(environment, code, timeout=5)
    assert (done.failure, done.timed_out, done.output, done.mapped) == (
        "it did not end within 5 s",
        True,
        "begun",
        None,
    )
    for pid in map(int, pids.read_text().split()):
        wait_for_end(pid)


def test_output_without_end_ends_too(environment: EnvironmentBuilder) -> None:
    """A probe that never stops to print is ended like one that says nothing."""
    done = run(environment, "while True: print('x' * 1000)", timeout=1)
    assert done.timed_out


def test_what_it_leaves_running_is_ended(environment: EnvironmentBuilder) -> None:
    """A child in the background holds the output open: it neither delays the answer nor outlives it."""
    code = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid)"
    done = run(environment, code)
    assert (done.passed, done.timed_out) == (True, False)
    wait_for_end(int(done.output))


def test_a_closed_output_is_no_end(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """It is waited for all the same."""
    mark = tmp_path / "mark"
    code = f"import os, time; os.close(1); os.close(2); time.sleep(0.5); open({str(mark)!r}, 'w')"
    assert run(environment, code).passed
    assert mark.exists()


def test_without_waitid_it_is_waited_for_otherwise(
    environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some systems lack the call."""
    monkeypatch.delattr(os, "waitid")
    assert run(environment, "print('x')").passed
    assert run(environment, "raise SystemExit(2)").failure == "it ended with status 2"


def test_an_interrupt_ends_it(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Ctrl-C reaches us, and not the session of the probe: it is killed before the interrupt goes on."""
    pids = tmp_path / "pids"
    code = f"import os, time; open({str(pids)!r}, 'w').write(f'{{os.getpid()}}.'); time.sleep(600)"

    def interrupt() -> None:
        while not pids.exists() or not pids.read_text().endswith("."):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(environment, code)
    thread.join()
    wait_for_end(int(pids.read_text().rstrip(".")))


def test_a_group_that_is_gone_is_no_error(environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """On some systems one that has ended may not even be signalled."""

    def gone(_group: int, _number: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "killpg", gone)
    assert run(environment, "print('x')").passed


def test_an_environment_without_interpreter_has_no_probes(environment: EnvironmentBuilder) -> None:
    """Said as an error in how the program was called."""
    without = replace(environment.environment(), python=None)
    with pytest.raises(UsageError, match="no interpreter that could run a probe"):
        run_probe(without, "x", timeout=1, variables={})


@pytest.mark.parametrize("code", ["x", "nul\0"])
def test_an_interpreter_that_cannot_be_started(environment: EnvironmentBuilder, code: str) -> None:
    """Neither can code that no command line holds."""
    python = "/nowhere/python" if code == "x" else sys.executable
    broken = replace(environment.environment(), python=python)
    with pytest.raises(UsageError, match="the probe cannot be run by"):
        run_probe(broken, code, timeout=1, variables={})


def test_all_probes_of_a_request_are_run(environment: EnvironmentBuilder) -> None:
    """In their order, each with the time limit of the request."""
    request = Request(names=("x",), probes=("print(1)", "import time; time.sleep(600)"), probe_timeout=2.0)
    first, second = run_probes(environment.environment(), request, variables=os.environ)
    assert (first.code, first.output, second.failure) == ("print(1)", "1", "it did not end within 2 s")


def test_the_public_interface_probes_before_and_after(
    environment: EnvironmentBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``plan`` runs the probes once, ``execute`` once more."""
    environment.distribution("one", "1.0", {"one.py": "1"})
    codes: list[str] = []
    real = run_probe

    def counted(*args: object, **options: object) -> ProbeRun:
        codes.append(str(args[1]))
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(probe_module, "run_probe", counted)
    found = safe_uninstall.plan(environment.snapshot(), Request(names=("one",), probes=("print(1)",)))
    assert (found.verdict, [run.output for run in found.probes], codes) == (Verdict.ALLOW, ["1"], ["print(1)"])
    outcome = safe_uninstall.execute(found)
    assert ([run.output for run in outcome.probes], codes) == (["1"], ["print(1)"] * 2)


def test_the_wrapper_runs_on_old_pythons() -> None:
    """Nothing in it is newer than 3.8, the oldest Python that is served."""
    import ast

    ast.parse(probe_module._WRAPPER, feature_version=(3, 8))
