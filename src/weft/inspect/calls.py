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

#: default: the source had no value, or could not be read, and the default was used; error: there
#: was no default, and the turn failed.
How: TypeAlias = Literal["found", "not found", "default", "error"]

#: Keys of a record that do not describe its place.
_ASIDE: Final = frozenset({"ms", "found", "default"})


@dataclass(frozen=True, slots=True)
class FetchRecord:
    """A value read from outside: a variable, or the tools of a server (`mcp:NAME`)."""

    seq: int
    at: int
    origin: str
    how: How
    #: Where it was read, in words and as in the journal.
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
    """Yield the values that were read, then the failures, then the tools of servers."""
    origins = dict.fromkeys((*data.found, *data.errors))
    for origin in origins:
        record: Any = data.found.get(origin) or {}
        error = data.errors.get(origin, "")
        yield FetchRecord(
            seq=event.seq,
            at=event.at,
            origin=origin,
            how=_how(workflow, origin, record, error),
            where=_where(workflow, origin, record),
            note={name: value for name, value in record.items() if name not in _ASIDE},
            ms=record.get("ms"),
            error=error,
        )
    if data.error:  # `inspect.board` and `inspect.flow` report providers and contexts.
        origin = "flow" if data.board is None else "board"
        yield FetchRecord(event.seq, event.at, origin, "error", "", {}, error=data.error)
    for server, tools in (data.tools or {}).items():
        names = tuple(str(tool["name"]) for tool in tools)
        yield FetchRecord(event.seq, event.at, SERVER + server, "found", "", {}, tools=names)


def _how(workflow: Workflow, origin: str, record: dict[str, Any], error: str) -> How:
    if error:
        return "default" if record.get("default") else "error"
    if record.get("found") is not False:
        return "found"
    variable = workflow.spec.variables.get(origin)
    default = getattr(variable.source, "default", None) if variable else None
    return "not found" if default is None else "default"


def _where(workflow: Workflow, origin: str, record: dict[str, Any]) -> str:
    """Return where a value was read, in words."""
    parts: list[str] = []
    variable = workflow.spec.variables.get(origin)
    if "collection" in record:
        database = getattr(variable.source, "database", None) if variable else None
        query = to_json(record["query"]).decode()
        if "tenant" in record:  # Nothing was found there.
            place = f"database {database}" if database else "the workspace's database"
            field = getattr(variable.source, "field", None) if variable else None
            part = f"field {field} of collection" if field else "collection"
            place = f"{part} {record['collection']} of {place}"
            return f"{place}, query {query}, tenant {record['tenant']}"
        collection = ".".join(filter(None, (database, record["collection"])))
        parts.append(f"{collection} {query}")
    if "service" in record:
        method = f"{record['method']} " if "method" in record else ""
        parts.append(f"{method}{record['service']}.{record['operation']}")
    if "path" in record:
        parts.append(str(record["path"]))
    if record.get("cached"):
        parts.append("as it was kept")
    if "attempts" in record:
        parts.append(f"after {record['attempts']} attempts")
    kind = variable.source.type if variable else ""
    return ", ".join((f"{kind} {parts[0]}".strip(), *parts[1:])) if parts else kind


@dataclass(frozen=True, slots=True)
class Consultation:
    """A call of the agent's model by a tool."""

    seq: int
    at: int
    question: str
    text: str
    model: str
    answerer: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class SurfaceRecord:
    """A component that a tool showed a person without waiting for an answer."""

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
    #: The hook point, and whether the run continued when it failed.
    hook: HookPoint | None = None
    variable: str = ""
    went_on: bool = True
    #: The last reported progress.
    progress: tuple[float, str] | None = None
    #: The worker that left the call before; empty if it was performed once.
    abandoned_by: str = ""
    consulted: tuple[Consultation, ...] = ()
    surfaces: tuple[SurfaceRecord, ...] = ()
    edits: tuple[Edit, ...] = ()
    #: What it refreshed from outside.
    fetched: tuple[FetchRecord, ...] = ()

    @property
    def at_boundary(self) -> bool:
        """Whether it is a hook or lifecycle call and not a tool that a model asked for."""
        return self.hook not in (None, "handoff")


def hook_edits(workflow: Workflow, step: Step, data: ToolReturned) -> tuple[Edit, ...]:
    """Return the changes of a hook to the prompt or the reply of its agent."""
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


#: The parts of a prompt that hooks may change, in the order of their effect.
_SENT: tuple[Literal["system", "messages", "last"], ...] = ("system", "messages", "last")


def run_continues(step: Step) -> bool:
    """Return whether the run continued after a hook or lifecycle tool failed."""
    ends = (command.data for command in step.commands if isinstance(command, Record))
    failed = any(isinstance(event, TurnFailed) for event in ends)
    return not failed and step.after.ending == step.before.ending
