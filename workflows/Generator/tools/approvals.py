"""Asking a person for the approval of a plan, which names its hash."""

from weft import Context, use_ui_tool
from weft.generator.bundle import MAKERS, plain_drafts, plain_part
from weft.generator.plan import plan_hash, plan_lines
from weft.spec.plan import ActionPlan

#: What is shown of a message.
_LONGEST = 1_000


def shown_plan(plan: ActionPlan, message: str = "") -> dict[str, object]:
    """Return what a person sees of a plan."""
    return {
        "message": message[:_LONGEST],
        "plan": "\n".join(plan_lines(plan)),
        "diagram": plan.diagram.mermaid_diagram,
        "legend": list(plan.diagram.legend),
        "plan_hash": plan_hash(plan),
    }


def add_round(plan: ActionPlan, context_variables: Context) -> None:
    """Keep a plan that is offered, so that rounds can be compared."""
    hash_ = plan_hash(plan)
    rounds = context_variables.get_list("plan_rounds")
    if not rounds or rounds[-1]["hash"] != hash_:
        record = plan.model_dump(mode="json", by_alias=True)
        offered = {"version": plan.version, "hash": hash_, "plan": record}
        context_variables.set("plan_rounds", [*rounds, offered])
    context_variables.set("action_plan_hash", hash_)


async def ask_approval(
    tool: str, plan: ActionPlan, message: str, context_variables: Context
) -> dict[str, object]:
    """Ask until the answer is about this plan, and keep what shall be different."""
    shown = shown_plan(plan, message)
    while True:
        answer = dict(await use_ui_tool(tool, shown))
        fault = _fault(answer, shown)
        if not fault:
            break
        shown["message"] = f"{fault} {message}"
    # Also what an earlier answer of this question has set.
    context_variables.set("action_plan_acceptance", answer["plan_acceptance"])
    if answer["plan_acceptance"] == "accepted":
        context_variables.set("plain_part", plain_part(MAKERS[0], plain_drafts(plan)))
    else:
        about = answer.get("about", "strategy")
        context_variables.set("adjustments_about", about)
        comment = {"round": plan.version, "about": about, "text": answer["comments"]}
        known = context_variables.get_list("plan_comments")
        context_variables.set("plan_comments", [*known, comment])
    return {"plan_acceptance": answer["plan_acceptance"], "plan_hash": answer["plan_hash"]}


def _fault(answer: dict[str, object], shown: dict[str, object]) -> str:
    """Say why an answer does not count; nothing if it does."""
    if answer["plan_hash"] != shown["plan_hash"]:
        return f"{answer['plan_hash']} is not the hash of this plan."
    changes = answer["plan_acceptance"] == "adjustments_requested"
    return "Say what shall be different." if changes and not answer.get("comments") else ""
