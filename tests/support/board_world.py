"""A board without a host: decisions are made one by one, and a test plays the world around them.

After every decision it is checked that nothing is lost, in two places, out of turn or too much at
once. The world attends to the run when the last batch says that it is due, as a worker does.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from weft.adapters.python_tools.loader import PythonToolLoader
from weft.engine.board.correlation import rules_of
from weft.engine.board.publishing import artifact_event
from weft.engine.board.rules import SubscriptionRules, holds
from weft.engine.commands import CallTool, Fetch
from weft.engine.events import (
    ArtifactArrived,
    ArtifactPublished,
    ContextFetched,
    DeliveryDeferred,
    DeliveryMissed,
    Event,
    EventData,
    RunStarted,
    ToolFailed,
    ToolReturned,
    TurnStarted,
)
from weft.engine.incoming import accepts, due_events
from weft.engine.reduce import advance, fold, is_expected, pending
from weft.engine.rows import batch
from weft.engine.state import State
from weft.engine.timers import NEVER
from weft.engine.variables.conditions import evaluate
from weft.errors import ExpressionError
from weft.runtime.runs.decision import NewEvent, decide
from weft.runtime.workflow import Linking, Workflow, link
from weft.spec.workflow import WorkflowSpec

RUN = "c1"
START = 1_000_000

#: A subscription and an artifact.
Want = tuple[str, str]


async def never(inputs: Any) -> None:
    """Stand for the engines of a board whose world is played."""
    raise AssertionError("no engine is called here")


class Component:
    """Stands for components whose answers the world gives."""

    def before_schedule(self, ctx: Any, inputs: Any) -> None:
        """Be asked."""


def linked(spec: WorkflowSpec, objects: Mapping[str, object]) -> Workflow:
    """Return a board that is ready to run."""
    return link(spec, {}, PythonToolLoader(), Linking(objects=objects))


def places(state: State) -> Counter[Want]:
    """Say where every artifact waits, for every subscription that wants it."""
    board = state.board
    found: Counter[Want] = Counter()
    if board is None or state.status == "ended":
        return found
    for name, queue in board.queues.items():
        found.update((name, artifact.id) for delivery in queue for artifact in delivery.artifacts)
    for name, windows in board.joins.items():
        for window in windows.windows.values():
            found.update((name, item.id) for waiting in window.waiting.values() for item in waiting)
    for name, held in board.batches.items():
        found.update((name, item.id) for group in held.groups for item in group)
    for delayed in board.delayed.values():
        found.update((name, delayed.artifact.id) for name in delayed.wakes)
    for name, delivery in board.deferred.values():
        found.update((name, artifact.id) for artifact in delivery.artifacts)
    return found


class World:
    """One correlation, or one collection, and everything around it."""

    def __init__(self, workflow: Workflow, *, collects: str = "", schedule: str = "") -> None:
        self.workflow = workflow
        self.rules = rules_of(workflow.compiled)
        self.now = START
        self.state = State(RUN)
        self.events: list[Event] = []
        #: When the run needs attention next, as its last batch says.
        self.due_at = NEVER
        self.effects: dict[str, Fetch | CallTool] = {}
        #: What was wanted, handled, put off and given up, by subscription and artifact.
        self.wanted: Counter[Want] = Counter()
        self.started: Counter[Want] = Counter()
        self.deferred: Counter[Want] = Counter()
        self.lost: Counter[Want] = Counter()
        self.faults: Counter[Want] = Counter()
        self.told: Counter[Want] = Counter()
        begun = RunStarted(
            workflow.name, workflow.digest, "app", "ada", {}, correlation=RUN,
            collects=collects, schedule=schedule,
        )  # fmt: skip
        self.write(NewEvent("user:ada", begun))

    # -- what comes from outside

    def publish(self, draft: Mapping[str, Any]) -> str:
        """Put an artifact on the board, and return its name."""
        id_ = draft.get("id") or f"made-{len(self.events)}"
        data = artifact_event(self.rules, "app", {**draft, "id": id_}, by="user:ada")
        self.write(NewEvent("user:ada", data))
        return id_

    def write(self, *new: NewEvent) -> None:
        """Let something happen, if it is still expected."""
        if self.events and not is_expected(
            self.workflow.compiled, self.state, new[-1].turn, new[-1].data
        ):
            return
        self._decide(new)

    def restart(self) -> None:
        """Forget everything but the journal, as a new process does."""
        self.state = fold(self.workflow.compiled, RUN, self.events)
        self.effects = {}
        self._decide((), tuple(pending(self.workflow.compiled, self.state)))

    def finish(self, name: str, came: EventData) -> None:
        """Let an effect come to something."""
        effect = self.effects.pop(name)
        self.write(NewEvent("world", came, effect.seq, effect.turn))

    def pass_time(self, milliseconds: int) -> None:
        """Let time go on, or back; timers fire in their order."""
        end = self.now + milliseconds
        for _ in range(500):
            if self.due_at > end:
                break
            self.now = max(self.now, self.due_at)
            for due in due_events(self.state, self.now):
                if accepts(self.state, due.data):
                    self.write(NewEvent("clock", due.data, turn=due.turn))
        else:
            raise AssertionError("a timer fires for ever")
        self.now = max(end, self.now) if milliseconds >= 0 else end

    # -- what follows

    def _decide(self, new: Iterable[NewEvent], commands: Iterable[Any] = ()) -> None:
        before = self.state
        decision = decide(self.workflow, before, new, self.now, commands)
        for effect in decision.effects:
            assert isinstance(effect, Fetch | CallTool)
            name = effect.id if isinstance(effect, CallTool) else f"fetch-{effect.turn}"
            assert name not in self.effects, "nothing is done twice at once"
            self.effects[name] = effect
        if decision.events:
            self.due_at = batch(
                before, decision.state, decision.events, id="b", held=bool(decision.state.active)
            ).due_at
        self._follow(before.copy(), decision.events)
        self.events += decision.events
        self.state = decision.state
        active = self.state.active  # What no turn waits for is broken off.
        self.effects = {
            name: effect for name, effect in self.effects.items() if effect.turn in active
        }
        self._check()

    def _follow(self, state: State, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event.data, TurnStarted):
                self._expect_most_urgent(state, event.data)
            advance(self.workflow.compiled, state, event)
            self._count(event)

    def _count(self, event: Event) -> None:
        match event.data:
            case ArtifactPublished() as data:
                id_ = data.id
                here = [wake for wake in data.wakes if wake not in data.forwarded_to.values()]
                self.wanted.update((item, id_) for item in (here[:1] if data.direct else here))
                self.faults.update((fault, id_) for fault in data.errors)
            case ArtifactArrived() as data:
                self.wanted[data.subscription, data.id] += 1
            case TurnStarted() as data:
                self.started.update((data.step, input_) for input_ in data.inputs)
            case DeliveryDeferred() as data:
                self.deferred.update((data.subscription, artifact) for artifact in data.artifacts)
            case DeliveryMissed(why="no_key" | "predicate") as data:
                self.told.update((data.subscription, artifact) for artifact in data.artifacts)
            case DeliveryMissed(why="expired" | "wake_limit" | "unfinished") as data:
                self.lost.update((data.subscription, artifact) for artifact in data.artifacts)
            case _:
                pass

    def _check(self) -> None:
        state, waiting = self.state, places(self.state)
        active = Counter(
            (value.step, a.id) for value in state.active.values() for a in value.inputs
        )
        assert self.told == self.faults, "an agent that cannot be asked is named once"
        for want in {*self.wanted, *waiting, *self.started, *self.lost}:
            handled = self.started[want] - self.deferred[want]
            assert active[want] <= 1
            assert handled in (0, 1), f"{want} is handled {handled} times"
            sum_ = waiting[want] + handled + self.lost[want]
            if handled and state.status == "ended" and self.lost[want] == 1:
                continue  # It was being handled when the run was ended from outside.
            assert sum_ == self.wanted[want] == 1, f"{want}: {waiting[want]} {handled}"
        at_work = Counter(value.agent for value in state.active.values() if value.agent)
        assert sum(at_work.values()) <= self.rules.spec.max_concurrency
        assert all(n <= self.rules.agents[name].concurrency for name, n in at_work.items())
        if state.status != "ended":
            assert self.due_at == state.due_at == min_time(state)
            assert not self._ready(state), "an agent that may work, works"
        else:
            assert self.due_at == NEVER

    def _ready(self, state: State) -> list[tuple[int, int, str]]:
        """Return what could be started now, as priority, order and subscription."""
        board = state.board
        at_work = Counter(value.agent for value in state.active.values())
        if board is None or state.stopping or 0 in state.active:
            return []
        if len(state.active) >= self.rules.spec.max_concurrency:
            return []
        return [
            (-entry.priority, queue[0].order, name)
            for name, queue in board.queues.items()
            for entry in [self.rules.subscriptions[name]]
            if at_work[entry.agent] < self.rules.agents[entry.agent].concurrency
            and _is_activated(entry, board.counts.get(name, {}))
        ]

    def _expect_most_urgent(self, state: State, data: TurnStarted) -> None:
        ready = sorted(self._ready(state))
        assert ready, f"{data.step} begins though it may not"
        urgent = [name for *urgency, name in ready if urgency == [*ready[0][:2]]]
        assert data.step in urgent, f"{data.step} begins before {ready[0]}"
        assert state.board is not None
        first = state.board.queues[data.step][0]
        assert tuple(artifact.id for artifact in first.artifacts) == data.inputs


def min_time(state: State) -> int:
    """Return when the first timer of a run is due."""
    return min((timer.at for timer in state.timers.values()), default=NEVER)


def _is_activated(rules: SubscriptionRules, counts: Mapping[str, int]) -> bool:
    if rules.activation is None:
        return True
    try:
        return evaluate(rules.activation, Counter(counts))
    except ExpressionError:
        return False


def engine_result(artifacts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the event of an engine says."""
    return {"artifacts": artifacts, "state": {}}


def came_of(world: World, effect: Fetch | CallTool, how: str, cascade: Any) -> EventData:
    """Return what comes of an effect: it works, fails, or is put off."""
    if isinstance(effect, Fetch):
        verdicts = {"defer": {"verdict": "defer", "seconds": 2}, "skip": {"verdict": "skip"}}
        if how == "fail":
            return ContextFetched({}, {}, board={}, error="nothing there")
        return ContextFetched({}, {}, board=verdicts.get(how, {"slices": [], "engines": []}))
    if how == "fail":
        return ToolFailed(effect.id, "it broke")
    return ToolReturned(effect.id, engine_result(cascade(world, effect)))


def fitting(rules: SubscriptionRules, payload: Any) -> bool:
    """Tell whether a payload is wanted as far as conditions say."""
    if rules.where is None or rules.where.condition is None:
        return True
    return holds(rules.where.condition, payload) is True


def ids(events: Iterable[Event]) -> Iterator[str]:
    """Yield the names of what was published, in order."""
    for event in events:
        if isinstance(event.data, ArtifactPublished):
            yield event.data.id
