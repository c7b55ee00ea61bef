"""The compiler: a plan becomes one draft for each of its workflows."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from weft.generator.compile.agents import make_agent, models
from weft.generator.compile.orchestrator import (
    form_model,
    handoffs,
    make_orchestrator,
    notes_on_start,
)
from weft.generator.compile.tools import tools_of
from weft.generator.compile.values import Values
from weft.generator.compile.variables import exposure, missing_notes, variables
from weft.generator.compile.wiring import wire
from weft.generator.draft import Draft
from weft.generator.forms.scenarios import scenario_files
from weft.generator.plans.split import workflow_plans
from weft.generator.plans.workflow_plan import WorkflowPlan
from weft.spec.plan import ActionPlan
from weft.spec.variables import ExternalSource, Variable
from weft.spec.workflow import WorkflowSpec


def compile_drafts(plan: ActionPlan) -> tuple[Draft, ...]:
    """Return every workflow of a plan, one draft each."""
    return _drafts(plan.model_dump_json(by_alias=True))


@lru_cache(maxsize=8)
def _drafts(plan_json: str) -> tuple[Draft, ...]:
    plan = ActionPlan.model_validate_json(plan_json)
    return tuple(compile_draft(each) for each in workflow_plans(plan))


def compile_draft(workflow: WorkflowPlan) -> Draft:
    """Return one workflow with its code and its scenarios."""
    wiring = wire(workflow)
    values = Values(workflow, wiring)
    found = variables(values)
    made = [tool for turn in wiring.turns for tool in tools_of(values, turn)]
    outputs, registry = models(values, wiring.turns)
    spec = WorkflowSpec(
        orchestrator=make_orchestrator(values),
        agents=tuple(make_agent(values, turn) for turn in wiring.turns),
        variables=found,
        exposure=exposure(values, found),
        handoffs=tuple(handoffs(wiring)),
        tools=tuple(each.tool for each in made),
        models=(*form_model(values), *outputs),
        registry=registry,
    )
    tests, untested = scenario_files(workflow, spec)
    notes = [*wiring.notes, *missing_notes(values, found), *notes_on_start(values)]
    notes += [*_notes(workflow, found), *untested]
    code = {f"tools/{each.tool.file}": each.text for each in reversed(made)}
    return Draft(spec, dict(sorted(code.items())), tests=tests, notes=tuple(notes))


def _notes(workflow: WorkflowPlan, found: Mapping[str, Variable]) -> Iterator[str]:
    """Yield what is not written, and what a service may need."""
    around = [workflow.blueprint.before_chat_lifecycle, workflow.blueprint.after_chat_lifecycle]
    for agent in workflow.agents:
        around += agent.lifecycle_tools
        for hook in agent.system_hooks:
            yield f"the hook {hook.name} of {agent.agent_name} is not written: {hook.purpose}"
        for tool in agent.agent_tools:
            if tool.interaction_mode == "none":
                yield f"the tool {tool.name} of {agent.agent_name} refuses: it is not written yet"
    for each in filter(None, around):
        yield f"{each.name} at {each.trigger} is not written: {each.purpose}"
    for name, variable in found.items():
        source = variable.source
        if isinstance(source, ExternalSource):
            asked = " and without an approval" if source.approval == "never" else ""
            yield f"{name} is called without a key{asked}: add auth if the service needs one"
