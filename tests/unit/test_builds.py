"""Two builds of one version are told apart by the hashes of their RECORDs."""

from dataclasses import replace
from pathlib import Path

import pytest

from safe_uninstall.execute.builds import can_be_compared, difference
from safe_uninstall.model.distribution import Distribution
from safe_uninstall.model.wheel import Wheel
from safe_uninstall.scan.wheel import read_wheel
from tests.support.environments import EnvironmentBuilder
from tests.support.wheel_files import put_wheel, write_wheel

FILES = {
    "demo/__init__.py": "x = 1\n",
    "demo/bin/data.bin": "data",
    "demo-1.0.data/scripts/tool": "#!python\n",
}


def installed(builder: EnvironmentBuilder, name: str = "demo") -> Distribution:
    """Return what is installed under a name."""
    return next(item for item in builder.snapshot().distributions if item.name == name)


def told(builder: EnvironmentBuilder, file: Path) -> str | None:
    """Return the difference between a wheel and what is installed."""
    return difference(read(builder, file), installed(builder), str(builder.bin))


def read(builder: EnvironmentBuilder, file: Path) -> Wheel:
    """Read a wheel."""
    return read_wheel(str(file), builder.environment(), source="a test")


@pytest.fixture
def file(environment: EnvironmentBuilder, tmp_path: Path) -> Path:
    """Return the wheel that is installed."""
    file = write_wheel(tmp_path / "own", "demo", files=FILES, scripts={"demo": "demo:main"})
    put_wheel(environment, file, metadata={"REQUESTED": "", "direct_url.json": "{}"})
    return file


def test_the_wheel_that_was_installed(environment: EnvironmentBuilder, file: Path) -> None:
    """What installers write, and first lines of scripts that they change, are no difference."""
    (environment.bin / "tool").write_text("#!/another/python\n")
    assert told(environment, file) is None


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"demo/__init__.py": "x = 2\n"}, "is another build than the one installed: demo/__init__.py has other bytes"),
        ({"demo/bin/data.bin": "more"}, "is another build than the one installed: demo/bin/data.bin has other bytes"),
        ({"demo/new.py": ""}, "is another build than the one installed, which has no demo/new.py"),
    ],
)
def test_another_build(
    environment: EnvironmentBuilder, file: Path, tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    """Other bytes under one path, or one path more, are another build; the path is named."""
    other = write_wheel(tmp_path / "other", "demo", files={**FILES, **files}, scripts={"demo": "demo:main"})
    assert told(environment, other) == reason


def test_the_tags_of_a_build_are_part_of_it(environment: EnvironmentBuilder, file: Path, tmp_path: Path) -> None:
    """WHEEL has a hash too."""
    tags = ["py3-none-linux_x86_64"]
    other = write_wheel(tmp_path / "other", "demo", files=FILES, scripts={"demo": "demo:main"}, tags=tags)
    assert (
        told(environment, other) == "is another build than the one installed: demo-1.0.dist-info/WHEEL has other bytes"
    )


def test_another_version_or_distribution(environment: EnvironmentBuilder, file: Path, tmp_path: Path) -> None:
    """It is called what it is."""
    assert told(environment, write_wheel(tmp_path, "demo", "2.0")) == "is demo 2.0"
    assert told(environment, write_wheel(tmp_path, "other")) == "is other 1.0"


def test_another_name_of_the_metadata_directory(environment: EnvironmentBuilder, file: Path, tmp_path: Path) -> None:
    """Installing it would leave two of one distribution."""
    other = write_wheel(tmp_path, "Demo", files=FILES)
    assert told(environment, other) == "is another build than the one installed: it has no demo-1.0.dist-info"


def test_another_directory_of_distributions(environment: EnvironmentBuilder, file: Path) -> None:
    """An installer puts wheels into the first one only."""
    elsewhere = replace(installed(environment), metadata_path="/elsewhere/demo-1.0.dist-info")
    wheel = read(environment, file)
    assert difference(wheel, elsewhere, str(environment.bin)) == (
        f"would be installed into {environment.site_packages}, which is not where it is"
    )


def test_rows_that_cannot_be_compared(environment: EnvironmentBuilder, file: Path) -> None:
    """A row without a hash, or with one of another kind, says nothing against a wheel."""
    item = installed(environment)
    rows = [row._replace(hash="" if row.path.endswith("data.bin") else row.hash) for row in item.record.rows]
    rows = [row._replace(hash="md5=abc") if row.path.endswith("__init__.py") else row for row in rows]
    changed = replace(item, record=replace(item.record, rows=tuple(rows)))
    assert difference(read(environment, file), changed, str(environment.bin)) is None
    assert can_be_compared(changed)
    bare = tuple(row._replace(hash="") for row in rows)
    assert not can_be_compared(replace(item, record=replace(item.record, rows=bare)))
