"""Events about variables and about what agents are sent; `events` has the union of all."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict

from weft.findings import Json

Values: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class ContextAssembled:
    """What the agent is about to see: origins, sizes, what was left out, hash of what is sent."""

    agent: str
    call: int
    manifest: Values
    digest: str


class BoardInput(TypedDict, total=False):
    """What components and providers gave an agent of a board before it works."""

    #: Whether the agent works, and if not: until when it waits, and why.
    verdict: Literal["continue", "skip", "defer", "block"]
    seconds: float
    detail: str
    #: The inputs, and the state of components, as components have changed them.
    inputs: list[Values]
    state: Values
    #: What providers gave, and for each engine which of these it gets.
    slices: list[dict[str, Any]]
    engines: list[int]


class StepInput(TypedDict, total=False):
    """What was assembled for a step of a flow before it works."""

    context: Values | None
    messages: list[Values] | None
    ms: float
    #: Type, message and stack of the error, if it could not be assembled.
    exception: Values


@dataclass(frozen=True, slots=True)
class ContextFetched:
    """What a turn needs from outside was read; values of variables are in events beside it.

    `found` has for each origin the query and the time it took, `faults` why there was nothing.
    """

    found: Values
    faults: dict[str, str]
    #: The tools that servers offer, by server.
    tools: dict[str, list[Values]] | None = None
    #: Of a turn on a board, and of a step of a flow; `error` says why it could not be prepared.
    board: BoardInput | None = None
    step: StepInput | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class DocumentWritten:
    """The document of an entity variable was written, or why not."""

    name: str
    #: The event whose value was written.
    seq: int
    fault: str = ""


@dataclass(frozen=True, slots=True)
class VariableSet:
    """A variable has a new value."""

    name: str
    value: Json
    #: What set it: `trigger`, `tool:NAME`, `source:KIND`, `computed`, or `edit` in a fork.
    writer: str


@dataclass(frozen=True, slots=True)
class VariableRefused:
    """A value was offered for a variable and did not fit; the variable keeps its value."""

    name: str
    writer: str
    fault: str
