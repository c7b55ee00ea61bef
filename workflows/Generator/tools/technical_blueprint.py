"""Keeps the third part of the plan: what all modules share."""

from weft import Context
from weft.generator.judging import accepted


def technical_blueprint(
    TechnicalBlueprint: dict[str, object], context_variables: Context
) -> dict[str, list[str]]:
    """Keep the part if it holds."""
    output = {"TechnicalBlueprint": TechnicalBlueprint}
    part = accepted("WorkflowArchitectAgent", output, context_variables)["TechnicalBlueprint"]
    context_variables.set("technical_blueprint", part)
    return {
        "variables": [variable["name"] for variable in part["global_context_variables"]],
        "components": [component["component"] for component in part["ui_components"]],
    }
