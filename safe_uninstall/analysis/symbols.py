"""Whether another provider can take over: symbol versions first, then the symbols themselves."""

from collections.abc import Iterable, Mapping, Set

from safe_uninstall.model.elf import SymbolTable
from safe_uninstall.model.filesystem import Evidence


def missing_versions(evidence: Evidence, *, consumer: str, name: str, provider: str) -> tuple[str, ...]:
    """Return the symbol versions that ``consumer`` requires of ``name`` and ``provider`` does not define, sorted.

    The rule is ``_dl_check_map_versions`` in glibc's ``elf/dl-version.c``: a provider without any DT_VERDEF satisfies
    every version, with a message only.

    Args:
        evidence: reads the symbol tables.
        consumer: path of the consumer.
        name: the DT_NEEDED entry, as DT_VERNEED repeats it.
        provider: path of the new provider.
    """
    wanted = evidence.symbols(consumer)
    offered = evidence.symbols(provider)
    if wanted is None or offered is None or not offered.versions_defined:
        return ()
    required = {version for file, versions in wanted.versions_needed if file == name for version in versions}
    return tuple(sorted(required - offered.versions_defined))


def missing_symbols(
    evidence: Evidence, *, consumer: str, before: Iterable[str], after: Iterable[str]
) -> tuple[str, ...]:
    """Return the symbols that ``consumer`` took from what leaves its load and that nothing in it exports then, sorted.

    A symbol that asks for a version is met by that version alone, save by a file that defines no versions at all
    (``do_lookup_x`` and ``check_match`` in glibc's ``elf/dl-lookup.c``). Weak references may stay unmet.

    Args:
        evidence: reads the symbol tables.
        consumer: path of the consumer.
        before: paths of the provider that leaves, and of what only it brought in.
        after: paths of all objects in the load afterwards.
    """
    wanted = evidence.symbols(consumer)
    if wanted is None:
        return ()
    leaving = [table for table in map(evidence.symbols, before) if table is not None]
    versions: dict[str, set[str]] = {}
    for text in wanted.undefined_versions:
        versions.setdefault(text.partition("@")[0], set()).add(text)
    missing = {name for name in wanted.undefined if any(_exports(table, name, versions) for table in leaving)}
    for path in after:
        if not missing:
            break
        table = evidence.symbols(path)
        if table is None:
            # What cannot be read may export anything: no proof of a loss.
            return ()
        missing = {name for name in missing if not _exports(table, name, versions)}
    return tuple(sorted(missing))


def _exports(table: SymbolTable, name: str, versions: Mapping[str, Set[str]]) -> bool:
    """Return whether a file exports a symbol, in the versions that are asked for."""
    if name not in table.exported:
        return False
    asked = versions.get(name)
    return asked is None or not table.versions_defined or asked <= table.exported_versions
