"""Staffing: who does the work of each module, with which tools, and how they work with people."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.generator.designer.blueprint import modules_of, status_tool, workflow_variables
from weft.generator.designer.brief import Brief
from weft.generator.designer.interview import SOMEBODY
from weft.generator.designer.several import briefs_of
from weft.generator.designer.team import (
    ESCALATION,
    FEEDBACK,
    LEAST_AGENTS,
    ORGANIC,
    TRIAGE,
    agent_types,
    closing_agent,
    core_team,
    kind_of,
    medium_of,
    words_of,
)
from weft.generator.designer.text import plain_line, sentence
from weft.generator.designer.toolbox import Toolbox
from weft.generator.designer.words import task_of
from weft.generator.names import pascal_case, snake_case
from weft.spec.agents import REPLY_LIMITS, AgentType, HumanInteraction
from weft.spec.plan import (
    ModuleAgents,
    PatternSelection,
    PlannedAgent,
    PlannedHook,
    PlannedLifecycle,
    PlannedTool,
    PlannedVariable,
    StrategyModule,
    TechnicalBlueprint,
    WorkflowStrategy,
)

#: What those decide who decide: the words of a tool, by the number of the pattern.
_DECIDES: Final = {
    1: "route the {thing}",
    2: "settle or escalate as {agent}",
    3: "judge the {thing}",
    4: "assign work as {agent}",
    5: "choose who follows {agent}",
    7: "choose the best answer about the {thing}",
    8: "choose who is asked about the {thing}",
    9: "plan the tasks of the {thing}",
}
_REPORTS: Final = "report the tasks of {agent}"
_OBJECTIVES: Final[dict[AgentType, str]] = {
    "router": "Understand each {thing} and decide who takes it on",
    "evaluator": "Judge what was worked out for the {thing} and say what is missing",
    "orchestrator": "Lead the work on the {thing}, give out its parts and put the results together",
    "intake": "Find out what the {thing} is about and take the first steps",
}
#: How the tools are called that read or set a variable, by its kind.
_ACCESS: Final = {
    "config": ("check {}", "Check the {}."),
    "data_reference": ("look up {}", "Look up the {}."),
    "data_entity": ("update {}", "Read the {} and keep it up to date."),
    "computed": ("read {}", "Read the {} that was worked out."),
}
_PRIVATE: Final = (
    "personal data|confidential*|privacy|gdpr|sensitive|personenbezogen*|vertraulich*|datenschutz*"
    "|confidencial*|datos personales|donnees personnelles|個人情報"
)
_AUDITED: Final = "audit*|log every|logged|record every|protokollier*|registro de cada|journalis*"
_HEARS: Final = "my feedback|feedback from|feedback of|user feedback|their feedback"


def design_agents(
    brief: Brief,
    selection: PatternSelection,
    strategy: WorkflowStrategy,
    blueprint: TechnicalBlueprint,
) -> tuple[ModuleAgents, ...]:
    """Return the agents that the strategy needs, in the order their pattern wires them.

    Who decides has a tool for it first. Every variable that is no state is read or set by a tool
    of somebody who works; every UI component is shown by a tool of its agent.
    """
    staffed: dict[int, tuple[PlannedAgent, ...]] = {}
    tools = Toolbox(blueprint.ui_components)
    taken = [name for module in strategy.modules for name in module.agents_needed]
    parts = briefs_of(brief, selection)
    shares = _shares(parts, selection, strategy, blueprint)
    for workflow, part, own in zip(selection.workflows, parts, shares, strict=True):
        modules = modules_of(workflow, selection, strategy)
        main = next((it for it in modules if kind_of(it) == "core"), None)
        for place, module in enumerate(modules):
            posts = _posts(part, module, taken)
            _equip(posts, part, module, tools)
            if module is main:
                _give_access(posts, part, tools, own)
            staffed[module.module_index] = tuple(
                _agent(it, part, module, is_first=place == 0 and it is posts[0]) for it in posts
            )
    return tuple(
        ModuleAgents(module_index=it.module_index, agents=staffed.get(it.module_index, ()))
        for it in strategy.modules
    )


def _shares(
    parts: Sequence[Brief],
    selection: PatternSelection,
    strategy: WorkflowStrategy,
    blueprint: TechnicalBlueprint,
) -> list[list[PlannedVariable]]:
    """Return the variables of each workflow; the first has those that none has called for."""
    called_for = [
        {it.name for it in workflow_variables(part, modules_of(workflow, selection, strategy))}
        for workflow, part in zip(selection.workflows, parts, strict=True)
    ]
    known = blueprint.global_context_variables
    shares = [[it for it in known if it.name in names] for names in called_for]
    shares[0] += [it for it in known if not any(it.name in names for names in called_for)]
    return shares


@dataclass(slots=True)
class _Post:
    """An agent that is being equipped."""

    name: str
    type: AgentType
    tools: list[PlannedTool] = field(default_factory=list[PlannedTool])
    is_last: bool = False

    @property
    def works(self) -> bool:
        """Whether it does a part of the work itself."""
        return self.type in ("worker", "generator", "intake")


def _posts(brief: Brief, module: StrategyModule, taken: list[str]) -> list[_Post]:
    names = [*module.agents_needed]
    lacking = max(0, LEAST_AGENTS[module.pattern_id] - len(names))
    if lacking:  # somebody else wrote the strategy
        names += core_team(brief, module.pattern_id, taken)[:lacking]
        taken += names
    types = list(agent_types(module.pattern_id, names))
    kind = kind_of(module)
    if kind in ("intake", "approval"):
        types[0] = "intake" if kind == "intake" else "evaluator"
    posts = [_Post(name, type_) for name, type_ in zip(names, types, strict=True)]
    posts[-1].is_last = True
    return posts


def _equip(posts: list[_Post], brief: Brief, module: StrategyModule, tools: Toolbox) -> None:
    """Give everybody the tools of their place in the pattern, and of their trade."""
    kind, thing = kind_of(module), brief.domain.thing
    for post in posts:
        agent = words_of(post.name)
        if kind == "core" and (decides := _decision(post, module.pattern_id)):
            decision = decides.format(thing=thing, agent=agent)
            post.tools.append(tools.make(decision, post.name, f"Record a decision: {decision}"))
        post.tools += tools.shown_by(post.name, module.module_name)
        if kind == "core" and post.works:
            post.tools.append(tools.make(_task(post, brief), post.name))
        if kind == "delivery":
            post.tools += [
                tools.make(f"send {thing} by {it}", post.name, integration=it)
                for it in brief.messengers
            ]


def _task(post: _Post, brief: Brief) -> str:
    """Return what an agent does; another name is no other task."""
    return task_of(words_of(brief.name_before(post.name)).strip(), brief.domain)


def _decision(post: _Post, pattern_id: int) -> str | None:
    """Return what an agent decides in a pattern, if it does."""
    leads = post.type in ("router", "evaluator", "orchestrator")
    climbs = pattern_id == ESCALATION and not post.is_last
    if pattern_id == TRIAGE and not leads and not post.is_last:
        return _REPORTS
    return _DECIDES.get(pattern_id) if leads or climbs or pattern_id == ORGANIC else None


def _give_access(
    posts: list[_Post], brief: Brief, tools: Toolbox, variables: Sequence[PlannedVariable]
) -> None:
    """Spread what must be read, kept or asked of services over those who work."""
    thing = brief.domain.thing
    workers = [it for it in posts if it.type in ("worker", "intake")] or posts
    turn = 0
    for variable in variables:
        words = variable.name.replace("_", " ")
        if variable.type == "external":
            service = _service(variable, brief)
            made = tools.make(f"ask for {words}", workers[0].name, integration=service)
            workers[0].tools.append(made)
        elif variable.type in _ACCESS:
            # Those who answer side by side must not set the same data: their judge does.
            keeps = variable.type == "data_entity" and posts[-1].type == "evaluator"
            post = posts[-1] if keeps else workers[turn % len(workers)]
            turn += 1
            name, purpose = (it.format(words) for it in _ACCESS[variable.type])
            post.tools.append(tools.make(name, post.name, purpose))
        elif variable.trigger_hint and status_tool(thing) in variable.trigger_hint:
            name = closing_agent([it.name for it in posts])
            last = next(it for it in posts if it.name == name)
            last.tools.append(tools.make(status_tool(thing), last.name, f"Set the {words}."))


def _service(variable: PlannedVariable, brief: Brief) -> str:
    named = (it for it in brief.services if variable.name.startswith(it.lower()))
    return next(named, pascal_case(variable.name, "Service"))


def _agent(post: _Post, brief: Brief, module: StrategyModule, *, is_first: bool) -> PlannedAgent:
    interaction = _interaction(post, brief, module, is_first=is_first)
    closes = post.is_last and kind_of(module) == "core"
    return PlannedAgent(
        agent_name=post.name,
        agent_type=post.type,
        objective=_objective(post, brief, module),
        human_interaction=interaction,
        generation_mode=medium_of(post.name) if post.type == "generator" else None,
        max_consecutive_auto_reply=REPLY_LIMITS[interaction],
        agent_tools=tuple(post.tools),
        lifecycle_tools=_lifecycle(brief) if closes else (),
        system_hooks=_hooks(brief) if closes else (),
    )


def _interaction(
    post: _Post, brief: Brief, module: StrategyModule, *, is_first: bool
) -> HumanInteraction:
    asks = any(it.interaction_mode != "none" for it in post.tools)
    talks = brief.trigger == "chat"
    if asks and kind_of(module) == "approval":
        return "approval"
    if talks and (asks or (is_first and post.type in ("router", "intake", "orchestrator"))):
        return "context"
    if post.type == "generator":
        return "single"
    is_judge = module.pattern_id == FEEDBACK and post.type == "evaluator"
    return "feedback" if talks and is_judge and brief.wording.has(_HEARS) else "none"


def _objective(post: _Post, brief: Brief, module: StrategyModule) -> str:
    thing, kind = brief.domain.thing, kind_of(module)
    if kind == "delivery":
        text = f"Send what came of the {thing} to the people concerned"
    elif kind == "approval":
        text = f"Ask the {brief.approver or SOMEBODY} to approve what came of the {thing}"
    elif post.works and post.type != "intake":
        task = _task(post, brief)
        text = task if task.endswith(thing) else f"{task} for each {thing}"
        if module.pattern_id == TRIAGE and post.is_last:
            text = f"Sum up what was done for the {thing}"
    else:
        text = _OBJECTIVES[post.type].format(thing=thing)
    if brief.risks and post.is_last and kind == "core":
        text = f"{text}. Mind what may go wrong: {brief.risks}"
    return sentence(plain_line(text, 400))


def _lifecycle(brief: Brief) -> tuple[PlannedLifecycle, ...]:
    if not brief.wording.has(_AUDITED):
        return ()
    thing = brief.domain.thing
    name = snake_case(f"record {thing} step", "record_step")
    purpose = f"Record what was done for the {thing}."
    return (PlannedLifecycle(name=name, purpose=purpose, trigger="after_agent"),)


def _hooks(brief: Brief) -> tuple[PlannedHook, ...]:
    if not brief.wording.has(_PRIVATE):
        return ()
    purpose = "Keep personal and confidential data out of what is sent."
    return (PlannedHook(name="process_message_before_send", purpose=purpose),)
