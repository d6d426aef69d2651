"""glibc's dynamic loader, simulated: what a load brings in, and which file satisfies each need of it.

The order of loading is that of ``_dl_map_object_deps`` in glibc's ``elf/dl-deps.c``, and which object bears which name
that of ``_dl_map_object`` in ``elf/dl-load.c``. ``Lookup`` is the search for what no loaded object bears.
"""

import posixpath
from dataclasses import replace

from safe_uninstall.analysis.lookup import Lookup
from safe_uninstall.analysis.paths import View
from safe_uninstall.analysis.trace import Bound, Loaded, Trace
from safe_uninstall.model.elf import ElfObject, FileIdentity, Filter
from safe_uninstall.model.linkage import Binding, Closure, How
from safe_uninstall.model.system import SystemLibraries


class Loader:
    """The dynamic loader over one view. Loads are independent of each other; searches are memoised across them."""

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
        self._lookup = Lookup(view, system, library_path, working_directory)
        self._main: Trace | None = None
        if main is not None:
            self._main = self._load(main, None).trace()

    def trace(self, root: ElfObject) -> Trace:
        """Load ``root``, opened by ``root.path``, and, breadth first, all it needs."""
        return self._load(root, self._main).trace()

    def bindings(self, root: ElfObject) -> tuple[Binding, ...]:
        """Return the bindings of the root's own needs, in the order of DT_NEEDED."""
        return tuple(map(self.binding, self._load(root, self._main).own_needs()))

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
        return Binding(
            consumer=need.consumer.path,
            name=need.name,
            provider=None if need.provider is None else need.provider.path,
            how=need.how,
            via=need.via,
            searched=self.searched(need),
        )

    def searched(self, need: Bound) -> tuple[str, ...]:
        """Return the directories searched for a need before it was found, or all of them when it was not."""
        if need.how in (How.LOADED, How.ABSOLUTE):
            return ()
        return self._lookup.searched(need.consumer, self.wanted(need), need.how)

    def wanted(self, need: Bound) -> str:
        """Return the name of a need as the loader reads it, ``$ORIGIN`` and the like expanded."""
        return self._lookup.expanded(need.consumer, need.name)

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
        module = self._lookup.opened(caller.path, caller.real_path, plain, caller)
        return self._reused(self._main, name) or self._path_of(module, name)

    def _load(self, root: ElfObject, before: Trace | None) -> "_Load":
        return _Load(self._lookup, root, before)

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
        found = self._lookup.find(consumer, name)
        return None if found is None or found.object is None else found.path


class _Load:
    """One load: the lists of glibc's ``_dl_map_object_deps`` while they grow."""

    def __init__(self, lookup: Lookup, root: ElfObject, before: Trace | None) -> None:
        """Open the root and nothing else.

        Args:
            lookup: the searches.
            root: opened by ``root.path``.
            before: what the program has loaded that opens it; None: it is the program.
        """
        self._lookup = lookup
        self._names: dict[str, Loaded] = {}
        self._files: dict[FileIdentity, Loaded] = {}
        self._objects: list[Loaded] = []
        self._needs: list[Bound] = []
        self._absent: list[Bound] = []
        self._is_program = before is None
        if before is not None:
            for earlier in before.objects:
                self._register(earlier)
            for need in before.needs:
                if need.provider is not None:
                    self._names.setdefault(need.name, need.provider)
            opened = self._files.get(root.identity)
            if opened is not None:
                self._root = opened
                return
        # A root opened by a running program has that program's caller of dlopen as its loader: the object
        # that holds the interpreter (glibc elf/dl-open.c, dl_open_worker_begin: call_map).
        self._root = lookup.opened(root.path, root.real_path, root, None if before is None else _caller(before))
        self._objects.append(self._root)
        # The dynamic loader is itself in every process, so a need of it is always met by the running one.
        running = lookup.dynamic_loader(root)
        if running is not None and running.object.identity not in self._files:
            self._register(running)
        self._register(self._root)

    def own_needs(self) -> list[Bound]:
        """Bind the needs of the root alone, DT_NEEDED only."""
        return [self._bind(self._root, name)[0] for name in self._root.object.needed] if self._objects else []

    def trace(self) -> Trace:
        """Load all that the root needs."""
        objects = self._objects
        filters: set[Loaded] = set()
        position = 0
        while position < len(objects):
            consumer = objects[position]
            if not consumer.object.filters:
                for name in consumer.object.needed:
                    need, is_new = self._bind(consumer, name)
                    self._needs.append(need)
                    if is_new and need.provider is not None:
                        objects.append(need.provider)
                position += 1
            elif consumer in filters:
                position += 1
            else:
                # What it filters now stands where it stood itself, and is looked at first.
                filters.add(consumer)
                self._bind_filter(consumer, position)
        return Trace(self._root, tuple(objects), tuple(self._needs), tuple(self._absent))

    def _bind_filter(self, consumer: Loaded, position: int) -> None:
        """Bind all that an object with DT_FILTER or DT_AUXILIARY needs, in the order of its dynamic segment."""
        needed = consumer.object.needed
        start = 0
        for item in (*consumer.object.filters, None):
            end = len(needed) if item is None else item.position
            for name in needed[start:end]:
                need, is_new = self._bind(consumer, name)
                self._needs.append(need)
                if is_new and need.provider is not None:
                    self._objects.append(need.provider)
            start = end
            if item is not None:
                position = self._place_before(consumer, item, position)

    def _place_before(self, consumer: Loaded, item: Filter, position: int) -> int:
        """Load what an object filters and place it before the object, which stands at ``position``; return where."""
        # The loader looks for names from the main program on, and what that filters stands before it.
        is_hidden = self._is_program and consumer is self._root
        need, is_new = self._bind(consumer, item.name, is_hidden=is_hidden)
        provider = need.provider
        if provider is None and item.is_optional:
            self._absent.append(need)
            return position
        self._needs.append(need)
        if provider is None:
            return position
        if not is_new:
            if provider not in self._objects[position:]:
                return position
            self._objects.remove(provider)
        self._objects.insert(position, provider)
        return position + 1

    def _bind(self, consumer: Loaded, name: str, *, is_hidden: bool = False) -> tuple[Bound, bool]:
        """Bind one need; also return whether its provider is loaded for it, and has yet to take its place."""
        wanted = self._lookup.expanded(consumer, name)
        provider = self._names.get(wanted)
        if provider is not None:
            return Bound(consumer, name, provider, How.LOADED, None), False
        found = self._lookup.find(consumer, wanted)
        if found is None or found.object is None:
            return Bound(consumer, name, None, How.MISSING, None), False
        provider = self._files.get(found.object.identity)
        is_new = provider is None
        if provider is None:
            provider = self._lookup.opened(found.path, found.real_path, found.object, consumer)
            if not is_hidden:
                self._register(provider)
        if not is_hidden:
            self._names.setdefault(wanted, provider)
        return Bound(consumer, name, provider, found.how, found.via), is_new

    def _register(self, item: Loaded) -> None:
        """Let later needs be met by ``item``: by soname, by the path it was opened by, and by file identity."""
        self._files.setdefault(item.object.identity, item)
        if item.object.soname is not None:
            self._names.setdefault(item.object.soname, item)
        self._names.setdefault(item.path, item)


def _caller(main: Trace) -> Loaded:
    """Return the object of a running program that calls dlopen: libpython where there is one, else the program."""
    for item in main.objects:
        if posixpath.basename(item.path).startswith(("libpython", "libpypy")):
            return item
    return main.root
