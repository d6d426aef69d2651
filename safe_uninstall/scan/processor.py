"""Tells which hardware capabilities glibc sees in this machine's processor, from ``/proc/cpuinfo``.

The rules are those of glibc's ``sysdeps/x86/cpu-features.c``, ``sysdeps/x86_64/dl-hwcaps_subdirs.c`` and, for releases
before 2.37, ``elf/dl-hwcaps.c``.
"""

import os
from itertools import combinations
from typing import NamedTuple

from safe_uninstall.model.elf import Abi

_CPUINFO = "/proc/cpuinfo"
_CPUINFO_LIMIT = 16 << 10
"""Bytes: the first processor is enough, and the file of a large machine takes long to make."""

_LEVELS = {
    "x86-64-v2": "cx16 lahf_lm popcnt pni ssse3 sse4_1 sse4_2",
    "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
"""What each level of the x86-64 psABI asks for beyond the one before, in the words of ``/proc/cpuinfo``."""

_HASWELL = frozenset({"avx2", "bmi1", "bmi2", "abm", "movbe", "popcnt"})
_AVX512_1 = frozenset({"avx512cd", "avx512bw", "avx512dq", "avx512vl"})
_XEON_PHI = frozenset({"avx512cd", "avx512er", "avx512pf"})

_TLS = 1 << 63
_LEGACY_BITS = {
    "sse2": 1 << 0,
    "x86_64": 1 << 1,
    "avx512_1": 1 << 2,
    "i586": 1 << 48,
    "i686": 1 << 49,
    "haswell": 1 << 50,
    "xeon_phi": 1 << 51,
}
"""``hwcap`` bits in ld.so.cache (``sysdeps/x86/dl-hwcap.h``, ``dl-procinfo.h``)."""
_NAMES = {62: "x86_64", 3: "i686", 183: "aarch64", 40: "armv7l", 21: "ppc64le", 22: "s390x", 243: "riscv64"}
"""AT_PLATFORM, as far as it does not depend on the model."""
_HOSTS = {62: ("x86_64",), 3: ("x86_64", "i686"), 183: ("aarch64",)}
"""Values of ``uname -m`` on which code for a machine runs and ``/proc/cpuinfo`` speaks of it."""


class Processor(NamedTuple):
    """Capabilities of a processor as glibc names them."""

    platform: str
    """What ``$PLATFORM`` expands to."""
    named: tuple[str, ...] = ()
    """Sub-directories of ``glibc-hwcaps``, best first."""
    legacy: tuple[str, ...] = ()
    """Names of which glibc before 2.37 made sub-directories, most significant first; empty where not known."""

    def legacy_directories(self) -> tuple[str, ...]:
        """Return those sub-directories in search order: all combinations, the first names count most."""
        names = self.legacy
        chosen = [picked for count in range(1, len(names) + 1) for picked in combinations(range(len(names)), count)]
        chosen.sort(key=lambda picked: sum(1 << (len(names) - index) for index in picked), reverse=True)
        return tuple(dict.fromkeys("/".join(names[index] for index in picked) for picked in chosen))

    def has(self, hwcap: int) -> bool:
        """Return whether it has all legacy capabilities that an entry of ld.so.cache asks for."""
        known = _TLS
        for name in self.legacy:
            known |= _LEGACY_BITS.get(name, 0)
        return bool(self.legacy) and hwcap & ~known == 0


def read_processor(abi: Abi) -> Processor:
    """Return the capabilities of this machine's processor for code of an ABI.

    Code of another architecture is looked at, not run here: nothing is known of the processor that will run it.
    """
    platform = _NAMES.get(abi.machine, "")
    if os.uname().machine not in _HOSTS.get(abi.machine, ()):
        return Processor(platform)
    vendor, features = _read_features()
    if abi.machine == 183:
        atomics = ("atomics",) if "atomics" in features else ()
        return Processor(platform, legacy=("tls", platform, *atomics))
    if abi.bits == 64:
        return _x86_64(vendor, features)
    return Processor(platform, legacy=("tls", platform, "sse2"))


def _x86_64(vendor: str, features: frozenset[str]) -> Processor:
    named: tuple[str, ...] = ()
    for level, asked in _LEVELS.items():
        if not features.issuperset(asked.split()):
            break
        named = (level, *named)
    platform, wide = "x86_64", False
    if vendor == "GenuineIntel":
        wide = features >= _AVX512_1 and "avx512er" not in features
        if features >= _XEON_PHI:
            platform = "xeon_phi"
        elif features >= _HASWELL:
            platform = "haswell"
    return Processor(platform, named, ("tls", platform, *(("avx512_1",) if wide else ()), "x86_64"))


def _read_features() -> tuple[str, frozenset[str]]:
    """Return the vendor and the feature words of the first processor."""
    vendor, features = "", frozenset[str]()
    try:
        with open(_CPUINFO, "rb", buffering=0) as file:
            text = file.read(_CPUINFO_LIMIT).decode("ascii", "replace")
    except OSError:
        return vendor, features
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "vendor_id":
            vendor = value.strip()
        elif key.strip() in ("flags", "Features"):
            return vendor, frozenset(value.split())
    return vendor, features
