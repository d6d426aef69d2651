"""The answer to ``why NAME`` as a tree."""

import re
from dataclasses import replace
from typing import Any

from safe_uninstall.model.linkage import How
from safe_uninstall.model.plan import DistributionRef
from safe_uninstall.model.why import Claim, Provider, Unmet, User, Why
from safe_uninstall.render.why import render_why
from tests.support.fakes import PREFIX, at, environment

CU12 = DistributionRef(name="cu12", version="12")
CU13 = DistributionRef(name="cu13", version="13")
OTHER = DistributionRef(name="other", version="1")
TORCH = DistributionRef(name="torch", version="2")


def user(path: str, how: How = How.RPATH, via: str | None = "$ORIGIN/n", **changes: Any) -> User:
    """Return a file of torch that needs libx."""
    return User(**{"distribution": TORCH, "path": at(path), "name": "libx.so", "how": how, "via": via, **changes})


def provider(*users: User, **changes: Any) -> Provider:
    """Return libx, which cu12 and cu13 claim."""
    claims = (
        Claim(distribution=CU12, holds_bytes=False),
        Claim(distribution=CU13, holds_bytes=True),
        Claim(distribution=OTHER, holds_bytes=None),
    )
    return Provider(**{"path": at("n/libx.so"), "soname": "libx.so", "claims": claims, "users": users, **changes})


def answer(**changes: Any) -> Why:
    """Return an answer about libx."""
    facts: dict[str, Any] = {"name": "libx.so", "distributions": (), "requirers": (), "providers": (), "unmet": ()}
    return Why(**{**facts, **changes})


def shown(what: Why, *, verbose: bool = False, color: bool = False) -> list[str]:
    """Return the lines of an answer."""
    return render_why(what, environment(), verbose=verbose, color=color).splitlines()


def test_a_library() -> None:
    """Who claims it, whose bytes it holds, who needs it and how it is found."""
    users = (
        user("t.so"),
        user("u.so", How.RUNPATH),
        user("v.so", How.LD_LIBRARY_PATH, "/x"),
        user("w.so", How.CACHE, None, distribution=None),
    )
    assert shown(answer(providers=(provider(*users),))) == [
        "n/libx.so   soname libx.so",
        "  claimed by cu12 12   (overwritten: other bytes are on disk)",
        "  claimed by cu13 13   (its bytes are on disk)",
        "  claimed by other 1",
        "  needed by torch 2   t.so   (RPATH $ORIGIN/n)",
        "  needed by torch 2   u.so   (RUNPATH $ORIGIN/n)",
        "  needed by torch 2   v.so   (LD_LIBRARY_PATH /x)",
        "  needed by (unowned)   w.so   (cache)",
        "  without it 4 needs would be lost: torch 2, (unowned)",
    ]


def test_five_users_unless_all_are_asked_for() -> None:
    """The number of the others is told."""
    what = answer(providers=(provider(*(user(f"{letter}.so") for letter in "abcdefg")),))
    assert shown(what)[-2:] == ["  … 2 more", "  without it 7 needs would be lost: torch 2"]
    assert len(shown(what, verbose=True)) == len(shown(what)) + 1


def test_files_that_nobody_claims_or_needs() -> None:
    """Only of a library is it news that nothing needs it."""
    assert shown(answer(providers=(provider(claims=()),))) == [
        "n/libx.so   soname libx.so",
        "  claimed by nobody",
        "  needed by nothing that the loader finds",
    ]
    assert shown(answer(providers=(provider(path=f"{PREFIX}/bin/x", soname=None, claims=()),))) == [
        "bin/x",
        "  claimed by nobody",
    ]


def test_a_distribution() -> None:
    """Who requires it; and that no library of it is needed, where that is so."""
    what = answer(distributions=(CU12,), requirers=((TORCH, "cu12==12"),))
    assert shown(what) == [
        "cu12 12",
        "  required by torch 2   (cu12==12)",
        "  no file of another distribution links to a library of it",
    ]
    assert "  no file" not in shown(answer(distributions=(CU12,), providers=(provider(),)))[1]


def test_needs_that_nothing_meets() -> None:
    """Where was searched is told with ``-v``."""
    unmet = (
        Unmet(distribution=TORCH, path=at("t.so"), searched=(at("d"), "ld.so.cache")),
        Unmet(distribution=None, path=at("u.so"), searched=()),
    )
    assert shown(answer(unmet=unmet)) == [
        "needed by torch 2   t.so   (not found by the loader alone)",
        "needed by (unowned)   u.so   (not found by the loader alone)",
    ]
    assert shown(answer(unmet=unmet), verbose=True)[1:3] == ["  searched d", "  searched ld.so.cache"]


def test_colour_carries_no_meaning() -> None:
    """Without its escapes the painted tree is the plain one."""
    what = answer(distributions=(CU12,), providers=(provider(user("t.so")),))
    painted = "\n".join(shown(what, color=True))
    assert "\033[" in painted
    assert re.sub(r"\033\[[0-9;]*m", "", painted).splitlines() == shown(what)


def test_hostile_names_forge_no_line() -> None:
    """A file may be called anything."""
    what = answer(providers=(provider(user("a\nb\x1b.so"), path=at("x\ny"), claims=()),))
    assert len(shown(what)) == 4
    assert shown(what)[0] == "x\\ny   soname libx.so"
    assert "a\\nb\\x1b.so" in shown(what)[2]


def test_what_would_become_of_the_needs() -> None:
    """Who would lose it, and what would meet the others; many are counted."""
    users = [user(f"{n}.so", distribution=replace(TORCH, name=f"d{n}")) for n in range(5)]
    users += [user("x.so", without=at("m/libx.so")), user("y.so", without=at("m/libx.so"))]
    assert shown(answer(providers=(provider(*users),)))[-2:] == [
        "  without it 5 needs would be lost: d0 2, d1 2, d2 2, 2 more",
        "  without it 2 needs would be met by m/libx.so",
    ]
