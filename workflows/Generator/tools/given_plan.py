"""Takes the plan that the run begins with, in place of the interview."""

import re

from weft import Context
from weft.app.generation import read_plan_data
from weft.spec.plan import ActionPlan

from .approvals import set_plan


def given_plan(context_variables: Context) -> None:
    """Check the plan and store its parts; without a plan, do nothing.

    The diagram is drawn again, because the one in the file may belong to an older plan.
    """
    given = context_variables.get_dict("action_plan")
    if not given:
        return
    plan = read_plan_data(given)
    set_plan(plan, context_variables)
    if not context_variables.get_dict("interview"):
        context_variables.set("interview", _interview(plan))
    context_variables["plan_given"] = True


def _interview(plan: ActionPlan) -> dict[str, str]:
    """Say what the plan is for, as an interview would: later rounds begin with it."""
    agents = [agent for module in plan.modules for agent in module.agents]
    approvers = [agent.approver for agent in agents if agent.approver]
    working = [agent.agent_name for agent in agents if not agent.approver]
    return {
        "brief": plan.strategy.workflow_description,
        "goal": plan.selection.workflows[0].description,
        "started_by": plan.strategy.trigger.replace("_", " "),
        "specialists": ", ".join(map(_words, working)),
        "approver": ", ".join(dict.fromkeys(approvers)) or "no one",
    }


def _words(name: str) -> str:
    """Return a name in PascalCase as words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()
