"""What was read from outside, and written there: where, how long it took, and what was wrong."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pydantic_core import to_json

from weft.engine.board.turn import BOARD
from weft.engine.events import ContextFetched, Event, Values
from weft.engine.flow.turn import FLOW
from weft.runtime.variables.fetching import SERVER
from weft.runtime.workflow import Workflow

#: default: nothing was found or it could not be read, and it has its default; fault: it has none,
#: and its turn failed.
How: TypeAlias = Literal["found", "not found", "default", "fault"]

#: What is told of a reading beside where it was made.
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
    fault: str = ""


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """The document of an entity variable that was written, or why it was not.

    `value` is the event whose value was to be written.
    """

    seq: int
    at: int
    name: str
    value: int
    fault: str = ""


def fetch_records(workflow: Workflow, event: Event, data: ContextFetched) -> Iterator[FetchRecord]:
    """Yield what was read, then what could not be, then what servers offer."""
    origins = dict.fromkeys((*data.found, *data.faults))
    for own in (BOARD, FLOW):  # `inspect.board` and `inspect.flow` say what was given.
        if own not in data.faults:
            origins.pop(own, None)
    for origin in origins:
        told: Any = data.found.get(origin) or {}
        fault = data.faults.get(origin, "")
        yield FetchRecord(
            seq=event.seq,
            at=event.at,
            origin=origin,
            how=_how(workflow, origin, told, fault),
            where=_where(workflow, origin, told),
            note={name: it for name, it in told.items() if name not in _ASIDE},
            ms=told.get("ms"),
            fault=fault,
        )
    for server, tools in (data.tools or {}).items():
        names = tuple(str(it["name"]) for it in tools)
        yield FetchRecord(event.seq, event.at, SERVER + server, "found", "", {}, tools=names)


def _how(workflow: Workflow, origin: str, told: dict[str, Any], fault: str) -> How:
    if fault:
        return "default" if told.get("default") else "fault"
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
