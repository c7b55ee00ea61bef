"""Events: everything that happens in a run, as the journal keeps it.

An event is an envelope around one of the frozen types below, or of those about calls and context
in `kinds`. The union is closed: a journal holds nothing else. Journals stay readable: a kind is
never renamed (`KINDS`), and a new field has a default that is true for runs recorded before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from weft.engine.events.kinds import (
    ArtifactArrived,
    ArtifactPublished,
    BatchesFlushed,
    Branched,
    ContextAssembled,
    ContextFetched,
    DeliveryDeferred,
    DeliveryMissed,
    DocumentWritten,
    Forked,
    Joined,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    SurfaceShown,
    TimerFired,
    TimerSet,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    Values,
    VariableRefused,
    VariableSet,
)

#: The format of the events of a run, as its first event records it.
FORMAT: Final = 1

#: How a run ended: by a rule, by a failure, by request, or because its turns were used up.
Outcome: TypeAlias = Literal["completed", "failed", "cancelled", "max_turns"]

#: Who answered in the place of a model.
Answerer: TypeAlias = Literal["model", "sample", "designer", "you", "replay", "script"]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins: of which workflow, for whom, and with which values."""

    workflow: str
    #: The package, and which kinds of variables are hidden: in production, or by a switch.
    digest: str
    app: str
    user: str
    values: Values
    #: Whether the user's first message comes with it: as the answer to the first chat request.
    with_message: bool = False
    #: The model that answers for every agent of this run, whatever the package says.
    model: str | None = None
    format: int = FORMAT
    #: The variables whose values were given at the start.
    given: tuple[str, ...] = ()
    #: The input: the values of a form, the body of a webhook, or the changed document.
    input: Values | None = None
    #: Of a board: the correlation; the subscription it collects for beyond correlations; the agent
    #: whose schedule it keeps.
    correlation: str = ""
    collects: str = ""
    schedule: str = ""
    #: The name by which the run is found while it is open, if that is not its correlation.
    name: str = ""


@dataclass(frozen=True, slots=True)
class RunForked:
    """The events before this one were copied from another run."""

    parent: str
    seq: int
    model: str | None = None


@dataclass(frozen=True, slots=True)
class MessageShown:
    """The workflow itself tells the user something; no agent sees it."""

    text: str


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """An agent takes a turn; the envelope has the number of the turn."""

    agent: str
    #: The event that started this turn in parallel with others; 0 for a turn of its own.
    fork: int = 0
    #: Of a board: the subscription that woke the agent, and the artifacts it got by it. Of a flow:
    #: the step, the path of a fork it stands in, which attempt it is, and the turn that it undoes.
    step: str = ""
    inputs: tuple[str, ...] = ()
    lane: str = ""
    attempt: int = 1
    undoes: int = 0


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call that a model asks for; its id is unique in the run."""

    id: str
    tool: str
    arguments: Values
    #: Why its arguments are invalid; empty if they are valid.
    error: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of a model call; None where it is not known."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None


#: The writer of what a fork changes.
EDIT: Final = "edit"

#: The actor of what is read from outside, and of written documents.
SOURCE: Final = "source"

#: The usage of a call that is not known.
NO_USAGE: Final = Usage()

#: The finish reason of a truncated reply (token limit).
CUT: Final = "length"


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """A model answered: which of the calls of its turn."""

    call: int
    text: str
    tool_requests: tuple[ToolRequest, ...] = ()
    usage: Usage = NO_USAGE
    model: str = ""
    answerer: Answerer = "model"
    #: Why the reply ends, as the provider says it; empty if it is complete.
    finish_reason: str = ""
    #: Of a fallback: the model it replaced, and why that did not answer; empty otherwise.
    instead_of: str = ""
    #: What a person reads of a structured reply; None where that is the text itself.
    shown: str | None = None
    #: Whether people read it only after its automatic tool has accepted it, as MessageSent.
    held: bool = False
    #: Why earlier attempts gave no answer.
    retries: tuple[str, ...] = ()
    #: On a board: why the output cannot be published; empty if it can.
    output_error: str = ""


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """A model gave no usable answer, after all attempts."""

    call: int
    error: str
    attempts: int = 1
    retries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputRefused:
    """A reply is not valid; its agent gets the error and tries again."""

    call: int
    error: str


@dataclass(frozen=True, slots=True)
class ModelConsulted:
    """A tool asked a model during its call."""

    call: str
    #: Hash of the question: a repeated call that asks the same gets the same reply.
    digest: str
    text: str
    usage: Usage = NO_USAGE
    model: str = ""
    answerer: Answerer = "model"


@dataclass(frozen=True, slots=True)
class MessageSent:
    """The reply of an agent after its hooks, or after its automatic tool has accepted it."""

    agent: str
    text: str
    #: Whether its automatic tool has still to accept it: another of these follows then.
    held: bool = False


@dataclass(frozen=True, slots=True)
class ConditionJudged:
    """The condition of a handoff was judged; `error` says why there is no verdict.

    Either a model has judged, or descriptions were compared with `text`: then `scores` has the
    similarity of each, by rule.
    """

    rule: int
    holds: bool
    text: str
    error: str = ""
    usage: Usage = NO_USAGE
    model: str = ""
    answerer: Answerer = "model"
    scores: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """An agent is done with its turn."""

    agent: str


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """A turn failed; its run fails with it, unless its group or its mode continues."""

    agent: str
    error: str
    kind: Literal[
        "model",
        "output",
        "tool",
        "deadline",
        "source",
        "hook",
        "guard",
        "low_confidence",
        "rejected",
    ]
    #: Of a step: which, the attempt, type, message and stack of the error, and a hash of its input.
    failure: Values | None = None


@dataclass(frozen=True, slots=True)
class HandedOff:
    """The turn passes to another agent, a group, the user, or the end.

    `rule` is the index of the handoff that decided, if one did. `evaluated` has the rules that were
    evaluated, in order, and whether the condition of each holds.
    """

    source: str
    target: str
    why: Literal[
        "rule", "fallback", "pattern", "default", "start", "reply_limit", "joined", "chosen"
    ]
    rule: int | None = None
    evaluated: dict[str, bool] = field(default_factory=dict[str, bool])


@dataclass(frozen=True, slots=True)
class StopRequested:
    """The run is asked to end: now, or after the turn under way."""

    mode: Literal["now", "after_turn"]
    user: str


@dataclass(frozen=True, slots=True)
class RunEnding:
    """The run is about to end; its last hooks and documents come first."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run has ended."""

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
    | ModelConsulted
    | SurfaceShown
    | MessageSent
    | ContextFetched
    | DocumentWritten
    | ConditionJudged
    | VariableSet
    | VariableRefused
    | RequestOpened
    | RequestAnswered
    | RequestExpired
    | TurnEnded
    | TurnFailed
    | HandedOff
    | Forked
    | Joined
    | Branched
    | TimerSet
    | TimerFired
    | ArtifactPublished
    | ArtifactArrived
    | DeliveryMissed
    | DeliveryDeferred
    | BatchesFlushed
    | StopRequested
    | RunEnding
    | RunEnded
)

#: The kinds by their names in journals. A class that is renamed keeps its old name here.
KINDS: Final[dict[str, type[EventData]]] = {kind.__name__: kind for kind in get_args(EventData)}

#: The name of each kind.
KIND_NAMES: Final[dict[type[EventData], str]] = {kind: name for name, kind in KINDS.items()}


class Event(NamedTuple):
    """One entry of a journal.

    `cause` is the number of the event that made this one happen; 0 for what came from outside.
    `turn` is the number of the turn it belongs to; 0 for the run itself.
    A tuple, like everything that is made with every step: it takes a third of the time.
    """

    seq: int
    at: int
    actor: str
    cause: int
    turn: int
    data: EventData
