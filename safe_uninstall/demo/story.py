"""Tells the incident step by step: what is done is what is shown."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping

from safe_uninstall.demo.wheels import LEFTOVER, OWN, PROGRAM, write_wheels
from safe_uninstall.model.errors import SafeUninstallError

Say = Callable[[str], None]

_DROPPED = ("PIP_", "PYTHON", "SAFE_UNINSTALL_")
_OURSELVES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""Where this package is, for a Python that may not find it by itself."""


class Story:
    """The incident in a throwaway environment below one directory."""

    def __init__(self, directory: str, say: Say, *, color: str) -> None:
        """Use ``directory``, which somebody else makes and removes; tell through ``say``."""
        self._directory = directory
        self._prefix = os.path.join(directory, "env")
        self._wheels = os.path.join(directory, "wheels")
        self._python = os.path.join(self._prefix, "bin", "python")
        self._say = say
        self._color = color

    def tell(self) -> None:
        """Tell the whole story.

        Raises:
            SafeUninstallError: a step did not go as it must.
        """
        self._prepare()
        self._the_way_of_pip()
        self._our_way()

    def build(self) -> None:
        """Make the environment only, for somebody who wants to try things in it.

        Raises:
            SafeUninstallError: it could not be made.
        """
        write_wheels(self._wheels)
        self._run([sys.executable, "-m", "venv", "--without-pip", self._prefix])
        self._install(PROGRAM, OWN)
        self._install(LEFTOVER)

    def _prepare(self) -> None:
        self._say("1. An environment: demo-torch with its library, and a leftover that overwrote the library")
        self.build()
        self._show(self._import(), "python -c 'import demo_torch'")
        self._say("   Both demo-cudnn-cu12 and demo-cudnn-cu13 list demo_nvidia/cudnn/lib/libdemocudnn.so.9;")
        self._say("   the bytes on disk are those of the one that was installed last.\n")

    def _the_way_of_pip(self) -> None:
        self._say("2. pip's way")
        removed = self._pip("uninstall", "-y", LEFTOVER)
        self._show(removed, f"pip uninstall -y {LEFTOVER}", last=1)
        self._show(self._import(works=False), "python -c 'import demo_torch'", last=1)
        self._show(self._pip("check"), "pip check", last=1)
        self._say("   The library is gone, though demo-cudnn-cu12 is still installed, and pip sees nothing wrong.\n")

    def _our_way(self) -> None:
        self._say("3. The same environment again, and safe-uninstall")
        self._install(PROGRAM, OWN)
        self._install(LEFTOVER)
        blocked = self._safe_uninstall(expected=3)
        self._show(blocked, f"safe-uninstall -y {LEFTOVER}")
        self._show(self._import(), "python -c 'import demo_torch'")
        self._say("\n4. What the help says; these wheels are on no index, so it is told where they are")
        restored = self._safe_uninstall("--restore", "--find-links", self._wheels, "--no-index", expected=0)
        self._show(restored, f"safe-uninstall -y {LEFTOVER} --restore --find-links wheels --no-index")
        self._show(self._import(), "python -c 'import demo_torch'")
        self._say("   The leftover is gone, every file of demo-cudnn-cu12 is its own again, and demo_torch loads.")

    def _install(self, *names: str) -> None:
        self._pip(
            "install", "--no-index", "--find-links", self._wheels, "--no-deps", "--force-reinstall", "--quiet", *names
        )

    def _pip(self, *words: str) -> str:
        return self._run([sys.executable, "-m", "pip", "--python", self._python, *words])

    def _import(self, *, works: bool = True) -> str:
        return self._run([self._python, "-c", "import demo_torch"], expected=0 if works else 1)

    def _safe_uninstall(self, *more: str, expected: int) -> str:
        words = ["-p", self._prefix, "-y", "--installer", "pip", "--color", self._color, LEFTOVER, *more]
        command = [sys.executable, "-m", "safe_uninstall", *words]
        return self._run(command, expected=expected, variables={"PYTHONPATH": _OURSELVES})

    def _run(self, command: list[str], *, expected: int = 0, variables: Mapping[str, str] | None = None) -> str:
        """Run a command where nothing lies that Python would import, and without settings of Python and pip."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(_DROPPED)}
        kept.update(PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_CONFIG_FILE=os.devnull, **(variables or {}))
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=kept,
            cwd=self._directory,
        )
        if done.returncode != expected:
            raise SafeUninstallError(
                f"the demo went wrong: `{shlex.join(command)}` ended with {done.returncode}: {done.stdout.strip()}"
            )
        return done.stdout.rstrip()

    def _show(self, output: str, command: str, *, last: int | None = None) -> None:
        self._say(f"   $ {command}")
        lines = output.replace(f"{self._prefix}/", "").splitlines()
        if last is not None:
            lines = [line.strip() for line in lines[-last:]]
        for line in lines:
            self._say(f"   {line}")
