"""Wiring: what the turn of each agent can come to, and which agent follows."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeAlias

from weft.errors import ExpressionError
from weft.generator.data_rules import known_values
from weft.generator.names import pascal_case, snake_case, unique
from weft.generator.workflow_plan import PlannedModule, WorkflowPlan
from weft.ids import SNAKE_NAME, TERMINATE, USER
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import And, Compare, Condition, Name, Not, Or, Value, print_condition
from weft.spec.conditions import names as names_in
from weft.spec.form import ASK_USER, END
from weft.spec.orchestrator import ParallelGroup
from weft.spec.plan import PlannedAgent, PlannedComponent, PlannedTool

#: In defaults: what follows the module.
_EXIT: Final = ""
#: By agent: what it can come to, and what follows; "" is whatever it comes to.
_Ways: TypeAlias = dict[str, list[tuple[str, str]]]
_Table: TypeAlias = Callable[[Sequence[str]], _Ways]


def _chain(names: Sequence[str]) -> _Ways:
    return {name: [("", after)] for name, after in pairwise((*names, _EXIT))}


def _named(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(snake_case(name, "agent"), name) for name in names]


def _hub(names: Sequence[str]) -> _Ways:
    hub, *others = names
    return {hub: [*_named(others), ("done", _EXIT)], **{name: [("", hub)] for name in others}}


def _routing(names: Sequence[str]) -> _Ways:
    return {names[0]: _named(names[1:]), **{name: [("", _EXIT)] for name in names[1:]}}


def _escalation(names: Sequence[str]) -> _Ways:
    tiers = {tier: [("solved", _EXIT), ("escalate", above)] for tier, above in pairwise(names)}
    return {**tiers, names[-1]: [("", _EXIT)]}


def _feedback(names: Sequence[str]) -> _Ways:
    return {**_chain(names), names[-1]: [("accepted", _EXIT), ("revise", names[0])]}


def _organic(names: Sequence[str]) -> _Ways:
    return {
        name: [*_named([other for other in names if other != name]), ("done", _EXIT)]
        for name in names
    }


def _triage(names: Sequence[str]) -> _Ways:
    first, *workers, last = names
    turns = pairwise((*workers, workers[0]))
    works = {name: [("more", after), ("finished", last)] for name, after in turns}
    return {first: [("", workers[0])], **works, last: [("", _EXIT)]}


#: The ways of modules whose plan names none, by the pattern and the least number of agents.
_DEFAULTS: Final[Mapping[str, tuple[int, _Table]]] = {
    "ContextAwareRouting": (2, _routing),
    "Escalation": (2, _escalation),
    "FeedbackLoop": (2, _feedback),
    "Hierarchical": (2, _hub),
    "Organic": (2, _organic),
    "Star": (2, _hub),
    "TriageWithTasks": (3, _triage),
}
#: In a module of this pattern, all agents but the last work in parallel.
_REDUNDANT: Final = "Redundant"
_LEAST_GROUP: Final = 3
#: What a person decides if the plan does not say.
APPROVED: Final = "approved"
REJECTED: Final = "rejected"


@dataclass(frozen=True, slots=True)
class Way:
    """What follows the turn of an agent; the condition is None if it always follows."""

    when: str
    target: str
    condition: str | None
    reason: str = ""


@dataclass(frozen=True)
class Turn:
    """The turn of one agent: who decides what it comes to, and what follows."""

    agent: PlannedAgent
    module: PlannedModule
    #: What it can come to, without asking the user back.
    outcomes: tuple[str, ...]
    ways: tuple[Way, ...]
    #: The state variable that holds the outcome; none if nothing depends on it.
    variable: str | None
    #: Whether it may ask the user back, and wait for the answer.
    asks: bool
    #: The tool that is called with every structured reply.
    tool: str
    #: The same if a person decides by it; None if the agent decides.
    decided_by: PlannedTool | None
    #: The other tools that ask somebody.
    questions: tuple[PlannedTool, ...]
    components: tuple[PlannedComponent, ...]
    #: Whether it works in parallel with others.
    is_member: bool

    @property
    def name(self) -> str:
        """The name of the agent."""
        return self.agent.agent_name

    @property
    def values(self) -> tuple[str, ...]:
        """All values of its outcome."""
        return (*self.outcomes, *((ASK_USER,) if self.asks else ()))

    @property
    def asking(self) -> tuple[PlannedTool, ...]:
        """All tools that ask somebody."""
        return (*((self.decided_by,) if self.decided_by else ()), *self.questions)

    def component(self, tool: str) -> PlannedComponent | None:
        """Return what a tool shows, if the plan says."""
        return next((each for each in self.components if each.tool == tool), None)

    def asked_by(self, tool: str) -> str | None:
        """Return who answers a tool; None: the user of the run."""
        shown = self.component(tool)
        decides = self.decided_by is not None and self.decided_by.name == tool
        return (shown.approver if shown else None) or (self.agent.approver if decides else None)


@dataclass(frozen=True, slots=True)
class Wiring:
    """The turns of all agents, and where a run begins: at an agent or a group."""

    entry: str
    turns: tuple[Turn, ...]
    groups: tuple[ParallelGroup, ...]
    #: The agent that takes over when a watched word is said.
    watch: str | None
    notes: tuple[str, ...]


def wire(workflow: WorkflowPlan) -> Wiring:
    """Return how the agents of a workflow follow each other."""
    return _Wire(workflow).wiring()


def condition_names(wiring: Wiring) -> set[str]:
    """Return the variables that conditions test."""
    conditions = (way.condition for turn in wiring.turns for way in turn.ways)
    return {name for text in conditions if text for name in names_in(parse_condition(text))}


class _Wire:
    """Works the turns out, module by module."""

    def __init__(self, workflow: WorkflowPlan) -> None:
        self.workflow = workflow
        self.known = known_values(workflow.strategy, workflow.blueprint)
        self.groups: dict[str, ParallelGroup] = {}
        self.notes: list[str] = []
        self.taken = {agent.agent_name for agent in workflow.agents}
        self.entries = {module.index: self._entry(module) for module in workflow.modules}

    def wiring(self) -> Wiring:
        ways = {
            agent: found
            for module, after in pairwise((*self.workflow.modules, None))
            if module
            for agent, found in self._module(module, after).items()
        }
        members = {name for group in self.groups.values() for name in group.members}
        turns = [
            self._turn(agent, module, ways[agent.agent_name], members)
            for module in self.workflow.modules
            for agent in module.agents
        ]
        watch = self.workflow.strategy.watch
        return Wiring(
            entry=self.entries[self.workflow.modules[0].index],
            turns=tuple(turns),
            groups=tuple(self._followed(group, ways) for group in self.groups.values()),
            watch=self._target(watch.to) if watch else None,
            notes=tuple(self.notes),
        )

    def _entry(self, module: PlannedModule) -> str:
        """Return the agent with which a module begins, or the group that it begins with."""
        names = [agent.agent_name for agent in module.agents]
        if module.pattern.name == _REDUNDANT and len(names) >= _LEAST_GROUP:
            return self._group(
                f"{pascal_case(module.purpose, 'Module')}Group", names[:-1], names[-1]
            )
        return names[0]

    def _group(self, name: str, members: Sequence[str], following: str | None) -> str:
        name = unique(name, self.taken)
        self.taken.add(name)
        self.groups[name] = ParallelGroup(
            name=name, members=tuple(members), on_failure="continue", next=following
        )
        return name

    def _followed(self, group: ParallelGroup, ways: _Ways) -> ParallelGroup:
        """Return a group with what follows all its members."""
        if group.next:
            return group
        following = dict.fromkeys(to for name in group.members for _, to in ways[name])
        if len(following) > 1:
            self.notes.append(
                f"after {', '.join(group.members)} always {next(iter(following))} follows"
            )
        return group.model_copy(update={"next": next(iter(following))})

    def _target(self, name: str) -> str:
        """Return the agent, group or end that a way of the plan leads to."""
        for module in self.workflow.modules:
            if name in (module.name, module.purpose):
                return self.entries[module.index]
        return TERMINATE if name == END else name

    def _module(self, module: PlannedModule, after: PlannedModule | None) -> _Ways:
        """Return the ways of the agents of a module: those of the plan before the defaults."""
        following = self.entries[after.index] if after else TERMINATE
        names = [agent.agent_name for agent in module.agents]
        least, table = _DEFAULTS.get(module.pattern.name, (1, _chain))
        defaults = table(names) if len(names) >= least else _chain(names)
        leads: dict[str, list[str]] = {}
        for way in module.leads_to:
            leads.setdefault(way.when, []).append(self._target(way.to))
        leaving = [name for name in names if any(to == _EXIT for _, to in defaults[name])]
        own = {outcome for agent in module.agents for outcome in agent.outcomes}
        found: _Ways = {}
        for place, agent in enumerate(module.agents):
            name = agent.agent_name
            is_owner = name == (leaving or names)[-1]
            mine = {
                when: self._together(name, when, to)
                for when, to in leads.items()
                if when in agent.outcomes or (is_owner and when not in own)
            }
            back = names[place - 1] if place else self._before(module)
            ways = self._ways(agent, mine, defaults[name], back)
            found[name] = [(when, following if to == _EXIT else to) for when, to in ways]
        return found

    def _before(self, module: PlannedModule) -> str:
        earlier = [each for each in self.workflow.modules if each.index < module.index]
        return earlier[-1].agents[-1].agent_name if earlier else TERMINATE

    def _together(self, name: str, when: str, targets: Sequence[str]) -> str:
        """Return the one target of an outcome: several become a group."""
        if len(targets) == 1:
            return targets[0]
        return self._group(f"{name}{pascal_case(when, 'Next')}Group", targets, None)

    def _ways(
        self,
        agent: PlannedAgent,
        mine: Mapping[str, str],
        default: list[tuple[str, str]],
        back: str,
    ) -> list[tuple[str, str]]:
        by_name = dict(default)
        onward = by_name.get("") or next((to for _, to in default if to == _EXIT), default[-1][1])
        outcomes: Sequence[str] = agent.outcomes
        if not outcomes and not mine:
            if not is_person(agent):
                return default
            if len(default) > 1:
                outcomes = list(by_name)
            else:
                by_name = {APPROVED: onward, REJECTED: back}
                outcomes = list(by_name)
        rest = [(name, by_name.get(name, onward)) for name in outcomes if name not in mine]
        # The plan says where the module ends; inside of it, the pattern still counts.
        inside = [] if outcomes else [way for way in default if way[0] and way[1] != _EXIT]
        return [*mine.items(), *rest, *inside]

    def _turn(
        self,
        agent: PlannedAgent,
        module: PlannedModule,
        ways: Sequence[tuple[str, str]],
        members: Collection[str],
    ) -> Turn:
        name, is_member = agent.agent_name, agent.agent_name in members
        asking = [tool for tool in agent.agent_tools if tool.interaction_mode != "none"]
        decides = is_person(agent) and bool(asking) and not is_member
        asks = agent.human_interaction in ("context", "feedback") and self.workflow.is_attended
        turn = Turn(
            agent=agent,
            module=module,
            outcomes=(),
            ways=(),
            variable=None,
            asks=asks and not decides and not is_member,
            tool=asking[0].name if decides else self._recorder(name),
            decided_by=asking[0] if decides else None,
            questions=tuple(asking[1:] if decides else asking),
            components=tuple(
                each for each in self.workflow.blueprint.ui_components if each.agent == name
            ),
            is_member=is_member,
        )
        if is_member:
            return turn
        if turn.asks and [when for when, _ in ways] == [""]:
            ways = [("done", ways[0][1])]
        outcomes = {when: self._outcome(when) for when, _ in ways if when}
        names = tuple(name for name in outcomes.values() if name)
        variable = self._variable(agent, names) if names else None
        return replace(
            turn,
            outcomes=names,
            variable=variable,
            ways=tuple(self._rules(turn, ways, outcomes, variable)),
        )

    def _recorder(self, name: str) -> str:
        """Return a name for the tool that records what an agent decides."""
        planned = {tool.name for each in self.workflow.agents for tool in each.agent_tools}
        return unique(f"record_{snake_case(name, 'agent')}", planned)

    def _outcome(self, when: str) -> str:
        """Return the outcome that a way names; "" for a condition."""
        if SNAKE_NAME.match(when):
            return when
        try:
            names = names_in(parse_condition(when))
        except ExpressionError:
            names = ()
        known = {*self.known, *(name for each in self.workflow.agents for name in each.outcomes)}
        return "" if names and known.issuperset(names) else snake_case(when, "outcome")

    def _variable(self, agent: PlannedAgent, outcomes: Sequence[str]) -> str:
        """Return the state of the plan in which an outcome is kept, or a new one."""
        for planned in self.workflow.blueprint.global_context_variables:
            if planned.name in agent.writes and set(outcomes) <= set(planned.outcomes):
                return planned.name
        return unique(f"{snake_case(agent.agent_name, 'agent')}_outcome", self.known)

    def _rules(
        self,
        turn: Turn,
        ways: Sequence[tuple[str, str]],
        outcomes: Mapping[str, str],
        variable: str | None,
    ) -> Iterator[Way]:
        for when, target in ways:
            condition = None
            if when:
                tested: Condition = (
                    Name(outcomes[when]) if outcomes[when] else parse_condition(when)
                )
                condition = print_condition(_tested(tested, set(outcomes.values()), variable))
            reason = f"{turn.module.purpose}: {when or 'done'}" if target == TERMINATE else ""
            yield Way(outcomes.get(when) or when, target, condition, reason)
        if all(when for when, _ in ways):
            # Without a decision an agent that talks waits for the user; otherwise the run ends.
            talks = turn.asks or any(target == USER for _, target in ways)
            reason = "" if talks else f"{turn.module.purpose}: nothing was decided"
            yield Way("", USER if talks else TERMINATE, None, reason)


def is_person(agent: PlannedAgent) -> bool:
    """Return whether a person decides what an agent comes to."""
    return agent.human_interaction == "approval" or agent.approver is not None


def _tested(condition: Condition, outcomes: set[str], variable: str | None) -> Condition:
    """Return a condition in which the name of an outcome tests for it."""
    match condition:
        case Name(name) if name in outcomes and variable:
            return Compare("==", Name(variable), Value(name))
        case And(operands):
            return And(tuple(_tested(each, outcomes, variable) for each in operands))
        case Or(operands):
            return Or(tuple(_tested(each, outcomes, variable) for each in operands))
        case Not(operand):
            return Not(_tested(operand, outcomes, variable))
        case _:
            return condition
