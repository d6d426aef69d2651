"""``--format html``: a document as a page, on standard output or in the file that ``-o`` names."""

from collections.abc import Mapping
from typing import Any

from safe_uninstall.cli.output import print_data, print_talk
from safe_uninstall.cli.saved import save


def give_page(document: Mapping[str, Any], output: str | None, *, quiet: bool) -> None:
    """Print a plan or check document as a page, or save it and say where.

    Raises:
        UsageError: it cannot be written.
    """
    from safe_uninstall.render.report import render_report

    page = render_report(document)
    if output is None:
        print_data(page)
        return
    save(page, output, what="report")
    if not quiet:
        print_talk(f"Wrote {output}. Nothing changed.")
