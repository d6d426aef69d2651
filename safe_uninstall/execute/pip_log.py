"""What a run of pip that fetched nothing means, read from its log: pip's last line is mostly not what went wrong.

The log (``--log``) says the same whatever is shown on the terminal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3} ?", re.MULTILINE)
_NO_ROOM = re.compile(r"\[Errno (28|122)\]")
"""ENOSPC and EDQUOT, as Python writes them."""
_PAGE = "Getting page "
_FAILED_PAGE = re.compile(r"Could not fetch URL (\S+?): (.*) - skipping")
_HOST = re.compile(r"://(?:[^/@]*@)?([^/]*)")
_BROKEN_OFF = re.compile(r"^\S*(?:urllib3|requests)\S*\.exceptions\.\w+: (.*)", re.MULTILINE)
_ANSWER = re.compile(r"(\d{3}) (?:Client|Server) Error: ([^:]*?) for url|too many (\d{3}) error responses")
"""Of a server; the second is what is left of it after retries."""
_SYSTEM_ERROR = re.compile(r"\[Errno -?\d+\] ([^'\")\]]+)")
_CERTIFICATE = re.compile(r"certificate verify failed", re.IGNORECASE)
_TIMEOUT = re.compile(r"timed? ?out", re.IGNORECASE)
_VERSIONS = re.compile(r"from versions: ([^)]*)\)")
_OTHER_PYTHON = re.compile(r"requires? a different python", re.IGNORECASE)
_INVALID = re.compile(r"Wheel '.*' located at (\S+) is invalid")
_HASHES = "DO NOT MATCH THE HASHES"
_INCOMPLETE = "incomplete-download"
"""pip's own name for a file that ended too soon, from pip 25.1 on."""
_SOURCES = "No sources permitted for"
_ERROR = re.compile(r"^ERROR: (.+)", re.MULTILINE)
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why pip fetched nothing."""

    reason: str | None = None
    """A clause that names the place; None: what was wanted is simply not there."""
    no_room: bool = False
    """Whether the disk is full."""
    no_network: bool = False
    """Whether a place could not be reached, or sent a part only: it may be had another time, or elsewhere."""
    no_answer: bool = False
    """Whether nothing at all answered, so that asking for something else is in vain."""


def explain(log: str, place: str) -> Failure:
    """Return what a failed run means.

    Args:
        log: of the run, or what it printed where there is no log.
        place: where it looked, in words.
    """
    text = _STAMP.sub("", log)
    if _NO_ROOM.search(text):
        return Failure(no_room=True)
    pages = [match.groups() for match in _FAILED_PAGE.finditer(text)]
    # A name that an index does not have is answered with 404.
    failed = [(url, why) for url, why in pages if "404 Client Error" not in why]
    if failed:
        url, why = failed[0]
        host = _HOST.search(url)
        where = "" if host is None else f" ({host[1]}: {_in_short(why)})"
        silent = all(_ANSWER.search(why) is None for _, why in failed)
        return Failure(
            reason=f"{place} cannot be reached{where}",
            no_network=True,
            no_answer=silent and len(failed) >= text.count(_PAGE),
        )
    broken = _BROKEN_OFF.search(text)
    if broken is not None:
        return Failure(reason=f"the download from {place} broke off ({_in_short(broken[1])})", no_network=True)
    if _INCOMPLETE in text:
        return Failure(reason=f"the download from {place} broke off (connection broken)", no_network=True)
    invalid = _INVALID.search(text)
    if invalid is not None:
        # Older versions of pip take a download that broke off for the whole file.
        name = invalid[1].rpartition("/")[2]
        return Failure(reason=f"{name} from {place} is damaged", no_network=True)
    return Failure(reason=_of_an_answer(text, place))


def _of_an_answer(text: str, place: str) -> str | None:
    if _HASHES in text:
        return f"{place} gives another file than it announces, by its hash"
    if _OTHER_PYTHON.search(text):
        return f"{place} has it for other versions of Python only"
    if _SOURCES in text:
        return f"{place} has only its source, no wheel"
    versions = _VERSIONS.search(text)
    if versions is not None:
        known = [version.strip() for version in versions[1].split(",") if version.strip() not in ("", "none")]
        if not known:
            return None
        return f"{place} has only {'… ' if len(known) > _SHOWN else ''}{', '.join(known[-_SHOWN:])}"
    error = _ERROR.search(text)
    return f"pip says of {place}: {error[1].rstrip('.') if error is not None else 'nothing'}"


def _in_short(why: str) -> str:
    """Return what is wrong with a connection, in a few words."""
    answer = _ANSWER.search(why)
    if answer is not None:
        return answer[3] or f"{answer[1]} {answer[2].strip()}".strip()
    if _CERTIFICATE.search(why):
        return "certificate verify failed"
    error = _SYSTEM_ERROR.search(why)
    if error is not None:
        return error[1].strip()
    return "no answer in time" if _TIMEOUT.search(why) else "connection broken"
