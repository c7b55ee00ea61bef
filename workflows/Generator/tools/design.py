"""Stores the parts of the plan, each as its agent returned it, if it is complete."""

from weft import Context
from weft.generator.judging import accepted
from weft.generator.steps import STEP_OF


def keep_part(
    agent: str, output: dict[str, object], instead_of: str | None, context_variables: Context
) -> object:
    """Store a part, and note why it is open if it is not by the model; return it."""
    step = STEP_OF[agent]
    part = accepted(agent, output, context_variables)[step.keys[0]]
    context_variables.set(step.writes, part)
    note_open(step.writes, instead_of, context_variables)
    return part


def note_open(part: str, why: str | None, context_variables: Context) -> None:
    """Note why a part of the plan is open, or that it is not."""
    open_parts = context_variables.get_dict("open_parts")
    others = {name: reason for name, reason in open_parts.items() if name != part}
    context_variables.set("open_parts", {**others, part: why} if why else others)


def pattern_selection(
    PatternSelection: dict[str, object], context_variables: Context, instead_of: str | None = None
) -> dict[str, list[str]]:
    """Store the first part of the plan."""
    output = {"PatternSelection": PatternSelection}
    part = keep_part("PatternAgent", output, instead_of, context_variables)
    return {
        "chosen": [
            f"{workflow['name']}: {workflow['pattern_name']}" for workflow in part["workflows"]
        ]
    }


def workflow_strategy(
    WorkflowStrategy: dict[str, object], context_variables: Context, instead_of: str | None = None
) -> dict[str, list[str]]:
    """Store the second part of the plan."""
    output = {"WorkflowStrategy": WorkflowStrategy}
    part = keep_part("WorkflowStrategyAgent", output, instead_of, context_variables)
    return {"modules": [module["module_name"] for module in part["modules"]]}


def technical_blueprint(
    TechnicalBlueprint: dict[str, object],
    context_variables: Context,
    instead_of: str | None = None,
) -> dict[str, list[str]]:
    """Store the third part of the plan."""
    output = {"TechnicalBlueprint": TechnicalBlueprint}
    part = keep_part("WorkflowArchitectAgent", output, instead_of, context_variables)
    return {
        "variables": [variable["name"] for variable in part["global_context_variables"]],
        "components": [component["component"] for component in part["ui_components"]],
    }
