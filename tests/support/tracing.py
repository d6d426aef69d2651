"""Asks the host's dynamic loader what it loads for a file, object by object and request by request.

``LD_TRACE_LOADED_OBJECTS`` lists the objects in load order; ``LD_DEBUG=files,libs`` tells which object asked for which
name, and which files were tried. Both together are the whole load, as the loader itself sees it.
"""

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from safe_uninstall.analysis.loader import Loader
from safe_uninstall.analysis.trace import Trace
from safe_uninstall.model.linkage import How

_TIMEOUT = 60
"""Seconds for one trace; the slowest of a large environment takes a tenth of one."""
_OBJECT = re.compile(r"^\t(?P<name>.+?)(?: => (?P<path>.+?))?(?: \(0x[0-9a-f]+\))?$")
_DEBUG = re.compile(r"^ *[0-9]+:\t *(?P<text>.*?) *$")
_REQUEST = re.compile(r"^file=(?P<name>.*) \[\d+\];  (?:needed|dynamically loaded) by (?P<consumer>.*) \[\d+\]$")
_OTHER_OBJECTS = ("linux-vdso", "linux-gate", "ld-linux", "ld64.so")
"""The kernel's and the loader itself, which are in every process."""


@dataclass(frozen=True, slots=True)
class Request:
    """One name that the loader had to search for, since nothing loaded bore it."""

    consumer: str
    """Real path of the object that needs it."""
    name: str
    provider: str | None
    """Real path of what was found."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the loader brings in for one file, the loader itself and the kernel's object left out."""

    objects: tuple[tuple[str, str], ...] = ()
    """In load order, the root left out: the name each was asked for by, and its real path."""
    missing: tuple[str, ...] = ()
    """Names that nothing met, sorted, each as often as it was searched for."""
    requests: tuple[Request, ...] = ()
    """Sorted by consumer and name."""
    refused: str | None = None
    """Why the loader does not load the file at all, in its words."""


def dynamic_loader() -> str:
    """Return the path of the host's dynamic loader."""
    for candidate in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"):
        if os.path.exists(candidate):
            return candidate
    raise AssertionError("no dynamic loader known for this machine")


def is_of_every_process(path: str) -> bool:
    """Return whether a name or path is that of the loader itself or of the kernel's object."""
    return os.path.basename(path).startswith(_OTHER_OBJECTS)


def trace(path: Path | str, *, library_path: str | None = None, directory: Path | None = None) -> Load:
    """Let the host's loader trace one file as the main program of a process.

    Args:
        path: absolute.
        library_path: LD_LIBRARY_PATH.
        directory: where the process runs.
    """
    variables = {key: value for key, value in os.environ.items() if not key.startswith("LD_")}
    variables |= {"LD_TRACE_LOADED_OBJECTS": "1", "LD_DEBUG": "files,libs"}
    if library_path is not None:
        variables["LD_LIBRARY_PATH"] = library_path
    done = subprocess.run(
        [dynamic_loader(), str(path)],
        env=variables,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=_TIMEOUT,
        check=False,
    )
    return parse(done.stdout, done.stderr, os.path.realpath(path), str(directory or os.getcwd()))


def trace_all(paths: Iterable[str], *, workers: int = 2) -> Mapping[str, Load]:
    """Trace many files, each as a program of its own."""
    ordered = list(paths)
    with ThreadPoolExecutor(workers) as pool:
        return dict(zip(ordered, pool.map(trace, ordered), strict=True))


def parse(output: str, debug: str, root: str, directory: str) -> Load:
    """Read what a traced process printed.

    Args:
        output: its standard output: the objects.
        debug: its standard error: the requests, and why it failed.
        root: the traced file.
        directory: where the process ran.
    """
    refused = next((line for line in debug.splitlines() if "error while loading shared libraries" in line), None)
    if refused is not None or "statically linked" in output:
        return Load(refused=refused or "statically linked")
    objects: list[tuple[str, str]] = []
    missing: list[str] = []
    for name, path in _objects(output):
        if path is None:
            missing.append(name)
        elif not is_of_every_process(name):
            objects.append((name, os.path.realpath(os.path.join(directory, path))))
    asked = _requests(debug, directory, root, objects, missing)
    requests = sorted((item for item in asked if not is_of_every_process(item.name)), key=_key)
    return Load(tuple(objects), _missing(requests), tuple(requests))


def _key(request: Request) -> tuple[str, str, str]:
    return request.consumer, request.name, request.provider or ""


def _missing(requests: Iterable[Request]) -> tuple[str, ...]:
    return tuple(sorted(request.name for request in requests if request.provider is None))


def _objects(output: str) -> Iterator[tuple[str, str | None]]:
    for line in output.splitlines():
        match = _OBJECT.match(line)
        if match is not None:
            path = match["path"] or match["name"]
            yield match["name"], None if path == "not found" else path


def _requests(
    debug: str, directory: str, root: str, objects: Iterable[tuple[str, str]], missing: Iterable[str]
) -> Iterator[Request]:
    """Yield the requests of a trace in order.

    A name that several objects ask for is found for all of them once it is found for one, so that those for which it is
    missing come first. What is found is the file tried last, or for a path the path itself.
    """
    failing = Counter(missing)
    asked: list[tuple[str, str]] = []
    tried: list[str] = []
    for line in debug.splitlines():
        match = _DEBUG.match(line)
        text = match["text"] if match is not None else ""
        request = _REQUEST.match(text)
        if request is not None:
            asked.append((os.path.realpath(os.path.join(directory, request["consumer"])), request["name"]))
            tried.append(request["name"])
        elif text.startswith("trying file=") and tried:
            tried[-1] = text.removeprefix("trying file=")
    files: dict[tuple[int, int], str] = {}
    for path in (root, *(path for _, path in objects)):
        files.setdefault(_identity(path), path)
    for (consumer, name), path in zip(asked, tried, strict=True):
        failing[name] -= 1
        place = os.path.realpath(os.path.join(directory, path))
        if failing[name] >= 0 or not os.path.exists(place):
            # What the main program filters is not in the list, there or not.
            yield Request(consumer, name, None)
        else:
            # Of several names of one file, that by which it was loaded counts.
            yield Request(consumer, name, files.get(_identity(place), place))


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def simulated(loader: Loader, found: Trace) -> Load:
    """Return what our loader brings in for a root, in the same words.

    A traced process says of what DT_AUXILIARY names that it is not found, though a process that runs does not mind.
    """
    requests = tuple(
        Request(
            need.consumer.real_path,
            loader.wanted(need),
            None if need.provider is None else need.provider.real_path,
        )
        for need in (*found.needs, *found.absent)
        if need.how is not How.LOADED and not is_of_every_process(need.name)
    )
    asked: dict[int, str] = {}
    for need in found.needs:
        if need.provider is not None:
            asked.setdefault(id(need.provider), loader.wanted(need))
    # What the root filters comes before it, where the host's loader does not list it.
    after = found.objects[found.objects.index(found.root) + 1 :] if found.objects else ()
    return Load(
        objects=tuple((asked[id(item)], item.real_path) for item in after if not is_of_every_process(item.real_path)),
        missing=_missing(requests),
        requests=tuple(sorted(requests, key=_key)),
    )
