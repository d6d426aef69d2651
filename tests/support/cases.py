"""Environments in memory that several tests ask about, and what their plans come to in short."""

from collections.abc import Iterable
from typing import Any

from safe_uninstall.analysis.plan import make_plan
from safe_uninstall.model.elf import SymbolTable
from safe_uninstall.model.plan import Plan, Request
from safe_uninstall.model.snapshot import Snapshot
from safe_uninstall.model.wheel import WheelSource
from tests.support.fakes import Disk, Installed, at, distribution, elf, snapshot
from tests.support.wheels import FakeWheels

CUDNN = "nvidia/cudnn/lib/libcudnn.so.9"
TORCH = "torch/lib/libtorch_cuda.so"
OPENCV = "opencv-python"
HEADLESS = "opencv-python-headless"


def incident(*more: Installed, **changes: Any) -> Snapshot:
    """Return the incident in miniature: cu13's library lies where cu12's did, and torch needs it."""
    return snapshot(
        distribution("nvidia-cudnn-cu12", "9.10.2.21", {CUDNN: b"cu12", "nvidia/cudnn/h.h": b"12"}),
        distribution("torch", "2.9.1", {TORCH: b"torch"}, requires=("nvidia-cudnn-cu12==9.10.2.21",)),
        distribution("nvidia-cudnn-cu13", "9.24.0.43", {CUDNN: b"cu13!", "nvidia/cudnn/h.h": b"13!"}),
        *more,
        objects=[
            elf(at(CUDNN), "libcudnn.so.9"),
            elf(at(TORCH), "libtorch_cuda.so", "libcudnn.so.9", rpath="$ORIGIN/../../nvidia/cudnn/lib"),
        ],
        **changes,
    )


def consumers(*names: str, provider: str = "provider", more: Iterable[Installed] = (), **changes: Any) -> Snapshot:
    """Return an environment in which some distributions need one library that another holds."""
    return snapshot(
        distribution(provider, claims={"lib/libp.so": b"p"}),
        *(distribution(name, claims={f"{name}/m.so": name.encode()}) for name in names),
        *more,
        objects=[
            elf(at("lib/libp.so"), "libp.so"),
            *(elf(at(f"{name}/m.so"), None, "libp.so", rpath="$ORIGIN/../lib") for name in names),
        ],
        **changes,
    )


def opencv(last: str = HEADLESS, *more: Installed) -> Snapshot:
    """Return two builds of one package, the one installed last over the other."""
    builds = {
        OPENCV: distribution(OPENCV, "4.9", {"cv2/__init__.py": b"same", "cv2/cv2.so": b"with windows"}),
        HEADLESS: distribution(HEADLESS, "4.9", {"cv2/__init__.py": b"same", "cv2/cv2.so": b"headless"}),
    }
    first = HEADLESS if last == OPENCV else OPENCV
    return snapshot(builds[first], builds[last], *more, objects=[elf(at("cv2/cv2.so"), None)])


def lacking_symbols(*more: Installed) -> Snapshot:
    """Return an environment where a need falls to a library that lacks a symbol when the first provider goes."""
    snap = snapshot(
        distribution("first", claims={"first/l.so": b"1"}),
        distribution("second", claims={"second/l.so": b"2"}),
        distribution("app", claims={"app.so": b"a"}),
        *more,
        objects=[
            elf(at("first/l.so"), "l.so"),
            elf(at("second/l.so"), "l.so"),
            elf(at("app.so"), None, "l.so", rpath="$ORIGIN/first:$ORIGIN/second"),
        ],
    )
    assert isinstance(snap.evidence, Disk)
    exported = {"first/l.so": {"f"}, "second/l.so": set[str](), "app.so": set[str]()}
    for path, names in exported.items():
        snap.evidence.tables[at(path)] = SymbolTable(
            exported=frozenset(names),
            undefined=frozenset({"f"} if path == "app.so" else ()),
            versions_defined=frozenset(),
            versions_needed=(),
        )
    return snap


def plan(snap: Snapshot, *names: str, wheels: WheelSource | None = None, **options: Any) -> Plan:
    """Plan a request; wheels are as the RECORDs say unless others are given."""
    return make_plan(snap, Request(names=names, **options), wheels or FakeWheels(snap))


def outline(found: Plan) -> list[tuple[str, str]]:
    """Return what a plan does: kind and name of each action."""
    return [(item.kind.value, item.distribution.name) for item in found.actions]


def reasons(found: Plan) -> dict[str, str]:
    """Return why something happens that nobody asked for, or does not happen that somebody did."""
    return {item.distribution.name: item.reason for item in found.actions if item.reason != "requested"}
