"""Puts the package together, checks it, tries it out, and asks whether it shall take its place."""

import asyncio

from weft import Context, tool, use_ui_tool
from weft.app.simulation import simulate
from weft.generator.bundle import plain_drafts, plain_part
from weft.generator.offer import Offer, make_offer, plainer_offer
from weft.spec.plan import ActionPlan

#: What is shown of a message.
_LONGEST = 1_000

#: How often a package is sent back to whoever made the part that is wrong.
_REPAIRS = 3


@tool(timeout=300)
async def download(agent_message: str, context_variables: Context) -> dict[str, object]:
    """Offer the bundle if it holds; else send it back, at most three times, then make it plainer."""
    plan = ActionPlan.model_validate(context_variables["action_plan"])
    outputs = _outputs(context_variables)
    round_ = context_variables.get_int("repair_round")
    offer = await asyncio.to_thread(make_offer, plan, outputs, simulate)
    target = offer.responsible
    if target and round_ < _REPAIRS:
        context_variables.set("repair_round", round_ + 1)
        context_variables.set("repair_target", target)
        context_variables.set("package_findings", list(offer.findings))
        context_variables.set("plain_part", plain_part(target, plain_drafts(plan)))
        return {"sent_back_to": target, "findings": list(offer.findings)}
    if target:
        offer = await asyncio.to_thread(plainer_offer, plan, outputs, simulate, offer)
    return await _offered(offer, agent_message, context_variables)


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


async def _offered(offer: Offer, message: str, context_variables: Context) -> dict[str, object]:
    """Stage the bundle and ask whether it shall take its place."""
    context_variables.set("repair_target", "nobody")
    context_variables.set("package_findings", [])
    context_variables.set("replaced", offer.replaced_data())
    context_variables.set("bundle", offer.data())
    answer = dict(await use_ui_tool("download", {"message": message[:_LONGEST], **offer.summary()}))
    return {"promotion": answer["promotion"], "packages": list(offer.bundle.packages)}
