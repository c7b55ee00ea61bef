"""The strategy: what the workflow does, in which modules, and who takes part in each."""

from collections.abc import Sequence
from typing import Final

from weft.generator.designer.brief import Brief
from weft.generator.designer.interview import SOMEBODY
from weft.generator.designer.several import briefs_of
from weft.generator.designer.team import (
    ESCALATION,
    PIPELINE,
    ROUTING,
    TRIAGE,
    agent_names,
    core_team,
)
from weft.generator.designer.text import article, plain_line, sentence
from weft.spec.patterns import PATTERN_BY_ID
from weft.spec.plan import (
    PatternSelection,
    PlannedWorkflow,
    StrategyModule,
    Trigger,
    WorkflowStrategy,
)

#: What a main module is called, and what happens in it, by the number of its pattern.
_CORES: Final = {
    1: ("{} Routing", "a router hands each {} to the specialist who knows about it"),
    2: ("{} Escalation", "each {} is worked on by the first line and moves up where it is harder"),
    3: ("{} Drafting and Review", "the {} is drafted and revised until the reviewer accepts it"),
    4: ("{} Program", "a director gives the {} to leads, and they to their specialists"),
    5: ("{} Discussion", "peers discuss the {} and hand over by what was said"),
    6: ("{} Processing", "the {} goes from one specialist to the next"),
    7: ("{} Assessment", "several specialists work on the same {} and a judge decides"),
    8: ("{} Consultation", "a coordinator asks specialists about the {} and combines the answers"),
    9: ("{} Triage", "the {} becomes tasks that are worked off and summed up"),
}
_STARTS: Final[dict[Trigger, str]] = {
    "chat": "When a person opens a chat",
    "form_submit": "When a person submits the form",
    "schedule": "When the scheduled time has come",
    "database_condition": "When data fits the condition",
    "webhook": "When another system posts an event",
}
#: Words that say a person is asked before the work begins.
_ASKS: Final = (
    "ask for|asks for|ask me|asks me|ask the user|asks the user|ask the customer|ask them|asks them"
    "|collect the details|collects the details|gather the details|gathers|needs to know"
    "|clarif*|fragt nach|pregunta*|demande*|質問"
)
#: As much of a brief stands in the plan, and so in the prompt of every agent.
_LONGEST_BRIEF: Final = 1_200
#: These begin with somebody who talks to the person anyway.
_ASKING_PATTERNS: Final = frozenset({ROUTING, ESCALATION, TRIAGE})


def design_strategy(brief: Brief, selection: PatternSelection) -> WorkflowStrategy:
    """Return the strategy of the selected workflows.

    The main module has the chosen pattern. Before it comes an intake where a chat begins by asking
    a person, after it an approval where somebody approves, then a delivery where a service carries
    messages. A person is in the loop of a chat, as section 6.3 of the action plan says.
    """
    modules: list[StrategyModule] = []
    parts = briefs_of(brief, selection)
    for workflow, part in zip(selection.workflows, parts, strict=True):
        modules += _modules(part, workflow, modules)
    if not selection.is_multi_workflow:
        modules = [it.model_copy(update={"workflow": None}) for it in modules]
    chosen = [PATTERN_BY_ID[it.pattern_id].name for it in selection.workflows]
    used = [PATTERN_BY_ID[it.pattern_id].name for it in modules]
    return WorkflowStrategy.model_validate(
        {
            "workflow_name": plain_line(selection.pack_name, 60) or "Workflow",
            "workflow_description": _description(brief, selection, parts),
            "human_in_loop": brief.trigger == "chat",
            "pattern": tuple(dict.fromkeys((*chosen, *used))),
            "trigger": brief.trigger,
            "initiated_by": brief.initiated_by,
            "modules": tuple(modules),
        }
    )


def _description(brief: Brief, selection: PatternSelection, parts: Sequence[Brief]) -> str:
    done = [
        _CORES[workflow.pattern_id][1].format(part.domain.thing)
        for workflow, part in zip(selection.workflows, parts, strict=True)
    ]
    start, value = _STARTS[brief.trigger], parts[-1].domain.value
    if brief.trigger == "schedule" and brief.schedule:
        start = f"{brief.schedule[:1].upper()}{brief.schedule[1:]}"
    work = "; then ".join(done)
    # Without underscores: a word that looks like a variable would be taken for one in a prompt.
    told = plain_line(brief.text.replace("_", " "), _LONGEST_BRIEF)
    said = sentence(told or plain_line(brief.goal))
    return f"{start}, the workflow starts and {work}, resulting in {value}. The brief: {said}"


def _modules(
    brief: Brief, workflow: PlannedWorkflow, before: list[StrategyModule]
) -> list[StrategyModule]:
    taken = [name for module in before for name in module.agents_needed]
    thing = brief.domain.thing
    title = thing.title()
    core_title, core_work = _CORES[workflow.pattern_id]
    planned: list[tuple[str, str, int, tuple[str, ...]]] = []

    def add(purpose: str, work: str, pattern_id: int, people: tuple[str, ...]) -> None:
        planned.append((purpose, sentence(work), pattern_id, people))
        taken.extend(people)

    if _begins_with_questions(brief, workflow):
        asker = agent_names(brief, [f"{thing} intake"], taken)
        add(f"{title} Intake", f"a person is asked for what the {thing} needs", PIPELINE, asker)
    add(
        core_title.format(title),
        core_work.format(thing),
        workflow.pattern_id,
        core_team(brief, workflow.pattern_id, taken),
    )
    if brief.approver:
        role = thing if brief.approver == SOMEBODY else brief.approver
        asker = agent_names(brief, [f"{role} approval"], taken)
        work = f"{article(brief.approver)} approves the result or says what is missing"
        add(f"{title} Approval", work, PIPELINE, asker)
    if brief.messengers:
        sender = agent_names(brief, [f"{thing} messenger"], taken)
        work = f"the result is sent by {' and '.join(brief.messengers)}"
        add(f"{title} Delivery", work, PIPELINE, sender)
    return [
        StrategyModule.model_validate(
            {
                "module_name": f"Module {index + 1}: {purpose}",
                "module_index": index,
                "module_description": work,
                "pattern_id": pattern_id,
                "pattern_name": PATTERN_BY_ID[pattern_id].title,
                "agents_needed": people,
                "workflow": workflow.name,
            }
        )
        for index, (purpose, work, pattern_id, people) in enumerate(planned, len(before))
    ]


def _begins_with_questions(brief: Brief, workflow: PlannedWorkflow) -> bool:
    return (
        brief.trigger == "chat"
        and workflow.pattern_id not in _ASKING_PATTERNS
        and brief.wording.has(_ASKS)
    )
