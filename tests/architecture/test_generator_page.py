"""The page about the Generator: its commands print what it shows, and it is complete."""

import re
import shlex
from fnmatch import fnmatchcase
from pathlib import Path
from typing import get_args

import pytest

from support.page_play import DOCS, chapter
from weft.app import simulation
from weft.app.generation import PlanPart, StepName, answer_fields
from weft.cli.app import main
from weft.generator.assisted import TRIES
from weft.generator.code_check.allowed import LIBRARIES
from weft.generator.plans import data_rules, rules
from weft.generator.reading import read_card
from weft.generator.steps import APPROVAL, MAKERS, REPAIRER, REPAIRS, STEPS
from weft.packages.reader import read_package
from weft.packages.workspace import shipped_folder
from weft.spec import plan
from weft.spec.agents import CHARACTERS_PER_TOKEN
from weft.spec.form import Form, FormStep
from weft.spec.part import Part

PAGE = (DOCS / "generator.md").read_text(encoding="utf-8")
RUN = re.compile(r"\b[0-9a-z]{26}\b")
HASH = re.compile(r"\bplan [0-9a-f]{12}\b")


def commands(heading: str) -> list[tuple[str, list[str]]]:
    """Return each command of a chapter, with the lines that it prints."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", chapter(PAGE, heading), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ weft "):
                found.append((line.removeprefix("$ weft "), []))
            elif line != "...":
                found[-1][1].append(line)
    return found


def named(text: str) -> str:
    """Return what is printed, with the names of the page for runs and plans."""
    return HASH.sub("plan HASH", RUN.sub("RUN", text))


def shows(line: str, printed: list[str]) -> bool:
    """Return whether a line of the page was printed; remove the lines up to it."""
    pattern = line.replace("[", "[[]").replace("...", "*")
    for number, each in enumerate(printed):
        if fnmatchcase(each, pattern):
            del printed[: number + 1]
            return True
    return False


@pytest.fixture
def play(tmp_path, monkeypatch, capsys):
    """Runs the commands of a chapter in a folder with the files of the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEFT_MODEL", raising=False)
    for name, text in re.findall(r"^`([\w.]+)`\n```\w+\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL):
        Path(name).write_text(text)

    def played(heading: str) -> None:
        for command, shown in commands(heading):
            code = main(shlex.split(command))
            told = capsys.readouterr()
            streams = [named(text).splitlines() for text in (told.err, told.out)]
            for line in shown:
                assert any(shows(line, printed) for printed in streams), (command, line, told)
            waits = any(line.startswith("waiting[") for line in shown)
            assert code == (4 if waits else 0), (command, told)

    return played


def test_the_commands_print_what_the_page_says(play):
    play("From a form to a running package")
    tool = Path("workflows", "ClinicIntake", "tools", "record_intake.py")
    tool.write_text(f"{tool.read_text()}\n# By hand.\n")
    changed(Path("workflows", "ClinicIntake", "action_plan.json"), "Ask for symptoms", "Note")
    play("Edit and generate again")
    assert tool.read_text().endswith("# By hand.\n")
    play("Skeletons")
    play("Changing the Generator")


def changed(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def rows(heading: str) -> dict[str, str]:
    """Return the lines of the tables in a chapter by what they begin with."""
    lines = re.findall(r"^\| (.*)$", chapter(PAGE, heading), re.MULTILINE)
    return {line.split(" | ")[0].strip("`"): line for line in lines[1:]}


def test_the_agents_read_and_write_what_the_table_says():
    found = rows("The agents")
    assert list(found) == [step.agent for step in STEPS]
    for number, step in enumerate(STEPS):
        _, read, written = found[step.agent].split(" | ")
        assert re.findall(r"`(\w+)`", written)[:1] == [step.writes]
        reads = tuple(each for each in step.reads if each != APPROVAL)
        if step.agent in MAKERS:
            assert reads == ("interview", *(each.writes for each in STEPS[6:number]))
            assert re.findall(r"`(\w+)`", read) == ["interview"]
        elif step.agent not in (STEPS[0].agent, "DownloadAgent", REPAIRER):
            assert tuple(re.findall(r"`(\w+)`", read)) == reads


def test_every_question_is_on_the_page():
    spec = read_package(shipped_folder() / "Generator").spec
    said = chapter(PAGE, "With a language model") + chapter(PAGE, "The agents")
    assert answer_fields(spec).keys() <= set(re.findall(r"`(\w+)`", said))


def test_every_key_of_a_form_is_on_the_page():
    found = rows("From a form to a running package")
    listed = [name for keys in found for name in re.findall(r"\w+", keys)]
    assert set(listed) - {"key"} == set(Form.model_fields) - {"key"}
    assert set(FormStep.model_fields) <= set(re.findall(r"`(\w+)`", found["steps"]))


@pytest.mark.parametrize(
    "part",
    [plan.PatternSelection, plan.WorkflowStrategy, plan.TechnicalBlueprint],
    ids=lambda part: part.__name__,
)
def test_every_field_of_a_plan_is_on_the_page(part: type[Part]):
    fields = set(re.findall(r"`(\w+)`", rows("The action plan")[part.__name__]))
    assert fields - {part.__name__} == set(part.model_fields)


def test_the_parts_of_a_plan_are_its_keys():
    keys = [name.alias for name in plan.ActionPlan.model_fields.values() if name.alias]
    assert list(rows("The action plan"))[: len(keys)] == keys


def test_limits_on_the_page_are_those_of_the_code():
    plans = " ".join(chapter(PAGE, "The action plan").split())
    assert (
        f"At most {rules.MOST_MODULES} modules, {rules.MOST_AGENTS} agents in a module, "
        f"{rules.MOST_TOOLS} tools of an agent and {data_rules.MOST_VARIABLES} variables." in plans
    )
    assert set(data_rules.VARIABLE_KINDS.values()) <= set(re.findall(r"`(\w+)`", plans))
    models = " ".join(chapter(PAGE, "With a language model").split())
    assert (TRIES, REPAIRS) == (3, 3)
    assert "Three tries." in models
    assert "at most three rounds" in models
    assert f"about {round(len(read_card()) // CHARACTERS_PER_TOKEN, -3):,} tokens" in models
    limits = " ".join(chapter(PAGE, "Limits").split())
    assert set(LIBRARIES) == set(
        re.findall(r"`([\w-]+)`", limits.partition("a short list")[2][:60])
    )
    runs = f"at most {simulation.MOST_RUNS}, or {simulation.MOST_TURNS} turns"
    assert runs in limits


def test_every_step_and_part_can_be_named():
    quoted = set(re.findall(r"`(\w+)`", chapter(PAGE, "Commands")))
    assert set(get_args(StepName)) <= quoted
    about = set(re.findall(r"`(\w+)`", chapter(PAGE, "The action plan")))
    assert {"pattern", "strategy"} <= set(get_args(PlanPart)) & about


def test_other_pages_lead_here():
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert "(docs/generator.md)" in readme
    assert "(generator.md)" in (DOCS / "architecture.md").read_text(encoding="utf-8")
