"""A generation: promoted whole or not at all, with the work of people kept; killed and resumed."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from support.generator_play import FORM
from weft.app.promotion import prepare, promote, stage
from weft.cli.app import main
from weft.errors import PackageError, UsageError
from weft.generator.assemble import assemble
from weft.generator.bundle import make_bundle
from weft.generator.compile.compiler import compile_drafts
from weft.generator.forms.form import form_plan, read_form
from weft.generator.outputs import joined_output
from weft.generator.steps import MAKERS
from weft.packages.folder import read_files
from weft.packages.workspace import shipped_folder


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


def of_purpose(purpose, name="Made"):
    plan = {"PatternSelection": {"workflows": [{"description": purpose}]}}
    return package(name, **{"action_plan.json": json.dumps(plan)})


def test_package_of_another_plan_is_refused_without_update(place):
    pack = {"file": "made.json", "text": '{"name": "Made"}\n'}
    promote(ready(bundle(of_purpose("claims"), pack=pack)))
    again = bundle({**of_purpose("claims"), "notes.md": "new"}, pack={**pack, "text": "{}\n"})
    assert ready(again).ok
    other = bundle(of_purpose("orders"), pack=pack)
    assert [str(each) for each in ready(other).others] == ["workflows/Made", "packs/made.json"]
    beside = ready(bundle(of_purpose("orders", "Other"), pack=pack)).others
    assert [str(item) for item in beside] == ["packs/made.json"]
    assert ready(other, update=True).ok
    assert ready(bundle(of_purpose("orders")), "other/workflows").ok


@pytest.mark.parametrize("folder", [".", "made/workflows", "../outside"])
def test_wherever_packages_go_what_is_kept_of_them_is_in_the_workspace(place, monkeypatch, folder):
    workspace = place / "workspace"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    pack = {"file": "made.json", "text": "{}\n"}
    promote(ready(bundle(of_purpose("claims"), pack=pack), folder))
    promote(ready(bundle(of_purpose("orders"))))
    assert not (place / ".weft").exists()
    assert (workspace / folder / "Made" / "agents.json").is_file()
    beside = workspace if folder == "." else (workspace / folder).parent
    assert (beside / "packs" / "made.json").is_file()
    (change,) = ready(bundle({**of_purpose("claims"), "notes.md": "new"}), folder).packages
    assert change.comparison.added == ("notes.md",)


@pytest.mark.parametrize("path", ["../out.py", "/tmp/out.py", "a\\b", ".hidden", "x/../../y"])
def test_no_file_leads_out_of_its_package(place, path):
    for work in (ready, lambda made: stage(made, place, "run")):
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
    (place / "form.yaml").write_text(FORM)
    assert generate("--form", "form.yaml", "--approve") == 0
    (folder,) = (place / "workflows").iterdir()
    return folder


def change_plan(folder, old, new):
    file = folder / "action_plan.json"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_a_changed_plan_updates_the_package_in_place(made, capsys):
    change_plan(made, "Say whether the claim is plausible.", "Say whether the claim is credible.")
    mine = made / "README.md"
    mine.write_text("by hand")
    assert generate("--from", made / "action_plan.json", "--approve") == 0, capsys.readouterr().err
    assert "Say whether the claim is credible." in (made / "agents.json").read_text()
    assert mine.read_text() == "by hand"
    assert main(["check", made.name]) == 0
    again = read_files(made).files
    assert generate("--from", made / "action_plan.json", "--approve") == 0
    assert read_files(made).files == again


def test_a_package_in_a_clone_is_updated_too(made, capsys):
    shutil.rmtree(made.parents[1] / ".weft")
    file = made / "agents.json"
    heading = json.loads(file.read_text())["agents"][-1]["prompt_sections"][0]["content"]
    file.write_text(file.read_text().replace(json.dumps(heading), '"Be kind."', 1))
    plan = made.parents[1] / "plan.json"
    plan.write_text((made / "action_plan.json").read_text())
    plan.write_text(plan.read_text().replace("Ask what was damaged", "Find out what is broken"))
    assert generate("--from", plan, "--approve") == 0, capsys.readouterr().err
    assert "Be kind." in file.read_text()
    assert "Find out what is broken" in file.read_text()


def test_an_incomplete_plan_is_refused_with_its_places(made, capsys):
    change_plan(made, '"agent_name": "Clerk"', '"agent_name": "no name"')
    assert generate("--from", made / "action_plan.json", "--approve") == 2
    told = capsys.readouterr().err
    assert "ModuleAgents" in told
    assert "action_plan.json" in told


# What a model wrote ------------------------------------------------------------------------------


def planned(text=FORM):
    return form_plan(read_form("form.yaml", text))


def compiled(plan):
    return {"packages": make_bundle(plan, compile_drafts(plan)).packages, "pack": None}


def written(plan, word):
    """Return a package as a model writes it: its own sections, code, a variable and a tool."""
    drafts = compile_drafts(plan)
    outputs = {agent: joined_output(agent, drafts) for agent in MAKERS}
    for agent in outputs["AgentsAgent"]["agents"]:
        agent["prompt_sections"][-1]["content"] += f" Be {word}."
    for file in outputs["AgentToolsFileGenerator"]["tools"]:
        file["content"] = file["content"].replace('"""', f'"""In {word} words: ', 1)
    variables = outputs["ContextVariablesAgent"]["ContextVariablesPlan"]
    for variable in variables["definitions"].values():
        variable["description"] = f"{variable.get('description', '')} ({word})"
    assembly = assemble(plan, outputs)
    assert not assembly.findings
    assert not assembly.left_out
    return {"packages": make_bundle(plan, assembly.drafts).packages, "pack": None}


def changed_files(before, after):
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


RECORDS = ["action_plan.json", "traceability.json"]


def promoted(made):
    promotion = ready(made, update=True)
    assert promotion.ok, promotion
    promote(promotion)
    return texts(Path("workflows") / "ClaimsDesk")


@pytest.mark.parametrize("again", ["the designer", "the same model", "another model"])
def test_one_changed_word_of_the_plan_changes_only_what_it_concerns(place, again):
    before = promoted(written(planned(), "kind"))
    plan = planned(FORM.replace("claim is plausible", "claim is credible"))
    made = compiled(plan) if again == "the designer" else written(plan, again.split()[1])
    after = promoted(made)
    assert changed_files(before, after) == sorted(["agents.json", *RECORDS])
    old, new = (json.loads(each["agents.json"])["agents"] for each in (before, after))
    for one, other in zip(old, new, strict=True):
        assert (one == other) == (one["agent_name"] != "Assessor")
        assert one["prompt_sections"][-1] == other["prompt_sections"][-1]
    assert "Be kind." in after["agents.json"]
    assert "credible" in after["agents.json"]


def test_the_same_plan_changes_nothing(place):
    before = promoted(written(planned(), "kind"))
    assert promoted(compiled(planned())) == before


def test_hand_edits_and_the_model_s_text_stay(place):
    promoted(written(planned(), "kind"))
    folder = place / "workflows" / "ClaimsDesk"
    tool = next(path for path in sorted((folder / "tools").iterdir()) if path.suffix == ".py")
    tool.write_text(f"{tool.read_text()}\n# By hand.\n")
    agents = folder / "agents.json"
    agents.write_text(agents.read_text().replace("Be kind.", "Be kind, always.", 1))
    before = texts(folder)
    after = promoted(compiled(planned(FORM.replace("claim is plausible", "claim is credible"))))
    assert changed_files(before, after) == sorted(["agents.json", *RECORDS])
    assert "Be kind, always." in after["agents.json"]
    assert tool.read_text().endswith("# By hand.\n")


def test_another_role_changes_the_tool_of_that_role(place):
    before = promoted(written(planned(), "kind"))
    after = promoted(compiled(planned(FORM.replace("role:manager", "role:director"))))
    assert set(changed_files(before, after)) <= {
        "tools.json", "agents.json", "tests/scenario_1.yaml", *RECORDS
    }  # fmt: skip
    [tool] = [
        each for each in json.loads(after["tools.json"])["tools"] if each["tool_type"] == "UI_Tool"
    ]
    assert tool["for"] == "role:director"
    assert "Be kind." in after["agents.json"]


def test_parts_that_do_not_fit_any_more_are_taken_anew(place):
    promoted(written(planned(), "kind"))
    renamed = FORM.replace("Assessor", "Reviewer")
    after = promoted(compiled(planned(renamed)))
    assert "Assessor" not in after["agents.json"] + after["handoffs.json"] + after["tools.json"]
    assert main(["check", "ClaimsDesk"]) == 0


def test_traceability_names_the_elements_that_a_file_depends_on(place):
    after = promoted(compiled(planned()))
    found = json.loads(after["traceability.json"])["files"]
    assert {path for path in after if path not in RECORDS} >= set(found)
    assert "ModuleAgents[1].agents[0].objective" in found["agents.json"]
    assert "WorkflowStrategy.trigger" in found["orchestrator.json"]
    assert not any("objective" in path for path in found["orchestrator.json"])


# Refused packages --------------------------------------------------------------------------------


def test_a_repaired_folder_is_checked_again_and_promoted(place, capsys):
    (place / "form.yaml").write_text(FORM)
    refuse(place, capsys)
    [folder] = (place / ".weft" / "generated").iterdir()
    assert (folder / "findings.md").read_text().startswith("## Errors\n")
    assert generate("--run", "last", "--promote") == 1
    assert "the packages still have findings; nothing was changed" in capsys.readouterr().err
    assert not (place / "workflows").exists()
    [package] = [path for path in folder.iterdir() if path.is_dir()]
    rules = make_bundle(planned(), compile_drafts(planned())).packages["ClaimsDesk"]
    (package / "handoffs.json").write_text(rules["handoffs.json"])
    assert generate("--run", "last", "--promote") == 0, capsys.readouterr().err
    assert (place / "workflows" / "ClaimsDesk" / "handoffs.json").is_file()


def test_a_difference_is_answered_by_a_person(place, capsys):
    (place / "form.yaml").write_text(FORM)
    tools = joined_output("ToolsManagerAgent", compile_drafts(planned()))
    for tool in tools["tools"]:
        tool.pop("for", None)
    assert "--answers FILE" in refuse(place, capsys, ToolsManagerAgent=tools)
    assert generate("--run", "last", "--promote") == 1
    keys = re.findall(r"(GEN0[0-9]{2}-[0-9a-f]+): ", capsys.readouterr().err)
    (place / "answers.yaml").write_text(
        "".join(f"{key}: the user is the manager\n" for key in keys)
    )
    words = ("generate", "--run", "last", "--promote", "--answers", "answers.yaml")
    assert main([*words]) == 0
    assert "Meant so: the user is the manager" in capsys.readouterr().err
    [report] = (place / ".weft" / "generated").glob("*/findings.md")
    assert "Meant so: the user is the manager" in report.read_text()
    assert (place / "workflows" / "ClaimsDesk").is_dir()


@pytest.mark.parametrize("fault", ["sign", "key", "code"])
def test_what_the_assembly_refuses_counts_until_its_file_has_changed(place, capsys, fault):
    (place / "form.yaml").write_text(FORM)
    drafts = compile_drafts(planned())
    parts = {agent: joined_output(agent, drafts) for agent in MAKERS}
    agent, file = "AgentsAgent", "agents.json"
    if fault == "code":
        agent, file = "HookAgent", "hooks/strange.py"
    if fault == "sign":
        parts[agent]["agents"][0]["prompt_sections"][0]["content"] += " \u202e"
    elif fault == "key":
        parts[agent]["agents"][0]["nonsense"] = 1
    else:
        parts[agent]["hook_files"] = [{"filename": file, "content": "import os\n"}]
    refuse(place, capsys, **{agent: parts[agent]})
    promote = ("--run", "last", "--promote")
    for _ in range(2):
        assert generate(*promote) == 1
    assert not (place / "workflows").exists()
    [folder] = (place / ".weft" / "generated").glob("*/ClaimsDesk")
    changed = folder / file
    text = changed.read_text() if changed.exists() else ""
    if fault in ("code", "sign"):
        changed.parent.mkdir(exist_ok=True)
        changed.write_text(text + ("import os\n" if fault == "code" else "\n"))
        assert generate(*promote) == 1
        said = {"code": "imports os", "sign": "invisible sign"}[fault]
        assert said in capsys.readouterr().err
    changed.write_text(text.replace(" \u202e", "") + "\n")
    assert generate(*promote) == 0, capsys.readouterr().err


def refuse(place, capsys, **parts):
    """Generate with a model that writes a wrong part: by default, no handoff rules."""
    drafts = compile_drafts(planned())
    made = {agent: joined_output(agent, drafts) for agent in MAKERS}
    made |= parts or {"HandoffsAgent": {"handoff_rules": []}}
    diagram = planned().diagram.model_dump(mode="json", by_alias=True)
    made["ProjectOverviewAgent"] = {"MermaidSequenceDiagram": diagram, "agent_message": "So."}
    made["RepairAgent"] = {"parts": {}, "answers": {}}
    # A part whose form is wrong is asked for once more.
    replies = {agent: [part, part] for agent, part in made.items()}
    (place / "replies.json").write_text(json.dumps(replies))
    words = ("--form", "form.yaml", "--approve", "--model", "replay:replies.json")
    assert generate(*words) == 1
    said = capsys.readouterr().err
    assert "the package has findings and was not promoted" in said
    return said


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
    (place / "form.yaml").write_text(FORM)
    form = str(place / "form.yaml")
    words = ["--workspace", str(place), "generate", "--form", form, "--approve", "--quiet"]
    assert main(words) == 0
    return place


#: Before a write to the journal: as the first, at the approval, at the end;
#: then while packages take their place.
@pytest.mark.parametrize("at", ["2", "12", "22", "create_folder"])
def test_killed_generation_continues_and_asks_nothing_twice(place, undisturbed, capsys, at):
    (place / "form.yaml").write_text(FORM)
    words = ["generate", "--form", "form.yaml", "--approve", "--quiet"]
    command = [sys.executable, "-c", DYING, at, *words]
    killed = subprocess.run(command, check=False, capture_output=True, timeout=60)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert generate("--run", "last", "--approve", "--take-over") == 0, capsys.readouterr().err
    (folder,) = (place / "workflows").iterdir()
    assert read_files(folder).files == read_files(undisturbed / "workflows" / folder.name).files
    assert opened(place, capsys) == opened(undisturbed, capsys)
    kept = (place / ".weft" / "generated" / "base").iterdir()
    assert [item.name for item in kept] == [folder.name]
