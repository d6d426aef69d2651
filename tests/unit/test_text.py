"""Plans and outcomes as text: the layout is a promise, so whole texts are compared."""

import re
from dataclasses import replace
from typing import Any

import pytest

from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.linkage import Strength
from safe_uninstall.model.outcome import Outcome, OutcomeState
from safe_uninstall.model.plan import (
    Action,
    ActionKind,
    Claimant,
    Code,
    Consumer,
    DistributionRef,
    Finding,
    Plan,
    Prediction,
    Request,
    Severity,
    Verdict,
)
from safe_uninstall.model.probe import ProbeRun
from safe_uninstall.render.text import render_outcome, render_plan
from tests.support.fakes import PREFIX, SITE, at, environment

CU12 = DistributionRef(name="nvidia-cudnn-cu12", version="9.10.2.21")
CU13 = DistributionRef(name="nvidia-cudnn-cu13", version="9.24.0.43")
TORCH = DistributionRef(name="torch", version="2.9.1")
CUDNN = "nvidia/cudnn/lib/libcudnn.so.9"
RPATH = "RPATH $ORIGIN/../../nvidia/cudnn/lib"


def consumer(path: str, how: str = RPATH, **changes: Any) -> Consumer:
    """Return a consumer of torch."""
    facts: dict[str, Any] = {"distribution": TORCH, "path": at(path), "strength": Strength.LINKED, "how": how}
    return Consumer(**{**facts, **changes})


def finding(**changes: Any) -> Finding:
    """Return the loss of the incident, each fact overridable."""
    facts: dict[str, Any] = {
        "code": Code.LIBRARY_LOST,
        "severity": Severity.ERROR,
        "message": "removing `nvidia-cudnn-cu13` 9.24.0.43 leaves libcudnn.so.9 without a provider",
        "distribution": CU13,
        "path": at(CUDNN),
        "soname": "libcudnn.so.9",
        "consumers": (
            consumer(
                "torch/lib/libtorch_cuda.so",
                searched=(at("torch/lib"), at("nvidia/cudnn/lib"), "ld.so.cache", "/lib", "/usr/lib"),
            ),
            consumer("torch/lib/libtorch_python.so"),
        ),
        "claimants": (Claimant(distribution=CU12, overwritten=22),),
        "help": ("put the files back first", "pip install --force-reinstall nvidia-cudnn-cu12==9.10.2.21"),
    }
    return Finding(**{**facts, **changes})


def plain(code: Code, message: str, severity: Severity = Severity.WARNING, **changes: Any) -> Finding:
    """Return a finding that is about no library."""
    return Finding(code=code, severity=severity, message=message, **changes)


def remove(reference: DistributionRef = CU13, files: int = 2, size: int = 966_000_000) -> Action:
    """Return the removal of a distribution."""
    return Action(
        kind=ActionKind.UNINSTALL,
        distribution=reference,
        requested=True,
        reason="requested",
        paths=tuple(at(f"file{number}") for number in range(files)),
        bytes=size,
    )


def plan(*findings: Finding, actions: tuple[Action, ...] | None = None, **changes: Any) -> Plan:
    """Return a plan that says what its findings make of it."""
    blocks = any(item.severity is Severity.ERROR for item in findings)
    facts: dict[str, Any] = {
        "environment": environment(),
        "fingerprint": "sha256:" + "0" * 64,
        "installer": InstallerKind.PIP,
        "request": Request(names=("nvidia-cudnn-cu13",)),
        "verdict": Verdict.BLOCK if blocks else Verdict.ALLOW,
        "actions": (remove(),) if actions is None else actions,
        "findings": findings,
        "prediction": Prediction(removed=frozenset(), deleted=frozenset(), released=frozenset()),
    }
    return Plan(**{**facts, **changes})


def text(plan: Plan, **options: Any) -> str:
    """Return a plan without colour."""
    return render_plan(plan, **{"verbose": False, "color": False, "dry_run": True, **options})


INCIDENT = """\
error[library-lost]: removing `nvidia-cudnn-cu13` 9.24.0.43 leaves libcudnn.so.9 without a provider
  library    nvidia/cudnn/lib/libcudnn.so.9
  needed by  torch 2.9.1   torch/lib/libtorch_cuda.so     (RPATH $ORIGIN/../../nvidia/cudnn/lib)
             torch 2.9.1   torch/lib/libtorch_python.so
  claimed by nvidia-cudnn-cu12 9.10.2.21, whose own bytes were overwritten: 22 files
  also tried torch/lib, ld.so.cache, default directories
help: put the files back first
        pip install --force-reinstall nvidia-cudnn-cu12==9.10.2.21
help: what this means   safe-uninstall explain library-lost
Blocked: 1 requested, 1 error. Nothing changed."""


def test_the_incident() -> None:
    """Code and sentence, evidence in aligned rows, help with whole commands, and the verdict last."""
    assert text(plan(finding())) == INCIDENT


def test_colour_carries_no_meaning() -> None:
    """Without its escapes the painted text is the plain one."""
    painted = text(plan(finding()), color=True)
    assert re.sub(r"\033\[[0-9;]*m", "", painted) == INCIDENT
    assert painted.startswith("\033[1;31merror[library-lost]\033[0m: ")


def test_an_allowed_plan_with_nothing_to_tell_is_quiet() -> None:
    """What goes, and that nothing changed."""
    assert text(plan()) == (
        "  remove  nvidia-cudnn-cu13 9.24.0.43   2 files, 966 MB\nWould remove 1 distribution, 966 MB. Nothing changed."
    )


def test_a_real_run_says_what_it_is_about_to_do() -> None:
    """Nothing has changed, and nothing says that nothing will."""
    assert text(plan(), dry_run=False).splitlines()[-1] == "To remove 1 distribution, 966 MB."


def test_released_files_are_kept_and_not_freed() -> None:
    """The row says how many stay, and whose they are."""
    release = Action(
        kind=ActionKind.RELEASE,
        distribution=CU13,
        requested=True,
        reason="owned by nvidia-cudnn-cu12",
        paths=(at(CUDNN),),
        bytes=1000,
    )
    assert text(plan(actions=(remove(), release))).splitlines()[1:] == [
        "  keep    1 file, 1.0 kB of nvidia-cudnn-cu13 9.24.0.43   owned by nvidia-cudnn-cu12",
        "Would remove 1 distribution, 966 MB. Nothing changed.",
    ]


def test_an_action_nobody_asked_for_says_why() -> None:
    """Removals that follow from others carry their reason."""
    action = Action(kind=ActionKind.UNINSTALL, distribution=TORCH, requested=False, reason="needs nvidia-cudnn-cu13")
    lines = text(plan(actions=(remove(), action))).splitlines()
    assert lines[1] == "  remove  torch 2.9.1   needs nvidia-cudnn-cu13"
    assert lines[-1].startswith("Would remove 2 distributions,")


def test_verbose_lists_every_path() -> None:
    """Below the row of its action."""
    assert text(plan(), verbose=True).splitlines()[1:3] == ["            file0", "            file1"]


def test_three_rows_of_evidence() -> None:
    """Then how many more there are; ``-v`` shows all."""
    consumers = tuple(consumer(f"torch/{letter}.so") for letter in "abcde")
    claimants = tuple(Claimant(distribution=DistributionRef(name=f"c{number}", version="1")) for number in range(4))
    lost = plan(finding(consumers=consumers, claimants=claimants))
    assert text(lost).splitlines()[2:10] == [
        "  needed by  torch 2.9.1   torch/a.so   (RPATH $ORIGIN/../../nvidia/cudnn/lib)",
        "             torch 2.9.1   torch/b.so",
        "             torch 2.9.1   torch/c.so",
        "             … 2 more",
        "  claimed by c0 1",
        "             c1 1",
        "             c2 1",
        "             … 1 more",
    ]
    full = text(lost, verbose=True)
    assert "more" not in full
    assert "torch/e.so" in full
    assert "c3 1" in full


def test_evidence_of_other_codes_has_three_rows_too() -> None:
    """Paths and notes."""
    overwritten = plain(
        Code.FILE_LOST,
        "files lost",
        Severity.ERROR,
        path=at("a"),
        paths=tuple(at(letter) for letter in "abcd"),
        notes=tuple(f"{at(letter)} is a directory" for letter in "abcd"),
    )
    assert text(plan(overwritten)).splitlines()[1:9] == [
        "  path a",
        "       b",
        "       c",
        "       … 1 more",
        "  note: a is a directory",
        "  note: b is a directory",
        "  note: c is a directory",
        "  note: … 1 more",
    ]
    assert "path d" in text(plan(overwritten), verbose=True).replace("       d", "  path d")


def test_one_path() -> None:
    """A finding about one place names it; one without any place has no row."""
    assert text(plan(plain(Code.RECORD_UNSAFE, "unsafe", path=at("x/RECORD")))).splitlines()[1] == "  path x/RECORD"
    assert text(plan(plain(Code.EXTERNALLY_MANAGED, "managed"))).splitlines()[1].startswith("  remove")


def test_an_unowned_consumer_and_other_ways_of_being_found() -> None:
    """Who needs it may be nobody's file; a way of being found is told again where it differs."""
    consumers = (
        consumer("mine.so", distribution=None),
        consumer("torch/b.so", "already loaded"),
        consumer("torch/c.so", "already loaded"),
    )
    rows = text(plan(finding(consumers=consumers))).splitlines()[2:5]
    assert rows == [
        "  needed by  (unowned)     mine.so      (RPATH $ORIGIN/../../nvidia/cudnn/lib)",
        "             torch 2.9.1   torch/b.so   (already loaded)",
        "             torch 2.9.1   torch/c.so",
    ]


def test_a_consumer_outside_the_environment() -> None:
    """Nobody's file that lies elsewhere is told by its whole path."""
    rows = text(
        plan(finding(consumers=(replace(consumer("x.so", distribution=None), path="/cache/x.so"),)))
    ).splitlines()
    assert rows[2] == "  needed by  (outside)   /cache/x.so   (RPATH $ORIGIN/../../nvidia/cudnn/lib)"


def test_verbose_shows_the_chain_that_loads_a_consumer() -> None:
    """From the root of the load; a consumer that is its own root has none."""
    consumers = (
        consumer("torch/b.so", context=(at("torch/_C.so"), at("torch/b.so"))),
        consumer("torch/c.so", context=(at("torch/c.so"),)),
    )
    lost = plan(finding(consumers=consumers))
    assert text(lost, verbose=True).count("loaded by") == 1
    assert "               loaded by torch/_C.so → torch/b.so" in text(lost, verbose=True).splitlines()
    assert "loaded by" not in text(lost)


def test_a_long_search_is_summed_up() -> None:
    """The consumer's own directory says most; the number of the others is told, and ``-v`` names them."""
    searched = (*(at(f"d{number}") for number in range(5)), at("torch/lib"), "ld.so.cache")
    lost = plan(finding(consumers=(consumer("torch/lib/a.so", searched=searched),)))
    assert "  also tried torch/lib, 5 other directories of its search path, ld.so.cache" in text(lost).splitlines()
    assert "  also tried d0, d1, d2, d3, d4, torch/lib, ld.so.cache" in text(lost, verbose=True).splitlines()
    elsewhere = plan(finding(consumers=(consumer("other/a.so", searched=searched),)))
    assert "  also tried d0, 5 other directories of its search path, ld.so.cache" in text(elsewhere).splitlines()


def test_no_search_no_row() -> None:
    """A library that was already loaded was searched for nowhere."""
    assert "also tried" not in text(plan(finding(consumers=(consumer("a.so"),))))
    assert "also tried" not in text(plan(finding(consumers=())))


def test_a_loss_without_a_place() -> None:
    """What nobody provided as a file has no library row."""
    assert "  library" not in text(plan(finding(path=None)))


def test_another_provider_is_no_search() -> None:
    """Where the loader finds something else, where else it looked is no news."""
    changed = finding(code=Code.PROVIDER_CHANGED, severity=Severity.NOTE, message="another", help=())
    assert text(plan(changed)).splitlines()[:2] == ["note[provider-changed]: another", f"  library    {CUDNN}"]
    assert "also tried" not in text(plan(changed))


def test_help_is_said_once() -> None:
    """What the next finding of that code says again is left to it, and what the code means is told once."""
    lines = text(plan(finding(), finding(), finding(help=("other",)), plain(Code.SELF_REMOVAL, "x"))).splitlines()
    assert [line for line in lines if line.startswith(("help", "       "))] == [
        *[line for line in INCIDENT.splitlines() if "torch/lib/libtorch_python.so" in line] * 2,
        "help: put the files back first",
        "        pip install --force-reinstall nvidia-cudnn-cu12==9.10.2.21",
        *[line for line in INCIDENT.splitlines() if "torch/lib/libtorch_python.so" in line],
        "help: other",
        "help: what this means   safe-uninstall explain library-lost",
    ]


def test_a_command_without_prose() -> None:
    """It stands on the line of ``help:`` itself, and is not broken there either."""
    command = "conda remove -p /env cudnn"
    lines = text(plan(plain(Code.EXTERNALLY_MANAGED, "x", help=(command,))), width=20).splitlines()
    assert f"help: {command}" in lines


def test_another_code_repeats_the_help() -> None:
    """Each kind of finding stands alone."""
    lost = plain(Code.FILE_LOST, "lost", Severity.ERROR, help=finding().help)
    assert text(plan(finding(), lost)).count("help: put the files back first") == 2


def test_warnings_are_counted_notes_are_not() -> None:
    """The verdict counts what may need a decision."""
    warning = plain(Code.UNOWNED_LEFT, "left")
    note = plain(Code.ALREADY_MISSING, "gone", Severity.NOTE)
    assert text(plan(finding(), warning, warning, note)).endswith(
        "Blocked: 1 requested, 1 error, 2 warnings. Nothing changed."
    )
    assert text(plan(warning, note)).endswith("Would remove 1 distribution, 966 MB, 1 warning. Nothing changed.")


def test_an_accepted_loss_says_so() -> None:
    """It is a warning, and what was accepted is marked."""
    first = text(plan(finding(severity=Severity.WARNING, accepted=True))).splitlines()[0]
    assert first.startswith("warning[library-lost]: ")
    assert first.endswith(" (accepted)")


def test_quiet_leaves_errors_and_the_verdict() -> None:
    """The verdict counts what is left out too."""
    warning = plain(Code.UNOWNED_LEFT, "left")
    assert text(plan(warning), quiet=True) == "Would remove 1 distribution, 966 MB, 1 warning. Nothing changed."
    quiet = text(plan(finding(), warning), quiet=True)
    assert quiet == INCIDENT.replace("1 error.", "1 error, 1 warning.")


def test_text_fits_the_terminal_without_breaking_paths_and_commands() -> None:
    """Prose and columns go on in the next line; a command stays whole, for it is to be copied."""
    lines = text(plan(finding()), width=60).splitlines()
    assert lines[3:5] == [
        "  needed by  torch 2.9.1   torch/lib/libtorch_cuda.so",
        "               (RPATH $ORIGIN/../../nvidia/cudnn/lib)",
    ]
    assert "        pip install --force-reinstall nvidia-cudnn-cu12==9.10.2.21" in lines
    assert [line for line in lines if len(line) > 60] == [
        "        pip install --force-reinstall nvidia-cudnn-cu12==9.10.2.21"
    ]
    assert re.sub(r"\s+", " ", " ".join(lines)) == re.sub(r"\s+", " ", INCIDENT)


def test_hostile_names_forge_no_line() -> None:
    """Paths, versions, messages and help come from other people's files."""
    evil = "x\nBlocked: 0\x1b[2J"
    reference = DistributionRef(name="evil", version=evil)
    shown = text(
        plan(
            finding(
                message=evil,
                path=at(evil),
                consumers=(consumer(evil, evil, distribution=reference, searched=(at(evil),)),),
                claimants=(Claimant(distribution=reference),),
                notes=(evil,),
                help=(evil,),
            ),
            plain(Code.FILE_OVERWRITTEN, evil, paths=(at(evil),)),
            actions=(remove(reference),),
        ),
        verbose=True,
    )
    assert all(character.isprintable() for line in shown.splitlines() for character in line)
    assert [line for line in shown.splitlines() if line.startswith("Blocked")] == [
        "Blocked: 1 requested, 1 error, 1 warning. Nothing changed."
    ]


def test_undecodable_paths_can_be_printed() -> None:
    """A file name that is no UTF-8 is shown with its bytes, relative to a prefix that may be none either."""
    where = environment(prefix="/\udcff", site_packages=("/\udcff/site",))
    shown = text(plan(plain(Code.UNOWNED_LEFT, "left", path="/\udcff/site/\udcfe.so"), environment=where))
    assert shown.splitlines()[1] == "  path \\xfe.so"
    shown.encode()


def outcome(state: OutcomeState = OutcomeState.COMMITTED, **changes: Any) -> Outcome:
    """Return how the removal of cu13 ended."""
    return Outcome(plan=changes.pop("plan", plan()), state=state, **changes)


def said(ended: Outcome, *, verbose: bool = False) -> list[str]:
    """Return the lines about an outcome, without colour."""
    return render_outcome(ended, verbose=verbose, color=False).splitlines()


def test_done() -> None:
    """One line: what went, and what it freed."""
    assert said(outcome(bytes_freed=966_000_000)) == ["Removed nvidia-cudnn-cu13 9.24.0.43 (966 MB)."]


def test_done_with_release_and_backup() -> None:
    """How many files stay, and where the others are."""
    release = Action(
        kind=ActionKind.RELEASE, distribution=CU13, requested=True, reason="", paths=(at("a"), at("b")), bytes=1
    )
    ended = outcome(plan=plan(actions=(remove(), release)), stash="/env/.safe-uninstall/1.kept")
    assert said(ended) == [
        "Backup kept in /env/.safe-uninstall/1.kept",
        "Removed nvidia-cudnn-cu13 9.24.0.43 (0 B). Kept 2 files that others own.",
    ]


def test_the_installer_is_heard_when_asked_or_when_it_failed() -> None:
    """All of it with ``-v``, the end of it after a failure, and none of it where all went well."""
    output = "\n".join(["\x1b[31mred", *(f"line {number}" for number in range(12))])
    assert len(said(outcome(installer_output=output))) == 1
    assert said(outcome(installer_output=output), verbose=True)[:2] == ["\\x1b[31mred", "line 0"]
    failed = outcome(OutcomeState.ROLLED_BACK, reason="pip failed with status 1", installer_output=output)
    assert said(failed) == [
        "error[failed]: pip failed with status 1",
        *(f"  | line {number}" for number in range(2, 12)),
        "Rolled back: the environment is as it was before.",
    ]
    assert "  | line 0" in said(failed, verbose=True)


def test_rolled_back() -> None:
    """Why, with three differences at most unless asked for more."""
    ended = outcome(
        OutcomeState.ROLLED_BACK,
        reason="the outcome is not the one that was planned",
        mismatches=tuple(f"{SITE}/{letter} is gone" for letter in "abcd"),
    )
    assert said(ended) == [
        "error[failed]: the outcome is not the one that was planned",
        "  a is gone",
        "  b is gone",
        "  c is gone",
        "  … 1 more",
        "Rolled back: the environment is as it was before.",
    ]
    assert "  d is gone" in said(ended, verbose=True)


@pytest.mark.parametrize(
    ("stash", "help"),
    [
        (
            f"{PREFIX}/stash\n",
            [
                "help: what is missing is in /env/stash\\n",
                "help: try again with more room or rights: safe-uninstall recover",
            ],
        ),
        (None, ["help: install the distributions named above again over what is there"]),
    ],
)
def test_roll_back_incomplete(stash: str | None, help: list[str]) -> None:
    """Where the files are, or how to get them again."""
    ended = outcome(OutcomeState.ROLLBACK_INCOMPLETE, reason="disk full", stash=stash)
    assert said(ended) == [
        "error[failed]: disk full",
        *help,
        "Roll back incomplete: the environment is neither as before nor as planned.",
    ]


def test_a_roll_back_is_tried_again_on_the_environment_that_was_asked_for() -> None:
    """``-p`` is repeated as it was given."""
    asked = replace(plan(), request=replace(plan().request, python="my env"))
    ended = outcome(OutcomeState.ROLLBACK_INCOMPLETE, plan=asked, stash="/stash")
    assert "help: try again with more room or rights: safe-uninstall -p 'my env' recover" in said(ended)


def test_probes_that_fail_already_are_told() -> None:
    """With why, and the end of what they printed; in a quiet run they are left out."""
    failed = ProbeRun(code="import x", failure="it ended with status 1", output="a\n\nb\nc\n  \nImportError: libx\n")
    silent, passed = ProbeRun(code="y"), ProbeRun(code="z", mapped=())
    lines = text(plan(probes=(failed, silent, passed))).splitlines()
    assert lines[:6] == [
        "warning: the probe `import x` fails already: it ended with status 1",
        "  | b",
        "  | c",
        "  | ImportError: libx",
        "help: mend it first, or leave it out: it will not be blamed on the change",
        "note: the probe `y` ended without telling which libraries it mapped",
    ]
    assert "probe" not in text(plan(probes=(failed, silent, passed)), quiet=True)
