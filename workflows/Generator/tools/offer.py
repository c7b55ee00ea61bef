"""Assembles, checks and simulates the package before a person is asked to approve it."""

import asyncio

from weft import Context, tool
from weft.app.simulation import simulate
from weft.errors import ToolError
from weft.generator.bundle import plain_drafts, plain_part
from weft.generator.offer import make_offer, plainer_offer
from weft.spec.plan import ActionPlan

#: How often a package is sent back to the agent that made the invalid part.
_REPAIRS = 3


@tool(timeout=300)
async def offer(context_variables: Context) -> None:
    """Offer the bundle if it holds; else send it back, at most three times, then make it plainer.

    Where not even the plain version holds, the plan is asked about again, with why.
    The package is stored before the request is opened, so that the person can look at it.
    """
    plan = ActionPlan.model_validate(context_variables["action_plan"])
    outputs = _outputs(context_variables)
    round_ = context_variables.get_int("repair_round")
    try:
        made = await asyncio.to_thread(make_offer, plan, outputs, simulate)
        if made.responsible and round_ >= _REPAIRS:
            made = await asyncio.to_thread(plainer_offer, plan, outputs, simulate, made)
    except ToolError as error:
        context_variables.set("repair_round", 0)
        context_variables.set("repair_target", "ProjectOverviewAgent")
        context_variables.set("package_findings", [str(error)])
        context_variables.set("action_plan_acceptance", "pending")
        return
    target = made.responsible
    if target:
        context_variables.set("repair_round", round_ + 1)
        context_variables.set("repair_target", target)
        context_variables.set("package_findings", list(made.findings))
        context_variables.set("plain_part", plain_part(target, plain_drafts(plan)))
        return
    context_variables.set("repair_target", "nobody")
    context_variables.set("package_findings", [])
    context_variables.set("replaced", made.replaced_data())
    context_variables.set("bundle", {**made.data(), "summary": made.summary()})


def _outputs(context_variables: Context) -> dict[str, dict[str, object]]:
    """Return what each agent of the second half returned, by agent."""
    made = {
        "ToolsManagerAgent": context_variables.get_dict("tools_manifest"),
        "ContextVariablesAgent": context_variables.get_dict("context_variables_plan"),
        "HandoffsAgent": context_variables.get_dict("handoff_rules"),
        "StructuredOutputsAgent": context_variables.get_dict("structured_models"),
        "AgentsAgent": context_variables.get_dict("runtime_agents"),
        "OrchestratorAgent": context_variables.get_dict("orchestration_config"),
        "UIFileGenerator": context_variables.get_dict("ui_files"),
        "AgentToolsFileGenerator": context_variables.get_dict("tool_files"),
        "HookAgent": context_variables.get_dict("hook_files"),
    }
    return {agent: output for agent, output in made.items() if output}
