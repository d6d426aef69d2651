"""One search of the dynamic loader: where it looks for a name that an object needs, and what it finds there.

The rules are those of ``_dl_map_object``, ``open_path`` and ``open_verify`` in glibc's ``elf/dl-load.c``, and of
``_dl_load_cache_lookup`` in ``elf/dl-cache.c``. Nothing is opened here: names and ELF headers come from a ``View``.
"""

import posixpath
from typing import Literal, TypeAlias

from safe_uninstall.analysis.paths import LOOP, View
from safe_uninstall.analysis.search import SearchPath, SearchPaths
from safe_uninstall.analysis.trace import Found, Loaded
from safe_uninstall.model.elf import DF_1_NODEFLIB, ET_DYN, Abi, ElfObject
from safe_uninstall.model.linkage import How
from safe_uninstall.model.system import SystemLibraries

CACHE = "ld.so.cache"
"""How ``Binding.searched`` names the loader's cache."""

_Hit: TypeAlias = tuple[str, str, ElfObject | None]


class Lookup:
    """Finds what objects need, over one view; searches are memoised, and objects that search alike share them."""

    def __init__(
        self, view: View, system: SystemLibraries, library_path: tuple[str, ...], working_directory: str | None
    ) -> None:
        """Search ``view`` as ``Loader`` describes it."""
        self._view = view
        self._system = system
        self._paths = SearchPaths(view, system, working_directory)
        self._library_path = library_path
        self._searches: dict[tuple[int, ...], dict[str, Found | None]] = {}

    def opened(self, path: str, real_path: str, object: ElfObject, loader: Loaded | None) -> Loaded:
        """Return an object as it is once opened by ``path`` for ``loader``, its search paths expanded."""
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

    def dynamic_loader(self, root: ElfObject) -> Loaded | None:
        """Return the dynamic loader that a program asks for, None where there is none of its ABI."""
        path = root.interpreter
        if path is None or (real := self._view.real_path(path)) is None:
            return None
        found = self._view.object(real)
        return self.opened(path, real, found, None) if found is not None and found.abi == root.abi else None

    def expanded(self, consumer: Loaded, name: str) -> str:
        """Return a needed name as the loader reads it: ``$ORIGIN`` and the like expand (``expand_dst``)."""
        if "$" not in name:
            return name
        return self._paths.expand_tokens(name, posixpath.dirname(consumer.path), consumer.object.abi)

    def find(self, consumer: Loaded, name: str) -> Found | None:
        """Return what a search for an expanded name finds, None when it finds nothing."""
        if "/" in name:
            return self._open_path(name, consumer.object.abi)
        if consumer.found is None:
            self._prepare(consumer)
        assert consumer.order is not None
        assert consumer.found is not None
        if name in consumer.found:
            return consumer.found[name]
        found = consumer.found[name] = self._search(consumer.order, name, consumer.object)
        return found

    def searched(self, consumer: Loaded, name: str, how: How) -> tuple[str, ...]:
        """Return the directories searched before a name was found, or all of them when it was not.

        Args:
            consumer: who needs it.
            name: expanded, without a slash.
            how: it was found.
        """
        tried: list[str] = []
        for path in self._order(consumer):
            if path is None:
                if how is How.CACHE:
                    break
                tried.append(CACHE)
                continue
            for directory in path.directories:
                found = self._look_in(directory.path, name, consumer.object.abi)
                if isinstance(found, tuple):
                    return tuple(dict.fromkeys(tried))
                tried.append(directory.path)
                if isinstance(found, str):
                    break
        return tuple(dict.fromkeys(tried))

    def _order(self, consumer: Loaded) -> list[SearchPath | None]:
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
            origin = posixpath.dirname(_main_program(consumer).path)
            order.append(self._paths.library_path(self._library_path, origin, abi))
        if consumer.runpath is not None:
            order.append(consumer.runpath)
        order.append(None)
        if not consumer.object.flags_1 & DF_1_NODEFLIB:
            order.append(self._paths.defaults(abi))
        return order

    def _prepare(self, consumer: Loaded) -> None:
        consumer.order = self._order(consumer)
        # Search paths are interned per ABI and DF_1_NODEFLIB takes the last one away, so that these numbers say it all.
        numbers = [0 if path is None else path.number + 1 for path in consumer.order]
        key = (self._paths.abi_number(consumer.object.abi), *numbers)
        consumer.found = self._searches.setdefault(key, {})

    def _search(self, order: list[SearchPath | None], name: str, consumer: ElfObject) -> Found | None:
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
                    return Found(hit[0], hit[1], hit[2], path.how, directory.written)
        return None

    def _look_in(self, directory: str, name: str, abi: Abi) -> "_Hit | Literal[''] | None":
        """Try one directory, its hardware-capability sub-directories first.

        Returns:
            (path, real path, object), where object is None when the file makes the loader give up: it is there,
            but no shared library. None when there is no file, or one of another class or machine, which the loader
            passes over (``open_verify``). ``LOOP`` when opening fails for another reason.
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
                return f"{place}/{name}", real, _loadable(found)
        return None

    def _look_in_cache(self, name: str, abi: Abi, *, no_default: bool) -> Found | None:
        wanted = self._system.cache_flags.get(abi)
        capabilities = self._system.hwcaps.get(abi, ())
        for entry in self._system.cache.get(name, ()):
            if entry.flags != wanted:
                continue
            if entry.hwcap is not None and f"glibc-hwcaps/{entry.hwcap}" not in capabilities:
                continue
            if no_default and self._paths.is_default(entry.path, abi):
                return None
            # The loader takes the best entry and does not come back for the next one.
            return self._open(entry.path, abi, How.CACHE)
        return None

    def _open_path(self, name: str, abi: Abi) -> Found | None:
        path = self._paths.absolute(name)
        return None if path is None else self._open(path, abi, How.ABSOLUTE)

    def _open(self, path: str, abi: Abi, how: How) -> Found | None:
        """Open one file, without a search."""
        real = self._view.real_path(path)
        if real is None:
            return None
        found = self._view.object(real)
        if found is not None and found.abi != abi:
            return None
        loadable = None if found is None else _loadable(found)
        return Found(self._view.canonical(path) or path, real, loadable, how, None)


def _loadable(found: ElfObject) -> ElfObject | None:
    """Return the object if it can be a dependency, None if the loader gives up on it.

    Relocatable objects, core dumps, programs and files without a dynamic segment are as fatal as a text.
    """
    return found if found.elf_type == ET_DYN and found.is_dynamic else None


def _main_program(item: Loaded) -> Loaded:
    """Return the object at the end of the chain of loaders."""
    while item.loader is not None:
        item = item.loader
    return item
