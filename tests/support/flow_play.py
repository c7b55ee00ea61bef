"""Flows without a host: steps are functions of a script, and time passes when told.

Everything the engine decides is decided as in a run; what code would do is in `does`, by the name
of the step (`undo:NAME` for its compensation): a dict of changes, an exception to raise, or a
function of the values. Each call is kept in `calls`.
"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from weft.engine.commands import CallTool, Fetch
from weft.engine.compile import compile_workflow
from weft.engine.events import (
    ContextFetched,
    Event,
    RequestAnswered,
    RequestExpired,
    RunStarted,
    StopRequested,
    TimerFired,
    ToolFailed,
    ToolReturned,
)
from weft.engine.reduce import fold, is_expected, pending
from weft.engine.state import State
from weft.runtime.runs.decision import NewEvent, decide
from weft.spec.flow import Flow, FunctionWork, Step
from weft.spec.orchestrator import Orchestrator
from weft.spec.type_parser import parse_type
from weft.spec.variables import DerivedSource, Variable
from weft.spec.workflow import WorkflowSpec

Outcome = Any


def work(name: str) -> FunctionWork:
    return FunctionWork(function=f"local:{name}")


def step(name: str, **options: Any) -> Step:
    return Step(name=name, work=work(name), **options)


def variable(type_: str = "any", default: Any = None, merge: Any = None) -> Variable:
    return Variable(type=parse_type(type_), source=DerivedSource(default=default), merge=merge)


def flow_spec(flow: Flow, **variables: Variable) -> WorkflowSpec:
    return WorkflowSpec(
        orchestrator=Orchestrator(workflow_name="Flow"), variables=variables, flow=flow
    )


class FlowPlay:
    """A run of a flow, from its start to wherever it rests."""

    def __init__(
        self,
        spec: WorkflowSpec,
        does: Mapping[str, Outcome] | None = None,
        values: Mapping[str, Any] | None = None,
        *,
        go: bool = True,
    ) -> None:
        self.spec = spec
        self.does = dict(does or {})
        self.workflow: Any = SimpleNamespace(compiled=compile_workflow(spec), views={})
        self.state = State("run")
        self.events: list[Event] = []
        self.calls: list[str] = []
        self.now = 0
        self.open: list[Any] = []
        self.take(RunStarted("Flow", "digest", "app", "me", dict(values or {})))
        if go:
            self.work()

    # -- the loop

    def take(self, *data: Any, turn: int = 0, actor: str = "x") -> None:
        new = [NewEvent(actor, entry, 0, turn) for entry in data]
        new = [
            event
            for event in new
            if is_expected(self.workflow.compiled, self.state, event.turn, event.data)
        ]
        self._keep(decide(self.workflow, self.state, new, self.now))

    def _keep(self, decision: Any) -> None:
        self.events += decision.events
        self.state = decision.state
        self.open += decision.effects

    def restart(self) -> None:
        """Forget everything but the journal, and do again what has no result."""
        self.open = []
        self.state = fold(self.workflow.compiled, "run", self.events)
        if self.state.status != "ended":
            commands = list(pending(self.workflow.compiled, self.state))
            self._keep(decide(self.workflow, self.state, (), self.now, commands))

    def work(self) -> "FlowPlay":
        """Do what is open until nothing is."""
        while self.open:
            self.perform(0)
        return self

    def perform(self, at: int) -> None:
        """Do one of the things that are open."""
        effect = self.open.pop(at)
        if isinstance(effect, Fetch):
            self.take(
                ContextFetched({}, {}, step={"messages": None, "context": None}), turn=effect.turn
            )
            return
        assert isinstance(effect, CallTool)
        if effect.turn not in self.state.active:
            return
        active = self.state.active[effect.turn]
        name = f"undo:{active.step}" if active.flow.undoes else active.step
        self.calls.append(name)
        self.take(self._result(effect, name), turn=effect.turn)

    def _result(self, effect: CallTool, name: str) -> ToolReturned | ToolFailed:
        outcome = self.does.get(name, {})
        values = self.state.values_of(effect.turn)
        if isinstance(outcome, list):
            outcome = outcome.pop(0) if outcome else {}
        if isinstance(outcome, Callable) and not isinstance(outcome, type):
            outcome = outcome(values)
        if isinstance(outcome, Exception):
            told = {"type": type(outcome).__name__, "message": str(outcome), "stack": "here"}
            return ToolFailed(effect.id, str(outcome), "error", told)
        confidence = None
        if isinstance(outcome, tuple):
            outcome, confidence = outcome
        return ToolReturned(effect.id, {"set": outcome, "confidence": confidence})

    # -- the world

    def wait(self, seconds: float) -> "FlowPlay":
        """Let time pass; whatever is due then happens, in order."""
        until = self.now + round(seconds * 1000)
        while due := self._next_due(until):
            at, data, turn = due
            self.now = max(self.now, at)
            self.take(data, turn=turn, actor="clock")
            self.work()
        self.now = until
        return self

    def _next_due(self, until: int) -> tuple[int, Any, int] | None:
        found = [(timer.at, TimerFired(timer.id), 0) for timer in self.state.timers.values()]
        found += [
            (request.expires_at, RequestExpired(request.id), request.turn)
            for request in self.state.requests.values()
            if request.expires_at is not None
        ]
        ready = sorted((item for item in found if item[0] <= until), key=lambda item: item[0])
        return ready[0] if ready else None

    def answer(self, decision: str, user: str = "boss") -> "FlowPlay":
        request = next(iter(self.state.requests.values()))
        self.take(RequestAnswered(request.id, {"decision": decision}, user), turn=request.turn)
        return self.work()

    def stop(self, mode: Any = "now") -> "FlowPlay":
        self.take(StopRequested(mode, "me"))
        return self.work()

    # -- what came of it

    @property
    def outcome(self) -> str | None:
        return self.state.outcome

    @property
    def values(self) -> Mapping[str, Any]:
        return self.state.variables

    def of(self, kind: type) -> list[Any]:
        return [event.data for event in self.events if isinstance(event.data, kind)]
