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
        "variables": [it["name"] for it in part["global_context_variables"]],
        "components": [it["component"] for it in part["ui_components"]],
    }
