"""Loads of an environment's objects, as programs of their own or by its interpreter; each root is loaded once."""

from collections.abc import Mapping
from dataclasses import replace

from safe_uninstall.analysis.loader import Loader
from safe_uninstall.analysis.names import NeedNames
from safe_uninstall.analysis.paths import View
from safe_uninstall.analysis.trace import Bound, Trace
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.snapshot import Snapshot


class Loads:
    """The loader for programs and the loader for what a running interpreter opens, over one view."""

    def __init__(self, snapshot: Snapshot, view: View, library_path: tuple[str, ...]) -> None:
        """Load over ``view``, LD_LIBRARY_PATH given entry by entry."""
        self.library_path = library_path
        interpreter = snapshot.environment.interpreter_path
        main = None if interpreter is None else view.object(interpreter)
        self._programs = Loader(view, snapshot.system, library_path=library_path)
        self._libraries = Loader(view, snapshot.system, main=main, library_path=library_path)
        self._main_abi = None if main is None else main.abi
        self._traces: dict[str, Trace] = {}

    def trace(self, root: ElfObject) -> Trace:
        """Load one root; of a path, always the same object."""
        trace = self._traces.get(root.path)
        if trace is None:
            opened = root
            if root.interpreter is not None and root.path != root.real_path:
                # The kernel starts the file that a link leads to, and $ORIGIN is then that file's directory.
                opened = replace(root, path=root.real_path)
            trace = self._traces[root.path] = self._loader(root).trace(opened)
        return trace

    def opened(self, caller: ElfObject, name: str, *, root: ElfObject | None = None) -> str | None:
        """Return the path of what an object gets that opens a library by name, None when it fails.

        Args:
            caller: the object.
            name: without a slash.
            root: whose load brings the caller in, whose DT_RPATH it inherits then; None: the caller is the root.
        """
        root = root or caller
        trace = self.trace(root)
        for item in (trace.root, *trace.objects):
            if item.object.identity == caller.identity:
                return self._loader(root).opened(trace, item, name)
        return None

    def opened_by_python(self, name: str) -> str | None:
        """Return the path of what Python code gets that opens a library by name, None when it fails."""
        return self._libraries.opened_by_python(name)

    def around(self, root: ElfObject) -> tuple[str, ...]:
        """Return the real paths of what is loaded before a root, and exports symbols to it: the interpreter's load."""
        return tuple(item.real_path for item in self._loader(root).main_objects)

    def searched(self, need: Bound) -> tuple[str, ...]:
        """Return the directories searched for a need before it was found, or all of them when it was not."""
        loader = self._libraries if need.consumer.object.abi == self._main_abi else self._programs
        return loader.searched(need)

    def _loader(self, root: ElfObject) -> Loader:
        is_program = root.interpreter is not None or root.abi != self._main_abi
        return self._programs if is_program else self._libraries


class Baseline(Loads):
    """Loads over the environment as it is; what several judgements ask of it is worked out once."""

    def __init__(self, snapshot: Snapshot, *, use_library_path: bool = False) -> None:
        """Load over ``snapshot``, LD_LIBRARY_PATH of the planning shell included if ``use_library_path``."""
        super().__init__(snapshot, View(snapshot.files), snapshot.library_path if use_library_path else ())
        self.names = NeedNames(snapshot.objects, snapshot.outside)
        self.objects: Mapping[str, ElfObject] = {**snapshot.outside, **snapshot.objects}
        """By canonical path: all that may need something, inside the environment or not."""
