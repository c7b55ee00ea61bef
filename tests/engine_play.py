"""Playing a run against the engine alone: scripted results in, events and commands out."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from weft.engine.commands import Assemble, CallModel, CallTool, Command, Record
from weft.engine.compiled import CompiledWorkflow, compile_workflow
from weft.engine.events import ContextAssembled, Event, EventData, ModelReplied, RunStarted
from weft.engine.reduce import reduce
from weft.engine.state import State
from weft.spec.workflow import WorkflowSpec


def workflow(
    agents=("A", "B"), handoffs=(), variables=None, tools=(), **rest: Any
) -> CompiledWorkflow:
    """Build a compiled workflow from the smallest declaration."""
    orchestrator = {"workflow_name": "W", "initial_agent": "A", **rest.pop("orchestrator", {})}
    return compile_workflow(
        WorkflowSpec.model_validate(
            {
                "orchestrator": orchestrator,
                "agents": [it if isinstance(it, dict) else {"agent_name": it} for it in agents],
                "handoffs": list(handoffs),
                "variables": variables or {},
                "tools": [
                    {
                        "tool_type": "Agent_Tool",
                        "file": "t.py",
                        "description": "d",
                        **it,
                    }
                    for it in tools
                ],
                **rest,
            }
        )
    )


@dataclass
class Play:
    """A run in the hands of a test."""

    compiled: CompiledWorkflow
    state: State = field(default_factory=lambda: State("r"))
    events: list[Event] = field(default_factory=list)
    effects: list[Command] = field(default_factory=list)

    def take(self, data: EventData, *, cause: int = 0) -> list[Command]:
        """Let one thing happen with all that follows; return the new effects."""
        queue = deque([(data, cause)])
        fresh: list[Command] = []
        while queue:
            item, cause = queue.popleft()
            event = Event(self.state.seq + 1, 1000 + self.state.seq, "test", cause, item)
            self.events.append(event)
            self.state, commands = reduce(self.compiled, self.state, event)
            following = []
            for command in commands:
                match command:
                    case Record(data=inner):
                        following.append((inner, event.seq))
                    case Assemble():
                        assembled = ContextAssembled(
                            command.agent, command.turn, command.call, {}, "hash"
                        )
                        following.append((assembled, event.seq))
                    case CallModel() | CallTool():
                        fresh.append(command)
            queue.extendleft(reversed(following))
        self.effects += fresh
        return fresh

    def start(self, message: str | None = "hello", **values: Any) -> list[Command]:
        """Begin the run."""
        return self.take(RunStarted("W", "digest", "app", "user", values, message))

    def reply(self, text: str = "", *requests: Any) -> list[Command]:
        """Let the model of the turn under way answer."""
        assert self.state.turn is not None
        turn = self.state.turn
        return self.take(ModelReplied(turn.number, turn.call, text, tuple(requests)))

    def kinds(self) -> list[str]:
        """The kinds of the events so far."""
        return [type(event.data).__name__ for event in self.events]

    def last(self, kind: Callable[..., EventData]) -> Any:
        """The newest event of a kind."""
        return next(it.data for it in reversed(self.events) if isinstance(it.data, kind))  # type: ignore[arg-type]
