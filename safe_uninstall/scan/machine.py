"""Tells for which machine an environment is where its interpreter cannot say so: it is another machine's, or absent.

A virtual environment that was copied over from another machine has a link to ``/usr/bin/python3`` as its interpreter,
and that is this machine's; a directory that ``pip install --target --platform`` filled has none.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from safe_uninstall.model.distribution import Distribution, MetadataKind
from safe_uninstall.model.elf import ET_DYN, ET_EXEC, Abi, ElfObject
from safe_uninstall.model.environment import Environment
from safe_uninstall.scan.disk import DiskFileSystem
from safe_uninstall.scan.markers import MACHINES, markers_of
from safe_uninstall.scan.metadata import read_text

_TAG = re.compile(r"^Tag:\s*\S+?-\S+?-(?:many|musl)?linux(?:\d*|_\d+_\d+)_(?P<machine>[a-z]\w*)\s*$", re.MULTILINE)
"""A platform tag of Linux in a WHEEL file: ``manylinux2014_aarch64``, ``linux_x86_64``."""
_HOST_LIKE = {"i386": "i686", "i586": "i686", "armv8l": "armv7l"}


def for_its_machine(
    environment: Environment,
    objects: Mapping[str, ElfObject],
    distributions: Iterable[Distribution],
    files: DiskFileSystem,
) -> Environment:
    """Return an environment with the ABI and the markers of the machine that its wheels are for.

    It is changed only where none of its ELF files could be loaded by its interpreter (or, without one, by that of this
    machine), and all of its wheels with compiled code agree on another machine: a firmware image in a package is no
    reason.

    Args:
        environment: as its directories and its interpreter tell.
        objects: its ELF files.
        distributions: what is installed in it.
        files: the tree that it is in.
    """
    own = os.uname().machine if environment.abi is None else MACHINES.get(environment.abi.machine, "")
    # The link to the interpreter is an ELF file of the environment too.
    loadable = (item for item in objects.values() if item.is_dynamic and item.elf_type in (ET_EXEC, ET_DYN))
    abis = {item.abi for item in loadable if item.real_path != environment.interpreter_path}
    by_name = {MACHINES[abi.machine]: abi for abi in sorted(abis) if abi.machine in MACHINES}
    if not by_name or _HOST_LIKE.get(own, own) in by_name:
        return environment
    tagged = {name for item in distributions if item.owned_here for name in _machines(item, files)}
    if len(tagged) != 1 or (name := tagged.pop()) not in by_name:
        return environment
    abi: Abi = by_name[name]
    return replace(
        environment,
        abi=abi if environment.kind.has_interpreter else None,
        interpreter_path=None,
        markers=markers_of(environment.python_version, environment.implementation, abi),
    )


def _machines(distribution: Distribution, files: DiskFileSystem) -> set[str]:
    """Return the machines that the wheel of a distribution was for; none where it holds nothing compiled."""
    if distribution.metadata_kind is not MetadataKind.DIST_INFO:
        return set()
    text = read_text(files.location(f"{distribution.metadata_path}/WHEEL")) or ""
    return {_HOST_LIKE.get(match["machine"], match["machine"]) for match in _TAG.finditer(text)}
