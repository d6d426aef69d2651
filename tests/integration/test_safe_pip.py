"""``safe-pip`` end to end: its uninstall is ours, with pip's options; everything else is pip itself."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environments import EnvironmentBuilder, library
from tests.support.program import Finished, clean_variables
from tests.support.runs import build_twins


def safe_pip(*words: str | Path, **variables: str) -> Finished:
    """Run ``python -m safe_uninstall.pip`` without a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "safe_uninstall.pip", *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=clean_variables(variables),
    )
    return Finished(status=done.returncode, out=done.stdout, err=done.stderr)


def program(path: Path, text: str) -> Path:
    """Write a script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_uninstall_keeps_what_another_owns(environment: EnvironmentBuilder) -> None:
    """The shared files stay, where pip would delete them."""
    build_twins(environment)
    done = safe_pip("uninstall", "-y", "twin-cu11", VIRTUAL_ENV=str(environment.prefix))
    assert (done.status, done.err) == (0, "")
    assert (environment.site_packages / "nvidia/nvtx/lib/libnvToolsExt.so.1").exists()
    assert not (environment.site_packages / "nvidia/nvtx/own11.py").exists()


def test_uninstall_blocks_what_would_break_another(environment: EnvironmentBuilder) -> None:
    """A yes to pip's question is no yes to a loss: status 3, and everything is still there."""
    environment.distribution("provider", "1.0", {"lib/liba.so.1": library("liba.so.1")})
    environment.distribution("consumer", "2.0", {"consumer/c.so": library(None, "liba.so.1", rpath="$ORIGIN/../lib")})
    done = safe_pip("--python", environment.prefix, "uninstall", "-y", "provider")
    assert done.status == 3
    assert "library-lost" in done.out
    assert (environment.site_packages / "lib/liba.so.1").exists()


def test_unknown_names_are_skipped(environment: EnvironmentBuilder) -> None:
    """To pip it is a warning that something is not installed; the rest is removed, and the status is 0."""
    environment.distribution("one", "1.0", {"one.py": ""})
    done = safe_pip("uninstall", "-y", "None_Such", "one==9", VIRTUAL_ENV=str(environment.prefix))
    assert done.status == 0
    assert "WARNING: Skipping None_Such as it is not installed." in done.err
    assert not (environment.site_packages / "one.py").exists()
    again = safe_pip("uninstall", "-y", "one", VIRTUAL_ENV=str(environment.prefix))
    assert (again.status, again.out) == (0, "")
    silent = safe_pip("uninstall", "-yqq", "one", VIRTUAL_ENV=str(environment.prefix))
    assert (silent.status, silent.out, silent.err) == (0, "", "")


def test_files_variables_and_logs(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """``-r`` names what goes, ``PIP_YES`` says yes, ``--log`` is appended to."""
    environment.distribution("one", "1.0", {"one.py": ""})
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("one>=0.5\n")
    log = tmp_path / "log"
    log.write_text("before\n")
    words = ("uninstall", "-r", wanted, "--log", log, "--root-user-action=ignore", "--proxy", "x:1")
    isolated = safe_pip(*words, "--isolated", VIRTUAL_ENV=str(environment.prefix), PIP_YES="1")
    assert isolated.status == 2
    done = safe_pip(*words, VIRTUAL_ENV=str(environment.prefix), PIP_YES="1")
    assert done.status == 0
    assert not (environment.site_packages / "one.py").exists()
    assert log.read_text().startswith("before\n")
    assert "exit status 0" in log.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name at least one package"),
        (("--no-input", "one"), "--no-input forbids to ask"),
        (("--nonsense", "one"), "no such option: --nonsense"),
        (("nvidia-*",), "globs: safe-uninstall 'nvidia-*'"),
    ],
)
def test_bad_command_lines(environment: EnvironmentBuilder, words: tuple[str, ...], said: str) -> None:
    """Each is refused with status 2 before anything is changed, naming what is wrong."""
    environment.distribution("one", "1.0", {"one.py": ""})
    done = safe_pip("uninstall", *words, VIRTUAL_ENV=str(environment.prefix))
    assert done.status == 2
    assert said in done.err
    assert (environment.site_packages / "one.py").exists()


def test_help_is_ours() -> None:
    """``uninstall --help`` prints the options; ``--help`` before a command is pip's to answer."""
    done = safe_pip("uninstall", "--help")
    assert done.status == 0
    assert "--root-user-action" in done.out


def test_other_commands_are_the_pip_of_the_environment(environment: EnvironmentBuilder) -> None:
    """Its arguments, its status, its output; also ``uninstall`` as the argument of another command."""
    program(environment.bin / "pip", '#!/bin/sh\nprintf "<%s>" "$@"\nexit 7\n')
    words = ("--proxy", "uninstall", "-v", "help", "uninstall", "a b", "")
    done = safe_pip(*words, VIRTUAL_ENV=str(environment.prefix))
    assert (done.status, done.out) == (7, "".join(f"<{word}>" for word in words))


def test_signals_end_pip_itself(environment: EnvironmentBuilder) -> None:
    """The process is replaced: what ends it ends pip, and whoever started it sees the signal."""
    program(environment.bin / "pip", "#!/bin/sh\nkill -TERM $$\n")
    done = safe_pip("list", VIRTUAL_ENV=str(environment.prefix))
    assert done.status == -signal.SIGTERM


def test_an_environment_without_pip_gets_this_one(environment: EnvironmentBuilder) -> None:
    """The pip beside this tool is told of the environment."""
    environment.distribution("one", "1.0", {"one.py": ""})
    done = safe_pip("list", "--format=freeze", VIRTUAL_ENV=str(environment.prefix))
    assert (done.status, done.out) == (0, "one==1.0\n")
    other = safe_pip("list", "--format=freeze", VIRTUAL_ENV="/nowhere", PIP_PYTHON=str(environment.python))
    assert (other.status, other.out) == (0, "one==1.0\n")


def test_the_first_pip_on_path_decides(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Without VIRTUAL_ENV it names the environment; a link to this program is not taken for pip."""
    environment.distribution("one", "1.0", {"one.py": ""})
    program(tmp_path / "alias/safe-pip", "#!/bin/sh\nexit 99\n")
    os.symlink("safe-pip", tmp_path / "alias/pip")
    program(environment.bin / "pip", f"#!{environment.python}\nprint('own')\n")
    path = os.pathsep.join([str(tmp_path / "alias"), str(environment.bin), os.environ["PATH"]])
    assert safe_pip("list", PATH=path).out == "own\n"
    done = safe_pip("uninstall", "-y", "one", PATH=path)
    assert done.status == 0
    assert not (environment.site_packages / "one.py").exists()
