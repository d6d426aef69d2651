"""Reads mutated ELF files with all our readers: no crash, no hang, bounded memory, and pyelftools agrees.

Mutations are structured: fields of headers, of PT_DYNAMIC and of the tables that it points to get values at which
readers fail; ranges are cut, inserted, deleted and copied. The same seed gives the same files.
"""

import argparse
import os
import random
import resource
import struct
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from safe_uninstall.scan.elf_data import names_in_data
from safe_uninstall.scan.elf_file import ElfError, open_elf
from safe_uninstall.scan.elf_symbols import read_dlopen_notes, read_symbols
from tests.support.elf_oracle import is_ascii, oracle_facts, our_facts
from tests.support.elf_writer import ET_EXEC, Note, elf_bytes

LONGEST = 0.1
"""Seconds of processor time for one file; of several readings the fastest, since other programs run too."""
MOST_MEMORY = 50 << 20
"""Bytes for one file."""
_LARGEST = 300_000
"""Bytes of a real file that is taken as a seed."""
_EDGES = (0, 1, 2, 3, 7, 8, 0x7F, 0xFF, 0xFFFE, 0xFFFF, 0x10000, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1)


_DEVICES = frozenset({190, 224, 247})
"""EM_CUDA, EM_AMDGPU, EM_BPF: code of devices, of which our reader tells nothing dynamic, since no loader takes it."""


class Seed(NamedTuple):
    """A valid file, and where in it the fields are that readers go by."""

    data: bytes
    places: tuple[tuple[int, int], ...]
    """Start and end of the headers, of the dynamic segment, and of the tables that it points to."""


class Failure(Exception):
    """What one file made a reader do."""


def built() -> Iterable[bytes]:
    """Yield small files of every layout, with all that the readers read."""
    for bits, little_endian, machine in (
        (64, True, 62),
        (64, False, 21),
        (32, True, 3),
        (32, False, 8),
        (64, True, 183),
    ):
        for hash_style in ("sysv", "gnu", "none"):
            yield elf_bytes(
                bits=bits,
                little_endian=little_endian,
                machine=machine,
                soname="libx.so.1",
                needed=("liba.so.1", "libb.so"),
                runpath="$ORIGIN/../lib",
                exports=("f@X_1", "g"),
                imports=("h@A_1", "i"),
                versions_defined=("X_1", "X_2"),
                versions_needed={"liba.so.1": ("A_1", "A_2?"), "libb.so": ("B_1",)},
                data=b"libplugin.so\0",
                notes=(Note("FDO", 0x407C0C0A, b'[{"soname":["libz.so.1"],"priority":"required"}]'),),
                hash_style=hash_style,
            )
    yield elf_bytes(elf_type=ET_EXEC, interpreter="/lib64/ld-linux-x86-64.so.2", needed=("libc.so.6",))


def real(directories: Iterable[str]) -> Iterable[bytes]:
    """Yield small real ELF files below directories, in sorted order."""
    for directory in directories:
        for parent, names, files in os.walk(directory):
            names.sort()
            for name in sorted(files):
                path = Path(parent, name)
                if ".so" in name and path.is_file() and path.stat().st_size <= _LARGEST:
                    data = path.read_bytes()
                    if data.startswith(b"\x7fELF"):
                        yield without_sections(data)


def without_sections(data: bytes) -> bytes:
    """Return a file whose header names no section headers: pyelftools goes by them where there are any."""
    offset, size, numbers = (40, 8, 60) if data[4] == 2 else (32, 4, 48)
    data = data[:offset] + bytes(size) + data[offset + size :]
    return data[:numbers] + bytes(4) + data[numbers + 4 :]


def seed(data: bytes, location: Path) -> Seed:
    """Find the fields of a file by our own reader."""
    location.write_bytes(data)
    places = [(0, 64), (0, 1024)]
    file = open_elf(str(location))
    assert file is not None
    with file:
        dynamic = file.dynamic()
        if dynamic is not None:
            places += [(dynamic.offset, dynamic.offset + dynamic.file_size)] * 2
            for _, value in file.entries(dynamic):
                place = file.locate(value)
                if place is not None:
                    places.append((place[0], min(place[0] + 256, place[1])))
        places += [(item.offset, item.offset + item.file_size) for item in file.segments if item.kind == 4]
    return Seed(data, tuple((start, min(end, len(data))) for start, end in places if start < len(data)))


def mutate(origin: Seed, choose: random.Random) -> bytes:
    """Return a file with one to four changes."""
    data = origin.data
    for _ in range(choose.randint(1, 4)):
        start, end = choose.choice(origin.places) if choose.random() < 0.8 else (0, len(data))
        width = choose.choice((1, 2, 4, 8))
        at = min(choose.randrange(start, max(end, start + 1)), len(data)) // width * width
        kind = choose.choices(("set", "cut", "insert", "delete", "copy", "flip"), (8, 1, 1, 1, 2, 3))[0]
        if kind == "set":
            value = choose.choice((choose.choice(_EDGES), choose.randrange(0x50000), choose.getrandbits(64)))
            little = len(data) < 6 or data[5] != 2
            part = struct.pack(("<" if little else ">") + "Q", value)
            part = part[:width] if little else part[-width:]
            data = data[:at] + part[: max(len(data) - at, 0)] + data[at + width :]
        elif kind == "flip" and at < len(data):
            data = data[:at] + bytes([data[at] ^ 1 << choose.randrange(8)]) + data[at + 1 :]
        elif kind == "cut":
            data = data[: choose.randrange(len(data) + 1)]
        elif kind == "insert":
            data = data[:at] + bytes(choose.randrange(64)) + data[at:]
        elif kind == "delete":
            data = data[:at] + data[at + width :]
        elif kind == "copy":
            source = choose.randrange(len(data) + 1)
            data = data[:at] + data[source : source + 56] + data[at + 56 :]
    return data


def read_all(location: str) -> str:
    """Read a file with every reader, and return how it went: ``read``, ``refused``, ``none``.

    Raises:
        Failure: pyelftools says something else.
    """
    read_symbols(location)
    read_dlopen_notes(location)
    names_in_data(location, frozenset({"libplugin.so", "libnothing.so"}))
    try:
        ours = our_facts(location)
    except ElfError:
        return "refused"
    return "none" if ours is None else "read"


def agrees(location: str) -> bool:
    """Return whether pyelftools read the file too; what it says is then the same.

    Raises:
        Failure: it is not.
    """
    ours = our_facts(location)
    if ours is None or ours.elf_type not in (2, 3) or ours.machine in _DEVICES or not is_ascii(ours):
        return False
    try:
        theirs = oracle_facts(location)
    except Exception:
        # It reads on into section headers, which may be anything, and says so in many ways.
        return False
    if ours != theirs:
        raise Failure(f"pyelftools disagrees: {ours} / {theirs}")
    return True


def run(count: int, number: int, seeds: list[Seed], location: Path, *, measure_every: int = 1) -> Counter[str]:
    """Read ``count`` mutated files, and return how many went which way.

    Args:
        count: how many.
        number: the seed of all choices.
        seeds: valid files.
        location: where each is written.
        measure_every: how often the memory of a reading is traced, which takes long.

    Raises:
        Failure: with the number of the file.
    """
    choose = random.Random(number)
    tally: Counter[str] = Counter()
    for index in range(count):
        location.write_bytes(mutate(choose.choice(seeds), choose))
        try:
            began = time.process_time()
            outcome = read_all(str(location))
            elapsed = time.process_time() - began
            if elapsed > LONGEST:
                began = time.process_time()
                read_all(str(location))
                elapsed = min(elapsed, time.process_time() - began)
            if elapsed > LONGEST:
                raise Failure(f"it took {elapsed:.2f} s")
            if index % measure_every == 0:
                tracemalloc.start()
                read_all(str(location))
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                tally["memory traced"] += 1
                if peak > MOST_MEMORY:
                    raise Failure(f"it took {peak >> 20} MiB")
            if outcome == "read" and agrees(str(location)):
                tally["agreed with pyelftools"] += 1
        except Exception as error:
            kept = Path(tempfile.gettempdir(), f"elf-failed-{number}-{index}")
            kept.write_bytes(location.read_bytes())
            raise Failure(f"file {index} of seed {number}, kept as {kept}: {type(error).__name__}: {error}") from error
        tally[outcome] += 1
        tally["slowest, microseconds"] = max(tally["slowest, microseconds"], int(elapsed * 1e6))
    return tally


def main() -> None:
    """Run, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--measure-every", type=int, default=10, help="trace memory of every Nth file")
    parser.add_argument("directories", nargs="*", default=[sys.prefix], help="where real ELF files are taken from")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        location = Path(directory, "libx.so")
        seeds = [seed(data, location) for data in (*built(), *list(real(options.directories))[:60])]
        began = time.monotonic()
        tally = run(options.count, options.seed, seeds, location, measure_every=options.measure_every)
        print(f"{options.count} files mutated from {len(seeds)}, seed {options.seed}: {time.monotonic() - began:.0f} s")
        for what, number in sorted(tally.items()):
            print(f"  {number:>8} {what}")
        print(f"  {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10:>8} MiB was the whole process at most")


if __name__ == "__main__":
    main()
