"""Who else looks after an environment (conda, pixi, poetry, uv, pdm, pipenv), and the command that belongs there."""

import shlex
from collections.abc import Iterable, Iterator

from safe_uninstall.model.distribution import Distribution, MetadataKind
from safe_uninstall.model.environment import Environment
from safe_uninstall.model.plan import Code, DistributionRef, Finding, Severity
from safe_uninstall.model.snapshot import Snapshot

_CONDA = ("conda", "mamba", "micromamba")
_REMOVE = {
    "pdm": ("pdm", "remove"),
    "pipenv": ("pipenv", "uninstall"),
    "pixi": ("pixi", "remove", "--pypi"),
    "poetry": ("poetry", "remove"),
    "uv": ("uv", "remove"),
}
_SYNC = {"pipenv": "pipenv sync", "uv": "uv sync"}
"""What makes an environment as the project says; ``install`` for the others."""
_INSTALLERS = {"pixi": "uv-pixi", "poetry": "poetry", "pdm": "pdm"}
"""How INSTALLER begins where a manager has installed something."""


def brought_back(environment: Environment, leaving: Iterable[Distribution]) -> Iterator[Finding]:
    """Yield a note where a project's manager would install again what is removed behind its back.

    It does so only for what its lock file names, or what it says it has installed itself.

    Args:
        environment: what is changed.
        leaving: the distributions that go.
    """
    manager = environment.managed_by or ""
    if manager not in _REMOVE:
        return
    theirs = [item for item in leaving if item.conda_package is None and _is_theirs(environment, item, manager)]
    if not theirs:
        return
    names = sorted({item.name for item in theirs})
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    sync = _SYNC.get(manager, f"{manager} install")
    yield Finding(
        code=Code.EXTERNALLY_MANAGED,
        severity=Severity.NOTE,
        message=f"{manager} looks after this environment: `{sync}` brings back {shown} as long as its project requires"
        " it",
        distribution=DistributionRef(name=theirs[0].name, version=theirs[0].version),
        help=(f"take out of the project what it names itself{_where(environment)}", _remove(manager, *names)),
    )


def managed_finding(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a note that says who owns what in an environment that another manager made, for ``check``."""
    environment = snapshot.environment
    manager = environment.managed_by or ""
    own = [item for item in snapshot.distributions if item.owned_here]
    packages = [item for item in snapshot.distributions if item.conda_package is not None]
    if packages and manager in (*_CONDA, "pixi"):
        python = sum(item.metadata_kind is not MetadataKind.CONDA for item in packages)
        place = () if manager == "pixi" else ("-p", environment.prefix)
        yield Finding(
            code=Code.EXTERNALLY_MANAGED,
            severity=Severity.NOTE,
            message=f"{manager} installed {python} of the {len(own)} distributions here and"
            f" {len(packages) - python} other packages; it alone removes these",
            help=("remove what it installed", shlex.join((manager, "remove", *place, "NAME"))),
        )
    elif manager in _REMOVE:
        theirs = sum(_is_theirs(environment, item, manager) for item in own)
        if theirs:
            yield Finding(
                code=Code.EXTERNALLY_MANAGED,
                severity=Severity.NOTE,
                message=f"{manager} looks after this environment: {theirs} of the {len(own)} distributions are its own",
                help=(f"take out of the project what it names itself{_where(environment)}", _remove(manager, "NAME")),
            )


def _is_theirs(environment: Environment, item: Distribution, manager: str) -> bool:
    begin = _INSTALLERS.get(manager)
    return item.name in environment.locked or (begin is not None and (item.installer or "").lower().startswith(begin))


def _remove(manager: str, *names: str) -> str:
    return shlex.join((*_REMOVE[manager], *names))


def _where(environment: Environment) -> str:
    return "" if environment.project is None else f", in {environment.project}"
