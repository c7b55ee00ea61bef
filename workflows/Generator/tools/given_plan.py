"""Takes up a plan that the run begins with, in place of the interview."""

import re

from weft import Context
from weft.generator.plan import make_plan
from weft.generator.rules import plan_faults
from weft.spec.plan import ActionPlan


def given_plan(context_variables: Context) -> None:
    """Check the plan and put its parts in their places; without one nothing happens.

    The diagram is drawn again, because the one in the file may belong to an older plan.
    """
    given = context_variables.get_dict("action_plan")
    if not given:
        return
    read = ActionPlan.model_validate(given)
    faults = plan_faults(read)
    if faults:
        raise ValueError("the plan is not complete: " + "; ".join(map(str, faults[:5])))
    plan = make_plan(
        version=read.version,
        selection=read.selection,
        strategy=read.strategy,
        blueprint=read.blueprint,
        modules=read.modules,
    )
    record = plan.model_dump(mode="json", by_alias=True)
    context_variables.set("action_plan", record)
    context_variables.set("pattern_selection", record["PatternSelection"])
    context_variables.set("workflow_strategy", record["WorkflowStrategy"])
    context_variables.set("technical_blueprint", record["TechnicalBlueprint"])
    context_variables.set("module_agents", record["ModuleAgents"])
    context_variables.set("interview", _interview(plan))
    context_variables["plan_given"] = True


def _interview(plan: ActionPlan) -> dict[str, str]:
    """Say what the plan is for, as an interview would: rounds that follow begin with it."""
    agents = [agent for module in plan.modules for agent in module.agents]
    working = [agent.agent_name for agent in agents if agent.human_interaction != "approval"]
    asked = [agent.agent_name for agent in agents if agent.human_interaction == "approval"]
    return {
        "brief": plan.strategy.workflow_description,
        "goal": plan.selection.workflows[0].description,
        "started_by": plan.strategy.trigger.replace("_", " "),
        "specialists": ", ".join(map(_words, working)),
        "approver": _words(asked[0]).removesuffix(" approval") if asked else "nobody",
    }


def _words(name: str) -> str:
    """Return a name in PascalCase as words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()
