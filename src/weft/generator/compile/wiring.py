"""Wiring: what the turn of each agent can come to, and which agent follows."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.errors import ExpressionError
from weft.generator.names import pascal_case, snake_case, unique
from weft.generator.plans.data_rules import known_values
from weft.generator.plans.workflow_plan import PlannedModule, WorkflowPlan
from weft.ids import SNAKE_NAME, TERMINATE, USER
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import And, Compare, Condition, Name, Not, Or, Value, print_condition
from weft.spec.conditions import names as names_in
from weft.spec.form import ASK_USER, DONE, END
from weft.spec.orchestrator import ParallelGroup
from weft.spec.plan import PlannedAgent, PlannedComponent, PlannedTool

#: In defaults: what follows the module.
_EXIT: Final = ""
#: By agent: what it can come to, and what follows; "" is whatever it comes to.
_Ways = dict[str, list[tuple[str, str]]]
_Table: TypeAlias = Mapping[str, Sequence[tuple[str, str]]]
_CHAIN: Final[_Table] = {"others": [("", "next")]}
_HUB: Final[_Table] = {"first": [("", "each"), ("done", "exit")], "others": [("", "first")]}
#: The ways of modules whose plan names none, by the place of the agent. `next` is the exit for the
#: last agent, `each` all others by their names, `worker` the next one between first and last.
_DEFAULTS: Final[Mapping[str, _Table]] = {
    "ContextAwareRouting": {"first": [("", "each")], "others": [("", "exit")]},
    "Escalation": {
        "last": [("", "exit")],
        "others": [("solved", "exit"), ("escalate", "next")],
    },
    "FeedbackLoop": {**_CHAIN, "last": [("accepted", "exit"), ("revise", "first")]},
    "Hierarchical": _HUB,
    "Organic": {"others": [("", "each"), ("done", "exit")]},
    "Star": _HUB,
    "TriageWithTasks": {**_CHAIN, "middle": [("more", "worker"), ("finished", "last")]},
}
#: In a module of this pattern, all agents but the last work in parallel.
_REDUNDANT: Final = "Redundant"
_LEAST_GROUP: Final = 3


def _defaults(pattern: str, names: Sequence[str]) -> _Ways:
    """Return the ways of the agents of a module by its pattern; one agent leads to the exit."""
    table = _DEFAULTS.get(pattern, _CHAIN) if len(names) > 1 else _CHAIN
    found, workers = _Ways(), names[1:-1]
    for place, name in enumerate(names):
        role = "first" if place == 0 else "last" if name == names[-1] else "middle"
        targets = {"exit": _EXIT, "first": names[0], "last": names[-1]}
        targets["next"] = names[place + 1] if name != names[-1] else _EXIT
        targets["worker"] = workers[place % len(workers)] if workers else names[-1]
        others = [(snake_case(other, "agent"), other) for other in names if other != name]
        found[name] = [
            way
            for when, to in table.get(role, table["others"])
            for way in (others if to == "each" else [(when, targets[to])])
        ]
    return found


#: What a person decides if the plan does not say.
APPROVED: Final = "approved"
REJECTED: Final = "rejected"


@dataclass(frozen=True, slots=True)
class Way:
    """What follows the turn of an agent; the condition is None if it always follows."""

    when: str
    target: str
    condition: str | None


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
    #: The tool that is called with every structured reply; whether a person decides by it.
    tool: str
    is_person: bool
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
        return tuple(each for each in self.agent.agent_tools if each.interaction_mode != "none")

    def component(self, tool: str) -> PlannedComponent | None:
        """Return what a tool shows, if the plan says."""
        return next((each for each in self.components if each.tool == tool), None)

    def asked_by(self, tool: str) -> str | None:
        """Return who answers a tool; None: the user of the run."""
        shown = self.component(tool)
        decides = self.is_person and tool == self.tool
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

    @property
    def interrupted(self) -> list[str]:
        """The agents before whose turns a watched word may be said: they wait for the user."""
        return [
            turn.name
            for turn in self.turns
            if self.watch not in (None, turn.name)
            and not turn.is_member
            and (turn.name == self.entry or any(way.target == USER for way in turn.ways))
        ]


def condition_names(wiring: Wiring) -> set[str]:
    """Return the variables that conditions test."""
    conditions = (way.condition for turn in wiring.turns for way in turn.ways)
    return {name for text in conditions if text for name in names_in(parse_condition(text))}


def wire(workflow: WorkflowPlan) -> Wiring:
    """Return how the agents of a workflow follow each other."""
    return _Wire(workflow).wiring()


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
        modules, ways = self.workflow.modules, _Ways()
        for before, module, after in zip(
            (None, *modules), modules, (*modules[1:], None), strict=False
        ):
            following = self.entries[after.index] if after else TERMINATE
            back = before.agents[-1].agent_name if before else TERMINATE
            ways |= self._module(module, following, back)
        groups = tuple(self._followed(group, ways) for group in self.groups.values())
        members = {name for group in groups for name in group.members}
        watch = self.workflow.strategy.watch
        return Wiring(
            entry=self.entries[modules[0].index],
            turns=tuple(
                self._turn(agent, module, ways[agent.agent_name], members)
                for module in modules
                for agent in module.agents
            ),
            groups=groups,
            watch=self._target(watch.to) if watch else None,
            notes=tuple(self.notes),
        )

    def _entry(self, module: PlannedModule) -> str:
        """Return the agent with which a module begins, or the group that it begins with."""
        names = [agent.agent_name for agent in module.agents]
        if module.pattern.name != _REDUNDANT or len(names) < _LEAST_GROUP:
            return names[0]
        return self._group(f"{pascal_case(module.purpose, 'Module')}Group", names[:-1], names[-1])

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
        following = [*dict.fromkeys(to for name in group.members for _, to in ways[name])]
        if len(following) > 1:
            self.notes.append(f"after {', '.join(group.members)} always {following[0]} follows")
        return group.model_copy(update={"next": following[0]})

    def _target(self, name: str) -> str:
        """Return the agent, group or end that a way of the plan leads to."""
        for module in self.workflow.modules:
            if name in (module.name, module.purpose):
                return self.entries[module.index]
        return TERMINATE if name == END else name

    def _module(self, module: PlannedModule, following: str, back: str) -> _Ways:
        """Return the ways of the agents of a module: those of the plan before the defaults."""
        names = [agent.agent_name for agent in module.agents]
        defaults = _defaults(module.pattern.name, names)
        leads: dict[str, list[str]] = {}
        for way in module.leads_to:
            leads.setdefault(way.when, []).append(self._target(way.to))
        own = {outcome for agent in module.agents for outcome in agent.outcomes}
        # What no agent of the module names belongs to the one with which the module ends.
        owner = [name for name in names if _EXIT in dict(defaults[name]).values()] or names
        found = _Ways()
        for agent, before in zip(module.agents, (back, *names), strict=False):
            name = agent.agent_name
            mine = {
                when: to[0]
                if len(to) == 1
                else self._group(f"{name}{pascal_case(when, 'Next')}Group", to, None)
                for when, to in leads.items()
                if when in agent.outcomes or (name == owner[-1] and when not in own)
            }
            ways = _agent_ways(agent, mine, defaults[name], before)
            found[name] = [(when, following if to == _EXIT else to) for when, to in ways]
        return found

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
        talks = agent.human_interaction in ("context", "feedback") and self.workflow.is_attended
        asks = talks and not decides and not is_member
        if asks and [when for when, _ in ways] == [""]:
            ways = [(DONE, ways[0][1])]
        outcomes = {when: self._outcome(when) for when, _ in ways if when and not is_member}
        named = tuple(outcome for outcome in outcomes.values() if outcome)
        if asks and not named:
            named = (DONE,)
        variable = self._variable(agent, named) if named else None
        return Turn(
            agent=agent,
            module=module,
            outcomes=named,
            ways=() if is_member else tuple(_rules(ways, outcomes, variable, waits=asks)),
            variable=variable,
            asks=asks,
            tool=asking[0].name if decides else self._recorder(name),
            is_person=decides,
            questions=tuple(asking[1:] if decides else asking),
            components=tuple(
                each for each in self.workflow.blueprint.ui_components if each.agent == name
            ),
            is_member=is_member,
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


def is_person(agent: PlannedAgent) -> bool:
    """Return whether a person decides what an agent comes to."""
    return agent.human_interaction == "approval" or agent.approver is not None


def _agent_ways(
    agent: PlannedAgent, mine: Mapping[str, str], default: list[tuple[str, str]], back: str
) -> list[tuple[str, str]]:
    """Return the ways of the plan, and for the outcomes without one those of the pattern."""
    by_name, outcomes = dict(default), list(agent.outcomes)
    if not outcomes and not mine:
        if not is_person(agent):
            return default
        if len(default) == 1:
            by_name = {APPROVED: default[0][1], REJECTED: back}
        outcomes = list(by_name)
    onward = by_name.get("") or next((to for _, to in default if to == _EXIT), default[-1][1])
    rest = [(name, by_name.get(name, onward)) for name in outcomes if name not in mine]
    # The plan says where the module ends; inside of it, the pattern still counts.
    inside = [] if outcomes else [way for way in default if way[0] and way[1] != _EXIT]
    return [*mine.items(), *rest, *inside]


def _rules(
    ways: Sequence[tuple[str, str]],
    outcomes: Mapping[str, str],
    variable: str | None,
    *,
    waits: bool,
) -> Iterator[Way]:
    if waits and "" in outcomes.values():
        # A value that is known already must not count before the agent has asked.
        yield Way(ASK_USER, USER, print_condition(_is(variable or "", ASK_USER)))
    for when, target in ways:
        condition = None
        if when:
            tested: Condition = Name(outcomes[when]) if outcomes[when] else parse_condition(when)
            condition = print_condition(_tested(tested, set(outcomes.values()), variable))
        yield Way(outcomes.get(when) or when, target, condition)
    if all(when for when, _ in ways):
        # Without a decision an agent that talks waits for the user; otherwise the run ends.
        waits = waits or USER in dict(ways).values()
        yield Way("", USER if waits else TERMINATE, None)


def _tested(condition: Condition, outcomes: set[str], variable: str | None) -> Condition:
    """Return a condition in which the name of an outcome tests for it."""
    match condition:
        case Name(name) if name in outcomes and variable:
            return _is(variable, name)
        case And(operands):
            return And(tuple(_tested(each, outcomes, variable) for each in operands))
        case Or(operands):
            return Or(tuple(_tested(each, outcomes, variable) for each in operands))
        case Not(operand):
            return Not(_tested(operand, outcomes, variable))
        case _:
            return condition


def _is(variable: str, value: str) -> Condition:
    return Compare("==", Name(variable), Value(value))
