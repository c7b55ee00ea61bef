"""Asks a person for the approval of a plan, which names its hash."""

from weft import Context, use_ui_tool
from weft.app.generation import read_plan_data
from weft.errors import UsageError
from weft.generator.forms.skeleton import open_places
from weft.generator.plans.plan import plan_hash, plan_lines
from weft.spec.plan import ActionPlan

#: The longest message that is shown.
_LONGEST = 1_000


def shown_plan(plan: ActionPlan, message: str = "") -> dict[str, object]:
    """Return what a person sees of a plan; what is open comes first."""
    return {
        "message": message[:_LONGEST],
        "open": list(open_places(plan)),
        "plan": "\n".join(plan_lines(plan)),
        "diagram": plan.diagram.mermaid_diagram,
        "legend": list(plan.diagram.legend),
        "plan_hash": plan_hash(plan),
    }


def add_round(plan: ActionPlan, context_variables: Context) -> None:
    """Store a plan that is offered, so that rounds can be compared."""
    hash_ = plan_hash(plan)
    rounds = context_variables.get_list("plan_rounds")
    if not rounds or rounds[-1]["hash"] != hash_:
        record = plan.model_dump(mode="json", by_alias=True)
        offered = {"version": plan.version, "hash": hash_, "plan": record}
        context_variables.set("plan_rounds", [*rounds, offered])
    context_variables.set("action_plan_hash", hash_)


def set_plan(plan: ActionPlan, context_variables: Context) -> None:
    """Store a plan that a person gave: the whole and its parts, of which none is open."""
    record = plan.model_dump(mode="json", by_alias=True)
    context_variables.set("action_plan", record)
    context_variables.set("pattern_selection", record["PatternSelection"])
    context_variables.set("workflow_strategy", record["WorkflowStrategy"])
    context_variables.set("technical_blueprint", record["TechnicalBlueprint"])
    context_variables.set("module_agents", record["ModuleAgents"])
    context_variables.set("open_parts", {})


async def ask_approval(
    tool: str, plan: ActionPlan, message: str, context_variables: Context
) -> dict[str, object]:
    """Ask until the answer is about this plan, and store what should change."""
    shown = shown_plan(plan, message)
    edited, fault = None, " "
    while fault:
        answer = dict(await use_ui_tool(tool, shown))
        edited, fault = _read_answer(answer, shown, plan)
        shown["message"] = f"{fault} {message}"
    acceptance = answer["plan_acceptance"]
    # Also what an earlier answer to this question has set.
    context_variables.set("action_plan_acceptance", acceptance)
    if edited is not None:
        set_plan(edited, context_variables)
        add_round(edited, context_variables)
    elif acceptance == "adjustments_requested":
        about = answer.get("about", "strategy")
        context_variables.set("adjustments_about", about)
        comment = {"round": plan.version, "about": about, "text": answer["comments"]}
        known = context_variables.get_list("plan_comments")
        context_variables.set("plan_comments", [*known, comment])
    return {"plan_acceptance": acceptance, "plan_hash": context_variables["action_plan_hash"]}


def _read_answer(
    answer: dict[str, object], shown: dict[str, object], plan: ActionPlan
) -> tuple[ActionPlan | None, str]:
    """Return the edited plan if there is one, and why the answer does not count."""
    if answer["plan_hash"] != shown["plan_hash"]:
        return None, f"{answer['plan_hash']} is not the hash of this plan."
    if answer["plan_acceptance"] == "adjustments_requested" and not answer.get("comments"):
        return None, "Say what should be different."
    if answer["plan_acceptance"] != "edited":
        return None, ""
    try:
        return read_plan_data(answer.get("plan"), version=plan.version + 1), ""
    except UsageError as error:
        return None, f"{error}."
