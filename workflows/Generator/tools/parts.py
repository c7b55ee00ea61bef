"""Keeps the parts of the package, each as its agent returned it.

What stays of a part is decided piece by piece, against the plain version; nothing of it runs.
"""

from weft import Context
from weft.generator.bundle import MAKERS, enriched, plain_drafts, plain_part
from weft.generator.steps import STEP_OF
from weft.spec.plan import ActionPlan


def _keep(
    agent: str, output: dict[str, object], context_variables: Context
) -> dict[str, list[str]]:
    """Keep a part, put the plain version of the next one in place, and say what is dropped."""
    plan = ActionPlan.model_validate(context_variables["action_plan"])
    drafts = plain_drafts(plan)
    _, replaced = enriched(drafts, {agent: output})
    context_variables.set(STEP_OF[agent].writes, output)
    following = MAKERS[MAKERS.index(agent) + 1 :]
    if following:
        context_variables.set("plain_part", plain_part(following[0], drafts))
    return {"replaced": [f"{replacement.what}: {replacement.why}" for replacement in replaced]}


def tools_manifest(
    tools: list[object], lifecycle_tools: list[object], context_variables: Context
) -> dict[str, list[str]]:
    """Keep what tools and lifecycle_tools hold."""
    return _keep(
        "ToolsManagerAgent", {"tools": tools, "lifecycle_tools": lifecycle_tools}, context_variables
    )


def context_variables_plan(
    ContextVariablesPlan: dict[str, object], context_variables: Context
) -> dict[str, list[str]]:
    """Keep what ContextVariablesPlan holds."""
    return _keep(
        "ContextVariablesAgent", {"ContextVariablesPlan": ContextVariablesPlan}, context_variables
    )


def handoff_rules(handoff_rules: list[object], context_variables: Context) -> dict[str, list[str]]:
    """Keep what handoff_rules holds."""
    return _keep("HandoffsAgent", {"handoff_rules": handoff_rules}, context_variables)


def structured_models(
    models: list[object], registry: list[object], context_variables: Context
) -> dict[str, list[str]]:
    """Keep what models and registry hold."""
    return _keep(
        "StructuredOutputsAgent", {"models": models, "registry": registry}, context_variables
    )


def runtime_agents(agents: list[object], context_variables: Context) -> dict[str, list[str]]:
    """Keep what agents holds."""
    return _keep("AgentsAgent", {"agents": agents}, context_variables)


def orchestration_config(context_variables: Context, **settings: object) -> dict[str, list[str]]:
    """Keep what the settings hold."""
    return _keep("OrchestratorAgent", dict(settings), context_variables)


def ui_files(tools: list[object], context_variables: Context) -> dict[str, list[str]]:
    """Keep what tools holds."""
    return _keep("UIFileGenerator", {"tools": tools}, context_variables)


def tool_files(tools: list[object], context_variables: Context) -> dict[str, list[str]]:
    """Keep what tools holds."""
    return _keep("AgentToolsFileGenerator", {"tools": tools}, context_variables)


def hook_files(hook_files: list[object], context_variables: Context) -> dict[str, list[str]]:
    """Keep what hook_files holds."""
    return _keep("HookAgent", {"hook_files": hook_files}, context_variables)
