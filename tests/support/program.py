"""Runs the program as users do: as a process of its own, judged by what it prints, its exit status and what it left."""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

_CAPABILITY_DROP = 24
"""PR_CAPBSET_DROP of prctl(2)."""
_OVERRIDE_PERMISSIONS = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH of capabilities(7)."""
_HIDDEN = ("COLUMNS", "CONDA_", "LD_", "NO_COLOR", "PYTHON", "SAFE_UNINSTALL_", "UV", "VIRTUAL_ENV")


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A run that has ended."""

    status: int
    out: str
    err: str

    @property
    def last(self) -> str:
        """The last line of all that was said."""
        return (self.out + self.err).rstrip().rpartition("\n")[2]

    @property
    def document(self) -> Any:
        """The one JSON document on standard output."""
        document = json.loads(self.out)
        if "$schema" not in document:
            # Every document but the schema itself is held against it.
            _validator().validate(document)
        return document


@cache
def _validator() -> Any:
    """Return what holds a document against the schema that ships with the package."""
    import jsonschema

    from safe_uninstall.render.schema import schema_text

    return jsonschema.Draft202012Validator(json.loads(schema_text()))


def safe_uninstall(
    *words: str | Path,
    python: str | Path = sys.executable,
    variables: Mapping[str, str] | None = None,
    directory: Path | None = None,
    obey_permissions: bool = False,
    stdin: IO[str] | None = None,
) -> Finished:
    """Run ``python -m safe_uninstall`` without a terminal.

    Args:
        words: the command line.
        python: the interpreter in whose environment the product is installed.
        variables: further environment variables; what points at an environment is hidden from the run.
        directory: where it runs.
        obey_permissions: let modes of files bind the run even where the tests are run by root.
        stdin: its standard input, None: nothing.
    """
    done = subprocess.run(
        [str(python), "-m", "safe_uninstall", *map(str, words)],
        stdin=stdin or subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        cwd=directory,
        env=clean_variables(variables or {}),
        preexec_fn=give_up_override if obey_permissions else None,
    )
    return Finished(status=done.returncode, out=done.stdout, err=done.stderr)


def clean_variables(more: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of this process without those that name environments or change what is printed."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_HIDDEN) or _is_cache(key)}
    return {**kept, **more}


def give_up_override() -> None:
    """Let permissions bind root too, from the next exec on (the kernel masks root's capabilities then)."""
    if os.geteuid() == 0:
        library = ctypes.CDLL(None, use_errno=True)
        for capability in _OVERRIDE_PERMISSIONS:
            if library.prctl(_CAPABILITY_DROP, capability, 0, 0, 0) != 0:
                raise OSError(ctypes.get_errno(), "permissions cannot be made to bind root here")


def call(
    command: Iterable[str | Path], *, check: bool = True, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run any other program; a failure shows what it printed."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=clean_variables(variables or {}),
    )
    assert done.returncode == 0 or not check, f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}"
    return done


def _is_cache(key: str) -> bool:
    """Return whether a variable says where and how to download; those are kept."""
    return key.startswith(("UV_CACHE", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_HTTP", "UV_NATIVE", "UV_SYSTEM_CERTS"))
