"""Signals during a transaction: the first one rolls back, those that follow wait until that is done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asked the run to end; like KeyboardInterrupt it passes through handlers of ordinary errors."""

    def __init__(self, number: int) -> None:
        """Keep the signal's number."""
        super().__init__(number)
        self.number = number

    @property
    def name(self) -> str:
        """The signal's name: ``SIGTERM``."""
        return signal.Signals(self.number).name


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP into ``Interrupted``; outside the main thread nothing changes.

    A signal that the process was started to ignore stays ignored: nohup(1) and background jobs of a shell mean it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, interrupt) for number in _heeded()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold signals back while something must be finished; the first one is delivered afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []

    def hold(number: int, _frame: FrameType | None) -> None:
        held.append(number)

    before = {number: signal.signal(number, hold) for number in _heeded()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _heeded() -> tuple[signal.Signals, ...]:
    return tuple(number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN)
