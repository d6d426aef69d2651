"""Runs the program on a terminal of its own, as a person would, and types answers."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.program import clean_variables

_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Session:
    """What was on the screen at the end."""

    status: int
    screen: str
    """With line ends of Unix and escapes as they were sent."""


def on_terminal(
    *words: str | Path,
    ask: str = "Proceed",
    answer: bytes | None = None,
    columns: int = 200,
    variables: Mapping[str, str] | None = None,
) -> Session:
    """Run ``python -m safe_uninstall`` with a terminal for all three standard streams.

    Args:
        words: the command line.
        ask: what the screen shows when the answer is due.
        answer: bytes to type then (3 is Ctrl-C, 4 the end of the input); None: nothing.
        columns: width of the terminal.
        variables: further environment variables.
    """
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "safe_uninstall", *map(str, words)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=clean_variables({"TERM": "xterm", **(variables or {})}),
        start_new_session=True,
        preexec_fn=_control_terminal,
    )
    os.close(terminal)
    screen = b""
    end = time.monotonic() + _SECONDS
    try:
        while time.monotonic() < end:
            ready, _, _ = select.select([controller], [], [], 0.5)
            if not ready:
                continue
            try:
                part = os.read(controller, 65536)
            except OSError:
                # Linux reports the end of a terminal that nobody has open any more as EIO.
                break
            if not part:
                break
            screen += part
            if answer is not None and ask.encode() in screen:
                os.write(controller, answer)
                answer = None
        status = process.wait(timeout=_SECONDS)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(controller)
    return Session(status=status, screen=screen.decode(errors="replace").replace("\r\n", "\n"))


def _control_terminal() -> None:
    """Make standard input the terminal that signals come from."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
