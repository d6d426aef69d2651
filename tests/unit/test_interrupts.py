"""Signals end a run in order, and wait while something is finished."""

import os
import signal
import time

import pytest

from safe_uninstall.execute.interrupts import Interrupted, interruptible, uninterrupted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_become_interruptions(number: signal.Signals) -> None:
    """Each ending signal interrupts, and the handlers from before come back."""
    before = signal.getsignal(number)

    def raise_signal() -> None:
        os.kill(os.getpid(), number)
        time.sleep(5)

    with pytest.raises(Interrupted) as caught, interruptible():
        raise_signal()
    assert caught.value.name == number.name
    assert signal.getsignal(number) is before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """Nohup means that the run goes on when the terminal goes away."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
            with uninterrupted():
                os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_signals_are_held_back_while_something_is_finished() -> None:
    """A second Ctrl-C does not stop a roll back."""
    with interruptible():
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            finished = True
        assert finished


def test_other_threads_leave_signals_alone() -> None:
    """Only the main thread may set handlers; elsewhere both do nothing."""
    import threading

    seen: list[object] = []

    def work() -> None:
        with interruptible(), uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
