"""Events about calls of tools and about questions to people; `events` has the union of all."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.engine.events.context import Values
from weft.findings import Json

#: Why a tool gave no result. refused: it declines; retry: the model should give other arguments.
FailureKind: TypeAlias = Literal["error", "timeout", "refused", "retry", "unknown"]


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A tool is about to be called."""

    id: str
    tool: str
    arguments: Values
    #: Called with the fields of a structured output, not because the model asked.
    auto: bool = False
    #: The boundary it is called at, if no agent asked for it: `before_agent`, `computed:NAME`, ...
    #: What such a call is given follows from the state and is not kept.
    point: str = ""


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool gave its result."""

    id: str
    value: Json
    #: How far it said last it had come: a share from 0 to 1, and words.
    progress: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """A tool gave no result; the agent is told why."""

    id: str
    error: str
    kind: FailureKind = "error"
    #: Of the code of a step: type, message and stack of what it raised.
    exception: Values | None = None


@dataclass(frozen=True, slots=True)
class SurfaceShown:
    """A tool shows a person something and waits for nobody."""

    call: str
    number: int
    tool: str
    component: str
    mode: Literal["inline", "artifact"]
    payload: Json


@dataclass(frozen=True, slots=True)
class RequestOpened:
    """A person is asked something."""

    id: str
    kind: Literal["chat", "ui"]
    agent: str
    #: The tool that asks, its call, and which of its questions this is.
    tool: str | None = None
    call: str | None = None
    number: int = 0
    payload: Json = None
    #: Hash of tool and payload: the answer is to this question and to no other.
    digest: str = ""
    expires_at: int | None = None
    #: What holds when nobody answers in time; None fails the asking tool.
    otherwise: Json = None
    #: The variables that its answer sets.
    sets: tuple[str, ...] = ()
    #: What shows it, and where.
    component: str = ""
    mode: str = ""
    #: Who is asked, as `role:NAME`; empty for the user whose run it is.
    addressee: str = ""


@dataclass(frozen=True, slots=True)
class RequestAnswered:
    """A person answered."""

    id: str
    value: Json
    user: str
    #: What the sender calls the message this was; None for an answer to a named question.
    message_id: str | None = None
    #: The role or group as whose member the user answered; empty where none was needed.
    role: str = ""


@dataclass(frozen=True, slots=True)
class RequestExpired:
    """Nobody answered in time."""

    id: str
