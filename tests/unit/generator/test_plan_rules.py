"""Every rule of completeness, with a plan that breaks it."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from support.cases import read_cases
from support.plan_play import (
    complete_data,
    extended,
    of_pattern,
    plan_of,
    planned_agent,
    planned_tool,
    put,
    two_workflows,
)
from support.seed_examples import (
    MODULE_AGENTS,
    PATTERN_SELECTION,
    TECHNICAL_BLUEPRINT,
    WORKFLOW_STRATEGY,
)
from weft.generator.plans.faults import Fault, PartKey, read_part
from weft.generator.plans.rules import (
    agents_faults,
    blueprint_faults,
    plan_faults,
    selection_faults,
    strategy_faults,
)
from weft.spec.agents import REPLY_LIMITS
from weft.spec.plan import (
    ModuleAgentsOutput,
    PatternSelectionOutput,
    TechnicalBlueprintOutput,
    WorkflowStrategyOutput,
)

Data = dict[str, Any]
CASES = read_cases(__file__)
M = "ModuleAgents"
AGENT = f"{M}[0].agents[0]"


def paths(data: Data) -> list[str]:
    return [fault.path for fault in plan_faults(plan_of(data))]


def agent(data: Data) -> Data:
    return data[M][0]["agents"][0]


@pytest.mark.parametrize("data", [complete_data(), two_workflows()], ids=["one", "two"])
def test_a_complete_plan_has_no_faults(data: Data):
    assert plan_faults(plan_of(data)) == ()


def test_the_parts_of_the_seed_have_no_faults():
    selection = read_part("PatternSelection", PATTERN_SELECTION["PatternSelection"])
    followed = read_part("WorkflowStrategy", WORKFLOW_STRATEGY["WorkflowStrategy"])
    shared = read_part("TechnicalBlueprint", TECHNICAL_BLUEPRINT["TechnicalBlueprint"])
    staff = read_part("ModuleAgents", MODULE_AGENTS["ModuleAgents"])
    assert isinstance(selection, PatternSelectionOutput)
    assert isinstance(followed, WorkflowStrategyOutput)
    assert isinstance(shared, TechnicalBlueprintOutput)
    assert isinstance(staff, ModuleAgentsOutput)
    assert selection_faults(selection.selection) == ()
    assert strategy_faults(selection.selection, followed.strategy) == ()
    assert blueprint_faults(followed.strategy, shared.blueprint) == ()
    # The seed shows one agent of three, and not the tool of its own component.
    faults = agents_faults(followed.strategy, shared.blueprint, staff.modules)
    assert [fault.message for fault in faults] == [
        "FinanceSpecialist, TechSpecialist needed in Module 1: Request Classification",
        "RouterAgent has no tool request_clarification in Module 1: Request Classification",
    ]


@pytest.mark.parametrize(("rule", "values", "path"), CASES["one workflow"])
def test_violation_is_reported_at_its_place(rule: str, values: Data, path: str):
    assert path in paths(put(complete_data(), values)), rule


@pytest.mark.parametrize(("rule", "values", "path"), CASES["two workflows"])
def test_violation_across_workflows_is_reported(rule: str, values: Data, path: str):
    assert path in paths(put(two_workflows(), values)), rule


def test_who_is_needed_is_there_in_the_order_of_the_modules():
    data = complete_data()
    data[M][0]["agents"].pop()
    assert f"{M}[0].agents" in paths(data)
    several = two_workflows()
    several[M].reverse()
    assert M in paths(several)


def numbered(data: Data, key: str, number: int) -> list[Data]:
    """Return so many entries like the first one, each with a name of its own."""
    [first, *_] = data[key]
    return [{**first, "name": f"v{place}"} for place in range(number)]


LIMITS: dict[str, Callable[[Data], object]] = {
    "WorkflowStrategy.workflow_description": lambda data: data["WorkflowStrategy"].update(
        workflow_description="x" * 2_001
    ),
    "WorkflowStrategy.modules[0].module_name": lambda data: data["WorkflowStrategy"]["modules"][
        0
    ].update(module_name="Module 1: " + "x" * 141),
    "WorkflowStrategy.modules": lambda data: data["WorkflowStrategy"].update(
        modules=data["WorkflowStrategy"]["modules"] * 13
    ),
    "TechnicalBlueprint.global_context_variables": lambda data: data["TechnicalBlueprint"].update(
        global_context_variables=numbered(
            data["TechnicalBlueprint"], "global_context_variables", 61
        )
    ),
    f"{M}[0].agents": lambda data: data[M][0]["agents"].extend(
        planned_agent(f"A{place}") for place in range(14)
    ),
    f"{AGENT}.agent_tools": lambda data: agent(data)["agent_tools"].extend(
        planned_tool(f"t{place}") for place in range(11)
    ),
}


@pytest.mark.parametrize("path", LIMITS)
def test_a_plan_has_limits(path: str):
    data = complete_data()
    LIMITS[path](data)
    assert path in paths(data)


@pytest.mark.parametrize(("way", "limit"), REPLY_LIMITS.items())
def test_replies_are_limited_by_how_an_agent_works_with_people(way: str, limit: int):
    data = complete_data()
    asking = planned_agent("RouterAgent", human_interaction=way, max_consecutive_auto_reply=limit)
    data[M][0]["agents"][0] = asking | {"agent_tools": agent(data)["agent_tools"]}
    assert paths(data) == []
    agent(data)["max_consecutive_auto_reply"] = limit + 1
    assert paths(data) == [f"{AGENT}.max_consecutive_auto_reply"]


@pytest.mark.parametrize("pattern_id", range(1, 10))
def test_one_agent_is_enough_for_every_pattern(pattern_id: int):
    assert paths(of_pattern(pattern_id, [planned_agent("A")])) == []


@pytest.mark.parametrize(
    "kind",
    ["config", "environment", "data_reference", "database", "data_entity", "entity", "computed",
     "state", "derived", "external", "file"],
)  # fmt: skip
def test_the_kinds_of_variables_have_their_other_names(kind: str):
    place = "TechnicalBlueprint.global_context_variables.0.type"
    assert paths(put(complete_data(), {place: kind})) == []


def test_an_extended_plan_has_no_faults():
    assert plan_faults(plan_of(extended())) == ()


def test_null_is_as_if_left_out():
    data = complete_data()
    agent(data).update(outcomes=None, approver=None)
    data["WorkflowStrategy"].update(never=None, scenarios=None, start=None)
    data["TechnicalBlueprint"]["global_context_variables"][0].update(key=None, fields=None)
    assert plan_of(data) == plan_of(complete_data())
    agent(data).update(agent_tools=None)
    assert isinstance(read_part(M, data[M]), ModuleAgentsOutput)


def test_a_fault_says_what_to_do():
    data = put(complete_data(), {f"{M}.0.agents.0.agent_name": "router agent"})
    fault = next(each for each in plan_faults(plan_of(data)) if each.path == f"{AGENT}.agent_name")
    assert str(fault) == f'{AGENT}.agent_name: "router agent" is not PascalCase (write RouterAgent)'
    assert str(Fault("a", "b")) == "a: b"
    assert str(Fault("a", "\x1b[31m")).isprintable()


def test_a_name_without_letters_has_no_other_form():
    data = put(complete_data(), {f"{M}.0.agents.0.agent_name": "агент"})
    faults = plan_faults(plan_of(data))
    hints = [fault.hint for fault in faults if fault.path == f"{AGENT}.agent_name"]
    assert hints == ["use English letters and digits"]


def test_invisible_characters_are_refused():
    data = put(complete_data(), {f"{M}.0.agents.0.objective": "Pay\u202e nothing."})
    [fault] = plan_faults(plan_of(data))
    assert fault.message == "the text is refused: it has the invisible sign U+202E"


def test_thousands_of_parts_are_judged():
    plan = plan_of(complete_data())
    many = ModuleAgentsOutput.model_validate(
        {M: [{"module_index": 0, "agents": [planned_agent(f"A{n}") for n in range(3_000)]}]}
    )
    faults = agents_faults(plan.strategy, plan.blueprint, many.modules)
    assert "3000 agents are too many" in [fault.message for fault in faults]


@pytest.mark.parametrize(("values", "path", "message"), CASES["form"])
def test_validation_error_has_its_path(values: Data, path: str, message: str):
    data = put(complete_data(), values)
    key = cast("PartKey", path.partition(".")[0].partition("[")[0])
    read = read_part(key, data[key])
    assert isinstance(read, tuple)
    assert [fault.path for fault in read] == [path]
    assert message in read[0].message


@pytest.mark.parametrize(
    ("place", "length"),
    [
        ("TechnicalBlueprint.ui_components.0.summary", 200),
        (f"{M}.0.agents.0.agent_tools.0.purpose", 140),
    ],
)
def test_short_texts_are_short(place: str, length: int):
    data = put(complete_data(), {place: "x" * (length + 1)})
    key = cast("PartKey", place.partition(".")[0])
    [fault] = cast("tuple[Fault, ...]", read_part(key, data[key]))
    assert str(length) in fault.message
