"""The pages about packages: the example packages run, and every field is listed."""

import asyncio
import re
from pathlib import Path
from typing import get_args

import pytest

from support.page_play import read_pages
from weft import Answer, Scope, UserMessage
from weft.engine.compile import not_performed
from weft.packages.layout import FILE_KINDS
from weft.packages.review import review
from weft.spec.agents import REPLY_LIMITS, Agent, AgentType, Handoff, HumanInteraction
from weft.spec.condition_parser import parse_condition
from weft.spec.orchestrator import (
    Budget,
    LoopGuard,
    Merge,
    Orchestrator,
    ParallelGroup,
    RuntimeExtension,
    Start,
    StartupMode,
)
from weft.spec.part import Part
from weft.spec.patterns import PATTERNS
from weft.spec.tools import AgentTool, Hook, LifecycleTool, Tool, UiTool
from weft.spec.triggers import CUSTOM, Match, Trigger
from weft.spec.type_field import OutputModel
from weft.spec.type_parser import parse_type
from weft.spec.variables import DerivedSource, Source, Variable
from weft.spec.workflow import WorkflowSpec
from weft.testing import ScriptedModel, call, host_for, read_package

ROOT = Path(__file__).parents[2]
PAGE = read_pages("packages.md", "package-files.md", "checking.md")
ALL = dict(re.findall(r"^`(workflows/[^`]+)`\n```\w+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
FILES = {name: text for name, text in ALL.items() if name.startswith("workflows/Returns/")}
GROUP_FILES = {name: text for name, text in ALL.items() if name not in FILES}
ME = Scope("shop", "ada")


def kinds(union: object) -> dict[str, type[Part]]:
    """Return the members of a union that is told apart by a field, by the value of the field."""
    members = get_args(get_args(union)[0])
    named = ((next(iter(member.model_fields.values())).default, member) for member in members)
    return dict(named)


SOURCES = kinds(Source)
TRIGGERS = {name: kind for name, kind in kinds(Trigger).items() if name != "x"}
TOOLS = {**kinds(Tool), "Lifecycle_Tool": LifecycleTool}


def table(heading: str) -> dict[str, str]:
    """Return the rows of the table with this first heading: what each names, and its whole line."""
    found = re.search(
        rf"^\| {re.escape(heading)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE
    )
    assert found, heading
    rows = found[1].splitlines()
    return {row.removeprefix("| ").split(" | ")[0].strip("`"): row for row in rows}


def section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def names_of(part: type[Part]) -> set[str]:
    """Return the fields of a part as files spell them."""
    return {field.alias or name for name, field in part.model_fields.items()}


def quoted(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))


def is_performed(source: Part) -> bool:
    """Ask what decides whether a run is refused; only the kinds of things matter to it."""
    spec = WorkflowSpec(
        orchestrator=Orchestrator(workflow_name="Desk", initial_agent="Clerk")
    ).model_copy(update={"variables": {"it": Variable.model_construct(source=source)}})
    return not not_performed(spec)


def written(workspace: Path, files: dict[str, str]) -> Path:
    """Write a package and return its folder."""
    for name, text in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return workspace / "/".join(next(iter(files)).split("/")[:2])


@pytest.fixture
def folder(tmp_path):
    return written(tmp_path, FILES)


async def test_group_on_the_page_runs_in_parallel(tmp_path):
    opinions = written(tmp_path, GROUP_FILES)
    result = review(tmp_path, profile="production")
    assert [package.name for package in result.packages] == ["Opinions"]
    assert result.findings == ()
    said = {"Host": "Tea?", "Optimist": "It warms.", "Sceptic": "It stains.", "Judge": "Tea."}
    model = ScriptedModel(said)
    async with host_for(read_package(opinions).spec, model) as host:
        run = await host.start("Opinions", scope=ME, message="tea or not?")
        await host.settled(run, scope=ME)
        state = await host.state(run, scope=ME)
    assert state.outcome == "completed"
    assert [message.agent for message in state.messages if message.role == "agent"] == list(said)
    sent = {request.agent: str(request.messages) for request in model.requests}
    assert ("It warms." in sent["Sceptic"], "It warms." in sent["Judge"]) == (False, True)


def test_every_group_field_and_merge_is_on_the_page():
    text = section("orchestrator")
    assert names_of(ParallelGroup) <= quoted(text)
    assert set(get_args(Merge)) <= quoted(text)


@pytest.mark.parametrize("profile", ["development", "production"])
def test_package_has_no_findings(folder, profile):
    result = review(folder.parents[1], profile=profile)
    assert [package.name for package in result.packages] == ["Returns"]
    assert result.findings == ()


def test_package_has_every_standard_file():
    written = {Path(name).stem for name in FILES if name.endswith(".json")}
    assert written == {kind.stem for kind in FILE_KINDS.values() if kind.always}


def test_package_uses_the_features_of_the_page(folder):
    spec = read_package(folder).spec
    assert [agent.agent_name for agent in spec.agents] == ["Clerk", "Assessor"]
    assert {tool.tool_type for tool in spec.tools} == {"Agent_Tool", "UI_Tool"}
    assert [tool.function for tool in spec.tools if tool.auto_invoke] == ["confirm_refund"]
    derived = [
        variable.source
        for variable in spec.variables.values()
        if isinstance(variable.source, DerivedSource)
    ]
    used = {trigger.type for source in derived for trigger in source.triggers}
    assert used == {"agent_text", "tool_response", "ui_response"}


async def conversation(folder, model):
    package = read_package(folder)
    async with host_for(package.spec, model, code=package.code) as host:
        run = await host.start("Returns", scope=ME, message="my kettle leaks")
        await host.settled(run, scope=ME)
        await host.deliver(run, UserMessage("number 7"), scope=ME)
        for choice in ("decline", "accept"):
            await host.settled(run, scope=ME)
            [question] = await host.requests(scope=ME, run=run)
            await host.deliver(run, Answer(question.id, {"choice": choice}), scope=ME)
            if choice == "decline":
                await host.settled(run, scope=ME)
                await host.deliver(run, UserMessage("that is too little"), scope=ME)
        await host.settled(run, scope=ME)
        return await host.state(run, scope=ME)


def test_package_completes(folder):
    model = ScriptedModel(
        {
            "Clerk": ["Which order is it?", call("find_order", number="7"), "READY"],
            "Assessor": [
                {"amount": 20, "reason": "The kettle was used."},
                {"amount": 40, "reason": "It leaks."},
            ],
        }
    )
    state = asyncio.run(conversation(folder, model))
    assert (state.outcome, state.reason) == ("completed", "The customer accepted the refund.")
    assert model.left == 0
    assert state.variables == {
        "shop_name": "the Weft shop",
        "request_ready": True,
        "order_total": 40,
        "customer_choice": "accept",
    }
    sent = [str(request.messages) for request in model.requests if request.agent == "Assessor"]
    assert "a refund of at most 40" in sent[0]
    assert "If the customer declined (decline)" in sent[1]


def test_every_kind_is_on_the_page():
    assert table("source").keys() == SOURCES.keys()
    assert table("trigger").keys() == {*TRIGGERS, f"{CUSTOM}NAME"}
    assert table("`tool_type`").keys() == TOOLS.keys()
    assert table("`startup_mode`").keys() == set(get_args(StartupMode))
    assert table("`human_interaction`").keys() == set(get_args(HumanInteraction))
    assert set(get_args(AgentType)) <= quoted(section("agents"))
    assert kinds(Start).keys() <= quoted(section("orchestrator")) | {"chat"}
    assert {pattern.name for pattern in PATTERNS} <= quoted(section("orchestrator"))
    assert {
        next(iter(get_args(member)[0].model_fields)) for member in get_args(get_args(Match)[0])
    } <= (quoted(section("context_variables")))


@pytest.mark.parametrize("name", SOURCES)
def test_source_row_names_its_fields_and_is_supported(name):
    assert names_of(SOURCES[name]) - {"type"} <= quoted(table("source")[name])
    assert is_performed(SOURCES[name].model_construct())


@pytest.mark.parametrize("name", TRIGGERS)
def test_trigger_row_names_its_fields_and_is_supported(name):
    row, fields = table("trigger")[name], names_of(TRIGGERS[name])
    assert fields - {"type", "value", "ui_hidden"} <= quoted(row)
    assert ("no `value`" in row) == ("value" not in fields)
    source = DerivedSource.model_construct(triggers=(TRIGGERS[name].model_construct(),))
    assert is_performed(source)


def test_every_field_of_a_tool_is_on_the_page():
    rows = table("`tool_type`")
    assert names_of(AgentTool) - {"tool_type"} <= quoted(rows["Agent_Tool"])
    assert names_of(UiTool) - names_of(AgentTool) <= quoted(rows["UI_Tool"])
    assert names_of(LifecycleTool) - {"tool_type"} <= quoted(rows["Lifecycle_Tool"])
    assert names_of(Hook) <= quoted(section("hooks"))


@pytest.mark.parametrize(
    ("heading", "part"),
    [
        ("orchestrator", Orchestrator),
        ("agents", Agent),
        ("context_variables", Variable),
        ("handoffs", Handoff),
    ],
)
def test_every_field_of_a_file_is_in_its_section(heading, part):
    assert names_of(part) <= quoted(section(heading))


def test_unsupported_orchestrator_fields_are_marked():
    declared = Orchestrator(
        workflow_name="Desk",
        initial_agent="Clerk",
        budgets=(Budget(tokens=1),),
        loop_guard=LoopGuard(),
        runtime_extensions=(RuntimeExtension(kind="api_router", entrypoint="api:router"),),
    )
    [marked] = re.findall(r"^\|(.*)\| \| not supported yet \|$", PAGE, re.MULTILINE)
    refused = {feature.what for feature in not_performed(WorkflowSpec(orchestrator=declared))}
    assert quoted(marked) == refused


def test_every_field_of_an_output_model_is_on_the_page():
    assert names_of(OutputModel) - {"type"} <= quoted(section("structured_outputs"))


def test_reply_limits_are_those_of_the_engine():
    rows = table("`human_interaction`")
    assert rows == {name: f"| `{name}` | {limit} |" for name, limit in REPLY_LIMITS.items()}


def test_conditions_and_types_can_be_read():
    conditions = table("condition")
    assert len(conditions) == 6
    for condition in conditions:
        parse_condition(condition)
    types = [part for cell in table("type") for part in re.split(r"` (?:or )?`", cell)]
    assert len(types) == 12
    for type_ in types:
        parse_type(type_.replace("\\|", "|").replace("[T]", "[str]").replace("T |", "str |"))


def test_other_pages_lead_here():
    assert "(docs/packages.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(packages.md)" in read_pages("running.md")
