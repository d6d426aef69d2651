"""The actions of a plan: what happens to each distribution, with reason, paths and size."""

from safe_uninstall.model.plan import Action, ActionKind, Rewrite
from tests.support.cases import CUDNN, consumers, incident, outline, plan
from tests.support.fakes import SITE, at, distribution, snapshot
from tests.support.wheels import FakeWheels, wheel

CU12, CU13 = "nvidia-cudnn-cu12", "nvidia-cudnn-cu13"


def test_a_restoration() -> None:
    """It names what it writes, how much that is, and where from."""
    snap = incident()
    own = wheel(CU12, "9.10.2.21", {CUDNN: b"cu12", "nvidia/cudnn/h.h": b"12"}, objects=list(snap.objects.values())[:1])
    found = plan(snap, CU13, rewrites=(Rewrite.RESTORE,), wheels=FakeWheels(snap, restores={CU12: own}))
    _, restore = found.actions
    assert restore == Action(
        kind=ActionKind.RESTORE,
        distribution=restore.distribution,
        requested=False,
        reason="its own files again, from the index",
        paths=(at("nvidia/cudnn/h.h"), at(CUDNN)),
        bytes=6,
        metadata_path=f"{SITE}/nvidia_cudnn_cu12-9.10.2.21.dist-info",
    )
    assert restore.distribution.label == f"{CU12} 9.10.2.21"


def test_an_installation_that_replaces() -> None:
    """The old version goes unasked, its release too; the new one was asked for."""
    snap = snapshot(
        distribution("lib", "1", {"x": b"12345", "shared": b"s"}), distribution("twin", claims={"shared": b"s"})
    )
    wheels = FakeWheels(snap, index={"lib": [wheel("lib", "2", {"x": b"22", "y": b"3"})]})
    found = plan(snap, install=("lib",), wheels=wheels)
    assert outline(found) == [("uninstall", "lib"), ("release", "lib"), ("install", "lib")]
    old, release, new = found.actions
    assert (old.requested, old.reason, old.bytes) == (False, "replaced by 2", 5)
    assert (release.requested, release.reason) == (False, "owned by twin")
    assert (new.requested, new.reason, new.paths, new.bytes) == (True, "from the index", (at("x"), at("y")), 3)
    assert new.metadata_path == at("lib-2.dist-info")


def test_what_is_written_anew_is_not_deleted() -> None:
    """The prediction knows the outcome, whoever wrote the path before."""
    snap = snapshot(distribution("lib", "1", {"x": b"1", "z": b"1"}))
    wheels = FakeWheels(snap, index={"lib": [wheel("lib", "2", {"x": b"22"})]})
    prediction = plan(snap, install=("lib",), wheels=wheels).prediction
    assert at("x") not in prediction.deleted
    assert at("z") in prediction.deleted
    assert prediction.installed == {at("lib-2.dist-info")}


def test_a_substitute_was_not_asked_for() -> None:
    """It says for whom it comes."""
    from tests.unit.test_rewriting import good, substitutable

    found = plan(substitutable(), "bad", rewrites=(Rewrite.SUBSTITUTE,), wheels=good())
    (install,) = [item for item in found.actions if item.kind is ActionKind.INSTALL]
    assert (install.requested, install.reason) == (False, "from the index, since app 1.0 needs libp.so")


def test_what_stays_touches_nothing() -> None:
    """No path, no bytes, and it was named."""
    (keep,) = plan(consumers("a"), "provider", rewrites=(Rewrite.KEEP_NEEDED,)).actions
    assert (keep.kind, keep.paths, keep.bytes, keep.requested) == (ActionKind.KEEP, (), 0, True)


def test_what_goes_unasked_releases_unasked() -> None:
    """A cascade's distribution leaves what others own in place, as any does."""
    snap = consumers(
        "a", more=[distribution("twin", claims={"a/m.so": b"a"}), distribution("other", claims={"s": b"s"})]
    )
    more = snapshot(
        distribution("lib"),
        distribution("app", claims={"s": b"s"}, requires=("lib",)),
        distribution("other", claims={"s": b"s"}),
    )
    found = plan(more, "lib", rewrites=(Rewrite.CASCADE,))
    assert [(item.kind.value, item.distribution.name, item.requested) for item in found.actions] == [
        ("uninstall", "app", False),
        ("release", "app", False),
        ("uninstall", "lib", True),
    ]
    assert all(
        item.kind is not ActionKind.RELEASE for item in plan(snap, "provider", rewrites=(Rewrite.CASCADE,)).actions
    )
