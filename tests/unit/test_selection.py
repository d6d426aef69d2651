"""Selection: names, globs and requirements turned into installed distributions."""

import pytest

from safe_uninstall.analysis.commands import Commands
from safe_uninstall.analysis.selection import select
from safe_uninstall.model.environment import InstallerKind
from safe_uninstall.model.errors import NotInstalled, UsageError
from safe_uninstall.model.snapshot import Snapshot
from tests.support.fakes import Installed, distribution, snapshot

SYSTEM = "/usr/lib/python3/dist-packages"


def visible(name: str, version: str = "1.0") -> Installed:
    """Return a distribution that the environment merely sees."""
    return distribution(name, version, site_packages=SYSTEM, owned_here=False)


ENVIRONMENT = snapshot(
    distribution("nvidia-cudnn-cu12", "9.10.2.21"),
    distribution("nvidia-cudnn-cu13", "9.24.0.43"),
    distribution("nvidia-nccl-cu13", "2.30.7"),
    distribution("torch", "2.9.1+cu128"),
    distribution("zope-interface", "6.0"),
    distribution("old", "2004d-final_x"),
    distribution("twice", "1.0"),
    distribution("twice", "2.0"),
    distribution("both", "1.0"),
    visible("both", "0.9"),
    visible("nvidia-driver-tools"),
    visible("six"),
)


def selected(*names: str, environment: Snapshot = ENVIRONMENT) -> list[str]:
    """Return ``name version`` of what is selected."""
    return [item.label for item in select(environment, names, Commands(environment, InstallerKind.PIP))]


@pytest.mark.parametrize("written", ["zope.interface", "Zope_Interface", "zope-interface", " zope--interface "])
def test_names_are_normalised(written: str) -> None:
    """PEP 503: case, and runs of separators."""
    assert selected(written) == ["zope-interface 6.0"]


def test_several_names_come_sorted_and_once() -> None:
    """The order of the request, and saying something twice, change nothing."""
    expected = ["nvidia-cudnn-cu13 9.24.0.43", "torch 2.9.1+cu128"]
    assert selected("torch", "nvidia-cudnn-cu13", "Torch") == expected
    assert selected("nvidia-cudnn-cu13", "torch") == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("nvidia-*-cu13", ["nvidia-cudnn-cu13", "nvidia-nccl-cu13"]),
        ("NVIDIA_*_cu13", ["nvidia-cudnn-cu13", "nvidia-nccl-cu13"]),
        ("nvidia-cudnn-cu1?", ["nvidia-cudnn-cu12", "nvidia-cudnn-cu13"]),
        ("nvidia-cudnn-cu1[3-9]", ["nvidia-cudnn-cu13"]),
        ("nvidia-cudnn-cu1[!3]", ["nvidia-cudnn-cu12"]),
        ("nvidia-*-cu1[_2-]", ["nvidia-cudnn-cu12"]),
        ("nvidia*", ["nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-nccl-cu13"]),
    ],
)
def test_globs_match_normalised_names(pattern: str, expected: list[str]) -> None:
    """A pattern is normalised like a name, its character classes left alone; it means what is the environment's own."""
    assert [label.partition(" ")[0] for label in selected(pattern)] == expected


def test_a_glob_that_matches_only_what_is_visible_means_that() -> None:
    """The refusal that follows says where it is, instead of that there is nothing."""
    assert selected("nvidia-driver-*") == ["nvidia-driver-tools 1.0"]


def test_what_the_environment_holds_hides_what_it_sees() -> None:
    """Only its own copy can be removed, whatever was written; what is only visible is selected, and refused later."""
    assert selected("both") == ["both 1.0"]
    assert selected("both==1.0") == ["both 1.0"]
    assert selected("six") == ["six 1.0"]
    with pytest.raises(UsageError):
        selected("both==0.9")


def test_all_copies_of_a_name_go_together() -> None:
    """Two dist-info of one name are both selected, also by the version of one of them."""
    assert selected("twice") == ["twice 1.0", "twice 2.0"]
    assert selected("twice==2.0") == ["twice 1.0", "twice 2.0"]


@pytest.mark.parametrize(
    "written",
    [
        "torch==2.9.1",
        "torch == 2.9.*",
        "torch>=2,<3",
        "torch~=2.9",
        "torch[opt-einsum]",
        "torch[a, b]>=2",
        "torch; python_version >= '3'",
        "torch @ https://example.org/torch.whl?a=[b]*",
        "Torch>2.0.dev1",
    ],
)
def test_requirements_select_by_name_when_the_version_fits(written: str) -> None:
    """``pip uninstall`` takes requirements too: extras and URLs say nothing about what is installed."""
    assert selected(written) == ["torch 2.9.1+cu128"]


def test_a_requirement_whose_marker_does_not_hold_is_passed_over() -> None:
    """It is not about this environment, whether such a distribution is installed in it or not."""
    assert selected("torch; python_version < '3'", "absent; sys_platform == 'win32'", "old") == ["old 2004d-final_x"]
    assert selected("torch; extra == 'dev'", "old") == ["old 2004d-final_x"]


def test_requirements_none_of_which_applies_are_an_error() -> None:
    """Doing nothing without a word would look like success."""
    with pytest.raises(UsageError) as caught:
        selected("torch; python_version < '3'", "six ; os_name == 'nt'")
    assert caught.value.message == (
        "nothing of it applies to `/env`: the markers of `torch; python_version < '3'`, `six ; os_name == 'nt'`"
        " do not hold there"
    )
    assert caught.value.help == ("give the name without a marker to remove it all the same",)


def test_a_version_older_than_pep_440_is_selected_by_name() -> None:
    """It cannot be compared."""
    assert selected("old>=1") == ["old 2004d-final_x"]


def test_another_version_is_an_error_that_names_the_installed_one() -> None:
    """Removing 2.9.1 for who asked for 2.8 would be a surprise."""
    with pytest.raises(UsageError) as caught:
        selected("torch==2.8")
    assert caught.value.message == "`torch==2.8` asks for another version than the one installed: 2.9.1+cu128"
    assert caught.value.help == ("leave the version out to remove the one that is installed",)


@pytest.mark.parametrize("written", ["torch==", "torch[a]>", "torch;;", "torch @"])
def test_a_broken_requirement_is_an_error(written: str) -> None:
    """The name alone is not taken: what else was meant is unknown."""
    with pytest.raises(UsageError, match="is not a requirement"):
        selected(written)


@pytest.mark.parametrize("written", ["", ".", "./torch", "/srv/torch.whl", "a b", "-torch", "torch-", "é"])
def test_what_is_no_name_is_an_error(written: str) -> None:
    """Paths and typing errors never select anything."""
    with pytest.raises(UsageError, match="is not a distribution name"):
        selected(written)


def test_all_unknown_names_are_told_at_once() -> None:
    """Each once, as written, with the installed names that look alike."""
    with pytest.raises(NotInstalled) as caught:
        selected("nvidia-cudn-cu13", "torch", "Absent", "nothing-*", "nvidia-cudn-cu13", "trch==1")
    error = caught.value
    assert error.names == ("nvidia-cudn-cu13", "Absent", "nothing-*", "trch==1")
    assert error.near["nvidia-cudn-cu13"][0] == "nvidia-cudnn-cu13"
    assert error.near["Absent"] == ()
    assert error.near["trch==1"] == ("torch",)
    assert "did you mean `torch`?" in error.help


@pytest.mark.parametrize(
    ("written", "near"),
    [
        ("cudnn", ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13")),
        ("torch-nightly", ("torch",)),
        ("zopeinterface", ("zope-interface",)),
        ("nvidia-cudnn-cu9*", ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12")),
        ("zz", ()),
        ("[a]*", ()),
    ],
)
def test_near_matches(written: str, near: tuple[str, ...]) -> None:
    """Similar names, names that contain what was written, and names that it contains."""
    with pytest.raises(NotInstalled) as caught:
        selected(written)
    assert set(caught.value.near[written]) == set(near)


def test_without_near_matches_the_help_says_where_to_look() -> None:
    """There is always a next step, and it is about the environment in question, which the message names."""
    with pytest.raises(NotInstalled) as caught:
        selected("zz")
    assert caught.value.message == "not installed in `/env`: `zz`"
    assert caught.value.help == ("see what is installed: pip --python /env/bin/python list",)


def test_at_most_three_near_matches() -> None:
    """A long list helps nobody."""
    many = snapshot(*(distribution(f"nvidia-part-{number}") for number in range(9)))
    with pytest.raises(NotInstalled) as caught:
        selected("nvidia-part", environment=many)
    assert len(caught.value.near["nvidia-part"]) == 3
