"""What went wrong stands in the middle of a log of pip; its last line is mostly something else."""

import pytest

from safe_uninstall.execute.pip_log import Failure, explain

NOT_FOUND = """\
ERROR: Could not find a version that satisfies the requirement demo===1.0 (from versions: {})
ERROR: No matching distribution found for demo===1.0
"""
REFUSED = (
    "Could not fetch URL https://me:secret@{host}/simple/demo/: connection error: HTTPSConnectionPool(host='{host}',"
    " port=443): Max retries exceeded with url: /simple/demo/ (Caused by NewConnectionError('<HTTPSConnection object at"
    " 0x7f>: Failed to establish a new connection: {why}')) - skipping\n"
)
STAMP = "2026-12-01T12:31:21,203 "


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (NOT_FOUND.format("none"), None),
        (NOT_FOUND.format("1.1, 1.2"), "there has only 1.1, 1.2"),
        (NOT_FOUND.format("1, 2, 3, 4, 5"), "there has only … 3, 4, 5"),
        (
            "Skipping link: No sources permitted for demo: https://x/demo-1.0.tar.gz\n" + NOT_FOUND.format("none"),
            "there has only its source, no wheel",
        ),
        (
            "ERROR: Ignored the following versions that require a different python version: 1.0 Requires-Python >=4\n"
            + NOT_FOUND.format("none"),
            "there has it for other versions of Python only",
        ),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n",
            "there gives another file than it announces, by its hash",
        ),
        (
            "ERROR: Cannot install a and b because these package versions have conflicting dependencies.\n"
            "ERROR: ResolutionImpossible: for help visit https://x\n",
            "pip says of there: Cannot install a and b because these package versions have conflicting dependencies",
        ),
        ("", "pip says of there: nothing"),
        (
            "Getting page https://x/simple/demo/\n"
            "Could not fetch URL https://x/simple/demo/: 404 Client Error: Not Found for url: https://x/ - skipping\n"
            + NOT_FOUND.format("none"),
            None,
        ),
    ],
)
def test_the_network_is_there(log: str, reason: str | None) -> None:
    """What the index has instead is told; that it has nothing is no reason of its own."""
    stamped = "".join(f"{STAMP}{line}\n" for line in log.splitlines())
    for text in (log, stamped):
        assert explain(text, "there") == Failure(reason=reason)


@pytest.mark.parametrize(
    ("why", "short"),
    [
        ("[Errno -2] Name or service not known", "Name or service not known"),
        ("[Errno 111] Connection refused", "Connection refused"),
        ("SSLError(SSLCertVerificationError(1, 'certificate verify failed'))", "certificate verify failed"),
        ("Read timed out. (read timeout=15)", "no answer in time"),
        ("something else", "connection broken"),
    ],
)
def test_the_network_is_not_there(why: str, short: str) -> None:
    """The host and the reason are named in a few words, credentials never."""
    log = "Getting page https://h/simple/demo/\n" + REFUSED.format(host="h", why=why) + NOT_FOUND.format("none")
    expected = f"there cannot be reached (h: {short})"
    assert explain(log, "there") == Failure(reason=expected, no_network=True, no_answer=True)


def test_one_of_two_indexes_answers() -> None:
    """The other one may have the next thing that is asked for."""
    log = "Getting page https://a/\nGetting page https://b/\n" + REFUSED.format(host="b", why="[Errno 111] No")
    assert explain(log, "there") == Failure(reason="there cannot be reached (b: No)", no_network=True)


def test_an_index_that_refuses() -> None:
    """It answers; but not with what is wanted, and not by its fault for ever."""
    log = (
        "Getting page https://h/simple/demo/\n"
        "Could not fetch URL https://h/simple/demo/: 401 Client Error: Unauthorized for url: https://h/ - skipping\n"
    )
    assert explain(log, "there") == Failure(reason="there cannot be reached (h: 401 Unauthorized)", no_network=True)
    why = "HTTPSConnectionPool: Max retries exceeded (Caused by ResponseError('too many 503 error responses'))"
    retried = log.replace("401 Client Error: Unauthorized for url: https://h/", why)
    assert explain(retried, "there") == Failure(reason="there cannot be reached (h: 503)", no_network=True)
    log = log.replace("https://h/simple/demo/", "page")
    assert explain(log, "there") == Failure(reason="there cannot be reached", no_network=True)


def test_a_download_that_broke_off() -> None:
    """There is a traceback then; the exception in it says what it was."""
    log = (
        "ERROR: Exception:\nTraceback (most recent call last):\n"
        "pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='h', port=443): Read timed out.\n"
    )
    assert explain(log, "there") == Failure(
        reason="the download from there broke off (no answer in time)", no_network=True
    )


def test_a_file_that_is_damaged() -> None:
    """It may have been the connection."""
    log = "ERROR: Wheel 'demo' located at /t/d-0/demo-1.0-py3-none-any.whl is invalid.\n"
    assert explain(log, "there") == Failure(reason="demo-1.0-py3-none-any.whl from there is damaged", no_network=True)


@pytest.mark.parametrize("number", [28, 122])
def test_a_full_disk(number: int) -> None:
    """It is nobody's fault but the machine's."""
    log = f"ERROR: Could not install packages due to an OSError: [Errno {number}] No space left on device\n"
    assert explain(log, "there") == Failure(no_room=True)


def test_a_download_that_ended_too_soon() -> None:
    """Newer versions of pip have a name for it."""
    log = "error: incomplete-download\n\nx Download failed because not enough bytes were received (10 bytes/3 MB)\n"
    assert explain(log, "there") == Failure(
        reason="the download from there broke off (connection broken)", no_network=True
    )
