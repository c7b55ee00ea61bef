"""The kinds of events about context, calls, questions, parallel work, timers and boards."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypedDict, get_args

from weft.findings import Json
from weft.spec.tools import HookType

Values: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class ContextAssembled:
    """The prompt of an agent: origins, sizes, what was left out, and the hash of its text."""

    agent: str
    call: int
    manifest: Values
    digest: str


class BoardInput(TypedDict, total=False):
    """What components and providers gave an agent of a board before it works."""

    #: The decision of the components: whether the agent works, how long it waits if not, and why.
    verdict: Literal["continue", "skip", "defer", "block"]
    seconds: float
    detail: str
    #: The inputs, and the state of components, as components have changed them.
    inputs: list[Values]
    state: Values
    #: The results of providers, and the index of the one that each engine gets.
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

    `found` has for each origin the query and the time it took, `errors` why nothing was read.
    """

    found: Values
    errors: dict[str, str]
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
    error: str = ""


@dataclass(frozen=True, slots=True)
class VariableSet:
    """A variable has a new value."""

    name: str
    value: Json
    #: What set it: `trigger`, `tool:NAME`, `source:KIND`, `computed`, or `edit` in a fork.
    writer: str


@dataclass(frozen=True, slots=True)
class VariableRefused:
    """A value for a variable was not valid; the variable keeps its value."""

    name: str
    writer: str
    error: str


#: The code of a board. engine: the function that works in place of a model; publish: the functions
#: and components that decide about artifacts; post_publish, error: components that are notified.
BoardHook: TypeAlias = Literal["engine", "publish", "post_publish", "error"]

#: The code of a flow. step: the function of a step; apply: the method that applies a reply.
StepHook: TypeAlias = Literal["step", "apply"]

#: Where the engine calls code that no model requested: around runs, turns and messages
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
    #: Whether it is called with the fields of a structured output, not at the model's request.
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
    #: The worker that abandoned the call before: its effects may have happened twice.
    abandoned_by: str = ""


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """A tool gave no result, and why."""

    id: str
    error: str
    kind: FailureKind = "error"
    #: Of the code of a step: type, message and stack of the exception.
    exception: Values | None = None
    #: As in ToolReturned.
    abandoned_by: str = ""


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
    #: Hash of tool and payload: the answer counts for this question only.
    digest: str = ""
    expires_at: int | None = None
    #: The answer if none is given in time; if None, the tool that asks fails.
    otherwise: Json = None
    #: The variables that its answer sets.
    sets: tuple[str, ...] = ()
    #: The component that shows it, and where.
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
    #: The id of the message; None for an answer to a named request.
    message_id: str | None = None
    #: The role or group as whose member the user answered; empty where none was needed.
    role: str = ""


@dataclass(frozen=True, slots=True)
class RequestExpired:
    """A request was not answered in time."""

    id: str


#: case, otherwise: a branch; again, done, limit: a loop; low_confidence: a result below
#: the required confidence; failure, recovery: a failure path; rejected, timed_out: an approval.
BranchReason: TypeAlias = Literal[
    "case", "otherwise", "again", "done", "limit", "low_confidence", "failure", "recovery",
    "rejected", "timed_out",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Forked:
    """The members of a group take their turns in parallel from here on."""

    name: str
    members: tuple[str, ...]
    #: Of a flow: the lane in which its paths begin.
    lane: str = ""


@dataclass(frozen=True, slots=True)
class Joined:
    """A group is done: the messages and values of these turns are merged."""

    name: str
    fork: int
    turns: tuple[int, ...]
    #: The message of the group in place of those of its members.
    text: str | None = None
    #: Of a flow: how each path ended.
    results: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Branched:
    """A flow continues elsewhere than at the next step, and why."""

    source: str
    target: str
    why: BranchReason
    #: The lane; empty for the main line.
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

#: Why artifacts did not reach a subscription. failed: the activation failed; expired: the others
#: did not arrive in time; no_key: they have no key to be joined by; predicate: a condition could
#: not be evaluated; wake_limit: the agent was woken too often; skipped, blocked: a component has
#: decided so; unfinished: the run has ended.
MissedReason: TypeAlias = Literal[
    "failed", "expired", "no_key", "predicate", "wake_limit", "skipped", "blocked", "unfinished"
]


@dataclass(frozen=True, slots=True)
class ArtifactPublished:
    """An artifact was published, with the subscriptions that want it."""

    type: str
    payload: Json
    #: Who published it: an agent, `user:NAME` or `schedule:AGENT`.
    by: str
    #: Its id, which does not depend on other events: not every agent may know of them.
    id: str
    tags: tuple[str, ...] = ()
    partition: str = ""
    visibility: Values = field(default_factory=lambda: dict[str, Json](PUBLIC))
    #: Milliseconds until it is visible.
    delay: int = 0
    #: The subscriptions that want it, each with the key it is joined by.
    wakes: dict[str, str] = field(default_factory=dict[str, str])
    #: The runs of other correlations that collect it, each with the subscription it does that for.
    forwarded_to: dict[str, str] = field(default_factory=dict[str, str])
    #: The subscriptions that wait for a number of artifacts, and whose agents may see this one.
    counts: tuple[str, ...] = ()
    #: The subscriptions whose conditions could not be evaluated, and why.
    errors: dict[str, str] = field(default_factory=dict[str, str])
    #: The agent it is given to, whatever else it would wake; empty for all.
    direct: str = ""
    version: int = 1


@dataclass(frozen=True, slots=True)
class ArtifactArrived:
    """An artifact of another run arrived, for a subscription that collects across correlations."""

    mail: str
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
    """All batches are delivered now, including those that are not full."""

    user: str
