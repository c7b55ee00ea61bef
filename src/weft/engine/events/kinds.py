"""The kinds of events about context, calls, questions, parallel work, timers and boards."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypedDict, get_args

from weft.findings import Json
from weft.spec.tools import HookType

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


#: The code of a board. engine: the function that works in place of a model; publish: what decides
#: about artifacts before they are published; post_publish, error: components that hear of both.
BoardHook: TypeAlias = Literal["engine", "publish", "post_publish", "error"]

#: The code of a flow. step: the function of a step; apply: what turns a reply into changes.
StepHook: TypeAlias = Literal["step", "apply"]

#: Where the engine calls code that no model has asked for: around runs, turns and messages
#: (`HookType`), and the code of boards and flows. computed, trigger: the function of a variable;
#: handoff: the tool by which a model hands off, which the engine performs itself.
HookPoint: TypeAlias = Literal[HookType, "computed", "trigger", "handoff", BoardHook, StepHook]

BOARD_HOOKS: Final[frozenset[str]] = frozenset(get_args(BoardHook))
STEP_HOOKS: Final[frozenset[str]] = frozenset(get_args(StepHook))

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
    #: The hook point it is called at; None if the model asked for it. The arguments of such a call
    #: follow from the state and are not stored.
    hook: HookPoint | None = None
    #: The variable whose function it is, at the hook points `computed` and `trigger`.
    variable: str = ""


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool gave its result."""

    id: str
    value: Json
    #: Its last progress report: a share from 0 to 1, and a text.
    progress: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """A tool gave no result, and why."""

    id: str
    error: str
    kind: FailureKind = "error"
    #: Of the code of a step: type, message and stack of what it raised.
    exception: Values | None = None


@dataclass(frozen=True, slots=True)
class SurfaceShown:
    """A tool shows a person something without waiting."""

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
    #: The answer if nobody answers in time; None fails the tool that asks.
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
    """A request was not answered in time."""

    id: str


#: case, otherwise: a branch; again, done, limit: a loop; unsure: a result below the confidence;
#: failure, recovery: a failure path; rejected, late: an approval.
BranchReason: TypeAlias = Literal[
    "case", "otherwise", "again", "done", "limit", "unsure", "failure", "recovery", "rejected",
    "late",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Forked:
    """The members of a group take their turns side by side from here on."""

    name: str
    members: tuple[str, ...]
    #: Of a flow: the line of steps in which its paths begin.
    lane: str = ""


@dataclass(frozen=True, slots=True)
class Joined:
    """A group is done: what these of its turns said and set counts from here on."""

    name: str
    fork: int
    turns: tuple[int, ...]
    #: What the group says as one, in place of what its members said.
    text: str | None = None
    #: Of a flow: how each path ended.
    results: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Branched:
    """A flow continues elsewhere than at the next step, and why."""

    source: str
    target: str
    why: BranchReason
    #: The line of steps; empty for the main one.
    lane: str = ""


@dataclass(frozen=True, slots=True)
class TimerSet:
    """Something is due at a time."""

    id: str
    at: int
    why: Literal["deadline", "trigger", "board", "flow"]


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The time of a timer has come."""

    id: str


# -- boards


#: Everybody sees it.
PUBLIC: Final = {"kind": "public"}

#: Why artifacts did not come to what they were collected for. failed: the activation has failed;
#: expired: the others did not come in time; no_key: they have no key to be joined by; predicate: a
#: function could not tell whether they are wanted; breaker: the agent was woken too often; skipped,
#: blocked: a component has decided so; unfinished: the run is over.
MissedReason: TypeAlias = Literal[
    "failed", "expired", "no_key", "predicate", "breaker", "skipped", "blocked", "unfinished"
]


@dataclass(frozen=True, slots=True)
class ArtifactPublished:
    """An artifact was published, with the subscriptions that want it."""

    type: str
    payload: Json
    #: Who published it: an agent, `user:NAME` or `schedule:AGENT`.
    by: str
    #: What it is called; nothing of it counts other events, which not every agent may know of.
    id: str
    tags: tuple[str, ...] = ()
    partition: str = ""
    visibility: Values = field(default_factory=lambda: dict[str, Json](PUBLIC))
    #: Milliseconds until it can be seen by anybody.
    delay: int = 0
    #: The subscriptions that want it, each with the key it is joined by.
    wakes: dict[str, str] = field(default_factory=dict[str, str])
    #: The runs that collect it beyond its correlation, each with the subscription it does that for.
    letters: dict[str, str] = field(default_factory=dict[str, str])
    #: The subscriptions that wait for a number of artifacts, and whose agents may see this one.
    counts: tuple[str, ...] = ()
    #: The subscriptions that could not be asked, and why.
    faults: dict[str, str] = field(default_factory=dict[str, str])
    #: The agent it is given to, whatever else it would wake; empty for all.
    direct: str = ""
    version: int = 1


@dataclass(frozen=True, slots=True)
class ArtifactArrived:
    """An artifact of another run is here, for a subscription that collects beyond correlations."""

    letter: str
    id: str
    type: str
    payload: Json
    by: str
    subscription: str
    key: str
    correlation: str
    created_at: int
    tags: tuple[str, ...] = ()
    partition: str = ""
    visible_at: int = 0


@dataclass(frozen=True, slots=True)
class DeliveryMissed:
    """Artifacts did not reach a subscription, and why."""

    subscription: str
    artifacts: tuple[str, ...]
    why: MissedReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryDeferred:
    """A component defers a delivery; it is tried again at a time."""

    subscription: str
    artifacts: tuple[str, ...]
    at: int


@dataclass(frozen=True, slots=True)
class BatchesFlushed:
    """All batches are handled now, also those that are not full."""

    user: str
