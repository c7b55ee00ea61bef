"""One step of a run: what came in, all that follows from it, and what the world is to do."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from weft.context.assembly import Assembly, assemble
from weft.engine.commands import Assemble, CallModel, CallTool, Record
from weft.engine.events import ContextAssembled, Event, EventData
from weft.engine.reduce import reduce
from weft.engine.state import State
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that has no number yet."""

    actor: str
    data: EventData
    cause: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """The events to write, the state after them, and the effects to perform afterwards."""

    events: list[Event]
    state: State
    effects: list[CallModel | CallTool]
    #: What the model calls among the effects send.
    assembly: Assembly | None


def decide(workflow: Workflow, state: State, drafts: Iterable[Draft], now: int) -> Decision:
    """Follow drafts to everything that needs nothing from the world.

    What follows from an event comes right after it, before its neighbours: a second tool call of
    one reply sees what the first has set.
    """
    queue = deque(drafts)
    events: list[Event] = []
    effects: list[CallModel | CallTool] = []
    assembly: Assembly | None = None
    while queue:
        draft = queue.popleft()
        event = Event(state.seq + 1, now, draft.actor, draft.cause, draft.data)
        state, commands = reduce(workflow.book, state, event)
        events.append(event)
        following: list[Draft] = []
        for command in commands:
            match command:
                case Record(data=data, actor=actor):
                    following.append(Draft(actor, data, event.seq))
                case Assemble():
                    assembly = assemble(workflow.views[command.agent], state)
                    following.append(Draft("engine", assembled(command, assembly), event.seq))
                case CallModel() | CallTool():
                    effects.append(command)
        queue.extendleft(reversed(following))
    return Decision(events, state, effects, assembly)


def assembled(command: Assemble, assembly: Assembly) -> ContextAssembled:
    """Return the event that says what an agent is about to see."""
    return ContextAssembled(
        command.agent, command.turn, command.call, assembly.manifest, assembly.digest
    )
