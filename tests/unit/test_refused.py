"""Why rewrites do not help: said with the errors that they are about."""

from safe_uninstall.analysis.nearest import Cause
from safe_uninstall.analysis.refused import explain_refusal
from safe_uninstall.analysis.rewriting import Unresolved
from safe_uninstall.model.plan import Claimant, Code, DistributionRef, Finding, Rewrite, Severity
from safe_uninstall.model.wheel import WheelUnavailable


def finding(code: Code = Code.LIBRARY_LOST, severity: Severity = Severity.ERROR, **facts: object) -> Finding:
    """Return a finding."""
    return Finding(code=code, severity=severity, message="m", **facts)  # type: ignore[arg-type]


def explained(*findings: Finding, rewrites: tuple[Rewrite, ...] = (Rewrite.RESTORE,), **found: object) -> list[Finding]:
    """Explain, with nothing missing unless the test says so."""
    return explain_refusal(findings, rewrites, Unresolved(**found))  # type: ignore[arg-type]


LIBRARY = finding(soname="libp.so", help=("its own",))
REQUIREMENT = finding(Code.REQUIREMENT_LOST, distribution=DistributionRef(name="app", version="1"))
WARNING = finding(Code.FILE_OVERWRITTEN, Severity.WARNING, soname="libw.so")


def test_causes_stand_with_what_they_are_about() -> None:
    """By soname or distribution; what no error is about, with the first; warnings are left alone."""
    causes = (
        Cause(words="app 1 requires lib", subject="app"),
        Cause(words="torch 2 needs libp.so", subject="libp.so"),
        Cause(words="x 1 needs libw.so", subject="libw.so"),
    )
    warning, library, requirement = explained(WARNING, LIBRARY, REQUIREMENT, causes=causes)
    assert warning == WARNING
    assert library.notes == (
        "--restore does not help: torch 2 needs libp.so",
        "--restore does not help: x 1 needs libw.so",
    )
    assert requirement.notes == ("--restore does not help: app 1 requires lib",)
    assert library.help == ("its own",)


def test_several_flags_do_not_help() -> None:
    """All that were given are named, as they were given."""
    cause = Cause(words="a needs b", subject="libp.so")
    (found,) = explained(LIBRARY, rewrites=(Rewrite.RESTORE, Rewrite.KEEP_NEEDED), causes=(cause,))
    assert found.notes == ("--restore, --keep-needed do not help: a needs b",)


def test_missing_wheels_are_told_with_all_that_they_would_have_avoided() -> None:
    """How to supply them takes the place of the help, each command once."""
    claimant = Claimant(distribution=DistributionRef(name="cu12", version="9"))
    library = finding(soname="libp.so", claimants=(claimant,), help=("its own",))
    missing = (
        WheelUnavailable(requirement="cu12==9", reason="no network", help=("fetch", "cu12")),
        WheelUnavailable(requirement="app==1", reason="gone"),
        WheelUnavailable(requirement="cu12<9 more", reason="nothing fits", help=("fetch", "more")),
    )
    first, second = explained(library, REQUIREMENT, unavailable=missing)
    assert first.notes == ("no wheel for cu12==9: no network", "no wheel for cu12<9 more: nothing fits")
    assert first.help == ("cu12", "fetch", "more")
    assert (second.notes, second.help) == (("no wheel for app==1: gone",), ())


def test_nothing_to_explain() -> None:
    """Without causes and missing wheels the findings are as they were."""
    assert explained(LIBRARY, WARNING) == [LIBRARY, WARNING]
