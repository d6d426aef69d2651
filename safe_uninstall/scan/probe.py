"""Runs a probe: the one case in which planning runs code of the environment, since the user gave it.

The interpreter is the environment's own. What the user's shell says about libraries (LD_LIBRARY_PATH, CUDA's variables)
holds for the probe as it does for the user's programs; variables of Python do not, and neither does what can be
imported from the working directory, since both could bring in code that the environment does not have.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING

from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.probe import ProbeRun
from safe_uninstall.scan.processes import mapped_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safe_uninstall.model.environment import Environment
    from safe_uninstall.model.plan import Request

_WRAPPER = """\
import atexit, os, sys
def _report(owner=os.getpid(), descriptor=int(sys.argv[2]), os=os, open=open):
    if os.getpid() != owner:
        return
    try:
        with open("/proc/self/maps", "rb") as file:
            data = file.read()
    except OSError:
        return
    while data:
        data = data[os.write(descriptor, data):]
atexit.register(_report)
os.set_inheritable(int(sys.argv[2]), False)
_code = compile(sys.argv[1], "<probe>", "exec")
sys.argv[1:] = []
sys.path[:] = [path for path in sys.path if path != ""]
del atexit, os, sys, _report
exec(_code)
"""
"""Runs the code as ``python -c`` would, in ``__main__``, and tells at the end what is mapped, also after an exception.
A child that was forked tells nothing. Runs on Python 3.8 and later."""

_KEPT_OUTPUT = 16 * 1024
"""Bytes of output kept, the last ones."""

_STEP = 0.05
"""Seconds between two looks at whether a probe that prints nothing has ended."""


def run_probe(environment: Environment, code: str, *, timeout: float, variables: Mapping[str, str]) -> ProbeRun:
    """Run code with an environment's interpreter, in a session of its own, to its end or to the time limit.

    When it has ended, or an exception passes through here (an interrupt), its whole process group is killed.

    Args:
        environment: whose interpreter runs it; nothing is compiled into it.
        code: Python code.
        timeout: seconds after which it counts as failed.
        variables: environment variables of the user.

    Raises:
        UsageError: there is no interpreter, it is in a mounted tree, or it cannot be started.
    """
    if environment.is_mounted:
        raise UsageError(
            f"`{environment.prefix}` is in a mounted tree, and nothing in there is run", help=("leave --probe out",)
        )
    if environment.python is None:
        raise UsageError(
            f"`{environment.prefix}` has no interpreter that could run a probe", help=("leave --probe out",)
        )
    with tempfile.TemporaryFile() as told:
        command = (environment.python, "-c", _WRAPPER, code, str(told.fileno()))
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=_without_python(variables),
                pass_fds=(told.fileno(),),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise UsageError(f"the probe cannot be run by `{environment.python}`: {error}") from None
        with process:
            try:
                output, in_time = _follow(process, time.monotonic() + timeout)
            finally:
                _kill_group(process)
                process.wait()
        told.seek(0)
        maps = told.read()
    return ProbeRun(
        code=code,
        failure=_failure(process.returncode) if in_time else f"it did not end within {timeout:g} s",
        timed_out=not in_time,
        output=output.decode("utf-8", "replace").strip(),
        mapped=tuple(sorted(set(mapped_files(maps)))) if maps else None,
    )


def run_probes(environment: Environment, request: Request, *, variables: Mapping[str, str]) -> tuple[ProbeRun, ...]:
    """Run the probes of a request one after the other, each as ``run_probe`` does."""
    return tuple(
        run_probe(environment, code, timeout=request.probe_timeout, variables=variables) for code in request.probes
    )


def _without_python(variables: Mapping[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in variables.items() if not key.startswith(("PYTHON", "__PYVENV_LAUNCHER__"))}
    # Byte code that it left would be a change of the environment, and one that a roll back does not know of.
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    # What it printed before the time limit ended it would be lost in its buffer.
    kept["PYTHONUNBUFFERED"] = "1"
    return kept


def _follow(process: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bool]:
    """Read what a process prints until it ends; return the last of it, and whether it ended before the deadline.

    The end of the output is not the end of the process, nor the other way round: what it started may hold the pipe.
    """
    assert process.stdout is not None
    waiting = [process.stdout.fileno()]
    output = b""
    while (left := deadline - time.monotonic()) > 0:
        if select.select(waiting, [], [], min(left, _STEP))[0]:
            chunk = os.read(waiting[0], 65536)
            output = (output + chunk)[-_KEPT_OUTPUT:]
            if not chunk:
                waiting = []
        elif _has_ended(process):
            return output, True
    return output, False


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has ended, and leave its number to it, so that its group can still be named by it."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # Nobody is left, or (macOS) only what has ended.
        pass


def _failure(status: int) -> str | None:
    if status == 0:
        return None
    if status > 0:
        return f"it ended with status {status}"
    try:
        return f"it was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"it was ended by signal {-status}"
