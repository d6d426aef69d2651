"""``safe-pip`` and ``python -m safe_uninstall.pip``: pip, except that ``uninstall`` loses nothing others need.

Whatever is no uninstall becomes pip itself, by ``exec``: nothing but what finds the program is imported before.
"""

from __future__ import annotations

import os
import sys

_TAKE_VALUE = (
    "--cache-dir",
    "--cert",
    "--client-cert",
    "--default-timeout",
    "--exists-action",
    "--keyring-provider",
    "--local-log",
    "--log",
    "--log-file",
    "--proxy",
    "--python",
    "--resume-retries",
    "--retries",
    "--timeout",
    "--trusted-host",
    "--use-deprecated",
    "--use-feature",
)
"""pip's options, of all versions from 22.3 to 26, that stand before a command and take a value."""

_FLAGS = (
    "--debug",
    "--disable-pip-version-check",
    "--help",
    "--isolated",
    "--no-cache-dir",
    "--no-color",
    "--no-input",
    "--no-proxy-env",
    "--quiet",
    "--require-venv",
    "--require-virtualenv",
    "--verbose",
    "--version",
)
_ASK_PIP = frozenset({"--help", "--version"})
"""Options before the command that pip answers whatever the command is."""


def main() -> None:
    """Run the command line: ours for an uninstall, else pip in the place of this process."""
    words = sys.argv[1:]
    command = find_command(words)
    if command is not None and words[command] == "uninstall":
        from safe_uninstall.cli.pip_uninstall import uninstall

        status = uninstall([*words[:command], *words[command + 1 :]], environment_of_pip)
        sys.stdout.flush()
        sys.exit(status)
    program = find_pip(python_of(words[:command]) or os.environ.get("PIP_PYTHON"))
    sys.stdout.flush()
    try:
        os.execv(program[0], [*program, *words])  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"error: pip cannot be run as `{program[0]}`: {error.strerror}\n")
        sys.exit(2)


def find_command(words: list[str]) -> int | None:
    """Return the position of pip's command among its arguments; None where pip runs none.

    Like pip, everything before the first word that is no option or its value belongs to pip itself.

    Args:
        words: the command line without the program's name.
    """
    position = 0
    while position < len(words):
        word = words[position]
        if word == "--":
            return position + 1 if position + 1 < len(words) else None
        if not word.startswith("-") or word == "-":
            return position
        if word.startswith("--"):
            name, equals, _ = word.partition("=")
            name = _whole_name(name)
            if name in _ASK_PIP:
                return None
            position += 2 if name in _TAKE_VALUE and not equals else 1
        elif "h" in word or "V" in word:
            return None
        else:
            position += 1
    return None


def python_of(words: list[str]) -> str | None:
    """Return the value of ``--python`` among the options before pip's command, None if there is none."""
    found = None
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name.startswith("--") and _whole_name(name) == "--python":
            found = value if equals else (words[number + 1] if number + 1 < len(words) else None)
    return found


def find_pip(python: str | None) -> tuple[str, ...]:
    """Return the pip that gets a command: the environment's own, else this tool's, told of the environment.

    The environment is that of ``--python`` (which any pip obeys), of VIRTUAL_ENV, of the first pip on PATH, of the
    first python on PATH.

    Args:
        python: the value of ``--python``.

    Returns:
        Program and first arguments.
    """
    virtual = os.environ.get("VIRTUAL_ENV")
    if virtual:
        own = os.path.join(virtual, "bin", "pip")
        if _can_run(own) and not _is_this(own):
            return (own,)
    if not virtual:
        named = _first_on_path("pip") or _first_on_path("pip3")
        if named is not None:
            return (named,)
    target = None
    if python is None:
        interpreter = os.path.join(virtual, "bin", "python") if virtual else None
        target = interpreter or _first_on_path("python") or _first_on_path("python3")
    return (*_own_pip(), *(("--python", target) if target else ()))


def environment_of_pip(python: str | None) -> str | None:
    """Return what ``-p`` must name to mean the environment that pip would change.

    Args:
        python: the value of ``--python``.

    Returns:
        A path; None if nothing names one, neither VIRTUAL_ENV nor a pip or python on PATH.
    """
    if python or os.environ.get("VIRTUAL_ENV"):
        return python or os.environ["VIRTUAL_ENV"]
    named = _first_on_path("pip") or _first_on_path("pip3")
    if named is None:
        return _first_on_path("python") or _first_on_path("python3")
    return _interpreter_of_script(named) or _site_packages_of(named)


def _interpreter_of_script(script: str) -> str | None:
    """Return the Python in the first line of a script, or in the second where the first would be too long."""
    with open(script, "rb") as file:
        lines = file.read(4096).decode("utf-8", "surrogateescape").splitlines()
    if not lines or not lines[0].startswith("#!"):
        return None
    words = lines[0][2:].split()
    if words[:1] == ["/bin/sh"] and len(lines) > 1 and lines[1].startswith("'''exec' "):
        # What installers write for long paths and those with spaces (distlib, "simple launchers").
        words = [lines[1].removeprefix("'''exec' ").rpartition(' "$0"')[0].strip('"')]
    return words[0] if words and "python" in os.path.basename(words[0]) and _can_run(words[0]) else None


def _site_packages_of(pip: str) -> str | None:
    """Return the directory that a pip which is no plain script (a shim) says it lies in."""
    import subprocess

    run = subprocess.run([pip, "--version"], stdout=subprocess.PIPE, text=True, check=False)
    place = run.stdout.partition(" from ")[2].rpartition(" (python ")[0]
    return os.path.dirname(place) or None


def _own_pip() -> tuple[str, ...]:
    from importlib.util import find_spec

    spec = find_spec("pip")
    if spec is None or spec.origin is None:
        return (sys.executable, "-m", "pip")
    # By its path: with ``-m`` a pip.py in the working directory would be taken for it.
    return (sys.executable, os.path.join(os.path.dirname(spec.origin), "__main__.py"))


def _whole_name(name: str) -> str:
    """Return the long option that ``name`` is, or begins, as pip lets users shorten them; else ``name``."""
    options = (*_TAKE_VALUE, *_FLAGS)
    if name in options:
        return name
    found = [option for option in options if option.startswith(name)]
    return found[0] if len(found) == 1 else name


def _first_on_path(name: str) -> str | None:
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.abspath(os.path.join(directory, name))
        if _can_run(path) and not _is_this(path):
            return path
    return None


def _can_run(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_this(path: str) -> bool:
    """Return whether a program is a link to this one, which would start itself for ever."""
    return os.path.basename(os.path.realpath(path)) == "safe-pip"


if __name__ == "__main__":
    main()
