"""Action plans for tests: one that is complete, and ways to make others of it."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from support.seed_examples import (
    MODULE_AGENTS,
    PATTERN_SELECTION,
    TECHNICAL_BLUEPRINT,
    WORKFLOW_STRATEGY,
)
from weft.generator.plans.plan import make_plan
from weft.spec.patterns import PATTERNS
from weft.spec.plan import (
    ActionPlan,
    ModuleAgentsOutput,
    PatternSelectionOutput,
    TechnicalBlueprintOutput,
    WorkflowStrategyOutput,
)


def planned_agent(name: str, **fields: Any) -> dict[str, Any]:
    """Return an agent of a plan as data."""
    return {
        "agent_name": name,
        "agent_type": "worker",
        "objective": f"Do the work of {name}.",
        "human_interaction": "none",
        "max_consecutive_auto_reply": 30,
        "agent_tools": [],
        **fields,
    }


def planned_tool(name: str, mode: str = "none", **fields: Any) -> dict[str, Any]:
    """Return a tool of a plan as data."""
    return {"name": name, "purpose": f"To {name}.", "interaction_mode": mode, **fields}


def complete_data() -> dict[str, Any]:
    """Return the examples of the seed, with the agents and the tool that they leave out."""
    data = deepcopy(
        {**PATTERN_SELECTION, **WORKFLOW_STRATEGY, **TECHNICAL_BLUEPRINT, **MODULE_AGENTS}
    )
    agents = data["ModuleAgents"][0]["agents"]
    agents[0]["agent_tools"].append(planned_tool("request_clarification", "inline"))
    agents += [planned_agent("TechSpecialist"), planned_agent("FinanceSpecialist")]
    return data


def extended() -> dict[str, Any]:
    """Return a plan with every optional field: ways, approvers, keys, watched words, scenarios."""
    data = complete_data()
    strategy, blueprint = data["WorkflowStrategy"], data["TechnicalBlueprint"]
    strategy |= {
        "greeting": "What is broken?",
        "watch": {"words": ["fire", "smoke"], "to": "Emergency"},
        "never": "Never promise a refund.",
        "scenarios": [{"says": "The oven is on fire.", "expect": [{"asked": "role:duty"}]}],
        "assumptions": ["OPEN: who answers at night"],
    }
    first = strategy["modules"][0]
    first["leads_to"] = [
        {"when": "urgent", "to": "Emergency", "reason": "It cannot wait."},
        {"when": "solved", "to": "end"},
        {"when": "unclear", "to": "user"},
    ]
    strategy["modules"].append(
        {
            **first,
            "module_name": "Module 2: Emergency",
            "module_index": 1,
            "agents_needed": ["DutyAgent"],
            "leads_to": [{"when": "coming", "to": "end"}],
        }
    )
    blueprint["global_context_variables"] += [
        {
            "name": "case_record",
            "type": "data_entity",
            "purpose": "What is known of the case.",
            "key": "chat_id",
            "collection": "Cases",
            "fields": ["symptoms", {"name": "cost", "type": "float", "description": "In euros."}],
        },
        {
            "name": "faq",
            "type": "data_reference",
            "purpose": "Known answers.",
            "key": "app_id",
            "shared": True,
        },
    ]
    blueprint["ui_components"].append(
        {
            "module_name": "Module 2: Emergency",
            "agent": "DutyAgent",
            "tool": "alert_duty",
            "label": "Are you coming?",
            "component": "DutyAlert",
            "display": "inline",
            "summary": "Alerts the duty officer.",
            "shows": ["symptoms"],
            "fields": ["remark"],
        }
    )
    data["ModuleAgents"][0]["agents"][0] |= {
        "outcomes": ["urgent", "solved", "unclear"],
        "reads": ["faq"],
        "writes": ["symptoms", "cost"],
    }
    duty = planned_agent("DutyAgent", approver="role:duty", outcomes=["coming"], tell="Help comes.")
    duty["agent_tools"] = [planned_tool("alert_duty", "inline")]
    data["ModuleAgents"].append({"module_index": 1, "agents": [duty]})
    return data


def two_workflows() -> dict[str, Any]:
    """Return a plan of two workflows with one module each."""
    data = complete_data()
    selection, strategy = data["PatternSelection"], data["WorkflowStrategy"]
    selection["is_multi_workflow"] = True
    selection["decomposition_reason"] = "Reports are made at other times."
    reports = {"name": "Reports", "role": "dependent", "description": "Writes reports."}
    pipeline = {"pattern_id": 6, "pattern_name": "Pipeline"}
    selection["workflows"].append({**reports, **pipeline})
    strategy["pattern"].append("Pipeline")
    strategy["modules"].append(
        {
            "module_name": "Module 2: Reporting",
            "module_index": 1,
            "module_description": "Sum up what was asked.",
            "agents_needed": ["Reporter"],
            "workflow": "Reports",
            **pipeline,
        }
    )
    data["ModuleAgents"].append({"module_index": 1, "agents": [planned_agent("Reporter")]})
    return data


def of_pattern(pattern_id: int, agents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a plan of one module that follows a pattern, with these agents and no UI."""
    data = complete_data()
    title = PATTERNS[pattern_id - 1].title
    pattern = {"pattern_id": pattern_id, "pattern_name": title}
    data["PatternSelection"]["workflows"][0].update(pattern)
    strategy = data["WorkflowStrategy"]
    strategy["pattern"] = [title]
    strategy["modules"][0].update(pattern, agents_needed=[agent["agent_name"] for agent in agents])
    data["TechnicalBlueprint"]["ui_components"] = []
    data["ModuleAgents"][0]["agents"] = agents
    return data


def plan_of(data: dict[str, Any], version: int = 1) -> ActionPlan:
    """Return data as a plan, with its diagram."""

    def part(key: str) -> dict[str, Any]:
        return {key: data[key]}

    return make_plan(
        version,
        PatternSelectionOutput.model_validate(part("PatternSelection")).selection,
        WorkflowStrategyOutput.model_validate(part("WorkflowStrategy")).strategy,
        TechnicalBlueprintOutput.model_validate(part("TechnicalBlueprint")).blueprint,
        ModuleAgentsOutput.model_validate(part("ModuleAgents")).modules,
    )


def put(data: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Put values at their places; an index beyond the end appends, "-" removes a key."""
    for path, value in values.items():
        *steps, last = path.split(".")
        inner: Any = data
        for step in steps:
            inner = inner[int(step) if isinstance(inner, list) else step]
        if isinstance(inner, list):
            inner[int(last) : int(last) + 1] = [value]
        elif value == "-":
            del inner[last]
        else:
            inner[last] = value
    return data
