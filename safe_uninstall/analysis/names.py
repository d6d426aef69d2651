"""Which objects may meet which needs, by name alone: a cheap bound on what a change can touch."""

import posixpath
import re
from collections.abc import Iterable, Mapping, Set
from types import MappingProxyType

from safe_uninstall.model.elf import ElfObject

HOST_LIBRARIES = frozenset(
    {
        "libBrokenLocale.so.1",
        "libanl.so.1",
        "libc.so.6",
        "libcuda.so.1",
        "libdl.so.2",
        "libm.so.6",
        "libmvec.so.1",
        "libnsl.so.1",
        "libnvcuvid.so.1",
        "libnvidia-encode.so.1",
        "libnvidia-fbc.so.1",
        "libnvidia-ml.so.1",
        "libnvidia-opticalflow.so.1",
        "libnvidia-ptxjitcompiler.so.1",
        "libnvoptix.so.1",
        "libpthread.so.0",
        "libresolv.so.2",
        "librt.so.1",
        "libthread_db.so.1",
        "libutil.so.1",
    }
)
"""Libraries that are the host's to provide, never a wheel's: glibc's own (its ``shlib-versions``) and the driver's."""

_TAGGED_MODULE = re.compile(r"\.(cpython-\w[\w-]*|pypy\w[\w-]*|abi3[\w-]*)\.so$")

_NOTHING: Mapping[str, ElfObject] = MappingProxyType({})


def is_host_library(name: str) -> bool:
    """Return whether a needed name is the host's to provide, whatever a wheel may ship under it."""
    return name in HOST_LIBRARIES or name.startswith(("ld-linux", "ld64.so", "linux-vdso"))


def is_stub(path: str) -> bool:
    """Return whether a path is a stub library: made to link against, never to be loaded."""
    return posixpath.basename(posixpath.dirname(path)) == "stubs"


def is_tagged_module(name: str) -> bool:
    """Return whether a file name is that of an extension module (PEP 3149); others may be one without a tag."""
    return _TAGGED_MODULE.search(name) is not None


class NeedNames:
    """Needed names and the objects that want or bear them, over all objects of an environment.

    An object can only come into a closure through a need that equals its file name, one of its links' names or its
    soname, so walking these names backwards from what leaves reaches every root that could be affected.
    """

    def __init__(self, objects: Mapping[str, ElfObject], outside: Mapping[str, ElfObject] = _NOTHING) -> None:
        """Index objects (canonical path to facts) by what they need and by what they are called.

        Args:
            objects: those of the environment.
            outside: further objects that want something; they bear no name that anything here could want.
        """
        self._consumers: dict[str, list[str]] = {}
        self._bearers: dict[str, list[str]] = {}
        self._objects = {**outside, **objects} if outside else objects
        for path, item in self._objects.items():
            for name in item.needed:
                self._consumers.setdefault(posixpath.basename(name), []).append(path)
            for filtered in item.filters:
                self._consumers.setdefault(posixpath.basename(filtered.name), []).append(path)
        for path, item in objects.items():
            for name in names_of(path, item):
                self._bearers.setdefault(name, []).append(path)

    def bearers(self, name: str) -> tuple[str, ...]:
        """Return the paths of the objects that are called ``name``, by file name or soname, sorted."""
        return tuple(sorted(self._bearers.get(name, ())))

    def wanting(self, names: Set[str]) -> tuple[str, ...]:
        """Return the paths of the objects with a need called by one of ``names``, sorted."""
        return tuple(sorted({path for name in names for path in self._consumers.get(name, ())}))

    def reaching(self, names: Iterable[str]) -> set[str]:
        """Return the paths of all objects whose closure could hold something called by one of ``names``."""
        waiting = list(names)
        seen = set(waiting)
        reached: set[str] = set()
        while waiting:
            for path in self._consumers.get(waiting.pop(), ()):
                if path in reached:
                    continue
                reached.add(path)
                for name in names_of(path, self._objects[path]):
                    if name not in seen:
                        seen.add(name)
                        waiting.append(name)
        return reached


def names_of(path: str, item: ElfObject) -> Set[str]:
    """Return what a need can call an object: its file name, the name of the file it links to, its soname."""
    names = {posixpath.basename(path), posixpath.basename(item.real_path)}
    if item.soname is not None:
        names.add(item.soname)
    return names
