"""What a blocked plan offers: whole rewrites that work, as commands; and what it says of those that do not."""

import shlex

import pytest

from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.plan import ActionKind, Plan, Rewrite, Verdict
from safe_uninstall.model.snapshot import Snapshot
from tests.support.cases import HEADLESS, OPENCV, consumers, incident, opencv, outline, plan
from tests.support.fakes import at, distribution, elf, snapshot
from tests.support.wheels import FakeWheels, wheel

RESTORE, SUBSTITUTE, KEEP, CASCADE = Rewrite
CU12, CU13 = "nvidia-cudnn-cu12", "nvidia-cudnn-cu13"


def offered(found: Plan) -> list[tuple[str, str]]:
    """Return the rewrites that a blocked plan offers, each with what it does."""
    assert found.verdict is Verdict.BLOCK
    return [(" ".join(item.value for item in offer.rewrites), offer.summary) for offer in found.alternatives]


def chained(*more: str) -> Snapshot:
    """Return an environment in which ``app`` needs a library of ``lib``, with some that need nothing."""
    return consumers("app", provider="lib", more=[distribution(name) for name in more])


def test_the_incident_offers_to_restore() -> None:
    """Nothing is fetched for it; the actions are told without paths and sizes."""
    snap = incident()
    wheels = FakeWheels(snap)
    found = plan(snap, CU13, wheels=wheels)
    assert offered(found) == [("restore", f"remove it and restore {CU12} 9.10.2.21")]
    assert wheels.asked_to_restore == []
    actions = found.alternatives[0].actions
    assert [(item.kind, item.distribution.name) for item in actions] == [
        (ActionKind.UNINSTALL, CU13),
        (ActionKind.RESTORE, CU12),
    ]
    assert {(item.paths, item.bytes) for item in actions} == {((), 0)}


def test_restoring_and_keeping_are_both_offered_a_cascade_only_without_them() -> None:
    """The milder ones first; keeping all that was named is none."""
    assert offered(plan(incident(distribution("free")), CU13, "free")) == [
        ("restore", f"remove them and restore {CU12} 9.10.2.21"),
        ("keep-needed", f"remove free 1.0 and keep {CU13} 9.24.0.43"),
    ]
    assert offered(plan(chained("free"), "lib", "free")) == [("keep-needed", "remove free 1.0 and keep lib 1.0")]
    assert offered(plan(chained(), "lib")) == [("cascade", "remove it and remove app 1.0 too")]


def test_a_combination_is_offered_where_no_part_of_it_suffices() -> None:
    """One loss can only be restored, the other only be avoided by keeping."""
    snap = snapshot(
        distribution("a", claims={"x": b"a"}),
        distribution("b", claims={"x": b"bb"}),
        distribution("lib"),
        distribution("app", requires=("lib",)),
    )
    # Keeping both is a way, but the wrong one for what can go.
    assert offered(plan(snap, "b", "lib")) == [
        ("restore keep-needed", "remove b 1.0 and restore a 1.0 and keep lib 1.0")
    ]


def test_opencv_last_writer() -> None:
    """The survivor was overwritten: it is restored, whoever requires it."""
    app = distribution("app", requires=(OPENCV,))
    for snap in (opencv(HEADLESS), opencv(HEADLESS, app)):
        assert offered(plan(snap, HEADLESS)) == [("restore", f"remove it and restore {OPENCV} 4.9")]


def test_opencv_first_writer() -> None:
    """The survivor owns the bytes on disk: the other just goes, unless somebody requires it."""
    assert outline(plan(opencv(HEADLESS), OPENCV)) == [("uninstall", OPENCV), ("release", OPENCV)]
    required = plan(opencv(HEADLESS, distribution("app", requires=(OPENCV,))), OPENCV)
    assert offered(required) == [("cascade", "remove it and remove app 1.0 too")]


def test_opencv_last_writer_with_a_dependent() -> None:
    """The dependent goes, and the survivor is restored; removing the survivor too is the second choice."""
    snap = opencv(OPENCV, distribution("app", requires=(OPENCV,)))
    found = plan(snap, OPENCV)
    assert offered(found) == [
        ("restore cascade", f"remove it and remove app 1.0 too and restore {HEADLESS} 4.9"),
        ("cascade", f"remove it and remove app 1.0, {HEADLESS} 4.9 too"),
    ]
    assert [item.command for item in found.alternatives] == [
        f"safe-uninstall {OPENCV} --restore --cascade",
        f"safe-uninstall {OPENCV} --cascade",
    ]
    assert plan(snap, OPENCV, rewrites=(RESTORE, CASCADE)).verdict is Verdict.REWRITE


def test_what_was_tried_is_not_offered_again() -> None:
    """What is offered comes on top of it."""
    snap = opencv(OPENCV, distribution("app", requires=(OPENCV,)))
    found = plan(snap, OPENCV, rewrites=(RESTORE,))
    assert offered(found) == [("cascade", f"remove it and remove app 1.0 too and restore {HEADLESS} 4.9")]
    assert found.alternatives[0].command == f"safe-uninstall {OPENCV} --restore --cascade"
    missing = FakeWheels(incident(), restores={CU12: None})
    assert offered(plan(incident(), CU13, rewrites=(RESTORE,), wheels=missing)) == []


def test_a_wheel_that_is_known_to_be_missing_is_not_presumed() -> None:
    """Where restoring failed, keeping may still be offered."""
    snap = incident(distribution("free"))
    found = plan(snap, CU13, "free", rewrites=(RESTORE,), wheels=FakeWheels(snap, restores={CU12: None}))
    assert offered(found) == [("keep-needed", f"remove free 1.0 and keep {CU13} 9.24.0.43")]


def test_no_way_out() -> None:
    """Nothing is offered where nothing helps, and the findings keep their own help."""
    snap = snapshot(
        distribution("lib", claims={"l.so": b"l"}),
        objects=[elf(at("l.so"), "l.so"), elf(at("mine.so"), None, "l.so", rpath="$ORIGIN")],
    )
    assert offered(plan(snap, "lib")) == []


def test_a_replacement_is_no_removal() -> None:
    """What an installation replaces is neither removed in the summary nor a reason to keep it."""
    snap = snapshot(distribution("lib", "1"), distribution("app", requires=("lib<2",)), distribution("old"))
    wheels = FakeWheels(snap, index={"lib": [wheel("lib", "2")]})
    alone = plan(snap, install=("lib",), wheels=wheels)
    assert offered(alone) == [("cascade", "install lib 2 and remove app 1.0 too")]
    assert alone.alternatives[0].command == "safe-uninstall --cascade --install lib"
    both = plan(snap, "old", install=("lib",), wheels=wheels)
    assert offered(both) == [("cascade", "remove it and install lib 2 and remove app 1.0 too")]


def test_long_lists_are_cut_short() -> None:
    """Three names, and how many more."""
    names = [f"app{number}" for number in range(5)]
    (offer,) = plan(consumers(*names), "provider").alternatives
    assert offer.summary == "remove it and remove app0 1.0, app1 1.0, app2 1.0 and 2 more too"


def test_a_command_repeats_all_that_the_request_was_given_with() -> None:
    """It plans the very same, with the rewrite added."""
    snap = consumers("app", provider="lib", more=[distribution("a b", requires=())])
    wheels = FakeWheels(snap, index={"new>=1": [wheel("new")]})
    found = plan(
        snap,
        "lib*",
        wheels=wheels,
        rewrites=(RESTORE,),
        install=("new>=1",),
        find_links=("/my wheels",),
        no_index=True,
        use_library_path=True,
        break_system_packages=True,
        installer=InstallerKind.UV,
        refuse_in_use=True,
        probes=("import app",),
        probe_timeout=5.0,
        python="/env/bin/python",
    )
    (offer,) = found.alternatives
    assert shlex.split(offer.command) == [
        *("safe-uninstall", "-p", "/env/bin/python", "lib*", "--restore", "--cascade", "--install", "new>=1"),
        *("--find-links", "/my wheels", "--probe", "import app", "--probe-timeout", "5", "--refuse-in-use"),
        *("--no-index", "--use-ld-library-path", "--break-system-packages", "--installer", "uv"),
    ]
    assert offer.rewrites == (CASCADE,)


def test_accepted_losses_are_repeated_and_change_nothing_that_is_offered() -> None:
    """What is accepted is neither restored nor kept."""
    snap = incident(distribution("lib"), distribution("app", requires=("lib",)))
    accepted = ("libcudnn.so.9", CU12)
    (offer,) = plan(snap, CU13, "lib", accepted_losses=accepted).alternatives
    assert (offer.rewrites, offer.summary) == ((KEEP,), f"remove {CU13} 9.24.0.43 and keep lib 1.0")
    assert offer.command.endswith(f"--keep-needed --accept-loss libcudnn.so.9 --accept-loss {CU12}")


@pytest.mark.parametrize("rewrites", [(), (KEEP,), (RESTORE, SUBSTITUTE)])
def test_every_offer_is_a_request_that_is_not_blocked(rewrites: tuple[Rewrite, ...]) -> None:
    """It does what it was offered to do."""
    snap = opencv(OPENCV, distribution("app", requires=(OPENCV,)))
    found = plan(snap, OPENCV, rewrites=rewrites)
    for offer in found.alternatives:
        again = plan(snap, OPENCV, rewrites=(*rewrites, *offer.rewrites))
        assert again.verdict is Verdict.REWRITE
        assert outline(again) == [(item.kind.value, item.distribution.name) for item in offer.actions]
