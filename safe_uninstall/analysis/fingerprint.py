"""A digest of what a plan depends on, the same for identical environments under different prefixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safe_uninstall.model.elf import ElfObject
    from safe_uninstall.model.snapshot import Snapshot

Parts = tuple[tuple[str, str], ...]


def fingerprint_parts(snapshot: Snapshot, *, deleted: Iterable[str], released: Iterable[str]) -> Parts:
    """Return what the fingerprint is over: (what it is, hexadecimal SHA-256), sorted.

    Distributions enter with version and RECORD, ELF files with size and dynamic segment, and of the paths that the
    plan touches what becomes of them, which depends on their bytes. Times, inodes and the prefix do not.

    Args:
        snapshot: the environment.
        deleted: canonical paths that the plan deletes.
        released: canonical paths that it leaves in place.
    """
    prefix = snapshot.environment.prefix + "/"
    environment = snapshot.environment
    parts = {
        "the interpreter": _digest([environment.python_version, environment.implementation, repr(environment.abi)])
    }
    for distribution in snapshot.distributions:
        facts = [
            distribution.version,
            distribution.record.state.value,
            distribution.record.digest,
            _relative(distribution.metadata_path, prefix),
            *distribution.requires,
        ]
        key = f"distribution {distribution.name}"
        parts[key] = _digest([parts.get(key, ""), *facts])
    by_directory: dict[str, list[str]] = {}
    for path, item in (*snapshot.objects.items(), *snapshot.outside.items()):
        directory = _relative(path, prefix).rpartition("/")[0]
        by_directory.setdefault(directory, []).append(_describe(path, item, prefix))
    for directory, facts in by_directory.items():
        parts[f"the libraries in {directory or '.'}"] = _digest(sorted(facts))
    parts["the files to remove"] = _digest(sorted(_relative(path, prefix) for path in deleted))
    parts["the files to leave in place"] = _digest(sorted(_relative(path, prefix) for path in released))
    return tuple(sorted(parts.items()))


def fingerprint(parts: Parts) -> str:
    """Return ``sha256:<hex>`` over the parts."""
    return "sha256:" + _digest([text for part in parts for text in part])


def describe_changes(before: Parts, after: Parts) -> tuple[str, ...]:
    """Return what differs between the parts of two fingerprints, a clause each, sorted."""
    old, new = dict(before), dict(after)
    changes = []
    for key in sorted(old.keys() | new.keys()):
        verb = "are" if key.startswith(("the libraries", "the files")) else "is"
        if key not in new:
            changes.append(f"{key} {verb} gone")
        elif key not in old:
            changes.append(f"{key} {verb} new")
        elif old[key] != new[key]:
            changes.append(f"{key} changed")
    return tuple(changes)


def _describe(path: str, item: ElfObject, prefix: str) -> str:
    facts: tuple[object, ...] = (item.size, item.abi, item.elf_type, item.soname, item.needed)
    facts += (item.rpath, item.runpath, item.flags_1, *item.filters)
    # Search paths and needs may be absolute.
    return f"{path} {facts!r}".replace(prefix, "")


def _relative(path: str, prefix: str) -> str:
    return path[len(prefix) :] if path.startswith(prefix) else path


def _digest(texts: Iterable[str]) -> str:
    import hashlib

    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogateescape"))
        digest.update(b"\0")
    return digest.hexdigest()
