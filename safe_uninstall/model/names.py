"""Distribution names, normalised as PEP 503 says."""

import re

_SEPARATORS = re.compile(r"[-_.]+")


def normalize_name(name: str) -> str:
    """Return the normalised form of a distribution name.

    Args:
        name: a name as metadata, a requirement or a user writes it.

    Returns:
        The name in lower case, with each run of ``-``, ``_`` and ``.`` replaced by one ``-`` (PEP 503).
    """
    return _SEPARATORS.sub("-", name).lower()
