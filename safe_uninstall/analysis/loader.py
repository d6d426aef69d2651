"""glibc's dynamic loader, simulated: which file satisfies each DT_NEEDED entry, and how it is found.

The rules are those of ``_dl_map_object``, ``_dl_map_object_deps`` and ``decompose_rpath`` in glibc's ``elf/dl-load.c``
and ``elf/dl-deps.c``. Nothing is opened here: names and ELF headers come from a ``View``.
"""

import posixpath
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from safe_uninstall.analysis.paths import LOOP, View
from safe_uninstall.analysis.search import SearchPath, SearchPaths
from safe_uninstall.model.elf import DF_1_NODEFLIB, Abi, ElfObject, FileIdentity
from safe_uninstall.model.linkage import Binding, Closure, How
from safe_uninstall.model.system import SystemLibraries

_LOADABLE = frozenset({2, 3})
"""``e_type``: ET_EXEC and ET_DYN."""

CACHE = "ld.so.cache"
"""How ``Binding.searched`` names the loader's cache."""


@dataclass(slots=True, eq=False)
class Loaded:
    """An object in a closure; mutable, and private to one trace."""

    path: str
    """The path it was opened by, its directory resolved."""
    real_path: str
    object: ElfObject
    loader: "Loaded | None"
    """The object that first needed it (glibc's ``l_loader``)."""
    own_rpath: SearchPath | None
    runpath: SearchPath | None
    order: "list[SearchPath | None] | None" = None
    """Search paths for its needs, in order; None stands for ld.so.cache. Made when it first needs something."""
    found: "dict[str, _Found | None] | None" = None
    """Memo of the searches along ``order``, shared by all objects that search alike."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One need of one object in a trace; a ``Binding`` before anybody asks for words."""

    consumer: Loaded
    name: str
    provider: Loaded | None
    how: How
    via: str | None


@dataclass(frozen=True, slots=True)
class Trace:
    """What loading one root brings in: objects in load order, and every need of each."""

    root: Loaded
    objects: tuple[Loaded, ...]
    needs: tuple[Bound, ...]


_Hit: TypeAlias = tuple[str, str, ElfObject | None]


class _Found:
    """Where one search ended: a provider, or a file that makes the loader give up."""

    __slots__ = ("how", "object", "path", "real_path", "via")

    def __init__(self, path: str, real_path: str, object: ElfObject | None, how: How, via: str | None) -> None:
        self.path = path
        self.real_path = real_path
        self.object = object
        self.how = how
        self.via = via


class Loader:
    """The dynamic loader over one view. Closures are independent of each other; searches are memoised across them."""

    def __init__(
        self,
        view: View,
        system: SystemLibraries,
        *,
        main: ElfObject | None = None,
        library_path: tuple[str, ...] = (),
        working_directory: str | None = None,
    ) -> None:
        """Prepare to load over ``view``.

        Args:
            view: the files.
            system: ld.so.cache, default directories and hardware capabilities of the host.
            main: the program that opens the roots (the interpreter). Its closure is loaded before, and its DT_RPATH is
                searched for what the roots need. None: each root is the main program of its own process.
            library_path: LD_LIBRARY_PATH, entry by entry.
            working_directory: what empty and relative search path entries are relative to; None: they find nothing,
                since nobody knows where a process will be started.
        """
        self._view = view
        self._system = system
        self._paths = SearchPaths(view, system, working_directory)
        self._library_path = library_path
        self._searches: dict[tuple[int, ...], dict[str, _Found | None]] = {}
        # Its own search asks for the main program: while that is being loaded, there is none above it.
        self._main: Trace | None = None
        if main is not None:
            self._main = self._trace_main(main)

    def trace(self, root: ElfObject, *, depth: int | None = None) -> Trace:
        """Load ``root`` and, breadth first, all it needs.

        Args:
            root: the object to open, by ``root.path``.
            depth: 1 to bind the root's own needs only; None for the whole closure.
        """
        return self._load(root, self._main, depth)

    def bindings(self, root: ElfObject) -> tuple[Binding, ...]:
        """Return the bindings of the root's own needs, in the order of DT_NEEDED."""
        return tuple(self.binding(need) for need in self.trace(root, depth=1).needs)

    def closure(self, root: ElfObject) -> Closure:
        """Return all that loading ``root`` brings in; what the main program loaded before is not listed."""
        trace = self.trace(root)
        return Closure(
            root=root.path,
            objects=tuple(item.path for item in trace.objects),
            bindings=tuple(self.binding(need) for need in trace.needs),
        )

    def binding(self, need: Bound) -> Binding:
        """Put a need of a trace into words: searches again, to name the directories tried in vain."""
        searched: tuple[str, ...] = ()
        if need.how not in (How.LOADED, How.ABSOLUTE):
            searched = self.searched(need)
        return Binding(
            consumer=need.consumer.path,
            name=need.name,
            provider=None if need.provider is None else need.provider.path,
            how=need.how,
            via=need.via,
            searched=searched,
        )

    def searched(self, need: Bound) -> tuple[str, ...]:
        """Return the directories searched for a need before it was found, or all of them when it was not."""
        tried: list[str] = []
        for path in self._search_order(need.consumer):
            if path is None:
                if need.how is How.CACHE:
                    break
                tried.append(CACHE)
                continue
            for directory in path.directories:
                found = self._look_in(directory.path, need.name, need.consumer.object.abi)
                if isinstance(found, tuple):
                    return tuple(dict.fromkeys(tried))
                tried.append(directory.path)
                if isinstance(found, str):
                    break
        return tuple(dict.fromkeys(tried))

    def opened(self, trace: Trace, caller: Loaded, name: str) -> str | None:
        """Return the path of what ``dlopen(name)`` gets when an object of a trace calls it; None when it fails.

        What that load, or the main program's, has brought in under the name is it; else the caller's own search
        decides (glibc ``elf/dl-open.c``, ``dl_open_worker_begin``).

        Args:
            trace: of this loader.
            caller: one of its objects.
            name: without a slash.
        """
        return self._reused(trace, name) or self._path_of(caller, name)

    @property
    def main_objects(self) -> tuple[Loaded, ...]:
        """What the main program has loaded before; all that it opens sees the symbols of these."""
        return () if self._main is None else self._main.objects

    def opened_by_python(self, name: str) -> str | None:
        """Return the path of what ``ctypes`` gets in the main program, the interpreter; None when there is none.

        ``ctypes`` itself has no search paths, but inherits DT_RPATH as any extension module does.
        """
        if self._main is None:
            return None
        caller = _caller(self._main)
        plain = replace(caller.object, rpath=None, runpath=None)
        module = self._opened(caller.path, caller.real_path, plain, caller)
        return self._reused(self._main, name) or self._path_of(module, name)

    def _reused(self, trace: Trace, name: str) -> str | None:
        """Return the path of what is loaded already under a name."""
        for loaded in (trace,) if self._main is None else (self._main, trace):
            for item in loaded.objects:
                if item.object.soname == name:
                    return item.path
            for need in loaded.needs:
                if need.name == name and need.provider is not None:
                    return need.provider.path
        return None

    def _path_of(self, consumer: Loaded, name: str) -> str | None:
        found = self._find(consumer, name)
        return None if found is None or found.object is None else found.path

    def _trace_main(self, main: ElfObject) -> Trace:
        return self._load(main, None, None)

    def _load(self, root: ElfObject, before: Trace | None, depth: int | None) -> Trace:
        # A root opened by a running program has that program's caller of dlopen as its loader: the object
        # that holds the interpreter (glibc elf/dl-open.c, dl_open_worker_begin: call_map).
        caller = None if before is None else _caller(before)
        names: dict[str, Loaded] = {}
        files: dict[FileIdentity, Loaded] = {}
        if before is not None:
            for earlier in before.objects:
                _register(earlier, names, files)
            for need in before.needs:
                if need.provider is not None:
                    names.setdefault(need.name, need.provider)
            opened = files.get(root.identity)
            if opened is not None:
                return Trace(opened, (), ())
        first = self._opened(root.path, root.real_path, root, caller)
        self._register_dynamic_loader(first, names, files)
        _register(first, names, files)
        objects = [first]
        needs: list[Bound] = []
        position = 0
        while position < len(objects) and (depth is None or position < depth):
            consumer = objects[position]
            position += 1
            for name in consumer.object.needed:
                provider = names.get(name)
                if provider is not None:
                    needs.append(Bound(consumer, name, provider, How.LOADED, None))
                    continue
                found = self._find(consumer, name)
                if found is None or found.object is None:
                    needs.append(Bound(consumer, name, None, How.MISSING, None))
                    continue
                provider = files.get(found.object.identity)
                if provider is None:
                    provider = self._opened(found.path, found.real_path, found.object, consumer)
                    objects.append(provider)
                    _register(provider, names, files)
                names.setdefault(name, provider)
                needs.append(Bound(consumer, name, provider, found.how, found.via))
        return Trace(first, tuple(objects), tuple(needs))

    def _opened(self, path: str, real_path: str, object: ElfObject, loader: Loaded | None) -> Loaded:
        origin = posixpath.dirname(path)
        # glibc ignores DT_RPATH where there is a DT_RUNPATH (elf/get-dynamic-info.h).
        rpath = object.rpath if object.runpath is None else None
        return Loaded(
            path=path,
            real_path=real_path,
            object=object,
            loader=loader,
            own_rpath=self._paths.expand(rpath, origin, object.abi, How.RPATH) if rpath else None,
            runpath=self._paths.expand(object.runpath, origin, object.abi, How.RUNPATH) if object.runpath else None,
        )

    def _register_dynamic_loader(
        self, root: Loaded, names: dict[str, Loaded], files: dict[FileIdentity, Loaded]
    ) -> None:
        """The dynamic loader is itself in every process, so a need of it is always met by the running one."""
        path = root.object.interpreter
        if path is None or (real := self._view.real_path(path)) is None:
            return
        found = self._view.object(real)
        if found is not None and found.abi == root.object.abi and found.identity not in files:
            _register(self._opened(path, real, found, None), names, files)

    def _search_order(self, consumer: Loaded) -> list[SearchPath | None]:
        """Return the search paths for the needs of ``consumer``, in order; None stands for ld.so.cache."""
        order: list[SearchPath | None] = []
        if consumer.object.runpath is None:
            # The chain ends at the main program, whose DT_RPATH is thereby the last.
            ancestor: Loaded | None = consumer
            while ancestor is not None:
                if ancestor.own_rpath is not None:
                    order.append(ancestor.own_rpath)
                ancestor = ancestor.loader
        abi = consumer.object.abi
        if self._library_path:
            main_program = self._main.root if self._main is not None else _outermost(consumer)
            order.append(self._paths.library_path(self._library_path, posixpath.dirname(main_program.path), abi))
        if consumer.runpath is not None:
            order.append(consumer.runpath)
        order.append(None)
        if not consumer.object.flags_1 & DF_1_NODEFLIB:
            order.append(self._paths.defaults(abi))
        return order

    def _find(self, consumer: Loaded, name: str) -> _Found | None:
        if "/" in name:
            return self._open_absolute(consumer, name)
        if consumer.found is None:
            self._prepare_search(consumer)
        assert consumer.order is not None
        assert consumer.found is not None
        if name in consumer.found:
            return consumer.found[name]
        found = consumer.found[name] = self._search(consumer.order, name, consumer.object)
        return found

    def _prepare_search(self, consumer: Loaded) -> None:
        consumer.order = self._search_order(consumer)
        # Search paths are interned per ABI and DF_1_NODEFLIB takes the last one away, so that these numbers say it all.
        numbers = [0 if path is None else path.number + 1 for path in consumer.order]
        key = (self._paths.abi_number(consumer.object.abi), *numbers)
        consumer.found = self._searches.setdefault(key, {})

    def _search(self, order: list[SearchPath | None], name: str, consumer: ElfObject) -> _Found | None:
        abi = consumer.abi
        no_default = bool(consumer.flags_1 & DF_1_NODEFLIB)
        for path in order:
            if path is None:
                found = self._look_in_cache(name, abi, no_default=no_default)
                if found is not None:
                    return found
                continue
            for directory in path.directories:
                hit = self._look_in(directory.path, name, abi)
                if isinstance(hit, str):
                    # Neither ENOENT nor EACCES: this search path ends here, the next one is tried (``open_path``).
                    break
                if hit is not None:
                    return _Found(hit[0], hit[1], hit[2], path.how, directory.written)
        return None

    def _look_in(self, directory: str, name: str, abi: Abi) -> "_Hit | Literal[''] | None":
        """Try one directory, its hardware-capability sub-directories first.

        Returns:
            (path, real path, object), where object is None when the file makes the loader give up: it is there,
            but no ELF file of any kind. None when there is no file, or one of another class or machine, which
            the loader passes over (``open_verify``). ``LOOP`` when opening fails for another reason.
        """
        for place in self._paths.with_capabilities(directory, abi):
            real = self._view.locate(place, name)
            if real is None:
                continue
            if real == LOOP:
                return LOOP
            found = self._view.object(real)
            if found is None:
                return f"{place}/{name}", real, None
            if found.abi == abi:
                # A relocatable object or a core dump is as fatal as a text ("only ET_DYN and ET_EXEC can be loaded").
                return f"{place}/{name}", real, found if found.elf_type in _LOADABLE else None
        return None

    def _look_in_cache(self, name: str, abi: Abi, *, no_default: bool) -> _Found | None:
        wanted = self._system.cache_flags.get(abi)
        capabilities = self._system.hwcaps.get(abi, ())
        for entry in self._system.cache.get(name, ()):
            if entry.flags != wanted:
                continue
            if entry.hwcap is not None and f"glibc-hwcaps/{entry.hwcap}" not in capabilities:
                continue
            if no_default and self._paths.is_default(entry.path, abi):
                return None
            real = self._view.real_path(entry.path)
            found = None if real is None else self._view.object(real)
            # The loader takes the best entry and does not come back for the next one.
            if real is None or found is None or found.abi != abi:
                return None
            directory = self._view.real_directory(posixpath.dirname(entry.path))
            path = entry.path if directory is None else posixpath.join(directory, posixpath.basename(entry.path))
            return _Found(path, real, found, How.CACHE, None)
        return None

    def _open_absolute(self, consumer: Loaded, name: str) -> _Found | None:
        expanded = self._paths.expand_tokens(name, posixpath.dirname(consumer.path), consumer.object.abi)
        path = self._paths.absolute(expanded)
        if path is None:
            return None
        real = self._view.real_path(path)
        found = None if real is None else self._view.object(real)
        if real is None or found is None or found.abi != consumer.object.abi:
            return None
        return _Found(self._view.canonical(path) or path, real, found, How.ABSOLUTE, None)


def _register(item: Loaded, names: dict[str, Loaded], files: dict[FileIdentity, Loaded]) -> None:
    """Let later needs be met by ``item``: by soname, by the path it was opened by, and by file identity."""
    files.setdefault(item.object.identity, item)
    if item.object.soname is not None:
        names.setdefault(item.object.soname, item)
    names.setdefault(item.path, item)


def _caller(main: Trace) -> Loaded:
    """Return the object of a running program that calls dlopen: libpython where there is one, else the program."""
    for item in main.objects:
        if posixpath.basename(item.path).startswith(("libpython", "libpypy")):
            return item
    return main.root


def _outermost(item: Loaded) -> Loaded:
    while item.loader is not None:
        item = item.loader
    return item
