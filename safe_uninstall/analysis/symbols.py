"""Whether another provider can take over: symbol versions first, then the symbols themselves."""

from collections.abc import Iterable

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


def missing_symbols(evidence: Evidence, *, consumer: str, before: str, after: Iterable[str]) -> tuple[str, ...]:
    """Return the symbols that ``consumer`` took from one provider and that nothing in its new closure exports, sorted.

    Args:
        evidence: reads the symbol tables.
        consumer: path of the consumer.
        before: path of the provider that leaves.
        after: paths of all objects in the closure afterwards.
    """
    wanted = evidence.symbols(consumer)
    taken_from = evidence.symbols(before)
    if wanted is None or taken_from is None:
        return ()
    missing = wanted.undefined & taken_from.exported
    for path in after:
        if not missing:
            break
        table = evidence.symbols(path)
        if table is None:
            # What cannot be read may export anything: no proof of a loss.
            return ()
        missing -= table.exported
    return tuple(sorted(missing))
