"""Plans written by hand, and what is compiled from them."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft.check.run import check
from weft.check.subject import Subject
from weft.generator.compile.compiler import compile_drafts
from weft.generator.draft import Draft
from weft.generator.forms.skeleton import skeleton_parts
from weft.spec.patterns import PATTERN_BY_ID
from weft.spec.plan import ActionPlan


def skeleton_plan(brief: str, answers: Mapping[str, str]) -> ActionPlan:
    """Return the skeleton of a brief."""
    drawn = {"workflow_name": "-", "mermaid_diagram": "-"}
    parts = skeleton_parts(brief, answers)
    return ActionPlan.model_validate({"version": 1, **parts, "MermaidSequenceDiagram": drawn})


def agent(name: str, **given: Any) -> dict[str, Any]:
    return {
        "agent_name": name,
        "agent_type": "worker",
        "objective": f"Does the part of {name}.",
        "human_interaction": "none",
        "max_consecutive_auto_reply": 5,
        **given,
    }


def tool(name: str, **given: Any) -> dict[str, Any]:
    return {"name": name, "purpose": f"Does {name}.", "interaction_mode": "none", **given}


def variable(name: str, kind: str, purpose: str = "Something.", **given: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "purpose": purpose, **given}


def plan(*modules: tuple[int, Sequence[Mapping[str, Any]]], **given: Any) -> ActionPlan:
    """Return a plan with modules of a pattern and agents; `given` are fields of its parts."""
    strategy = {key: given.pop(key) for key in ("trigger", "initiated_by") if key in given}
    strategy |= {key: given.pop(key) for key in ("start", "watch", "scenarios") if key in given}
    ways = given.pop("leads_to", {})
    workflows = given.pop("workflows", None)
    owners = given.pop("owners", [None] * len(modules))
    first = PATTERN_BY_ID[modules[0][0]]
    legend = {"pattern_id": first.id, "pattern_name": first.title}
    chosen = workflows or [{"name": "Desk", "role": "primary", "description": "A desk.", **legend}]
    return ActionPlan.model_validate(
        {
            "PatternSelection": {
                "is_multi_workflow": len(chosen) > 1,
                "pack_name": "Desk pack",
                "workflows": chosen,
            },
            "WorkflowStrategy": {
                "workflow_name": "Help desk",
                "workflow_description": "When somebody asks, the desk answers.",
                "human_in_loop": strategy.get("trigger", "chat") == "chat",
                "pattern": [first.name],
                "trigger": "chat",
                "initiated_by": "user",
                **strategy,
                "modules": [
                    {
                        "module_name": f"Module {number}: Part {number}",
                        "module_index": number - 1,
                        "module_description": f"The part number {number}.",
                        "pattern_id": pattern,
                        "pattern_name": PATTERN_BY_ID[pattern].title,
                        "agents_needed": [agent["agent_name"] for agent in agents],
                        "workflow": owner,
                        "leads_to": ways.get(number, []),
                    }
                    for number, ((pattern, agents), owner) in enumerate(
                        zip(modules, owners, strict=True), 1
                    )
                ],
            },
            "TechnicalBlueprint": given,
            "ModuleAgents": [
                {"module_index": number, "agents": list(agents)}
                for number, (_, agents) in enumerate(modules)
            ],
            "MermaidSequenceDiagram": {
                "workflow_name": "Help desk",
                "mermaid_diagram": "sequenceDiagram",
            },
        }
    )


def findings(draft: Draft) -> list[str]:
    """Return the findings of a compiled workflow, one line each."""
    found = check(Subject(draft.spec, folder=draft.name, code=draft.code))
    return [f"{each.code} {each.message} {each.place.file}" for each in found]


def compiled(made: ActionPlan) -> Draft:
    """Return the first workflow of a plan as the compiler makes it."""
    return compile_drafts(made)[0]
