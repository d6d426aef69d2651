"""Requirements: which of a survivor's were satisfied and no longer would be."""

from collections.abc import Iterable

import pytest

from safe_uninstall.analysis.metadata import lost_requirements, may_apply, required_by_others
from safe_uninstall.model.distribution import Distribution, MetadataKind
from tests.support.fakes import MARKERS, distribution


def needs(name: str, *requires: str, version: str = "1.0", owned_here: bool = True) -> Distribution:
    """Return a distribution with requirements."""
    return distribution(name, version, requires=requires, owned_here=owned_here).distribution


def lost(leaving: Iterable[Distribution], *survivors: Distribution) -> list[tuple[str, str, str]]:
    """Return (dependent, requirement, by) of what is lost."""
    found = lost_requirements(leaving, survivors, MARKERS)
    return [(item.dependent.name, item.requirement, item.by.name) for item in found]


LIB = needs("lib", version="2.0")


def test_a_requirement_that_only_a_leaving_distribution_satisfied_is_lost() -> None:
    """The plain case, with the requirement as written."""
    assert lost([LIB], needs("app", "Lib>=1.5,<3")) == [("app", "Lib<3,>=1.5", "lib")]


def test_names_are_compared_normalised() -> None:
    """PEP 503: ``My.Lib_x`` is ``my-lib-x``."""
    assert lost([needs("my-lib-x")], needs("app", "My.Lib_x")) == [("app", "My.Lib_x", "my-lib-x")]


@pytest.mark.parametrize("text", ["lib (>=1.0)", "lib", "lib >= 1", "lib~=2.0", "lib @ https://example.org/lib.whl"])
def test_forms_of_requirements(text: str) -> None:
    """Old parentheses, blanks and URLs are requirements too."""
    assert [item[0] for item in lost([LIB], needs("app", text))] == ["app"]


def test_what_was_not_satisfied_before_is_no_loss() -> None:
    """A version that never fitted was broken before."""
    assert lost([LIB], needs("app", "lib>=3")) == []


def test_what_another_distribution_of_the_name_satisfies_is_no_loss() -> None:
    """A second copy, or the one of the system, still serves; one of the wrong version does not."""
    assert lost([LIB], needs("app", "lib"), needs("lib", version="1.0", owned_here=False)) == []
    assert lost([LIB], needs("app", "lib>=2"), needs("lib", version="1.0")) == [("app", "lib>=2", "lib")]


def test_requirements_of_leaving_distributions_do_not_count() -> None:
    """Only survivors are asked."""
    assert lost([LIB, needs("app", "lib")], needs("other")) == []


def test_pre_releases_satisfy() -> None:
    """An installed pre-release is what is there; whether one would be installed is no question."""
    assert lost([needs("lib", version="2.0rc1")], needs("app", "lib>=1")) == [("app", "lib>=1", "lib")]


def test_local_versions_satisfy_a_pin() -> None:
    """``torch 2.9.1+cu128`` is ``torch==2.9.1`` (PEP 440)."""
    assert lost([needs("torch", version="2.9.1+cu128")], needs("app", "torch==2.9.1")) != []


@pytest.mark.parametrize(
    ("marker", "counts"),
    [
        ("sys_platform == 'linux'", True),
        ("sys_platform == 'win32'", False),
        ("python_version < '3.11'", False),
        ("python_version >= '3.11'", True),
        ("platform_machine == 'aarch64'", False),
    ],
)
def test_markers_are_those_of_the_target(marker: str, counts: bool) -> None:
    """The environment's own markers decide, not those of the interpreter that runs this."""
    assert bool(lost([LIB], needs("app", f"lib; {marker}"))) is counts


def test_a_marker_that_cannot_be_judged_counts() -> None:
    """Words that do not compare: unknown is not "no need", and no reason to stop."""
    assert lost([LIB], needs("app", "lib; os_name ~= 'posix'")) == [("app", "lib", "lib")]


def test_an_extra_that_nobody_asks_for_does_not_count() -> None:
    """That all of it happened to be installed is no reason."""
    assert lost([LIB], needs("app", "lib; extra == 'fast'")) == []


def test_an_extra_that_a_survivor_asks_for_counts() -> None:
    """Whatever the spelling of the extra."""
    app = needs("app", "lib; extra == 'fast-math'")
    assert lost([LIB], app, needs("user", "app[Fast_Math]")) == [("app", "lib", "lib")]
    assert lost([LIB], app, needs("user", "app[other]")) == []


def test_an_extra_that_only_a_leaving_distribution_asked_for_does_not_count() -> None:
    """Who asked is gone too."""
    assert lost([LIB, needs("user", "app[fast]")], needs("app", "lib; extra == 'fast'")) == []


def test_an_extra_may_ask_for_another_extra() -> None:
    """``app[all]`` that stands for ``app[fast,slow]`` is followed, across distributions and through circles."""
    app = needs("app", "lib; extra == 'fast'", "app[fast,slow]; extra == 'all'")
    assert lost([LIB], app, needs("user", "app[all]")) == [("app", "lib", "lib")]
    assert lost([LIB], app) == []
    middle = needs("middle", "app[all]; extra == 'x'", "middle[x]; extra == 'y'", "middle[y]; extra == 'x'")
    assert lost([LIB], app, middle) == []
    assert lost([LIB], app, middle, needs("user", "middle[y]")) == [("app", "lib", "lib")]


def test_an_extra_asked_for_on_another_platform_does_not_count() -> None:
    """The asking requirement has markers too."""
    app = needs("app", "lib; extra == 'fast'")
    assert lost([LIB], app, needs("user", "app[fast]; sys_platform == 'win32'")) == []


def test_one_loss_is_told_once() -> None:
    """The same requirement under two extras is one loss."""
    app = needs("app", "lib; extra == 'a'", "lib; extra == 'b'")
    assert lost([LIB], app, needs("user", "app[a,b]")) == [("app", "lib", "lib")]


@pytest.mark.parametrize("text", ["lib ===", "lib >>> 1", "lib; nonsense == 'x'", "", "==1.0"])
def test_what_cannot_be_read_is_passed_over(text: str) -> None:
    """A broken Requires-Dist was never satisfied."""
    assert lost([LIB], needs("app", text)) == []


def test_what_cannot_be_read_asks_for_no_extra() -> None:
    """Neither does it stop the others from being read."""
    app = needs("app", "lib; extra == 'a'")
    assert lost([LIB], app, needs("user", "app[a] >>> 1")) == []
    assert lost([LIB], app, needs("user", "app[a] >>> 1", "app[a]")) == [("app", "lib", "lib")]


def test_a_version_older_than_pep_440_satisfies() -> None:
    """It cannot be compared; that it was satisfied is what is known."""
    assert lost([needs("lib", version="2004d-final_x")], needs("app", "lib>=1")) == [("app", "lib>=1", "lib")]


def test_losses_are_sorted() -> None:
    """By dependent, then requirement, whatever the order of the input."""
    extra = needs("extra")
    survivors = (needs("z", "lib"), needs("a", "lib", "extra"))
    assert lost([LIB, extra], *survivors) == [("a", "extra", "extra"), ("a", "lib", "lib"), ("z", "lib", "lib")]
    assert lost([extra, LIB], *survivors[::-1]) == lost([LIB, extra], *survivors)


def test_the_satisfying_one_of_two_leaving_copies_is_named() -> None:
    """Of two copies of one name that both go, the one that fitted."""
    found = lost_requirements([needs("lib", version="1.0"), LIB], [needs("app", "lib>=2")], MARKERS)
    assert [item.by.version for item in found] == ["2.0"]


def test_which_names_others_require() -> None:
    """In the version that is there, under markers that hold; a distribution's own name does not count."""
    installed = [
        distribution("app", requires=("Lib>=1", "off; sys_platform == 'win32'", "old>=2", "not a requirement")),
        distribution("lib", requires=("lib[all]", "@")),
        distribution("off"),
        distribution("old"),
        distribution("other", requires=("lib",)),
    ]
    names = frozenset({"lib", "off", "old", "absent"})
    found = required_by_others(names, (item.distribution for item in installed), MARKERS)
    assert found == {"lib"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lib>=1", True),
        ("lib; sys_platform == 'linux'", True),
        ("lib; sys_platform == 'win32'", False),
        ("lib; extra == 'fast'", True),
        ("lib; extra == 'fast' and python_version < '3'", False),
        ("lib; sys_platform == 'linux' or extra == 'fast'", True),
        ("lib; no requirement", True),
    ],
)
def test_which_requirements_can_count_at_all(text: str, expected: bool) -> None:
    """By themselves, or under an extra, whether somebody asks for it or not; what cannot be read may."""
    assert may_apply(text, MARKERS) is expected


def test_a_conda_package_without_metadata_satisfies_nothing() -> None:
    """Whatever it is called: installers do not see it."""
    package = distribution("b", "1.0", conda_package="b-1.0-0", metadata_kind=MetadataKind.CONDA).distribution
    assert lost([needs("b")], needs("a", "b"), package) == [("a", "b", "b")]
    assert lost([needs("b")], needs("a", "b"), needs("b", version="2.0")) == []
