"""Real libraries that open others by name: told of where these go, and right in that they work without."""

from tests.real.conftest import in_case
from tests.support.installed import PIP, Installed, blocked, removed


@in_case("tbb", PIP)
def test_tbb_names_what_tcmlib_ships(case: Installed) -> None:
    """TBB opens libtcm.so.1 by name, by no search path, and does without it; what it requires by metadata blocks."""
    assert "libtcm.so.1" not in blocked(case.safe_uninstall("-y", "tcmlib"), "requirement-lost")
    finished = case.safe_uninstall("-y", "tcmlib", "--accept-loss", "tbb")
    assert finished.status == 0, finished.err
    done = finished.out
    assert "warning[dlopen-lost]: removing `tcmlib` 1.6.0 leaves libtcm.so.1 without a provider" in done
    assert "needed by tbb 2023.2.0   lib/libtbb.so         (its data names it)" in done
    assert case.damaged("tbb") == []
    case.load("../../libtbb.so.12")


@in_case("tbb", PIP)
def test_siblings_go_together(case: Installed) -> None:
    """libtbb.so.12 opens libtbbmalloc.so.2 beside it; both are of one distribution, and nothing is left to lose."""
    done = removed(case.safe_uninstall("-y", "tbb"))
    assert "lost" not in done
    assert not (case.prefix / "lib/libtbb.so.12").exists()
