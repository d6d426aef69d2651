"""For which machine an environment is whose interpreter cannot say so: that of its wheels."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from safe_uninstall.model.elf import Abi
from safe_uninstall.model.environment import Environment
from safe_uninstall.scan.environment import find_environment
from safe_uninstall.scan.snapshot import scan
from tests.support.elf_writer import EM_AARCH64, EM_ARM, EM_X86_64, ElfSpec, elf_bytes
from tests.support.environments import EnvironmentBuilder
from tests.support.mounted import NAMES

Make = Callable[..., EnvironmentBuilder]
HOST = {"x86_64": EM_X86_64, "aarch64": EM_AARCH64}[os.uname().machine]
OTHER = EM_AARCH64 if HOST == EM_X86_64 else EM_X86_64


def wheel(*platforms: str) -> dict[str, str]:
    """Return the WHEEL file of a wheel with tags for some platforms."""
    return {"WHEEL": "Wheel-Version: 1.0\n" + "".join(f"Tag: cp311-cp311-{item}\n" for item in platforms)}


def scanned(builder: EnvironmentBuilder) -> Environment:
    """Return the environment of a snapshot."""
    return builder.snapshot().environment


@pytest.mark.parametrize(
    "platforms",
    [("manylinux2014_{}",), ("manylinux_2_17_{0}", "manylinux2014_{0}"), ("linux_{}",), ("musllinux_1_2_{}",)],
)
def test_the_wheels_tell(make_environment: Make, platforms: tuple[str, ...]) -> None:
    """All files are of another machine, and the tags of the wheels say the same."""
    builder = make_environment()
    name = NAMES[OTHER]
    builder.distribution(
        "a", files={"a.so": ElfSpec(machine=OTHER)}, metadata=wheel(*(item.format(name) for item in platforms))
    )
    found = scanned(builder)
    assert (found.abi, found.interpreter_path) == (Abi(64, True, OTHER), None)
    assert found.markers["platform_machine"] == name
    assert found.python == str(builder.python)


def test_what_is_no_reason(make_environment: Make) -> None:
    """A firmware image in a pure wheel, wheels that disagree, wheels without such files, egg-infos."""
    firmware = make_environment()
    firmware.distribution("a", files={"a.so": ElfSpec(machine=OTHER)}, metadata=wheel("any"))
    mixed = make_environment()
    for machine in (OTHER, EM_ARM):
        name = NAMES.get(machine, "armv7l")
        mixed.distribution(
            name.replace("_", "-"), files={f"{name}.so": ElfSpec(machine=machine)}, metadata=wheel(f"linux_{name}")
        )
    elsewhere = make_environment()
    elsewhere.distribution("a", files={"a.so": ElfSpec(machine=EM_ARM)}, metadata=wheel(f"linux_{NAMES[OTHER]}"))
    old = make_environment()
    (old.site_packages / "a.egg-info").write_text("Name: a\nVersion: 1\n")
    (old.site_packages / "a.so").write_bytes(elf_bytes(machine=OTHER))
    own = make_environment()
    own.distribution("a", files={"a.so": ElfSpec(machine=HOST)}, metadata=wheel(f"linux_{NAMES[OTHER]}"))
    own.distribution("b", files={"b.so": ElfSpec(machine=OTHER)}, metadata=wheel(f"linux_{NAMES[OTHER]}"))
    for builder in (firmware, mixed, elsewhere, old, own):
        found = scanned(builder)
        assert found.markers["platform_machine"] == NAMES[HOST]
        assert found.interpreter_path is not None


def test_a_directory_without_an_interpreter(tmp_path: Path) -> None:
    """Its markers are those of its wheels; that uv can change it from here stays so."""
    target = EnvironmentBuilder(tmp_path / "unused", python=None)
    site = tmp_path / "layer"
    target.distribution("a", files={"a.so": ElfSpec(machine=OTHER)}, metadata=wheel(f"linux_{NAMES[OTHER]}"), site=site)
    found = scan(find_environment(str(site), variables={}, directory="/"), variables={}).environment
    assert (found.abi, found.markers["platform_machine"]) == (None, NAMES[OTHER])
