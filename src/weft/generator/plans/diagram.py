"""The diagram of an action plan, drawn from what the plan says."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from weft.diagrams.ascii import ascii_sequence
from weft.diagrams.mermaid import mermaid_sequence
from weft.diagrams.nodes import NAME_LENGTH, USER_KEY, WORKFLOW_LENGTH, agent_key, short_label
from weft.diagrams.sequence import Block, Branch, Message, Note, Participant, Step
from weft.diagrams.sequence import Sequence as Story
from weft.generator.plans.rules import module_of
from weft.ids import USER
from weft.spec.patterns import PATTERN_BY_ID
from weft.spec.plan import (
    ActionPlan,
    MermaidSequenceDiagram,
    ModuleAgents,
    PatternSelection,
    PlannedAgent,
    PlannedComponent,
    PlannedTool,
    StrategyModule,
    TechnicalBlueprint,
    Trigger,
    WorkflowStrategy,
)

#: How a run starts without a chat.
_BEGINNINGS: Final[dict[Trigger, str]] = {
    "form_submit": "a form is submitted",
    "schedule": "the time has come",
    "database_condition": "data has changed",
    "webhook": "a webhook is called",
}

#: The longest text that is still drawn in full; Mermaid itself asks for less on most pages.
_LONGEST: Final = 50_000

Agents: TypeAlias = Sequence[PlannedAgent]


def plan_diagram(
    strategy: WorkflowStrategy,
    blueprint: TechnicalBlueprint,
    modules: Sequence[ModuleAgents],
    selection: PatternSelection,
) -> MermaidSequenceDiagram:
    """Draw a plan as a Mermaid sequence diagram."""
    story = plan_story(strategy, blueprint, modules, selection)
    drawn = mermaid_sequence(story)
    if len(drawn) > _LONGEST:
        drawn = mermaid_sequence(plan_story(strategy, blueprint, modules, selection, brief=True))
    return MermaidSequenceDiagram(
        workflow_name=strategy.workflow_name,
        mermaid_diagram=drawn,
        legend=story.legend,
    )


def plan_drawing(plan: ActionPlan) -> str:
    """Draw a plan for the terminal."""
    return ascii_sequence(plan_story(plan.strategy, plan.blueprint, plan.modules, plan.selection))


def plan_story(
    strategy: WorkflowStrategy,
    blueprint: TechnicalBlueprint,
    modules: Sequence[ModuleAgents],
    selection: PatternSelection,
    *,
    brief: bool = False,
) -> Story:
    """Tell who works with whom: workflow by workflow, module by module, by the patterns.

    In brief, it is not told what each does when it has its turn.
    """
    telling = _Telling(strategy, blueprint, brief)
    staffed = [
        _Module(module, module_of(modules, module.module_index)) for module in strategy.modules
    ]
    asked = dict.fromkeys(
        person
        for one in staffed
        for agent in one.agents
        for tool in agent.agent_tools
        if (person := telling.person(agent, tool)) != USER_KEY
    )
    # By name: a plan in the making may name one twice.
    roles = {agent.agent_name: agent.agent_type for one in staffed for agent in one.agents}
    steps: list[Step] = []
    for workflow in selection.workflows:
        first = selection.workflows[0].name
        own = [one for one in staffed if (one.planned.workflow or first) == workflow.name]
        if selection.is_multi_workflow:
            steps.append(Note(_at(own), short_label(f"Workflow {workflow.name} ({workflow.role})")))
        steps += telling.workflow(own)
    return Story(
        title=short_label(strategy.workflow_name, NAME_LENGTH),
        description=short_label(strategy.workflow_description, WORKFLOW_LENGTH),
        participants=(
            Participant(USER_KEY, "user", "User"),
            *(Participant(name, "user", short_label(name, NAME_LENGTH)) for name in asked),
            *(
                Participant(agent_key(name), "agent", short_label(name, NAME_LENGTH), role)
                for name, role in roles.items()
            ),
        ),
        steps=tuple(steps),
        legend=tuple(short_label(_title(module)) for module in strategy.modules),
    )


@dataclass(frozen=True, slots=True)
class _Module:
    """A module and its agents."""

    planned: StrategyModule
    agents: Agents


def _at(modules: list[_Module]) -> str:
    """Return where to write about modules: at the first who works there."""
    return next((_key(agent) for one in modules for agent in one.agents), USER_KEY)


def _title(module: StrategyModule) -> str:
    purpose = module.module_name.partition(": ")[2]
    return f"M{module.module_index + 1}: {purpose}"


def _key(agent: PlannedAgent) -> str:
    return agent_key(agent.agent_name)


def _says(source: PlannedAgent, target: PlannedAgent, text: str) -> Message:
    return Message(_key(source), _key(target), text)


@dataclass(frozen=True, slots=True)
class _Telling:
    """What is looked up while a plan is told."""

    strategy: WorkflowStrategy
    blueprint: TechnicalBlueprint
    brief: bool

    def workflow(self, modules: list[_Module]) -> Iterator[Step]:
        """Tell the modules of one workflow, from its start to its end."""
        at = _at(modules)
        if self.blueprint.before_chat_lifecycle:
            yield Note(at, short_label(f"before_chat: {self.blueprint.before_chat_lifecycle.name}"))
        if at != USER_KEY:
            yield self._beginning(at)
        if self.strategy.watch:
            watch = self.strategy.watch
            said = f"whenever the user says {', '.join(watch.words)}: to {watch.to}"
            yield Note(at, short_label(said))
        last, passing = None, ""
        for one in modules:
            yield Note(
                _at([one]), short_label(f"{_title(one.planned)} ({one.planned.pattern_name})")
            )
            if last and one.agents:
                yield _says(last, one.agents[0], passing)
            if one.agents:
                yield from self.pattern(one.planned.pattern_id, one.agents)
                last, passing = _leaving(one)
            if one.agents and one.planned.leads_to:
                last = None
                yield Block("alt", tuple(self._ways(one, modules)))
        if self.blueprint.after_chat_lifecycle:
            yield Note(at, short_label(f"after_chat: {self.blueprint.after_chat_lifecycle.name}"))
        yield Note(USER_KEY, "the run ends")

    def _ways(self, one: _Module, modules: list[_Module]) -> Iterator[Branch]:
        """Tell where a module leads, by what it has come to."""
        targets = {USER: USER_KEY}
        for other in modules:
            name = other.planned.module_name
            targets |= dict.fromkeys((name, name.partition(": ")[2]), _at([other]))
            targets |= {agent.agent_name: _key(agent) for agent in other.agents}
        for way in one.planned.leads_to:
            because = f": {way.reason}" if way.reason else ""
            source = next(
                (_key(agent) for agent in one.agents if way.when in agent.outcomes),
                _key(_leaving(one)[0]),
            )
            if way.to in targets:
                words = "waits for an answer" if way.to == USER else "hands over"
                step: Step = Message(source, targets[way.to], short_label(f"{words}{because}"))
            else:
                step = Note(source, short_label(f"the run ends{because}"))
            yield Branch(short_label(way.when), (step,))

    def person(self, agent: PlannedAgent, tool: PlannedTool) -> str:
        """Return the participant who answers a tool: the role that the plan names, or the user."""
        if tool.interaction_mode == "none":
            return USER_KEY
        shown = self._component(agent.agent_name, tool.name)
        return (shown.approver if shown else None) or agent.approver or USER_KEY

    def _beginning(self, first: str) -> Step:
        trigger = self.strategy.trigger
        if trigger != "chat":
            return Note(first, _BEGINNINGS[trigger])
        if self.strategy.initiated_by == "user":
            return Message(USER_KEY, first, "opens a chat")
        return Message(first, USER_KEY, "begins a chat")

    def turn(self, agent: PlannedAgent) -> Iterator[Step]:
        """Tell what an agent does when it has its turn: its tools, and what it asks people."""
        if self.brief:
            return
        silent = [tool.name for tool in agent.agent_tools if tool.interaction_mode == "none"]
        if silent:
            yield Note(_key(agent), short_label(f"uses {', '.join(silent)}"))
        asking = [tool for tool in agent.agent_tools if tool.interaction_mode != "none"]
        for tool in asking:
            shown, person = self._component(agent.agent_name, tool.name), self.person(agent, tool)
            label = f"{shown.label}: {shown.component}" if shown else tool.name
            yield Message(_key(agent), person, short_label(f"{label} ({tool.interaction_mode})"))
            yield Message(person, _key(agent), short_label(f"answers {tool.name}"))
        talks = self.strategy.human_in_loop and agent.human_interaction in ("context", "feedback")
        if talks and not asking:
            yield Message(_key(agent), USER_KEY, f"asks for {agent.human_interaction}")
            yield Message(USER_KEY, _key(agent), "answers")

    def _component(self, agent: str, tool: str) -> PlannedComponent | None:
        shown = ((each.agent, each.tool, each) for each in self.blueprint.ui_components)
        return next((each for *names, each in shown if names == [agent, tool]), None)

    def pattern(self, pattern_id: int, agents: Agents) -> Iterator[Step]:
        """Tell how the agents of a module work together."""
        name = PATTERN_BY_ID[pattern_id].name if len(agents) > 1 else "Pipeline"
        if name == "Redundant":
            yield from self._parallel(agents)
            return
        lead, others = agents[0], agents[1:]
        steps = [*self.turn(lead)]
        match name:
            case "ContextAwareRouting":
                steps += self._choice(lead, others, "it is a matter for", "routes the request")
            case "Organic":
                steps += self._choice(lead, others, "the talk turns to", "hands off")
            case "Escalation":
                for lower, higher in pairwise(agents):
                    label = f"{lower.agent_name} cannot settle it"
                    steps += _block("opt", {label: self._pass(lower, higher, "escalates")})
            case "Hierarchical" | "Star":
                steps += self._hub(lead, others, delegates=name == "Hierarchical")
            case "TriageWithTasks":
                steps += _block("loop", {"for each task": self._tasks(lead, others)})
            case _:
                words = "passes on the draft" if name == "FeedbackLoop" else "hands on its result"
                for agent, after in pairwise(agents):
                    steps += self._pass(agent, after, words)
        if name == "FeedbackLoop":
            steps.append(_says(agents[-1], lead, "sends comments, or accepts"))
        loops = {
            "FeedbackLoop": f"until {agents[-1].agent_name} accepts",
            "Organic": "until nothing is left to say",
        }
        yield from _block("loop", {loops[name]: steps}) if name in loops else steps

    def _pass(self, source: PlannedAgent, target: PlannedAgent, words: str) -> Iterator[Step]:
        yield _says(source, target, words)
        yield from self.turn(target)

    def _exchange(
        self, asking: PlannedAgent, asked: PlannedAgent, words: str, reply: str
    ) -> Iterator[Step]:
        yield from self._pass(asking, asked, words)
        yield _says(asked, asking, reply)

    def _choice(self, lead: PlannedAgent, others: Agents, when: str, words: str) -> Iterator[Step]:
        branches = {f"{when} {one.agent_name}": self._pass(lead, one, words) for one in others}
        yield from _block("alt" if len(branches) > 1 else "opt", branches)

    def _hub(self, lead: PlannedAgent, others: Agents, *, delegates: bool) -> Iterator[Step]:
        words = ("delegates", "reports") if delegates else ("asks", "answers")
        above = lead
        for agent in others:
            # A lead below the first one leads those who are named after it.
            leads = delegates and agent.agent_type == "orchestrator"
            above = lead if leads else above
            yield from self._exchange(above, agent, *words)
            above = agent if leads else above

    def _tasks(self, lead: PlannedAgent, others: Agents) -> Iterator[Step]:
        branches = {
            f"it is a task for {one.agent_name}": self._exchange(
                lead, one, "gives the task", "is done"
            )
            for one in others
        }
        yield from _block("alt" if len(branches) > 1 else "opt", branches)

    def _parallel(self, agents: Agents) -> Iterator[Step]:
        judge = _judge(agents)
        branches = {
            one.agent_name: [*self.turn(one), _says(one, judge, "gives its answer")]
            for one in agents
            if one != judge
        }
        yield from (*_block("par", branches), *self.turn(judge))
        yield Note(_key(judge), "compares the answers and decides")


def _block(
    kind: Literal["alt", "opt", "par", "loop"], branches: Mapping[str, Iterable[Step]]
) -> Iterator[Step]:
    """Yield a block of labelled branches, if there are any."""
    if branches:
        made = (Branch(short_label(label), tuple(steps)) for label, steps in branches.items())
        yield Block(kind, tuple(made))


def _judge(agents: Agents) -> PlannedAgent:
    """Return who decides among answers: the last evaluator, or else the last agent."""
    evaluators = [agent for agent in agents if agent.agent_type == "evaluator"]
    return evaluators[-1] if evaluators else agents[-1]


def _leaving(module: _Module) -> tuple[PlannedAgent, str]:
    """Return who goes on when a module is done, and how."""
    agents, pattern = module.agents, PATTERN_BY_ID[module.planned.pattern_id].name
    if pattern in ("Hierarchical", "Star", "TriageWithTasks"):
        return agents[0], "hands over"
    if pattern in ("ContextAwareRouting", "Escalation", "Organic"):
        return agents[-1], "the agent at work hands over"
    return (_judge(agents) if pattern == "Redundant" else agents[-1]), "hands over"
