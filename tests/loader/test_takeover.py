"""A library that takes over from one that goes: ours and the real loader agree whether its consumer still links."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from safe_uninstall.model.plan import Code
from tests.loader.harness import Workshop
from tests.support.environments import EnvironmentBuilder
from tests.support.program import safe_uninstall
from tests.support.tracing import dynamic_loader


def link(workshop: Workshop, path: str, source: str, *libraries: Path, script: str = "", rpath: str = "") -> Path:
    """Build a library against others, so that it asks for their symbols in their versions."""
    options = [f"-L{item.parent}" for item in libraries] + [str(item) for item in libraries]
    if script:
        (workshop.root / "map").write_text(script)
        options.append(f"-Wl,--version-script={workshop.root / 'map'}")
    # What a test takes away need not be there for the linker.
    options.append("-Wl,--allow-shlib-undefined")
    return workshop.build(path, source=source, options=options, rpath=rpath or None)


V4 = "__jit_12_4 { global: jit; local: *; };"
V45 = "__jit_12_4 { global: jit; local: *; }; __jit_12_5 { global: jit5; } __jit_12_4;"
SAME = '__attribute__((visibility("default"))) int '

CASES: Mapping[str, tuple[str, str, str, str, str, Code]] = {
    # consumer, its provider with its version script, what takes over with its script
    "version-lost": (
        "int jit5(void); int use(void) { return jit5(); }",
        f"{SAME}jit(void) {{ return 1; }} int jit5(void) {{ return 1; }}", V45,
        f"{SAME}jit(void) {{ return 1; }}", V4, Code.SYMBOLS_LOST,
    ),
    "symbol-lost": (
        "int window(void); int use(void) { return window(); }",
        "int window(void) { return 1; }", "", "int other(void) { return 1; }", "", Code.SYMBOLS_LOST,
    ),
    "weak": (
        "int window(void) __attribute__((weak)); int use(void) { return window ? window() : 0; }",
        "int window(void) { return 1; }", "", "int other(void) { return 1; }", "", Code.PROVIDER_CHANGED,
    ),
    "hidden": (
        "int window(void); int use(void) { return window(); }",
        "int window(void) { return 1; }", "",
        '__attribute__((visibility("hidden"))) int window(void) { return 1; } int other(void) { return window(); }', "",
        Code.SYMBOLS_LOST,
    ),
    "ifunc": (
        "int window(void); int use(void) { return window(); }",
        "int window(void) { return 1; }", "",
        "static int one(void) { return 1; } static int (*pick(void))(void) { return one; }"
        ' int window(void) __attribute__((ifunc("pick")));', "",
        Code.PROVIDER_CHANGED,
    ),
    "other-version": (
        "int jit5(void); int use(void) { return jit5(); }",
        f"{SAME}jit(void) {{ return 1; }} int jit5(void) {{ return 1; }}", V45,
        f"{SAME}jit(void) {{ return 1; }} int jit5(void) {{ return 1; }} int jit6(void) {{ return 1; }}",
        "__jit_12_4 { global: jit; jit5; local: *; }; __jit_12_5 { global: jit6; } __jit_12_4;",
        Code.SYMBOLS_LOST,
    ),
    "compatible": (
        "int jit5(void); int use(void) { return jit5(); }",
        f"{SAME}jit(void) {{ return 1; }} int jit5(void) {{ return 1; }}", V45,
        f"{SAME}jit(void) {{ return 1; }} int jit5(void) {{ return 2; }}", V45, Code.PROVIDER_CHANGED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_provider_that_takes_over(case: str, tmp_path: Path) -> None:
    """Blocked exactly where the loader, told to bind at once, would refuse to load the consumer."""
    consumer, source, script, other, other_script, code = CASES[case]
    workshop = Workshop(tmp_path / "workshop")
    workshop.root.mkdir()
    new = link(workshop, "new/libjit.so.12", source, script=script)
    old = link(workshop, "old/libjit.so.12", other, script=other_script)
    user = link(workshop, "user/libuser.so", consumer, new, rpath="$ORIGIN/../new/lib:$ORIGIN/../old/lib")
    builder = EnvironmentBuilder(tmp_path / "env")
    builder.distribution("user", files={"user/libuser.so": user.read_bytes()})
    builder.distribution("new", files={"new/lib/libjit.so.12": new.read_bytes()})
    builder.distribution("old", files={"old/lib/libjit.so.12": old.read_bytes()})
    assert binds(builder)
    done = safe_uninstall("-p", builder.prefix, "-n", "--format", "json", "new")
    found = [item for item in done.document["findings"] if item["code"] in ("symbols-lost", "provider-changed")]
    assert [item["code"] for item in found] == [code.value]
    assert done.status == (3 if code is Code.SYMBOLS_LOST else 0)
    (builder.site_packages / "new/lib/libjit.so.12").unlink()
    assert binds(builder) is (code is Code.PROVIDER_CHANGED)
    if case == "version-lost":
        assert "missing symbol versions: __jit_12_5" in found[0]["notes"]


def test_a_symbol_that_only_the_old_providers_own_library_exported(tmp_path: Path) -> None:
    """It leaves the load with the provider; where another library of the load exports it, nothing is lost."""
    for elsewhere in (False, True):
        workshop = Workshop(tmp_path / f"workshop{elsewhere}")
        workshop.root.mkdir()
        below = link(workshop, "new/libbelow.so", "int deep(void) { return 1; }")
        new = link(workshop, "new/liba.so", "int a(void) { return 1; }", below, rpath="$ORIGIN")
        old = link(workshop, "old/liba.so", "int a(void) { return 1; }")
        spare = link(workshop, "user/libspare.so", "int deep(void) { return 2; }" if elsewhere else "")
        source = "int a(void); int deep(void); int use(void) { return a() + deep(); }"
        user = link(
            workshop, "user/libuser.so", source, new, spare, rpath="$ORIGIN/../new/lib:$ORIGIN/../old/lib:$ORIGIN"
        )
        builder = EnvironmentBuilder(tmp_path / f"env{elsewhere}")
        files = {"user/libuser.so": user.read_bytes(), "user/libspare.so": spare.read_bytes()}
        builder.distribution("user", files=files)
        new_files = {"new/lib/liba.so": new.read_bytes(), "new/lib/libbelow.so": below.read_bytes()}
        builder.distribution("new", files=new_files)
        builder.distribution("old", files={"old/lib/liba.so": old.read_bytes()})
        assert binds(builder)
        done = safe_uninstall("-p", builder.prefix, "-n", "new")
        for path in new_files:
            (builder.site_packages / path).unlink()
        assert binds(builder) is elsewhere
        assert done.status == (0 if elsewhere else 3)
        assert ("error[symbols-lost]" in done.out, "missing symbols: deep" in done.out) == (not elsewhere,) * 2


def binds(builder: EnvironmentBuilder) -> bool:
    """Return whether the host's loader links the consumer when all is bound at once, without a complaint."""
    done = subprocess.run(
        [dynamic_loader(), str(builder.site_packages / "user/libuser.so")],
        env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "1", "LD_BIND_NOW": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return "undefined symbol" not in done.stdout + done.stderr and "not found" not in done.stdout + done.stderr
