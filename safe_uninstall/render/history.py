"""The history of an environment as text for people."""

from collections.abc import Iterable, Iterator

from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.history import Pin, Transaction, TransactionState
from safe_uninstall.render.findings import shortened
from safe_uninstall.render.style import Style, count, printable, size, wrap


def render_history(transactions: Iterable[Transaction], *, verbose: bool, color: bool, width: int | None = None) -> str:
    """Return the transactions of an environment as text, without a last line end.

    Args:
        transactions: newest first.
        verbose: all distributions of each.
        color: whether to use colour.
        width: columns to fit into; None: as many as it takes.
    """
    style = Style(color=color)
    shown = tuple(transactions)
    lines = []
    for item in shown:
        receipt = item.receipt
        head = f"{style.paint('code', printable(receipt.identifier))}  {printable(receipt.time)}"
        if item.state is TransactionState.UNDONE:
            head += f"  undone by {printable(item.undone_by or '')}"
        elif receipt.undoes is not None:
            head += f"  undid {printable(receipt.undoes)}"
        lines += wrap(head, width)
        for text in _effects(item, verbose):
            lines += wrap(f"  {text}", width, indent=4)
    if not shown:
        return "Nothing was done here yet."
    backups = [item.backup_bytes for item in shown if item.backup_bytes is not None]
    tail = f", {count(len(backups), 'kept backup')} of {size(sum(backups))}" if backups else ""
    return "\n".join([*lines, f"{count(len(shown), 'transaction')}{tail}."])


def render_purge(transactions: tuple[str, ...], bytes_freed: int) -> str:
    """Return what became of kept backups, in a line.

    Args:
        transactions: those whose backups are gone.
        bytes_freed: bytes of files that had no other name.
    """
    if not transactions:
        return "No backup was kept: nothing is freed."
    # What the environment or a cache still has is no gain, however large the backup was.
    return f"Deleted {count(len(transactions), 'kept backup')}: {bytes_freed} bytes freed."


def _effects(item: Transaction, verbose: bool) -> Iterator[str]:
    receipt = item.receipt
    groups: tuple[tuple[str, Iterable[Distribution | Pin]], ...] = (
        ("removed", (removed.distribution for removed in receipt.removed)),
        ("restored", receipt.restored),
        ("installed", receipt.installed),
    )
    for verb, distributions in groups:
        labels = [printable(distribution.label) for distribution in distributions]
        if labels:
            yield f"{verb:<9}  {', '.join(shortened(labels, verbose))}"
    if item.backup_bytes is not None:
        yield f"backup     {size(item.backup_bytes)}"
