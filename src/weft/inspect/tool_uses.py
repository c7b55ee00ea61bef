"""Calls of tools and of functions at boundaries: what they were given, and what came of them."""

from dataclasses import dataclass
from typing import Literal, cast

from weft.context.assembly import assemble
from weft.engine.commands import Record
from weft.engine.events import (
    ModelConsulted,
    SurfaceShown,
    ToolReturned,
    TurnFailed,
    Usage,
    Values,
)
from weft.engine.turn.hook_points import HANDOFF
from weft.findings import Json
from weft.inspect.fetched import FetchRecord
from weft.inspect.steps import Step
from weft.runtime.tools.hooks import about_to_say, apart
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Consultation:
    """A question of a tool's own to the model of its agent."""

    seq: int
    at: int
    question: str
    text: str
    model: str
    answerer: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class SurfaceRecord:
    """Something that a tool showed a person without waiting for an answer."""

    seq: int
    at: int
    tool: str
    component: str
    mode: str
    payload: Json


@dataclass(frozen=True, slots=True)
class Edit:
    """What a hook changed, before and after.

    system: the instructions; messages: all others; last: the last of them; message: the reply.
    """

    what: Literal["system", "messages", "last", "message"]
    before: Json
    after: Json


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call. `outcome` is open, returned, or the kind of its failure."""

    id: str
    tool: str
    arguments: Values
    seq: int
    at: int
    auto: bool = False
    outcome: str = "open"
    #: From the call to the result, without the time it waited for people to answer.
    seconds: float | None = None
    waited_seconds: float = 0.0
    value: Json = None
    error: str | None = None
    #: The boundary it was called at, and whether all went on when it failed.
    point: str = ""
    went_on: bool = True
    #: How far it said last it had come.
    progress: tuple[float, str] | None = None
    consulted: tuple[Consultation, ...] = ()
    surfaces: tuple[SurfaceRecord, ...] = ()
    edits: tuple[Edit, ...] = ()
    #: What it has read from outside once more.
    fetched: tuple[FetchRecord, ...] = ()

    @property
    def at_boundary(self) -> bool:
        """Whether it is no tool that a model asked for; handing off is one."""
        return self.point not in ("", HANDOFF)


def consultation(step: Step, data: ModelConsulted) -> Consultation:
    """Return the record of a tool's question to a model."""
    event = step.event
    return Consultation(
        event.seq, event.at, data.digest, data.text, data.model, data.answerer, data.usage
    )


def surface(step: Step, data: SurfaceShown) -> SurfaceRecord:
    """Return the record of what was shown."""
    event = step.event
    return SurfaceRecord(event.seq, event.at, data.tool, data.component, data.mode, data.payload)


def edits_of(workflow: Workflow, step: Step, data: ToolReturned) -> tuple[Edit, ...]:
    """Return what a hook changed of what its agent is sent, or says."""
    active = step.before.active.get(step.event.turn)
    view = workflow.views.get(active.agent) if active else None
    value = data.value
    if active is None or view is None or not isinstance(value, dict):
        return ()
    changes = cast("dict[str, Json]", value)
    if active.stage == "sending" and "message" in changes:
        return (Edit("message", about_to_say(step.before, active.number), changes["message"]),)
    if active.stage != "reply":
        return ()
    system, messages = apart(assemble(view, step.before, active.number).messages)
    last = messages[-1]["content"] if messages else None
    before: dict[str, Json] = {"system": system, "messages": cast("Json", messages), "last": last}
    return tuple(Edit(it, before[it], changes[it]) for it in _SENT if it in changes)


#: What hooks may change of what is sent, in the order it takes effect.
_SENT: tuple[Literal["system", "messages", "last"], ...] = ("system", "messages", "last")


def goes_on(step: Step) -> bool:
    """Tell whether all went on after a function at a boundary had failed."""
    ends = (it.data for it in step.commands if isinstance(it, Record))
    failed = any(isinstance(it, TurnFailed) for it in ends)
    return not failed and step.after.ending == step.before.ending
