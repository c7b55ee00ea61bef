"""Assembles, checks and tries the package before a person is asked to approve it."""

import asyncio

from weft import Context, tool
from weft.app.scenarios import run_generated_scenarios
from weft.app.simulation import simulate
from weft.generator.compile.compiler import compile_drafts
from weft.generator.forms.skeleton import open_places
from weft.generator.judge.offer import make_offer
from weft.generator.outputs import joined_output
from weft.generator.steps import MAKERS, REPAIRS, STEP_OF
from weft.spec.plan import ActionPlan


@tool(timeout=600)
async def offer(context_variables: Context) -> None:
    """Offer the package if the checks find nothing; else let it be repaired, at most three times.

    The package is stored before the request is opened, so that the person can look at it.
    """
    plan = ActionPlan.model_validate(context_variables["action_plan"])
    answers = context_variables.get_dict("finding_answers")
    made = await asyncio.to_thread(
        make_offer,
        plan,
        _outputs(plan, context_variables),
        answers,
        simulate,
        run_generated_scenarios,
    )
    data = made.data()
    context_variables.set("left_out", data["left_out"])
    findings = {
        "errors": list(made.findings),
        "questions": made.unanswered,
        "left_out": list(map(str, made.left_out)),
    }
    round_ = context_variables.get_int("repair_round")
    is_final = round_ >= REPAIRS or context_variables.get_str("offer_state") == "final"
    if any(findings.values()) and not is_final:
        context_variables.set("repair_round", round_ + 1)
        context_variables.set("package_findings", findings)
        context_variables.set("offer_state", "repair")
        return
    skeleton = [*open_places(plan), context_variables.get_str("compiled_because")]
    summary = {"skeleton": [reason for reason in skeleton if reason], **made.summary()}
    context_variables.set("bundle", {**data, "summary": summary})
    context_variables.set("offer_state", "ready" if made.promotable else "refused")


def _outputs(plan: ActionPlan, context_variables: Context) -> dict[str, dict[str, object]]:
    """Return the parts of the package by agent.

    If a model gave no usable reply for a part, all of them are compiled from the plan: parts of a
    model and of the compiler do not fit together.
    """
    if context_variables.get_str("compiled_because") and not context_variables.get_int(
        "repair_round"
    ):
        drafts = compile_drafts(plan)
        for agent in MAKERS:
            context_variables.set(STEP_OF[agent].writes, joined_output(agent, drafts))
    made = {agent: context_variables.get_dict(STEP_OF[agent].writes) for agent in MAKERS}
    return {agent: output for agent, output in made.items() if output}
