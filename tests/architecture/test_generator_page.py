"""The page about the Generator: its commands print what it shows, and it is complete."""

import re
import shlex
from pathlib import Path
from typing import get_args

import pytest

from support.page_play import DOCS, chapter
from weft.app import simulation
from weft.app.generation import PlanPart, StepName, answer_fields
from weft.cli.app import main
from weft.generator import data_rules, rules
from weft.generator.assisted import TRIES
from weft.generator.bundle import MAKERS
from weft.generator.compile import starts
from weft.generator.designer import text
from weft.generator.designer.brief import read_brief
from weft.generator.designer.interview import defaults
from weft.generator.designer.patterns import SIGNALS
from weft.generator.designer.words import DOMAINS
from weft.generator.enrich.allowed import LIBRARIES
from weft.generator.steps import APPROVAL, STEPS
from weft.packages.reader import read_package
from weft.packages.workspace import shipped_folder
from weft.spec import plan
from weft.spec.part import Part

PAGE = (DOCS / "generator.md").read_text(encoding="utf-8")
NAME = "SupportRequestRouting"
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
    """Return what is printed with the words of the page for names that nobody knows before."""
    return HASH.sub("plan HASH", RUN.sub("RUN", text))


@pytest.fixture
def play(tmp_path, monkeypatch, capsys):
    """Runs what a chapter says in a folder with the brief of the page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEFT_MODEL", raising=False)
    [brief] = re.findall(r"^`brief.txt`\n```text\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
    Path("brief.txt").write_text(brief)

    def played(heading: str) -> None:
        for command, shown in commands(heading):
            code = main(shlex.split(command))
            told = capsys.readouterr()
            printed = iter(named(told.err + told.out).splitlines())
            for line in shown:  # in this order, with others between them
                assert line in printed, (command, line, told)
            waits = any(line.startswith("waiting[") for line in shown)
            assert code == (4 if waits else 0), (command, told)

    return played


def test_the_commands_print_what_the_page_says(play):
    play("A first generation")
    play("The action plan")
    play("Changing the Generator")


def changed(file: str, old: str, new: str) -> None:
    path = Path("workflows", NAME, file)
    found = path.read_text()
    assert old in found
    path.write_text(found.replace(old, new))


def test_edits_are_merged_or_refuse_another_generation(play, capsys):
    play("A first generation")
    router = "Understand each support request and decide who takes it on."
    changed("agents.json", router, "Be kind, and decide.")
    changed("action_plan.json", "Send what came of", "Announce")
    play("Edit after generation")
    changed("action_plan.json", router, "Decide.")
    source = f"workflows/{NAME}/action_plan.json"
    assert main(["generate", "--from", source, "--approve"]) == 7
    refused = capsys.readouterr().err
    assert f"workflows/{NAME}/agents.json:6\n" in refused
    [staged] = re.findall(r"compare with the files in (\S+)", refused)
    Path("workflows", NAME, "agents.json").write_text(Path(staged, NAME, "agents.json").read_text())
    assert main(["generate", "--run", "last", "--promote"]) == 0


def rows(heading: str) -> dict[str, str]:
    """Return the lines of the table in a chapter by what they begin with."""
    lines = re.findall(r"^\| (.*)$", chapter(PAGE, heading), re.MULTILINE)
    return {line.split(" | ")[0].strip("`"): line for line in lines[1:]}


def test_the_sixteen_agents_read_and_write_what_the_table_says():
    found = rows("The sixteen agents")
    assert list(found) == [step.agent for step in STEPS]
    for step in STEPS:
        _, read, written = found[step.agent].split(" | ")
        assert re.findall(r"`(\w+)`", written) == [step.writes]
        reads = tuple(read for read in step.reads if read != APPROVAL)
        assert step in (STEPS[0], STEPS[-1]) or tuple(re.findall(r"`(\w+)`", read)) == reads
    assert set(STEPS[-1].reads) == {step.writes for step in STEPS[6:-1]}
    assert all(APPROVAL in step.reads for step in STEPS if step.agent in MAKERS)


def test_every_question_is_on_the_page():
    assert list(rows("The interview")) == list(defaults(""))
    spec = read_package(shipped_folder() / "Generator").spec
    assert answer_fields(spec).keys() <= set(re.findall(r"`(\w+)`", chapter(PAGE, "The interview")))


def test_points_on_the_page_are_those_of_the_designer():
    weights = {
        term: points
        for row in SIGNALS.values()
        for points, terms in row
        for term in terms.split("|")
    }
    stated = re.findall(r'"([a-z ]+)"\s+(\d)\b', chapter(PAGE, "Patterns"))
    assert len(stated) == 3
    for term, points in stated:
        assert weights.get(term, weights.get(f"{term}*")) == int(points)


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


@pytest.mark.parametrize(
    ("comment", "field"),
    [
        ("pattern: Star", "pattern"),
        ("trigger: webhook", "trigger"),
        ("add specialist Auditor", "specialists"),
        ("remove billing specialist", "specialists"),
        ("rename billing specialist to Cashier", "renamed"),
        ("approval by CFO", "approver"),
    ],
)
def test_directives_are_followed(comment, field):
    words = "Ask the billing specialist and the technical specialist."
    assert any(comment.split()[0] in row for row in rows("The action plan"))
    plain, directed = read_brief(words, {}), read_brief(words, {}, [comment])
    assert getattr(plain, field) != getattr(directed, field)


def test_limits_on_the_page_are_those_of_the_code():
    plans = " ".join(chapter(PAGE, "The action plan").split())
    assert (
        f"At most {rules.MOST_MODULES} modules, {rules.MOST_AGENTS} agents in a module, "
        f"{rules.MOST_TOOLS} tools of an agent and {data_rules.MOST_VARIABLES} variables." in plans
    )
    assert set(data_rules.VARIABLE_KINDS.values()) <= set(re.findall(r"`(\w+)`", plans))
    models = " ".join(chapter(PAGE, "With a language model").split())
    assert TRIES == 3
    assert "after three tries" in models
    assert set(LIBRARIES) == set(
        re.findall(r"`([\w-]+)`", models.partition("a short list")[2][:60])
    )
    runs = f"at most {simulation.MOST_RUNS}, or {simulation.MOST_TURNS} turns"
    assert runs in chapter(PAGE, "What is guaranteed")
    limits = " ".join(chapter(PAGE, "Limits").split())
    assert f"{text.LONGEST_TEXT:,} characters" in limits
    assert len(DOMAINS) == 16
    assert "sixteen domains" in limits
    words = re.findall(r'"(every [^"]*)"', rows("From the plan to a package")["trigger"])
    assert [*map(starts.cron_of, words)] == ["0 18 * * TUE", "*/15 * * * *"]
    assert starts.cron_of("at half past nine") == starts.cron_of("every two weeks") == "0 6 * * *"


def test_every_step_and_part_can_be_named():
    quoted = set(re.findall(r"`(\w+)`", chapter(PAGE, "Commands")))
    assert set(get_args(StepName)) <= quoted
    about = set(re.findall(r"`(\w+)`", chapter(PAGE, "The action plan")))
    assert {"pattern", "strategy"} <= set(get_args(PlanPart)) & about


def test_other_pages_lead_here():
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert "(docs/generator.md)" in readme
    assert "(generator.md)" in (DOCS / "architecture.md").read_text(encoding="utf-8")
