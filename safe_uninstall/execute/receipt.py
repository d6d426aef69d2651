"""Receipts: what a committed transaction leaves of itself, so that it can be told of and undone.

A receipt is written into the directory of its transaction before anything is touched, and renamed into
``<prefix>/.safe-uninstall/history`` once the transaction is committed: never one without the other.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from safe_uninstall.model.distribution import DirectUrl, Distribution, MetadataKind, Record, RecordRow, RecordState
from safe_uninstall.model.history import FACTS, Pin, Receipt, Removed
from safe_uninstall.model.plan import ActionKind

if TYPE_CHECKING:
    from safe_uninstall.model.plan import Plan
    from safe_uninstall.model.snapshot import Snapshot

FORMAT = "safe-uninstall/receipt"
FORMAT_VERSION = 1

_ENVELOPE = ("format", "format_version", "tool_version")
_LIMIT = 1 << 20
"""Bytes read of one of ``FACTS``; real ones have some hundred."""


class ReceiptError(Exception):
    """A receipt that cannot be read; says why in words."""


def make_receipt(
    plan: Plan,
    snapshot: Snapshot,
    *,
    identifier: str,
    document: Mapping[str, Any],
    backup_bytes: int | None,
) -> Receipt:
    """Return the receipt that a transaction will leave; reads the metadata of what leaves.

    Args:
        plan: what is about to be done.
        snapshot: the environment before it.
        identifier: name of the transaction.
        document: the plan as a document, its envelope included.
        backup_bytes: bytes of the files in the backup that will be kept, None when none will.
    """
    prediction = plan.prediction
    leaving = (item for item in snapshot.distributions if item.metadata_path in prediction.removed)
    restored = (item for item in snapshot.distributions if item.metadata_path in prediction.restored)
    rows = {row.path for item in restored for row in item.record.rows}
    return Receipt(
        identifier=identifier,
        time=datetime.now().astimezone().isoformat(timespec="seconds"),
        tool_version=str(document.get("tool_version", "")),
        removed=tuple(Removed(distribution=item, facts=read_facts(item.metadata_path)) for item in leaving),
        restored=_pins(plan, ActionKind.RESTORE),
        installed=_pins(plan, ActionKind.INSTALL),
        created=tuple(sorted(path for path in rows & prediction.written.keys() if not os.path.lexists(path))),
        undoes=None if plan.undo is None else plan.undo.transaction,
        backup_bytes=backup_bytes,
        plan={key: value for key, value in document.items() if key not in _ENVELOPE},
    )


def read_facts(info: str) -> dict[str, str]:
    """Return what a dist-info says of how its distribution came there: those of ``FACTS`` that can be read."""
    found = {}
    for name in FACTS:
        try:
            with open(os.path.join(info, name), "rb") as file:
                found[name] = file.read(_LIMIT).decode("utf-8", "surrogateescape")
        except OSError:
            continue
    return found


def receipt_document(receipt: Receipt, prefix: str) -> dict[str, Any]:
    """Return a receipt as the JSON document that is stored; paths are relative to ``prefix`` where they are below."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tool_version": receipt.tool_version,
        "id": receipt.identifier,
        "time": receipt.time,
        "undoes": receipt.undoes,
        "backup": None if receipt.backup_bytes is None else {"bytes": receipt.backup_bytes},
        "removed": [_removed_document(item, prefix) for item in receipt.removed],
        "restored": [_pin_document(item, prefix) for item in receipt.restored],
        "installed": [_pin_document(item, prefix) for item in receipt.installed],
        "created": [_relative(path, prefix) for path in receipt.created],
        "plan": dict(receipt.plan),
    }


def read_receipt(path: str, prefix: str) -> Receipt:
    """Read a stored receipt.

    Args:
        path: the file.
        prefix: where the environment lies now.

    Raises:
        ReceiptError: it cannot be read, is none, or is of a newer format.
    """
    try:
        with open(path, "rb") as file:
            document = json.load(file)
    except OSError as error:
        raise ReceiptError(f"it cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ReceiptError(f"it is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ReceiptError("it is no receipt")
    if document.get("format_version") != FORMAT_VERSION:
        raise ReceiptError(
            f"it has format version {document.get('format_version')}, and this safe-uninstall knows {FORMAT_VERSION}"
        )
    try:
        return _receipt(document, prefix)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReceiptError(f"it is not whole: {error}") from None


def _receipt(document: Mapping[str, Any], prefix: str) -> Receipt:
    backup = document["backup"]
    return Receipt(
        identifier=str(document["id"]),
        time=str(document["time"]),
        tool_version=str(document["tool_version"]),
        removed=tuple(_removed(item, prefix) for item in document["removed"]),
        restored=tuple(_pin(item, prefix) for item in document["restored"]),
        installed=tuple(_pin(item, prefix) for item in document["installed"]),
        created=tuple(posixpath.join(prefix, path) for path in document["created"]),
        undoes=document["undoes"],
        backup_bytes=None if backup is None else int(backup["bytes"]),
        plan=dict(document["plan"]),
    )


def _pins(plan: Plan, kind: ActionKind) -> tuple[Pin, ...]:
    return tuple(
        Pin(
            name=action.distribution.name,
            version=action.distribution.version,
            metadata_path=action.metadata_path or "",
        )
        for action in plan.actions
        if action.kind is kind
    )


def _pin_document(pin: Pin, prefix: str) -> dict[str, Any]:
    return {"name": pin.name, "version": pin.version, "metadata_path": _relative(pin.metadata_path, prefix)}


def _pin(document: Mapping[str, Any], prefix: str) -> Pin:
    return Pin(
        name=str(document["name"]),
        version=str(document["version"]),
        metadata_path=posixpath.join(prefix, document["metadata_path"]),
    )


def _removed_document(removed: Removed, prefix: str) -> dict[str, Any]:
    item, origin = removed.distribution, removed.distribution.direct_url
    return {
        "name": item.name,
        "version": item.version,
        "metadata_path": _relative(item.metadata_path, prefix),
        "metadata_kind": item.metadata_kind.value,
        "site_packages": _relative(item.site_packages, prefix),
        "installer": item.installer,
        "requested": item.requested,
        "direct_url": None
        if origin is None
        else {
            "url": origin.url,
            "editable": origin.editable,
            "vcs": origin.vcs,
            "is_directory": origin.is_directory,
            "archive_hash": origin.archive_hash,
        },
        "requires": list(item.requires),
        "provides_extra": list(item.provides_extra),
        "scripts": _each(item.scripts, prefix),
        "facts": dict(removed.facts),
        "rows": [[_relative(row.path, prefix), row.hash, row.size] for row in item.record.rows],
    }


def _removed(document: Mapping[str, Any], prefix: str) -> Removed:
    origin = document["direct_url"]
    rows = tuple(
        RecordRow(posixpath.join(prefix, path), hash_, None if size is None else int(size))
        for path, hash_, size in document["rows"]
    )
    return Removed(
        distribution=Distribution(
            name=str(document["name"]),
            version=str(document["version"]),
            metadata_path=posixpath.join(prefix, document["metadata_path"]),
            metadata_kind=MetadataKind(document["metadata_kind"]),
            site_packages=posixpath.join(prefix, document["site_packages"]),
            record=Record(state=RecordState.PRESENT, rows=rows),
            installer=document["installer"],
            requested=bool(document["requested"]),
            direct_url=None if origin is None else DirectUrl(**origin),
            requires=tuple(document["requires"]),
            provides_extra=tuple(document["provides_extra"]),
            scripts=tuple(posixpath.join(prefix, path) for path in document["scripts"]),
        ),
        facts={str(name): str(text) for name, text in document["facts"].items() if name in FACTS},
    )


def _each(paths: Iterable[str], prefix: str) -> list[str]:
    return [_relative(path, prefix) for path in paths]


def _relative(path: str, prefix: str) -> str:
    return path.removeprefix(f"{prefix}/")
