"""What makes an environment one is never a distribution's own."""

import pytest

from safe_uninstall.model.distribution import Record, RecordRow, RecordState
from safe_uninstall.model.environment import EnvironmentKind
from safe_uninstall.scan.skeleton import is_skeleton, shield
from tests.support.environments import EnvironmentBuilder
from tests.support.fakes import PREFIX, SITE, at, environment


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("../../../bin/python", True),
        ("../../../bin/python3", True),
        ("../../../bin/python3.11", True),
        ("../../../bin/python3.13t", True),
        ("../../../bin/pypy3", True),
        ("../../../bin/activate", True),
        ("../../../bin/Activate.ps1", True),
        ("../../../bin/activate.fish", True),
        ("../../../bin/activate_this.py", True),
        ("../../../pyvenv.cfg", True),
        ("../../../.lock", True),
        ("../../../.safe-uninstall/x/journal.jsonl", True),
        ("../../../conda-meta/history", True),
        ("../site-packages", True),
        ("../../../bin/pip", False),
        ("../../../bin/pip3.11", False),
        ("../../../bin/python-argcomplete-check-easy-install-script", False),
        ("../../../bin/sub/python", False),
        ("../../../bin/activate-global-python-argcomplete", False),
        ("../../../lib/libumf.so.0", False),
        ("../os.py", False),
        ("python", False),
        ("pkg/pyvenv.cfg", False),
    ],
)
def test_parts_of_a_venv(path: str, part: bool) -> None:
    """The interpreter, its scripts and markers; scripts of pip and its like are their distributions' own."""
    assert is_skeleton(at(path), environment()) is part


def test_the_standard_library_lies_around_site_packages() -> None:
    """In an installation of Python itself."""
    system = environment(kind=EnvironmentKind.SYSTEM)
    assert is_skeleton(at("../os.py"), system)
    assert not is_skeleton(at("pkg/os.py"), system)
    assert not is_skeleton(f"{PREFIX}/lib/libumf.so.0", system)


def test_rows_that_name_it_are_unsafe() -> None:
    """They are taken out, and told as they could have been written."""
    rows = tuple(RecordRow(at(path), "", None) for path in ("a.py", "../../../bin/python", "../../../bin/a"))
    record = Record(state=RecordState.PRESENT, rows=rows, unsafe=("../../../../etc/passwd",))
    shielded = shield(record, environment(), SITE)
    assert [row.path for row in shielded.rows] == [at("a.py"), at("../../../bin/a")]
    assert shielded.unsafe == ("../../../../etc/passwd", "../../../bin/python")
    whole = Record(state=RecordState.PRESENT, rows=rows[:1])
    assert shield(whole, environment(), SITE) is whole


def test_scripts_cannot_be_the_interpreter(environment: EnvironmentBuilder) -> None:
    """An entry point named ``python`` makes no claim."""
    environment.distribution("evil", "1.0", {"evil.py": ""})
    (info,) = environment.site_packages.glob("evil-1.0.dist-info")
    (info / "entry_points.txt").write_text("[console_scripts]\npython = evil:main\nevil = evil:main\n")
    (evil,) = (item for item in environment.snapshot().distributions if item.name == "evil")
    assert [path.rpartition("/")[2] for path in evil.scripts] == ["evil"]
