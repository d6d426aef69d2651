"""Searches the strings of Python source for file names: what it may hand to ``ctypes``."""

import ast
import re
import warnings
from collections.abc import Iterator


def names_in_strings(source: bytes, names: frozenset[str]) -> frozenset[str]:
    """Return which file names stand in the strings of a Python source; comments and docstrings are none.

    A name is a string of its own, the end of a path, or either of these in quotes within a string: what generates C
    code holds that of its ``dlopen``. Source that this Python cannot parse, of a newer one say, is taken to hold all.

    Args:
        source: the whole of it.
        names: file names, without directory.
    """
    try:
        with warnings.catch_warnings():
            # It is not ours to be told of.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return names
    patterns = {name: re.compile(rf"(?:^|[\"'/]){re.escape(name)}(?:[\"']|$)") for name in names}
    return frozenset(
        name for text in _strings(tree) for name, pattern in patterns.items() if name in text and pattern.search(text)
    )


def _strings(tree: ast.AST) -> Iterator[str]:
    """Yield the constant strings and byte strings of a module, those that are statements left out."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield node.value
            elif isinstance(node.value, bytes):
                yield node.value.decode("utf-8", "replace")
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            waiting += ast.iter_child_nodes(node)
