"""Every rule of completeness, with a plan that breaks it."""

from collections.abc import Callable
from typing import Any

import pytest

from support.plan_play import (
    complete_data,
    extended,
    of_pattern,
    plan_of,
    planned_agent,
    planned_tool,
    two_workflows,
)
from support.seed_examples import (
    MODULE_AGENTS,
    PATTERN_SELECTION,
    TECHNICAL_BLUEPRINT,
    WORKFLOW_STRATEGY,
)
from weft.generator.faults import Fault, PartKey, read_part
from weft.generator.rules import (
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
Mutation = Callable[[Data], object]


def paths(data: Data) -> list[str]:
    return [fault.path for fault in plan_faults(plan_of(data))]


def workflow(data: Data, place: int = 0) -> Data:
    return data["PatternSelection"]["workflows"][place]


def strategy(data: Data) -> Data:
    return data["WorkflowStrategy"]


def module(data: Data, place: int = 0) -> Data:
    return strategy(data)["modules"][place]


def blueprint(data: Data) -> Data:
    return data["TechnicalBlueprint"]


def variable(data: Data) -> Data:
    return blueprint(data)["global_context_variables"][0]


def component(data: Data) -> Data:
    return blueprint(data)["ui_components"][0]


def agent(data: Data, place: int = 0) -> Data:
    return data["ModuleAgents"][0]["agents"][place]


def tool(data: Data, place: int = 0) -> Data:
    return agent(data)["agent_tools"][place]


def lifecycle(**fields: Any) -> Data:
    return {"name": "open_case", "purpose": "Open it.", "trigger": "before_agent", **fields}


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


S, W, B, M = "PatternSelection", "WorkflowStrategy", "TechnicalBlueprint", "ModuleAgents"
AGENT = f"{M}[0].agents[0]"
VARIABLES, COMPONENT = f"{B}.global_context_variables", f"{B}.ui_components[0]"
REQUIRED = f"{B}.workflow_dependencies.required_workflows"
LONG = "x" * 2_001

BROKEN: dict[str, tuple[Mutation, str]] = {
    "a workflow is PascalCase": (
        lambda it: workflow(it).update(name="desk"),
        f"{S}.workflows[0].name",
    ),
    "a workflow is described": (
        lambda it: workflow(it).update(description=" "),
        f"{S}.workflows[0].description",
    ),
    "the pack has a name": (lambda it: it[S].update(pack_name=" "), f"{S}.pack_name"),
    "several means more than one": (
        lambda it: it[S].update(is_multi_workflow=True),
        f"{S}.is_multi_workflow",
    ),
    "one workflow has no reason to be several": (
        lambda it: it[S].update(decomposition_reason="Why not?"),
        f"{S}.decomposition_reason",
    ),
    "one workflow is primary": (lambda it: workflow(it).update(role="dependent"), f"{S}.workflows"),
    "the strategy is named": (
        lambda it: strategy(it).update(workflow_name=" "),
        f"{W}.workflow_name",
    ),
    "the strategy is described": (
        lambda it: strategy(it).update(workflow_description=""),
        f"{W}.workflow_description",
    ),
    "texts have an end": (
        lambda it: strategy(it).update(workflow_description=LONG),
        f"{W}.workflow_description",
    ),
    "nobody takes part in what a clock starts": (
        lambda it: strategy(it).update(trigger="schedule"),
        f"{W}.human_in_loop",
    ),
    "a person takes part in a chat": (
        lambda it: strategy(it).update(human_in_loop=False),
        f"{W}.human_in_loop",
    ),
    "no pattern is listed for nothing": (
        lambda it: strategy(it)["pattern"].append("Star"),
        f"{W}.pattern[1]",
    ),
    "a pattern is listed once": (
        lambda it: strategy(it)["pattern"].append("Context-Aware Routing"),
        f"{W}.pattern[1]",
    ),
    "every pattern is listed": (lambda it: strategy(it).update(pattern=["Star"]), f"{W}.pattern"),
    "indexes count from 0": (
        lambda it: module(it).update(module_index=1),
        f"{W}.modules[0].module_index",
    ),
    "a module is numbered": (
        lambda it: module(it).update(module_name="Module 2: Request Classification"),
        f"{W}.modules[0].module_name",
    ),
    "a module's purpose has an end": (
        lambda it: module(it).update(module_name="Module 1: " + "x" * 141),
        f"{W}.modules[0].module_name",
    ),
    "a module's name is one line": (
        lambda it: module(it).update(module_name="Module 1: Request\nClassification"),
        f"{W}.modules[0].module_name",
    ),
    "a module is described": (
        lambda it: module(it).update(module_description="\n"),
        f"{W}.modules[0].module_description",
    ),
    "a module needs somebody": (
        lambda it: module(it).update(agents_needed=[]),
        f"{W}.modules[0].agents_needed",
    ),
    "an agent is needed once": (
        lambda it: module(it)["agents_needed"].append("RouterAgent"),
        f"{W}.modules[0].agents_needed[3]",
    ),
    "an agent that is needed is PascalCase": (
        lambda it: module(it).update(agents_needed=["router_agent"]),
        f"{W}.modules[0].agents_needed[0]",
    ),
    "a module belongs to a workflow that is selected": (
        lambda it: module(it).update(workflow="Nowhere"),
        f"{W}.modules[0].workflow",
    ),
    "every workflow has a module": (
        lambda it: module(it).update(workflow="Nowhere"),
        f"{W}.modules",
    ),
    "a workflow follows the pattern chosen for it": (
        lambda it: workflow(it).update(pattern_id=8, pattern_name="Star"),
        f"{W}.modules",
    ),
    "a variable is snake_case": (
        lambda it: variable(it).update(name="currentDomain"),
        f"{VARIABLES}[0].name",
    ),
    "a variable is no built-in": (
        lambda it: variable(it).update(name="user_id"),
        f"{VARIABLES}[0].name",
    ),
    "a variable is no word of Python": (
        lambda it: variable(it).update(name="lambda"),
        f"{VARIABLES}[0].name",
    ),
    "a state is no secret": (
        lambda it: variable(it).update(name="user_password", type="state"),
        f"{VARIABLES}[0].name",
    ),
    "a variable has one of six kinds": (
        lambda it: variable(it).update(type="static"),
        f"{VARIABLES}[0].type",
    ),
    "a variable has a purpose": (
        lambda it: variable(it).update(purpose=""),
        f"{VARIABLES}[0].purpose",
    ),
    "a hint says something": (
        lambda it: variable(it).update(trigger_hint=" "),
        f"{VARIABLES}[0].trigger_hint",
    ),
    "variables have names of their own": (
        lambda it: blueprint(it)["global_context_variables"].append(variable(it)),
        f"{VARIABLES}[1].name",
    ),
    "a component is in a module": (
        lambda it: component(it).update(module_name="Module 2: Nowhere"),
        f"{COMPONENT}.module_name",
    ),
    "a component is PascalCase": (
        lambda it: component(it).update(component="ask_me"),
        f"{COMPONENT}.component",
    ),
    "a component's agent is PascalCase": (
        lambda it: component(it).update(agent="user"),
        f"{COMPONENT}.agent",
    ),
    "a component's tool is snake_case": (
        lambda it: component(it).update(tool="Ask"),
        f"{COMPONENT}.tool",
    ),
    "a component has a label": (lambda it: component(it).update(label=" "), f"{COMPONENT}.label"),
    "a component has a summary": (
        lambda it: component(it).update(summary=" "),
        f"{COMPONENT}.summary",
    ),
    "a tool has one component": (
        lambda it: blueprint(it)["ui_components"].append(component(it)),
        f"{B}.ui_components[1].tool",
    ),
    "before_chat is before the chat": (
        lambda it: blueprint(it)["before_chat_lifecycle"].update(trigger="after_chat"),
        f"{B}.before_chat_lifecycle.trigger",
    ),
    "after_chat is after the chat": (
        lambda it: blueprint(it).update(after_chat_lifecycle=lifecycle()),
        f"{B}.after_chat_lifecycle.trigger",
    ),
    "a lifecycle function is snake_case": (
        lambda it: blueprint(it)["before_chat_lifecycle"].update(name="Load It"),
        f"{B}.before_chat_lifecycle.name",
    ),
    "a lifecycle function has a purpose": (
        lambda it: blueprint(it)["before_chat_lifecycle"].update(purpose=""),
        f"{B}.before_chat_lifecycle.purpose",
    ),
    "a service is PascalCase": (
        lambda it: blueprint(it)["before_chat_lifecycle"].update(integration="sales force"),
        f"{B}.before_chat_lifecycle.integration",
    ),
    "a service is not Weft": (
        lambda it: blueprint(it)["before_chat_lifecycle"].update(integration="WeftHub"),
        f"{B}.before_chat_lifecycle.integration",
    ),
    "a lifecycle function is no module": (
        lambda it: blueprint(it)["before_chat_lifecycle"].update(name="weft"),
        f"{B}.before_chat_lifecycle.name",
    ),
    "a workflow does not require itself": (
        lambda it: blueprint(it).update(
            workflow_dependencies={"required_workflows": ["CustomerSupportRouter"]}
        ),
        f"{REQUIRED}[0]",
    ),
    "a workflow is required once": (
        lambda it: blueprint(it).update(
            workflow_dependencies={"required_workflows": ["Billing", "Billing"]}
        ),
        f"{REQUIRED}[1]",
    ),
    "a required workflow is PascalCase": (
        lambda it: blueprint(it).update(workflow_dependencies={"required_workflows": ["../up"]}),
        f"{REQUIRED}[0]",
    ),
    "every module is staffed": (lambda it: it.update(ModuleAgents=[]), M),
    "no module is staffed twice": (lambda it: it[M].append({"module_index": 0, "agents": []}), M),
    "nobody works in no module": (lambda it: it[M].append({"module_index": 7, "agents": []}), M),
    "who is needed is there": (lambda it: it[M][0]["agents"].pop(), f"{M}[0].agents"),
    "agents are PascalCase": (
        lambda it: agent(it).update(agent_name="router"),
        f"{AGENT}.agent_name",
    ),
    "no agent is the user": (lambda it: agent(it).update(agent_name="User"), f"{AGENT}.agent_name"),
    "no agent is the end": (
        lambda it: agent(it).update(agent_name="Terminate"),
        f"{AGENT}.agent_name",
    ),
    "names have an end": (lambda it: agent(it).update(agent_name="A" * 65), f"{AGENT}.agent_name"),
    "agents have names of their own": (
        lambda it: agent(it, 1).update(agent_name="RouterAgent"),
        f"{M}[0].agents[1].agent_name",
    ),
    "an agent has an objective": (lambda it: agent(it).update(objective=""), f"{AGENT}.objective"),
    "only generators generate": (
        lambda it: agent(it).update(generation_mode="image"),
        f"{AGENT}.generation_mode",
    ),
    "approval is asked for by a tool": (
        lambda it: agent(it, 1).update(human_interaction="approval", max_consecutive_auto_reply=5),
        f"{M}[0].agents[1].agent_tools",
    ),
    "tools are snake_case": (
        lambda it: tool(it).update(name="Analyze"),
        f"{AGENT}.agent_tools[0].name",
    ),
    "a tool is nothing that its code imports": (
        lambda it: tool(it).update(name="pydantic"),
        f"{AGENT}.agent_tools[0].name",
    ),
    "a tool is no word of Python": (
        lambda it: tool(it).update(name="import"),
        f"{AGENT}.agent_tools[0].name",
    ),
    "a tool has a purpose": (
        lambda it: tool(it).update(purpose=" "),
        f"{AGENT}.agent_tools[0].purpose",
    ),
    "a tool's service is PascalCase": (
        lambda it: tool(it).update(integration="sales_force"),
        f"{AGENT}.agent_tools[0].integration",
    ),
    "tools of an agent have names of their own": (
        lambda it: tool(it).update(name="request_clarification"),
        f"{AGENT}.agent_tools[1].name",
    ),
    "a tool without a component shows nothing": (
        lambda it: tool(it).update(interaction_mode="inline"),
        f"{AGENT}.agent_tools[0].interaction_mode",
    ),
    "a tool with a component shows it": (
        lambda it: tool(it, 1).update(interaction_mode="none"),
        f"{AGENT}.agent_tools[1].interaction_mode",
    ),
    "a tool shows its component where it says": (
        lambda it: tool(it, 1).update(interaction_mode="artifact"),
        f"{AGENT}.agent_tools[1].interaction_mode",
    ),
    "a component's agent is there": (
        lambda it: component(it).update(agent="Ghost"),
        f"{M}[0].agents",
    ),
    "a component's tool is its agent's": (
        lambda it: component(it).update(agent="TechSpecialist"),
        f"{M}[0].agents",
    ),
    "an agent's lifecycle functions are snake_case": (
        lambda it: agent(it).update(lifecycle_tools=[lifecycle(name="Open")]),
        f"{AGENT}.lifecycle_tools[0].name",
    ),
    "hooks are snake_case": (
        lambda it: agent(it).update(system_hooks=[{"name": "Hook", "purpose": "To hook."}]),
        f"{AGENT}.system_hooks[0].name",
    ),
    "hooks have a purpose": (
        lambda it: agent(it).update(system_hooks=[{"name": "hook", "purpose": ""}]),
        f"{AGENT}.system_hooks[0].purpose",
    ),
    "a way leads somewhere": (
        lambda it: module(it).update(leads_to=[{"when": "done", "to": "Nowhere"}]),
        f"{W}.modules[0].leads_to[0].to",
    ),
    "the end is not reached in parallel": (
        lambda it: module(it).update(
            leads_to=[{"when": "done", "to": "RouterAgent"}, {"when": "done", "to": "end"}]
        ),
        f"{W}.modules[0].leads_to[1].to",
    ),
    "a way is there once": (
        lambda it: module(it).update(leads_to=[{"when": "done", "to": "RouterAgent"}] * 2),
        f"{W}.modules[0].leads_to[1]",
    ),
    "a way has a condition": (
        lambda it: module(it).update(leads_to=[{"when": " ", "to": "end"}]),
        f"{W}.modules[0].leads_to[0].when",
    ),
    "a start has what belongs to its trigger": (
        lambda it: strategy(it).update(start={"cron": "0 6 * * *"}),
        f"{W}.start.cron",
    ),
    "a schedule is valid": (
        lambda it: strategy(it).update(start={"cron": "at six"}),
        f"{W}.start.cron",
    ),
    "a form asks each thing once": (
        lambda it: strategy(it).update(start={"fields": ["mail", "mail"]}),
        f"{W}.start.fields[1].name",
    ),
    "watched words lead to a module": (
        lambda it: strategy(it).update(watch={"words": ["help"], "to": "end"}),
        f"{W}.watch.to",
    ),
    "a word is watched": (
        lambda it: strategy(it).update(watch={"words": [" "], "to": "RouterAgent"}),
        f"{W}.watch.words",
    ),
    "only a chat is watched": (
        lambda it: strategy(it).update(
            watch={"words": ["help"], "to": "RouterAgent"}, trigger="webhook"
        ),
        f"{W}.watch",
    ),
    "a prohibition says something": (
        lambda it: strategy(it).update(never=[" "]),
        f"{W}.never[0]",
    ),
    "a scenario expects something": (
        lambda it: strategy(it).update(scenarios=[{"says": "Hello", "expect": []}]),
        f"{W}.scenarios[0]",
    ),
    "outcomes have names of their own": (
        lambda it: agent(it).update(outcomes=["solved", "solved"]),
        f"{AGENT}.outcomes[1]",
    ),
    "outcomes are snake_case": (
        lambda it: variable(it).update(outcomes=["Solved!"]),
        f"{VARIABLES}[0].outcomes[0]",
    ),
    "only a state has outcomes": (
        lambda it: variable(it).update(type="config", outcomes=["solved"]),
        f"{VARIABLES}[0].outcomes",
    ),
    "a key is built in or a variable": (
        lambda it: variable(it).update(type="data_entity", key="order_number"),
        f"{VARIABLES}[0].key",
    ),
    "a document is not its own key": (
        lambda it: variable(it).update(type="data_entity", key="current_domain"),
        f"{VARIABLES}[0].key",
    ),
    "only a document has a key": (
        lambda it: variable(it).update(key="chat_id"),
        f"{VARIABLES}[0].key",
    ),
    "what belongs to a run is not shared": (
        lambda it: variable(it).update(type="data_entity", key="chat_id", shared=True),
        f"{VARIABLES}[0].shared",
    ),
    "fields have types that are there": (
        lambda it: variable(it).update(
            type="data_entity", fields=[{"name": "lines", "type": "list[Line]"}]
        ),
        f"{VARIABLES}[0].fields[0].type",
    ),
    "what is shown is known": (
        lambda it: component(it).update(shows=["ghost"]),
        f"{COMPONENT}.shows[0]",
    ),
    "what is read is known": (lambda it: agent(it).update(reads=["ghost"]), f"{AGENT}.reads[0]"),
    "what is written is known": (
        lambda it: agent(it).update(writes=["ghost"]),
        f"{AGENT}.writes[0]",
    ),
    "who asks a role shows something": (
        lambda it: agent(it, 1).update(approver="role:hr"),
        f"{M}[0].agents[1].agent_tools",
    ),
    "at most 12 tools": (
        lambda it: agent(it)["agent_tools"].extend(planned_tool(f"t{n}") for n in range(11)),
        f"{AGENT}.agent_tools",
    ),
    "at most 16 agents": (
        lambda it: it[M][0]["agents"].extend(planned_agent(f"A{n}") for n in range(14)),
        f"{M}[0].agents",
    ),
    "at most 60 variables": (
        lambda it: blueprint(it).update(
            global_context_variables=[{**variable(it), "name": f"v{n}"} for n in range(61)]
        ),
        VARIABLES,
    ),
    "at most 12 modules": (
        lambda it: strategy(it).update(
            modules=[
                {**module(it), "module_index": n, "module_name": f"Module {n + 1}: Work"}
                for n in range(13)
            ]
        ),
        f"{W}.modules",
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_violation_is_reported_at_its_place(rule: str):
    break_it, path = BROKEN[rule]
    data = complete_data()
    break_it(data)
    assert path in paths(data)


TWO: dict[str, tuple[Mutation, str]] = {
    "several workflows have a reason": (
        lambda it: it[S].update(decomposition_reason=None),
        f"{S}.decomposition_reason",
    ),
    "the reason says something": (
        lambda it: it[S].update(decomposition_reason=""),
        f"{S}.decomposition_reason",
    ),
    "several are said to be several": (
        lambda it: it[S].update(is_multi_workflow=False),
        f"{S}.is_multi_workflow",
    ),
    "only one is primary": (lambda it: workflow(it, 1).update(role="primary"), f"{S}.workflows"),
    "workflows have names of their own": (
        lambda it: workflow(it, 1).update(name="CustomerSupportRouter"),
        f"{S}.workflows[1].name",
    ),
    "each has a module": (lambda it: module(it, 1).update(workflow=None), f"{W}.modules"),
    "a plan does not require its own workflows": (
        lambda it: blueprint(it).update(workflow_dependencies={"required_workflows": ["Reports"]}),
        f"{REQUIRED}[0]",
    ),
    "agents have names of their own in all modules": (
        lambda it: it[M][1]["agents"].append(planned_agent("RouterAgent")),
        f"{M}[1].agents[1].agent_name",
    ),
    "modules are staffed in order": (lambda it: it[M].reverse(), M),
}


@pytest.mark.parametrize("rule", TWO)
def test_violation_across_workflows_is_reported(rule: str):
    break_it, path = TWO[rule]
    data = two_workflows()
    break_it(data)
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
def test_the_six_kinds_of_variables_have_their_other_names(kind: str):
    data = complete_data()
    variable(data)["type"] = kind
    assert paths(data) == []


def test_an_extended_plan_has_no_faults():
    assert plan_faults(plan_of(extended())) == ()


def test_what_a_model_leaves_open_with_null_is_left_out():
    data = complete_data()
    agent(data).update(outcomes=None, approver=None)
    strategy(data).update(never=None, scenarios=None, start=None)
    variable(data).update(key=None, shared=None, fields=None)
    assert plan_of(data) == plan_of(complete_data())


def test_a_fault_says_what_to_do():
    data = complete_data()
    agent(data)["agent_name"] = "router agent"
    fault = next(each for each in plan_faults(plan_of(data)) if each.path == f"{AGENT}.agent_name")
    assert str(fault) == f'{AGENT}.agent_name: "router agent" is not PascalCase (write RouterAgent)'
    assert str(Fault("a", "b")) == "a: b"
    assert str(Fault("a", "\x1b[31m")).isprintable()


def test_a_name_without_letters_has_no_other_form():
    data = complete_data()
    agent(data)["agent_name"] = "агент"
    hints = [
        fault.hint for fault in plan_faults(plan_of(data)) if fault.path == f"{AGENT}.agent_name"
    ]
    assert hints == ["use English letters and digits"]


def test_thousands_of_parts_are_judged_all_the_same():
    plan = plan_of(complete_data())
    many = ModuleAgentsOutput.model_validate(
        {M: [{"module_index": 0, "agents": [planned_agent(f"A{n}") for n in range(3_000)]}]}
    )
    faults = agents_faults(plan.strategy, plan.blueprint, many.modules)
    assert "3000 agents" in [fault.message for fault in faults]


@pytest.mark.parametrize(
    ("key", "break_it", "path", "message"),
    [
        (
            S,
            lambda it: workflow(it).update(pattern_id=2),
            f"{S}.workflows[0]",
            "is Escalation, not",
        ),
        (S, lambda it: workflow(it).update(pattern_id=10), f"{S}.workflows[0].pattern_id", "9"),
        (W, lambda it: module(it).update(module_name="Routing"), f"{W}.modules[0].module_name", ""),
        (W, lambda it: strategy(it).pop("trigger"), f"{W}.trigger", "missing"),
        (W, lambda it: strategy(it).update(trigger="email"), f"{W}.trigger", "not one of"),
        (B, lambda it: variable(it).update(type="magic"), f"{VARIABLES}[0].type", "not one of"),
        (B, lambda it: component(it).update(summary="x" * 201), f"{COMPONENT}.summary", "200"),
        (B, lambda it: blueprint(it).update(extra=1), f"{B}.extra", "unknown key"),
        (B, lambda it: component(it).update(approver="hr"), f"{COMPONENT}.approver", "role:NAME"),
        (M, lambda it: agent(it).update(approver="hr"), f"{AGENT}.approver", "role:NAME"),
        (
            M,
            lambda it: tool(it).update(purpose="x" * 141),
            f"{AGENT}.agent_tools[0].purpose",
            "140",
        ),
        (
            M,
            lambda it: agent(it).update(system_hooks=[{"name": "hook", "purpose": "x" * 141}]),
            f"{AGENT}.system_hooks[0].purpose",
            "140",
        ),
        (M, lambda it: agent(it).update(agent_type="boss"), f"{AGENT}.agent_type", "not one of"),
        (M, lambda it: it.update(ModuleAgents="none"), M, "expected a list"),
        (M, lambda it: it.update(ModuleAgents=None), M, "expected a list"),
    ],
)
def test_validation_error_has_its_path(key: PartKey, break_it: Mutation, path: str, message: str):
    data = complete_data()
    break_it(data)
    read = read_part(key, data[key])
    assert isinstance(read, tuple)
    assert [fault.path for fault in read] == [path]
    assert message in read[0].message
