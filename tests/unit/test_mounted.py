"""Which environment is meant in a mounted root file system, what is read of it, and that nothing in it is run."""

import os
from pathlib import Path

import pytest

import safe_uninstall
from safe_uninstall.model.elf import Abi
from safe_uninstall.model.environment import Environment, EnvironmentKind
from safe_uninstall.model.errors import EnvironmentNotFound, UsageError
from safe_uninstall.model.plan import Request
from safe_uninstall.scan import interpreter as asked
from safe_uninstall.scan.environment import find_environment
from safe_uninstall.scan.mounted import inside
from safe_uninstall.scan.snapshot import scan
from safe_uninstall.scan.tree import Tree
from tests.support.elf_writer import EM_AARCH64
from tests.support.mounted import MountedRoot

AARCH64 = Abi(64, True, 183)


@pytest.fixture(autouse=True)
def _no_interpreter_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if anything is asked."""

    def refuse(python: str) -> None:
        raise AssertionError(f"{python} was run")

    monkeypatch.setattr(asked, "ask_interpreter", refuse)


def find(root: Path | str, python: str | None = None, directory: Path | str = "/") -> Environment:
    """Find an environment in a tree; variables of this shell name others."""
    return find_environment(python, variables={"VIRTUAL_ENV": "/x"}, directory=str(directory), root=str(root))


def why_not(root: Path | str, python: str | None = None) -> EnvironmentNotFound:
    """Return why none is found; there is always a next step."""
    with pytest.raises(EnvironmentNotFound) as caught:
        find(root, python)
    assert caught.value.help
    return caught.value


@pytest.fixture
def mounted(tmp_path: Path) -> MountedRoot:
    """A tree of an aarch64 Debian."""
    return MountedRoot(tmp_path / "mnt", machine=EM_AARCH64)


def test_a_venv_in_a_tree(mounted: MountedRoot) -> None:
    """All paths are those inside; its interpreter is what the absolute link in the tree leads to there."""
    mounted.venv()
    found = find(mounted.root, "/opt/venv")
    assert (found.prefix, found.kind, found.root) == ("/opt/venv", EnvironmentKind.VENV, str(mounted.root))
    assert (found.python, found.interpreter_path) == ("/opt/venv/bin/python", "/usr/bin/python3.11")
    assert found.site_packages == ("/opt/venv/lib/python3.11/site-packages",)
    assert (found.abi, found.markers["platform_machine"], found.base_prefix) == (AARCH64, "aarch64", "/usr")


@pytest.mark.parametrize("name", ["/opt/venv", "opt/venv", "/opt/venv/bin/python", "/srv/../opt/venv", "/link"])
def test_names_of_a_venv_in_a_tree(mounted: MountedRoot, name: str) -> None:
    """By its path in there, from the top or not, by its interpreter, and by a link."""
    mounted.venv()
    (mounted.root / "srv").mkdir()
    (mounted.root / "link").symlink_to("/opt/venv")
    assert find(mounted.root, name).prefix == "/opt/venv"


def test_a_path_with_the_roots_prefix_is_understood(mounted: MountedRoot, tmp_path: Path) -> None:
    """As a user of this machine would write it, relative or through a link to the tree too."""
    mounted.venv()
    assert find(mounted.root, str(mounted.root / "opt/venv")).prefix == "/opt/venv"
    assert find("mnt", "mnt/opt/venv/bin/python", tmp_path).prefix == "/opt/venv"
    (tmp_path / "alias").symlink_to("mnt")
    assert find("alias", "alias/opt/venv", tmp_path).prefix == "/opt/venv"


def test_what_is_outside_of_the_tree_is_not_found(mounted: MountedRoot, tmp_path: Path) -> None:
    """A path of this machine that leads elsewhere names nothing in the tree."""
    assert "there is no interpreter or environment" in why_not(mounted.root, str(tmp_path)).message
    assert inside(str(tmp_path), str(mounted.root), "/") is None
    assert inside("a/b", "/", "/c") == "/c/a/b"


def test_links_stay_in_the_tree(mounted: MountedRoot, tmp_path: Path) -> None:
    """An absolute target is one of the tree, ``..`` ends at its top, and loops lead nowhere."""
    mounted.venv()
    (tmp_path / "outside").mkdir()
    tree = Tree(str(mounted.root))
    for name, target in {"up": "../../../../opt/venv", "host": str(tmp_path / "outside"), "loop": "loop"}.items():
        (mounted.root / name).symlink_to(target)
    assert tree.real("/up") == "/opt/venv"
    assert not tree.exists("/host")
    assert not tree.exists("/loop")
    assert (tree.is_link("/loop"), tree.is_link("/opt"), tree.is_link("/none/x")) == (True, False, False)
    assert tree.real("/host") == "/host"
    assert tree.real("/none/./x") == "/none/x"
    assert find(mounted.root, "/up").prefix == "/opt/venv"
    assert why_not(mounted.root, "/loop").message == "`/loop` is a link that leads nowhere"
    with pytest.raises(FileNotFoundError):
        tree.names("/host")


def test_without_a_name_the_only_environment_of_the_usual_places_is_meant(mounted: MountedRoot) -> None:
    """A venv before the system's own; VIRTUAL_ENV of this shell plays no part."""
    assert find(mounted.root).prefix == "/usr"
    mounted.venv("/app/.venv")
    assert find(mounted.root).prefix == "/app/.venv"
    # A second name of the same one is not a second one.
    (mounted.root / "opt").mkdir()
    (mounted.root / "opt/env").symlink_to("/app/.venv")
    assert find(mounted.root).prefix == "/app/.venv"


def test_of_several_environments_one_must_be_named(mounted: MountedRoot) -> None:
    """Each comes with its whole command."""
    mounted.venv("/opt/one")
    mounted.venv("/home/user/venv")
    error = why_not(mounted.root)
    assert error.message == f"there are 2 environments in `{mounted.root}`"
    assert error.help == (
        f"name one of them: safe-uninstall --root {mounted.root} -p /opt/one PACKAGE",
        f"name one of them: safe-uninstall --root {mounted.root} -p /home/user/venv PACKAGE",
    )


def test_a_tree_without_python(tmp_path: Path) -> None:
    """There is nothing to be looked at, and a directory of it is no environment."""
    (tmp_path / "opt").mkdir()
    assert why_not(tmp_path).message == f"there is no Python environment in the usual places of `{tmp_path}`"
    assert why_not(tmp_path, "/opt").message == f"`/opt` in `{tmp_path}` is a directory, but no Python environment"


@pytest.mark.parametrize("name", ["absent", "file"])
def test_a_root_that_is_no_directory(tmp_path: Path, name: str) -> None:
    """Is a mistake of the command line."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=f"--root: there is no directory `{name}`"):
        find(name, None, tmp_path)


def test_debians_own_python_in_a_tree(mounted: MountedRoot) -> None:
    """Its version is the package manager's, its site directories Debian's; the user's is root's."""
    for place in ("usr/local/lib/python3.11/dist-packages", "usr/lib/python3/dist-packages"):
        (mounted.root / place).mkdir(parents=True)
    (mounted.root / "root/.local/lib/python3.11/site-packages").mkdir(parents=True)
    (mounted.root / "usr/lib/python3.11/EXTERNALLY-MANAGED").write_text("[externally-managed]\nError=Use apt.\n")
    for name in ("/usr", "/usr/bin/python3", "python3", "3.11", "/bin/python3"):
        found = find(mounted.root, name)
        assert (found.kind, found.prefix, found.managed_by) == (EnvironmentKind.SYSTEM, "/usr", "debian")
    assert found.python_version == "3.11.2"
    assert found.markers["python_full_version"] == "3.11.2"
    assert found.site_packages == ("/usr/local/lib/python3.11/dist-packages", "/usr/lib/python3/dist-packages")
    assert found.visible_site_packages == ("/root/.local/lib/python3.11/site-packages",)
    assert (found.scripts, found.externally_managed, found.abi) == ("/usr/local/bin", "Use apt.", AARCH64)


def test_fedoras_own_python_in_a_tree(mounted: MountedRoot) -> None:
    """It has ``lib64`` too, and what pip installs below ``/usr/local``."""
    places = [f"usr/{place}/python3.11/site-packages" for place in ("local/lib64", "local/lib", "lib64", "lib")]
    for place in places:
        (mounted.root / place).mkdir(parents=True)
    found = find(mounted.root)
    assert found.site_packages == tuple(f"/{place}" for place in places)
    assert (found.scripts, found.managed_by) == ("/usr/bin", None)


def test_a_python_below_usr_local_comes_first(mounted: MountedRoot) -> None:
    """As in the images of python.org's releases; its headers tell its version."""
    site = mounted.root / "usr/local/lib/python3.12/site-packages"
    site.mkdir(parents=True)
    (mounted.root / "usr/local/bin").mkdir()
    (mounted.root / "usr/local/bin/python3.12").write_text("")
    (mounted.root / "usr/local/bin/python3.12").chmod(0o755)
    (mounted.root / "usr/local/bin/python3").symlink_to("/usr/local/bin/python3.12")
    headers = mounted.root / "usr/local/include/python3.12"
    headers.mkdir(parents=True)
    (headers / "patchlevel.h").write_text('#define PY_VERSION              "3.12.7"\n')
    found = find(mounted.root)
    assert (found.prefix, found.python_version) == ("/usr/local", "3.12.7")
    assert found.site_packages == ("/usr/local/lib/python3.12/site-packages",)
    # Its own site-packages stand for it, as everywhere.
    assert find(mounted.root, "/usr/local/lib/python3.12/site-packages").prefix == "/usr/local"


def test_a_python_that_does_not_tell_its_version(mounted: MountedRoot) -> None:
    """By the name of the file that all links lead to, else by its library; several say nothing."""
    (mounted.root / "usr/local/bin").mkdir(parents=True)
    program = mounted.root / "usr/local/bin/python3"
    program.write_text("")
    program.chmod(0o755)
    assert why_not(mounted.root).message.startswith("which Python `/usr/local/bin/python3` is cannot be told")
    for name in ("python3.11", "python3.13"):
        (mounted.root / f"usr/local/lib/{name}/site-packages").mkdir(parents=True)
    assert "cannot be told" in why_not(mounted.root).message
    # What pip left of another version has no standard library.
    (mounted.root / "usr/local/lib/python3.13/os.py").write_text("")
    assert find(mounted.root).python_version == "3.13"


def test_pypy_and_conda_in_a_tree(mounted: MountedRoot) -> None:
    """Are what they are elsewhere."""
    for path in ("opt/pypy/bin", "opt/pypy/lib/pypy3.10/site-packages", "opt/conda/conda-meta"):
        (mounted.root / path).mkdir(parents=True)
    (mounted.root / "opt/conda/lib/python3.12/site-packages").mkdir(parents=True)
    (mounted.root / "opt/conda/conda-meta/python-3.12.4-h1_0_cpython.json").write_text("{}")
    (mounted.root / "opt/pypy/bin/pypy3.10").write_text("")
    (mounted.root / "opt/pypy/bin/pypy3.10").chmod(0o755)
    (mounted.root / "opt/pypy/bin/pypy3").symlink_to("pypy3.10")
    found = find(mounted.root, "/opt/pypy")
    assert (found.implementation, found.python_version) == ("pypy", "3.10")
    assert found.site_packages == ("/opt/pypy/lib/pypy3.10/site-packages",)
    found = find(mounted.root)
    assert (found.kind, found.prefix, found.python_version) == (EnvironmentKind.CONDA, "/opt/conda", "3.12.4")


def test_directories_that_installers_filled(mounted: MountedRoot) -> None:
    """Targets and prefixes."""
    (mounted.root / "layer/one-1.0.dist-info").mkdir(parents=True)
    (mounted.root / "filled/lib/python3.11/site-packages").mkdir(parents=True)
    assert find(mounted.root, "/layer").kind is EnvironmentKind.TARGET
    assert find(mounted.root, "/filled").kind is EnvironmentKind.PREFIX


def test_files_that_are_no_interpreter(mounted: MountedRoot) -> None:
    """Are told apart from those that are absent."""
    (mounted.root / "text").write_text("")
    assert why_not(mounted.root, "/text").message == "`/text` is neither an environment nor an interpreter"
    assert why_not(mounted.root, "/absent").message.startswith("there is no interpreter or environment `/absent` in")


def test_pth_files_lead_into_the_tree(mounted: MountedRoot) -> None:
    """The directories that they add are the tree's."""
    builder = mounted.venv()
    (mounted.root / "srv/lib").mkdir(parents=True)
    (builder.site_packages / "more.pth").write_text("/srv/lib\n/root\n")
    assert find(mounted.root).visible_site_packages == ("/srv/lib",)


def test_the_loader_is_the_trees(mounted: MountedRoot) -> None:
    """Its cache, its default directories, and the C library that its programs ask for."""
    builder = mounted.venv()
    builder.distribution("one", files={"one/x.so": b""})
    mounted.library("/opt/venv/lib/python3.11/site-packages/one/x.so", "libcuda_fake.so.1")
    mounted.cache([mounted.library("/usr/local/cuda/lib/libcuda_fake.so.1")])
    snapshot = scan(find(mounted.root), variables={"HOME": "/root"})
    system = snapshot.system
    assert [entry.path for entry in system.cache["libcuda_fake.so.1"]] == ["/usr/local/cuda/lib/libcuda_fake.so.1"]
    assert system.default_directories[AARCH64][0] == "/lib/aarch64-linux-gnu"
    assert system.libc == "glibc"
    assert snapshot.caches.read() == ()
    assert os.path.basename(snapshot.objects["/opt/venv/lib/python3.11/site-packages/one/x.so"].path) == "x.so"


def test_the_interface_looks_only(mounted: MountedRoot) -> None:
    """A plan over a tree cannot be executed, and its probes are not run."""
    builder = mounted.venv()
    builder.distribution("one", files={"one.py": ""})
    snapshot = safe_uninstall.scan("/opt/venv", root=str(mounted.root), consumers_in=("/usr/lib",))
    assert f"/usr/lib/{mounted.triplet}/libc.so.6" in snapshot.outside
    plan = safe_uninstall.plan(snapshot, Request(names=("one",)))
    assert {action.distribution.name for action in plan.actions} == {"one"}
    with pytest.raises(UsageError, match="which is only looked at"):
        safe_uninstall.execute(plan)
    assert (builder.site_packages / "one.py").exists()
    with pytest.raises(UsageError, match="nothing in there is run"):
        safe_uninstall.plan(snapshot, Request(names=("one",), probes=("pass",)))
