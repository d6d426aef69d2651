"""Files that a RECORD cannot decide about: those of survivors without one, and parts of the environment itself."""

from pathlib import Path

import pytest

from tests.support.environments import EnvironmentBuilder, read_tree
from tests.support.program import safe_uninstall
from tests.support.runs import build_twins

BOTH = pytest.mark.parametrize("installer", ["pip", "uv"])


def test_a_survivor_without_a_record_keeps_its_files(environment: EnvironmentBuilder) -> None:
    """Removing its twin is refused; after the RECORD is back, the twin goes and shared files stay."""
    build_twins(environment)
    record = environment.site_packages / "twin_cu12-12.1.dist-info/RECORD"
    text = record.read_bytes()
    record.unlink()
    before = read_tree(environment.prefix)
    done = safe_uninstall("-y", "-p", environment.prefix, "twin-cu11")
    assert done.status == 3
    assert "error[record-missing]: `twin-cu12` 12.1 stays and has no RECORD: " in done.out
    assert read_tree(environment.prefix) == before
    record.write_bytes(text)
    assert safe_uninstall("-y", "-p", environment.prefix, "twin-cu11").status == 0
    assert (environment.site_packages / "nvidia/nvtx/lib/libnvToolsExt.so.1").exists()


@BOTH
def test_the_interpreter_is_nobodys(environment: EnvironmentBuilder, installer: str) -> None:
    """Rows that name it are not followed: the distribution goes, the environment stays one."""
    environment.distribution("evil", "1.0", {"evil.py": "x = 1\n"})
    record = environment.site_packages / "evil-1.0.dist-info/RECORD"
    record.write_text(record.read_text() + "../../../bin/python,,\n../../../pyvenv.cfg,,\n../../../bin/activate,,\n")
    done = safe_uninstall("-y", "--installer", installer, "-p", environment.prefix, "evil")
    assert done.status == 0, done.out + done.err
    assert "warning[record-unsafe]: the RECORD of `evil` 1.0 names 3 paths that cannot be its own" in done.out
    assert (environment.prefix / "bin/python").exists()
    assert (environment.prefix / "pyvenv.cfg").exists()
    assert not (environment.site_packages / "evil.py").exists()


def test_the_source_tree_of_a_development_install_is_not_a_second_one(
    environment: EnvironmentBuilder, tmp_path: Path
) -> None:
    """Its egg-info, which a ``.pth`` file makes visible, keeps nothing in place."""
    source = tmp_path / "src"
    source.mkdir()
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "x"\n[project]\nname = "dev"\nversion = "1.0"\n'
    )
    environment.distribution(
        "dev",
        "1.0",
        {
            "dev.pth": f"{source}\n",
            "dev-1.0.dist-info/direct_url.json": f'{{"url": "file://{source}", "dir_info": {{"editable": true}}}}',
            "dev-1.0.dist-info/entry_points.txt": "[console_scripts]\ndev = dev:main\n",
        },
    )
    script = environment.bin / "dev"
    script.write_text(f"#!{environment.python}\n")
    egg = source / "dev.egg-info"
    egg.mkdir()
    (egg / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: dev\nVersion: 1.0\n")
    (egg / "entry_points.txt").write_text("[console_scripts]\ndev = dev:main\n")
    done = safe_uninstall("-y", "-p", environment.prefix, "dev")
    assert done.status == 0, done.out + done.err
    assert not script.exists()
    assert egg.exists()
