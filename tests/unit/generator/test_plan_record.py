"""The plan as a record: its hash, what changed between two, and how it is read."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from support.plan_play import (
    complete_data,
    extended,
    plan_of,
    planned_agent,
    planned_tool,
    two_workflows,
)
from weft.generator.plans.plan import Change, change_lines, compare_plans, plan_hash, plan_lines
from weft.spec.plan import ActionPlan

Data = dict[str, Any]


def changed(change: Callable[[Data], object], base: Data | None = None) -> tuple[Change, ...]:
    """Return what differs between a plan and the same plan after a change."""
    data = base or complete_data()
    old = plan_of(data)
    new_data = deepcopy(data)
    change(new_data)
    new = plan_of(new_data, version=2)
    changes = compare_plans(old, new)
    assert bool(changes) == (plan_hash(old) != plan_hash(new))
    return changes


def test_a_plan_is_named_by_its_parts_and_not_by_its_round():
    first, again = plan_of(complete_data()), plan_of(complete_data(), version=7)
    assert plan_hash(first) == plan_hash(again)
    assert len(plan_hash(first)) == 64
    assert compare_plans(first, again) == ()


def test_a_plan_that_was_written_and_read_has_the_same_hash():
    for data in (two_workflows(), extended()):
        plan = plan_of(data)
        assert plan_hash(ActionPlan.model_validate_json(plan.model_dump_json())) == plan_hash(plan)


def test_a_plan_without_the_optional_fields_keeps_the_hash_it_always_had():
    hash_of_an_old_plan = "493873a15b14855d10cccb00585caa1c40230b8dc337f055ccd2f2fc320f43bf"
    assert plan_hash(plan_of(complete_data())) == hash_of_an_old_plan


@pytest.mark.parametrize(
    "change",
    [
        lambda it: it["PatternSelection"].update(pack_name="Other"),
        lambda it: it["WorkflowStrategy"].update(workflow_description="Other."),
        lambda it: it["WorkflowStrategy"]["modules"][0].update(module_name="Module 1: Other"),
        lambda it: it["TechnicalBlueprint"].update(before_chat_lifecycle=None),
        lambda it: it["ModuleAgents"][0]["agents"][0].update(objective="Other."),
    ],
)
def test_every_part_counts(change: Callable[[Data], object]):
    assert changed(change)


EXTENSIONS: dict[str, tuple[Callable[[Data], object], str]] = {
    "a way": (
        lambda it: it["WorkflowStrategy"]["modules"][0]["leads_to"][0].update(reason="It burns."),
        (
            "~ WorkflowStrategy.modules[Request Classification].leads_to[urgent].reason: "
            '"It cannot wait." -> "It burns."'
        ),
    ),
    "a prohibition": (
        lambda it: it["WorkflowStrategy"].update(never=None),
        '- WorkflowStrategy.never: ["Never promise a refund."]',
    ),
    "a scenario": (
        lambda it: it["WorkflowStrategy"]["scenarios"][0].update(expect="The end."),
        (
            '~ WorkflowStrategy.scenarios: [{"says": ["The oven is on fire."], "expect": [{'
            '"asked": "role:duty"}]}] -> [{"says": ["The oven is on fire."], '
            '"expect": ["The end."]}]'
        ),
    ),
    "who decides": (
        lambda it: it["ModuleAgents"][1]["agents"][0].update(approver="group:night"),
        '~ ModuleAgents[DutyAgent].approver: "role:duty" -> "group:night"',
    ),
    "a key": (
        lambda it: it["TechnicalBlueprint"]["global_context_variables"][1].update(key="user_id"),
        '~ TechnicalBlueprint.global_context_variables[case_record].key: "chat_id" -> "user_id"',
    ),
    "a field": (
        lambda it: it["TechnicalBlueprint"]["global_context_variables"][1]["fields"].pop(),
        (
            '- TechnicalBlueprint.global_context_variables[case_record].fields[cost]: {"type": '
            '"float", "description": "In euros."}'
        ),
    ),
}


@pytest.mark.parametrize("fact", EXTENSIONS)
def test_a_changed_fact_is_one_change(fact: str):
    change, line = EXTENSIONS[fact]
    assert change_lines(changed(change, extended())) == [line]


def test_a_changed_text_is_one_change():
    found = changed(lambda it: it["ModuleAgents"][0]["agents"][0].update(objective="Route well."))
    assert found == (
        Change("ModuleAgents[RouterAgent].objective", "Route requests.", "Route well."),
    )
    assert change_lines(found) == [
        '~ ModuleAgents[RouterAgent].objective: "Route requests." -> "Route well."'
    ]


def test_additions_and_removals_are_found_by_name():
    def change(data: Data) -> None:
        agents = data["ModuleAgents"][0]["agents"]
        agents.insert(0, planned_agent("Greeter"))
        del agents[2]
        agents[1]["agent_tools"].insert(0, planned_tool("greet"))
        data["TechnicalBlueprint"]["global_context_variables"] = []

    found = changed(change)
    assert [(item.path, item.before is None, item.after is None) for item in found] == [
        ("TechnicalBlueprint.global_context_variables[current_domain]", False, True),
        ("ModuleAgents[RouterAgent].agent_tools[greet]", True, False),
        ("ModuleAgents[TechSpecialist]", False, True),
        ("ModuleAgents[Greeter]", True, False),
    ]
    assert [line[0] for line in change_lines(found)] == ["-", "+", "-", "+"]


def test_a_module_that_moves_is_the_same_module():
    def change(data: Data) -> None:
        modules = data["WorkflowStrategy"]["modules"]
        modules.reverse()
        for place, module in enumerate(modules):
            purpose = module["module_name"].partition(": ")[2]
            module.update(module_index=place, module_name=f"Module {place + 1}: {purpose}")
        data["ModuleAgents"].reverse()
        for place, module in enumerate(data["ModuleAgents"]):
            module["module_index"] = place
        component = data["TechnicalBlueprint"]["ui_components"][0]
        component["module_name"] = modules[1]["module_name"]

    found = changed(change, two_workflows())
    assert [item.path for item in found] == [
        "WorkflowStrategy.modules in order",
        "ModuleAgents in order",
    ]
    assert found[0].before == ["Request Classification", "Reporting"]


def test_an_agent_that_moves_to_another_module_is_the_same_agent():
    def change(data: Data) -> None:
        data["ModuleAgents"][1]["agents"].append(data["ModuleAgents"][0]["agents"].pop())

    assert changed(change, two_workflows())[0] == Change(
        "ModuleAgents[FinanceSpecialist].module", "Request Classification", "Reporting"
    )


def test_equal_names_are_distinguished():
    def change(data: Data) -> None:
        data["ModuleAgents"][0]["agents"].append(planned_agent("RouterAgent"))

    assert [item.path for item in changed(change)] == ["ModuleAgents[RouterAgent2]"]


def test_another_diagram_of_the_same_plan_is_a_change():
    plan = plan_of(complete_data())
    diagram = plan.diagram.model_copy(update={"mermaid_diagram": "sequenceDiagram"})
    found = compare_plans(plan, plan.model_copy(update={"diagram": diagram}))
    assert [item.path for item in found] == ["MermaidSequenceDiagram.mermaid_diagram"]


def test_a_plan_is_read_as_lines():
    assert plan_lines(plan_of(complete_data()))[1:] == [
        "  When asked, the workflow routes, resulting in an answer.",
        "  trigger: chat, initiated by user; a person takes part",
        (
            "  workflow CustomerSupportRouter, primary, Context-Aware Routing: "
            "Routes support requests."
        ),
        "",
        "Module 1: Request Classification   (Context-Aware Routing)",
        "  Classify requests by domain.",
        "  RouterAgent (router, interaction context, 20 replies): Route requests.",
        "    tool analyze_request: Find the domain.",
        (
            "    tool request_clarification "
            '(inline ClarificationRequest, "Need more information"): '
            "To request_clarification."
        ),
        "  TechSpecialist (worker, interaction none, 30 replies): Do the work of TechSpecialist.",
        (
            "  FinanceSpecialist (worker, interaction none, 30 replies): "
            "Do the work of FinanceSpecialist."
        ),
        "",
        "Variables",
        "  current_domain (state): Which specialist has the request.; Set by RouterAgent.",
        "",
        "Shown to people",
        (
            "  ClarificationRequest (RouterAgent by request_clarification, inline): "
            "Asks when the request is not clear."
        ),
        "",
        "Around the run",
        "  before_chat: initialize_context: Load the profile.",
    ]


def test_the_first_line_names_the_plan_and_its_hash():
    plan = plan_of(complete_data(), version=3)
    assert plan_lines(plan)[0] == f"Customer Support Router   (plan 3, {plan_hash(plan)[:12]})"


def test_everything_a_plan_may_say_is_read():
    data = two_workflows()
    data["TechnicalBlueprint"]["workflow_dependencies"] = {"required_workflows": ["Billing"]}
    data["ModuleAgents"][1]["agents"][0].update(
        agent_type="generator",
        generation_mode="text",
        agent_tools=[planned_tool("send", integration="Mailer")],
        lifecycle_tools=[
            {"name": "log", "purpose": "Log.", "trigger": "after_agent", "integration": "Logger"}
        ],
        system_hooks=[{"name": "update_agent_state", "purpose": "Keep count."}],
    )
    lines = plan_lines(plan_of(data))
    for line in (
        "  several workflows: Reports are made at other times.",
        "Module 2: Reporting   (Pipeline, Reports)",
        "    tool send (with Mailer): To send.",
        "    after_agent: log (with Logger): Log.",
        "    hook update_agent_state: Keep count.",
        "Completed before: Billing",
    ):
        assert line in lines
    made = "  Reporter (generator, interaction none, 30 replies, makes text): "
    assert f"{made}Do the work of Reporter." in lines


def test_what_matters_of_a_plan_is_read():
    lines = plan_lines(plan_of(extended()))
    for line in (
        "  greeting: What is broken?",
        "  whenever the user says fire, smoke: -> Emergency",
        "    reads faq; writes symptoms, cost; comes to urgent, solved, unclear",
        "  urgent -> Emergency (It cannot wait.)",
        "  solved -> end",
        "    asks role:duty; comes to coming; tells the user: Help comes.",
        (
            '    key: "chat_id", collection: "Cases", fields: [{"name": "symptoms"}, {"name": '
            '"cost", "type": "float", "description": "In euros."}]'
        ),
        '    shows: ["symptoms"], fields: [{"name": "remark"}]',
        "Never",
        "  Never promise a refund.",
        '  The oven is on fire. => {"asked": "role:duty"}',
        "  OPEN: who answers at night",
    ):
        assert line in lines
    data = complete_data()
    data["WorkflowStrategy"] |= {
        "trigger": "schedule",
        "human_in_loop": False,
        "start": {"cron": "0 6 * * MON"},
    }
    assert '  start: cron: "0 6 * * MON"' in plan_lines(plan_of(data))


def test_a_plan_cannot_reach_the_terminal_itself():
    data = complete_data()
    data["WorkflowStrategy"]["workflow_description"] = "red \x1b[31m\nand a line"
    data["ModuleAgents"][0]["agents"][0]["objective"] = "\x1b]0;title\x07"
    plan = plan_of(data)
    assert all(line.isprintable() for line in plan_lines(plan))
    changes = compare_plans(plan_of(complete_data()), plan)
    assert all(line.isprintable() for line in change_lines(changes))
