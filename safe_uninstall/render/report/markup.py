"""Text as HTML: whatever comes out of file names and metadata is inert."""

import html
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from safe_uninstall.render.style import printable

Document = Mapping[str, Any]

_COMMANDS = ("safe-uninstall ", "pip ", "uv ", "conda ", "pixi ", "apt ", "rm ", "/")


def text(value: object) -> str:
    """Return a value as the text of an element or of an attribute in double quotes."""
    return html.escape(printable(str(value)), quote=True)


def code(value: object) -> str:
    """Return a value as code."""
    return f"<code>{text(value)}</code>"


def prose(sentence: str) -> str:
    """Return a sentence whose first letter is large, with what stands in backticks as code."""
    parts = (sentence[:1].upper() + sentence[1:]).split("`")
    if len(parts) % 2 == 0:
        return text(sentence)
    return "".join(code(part) if number % 2 else text(part) for number, part in enumerate(parts))


def data(value: object) -> str:
    """Return a value as JSON that can stand in a script element: nothing in it ends the element (HTML, script data)."""
    plain = json.dumps(value, ensure_ascii=True, sort_keys=True)
    return plain.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def table(headings: Iterable[str], rows: Iterable[Iterable[str]], *, numbers: frozenset[int] = frozenset()) -> str:
    """Return a table whose cells are markup already.

    Args:
        headings: of the columns, text.
        rows: cells in the order of the headings.
        numbers: columns that are aligned to the right.
    """

    def cell(tag: str, index: int, content: str) -> str:
        kind = ' class="number"' if index in numbers else ""
        return f"<{tag}{kind}>{content}</{tag}>"

    head = "".join(cell("th", index, text(heading)) for index, heading in enumerate(headings))
    body = "".join(
        f"<tr data-row>{''.join(cell('td', index, content) for index, content in enumerate(row))}</tr>\n"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>'


def folded(
    headings: tuple[str, ...], rows: Sequence[Iterable[str]], shown: int, *, numbers: frozenset[int] = frozenset()
) -> str:
    """Return a table of the first rows, and one of the others that is folded away."""
    first = table(headings, rows[:shown], numbers=numbers)
    if len(rows) <= shown:
        return first
    others = table(headings, rows[shown:], numbers=numbers)
    return f"{first}<details><summary>{len(rows) - shown} more</summary>{others}</details>"


def command(words: str) -> str:
    """Return a command line with a button that copies it."""
    button = '<button type="button" class="script" data-copy>Copy</button>'
    return f'<div class="command"><pre>{text(words)}</pre>{button}</div>'


def remedy(help: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a help, commands as such."""
    for line in help:
        yield command(line) if line.startswith(_COMMANDS) else f"<p>{prose(line)}</p>"


class Shortened:
    """Paths of a document, relative to the environment's first site-packages directory where they are below it."""

    def __init__(self, document: Document) -> None:
        """Shorten paths of ``document``."""
        sites = document["environment"]["site_packages"]
        self._site = f"{sites[0]}/" if sites else ""

    def __call__(self, path: str) -> str:
        """Return a path as it is shown."""
        return path[len(self._site) :] if self._site and path.startswith(self._site) else path

    def in_text(self, sentence: str) -> str:
        """Return a sentence with the paths in it shortened."""
        return sentence.replace(self._site, "") if self._site else sentence
