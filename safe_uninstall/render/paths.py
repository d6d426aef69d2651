"""Shows absolute paths relative to the roots of an environment."""

import re
from collections.abc import Iterable

from safe_uninstall.model.environment import Environment


class Relative:
    """Makes paths relative to the first root that they are below; others stay absolute."""

    def __init__(self, *roots: str) -> None:
        """Keep the roots, which are absolute, in order of preference."""
        self._roots = tuple(root.rstrip("/") for root in roots)
        # A root ends an absolute path of its own only where no other path goes before it.
        alternatives = "|".join(re.escape(root) for root in self._roots)
        self._in_text = re.compile(rf"(?<![\w./~-])(?:{alternatives})/(?=[^\s/])")

    def __call__(self, path: str) -> str:
        """Return a path as it is shown; a root itself is ``.``."""
        for root in self._roots:
            if path.startswith(f"{root}/"):
                return path[len(root) + 1 :]
        return "." if path in self._roots else path

    def in_text(self, text: str) -> str:
        """Return a sentence with the paths in it made relative."""
        return self._in_text.sub("", text)

    def each(self, paths: Iterable[str]) -> list[str]:
        """Return several paths as they are shown."""
        return [self(path) for path in paths]


def relative_to_prefix(environment: Environment) -> Relative:
    """Return how documents write paths."""
    return Relative(environment.prefix)


def relative_to_site_packages(environment: Environment) -> Relative:
    """Return how people read paths: relative to site-packages, else to the prefix."""
    return Relative(*environment.site_packages, environment.prefix)
