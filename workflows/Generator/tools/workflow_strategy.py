"""Keeps the second part of the plan: what the workflow does."""

from weft import Context
from weft.generator.judging import accepted


def workflow_strategy(
    WorkflowStrategy: dict[str, object], context_variables: Context
) -> dict[str, list[str]]:
    """Keep the part if it holds."""
    output = {"WorkflowStrategy": WorkflowStrategy}
    part = accepted("WorkflowStrategyAgent", output, context_variables)["WorkflowStrategy"]
    context_variables.set("workflow_strategy", part)
    return {"modules": [module["module_name"] for module in part["modules"]]}
