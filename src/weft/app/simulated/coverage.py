"""Coverage of simulated runs: their goals, what they reached, and the ways to the rest."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, NamedTuple

from weft.adapters.models.sample_moves import Move, Steering, Step, steering_along, steps_of
from weft.adapters.models.sample_values import Places, allowed_at, found_at
from weft.check.explore import Exploration, explore
from weft.check.explore.ways import ways_to_end, ways_to_handoff
from weft.check.run import is_explorable
from weft.check.subject import Subject
from weft.engine.compile import compile_workflow
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import (
    Event,
    HandedOff,
    RequestAnswered,
    RequestOpened,
    ToolFailed,
    TurnStarted,
)
from weft.engine.variables.conditions import evaluate
from weft.errors import ExpressionError
from weft.findings import Json
from weft.ids import TERMINATE
from weft.ports.model import ModelRequest
from weft.spec.agents import Handoff
from weft.spec.condition_parser import parse_condition
from weft.spec.tools import UiTool
from weft.spec.triggers import UiResponseTrigger
from weft.spec.type_meaning import validation_error
from weft.spec.variables import DerivedSource
from weft.spec.workflow import WorkflowSpec


class _Hop(NamedTuple):
    """A transition from an agent or group to the next one; without a rule it is unconditional."""

    source: str
    target: str
    rule: int | None = None


def near_steering(spec: WorkflowSpec, compiled: CompiledWorkflow, goal: int | None) -> Steering:
    """Return the steering along the fewest handoffs to a handoff, by its index, or to the end."""
    steps = steps_of(compiled, None)
    everywhere = list(_hops(spec, compiled))
    # Ways that one step opens come first; others need values that were set before.
    near = [hop for hop in everywhere if _is_open(spec, compiled, hop, steps.get(hop.source, ()))]
    hops = {**_hops_to(spec, everywhere, goal), **_hops_to(spec, near, goal)}
    ways: dict[str, tuple[tuple[Move, ...], ...]] = {}
    answers: dict[str, list[Places]] = {}
    for agent, hop in hops.items():
        fitting = [step for step in steps.get(agent, ()) if _leads(spec, compiled, hop, step)]
        if fitting:
            ways[agent] = (tuple(dict.fromkeys(step.move for step in fitting)),)
        for step in fitting:
            answers.setdefault(step.move.what, []).extend([step.answer] if step.answer else [])
    return Steering(
        moves={
            agent: tuple(dict.fromkeys(step.move for step in own)) for agent, own in steps.items()
        },
        ways=ways,
        answers={tool: tuple(known) for tool, known in answers.items()},
    )


def _is_open(
    spec: WorkflowSpec, compiled: CompiledWorkflow, hop: _Hop, steps: Sequence[Step]
) -> bool:
    free = hop.rule is None or spec.handoffs[hop.rule].condition is None
    return free or any(_leads(spec, compiled, hop, step) for step in steps)


def _hops_to(spec: WorkflowSpec, hops: Sequence[_Hop], goal: int | None) -> dict[str, _Hop]:
    """Return the transition of each agent that leads nearest to the goal."""
    if goal is None:
        nearest, waiting = dict[str, _Hop](), [TERMINATE]
    else:
        handoff = spec.handoffs[goal]
        source = handoff.source_agent
        nearest, waiting = {source: _Hop(source, handoff.target_agent, goal)}, [source]
    for target in waiting:
        for hop in hops:
            if hop.target == target and hop.source not in nearest:
                nearest[hop.source] = hop
                waiting.append(hop.source)
    return nearest


def _hops(spec: WorkflowSpec, compiled: CompiledWorkflow) -> Iterator[_Hop]:
    for index, handoff in enumerate(spec.handoffs):
        yield _Hop(handoff.source_agent, handoff.target_agent, index)
    for agent, route in compiled.routing.otherwise.items():
        yield _Hop(agent, route.target)
    for name, group in compiled.routing.groups.items():
        yield _Hop(name, group.next)


def _leads(spec: WorkflowSpec, compiled: CompiledWorkflow, hop: _Hop, step: Step) -> bool:
    """Return whether a step makes a way's condition true, or all others of the agent false.

    Other values are assumed to be the initial ones.
    """
    values = {
        **compiled.start_values,
        **{setting.variable: setting.value for setting in step.settings},
    }
    condition = None if hop.rule is None else spec.handoffs[hop.rule].condition
    if condition is not None:
        return _holds(condition, values)
    found = [handoff.condition for handoff in spec.handoffs if handoff.source_agent == hop.source]
    others = [condition for condition in found if condition is not None]
    needed = any(_holds(condition, compiled.start_values) for condition in others)
    return needed and not any(_holds(condition, values) for condition in others)


def _holds(condition: str, values: Mapping[str, Json]) -> bool:
    try:
        return bool(evaluate(parse_condition(condition), values))
    except ExpressionError:
        return False


#: One of this many runs explores on its way.
_STRAIGHT: Final = 3

#: The probabilities that it then goes toward its goal, and that it does nothing relevant.
_TO_GOAL: Final = 0.6
_IDLE: Final = 0.15

_LOST: Final = 0.4

#: After this many runs that knew the way, a handoff is considered unreachable.
_ENOUGH: Final = 5

#: The prefix of actors that are tools.
_TOOL: Final = "tool:"

#: After this share of its turns, a run goes to its end.
_HALF: Final = 2


@dataclass(frozen=True, slots=True)
class AnswerChoice:
    """An answer of a person that decides something: the question, and values by path."""

    tool: str
    places: Places

    def __str__(self) -> str:
        values = (f"{'.'.join(path)} = {value}" for path, value in self.places)
        return f"{self.tool}: {', '.join(values)}"


@dataclass
class SimulatedRun:
    """The course of one simulated run."""

    goal: int | None = None
    #: Whether it goes straight to its goal; other runs explore on the way.
    straight: bool = True
    #: Whether an agent or person had to choose among several ways to the goal.
    guessed: bool = False
    agents: dict[str, None] = field(default_factory=dict[str, None])
    rules: dict[int, None] = field(default_factory=dict[int, None])
    turns: int = 0
    #: The tools that asked, by question.
    asked: dict[str, str] = field(default_factory=dict[str, str])


class Coverage:
    """Sets the goals of simulated runs, steers them, and records what they reach."""

    def __init__(self, subject: Subject) -> None:
        self.spec = subject.spec
        self.compiled: CompiledWorkflow = compile_workflow(subject.spec)
        explorable = is_explorable(subject)
        self._known = explore(subject) if explorable else Exploration("not explored")
        self._ways = ways_to_end(subject) if explorable else None
        self._steerings: dict[int | None, Steering] = {}
        self.agents = self._agents()
        used = self._rules()
        #: Those behind conditions: they apply if nothing was decided, and stand-ins always decide.
        self._fallbacks = sorted(used.keys() & _fallbacks(self.spec))
        self.rules = {rule: None for rule in used if rule not in self._fallbacks}
        self.groups = {group.name: group for group in self.compiled.routing.groups.values()}
        self._schemas = {
            tool.function: tool.response_schema or {}
            for tool in self.spec.tools
            if isinstance(tool, UiTool) and tool.agent in self.agents
        }
        self.answers = list(self._answers())
        self.courses: dict[str, SimulatedRun] = {}
        #: The tools that failed, with the reason; a deliberate refusal is not a failure.
        self.failures: dict[str, None] = {}
        #: How many runs knew the way to a handoff and did not reach it.
        self._tries: Counter[int] = Counter()

    def values_of(self, name: str) -> tuple[Json, ...]:
        """Return the values of a variable that rules distinguish."""
        return self._ways.values(name) if self._ways else ()

    def begin(self, run: str, number: int) -> None:
        """Give a run its goal: a handoff that no run has taken yet."""
        left = self._goals
        goal = left[-1 - number % len(left)] if left else None
        self.courses[run] = SimulatedRun(goal, straight=number % _STRAIGHT != 0)

    def end(self, run: str) -> None:
        """Record the end of a run, and whether it knew the way and missed its goal."""
        course = self.courses[run]
        if course.straight and not course.guessed and course.goal in self._goals:
            self._tries[course.goal] += 1

    @property
    def _goals(self) -> list[int]:
        """The handoffs to take: those not taken yet, and fallbacks to what was not reached."""
        left, handoffs = {*self.agents, *self.groups}, self.spec.handoffs
        needed = (rule for rule in self._fallbacks if handoffs[rule].target_agent in left)
        return [*self.rules, *needed]

    @property
    def limited(self) -> bool:
        """Whether more runs might reach what is missing."""
        rare = any(self._tries[rule] < _ENOUGH for rule in self._goals)
        only_answers = not (self.agents or self.rules or self.groups)
        return not self.done and (self._ways is None or rare or only_answers)

    @property
    def done(self) -> bool:
        """Whether everything was reached."""
        return not (self.agents or self.rules or self.groups or self.answers)

    def note(self, run: str, event: Event) -> None:
        """Record an event of a run."""
        course = self.courses[run]
        match event.data:
            case TurnStarted(agent=agent):
                course.turns += 1
                course.agents[agent] = None
                self.agents.pop(agent, None)
            case HandedOff(source=source, rule=rule, why=why):
                if rule is not None:
                    course.rules[rule] = None
                    self.rules.pop(rule, None)
                if why == "joined":
                    self.groups.pop(source, None)
            case RequestOpened(id=id_, tool=str() as tool):
                course.asked[id_] = tool
            case RequestAnswered(id=id_, value=value) if id_ in course.asked:
                tool = course.asked[id_]
                self.answers = [
                    answer
                    for answer in self.answers
                    if answer.tool != tool or not found_at(value, answer.places)
                ]
            # An unanswered request is not a failure of the tool that asked.
            case ToolFailed(error=error, kind="error" | "timeout") if event.actor.startswith(_TOOL):
                tool = event.actor.removeprefix(_TOOL)
                why = error.removeprefix(f"{tool} failed: ")
                self.failures[f"the tool {tool} failed: {why}"] = None
            case _:
                pass

    def steering(self, run: str, request: ModelRequest, seed: int) -> Steering:
        """Return the steering of an agent: to the goal of its run, anywhere, or to the end."""
        course = self.courses[run]
        drawn = Random(f"{seed}:{request.agent}:{request.turn}").random()  # noqa: S311
        if self._is_late(course):
            found = self._steering(None)
            # If the way to the end is uncertain, other ways are tried as well.
            lost = self._ways is None and drawn < _LOST
            everything = {request.agent: (found.moves.get(request.agent, ()),)}
            return replace(found, ways=everything if lost else found.ways, wandering=0)
        if course.goal not in self._goals:
            course.goal = self._next_goal(request.agent)
        draw = 0.0 if course.straight else drawn
        found = self._steering(course.goal)
        if draw < _TO_GOAL:
            known = {move for way in found.ways.get(request.agent, ()) for move in way}
            course.guessed |= len(known) > 1
            return replace(found, wandering=0)
        if draw < _TO_GOAL + _IDLE:
            return replace(found, ways={}, wandering=0)
        asking = self._asking(found, request.agent)
        return replace(found, ways={request.agent: (asking,)}, wandering=0) if asking else found

    def answer(self, run: str, tool: str, random: Random) -> Places:
        """Return the answers of a person: those that lead on, or those not given yet."""
        course = self.courses[run]
        late = self._is_late(course)
        known = self._steering(None if late else course.goal).answers.get(tool, ())
        leading = [places for places in known if allowed_at(self._schemas.get(tool, {}), places)]
        new = [answer.places for answer in self.answers if answer.tool == tool]
        first, second = (leading, new) if late or course.straight else (new, leading)
        choices = first or second
        course.guessed |= len(choices) > 1
        return random.choice(choices) if choices else ()

    def is_late(self, run: str) -> bool:
        """Return whether a run should go to its end now."""
        return self._is_late(self.courses[run])

    def _is_late(self, course: SimulatedRun) -> bool:
        return course.turns * _HALF > self.spec.orchestrator.max_turns

    def words(self, rule: int) -> str:
        """Return a handoff as text."""
        return in_words(self.spec.handoffs[rule])

    def _next_goal(self, agent: str) -> int | None:
        """Return a handoff that no run has taken yet, preferably of this agent."""
        handoffs = self.spec.handoffs
        own = (rule for rule in self._goals if handoffs[rule].source_agent == agent)
        return next(own, None)

    def _asking(self, found: Steering, agent: str) -> tuple[Move, ...]:
        """Return the moves of an agent that lead to questions with answers not given yet."""
        open_ = {answer.tool for answer in self.answers}
        return tuple(move for move in found.moves.get(agent, ()) if move.what in open_)

    def _steering(self, goal: int | None) -> Steering:
        if goal not in self._steerings:
            ways = self._ways
            if ways and goal is not None:
                ways = ways_to_handoff(ways, goal)
            self._steerings[goal] = (
                steering_along(self.compiled, ways)
                if ways
                else near_steering(self.spec, self.compiled, goal)
            )
        return self._steerings[goal]

    def _agents(self) -> dict[str, None]:
        names = (agent.agent_name for agent in self.spec.agents)
        return {name: None for name in names if name not in self._known.unreachable_agents}

    def _rules(self) -> dict[int, None]:
        unused = {rule.index for rule in self._known.unused_rules}
        return {index: None for index in range(len(self.spec.handoffs)) if index not in unused}

    def _answers(self) -> Iterator[AnswerChoice]:
        """Yield the answers that set a variable to a value that rules distinguish."""
        for name, variable in self.spec.variables.items():
            source = variable.source
            triggers = source.triggers if isinstance(source, DerivedSource) else ()
            for trigger in triggers:
                if not isinstance(trigger, UiResponseTrigger) or trigger.tool not in self._schemas:
                    continue
                path = tuple(trigger.response_key.split("."))
                for value in self.values_of(name):
                    places: Places = ((path, value),)
                    fits = not validation_error(variable.type, value, self.compiled.models)
                    if fits and allowed_at(self._schemas[trigger.tool], places):
                        yield AnswerChoice(trigger.tool, places)


def _fallbacks(spec: WorkflowSpec) -> set[int]:
    """Return the rules without a condition that stand behind others of the same agent."""
    conditional = {rule.source_agent for rule in spec.handoffs if rule.condition}
    return {
        number
        for number, rule in enumerate(spec.handoffs)
        if rule.condition is None and rule.source_agent in conditional
    }


def in_words(handoff: Handoff) -> str:
    """Return a handoff as text: "A -> B when x".

    >>> in_words(Handoff(source_agent="A", target_agent="B", condition="x == 1"))
    'A -> B when x == 1'
    """
    when = f" when {handoff.condition}" if handoff.condition else ""
    return f"{handoff.source_agent} -> {handoff.target_agent}{when}"
