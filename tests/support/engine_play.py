"""Playing a run against the engine alone: scripted results in, events and commands out."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from weft.engine.commands import Assemble, Command, Record, Start
from weft.engine.compile import compile_workflow
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import (
    ContextAssembled,
    Event,
    EventData,
    ModelReplied,
    RequestAnswered,
    RunStarted,
    TurnStarted,
)
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
                "agents": [
                    agent if isinstance(agent, dict) else {"agent_name": agent} for agent in agents
                ],
                "handoffs": list(handoffs),
                "variables": variables or {},
                "tools": [
                    {
                        "tool_type": "Agent_Tool",
                        "file": "t.py",
                        "description": "d",
                        **tool,
                    }
                    for tool in tools
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

    def take(self, data: EventData, *, cause: int = 0, turn: int | None = None) -> list[Command]:
        """Let one thing happen with all that follows; return the new effects.

        It happens in the newest turn under way, unless another is named.
        """
        if turn is None:
            turn = self.state.turn.number if self.state.turn else 0
        queue: deque = deque([(data, cause, turn)])
        fresh: list[Command] = []
        while queue and self.state.outcome is None:
            item, cause, turn = queue.popleft()
            if isinstance(item, Start):
                item, turn = TurnStarted(item.agent, item.fork), self.state.turns + 1
            event = Event(self.state.seq + 1, 1000 + self.state.seq, "test", cause, turn, item)
            self.events.append(event)
            self.state, commands = reduce(self.compiled, self.state, event)
            following = []
            for command in commands:
                match command:
                    case Record(data=inner, turn=own):
                        following.append((inner, event.seq, turn if own is None else own))
                    case Start():
                        following.append((command, event.seq, 0))
                    case Assemble():
                        assembled = ContextAssembled(command.agent, command.call, {}, "hash")
                        following.append((assembled, event.seq, command.turn))
                    case _:
                        fresh.append(command)
            queue.extendleft(reversed(following))
        self.effects += fresh
        return fresh

    def start(self, message: str | None = "hello", **values: Any) -> list[Command]:
        """Begin the run."""
        begun = RunStarted("W", "digest", "app", "user", values, message is not None)
        fresh = self.take(begun)
        return fresh if message is None else self.say(message)

    def say(self, text: str, **more: Any) -> list[Command]:
        """Let the user answer what the chat asks."""
        request = next(
            request for request in self.state.requests.values() if request.kind == "chat"
        )
        return self.take(RequestAnswered(request.id, text, "user", **more), turn=0)

    def reply(self, text: str = "", *requests: Any, turn: int | None = None) -> list[Command]:
        """Let the model of a turn answer, by default of the newest under way."""
        active = self.state.turn if turn is None else self.state.active[turn]
        assert active is not None
        return self.take(ModelReplied(active.call, text, tuple(requests)), turn=active.number)

    def kinds(self) -> list[str]:
        """The kinds of the events so far."""
        return [type(event.data).__name__ for event in self.events]

    def last(self, kind: Callable[..., EventData]) -> Any:
        """The newest event of a kind."""
        return next(event.data for event in reversed(self.events) if isinstance(event.data, kind))  # type: ignore[arg-type]
