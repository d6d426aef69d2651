"""Findings as text: a headline that stands alone, the evidence below it, and what to do."""

from collections.abc import Iterable, Iterator, Sequence

from safe_uninstall.model.environment import Environment
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.plan import Code, Consumer, Finding, Severity
from safe_uninstall.model.processes import Use
from safe_uninstall.render.paths import Relative, relative_to_site_packages
from safe_uninstall.render.style import Style, count, wrap

_ROWS = 3
"""Evidence rows without ``-v``."""
_CACHE = "ld.so.cache"
_COMMANDS = ("safe-uninstall ", "pip ", "uv ", "conda ", "pixi ", "apt ", "rm ", "/")


class FindingText:
    """Writes findings about one environment."""

    def __init__(
        self, environment: Environment, style: Style, *, verbose: bool, width: int | None, grouped: bool = False
    ) -> None:
        """Fit lines into ``width`` columns.

        Args:
            environment: whose paths are shown.
            style: paints.
            verbose: show all evidence.
            width: columns; None: as many as it takes.
            grouped: findings with the same help stand together, and the help once below them.
        """
        self._style = style
        self._grouped = grouped
        self._verbose = verbose
        self._width = width
        self._paths = relative_to_site_packages(environment)

    def lines(self, findings: Sequence[Finding]) -> Iterator[str]:
        """Yield the lines of findings; control characters in them must be escaped already."""
        for number, finding in enumerate(findings):
            following = findings[number + 1] if number + 1 < len(findings) else None
            yield from self._finding(finding, following)

    def _wrapped(self, text: str, *, indent: int = 2, sealed: str = "") -> list[str]:
        return wrap(text, self._width, indent=indent, sealed=sealed)

    def _finding(self, finding: Finding, following: Finding | None) -> Iterator[str]:
        severity = finding.severity.value
        accepted = " (accepted)" if finding.accepted else ""
        head = self._style.paint(severity, f"{severity}[{finding.code.value}]")
        yield from self._wrapped(f"{head}: {finding.message}{accepted}")
        rows: list[tuple[str, str]] = []
        if finding.code in (Code.LIBRARY_LOST, Code.DLOPEN_LOST, Code.PROVIDER_CHANGED, Code.SYMBOLS_LOST):
            rows += _library_rows(finding, self._paths, self._verbose)
        elif finding.uses:
            used = list(_use_rows(finding.uses, self._paths, self._verbose))
            rows += _labelled("used by", shortened(used, self._verbose))
        elif finding.code is Code.MIXED_CUDA and not self._verbose:
            # The notes say of which wheels they are.
            pass
        elif finding.paths and self._grouped and not self._verbose:
            more = f", … {len(finding.paths) - 1} more" if len(finding.paths) > 1 else ""
            rows.append(("path", self._paths(finding.path or finding.paths[0]) + more))
        elif finding.paths:
            rows += _labelled("path", shortened(self._paths.each(finding.paths), self._verbose))
        elif finding.path is not None:
            rows.append(("path", self._paths(finding.path)))
        column = max((len(label) for label, _ in rows), default=0)
        for label, text in rows:
            yield from self._wrapped(f"  {label:<{column}} {text}".rstrip(), indent=column + 5)
        for note in shortened(finding.notes, self._verbose):
            text = f"  {self._style.paint('note', 'note')}: {self._paths.in_text(note)}"
            yield from self._wrapped(text, indent=4)
        yield from self._help(finding, following)

    def _help(self, finding: Finding, following: Finding | None) -> Iterator[str]:
        """Prose goes on the line of ``help:``, the command that it is about on a line of its own below it.

        What the next finding of the same code, or of the same group, says again is left to it.
        """
        prompt = self._style.paint("help", "help")
        last_of_code = following is None or following.code is not finding.code
        if following is None or following.help != finding.help or (last_of_code and not self._grouped):
            for number, text in enumerate(finding.help):
                if text.startswith(_COMMANDS):
                    yield f"        {text}" if number else f"{prompt}: {text}"
                else:
                    yield from self._wrapped(f"{prompt}: {text}", sealed=text.partition(": ")[2])
        if finding.severity is Severity.ERROR and last_of_code:
            yield f"{prompt}: what this means   safe-uninstall explain {finding.code.value}"


def _library_rows(finding: Finding, paths: Relative, verbose: bool) -> Iterator[tuple[str, str]]:
    if finding.path is not None:
        yield "library", paths(finding.path)
    yield from _labelled("needed by", shortened(list(_consumer_rows(finding.consumers, paths, verbose)), verbose))
    claims = []
    for claimant in finding.claimants:
        text = claimant.distribution.label
        if claimant.overwritten:
            text += f", whose own bytes were overwritten: {count(claimant.overwritten, 'file')}"
        claims.append(text)
    yield from _labelled("claimed by", shortened(claims, verbose))
    if finding.consumers and finding.code in (Code.LIBRARY_LOST, Code.DLOPEN_LOST):
        tried = _also_tried(finding, paths, verbose)
        if tried:
            yield "also tried", ", ".join(tried)


def _consumer_rows(consumers: tuple[Consumer, ...], paths: Relative, verbose: bool) -> Iterator[str]:
    files = [paths(item.path) for item in consumers]
    owners = [_owner(item, file) for item, file in zip(consumers, files, strict=True)]
    shown = len(consumers) if verbose else _ROWS
    owner_width = max((len(owner) for owner in owners[:shown]), default=0)
    file_width = max((len(file) for file in files[:shown]), default=0)
    last = ""
    for consumer, owner, file in zip(consumers, owners, files, strict=True):
        how = "" if consumer.how == last else f"({consumer.how})"
        last = consumer.how
        yield f"{owner:<{owner_width}}   {file:<{file_width}}   {how}".rstrip()
        if verbose and len(consumer.context) > 1:
            yield "  loaded by " + " → ".join(paths(path) for path in consumer.context)


def _owner(consumer: Consumer, file: str) -> str:
    if consumer.distribution is not None:
        return consumer.distribution.label
    if consumer.strength is Strength.OBSERVED:
        return "(probe)"
    # Paths of the environment are shown relative to it.
    return "(outside)" if file.startswith("/") else "(unowned)"


def _use_rows(uses: tuple[Use, ...], paths: Relative, verbose: bool) -> Iterator[str]:
    """Yield a row for each process with the first of its files; with ``verbose`` one for each file."""
    files: dict[int, list[Use]] = {}
    for use in uses:
        files.setdefault(use.pid, []).append(use)
    for used in files.values():
        for use in used if verbose else used[:1]:
            user = "" if use.user is None else f", {use.user}"
            more = "" if verbose or len(used) == 1 else f", and {len(used) - 1} more"
            yield f"process {use.pid} ({use.command}{user})   {paths(use.path)}   {use.how.value}{more}"


def _also_tried(finding: Finding, paths: Relative, verbose: bool) -> list[str]:
    """Return where else the loader looks in vain; directories of the host are one phrase."""
    searched = finding.consumers[0].searched
    own = finding.path.rpartition("/")[0] if finding.path else ""
    inside = [paths(place) for place in searched if place not in (own, _CACHE) and paths(place) != place]
    if not verbose and len(inside) > _ROWS:
        # The consumer's own directory says more than the tenth of a list of siblings.
        home = paths(finding.consumers[0].path.rpartition("/")[0])
        first = [home] if home in inside else inside[:1]
        inside = [*first, f"{len(inside) - 1} other directories of its search path"]
    tail = []
    if _CACHE in searched:
        tail.append(_CACHE)
        if any(place != _CACHE and paths(place) == place for place in searched):
            tail.append("default directories")
    return [*inside, *tail]


def _labelled(label: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(texts):
        yield (label if number == 0 else "", text)


def shortened(texts: Sequence[str], verbose: bool) -> list[str]:
    """Return the first rows and how many more there are; all of them if ``verbose``."""
    if verbose or len(texts) <= _ROWS:
        return list(texts)
    return [*texts[:_ROWS], f"… {len(texts) - _ROWS} more"]
