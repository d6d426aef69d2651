"""PEP 508 environment markers of an interpreter that is not run."""

import os
import sys

from safe_uninstall.model.elf import Abi

MACHINES = {
    3: "i686",
    8: "mips",
    20: "ppc",
    21: "ppc64le",
    22: "s390x",
    40: "armv7l",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
    258: "loongarch64",
}
"""``e_machine`` to what ``platform.machine()`` says there."""


def markers_of(version: str, implementation: str, abi: Abi | None) -> dict[str, str]:
    """Return the markers of an interpreter; facts of the kernel are those of this host.

    Args:
        version: ``X.Y.Z`` or ``X.Y``.
        implementation: ``cpython``, ``pypy``.
        abi: None: that of this host.
    """
    host = os.uname()
    machine = host.machine if abi is None else MACHINES.get(abi.machine, host.machine)
    full = version if version.count(".") >= 2 else f"{version}.0"
    return {
        "implementation_name": implementation,
        "implementation_version": full,
        "os_name": "posix",
        "platform_machine": machine,
        "platform_python_implementation": {"cpython": "CPython", "pypy": "PyPy"}.get(implementation, implementation),
        "platform_release": host.release,
        "platform_system": host.sysname,
        "platform_version": host.version,
        "python_full_version": full,
        "python_version": ".".join(version.split(".")[:2]),
        "sys_platform": sys.platform,
    }
