"""Guards: what is refused, or doubtful, before any file is looked at; and the commands that help."""

from typing import Any

import pytest

from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.guards import judge_guards
from safe_uninstall.model.distribution import MetadataKind, RecordState
from safe_uninstall.model.environment import EnvironmentKind, InstallerKind
from safe_uninstall.model.plan import Code, Finding, Request, Severity
from safe_uninstall.model.snapshot import Snapshot
from tests.support.fakes import PREFIX, SITE, distribution, environment, snapshot

ERROR, WARNING = Severity.ERROR, Severity.WARNING
PYTHON = "/env/bin/python"


def guards(
    snap: Snapshot, *names: str, installer: InstallerKind = InstallerKind.PIP, python: str | None = None, **options: Any
) -> tuple[Finding, ...]:
    """Judge a request for distributions by name."""
    leaving = tuple(item for item in snap.distributions if item.name in names)
    commands = Commands(snap, installer, python=python)
    return judge_guards(snap, Request(names=names, **options), leaving, commands)


def codes(findings: tuple[Finding, ...]) -> list[tuple[Code, Severity]]:
    """Return code and severity of each finding."""
    return [(item.code, item.severity) for item in findings]


def only(findings: tuple[Finding, ...]) -> Finding:
    """Return the one finding there is."""
    (found,) = findings
    return found


def test_a_plain_distribution_passes() -> None:
    """Nothing to say, nothing said."""
    assert guards(snapshot(distribution("one")), "one") == ()


def test_a_missing_record_is_refused_with_the_repair() -> None:
    """Which files are its own is unknown, which is not "none"."""
    snap = snapshot(distribution("one", record={"state": RecordState.MISSING, "path": None, "rows": ()}))
    found = only(guards(snap, "one"))
    assert (found.code, found.severity) == (Code.RECORD_MISSING, ERROR)
    assert found.message == "`one` 1.0 has no RECORD: which files are its own is unknown"
    assert found.path == f"{SITE}/one-1.0.dist-info"
    assert found.help[-1] == f"pip --python {PYTHON} install --ignore-installed --no-deps one==1.0"


def test_the_repair_fits_installer_and_environment() -> None:
    """The environment's own pip where it has one; uv with the interpreter; a directory by --target."""
    broken = distribution("one", record={"state": RecordState.MISSING, "path": None})
    with_pip = snapshot(broken, distribution("pip"))
    assert only(guards(with_pip, "one")).help[-1].startswith(f"{PYTHON} -m pip install --ignore-installed")
    by_uv = only(guards(snapshot(broken), "one", installer=InstallerKind.UV))
    assert by_uv.help[-1] == f"uv pip install --python {PYTHON} --reinstall --no-deps one==1.0"
    target = environment(kind=EnvironmentKind.TARGET, python=None, prefix="/t", site_packages=("/t",))
    by_pip = only(guards(snapshot(broken, environment=target), "one"))
    assert by_pip.help[-1] == "pip install --target /t --upgrade --no-deps one==1.0"
    by_uv = only(guards(snapshot(broken, environment=target), "one", installer=InstallerKind.UV))
    assert by_uv.help[-1] == "uv pip install --target /t --reinstall --no-deps one==1.0"


def test_a_malformed_record_is_refused_with_its_problems() -> None:
    """The reasons are told, line by line."""
    snap = snapshot(distribution("one", record={"state": RecordState.MALFORMED, "problems": ("line 3 has 5 columns",)}))
    found = only(guards(snap, "one"))
    assert (found.code, found.severity, found.notes) == (Code.RECORD_MISSING, ERROR, ("line 3 has 5 columns",))
    assert found.path == f"{SITE}/one-1.0.dist-info/RECORD"
    assert "install" in found.help[-1]


def test_a_locked_record_is_refused() -> None:
    """Somebody protected it; the way back is named."""
    locked = f"{SITE}/one-1.0.dist-info/RECORD.locked"
    found = only(guards(snapshot(distribution("one", record={"state": RecordState.LOCKED, "path": locked})), "one"))
    assert (found.code, found.severity) == (Code.RECORD_MISSING, ERROR)
    assert found.help == (f"rename {locked} back to RECORD, then run again",)


@pytest.mark.parametrize(
    ("installer", "command"),
    [
        (InstallerKind.PIP, f"pip --python {PYTHON} uninstall one"),
        (InstallerKind.UV, f"uv pip uninstall --python {PYTHON} one"),
    ],
)
def test_a_development_install_is_left_to_its_installer(installer: InstallerKind, command: str) -> None:
    """An egg-link has no list of files."""
    snap = snapshot(distribution("one", metadata_kind=MetadataKind.EGG_LINK, record={"state": RecordState.MISSING}))
    found = only(guards(snap, "one", installer=installer))
    assert (found.code, found.severity) == (Code.RECORD_MISSING, ERROR)
    assert found.help == (f"leave it to its installer: {command}",)


def test_unsafe_rows_are_told_and_do_not_block() -> None:
    """They are never touched, so that the rest can go."""
    snap = snapshot(distribution("evil", record={"unsafe": ("../../../../etc/passwd", "/etc/shadow")}))
    found = only(guards(snap, "evil"))
    assert (found.code, found.severity) == (Code.RECORD_UNSAFE, WARNING)
    assert "names 2 paths that cannot be its own; they are not touched" in found.message
    assert found.notes == ("../../../../etc/passwd", "/etc/shadow")
    one = snapshot(distribution("evil", record={"unsafe": ("/etc/shadow",)}))
    assert "names 1 path that" in only(guards(one, "evil")).message


def test_duplicates_are_told() -> None:
    """All of them go; equal versions are named once."""
    snap = snapshot(distribution("dup", "1.0"), distribution("dup", "2.0"), distribution("other"))
    found = only(guards(snap, "dup", "other"))
    assert (found.code, found.severity) == (Code.DUPLICATE_DISTRIBUTION, WARNING)
    assert found.message == "`dup` is installed 2 times (1.0, 2.0); all of them go"
    assert found.paths == (f"{SITE}/dup-1.0.dist-info", f"{SITE}/dup-2.0.dist-info")


def test_an_externally_managed_python_is_refused() -> None:
    """PEP 668: the distributor's own words are passed on, blank lines left out; the override is named."""
    managed = environment(externally_managed="Use apt.\n\nOr a venv.\n")
    snap = snapshot(distribution("one"), environment=managed)
    found = only(guards(snap, "one"))
    assert (found.code, found.severity) == (Code.EXTERNALLY_MANAGED, ERROR)
    assert found.notes == ("Use apt.", "Or a venv.")
    assert "--break-system-packages" in found.help[0]
    assert guards(snap, "one", break_system_packages=True) == ()


@pytest.mark.parametrize(
    ("managed_by", "command"),
    [("conda", f"conda remove -p {PREFIX} libfoo-dev"), ("pixi", "pixi remove libfoo-dev"), (None, None)],
)
def test_what_conda_installed_is_condas_to_remove(managed_by: str | None, command: str | None) -> None:
    """By the package's own name, which is not the distribution's; its RECORD is no question then."""
    snap = snapshot(
        distribution("foo", conda_package="libfoo-dev-1.0-py311_0", record={"state": RecordState.MISSING}),
        environment=environment(kind=EnvironmentKind.CONDA, managed_by=managed_by),
    )
    found = only(guards(snap, "foo"))
    assert (found.code, found.severity) == (Code.EXTERNALLY_MANAGED, ERROR)
    assert found.help == (command or f"conda remove -p {PREFIX} libfoo-dev",)


@pytest.mark.parametrize(
    ("site", "base", "leads_to"),
    [
        ("/usr/lib/python3/dist-packages", "/usr", "/usr"),
        ("/home/me/.local/lib/python3.11/site-packages", "/usr", "/home/me/.local/lib/python3.11/site-packages"),
        ("/srv/extra", None, "/srv/extra"),
        ("/usrlocal/site", "/usr", "/usrlocal/site"),
    ],
)
def test_what_is_only_visible_is_not_removed_from_here(site: str, base: str | None, leads_to: str) -> None:
    """The command names the environment that holds it."""
    seen = distribution("six", site_packages=site, owned_here=False)
    found = only(guards(snapshot(seen, environment=environment(base_prefix=base)), "six"))
    assert (found.code, found.severity) == (Code.EXTERNALLY_MANAGED, ERROR)
    assert found.help == (f"safe-uninstall -p {leads_to} six",)


def test_debians_own_is_apts_to_remove() -> None:
    """Dpkg owns these files, and knows nothing of RECORD."""
    site = "/usr/lib/python3/dist-packages"
    found = only(guards(snapshot(distribution("six", site_packages=site)), "six", break_system_packages=True))
    assert (found.code, found.help) == (Code.EXTERNALLY_MANAGED, ("apt remove python3-six",))


TOOL = (
    distribution("safe-uninstall", requires=("Click>=8", "pip", "docs; extra=='docs'", "absent", "==broken")),
    distribution("click", requires=("colorama; sys_platform == 'win32'", "safe-uninstall")),
    distribution("colorama"),
    distribution("docs"),
    distribution("pip"),
    distribution("other"),
)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("safe-uninstall", "is this tool"),
        ("click", "is needed by this tool"),
        ("colorama", "is needed by this tool"),
    ],
)
def test_the_tool_does_not_remove_itself_or_what_it_needs(name: str, words: str) -> None:
    """Where it runs from this very environment, requirements of requirements included."""
    found = only(guards(snapshot(*TOOL), name, tool_prefix=PREFIX))
    assert (found.code, found.severity) == (Code.SELF_REMOVAL, ERROR)
    assert words in found.message


@pytest.mark.parametrize("name", ["docs", "other"])
def test_what_the_tool_does_not_need_passes(name: str) -> None:
    """Extras of the tool are not what it runs with."""
    assert guards(snapshot(*TOOL), name, tool_prefix=PREFIX) == ()


@pytest.mark.parametrize("tool_prefix", [None, "/opt/tool"])
def test_from_elsewhere_the_tool_can_be_removed(tool_prefix: str | None) -> None:
    """It removes any copy but the one that runs."""
    assert guards(snapshot(*TOOL), "safe-uninstall", "click", tool_prefix=tool_prefix) == ()


def test_an_environment_that_runs_the_tool_without_holding_it() -> None:
    """A source tree on the path: nothing of the environment is known to be needed."""
    assert guards(snapshot(distribution("click")), "click", tool_prefix=PREFIX) == ()


def test_a_visible_copy_of_the_tool_is_not_the_one_that_runs() -> None:
    """The system's copy does not protect this environment's distributions."""
    seen = distribution("safe-uninstall", site_packages="/usr/s", owned_here=False, requires=("click",))
    assert guards(snapshot(seen, distribution("click")), "click", tool_prefix=PREFIX) == ()


def test_the_last_pip_is_warned_of() -> None:
    """It can go; how it comes back is said. A second copy, or uv's environment, needs no warning."""
    found = only(guards(snapshot(distribution("pip", "24.0")), "pip"))
    assert (found.code, found.severity) == (Code.SELF_REMOVAL, WARNING)
    assert found.help == (f"bring it back later: {PYTHON} -m ensurepip",)
    seen = distribution("pip", "23.0", site_packages="/usr/s", owned_here=False)
    snap = snapshot(distribution("pip", "24.0"), seen)
    leaving = tuple(item for item in snap.distributions if item.owned_here)
    assert judge_guards(snap, Request(names=("pip",)), leaving, Commands(snap, InstallerKind.PIP)) == ()
    by_uv = snapshot(distribution("pip"), environment=environment(created_by_uv=True))
    assert guards(by_uv, "pip") == ()
