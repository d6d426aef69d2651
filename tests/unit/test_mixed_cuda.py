"""Mixed CUDA majors after a change: told of the consumers that it touches, with what they require and what they get."""

from collections.abc import Iterable
from typing import Any

import pytest

from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.model.elf import ElfObject
from safe_uninstall.model.plan import Code, Finding, Plan, Request, Rewrite, Severity, Verdict
from safe_uninstall.model.snapshot import Snapshot
from tests.support.fakes import Disk, Installed, Row, at, distribution, elf, snapshot
from tests.support.wheels import FakeWheels, wheel

CUDNN, NCCL, CUBLAS = (f"nvidia/{name}" for name in ("cudnn/libcudnn.so.9", "nccl/libnccl.so.2", "cublas/libcublas.so"))
TORCH = "torch/libtorch.so"
RPATH = "$ORIGIN/../nvidia/cudnn:$ORIGIN/../nvidia/nccl:$ORIGIN/../nvidia/cublas:$ORIGIN/../nvidia/new"


def contaminated(
    *more: Installed, requires: tuple[str, ...] | None = None, extra: Iterable[ElfObject] = ()
) -> Snapshot:
    """Return an environment where two libraries of cu12 hold cu13's bytes, and torch loads them beside a third."""
    wanted = ("nvidia-cudnn-cu12==9.10; platform_system == 'Linux'", "Nvidia_NCCL_cu12==2.27", "nvidia-cublas-cu12")
    return snapshot(
        distribution("nvidia-cublas-cu12", "12.8", {CUBLAS: b"cublas"}),
        distribution("nvidia-cudnn-cu12", "9.10", {CUDNN: b"cudnn12"}),
        distribution("nvidia-nccl-cu12", "2.27", {NCCL: b"nccl12"}),
        distribution("torch", "2.9", {TORCH: b"t"}, requires=wanted if requires is None else requires),
        distribution("nvidia-cudnn-cu13", "9.24", {CUDNN: b"cudnn13!"}),
        distribution("nvidia-nccl-cu13", "2.30", {NCCL: b"nccl13!"}),
        *more,
        objects=[
            elf(at(CUDNN), "libcudnn.so.9"),
            elf(at(NCCL), "libnccl.so.2"),
            elf(at(CUBLAS), "libcublas.so", "libcudnn.so.9", "libnccl.so.2", rpath=RPATH.replace("../", "../../")),
            elf(at(TORCH), "libtorch.so", "libcudnn.so.9", "libnccl.so.2", "libcublas.so", rpath=RPATH),
            *extra,
        ],
    )


def plan(snap: Snapshot, *names: str, wheels: FakeWheels | None = None, **options: Any) -> Plan:
    """Plan a request, with the wheels that the RECORDs tell of."""
    return make_plan(snap, Request(names=names, **options), wheels or FakeWheels(snap))


def mixed(found: Plan) -> list[Finding]:
    """Return the findings about mixed majors."""
    return [item for item in found.findings if item.code is Code.MIXED_CUDA]


def test_what_stays_mixed_is_told() -> None:
    """One leftover goes and its victim is restored; the other leftover's bytes are still loaded."""
    found = plan(contaminated(), "nvidia-cudnn-cu13", rewrites=(Rewrite.RESTORE,))
    assert found.verdict is Verdict.REWRITE
    (finding,) = mixed(found)
    assert (finding.severity, finding.path) == (Severity.WARNING, at(NCCL))
    assert finding.message == "`torch` 2.9 requires CUDA 12, and loads libnccl.so.2 of CUDA 13"
    assert finding.distribution is not None
    assert finding.distribution.name == "torch"
    assert finding.notes == ("libnccl.so.2 is of nvidia-nccl-cu13 2.30; required is Nvidia_NCCL_cu12==2.27",)
    assert finding.paths == (at(NCCL),)


def test_every_consumer_is_told_of() -> None:
    """One finding each, by name; what nobody owns is nobody's to tell of."""
    objects = [elf(at(f"{name}/lib.so"), None, "libtorch.so", rpath="$ORIGIN/../torch") for name in ("audio", "mine")]
    snap = contaminated(distribution("audio", claims={"audio/lib.so": b"a"}), extra=objects)
    found = plan(snap, "nvidia-cudnn-cu13", rewrites=(Rewrite.RESTORE,))
    assert [item.distribution.name for item in mixed(found) if item.distribution is not None] == ["audio", "torch"]
    assert len(mixed(found)) == 2


def test_what_is_mixed_no_more_is_not_told() -> None:
    """Both leftovers go."""
    found = plan(contaminated(), "nvidia-cudnn-cu13", "nvidia-nccl-cu13", rewrites=(Rewrite.RESTORE,))
    assert (found.verdict, mixed(found)) == (Verdict.REWRITE, [])


def test_what_an_installation_mixes_is_told() -> None:
    """The wheel's bytes are not there yet; that they will be loaded the outcome says."""
    new = "nvidia/new/libcudnn.so.9"
    comer = wheel("nvidia-cudnn-cu13", "9.24", {new: b"n"}, objects=[elf(at(new), "libcudnn.so.9")])
    snap = snapshot(
        distribution("nvidia-cublas-cu12", "12.8", {CUBLAS: b"c"}),
        distribution("torch", claims={TORCH: b"t"}),
        objects=[
            elf(at(CUBLAS), "libcublas.so"),
            elf(at(TORCH), "libtorch.so", "libcudnn.so.9", "libcublas.so", rpath=RPATH),
        ],
    )
    wheels = FakeWheels(snap, index={"nvidia-cudnn-cu13": [comer]})
    (finding,) = mixed(plan(snap, wheels=wheels, install=("nvidia-cudnn-cu13",)))
    # What torch is built for nothing tells: all of them are named.
    assert finding.message == "`torch` 1.0 loads libraries of CUDA 12 and CUDA 13"
    assert finding.notes == (
        "libcublas.so is of nvidia-cublas-cu12 12.8",
        "libcudnn.so.9 is of nvidia-cudnn-cu13 9.24",
    )
    assert finding.paths == (at(CUBLAS), at(new))


def test_what_another_wheel_brings_is_of_no_major() -> None:
    """A library of a wheel without a major in its name takes the place of one with it."""
    comer = wheel("own-cudnn", "1.0", {CUDNN: b"own"}, objects=[elf(at(CUDNN), "libcudnn.so.9")])
    snap = contaminated(requires=())
    wheels = FakeWheels(snap, index={"own-cudnn": [comer]})
    found = plan(snap, wheels=wheels, install=("own-cudnn",), accepted_losses=("nvidia-cudnn-cu13",))
    (finding,) = mixed(found)
    assert finding.notes == (
        "libcublas.so is of nvidia-cublas-cu12 12.8",
        "libnccl.so.2 is of nvidia-nccl-cu13 2.30",
    )


def test_only_consumers_that_the_plan_touches_are_told_of() -> None:
    """Torch is mixed before and after, and has nothing to do with what goes."""
    library = elf(at("o/libo.so"), "libo.so")
    found = plan(contaminated(distribution("other", claims={"o/libo.so": b"o"}), extra=[library]), "other")
    assert (found.verdict, found.findings) == (Verdict.ALLOW, ())


def test_consumers_that_go_are_not_told_of() -> None:
    """Nor are CUDA's own wheels, which only say it again."""
    found = plan(contaminated(), "nvidia-cudnn-cu13", "torch", rewrites=(Rewrite.RESTORE,))
    assert (found.verdict, mixed(found)) == (Verdict.REWRITE, [])


def test_a_blocked_plan_tells_nothing_of_it() -> None:
    """It changes nothing: ``check`` tells what is."""
    found = plan(contaminated(), "nvidia-cudnn-cu13")
    assert (found.verdict, mixed(found)) == (Verdict.BLOCK, [])


def test_one_major_is_nothing_to_tell() -> None:
    """Nothing is loaded to find that out."""
    snap = snapshot(
        distribution("nvidia-cublas-cu12", "12.8", {CUBLAS: b"c"}),
        distribution("torch", claims={TORCH: b"t"}),
        objects=[elf(at(CUBLAS), "libcublas.so"), elf(at(TORCH), "libtorch.so", "libcublas.so", rpath=RPATH)],
    )
    assert mixed(plan(snap, "torch")) == []


def sizes(cu12: Row | bytes, cu13: Row | bytes, content: bytes) -> Snapshot:
    """Return an environment where a library is claimed by two majors, beside one of cu12 and something that goes."""
    return snapshot(
        distribution("nvidia-cublas-cu12", "12.8", {CUBLAS: b"c"}),
        distribution("nvidia-cudnn-cu12", "9.10", {CUDNN: cu12}),
        distribution("nvidia-cudnn-cu13", "9.24", {CUDNN: cu13}),
        distribution("torch", claims={TORCH: b"t"}),
        distribution("extra", claims={"nvidia/nccl/libnccl.so.2": b"n"}),
        objects=[
            elf(at(CUDNN), "libcudnn.so.9"),
            elf(at(NCCL), "libnccl.so.2"),
            elf(at(CUBLAS), "libcublas.so"),
            elf(at(TORCH), "libtorch.so", "libcudnn.so.9", "libcublas.so", "libnccl.so.2", rpath=RPATH),
        ],
        disk={CUDNN: content},
    )


@pytest.mark.parametrize(
    ("cu12", "cu13", "content", "hashed", "told"),
    [
        # Sizes tell.
        (b"12", b"thirteen", b"thirteen", False, True),
        (b"12", b"thirteen", b"12", False, False),
        # Nobody's size.
        (b"12", b"thirteen", b"edited", False, False),
        # Equal sizes: only the bytes tell.
        (b"twelve", b"thirte", b"thirte", True, True),
        (b"twelve", b"thirte", b"twelve", True, False),
        # A row without a size, or without a hash, says nothing.
        (Row(content=b""), b"thirte", b"thirte", True, True),
        (Row(content=b""), Row(content=b""), b"thirte", False, False),
    ],
)
def test_whose_bytes_they_are(cu12: Row | bytes, cu13: Row | bytes, content: bytes, hashed: bool, told: bool) -> None:
    """A library is hashed only where sizes leave it open: CUDA's are large."""
    snap = sizes(cu12, cu13, content)
    found = plan(snap, "extra", accepted_losses=("libnccl.so.2",))
    assert found.verdict is Verdict.ALLOW
    assert bool(mixed(found)) is told
    assert isinstance(snap.evidence, Disk)
    assert (at(CUDNN) in snap.evidence.hashed) is hashed


def test_requirements_that_say_nothing() -> None:
    """What is no requirement, and what nobody who claims the library is named by."""
    found = plan(
        contaminated(requires=("", "numpy", "nvidia-nccl-cu13==2.30")),
        "nvidia-cudnn-cu13",
        rewrites=(Rewrite.RESTORE,),
    )
    (finding,) = mixed(found)
    assert finding.message == "`torch` 2.9 requires CUDA 13, and loads libcublas.so and libcudnn.so.9 of CUDA 12"
    assert finding.notes == ("libcublas.so is of nvidia-cublas-cu12 12.8", "libcudnn.so.9 is of nvidia-cudnn-cu12 9.10")
