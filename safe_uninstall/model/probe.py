"""Probes: code that the user says must work, run by the environment's own interpreter."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRun:
    """How one run of a probe ended."""

    code: str
    """Python code, as the user wrote it."""
    failure: str | None = None
    """Why it did not pass, in a clause: ``it ended with status 1``; None where it passed."""
    timed_out: bool = False
    output: str = ""
    """The last part of what it printed, standard output and error together."""
    mapped: tuple[str, ...] | None = None
    """Real paths of the files that were mapped when it ended, sorted; None where it ended without telling."""

    @property
    def passed(self) -> bool:
        """Whether it ended by itself, in time, with status 0."""
        return self.failure is None

    @property
    def label(self) -> str:
        """The code on one line, as messages quote it."""
        line = "; ".join(filter(None, map(str.strip, self.code.splitlines())))
        return line if len(line) <= _LABEL_LENGTH else f"{line[: _LABEL_LENGTH - 1]}…"


_LABEL_LENGTH = 60
