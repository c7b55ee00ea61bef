"""Events: everything that happens in a run, as the journal keeps it.

An event is an envelope around one of the frozen types below. The union is closed: a journal holds
nothing else, and whoever reads one knows every kind there is.
"""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from weft.findings import Json

Values: TypeAlias = dict[str, Json]

#: How a run ended: by a rule, by a failure, by request, or because its turns were used up.
Outcome: TypeAlias = Literal["completed", "failed", "cancelled", "max_turns"]

#: Why a tool gave no result. refused: it declines; retry: the model should give other arguments.
FailureKind: TypeAlias = Literal["error", "timeout", "refused", "retry", "unknown"]

#: Who answered when an agent needed a model.
Answerer: TypeAlias = Literal["model", "sample", "you", "replay", "script"]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins: of which workflow, for whom, with which values and which first words."""

    workflow: str
    digest: str
    app: str
    user: str
    values: Values
    message: str | None = None
    #: The model that answers for every agent of this run, whatever the package says.
    model: str | None = None


@dataclass(frozen=True, slots=True)
class RunForked:
    """From here on this run goes its own way; everything before it was copied from another."""

    parent: str
    seq: int
    model: str | None = None


@dataclass(frozen=True, slots=True)
class MessageShown:
    """The workflow itself tells the user something; no agent sees it."""

    text: str


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """An agent gets the word."""

    agent: str
    turn: int


@dataclass(frozen=True, slots=True)
class ContextAssembled:
    """What the agent is about to see: origins, sizes, what was left out, hash of what is sent."""

    agent: str
    turn: int
    call: int
    manifest: Values
    digest: str


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call that a model asks for; its id is the only one of its kind in the run."""

    id: str
    tool: str
    arguments: Values


@dataclass(frozen=True, slots=True)
class Usage:
    """What a model call took; None where nobody said."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None


#: The writer of what a fork changes.
EDIT: Final = "edit"

#: Nothing is known about what a call took.
NO_USAGE: Final = Usage()

#: How providers call it that a reply was cut at its longest.
CUT: Final = "length"


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """A model answered; which one is told by the turn and the number of the call in it."""

    turn: int
    call: int
    text: str
    tool_requests: tuple[ToolRequest, ...] = ()
    usage: Usage = NO_USAGE
    model: str = ""
    answerer: Answerer = "model"
    #: Why the reply ends where it ends, in the provider's word; empty where it was simply done.
    finish: str = ""
    #: Of a fallback: which model was to answer and why it did not; empty where that one answered.
    instead_of: str = ""


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """A model gave no usable answer, after all tries."""

    turn: int
    call: int
    error: str
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class OutputRefused:
    """A reply does not fit the model its agent is bound to; the agent is told and tries again."""

    turn: int
    call: int
    fault: str


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A tool is about to be called."""

    id: str
    tool: str
    arguments: Values
    #: Called with the fields of a structured output, not because the model asked.
    auto: bool = False


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool gave its result."""

    id: str
    value: Json


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """A tool gave no result; the agent is told why."""

    id: str
    error: str
    kind: FailureKind = "error"


@dataclass(frozen=True, slots=True)
class VariableSet:
    """A variable has a new value."""

    name: str
    value: Json
    #: What set it: `trigger`, `tool:NAME`, or `edit` in a fork.
    writer: str


@dataclass(frozen=True, slots=True)
class VariableRefused:
    """A value was offered for a variable and did not fit; the variable keeps its value."""

    name: str
    writer: str
    fault: str


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


@dataclass(frozen=True, slots=True)
class RequestAnswered:
    """A person answered."""

    id: str
    value: Json
    user: str
    #: What the sender calls the message this was; None for an answer to a named question.
    message_id: str | None = None


@dataclass(frozen=True, slots=True)
class RequestExpired:
    """Nobody answered in time."""

    id: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """An agent has said what it had to say."""

    agent: str
    turn: int


@dataclass(frozen=True, slots=True)
class HandedOff:
    """The word passes on; `rule` is the index of the handoff that decided, if one did."""

    source: str
    target: str
    why: Literal["rule", "fallback", "pattern", "default", "start", "reply_limit"]
    rule: int | None = None


@dataclass(frozen=True, slots=True)
class StopAsked:
    """Somebody wants the run to end: now, or after the turn under way."""

    mode: Literal["now", "after_turn"]
    user: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is over."""

    outcome: Outcome
    reason: str


EventData: TypeAlias = (
    RunStarted
    | RunForked
    | MessageShown
    | TurnStarted
    | ContextAssembled
    | ModelReplied
    | ModelFailed
    | OutputRefused
    | ToolCalled
    | ToolReturned
    | ToolFailed
    | VariableSet
    | VariableRefused
    | RequestOpened
    | RequestAnswered
    | RequestExpired
    | TurnEnded
    | HandedOff
    | StopAsked
    | RunEnded
)

KINDS: Final[dict[str, type[EventData]]] = {
    kind.__name__: kind
    for kind in (
        RunStarted, RunForked, MessageShown, TurnStarted, ContextAssembled, ModelReplied,
        ModelFailed, OutputRefused, ToolCalled, ToolReturned, ToolFailed, VariableSet,
        VariableRefused, RequestOpened, RequestAnswered, RequestExpired, TurnEnded, HandedOff,
        StopAsked, RunEnded,
    )
}  # fmt: skip


class Event(NamedTuple):
    """One entry of a journal.

    `cause` is the number of the event that made this one happen; 0 for what came from outside.
    A tuple, like everything that is made with every step: it takes a third of the time.
    """

    seq: int
    at: int
    actor: str
    cause: int
    data: EventData
