"""What one load brings in: its objects in load order, and what each of their needs is bound to."""

from dataclasses import dataclass

from safe_uninstall.analysis.search import SearchPath
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.linkage import How


class Found:
    """Where one search ended: a provider, or a file that makes the loader give up."""

    __slots__ = ("how", "object", "path", "real_path", "via")

    def __init__(self, path: str, real_path: str, object: ElfObject | None, how: How, via: str | None) -> None:
        """Keep what was found.

        Args:
            path: by which it is opened, its directory resolved.
            real_path: every link resolved.
            object: None where the file is there and cannot be loaded, which ends the load.
            how: the step of the search.
            via: the search path entry as written, where one led there.
        """
        self.path = path
        self.real_path = real_path
        self.object = object
        self.how = how
        self.via = via


@dataclass(slots=True, eq=False)
class Loaded:
    """An object in a load; mutable, and private to one trace."""

    path: str
    """The path it was opened by, its directory resolved."""
    real_path: str
    object: ElfObject
    loader: "Loaded | None"
    """The object that first needed it (glibc's ``l_loader``)."""
    own_rpath: SearchPath | None
    runpath: SearchPath | None
    order: list[SearchPath | None] | None = None
    """Search paths for its needs, in order; None stands for ld.so.cache. Made when it first needs something."""
    found: dict[str, Found | None] | None = None
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
    """What loading one root brings in."""

    root: Loaded
    objects: tuple[Loaded, ...]
    """In load order: the root first, unless it is a filter; what it filters comes before it then."""
    needs: tuple[Bound, ...]
    """Of every object, in the order in which they were bound. What DT_AUXILIARY names is among them if it is there."""
    absent: tuple[Bound, ...] = ()
    """What DT_AUXILIARY names and is not there: the object serves alone, and nothing is missing."""
