"""The provides/needs graph: every ELF file with its own needs, itself as the root of the load."""

from safe_uninstall.analysis.loader import Loader
from safe_uninstall.analysis.ownership import Owners
from safe_uninstall.analysis.paths import View
from safe_uninstall.model.graph import Graph, GraphNode
from safe_uninstall.model.snapshot import Snapshot


def build_graph(snapshot: Snapshot, owners: Owners, *, use_library_path: bool = False) -> Graph:
    """Bind every object of an environment once, as its own root.

    Args:
        snapshot: the environment.
        owners: who claims which path.
        use_library_path: whether LD_LIBRARY_PATH of the planning shell binds.
    """
    library_path = snapshot.library_path if use_library_path else ()
    loader = Loader(View(snapshot.files), snapshot.system, library_path=library_path)
    nodes = []
    objects = {**snapshot.outside, **snapshot.objects}
    for path in sorted(objects):
        item = objects[path]
        claimed = owners.of(path)
        nodes.append(
            GraphNode(
                object=item,
                distribution=claimed[0].name if claimed else None,
                needs=loader.bindings(item),
            )
        )
    return Graph(nodes=tuple(nodes))
