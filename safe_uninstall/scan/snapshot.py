"""Takes a snapshot: every fact about an environment that ``analysis`` works on."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.elf import ET_DYN, ET_EXEC, Abi, ElfObject
from safe_uninstall.model.environment import Environment, EnvironmentKind
from safe_uninstall.model.errors import UsageError
from safe_uninstall.model.filesystem import DIRECTORY, FILE, Entry
from safe_uninstall.model.jit_caches import NoCaches
from safe_uninstall.model.processes import NoProcesses
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.scan.disk import DiskFileSystem
from safe_uninstall.scan.distributions import read_distributions
from safe_uninstall.scan.elf import ElfError, read_elf
from safe_uninstall.scan.evidence import DiskEvidence
from safe_uninstall.scan.jit_caches import UserCaches
from safe_uninstall.scan.machine import for_its_machine
from safe_uninstall.scan.processes import ProcTable
from safe_uninstall.scan.system import read_system_libraries

Progress = Callable[[str, int, int | None], None]
"""Told the stage, how much of it is done, and how much there is in all where that is known."""

TRANSACTION_DIRECTORY = ".safe-uninstall"
"""Where the tool itself keeps what it took away, at the root of the environment: not part of it."""

_TEXT_SUFFIXES = frozenset(
    f".{suffix}"
    for line in (
        "py pyc pyi pyx pxd",  # the importer and the Cython compiler
        "c cc cpp cu cuh h hpp",  # compilers
        "cmake css html js json md png qml rst svg txt",
    )
    for suffix in line.split()
)
"""Names that are not opened to look for the ELF magic: nobody gives a library such a name, since what reads files of
these names could not read it. They are most of an environment (20,700 of 21,000 files beside torch). Whatever else is
there is opened: libraries end in ``.so``, ``.9``, ``.dll``, ``.node``, ``.bin`` or nothing at all."""

_WHOLE = frozenset({EnvironmentKind.VENV, EnvironmentKind.TARGET})
"""Kinds whose prefix holds the environment and nothing else."""

_PROGRESS_STEP = 5000
"""Files between two reports of progress."""


def scan(
    environment: Environment,
    *,
    variables: Mapping[str, str],
    progress: Progress | None = None,
    consumers_in: Iterable[str] = (),
) -> Snapshot:
    """Read an environment; nothing in it is imported or run, and nothing is changed.

    Args:
        environment: as ``find_environment`` describes it.
        variables: environment variables of the process; LD_LIBRARY_PATH is recorded, and others say where caches are.
        progress: told how far the scan is.
        consumers_in: absolute paths of directories outside the environment, in the same tree, whose ELF files may need
            its libraries.

    Returns:
        All facts. What cannot be read is in ``unreadable`` and ``problems``; nothing is dropped in silence. The
        environment in it is for the machine that its wheels are for.

    Raises:
        UsageError: one of ``consumers_in`` is no directory.
    """
    root = environment.root
    files = DiskFileSystem(root)
    if progress is not None:
        progress("distributions", 0, None)
    # The walk comes first: it tells which directories are canonical, and RECORDs name all of them.
    visited: set[str] = set()
    candidates = list(_walk(environment, files, visited))
    distributions, leftovers, problems = read_distributions(environment, files)
    if environment.kind not in _WHOLE:
        candidates += _claimed_elsewhere(distributions, visited, files)
    objects, unreadable = _read_objects(candidates, files, progress)
    environment = for_its_machine(environment, objects, distributions, files)
    outside: dict[str, ElfObject] = {}
    for directory in consumers_in:
        found, failed = _read_objects(_below(directory, files, objects), files, progress)
        outside.update(found)
        unreadable.update(failed)
    forbidden = [f"cannot list {path}: {reason}" for path, reason in sorted(files.forbidden.items())]
    interpreter = None if environment.interpreter_path is None else files.object(environment.interpreter_path)
    return Snapshot(
        environment=environment,
        distributions=distributions,
        objects=objects,
        outside=outside,
        unreadable=unreadable,
        leftovers=leftovers,
        system=read_system_libraries(
            _abis(environment, (*objects.values(), *outside.values(), interpreter)),
            root,
            interpreters=_interpreters(interpreter),
        ),
        files=files,
        evidence=DiskEvidence(files),
        # What runs here sees the tree under other paths where it is mounted somewhere else.
        processes=ProcTable() if not environment.is_mounted else NoProcesses(),
        caches=UserCaches(variables) if not environment.is_mounted else NoCaches(),
        library_path=_library_path(variables),
        problems=tuple(dict.fromkeys((*problems, *forbidden))),
    )


def _walk(environment: Environment, files: DiskFileSystem, visited: set[str]) -> Iterator[tuple[str, Entry]]:
    """Yield every file and link that may be an ELF file, each once; the directories seen are added to ``visited``."""
    sites = frozenset((*environment.site_packages, *environment.visible_site_packages))
    own = f"{environment.prefix}/{TRANSACTION_DIRECTORY}"

    def prune(directory: str, names: Mapping[str, Entry]) -> bool:
        if directory in visited or directory == own:
            return True
        if "/~" in directory and _is_leftover(directory, sites):
            return True
        # Another environment inside this one has its own tool runs; its objects are nobody's here.
        return directory not in sites and ("pyvenv.cfg" in names or names.get("conda-meta") is DIRECTORY)

    for root in _roots(environment):
        if root in visited:
            continue
        for directory, names in files.walk_directories(root, prune):
            visited.add(directory)
            in_site = directory in sites
            for name, entry in names.items():
                if entry is DIRECTORY or name[name.rfind(".") :] in _TEXT_SUFFIXES:
                    continue
                if not (in_site and name.startswith("~")):
                    yield f"{directory}/{name}", entry


def _roots(environment: Environment) -> tuple[str, ...]:
    """Return the directories to walk: all of a prefix that is the environment's alone, else where Python files go."""
    prefix = environment.prefix
    sites = (*environment.site_packages, *environment.visible_site_packages)
    if environment.kind in _WHOLE:
        return (prefix, *sites)
    if environment.kind is EnvironmentKind.CONDA:
        return (f"{prefix}/lib", f"{prefix}/bin", *sites)
    return (*sites, environment.scripts)


def _is_leftover(directory: str, sites: frozenset[str]) -> bool:
    """Return whether a directory is what a failed pip run left of a package: never a provider."""
    parent, _, name = directory.rpartition("/")
    return name.startswith("~") and parent in sites


def _claimed_elsewhere(
    distributions: Iterable[Distribution], visited: set[str], files: DiskFileSystem
) -> Iterator[tuple[str, Entry]]:
    """Yield the claims that lie outside of every directory walked."""
    seen: set[str] = set()
    for distribution in distributions:
        for row in distribution.record.rows:
            directory, _, name = row.path.rpartition("/")
            if directory in visited or row.path in seen or name[name.rfind(".") :] in _TEXT_SUFFIXES:
                continue
            seen.add(row.path)
            entry = files.entry(directory, name)
            if entry is not None and entry is not DIRECTORY:
                yield row.path, entry


def _below(directory: str, files: DiskFileSystem, known: Mapping[str, ElfObject]) -> Iterator[tuple[str, Entry]]:
    """Yield what may be an ELF file below a directory that the user names, the environment's own objects left out."""
    top = files.real_directory(directory)
    if top is None:
        raise UsageError(
            f"--consumers-in: there is no directory `{directory}`",
            help=("name one that holds libraries which need some of the environment's",),
        )
    for parent, names in files.walk_directories(top, lambda path, _: path.endswith(f"/{TRANSACTION_DIRECTORY}")):
        head = "" if parent == "/" else parent
        for name, entry in names.items():
            path = f"{head}/{name}"
            if entry is not DIRECTORY and path not in known and name[name.rfind(".") :] not in _TEXT_SUFFIXES:
                yield path, entry


def _read_objects(
    candidates: Iterable[tuple[str, Entry]], files: DiskFileSystem, progress: Progress | None
) -> tuple[dict[str, ElfObject], dict[str, str]]:
    """Return the ELF files among ``candidates``, and those that could not be read, both by path in sorted order."""
    objects: dict[str, ElfObject] = {}
    unreadable: dict[str, str] = {}
    for done, (path, entry) in enumerate(candidates):
        if progress is not None and done % _PROGRESS_STEP == 0:
            progress("files", done, None)
        # A dangling link is absent, wherever uv's cache went that it led to.
        real = path if entry is FILE else files.real_path(path)
        location = None if real is None else files.location(real)
        if location is None:
            continue
        try:
            found = read_elf(path, real_path=real, location=location)
        except ElfError as error:
            unreadable[path] = error.reason
            continue
        if found is not None:
            objects[path] = found
            if real == path:
                files.remember(path, found)
    return dict(sorted(objects.items())), dict(sorted(unreadable.items()))


def _abis(environment: Environment, objects: Iterable[ElfObject | None]) -> set[Abi]:
    """Return the ABIs that something could be loaded for."""
    found = {
        item.abi for item in objects if item is not None and item.is_dynamic and item.elf_type in (ET_EXEC, ET_DYN)
    }
    return found if environment.abi is None else found | {environment.abi}


def _interpreters(interpreter: ElfObject | None) -> dict[Abi, str]:
    """Return the dynamic loader that the environment's Python asks for, by its ABI."""
    if interpreter is None or interpreter.interpreter is None:
        return {}
    return {interpreter.abi: interpreter.interpreter}


def _library_path(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the entries of LD_LIBRARY_PATH; colons and semicolons separate them (ld.so(8))."""
    value = variables.get("LD_LIBRARY_PATH", "")
    return tuple(value.replace(";", ":").split(":")) if value else ()
