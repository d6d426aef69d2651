"""``undo`` and ``history`` end to end, on environments that pip and uv filled with real wheels."""

import json
import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from safe_uninstall.demo.wheels import LEFTOVER, OWN, PROGRAM, write_wheels
from safe_uninstall.model.history import FACTS
from safe_uninstall.render.schema import schema_text
from tests.support.environments import EnvironmentBuilder, TreeEntry, read_tree
from tests.support.installed import UV, WITHOUT_PIP, make, uv
from tests.support.program import Finished, call
from tests.support.terminal import on_terminal
from tests.support.wheel_files import write_wheel

OURS = (".lock", ".safe-uninstall")
VALIDATOR = jsonschema.Draft202012Validator(json.loads(schema_text()))


class Place:
    """An environment with three wheels of the incident in it, a tool, and something installed from a file."""

    def __init__(self, directory: Path, kind: str) -> None:
        self.wheels = directory / "wheels"
        self.installed = make(directory / "env", kind)
        self.prefix = self.installed.prefix
        write_wheels(str(self.wheels))
        write_wheel(
            self.wheels,
            "tool",
            files={"tool/__init__.py": "def main(): print('tool works')\n", "tool/data/empty.txt": ""},
            scripts={"tool": "tool:main"},
        )
        from_file = write_wheel(directory / "elsewhere", "from-file", files={"from_file.py": "x = 1\n"})
        self.install(PROGRAM, "tool")
        self.install("--no-deps", LEFTOVER)
        self.install("--no-deps", str(from_file))
        # Byte code of an import, which RECORD does not list.
        self.installed.run("import demo_torch, tool, from_file")

    def install(self, *words: str) -> None:
        """Install as users do, from the wheels that are here."""
        self.installed.install("--no-index", "--find-links", str(self.wheels), *words)

    def run(self, *words: str) -> Finished:
        """Run the product, offline."""
        return self.installed.safe_uninstall(*words)

    def tree(self) -> dict[str, TreeEntry]:
        """Return all of the environment but what is ours."""
        return read_tree(self.prefix, ignore=OURS)

    def history(self) -> list[dict[str, object]]:
        """Return the transactions of the history's document, which fits the schema."""
        done = self.run("history", "--format", "json")
        assert (done.status, done.err) == (0, "")
        VALIDATOR.validate(done.document)
        transactions: list[dict[str, object]] = done.document["transactions"]
        return transactions

    def facts(self, info: str) -> dict[str, str]:
        """Return what a dist-info says of how its distribution came there, with its RECORD as a set of rows."""
        directory = self.installed.site_packages / info
        found = {name: (directory / name).read_text() for name in FACTS if (directory / name).exists()}
        rows = (directory / "RECORD").read_text().splitlines()
        # Who compiles lists byte code; nobody minds.
        return {**found, "RECORD": "\n".join(sorted(row for row in rows if ".pyc" not in row))}


@pytest.fixture(params=[WITHOUT_PIP, UV], ids=["pip", "uv"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Return a place made and filled by pip, and one by uv, whose cache nothing else is in."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    return Place(tmp_path, request.param)


def given(place: Place) -> tuple[str, ...]:
    """Return the options that name the wheels."""
    return ("--find-links", str(place.wheels), "--no-index")


def result(done: Finished) -> str:
    """Return the last line of standard output: of what is fetched is told on standard error."""
    return done.out.splitlines()[-1]


def test_the_contaminated_environment_comes_back_exactly(place: Place) -> None:
    """After the incident's restore, undo puts both distributions back as they were: types, modes, bytes, byte code."""
    before = place.tree()
    done = place.run("-y", LEFTOVER, "--restore", "--keep-backup", *given(place))
    assert done.status == 0, done.err
    assert place.tree() != before
    dry = place.run("undo", "-n", "--no-index")
    assert (dry.status, dry.err) == (0, "")
    assert f"`{OWN}` 9.10.2.21 goes back to what it was before" in dry.out
    assert dry.last.startswith("Would restore 1 distribution, ")
    undone = place.run("undo", "-y", "--no-index")
    assert (undone.status, undone.err) == (0, "")
    assert undone.last == f"Restored {OWN} 9.10.2.21. Installed {LEFTOVER} 9.24.0.43."
    assert place.tree() == before
    assert place.run("check").status == 3


def test_undo_twice_and_again(place: Place) -> None:
    """A second undo finds nothing; the undo of the undo does it again, and can be undone; each is in the history."""
    before = place.tree()
    assert place.run("-y", "tool", "from-file", "--keep-backup").status == 0
    assert place.run("undo", "-y", "--keep-backup").status == 0
    assert place.tree() == before
    nothing = place.run("undo", "-y")
    assert nothing.status == 2
    assert f"error[usage]: there is nothing to undo: all transactions of `{place.prefix}` are undone" in nothing.err
    second, first = place.history()
    assert (first["state"], first["undone_by"], second["undoes"]) == ("undone", second["id"], first["id"])
    assert f"help: do the last one again: safe-uninstall -p {place.prefix} undo {second['id']}" in nothing.err
    already = place.run("undo", "-y", str(first["id"]))
    assert already.status == 2
    assert f"`{first['id']}` is undone already, by {second['id']}" in already.err
    again = place.run("undo", "-y", str(second["id"]))
    assert again.status == 0, again.err
    assert not (place.prefix / "bin/tool").exists()
    assert [item["state"] for item in place.history()] == ["committed", "undone", "committed"]
    assert place.run("undo", "-y").status == 0
    assert place.tree() == before
    assert len(place.history()) == 4


def test_without_a_backup_the_same_builds_come_back(place: Place) -> None:
    """Every file of the wheels is back, and who installed them, whether asked for and where from is as it was."""
    infos = ("tool-1.0.dist-info", "from_file-1.0.dist-info", f"{PROGRAM.replace('-', '_')}-2.9.1.dist-info")
    before = place.tree()
    facts = [place.facts(info) for info in infos]
    assert "direct_url.json" in facts[1]
    assert place.run("-y", "tool", "from-file", PROGRAM).status == 0
    other = "pip" if place.installed.kind == UV else "uv"
    done = place.run("undo", "-y", "--installer", other, *given(place))
    assert done.status == 0, done.err
    assert result(done) == f"Installed {PROGRAM} 2.9.1, from-file 1.0, tool 1.0."
    installed_by_another = [place.facts(info) for info in infos]
    for now, then in zip(installed_by_another, facts, strict=True):
        assert {**now, "RECORD": ""} == {**then, "RECORD": ""}
    after = place.tree()
    own = {path for path in before if not path.endswith((".pyc", "RECORD", "__pycache__", "/bin/tool"))}
    own = {path for path in own if path != "bin/tool"}
    assert {path: after.get(path) for path in own} == {path: before[path] for path in own}
    place.installed.run("import demo_torch, tool, from_file")
    assert call([place.prefix / "bin/tool"]).stdout == "tool works\n"
    # The distributions are whole: their RECORDs agree with what is there.
    for name in ("tool", "from-file", PROGRAM):
        assert place.installed.damaged(name) == []


def test_the_same_installer_leaves_the_same_record(place: Place) -> None:
    """Removed and brought back by who installed it, a distribution has the rows that it had."""
    before = place.facts("tool-1.0.dist-info")
    assert place.run("-y", "tool").status == 0
    assert place.run("undo", "-y", *given(place)).status == 0
    assert place.facts("tool-1.0.dist-info") == before


def test_what_a_transaction_installed_goes_and_what_it_restored_stays(place: Place) -> None:
    """Without a backup the restored distribution keeps its own bytes, which the plan says."""
    write_wheel(place.wheels, "extra", files={"extra.py": "x = 1\n"})
    assert place.run("-y", "tool", "--install", "extra", *given(place)).status == 0
    assert (place.installed.site_packages / "extra.py").exists()
    undone = place.run("undo", "-y", *given(place))
    assert undone.status == 0, undone.err
    assert result(undone).startswith("Removed extra 1.0 ")
    assert result(undone).endswith("Installed tool 1.0.")
    assert not (place.installed.site_packages / "extra.py").exists()
    assert place.run("-y", LEFTOVER, "--restore", *given(place)).status == 0
    refused = place.run("undo", "-n", *given(place))
    assert refused.status == 3
    assert f"note[file-overwritten]: `{OWN}` 9.10.2.21 keeps the bytes that the transaction gave it" in refused.out
    assert f"would overwrite 2 files of `{OWN}` 9.10.2.21" in refused.out
    offered = f"undo {place.history()[0]['id']} --accept-loss {OWN}"
    assert offered in refused.out
    assert place.run(*offered.split(), "-y", *given(place)).status == 0
    assert place.installed.damaged(LEFTOVER) == []


def test_another_build_is_refused(place: Place, tmp_path: Path) -> None:
    """A wheel of the same name and version with other bytes is not what was there."""
    assert place.run("-y", "tool").status == 0
    before = place.tree()
    shutil.rmtree(tmp_path / "uv-cache", ignore_errors=True)
    other = tmp_path / "other"
    write_wheel(other, "tool", files={"tool/__init__.py": "def main(): print('evil')\n"}, scripts={"tool": "tool:main"})
    done = place.run("undo", "-y", "--find-links", str(other), "--no-index")
    assert done.status == 3
    assert "error[wheel]: no wheel for tool==1.0: tool-1.0-py3-none-any.whl is another build" in done.err
    assert place.tree() == before
    assert len(place.history()) == 1


def newcomer_owns_a_path(place: Place) -> None:
    """Another distribution brings a file of the same path."""
    write_wheel(place.wheels, "newcomer", files={"tool/__init__.py": "mine = 1\n"})
    place.install("newcomer")


def file_of_nobody(place: Place) -> None:
    """The user writes a file of the same path."""
    (place.installed.site_packages / "tool").mkdir()
    (place.installed.site_packages / "tool/__init__.py").write_text("my own\n")


@pytest.mark.parametrize(
    ("change", "whose", "accepted"),
    [
        (newcomer_owns_a_path, "of `newcomer` 1.0", "newcomer"),
        (file_of_nobody, "that nobody owns", "tool"),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_what_came_since_is_not_overwritten(
    place: Place, change: Callable[[Place], None], whose: str, accepted: str
) -> None:
    """Blocked, with the command that goes on all the same."""
    assert place.run("-y", "tool", "--keep-backup").status == 0
    change(place)
    before = place.tree()
    done = place.run("undo", "-y")
    assert done.status == 3
    assert f"error[file-lost]: bringing `tool` 1.0 back would overwrite 1 file {whose}" in done.out
    assert f"--accept-loss {accepted}" in done.out
    assert place.tree() == before
    went_on = place.run("undo", "-y", "--accept-loss", accepted)
    assert went_on.status == 0, went_on.out
    assert "def main" in (place.installed.site_packages / "tool/__init__.py").read_text()


@pytest.mark.parametrize("backup", [("--keep-backup",), ()], ids=["backup", "wheels"])
def test_what_is_installed_again_is_told(place: Place, backup: tuple[str, ...]) -> None:
    """The same version stays as it is; another one must go first."""
    assert place.run("-y", "tool", "from-file", *backup).status == 0
    place.install("tool")
    before = place.installed.state()
    done = place.run("undo", "-n", *given(place))
    assert done.status == 0, done.out
    assert "note[duplicate-distribution]: `tool` 1.0 is installed again already, and stays as it is" in done.out
    assert result(done).startswith("Would install 1 distribution, ")
    assert place.run("undo", "-y", *given(place)).status == 0
    after = place.installed.state()
    assert {path: after[path] for path in before if ".safe-uninstall" not in path} == {
        path: state for path, state in before.items() if ".safe-uninstall" not in path
    }
    assert place.run("-y", "from-file", *backup).status == 0
    write_wheel(place.wheels, "from-file", "2.0", files={"from_file.py": "x = 2\n"})
    place.install("from-file==2.0")
    refused = place.run("undo", "-y", *given(place))
    assert refused.status == 3
    assert "`from-file` is installed again, as 2.0: 1.0 cannot be brought back beside it" in refused.out


def test_nothing_to_undo(environment: EnvironmentBuilder) -> None:
    """Exit 2, in words and as a document; an ID that is none is named."""
    from tests.support.program import safe_uninstall

    here = ("-p", environment.prefix)
    done = safe_uninstall(*here, "undo", "-y")
    assert done.status == 2
    assert done.err.startswith(f"error[usage]: there is nothing to undo: `{environment.prefix}` has no history\n")
    assert done.last == "Nothing changed."
    document = safe_uninstall(*here, "undo", "-y", "--format", "json").document
    VALIDATOR.validate(document)
    assert document["exit_status"] == 2
    unknown = safe_uninstall(*here, "undo", "20200101T000000")
    assert unknown.status == 2
    assert "`20200101T000000` is no transaction in the history of" in unknown.err
    listed = safe_uninstall(*here, "history")
    assert (listed.status, listed.out) == (0, "Nothing was done here yet.\n")
    assert sorted(os.listdir(environment.prefix)) == ["bin", "lib", "pyvenv.cfg"]


def test_it_asks(environment: EnvironmentBuilder) -> None:
    """On a terminal; without one and without ``-y`` it is refused, and --format json never asks."""
    from tests.support.program import safe_uninstall

    environment.distribution("one", "1.0", {"one.py": "x = 1\n"})
    here = ("-p", environment.prefix)
    assert safe_uninstall(*here, "-y", "--keep-backup", "one").status == 0
    assert safe_uninstall(*here, "undo").status == 2
    assert safe_uninstall(*here, "undo", "--format", "json").status == 2
    assert on_terminal(*here, "undo", answer=b"n\n").status == 1
    assert not (environment.site_packages / "one.py").exists()
    assert on_terminal(*here, "undo", answer=b"y\n").status == 0
    assert (environment.site_packages / "one.py").exists()


def test_documents_of_an_undo(environment: EnvironmentBuilder) -> None:
    """Plan and outcome fit the schema and name the transaction; so does every receipt, which only its user may read."""
    from tests.support.program import safe_uninstall

    environment.distribution("one", "1.0", {"one.py": "x = 1\n"}, requires=("two>1",))
    how = ("-p", environment.prefix, "--format", "json")
    removed = safe_uninstall("-y", "--keep-backup", "one", *how).document
    planned = safe_uninstall("undo", "-n", *how)
    undone = safe_uninstall("undo", "-y", *how)
    for done in (planned, undone):
        assert (done.status, done.err) == (0, "")
        VALIDATOR.validate(done.document)
    assert planned.document["request"]["undo"] == removed["transaction"]
    assert undone.document["plan"]["request"]["undo"] == removed["transaction"]
    history = environment.prefix / ".safe-uninstall/history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o700
    identifiers = [removed["transaction"], undone.document["transaction"]]
    receipts = [history / f"{identifier}.json" for identifier in identifiers]
    assert set(history.iterdir()) == set(receipts)
    for path in receipts:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        VALIDATOR.validate(json.loads(path.read_text()))
    first = json.loads(receipts[0].read_text())
    assert first["removed"][0]["requires"] == ["two>1"]
    assert first["plan"]["actions"] == removed["plan"]["actions"]


def test_a_plan_of_an_undo_can_be_applied(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """Its document is a plan like any other."""
    from tests.support.program import safe_uninstall

    environment.distribution("one", "1.0", {"one.py": "x = 1\n"})
    here = ("-p", environment.prefix)
    assert safe_uninstall(*here, "-y", "--keep-backup", "one").status == 0
    saved = tmp_path / "plan.json"
    saved.write_text(safe_uninstall(*here, "undo", "-n", "--format", "json").out)
    done = safe_uninstall("apply", saved, "-y")
    assert done.status == 0, done.err
    assert (environment.site_packages / "one.py").exists()


def test_the_history_is_listed_and_purged(environment: EnvironmentBuilder) -> None:
    """Newest first; what the environment still has under another name frees nothing when the backup goes."""
    from tests.support.program import safe_uninstall

    environment.distribution("one", "1.0", {"one.py": "x" * 1000})
    environment.distribution("two", "1.0", {"two.py": "y" * 500})
    here = ("-p", environment.prefix)
    assert safe_uninstall(*here, "-y", "--keep-backup", "one").status == 0
    assert safe_uninstall(*here, "-y", "--keep-backup", "two").status == 0
    assert safe_uninstall(*here, "undo", "-y").status == 0
    done = safe_uninstall(*here, "history")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert [line.split("  ")[-1].partition(" ")[0] for line in heads[:2]] == ["undid", "undone"]
    assert "  removed    one 1.0" in lines
    assert "  installed  two 1.0" in lines
    assert heads[-1].startswith("3 transactions, 2 kept backups of ")
    kept = environment.prefix / ".safe-uninstall"
    sizes = [item.stat() for item in kept.glob("*/stash.kept/*") if item.name != "manifest.jsonl"]
    alone = sum(item.st_size for item in sizes if item.st_nlink == 1)
    assert 1000 < alone < sum(item.st_size for item in sizes) - 500
    purged = safe_uninstall(*here, "history", "--purge")
    assert (purged.status, purged.err) == (0, "")
    assert purged.out == f"Deleted 2 kept backups: {alone} bytes freed.\n"
    assert sorted(path.name for path in kept.iterdir()) == ["history"]
    assert (environment.site_packages / "two.py").read_text() == "y" * 500
    nothing = safe_uninstall(*here, "history", "--purge", "--format", "json").document
    VALIDATOR.validate(nothing)
    assert nothing["purged"] == {"transactions": [], "bytes_freed": 0}
    assert len(nothing["transactions"]) == 3
    assert [item["backup"] for item in nothing["transactions"]] == [None] * 3
    assert safe_uninstall(*here, "history", "--purge").out == "No backup was kept: nothing is freed.\n"


def test_without_its_backup_a_transaction_needs_wheels(environment: EnvironmentBuilder, tmp_path: Path) -> None:
    """A backup that was purged is not counted on."""
    from tests.support.program import safe_uninstall

    environment.distribution("one", "1.0", {"one.py": "x = 1\n"})
    here = ("-p", environment.prefix)
    assert safe_uninstall(*here, "-y", "--keep-backup", "one").status == 0
    assert safe_uninstall(*here, "history", "--purge").status == 0
    (tmp_path / "empty").mkdir()
    done = safe_uninstall(*here, "undo", "-y", "--find-links", tmp_path / "empty", "--no-index")
    assert done.status == 3
    assert "error[wheel]: no wheel for one==1.0" in done.err
    assert "safe-uninstall -p" in done.err
    assert " undo " in done.err


def test_an_unfinished_run_must_be_recovered_first(environment: EnvironmentBuilder) -> None:
    """Else an older transaction would be taken for the last one."""
    from tests.support.program import safe_uninstall

    environment.distribution("one", "1.0", {"one.py": "x = 1\n"})
    here = ("-p", environment.prefix)
    assert safe_uninstall(*here, "-y", "--keep-backup", "one").status == 0
    (environment.prefix / ".safe-uninstall/20300101T000000").mkdir()
    done = safe_uninstall(*here, "undo", "-n")
    assert done.status == 2
    assert "error[unfinished]" in done.err
    listed = safe_uninstall(*here, "history")
    assert listed.status == 0
    assert "warning[unfinished]" in listed.err


def test_a_receipt_that_cannot_be_read_is_told(environment: EnvironmentBuilder) -> None:
    """It is left out and named, by ``history`` and by ``undo``."""
    from tests.support.program import safe_uninstall

    environment.distribution("one", "1.0", {"one.py": "x = 1\n"})
    here = ("-p", environment.prefix)
    assert safe_uninstall(*here, "-y", "--keep-backup", "one").status == 0
    (environment.prefix / ".safe-uninstall/history/20300101T000000.json").write_text("half a rece")
    said = "warning[history]: the receipt of 20300101T000000 is left out: it is not JSON"
    listed = safe_uninstall(*here, "history")
    assert listed.status == 0
    assert said in listed.err
    document = safe_uninstall(*here, "history", "--format", "json").document
    VALIDATOR.validate(document)
    assert len(document["problems"]) == 1
    undone = safe_uninstall(*here, "undo", "-y")
    assert undone.status == 0
    assert said in undone.err


def test_a_full_disk_is_found_out_beforehand(place: Place, tmp_path: Path) -> None:
    """Exit 2 with what is needed, what there is and where; nothing is changed and nothing of ours is left."""
    program = tmp_path / "full.py"
    program.write_text(
        "import os, sys\n"
        "class Status:\n"
        "    f_bavail, f_frsize = 1, 64\n"
        "os.statvfs = lambda path: Status\n"
        "from safe_uninstall.cli.main import main\n"
        "main(sys.argv[1:])\n"
    )
    assert place.run("-y", "tool").status == 0
    before = read_tree(place.prefix)
    words: list[str | Path] = [sys.executable, program, "-p", place.prefix, "undo", "-y", *given(place)]
    done = call(words, check=False)
    assert done.returncode == 2, done.stdout
    assert "error[space]: there is no room on the file system of `" in done.stdout
    assert "64 B are available" in done.stdout
    assert done.stdout.rstrip().endswith("Nothing changed.")
    assert read_tree(place.prefix) == before
    # What must be fetched is refused before that.
    shutil.rmtree(tmp_path / "uv-cache", ignore_errors=True)
    page = tmp_path / "page.html"
    page.write_text(f'<a href="{place.wheels.as_uri()}/tool-1.0-py3-none-any.whl">tool</a>')
    words = [sys.executable, program, "-p", place.prefix, "undo", "-y", "--no-index", "--find-links", page]
    fetching = call(words, check=False)
    assert fetching.returncode == 2, fetching.stdout
    assert " for the wheel of tool 1.0, at most), 64 B are available" in fetching.stdout
    assert "help: set TMPDIR to a directory with room for it" in fetching.stdout
    assert read_tree(place.prefix) == before


def test_the_installers_cache_is_unchanged(tmp_path: Path) -> None:
    """What uv hard-links from its cache is never written to, not even where facts of a dist-info change back."""
    environment = make(tmp_path / "env", UV)
    wheel = write_wheel(tmp_path / "wheels", "tool", files={"tool.py": "x = 1\n"})
    cache = tmp_path / "cache"
    variables = {"UV_CACHE_DIR": str(cache)}
    where = ["--python", environment.python, "--no-index", "--find-links", wheel.parent]
    call([uv(), "pip", "install", *map(str, where), "tool"], variables=variables)
    info = environment.site_packages / "tool-1.0.dist-info"
    (info / "REQUESTED").unlink()
    (info / "RECORD").write_text("".join(line for line in (info / "RECORD").open() if "REQUESTED" not in line))
    assert environment.safe_uninstall("-y", "tool", **variables).status == 0
    before = read_tree(cache)
    done = environment.safe_uninstall("undo", "-y", "--find-links", str(wheel.parent), "--no-index", **variables)
    assert done.status == 0, done.err
    after = read_tree(cache)
    assert {path: after[path] for path in before} == before
    assert not (info / "REQUESTED").exists()
    assert "REQUESTED" not in (info / "RECORD").read_text()
