"""Calls of tools, hooks and sources: their arguments, results and durations."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from pydantic_core import to_json

from weft.context.prompt import assemble
from weft.engine.commands import Record
from weft.engine.events import (
    ContextFetched,
    Event,
    ModelConsulted,
    SurfaceShown,
    ToolReturned,
    TurnFailed,
    Usage,
    Values,
)
from weft.engine.events.kinds import HookPoint
from weft.findings import Json
from weft.inspect.steps import Step
from weft.runtime.tools.hooks import about_to_say, apart
from weft.runtime.variables.fetching import SERVER
from weft.runtime.workflow import Workflow

#: default: nothing was found or it could not be read, and it has its default; error: it has none,
#: and its turn failed.
How: TypeAlias = Literal["found", "not found", "default", "error"]

#: Details of a reading that are not part of its place.
_ASIDE: Final = frozenset({"ms", "found", "default"})


@dataclass(frozen=True, slots=True)
class FetchRecord:
    """Something that was read from outside: a variable, or the tools of a server (`mcp:NAME`)."""

    seq: int
    at: int
    origin: str
    how: How
    #: Where it was looked for, in words and as the journal says.
    where: str
    note: Values
    ms: float | None = None
    #: Of a server, the tools it offers.
    tools: tuple[str, ...] | None = None
    #: Why it could not be read.
    error: str = ""


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """The document of an entity variable that was written, or why it was not.

    `value` is the event whose value was to be written.
    """

    seq: int
    at: int
    name: str
    value: int
    error: str = ""


def fetch_records(workflow: Workflow, event: Event, data: ContextFetched) -> Iterator[FetchRecord]:
    """Yield what was read, then what could not be, then what servers offer."""
    origins = dict.fromkeys((*data.found, *data.faults))
    for origin in origins:
        told: Any = data.found.get(origin) or {}
        error = data.faults.get(origin, "")
        yield FetchRecord(
            seq=event.seq,
            at=event.at,
            origin=origin,
            how=_how(workflow, origin, told, error),
            where=_where(workflow, origin, told),
            note={name: value for name, value in told.items() if name not in _ASIDE},
            ms=told.get("ms"),
            error=error,
        )
    if data.error:  # What was given, `inspect.board` and `inspect.flow` say.
        origin = "flow" if data.board is None else "board"
        yield FetchRecord(event.seq, event.at, origin, "error", "", {}, error=data.error)
    for server, tools in (data.tools or {}).items():
        names = tuple(str(tool["name"]) for tool in tools)
        yield FetchRecord(event.seq, event.at, SERVER + server, "found", "", {}, tools=names)


def _how(workflow: Workflow, origin: str, told: dict[str, Any], error: str) -> How:
    if error:
        return "default" if told.get("default") else "error"
    if told.get("found") is not False:
        return "found"
    variable = workflow.spec.variables.get(origin)
    default = getattr(variable.source, "default", None) if variable else None
    return "not found" if default is None else "default"


def _where(workflow: Workflow, origin: str, told: dict[str, Any]) -> str:
    """Say where something was looked for."""
    parts: list[str] = []
    variable = workflow.spec.variables.get(origin)
    if "collection" in told:
        database = getattr(variable.source, "database", None) if variable else None
        collection = ".".join(filter(None, (database, told["collection"])))
        parts.append(f"{collection} {to_json(told['query']).decode()}")
    if told.get("tenant"):
        parts.append(f"tenant {told['tenant']}")
    if "service" in told:
        parts.append(f"{told['service']}.{told['operation']}")
    if "path" in told:
        parts.append(str(told["path"]))
    if told.get("cached"):
        parts.append("as it was kept")
    if "attempts" in told:
        parts.append(f"after {told['attempts']} attempts")
    kind = variable.source.type if variable else ""
    return ", ".join((f"{kind} {parts[0]}".strip(), *parts[1:])) if parts else kind


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
    hook: HookPoint | None = None
    variable: str = ""
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
        """Whether it is a hook or lifecycle call and not a tool that a model asked for."""
        return self.hook not in (None, "handoff")


def consultation_record(step: Step, data: ModelConsulted) -> Consultation:
    """Return the record of a tool's question to a model."""
    event = step.event
    return Consultation(
        event.seq, event.at, data.digest, data.text, data.model, data.answerer, data.usage
    )


def surface_record(step: Step, data: SurfaceShown) -> SurfaceRecord:
    """Return the record of what was shown."""
    event = step.event
    return SurfaceRecord(event.seq, event.at, data.tool, data.component, data.mode, data.payload)


def hook_edits(workflow: Workflow, step: Step, data: ToolReturned) -> tuple[Edit, ...]:
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
    return tuple(Edit(part, before[part], changes[part]) for part in _SENT if part in changes)


#: What hooks may change of what is sent, in the order it takes effect.
_SENT: tuple[Literal["system", "messages", "last"], ...] = ("system", "messages", "last")


def run_continues(step: Step) -> bool:
    """Return whether the run continued after a hook or lifecycle tool failed."""
    ends = (command.data for command in step.commands if isinstance(command, Record))
    failed = any(isinstance(event, TurnFailed) for event in ends)
    return not failed and step.after.ending == step.before.ending
