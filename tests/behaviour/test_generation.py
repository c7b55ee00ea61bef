"""A generation: promoted whole or not at all, with the work of people kept; killed and resumed."""

import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from weft.app.generation import read_plan
from weft.app.promotion import prepare, promote, stage
from weft.cli.app import main
from weft.errors import PackageError, UsageError
from weft.packages.folder import read_files
from weft.packages.workspace import shipped_folder

BRIEF = (
    "A claims desk: a clerk takes the claim, an assessor checks it, then a manager approves the "
    "payment, one after the other."
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEFT_MODEL", raising=False)
    return tmp_path


def package(name="Made", **files):
    """Return the files of a package that checks clean."""
    source = read_files(shipped_folder() / "HelloWorld").files
    texts = {path: raw.decode().replace("HelloWorld", name) for path, raw in source.items()}
    return {**texts, **files}


def bundle(*packages, pack=None):
    named = {
        json.loads(package["orchestrator.json"])["workflow_name"]: package for package in packages
    }
    return {"packages": named, "pack": pack, "verdict": {}}


def ready(made, folder="workflows", *, update=False):
    return prepare(made, Path(folder), Path(), update=update)


def put(*packages, pack=None):
    promotion = ready(bundle(*packages, pack=pack), update=True)
    if promotion.ok:
        promote(promotion)
    return promotion


def texts(folder):
    return {name: raw.decode() for name, raw in read_files(folder).files.items()}


NOTES = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


def test_a_new_package_is_written_as_generated(place):
    made = package()
    (change,) = put(made).changes
    assert change.created
    assert texts(place / "workflows" / "Made") == made
    assert not [item for item in place.rglob("*") if ".check-" in item.name]


def test_the_work_of_people_stays_and_the_difference_is_shown(place):
    put(package(**{"notes.md": NOTES}))
    file = place / "workflows" / "Made" / "notes.md"
    file.write_text(NOTES.replace("one\n", "ONE, by hand\n"))
    (place / "workflows" / "Made" / "own.md").write_text("mine")
    (place / "workflows" / "Made" / "logo.png").write_bytes(b"\x89PNG\xff\x00")
    (change,) = put(package(**{"notes.md": NOTES.replace("seven\n", "SEVEN\n")})).changes
    assert not change.created
    assert change.comparison.changed == ("notes.md",)
    assert "+SEVEN" in change.comparison.diff
    assert change.edited == ("notes.md",)
    assert file.read_text() == NOTES.replace("one\n", "ONE, by hand\n").replace("seven", "SEVEN")
    assert (file.parent / "own.md").read_text() == "mine"
    assert (file.parent / "logo.png").read_bytes() == b"\x89PNG\xff\x00"
    assert put(package()).conflicts, "it would be removed, and was changed by hand"
    assert "by hand" in file.read_text()


def test_a_conflict_is_refused_and_names_the_line(place):
    put(package(**{"notes.md": NOTES}), package("Other"))
    file = place / "workflows" / "Made" / "notes.md"
    file.write_text(NOTES.replace("three\n", "THREE, by hand\n"))
    before = read_files(place / "workflows").files
    promotion = put(
        package(**{"notes.md": NOTES.replace("three\n", "3\n")}),
        package("Other", **{"notes.md": "new"}),
    )
    assert not promotion.ok
    (line,) = promotion.conflicts
    assert line.startswith("workflows/Made/notes.md:3")
    assert read_files(place / "workflows").files == before


def test_foreign_files_are_never_overwritten(place):
    file = place / "workflows" / "Made" / "orchestrator.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    promotion = put(package("Another"), package())
    assert [str(path) for path in promotion.strangers] == ["workflows/Made"]
    assert file.read_text() == "{}"
    assert not (place / "workflows" / "Another").exists()


@pytest.mark.parametrize("kind", ["file", "link"])
def test_path_that_is_not_a_folder_is_left_alone(place, kind):
    (place / "workflows").mkdir()
    where = place / "workflows" / "Made"
    if kind == "file":
        where.write_text("mine")
    else:
        where.symlink_to(place / "elsewhere")
    assert put(package()).strangers
    assert not (place / "elsewhere").exists()


def test_packages_with_joint_errors_are_refused(place):
    put(package())
    agents = place / "workflows" / "Made" / "agents.json"
    data = json.loads(agents.read_text())
    data["agents"][0]["agent_name"] = "Renamed"
    agents.write_text(json.dumps(data, indent=2))
    promotion = put(package(**{"notes.md": "new"}))
    assert promotion.errors
    assert promotion.errors[0].place.file.startswith("workflows/Made/")
    assert not (agents.parent / "notes.md").exists()


def test_failed_write_changes_nothing(place, monkeypatch):
    put(package())
    before = read_files(place / "workflows").files

    def full(*_):
        raise PackageError("the disk is full")

    monkeypatch.setattr("weft.app.promotion.replace_all", full)
    with pytest.raises(PackageError):
        promote(ready(bundle(package("New"), package(**{"a.md": "x"})), update=True))
    assert read_files(place / "workflows").files == before
    assert not (place / "workflows" / "New").exists()


def test_a_pack_goes_beside_the_packages(place):
    pack = {"file": "Made.pack.json", "text": '{"name": "Made"}\n'}
    put(package(), pack=pack)
    file = place / "packs" / "Made.pack.json"
    assert file.read_text() == pack["text"]
    file.with_name("Own.pack.json").write_text("{}")
    put(package(), pack={**pack, "text": '{"name": "Other"}\n'})
    assert file.read_text() == '{"name": "Other"}\n'
    file.write_text("by hand")
    assert put(package(), pack={**pack, "text": "new"}).conflicts
    assert file.with_name("Own.pack.json").read_text() == "{}"


def planned(purpose, name="Made"):
    plan = {"PatternSelection": {"workflows": [{"description": purpose}]}}
    return package(name, **{"action_plan.json": json.dumps(plan)})


def test_package_of_another_plan_is_refused_without_update(place):
    pack = {"file": "made.json", "text": '{"name": "Made"}\n'}
    promote(ready(bundle(planned("claims"), pack=pack)))
    again = bundle({**planned("claims"), "notes.md": "new"}, pack={**pack, "text": "{}\n"})
    assert ready(again).ok
    other = bundle(planned("orders"), pack=pack)
    assert [str(each) for each in ready(other).others] == ["workflows/Made", "packs/made.json"]
    beside = ready(bundle(planned("orders", "Other"), pack=pack)).others
    assert [str(item) for item in beside] == ["packs/made.json"]
    assert ready(other, update=True).ok
    assert ready(bundle(planned("orders")), "other/workflows").ok


@pytest.mark.parametrize("folder", [".", "made/workflows", "../outside"])
def test_wherever_packages_go_what_is_kept_of_them_is_in_the_workspace(place, monkeypatch, folder):
    workspace = place / "workspace"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    pack = {"file": "made.json", "text": "{}\n"}
    promote(ready(bundle(planned("claims"), pack=pack), folder))
    promote(ready(bundle(planned("orders"))))
    assert not (place / ".weft").exists()
    assert (workspace / folder / "Made" / "agents.json").is_file()
    beside = workspace if folder == "." else (workspace / folder).parent
    assert (beside / "packs" / "made.json").is_file()
    (change,) = ready(bundle({**planned("claims"), "notes.md": "new"}), folder).packages
    assert change.comparison.added == ("notes.md",)


@pytest.mark.parametrize("path", ["../out.py", "/tmp/out.py", "a\\b", ".hidden", "x/../../y"])
def test_no_file_leads_out_of_its_package(place, path):
    for work in (ready, lambda it: stage(it, place, "run")):
        with pytest.raises(UsageError):
            work(bundle(package(**{path: "x"})))
    assert not (place / "workflows").exists()


@pytest.mark.parametrize("name", ["../Made", "made", "", "A/B", ".Made"])
def test_no_package_has_a_name_that_leads_elsewhere(place, name):
    made = {"packages": {name: {"a.json": "{}"}}, "pack": None}
    with pytest.raises(UsageError):
        ready(made)
    with pytest.raises(UsageError):
        ready({"packages": {}, "pack": {"file": "../x.json", "text": ""}})


def generate(*words):
    return main(["generate", *map(str, words), "--quiet"])


@pytest.fixture
def made(place):
    assert generate(BRIEF, "--approve") == 0
    (folder,) = (place / "workflows").iterdir()
    return folder


def change_plan(folder, old, new):
    file = folder / "action_plan.json"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_a_changed_plan_updates_the_package_in_place(made, capsys):
    plan = read_plan("plan.json", (made / "action_plan.json").read_text())
    objective = plan.modules[0].agents[0].objective
    change_plan(made, json.dumps(objective), '"Find out what the customer is in need of."')
    mine = made / "README.md"
    mine.write_text("by hand")
    assert generate("--from", made / "action_plan.json", "--approve") == 0, capsys.readouterr().err
    assert "Find out what the customer is in need of." in (made / "agents.json").read_text()
    assert mine.read_text() == "by hand"
    assert main(["check", made.name]) == 0
    again = read_files(made).files
    assert generate("--from", made / "action_plan.json", "--approve") == 0
    assert read_files(made).files == again


def test_a_hand_edit_survives_another_generation_or_stops_it(made, capsys):
    file = made / "agents.json"
    data = json.loads(file.read_text())
    before = file.read_text()
    heading = data["agents"][-1]["prompt_sections"][0]["content"]
    edited = before.replace(json.dumps(heading), json.dumps(f"{heading} Be kind."), 1)
    assert edited != before
    file.write_text(edited)
    assert generate("--from", made / "action_plan.json", "--approve") == 0
    assert "Be kind." in file.read_text()


def test_a_package_in_a_clone_is_updated_too(made, capsys):
    shutil.rmtree(made.parents[1] / ".weft")
    file = made / "agents.json"
    heading = json.loads(file.read_text())["agents"][-1]["prompt_sections"][0]["content"]
    file.write_text(file.read_text().replace(json.dumps(heading), '"Be kind."', 1))
    plan = made.parents[1] / "plan.json"
    plan.write_text((made / "action_plan.json").read_text())
    objective = read_plan("plan.json", plan.read_text()).modules[0].agents[0].objective
    plan.write_text(plan.read_text().replace(objective, "Find out what is needed."))
    assert generate("A claims desk of others, one after the other.", "--approve") == 7
    assert generate("--from", plan, "--approve") == 0, capsys.readouterr().err
    assert "Be kind." in file.read_text()
    assert "Find out what is needed." in file.read_text()


def test_a_plan_that_does_not_hold_is_refused_with_its_places(made, capsys):
    plan = read_plan("plan.json", (made / "action_plan.json").read_text())
    name = plan.modules[0].agents[0].agent_name
    change_plan(made, f'"agent_name": "{name}"', '"agent_name": "no name"')
    assert generate("--from", made / "action_plan.json", "--approve") == 2
    told = capsys.readouterr().err
    assert "ModuleAgents" in told
    assert "action_plan.json" in told


#: A command that dies right before it writes to the journal so many times, or at a function.
DYING = """
import os, signal, sys
from weft.adapters.sql import SqliteStore
import weft.app.promotion as promotion
at, words = sys.argv[1], sys.argv[2:]
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if at.isdigit():
    left, append = int(at), SqliteStore.append
    async def dying(self, batch, *, owner):
        global left
        left -= 1
        if not left:
            die()
        return await append(self, batch, owner=owner)
    SqliteStore.append = dying
else:
    setattr(promotion, at, die)
from weft.cli.app import main
sys.exit(main(words))
"""


def opened(place, capsys):
    """Return the questions and the replies of the last run, each as often as it was there."""
    capsys.readouterr()
    assert main(["--workspace", str(place), "runs", "tail", "last", "--json"]) == 0
    events = [json.loads(line).get("event") for line in capsys.readouterr().out.splitlines()]
    return Counter(
        (event["kind"], event["data"].get("tool") or event["actor"])
        for event in events
        if event and event["kind"] in ("RequestOpened", "ModelReplied", "ToolReturned")
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A workspace in which the same was generated by a process that lived."""
    place = tmp_path_factory.mktemp("undisturbed")
    words = ["--workspace", str(place), "generate", BRIEF, "--approve", "--quiet"]
    assert main(words) == 0
    return place


#: Before a write to the journal: as the first, at the approval, at the end;
#: then while packages take their place.
@pytest.mark.parametrize("at", ["2", "17", "40", "create_folder"])
def test_killed_generation_continues_and_asks_nothing_twice(place, undisturbed, capsys, at):
    command = [sys.executable, "-c", DYING, at, "generate", BRIEF, "--approve", "--quiet"]
    killed = subprocess.run(command, check=False, capture_output=True, timeout=60)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert generate("--run", "last", "--approve", "--take-over") == 0, capsys.readouterr().err
    (folder,) = (place / "workflows").iterdir()
    assert read_files(folder).files == read_files(undisturbed / "workflows" / folder.name).files
    assert opened(place, capsys) == opened(undisturbed, capsys)
    kept = (place / ".weft" / "generated" / "base").iterdir()
    assert [item.name for item in kept] == [folder.name]
