"""The state of a run: a fold of its journal, and nothing else.

Objects that are created with every reply are tuples: a frozen class takes three times as long.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypedDict, TypeVar, Unpack

from weft.engine.board.state import Artifact, BoardState, JsonDraft
from weft.engine.conversation.routing import Route
from weft.engine.events import Event, Outcome, ToolRequest, Usage
from weft.engine.events.kinds import BoardInput, HookPoint
from weft.engine.flow.state import FlowState, StepRun
from weft.engine.message import Message
from weft.engine.persistent import KeyLog, Log
from weft.engine.timers import Timers
from weft.findings import Json

#: How much of the first message a list shows.
PREVIEW: Final = 120

#: new: no event yet; running: something is to be done; waiting: for a person; ended.
Status: TypeAlias = Literal["new", "running", "waiting", "ended"]


class Spent(NamedTuple):
    """The cost of all model calls of a run; calls of unknown cost are counted."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    #: How many calls have no known price, and how many an unknown number of tokens.
    unpriced_calls: int = 0
    unmetered_calls: int = 0

    def plus(self, usage: Usage) -> "Spent":
        """Add one call."""
        calls, taken, given, cost, unpriced, unmetered = self
        return Spent(
            calls + 1,
            taken + (usage.input_tokens or 0),
            given + (usage.output_tokens or 0),
            cost + (usage.cost_usd or 0.0),
            unpriced + (usage.cost_usd is None),
            unmetered + (None in (usage.input_tokens, usage.output_tokens)),
        )


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """The answer of a person, and the hash of the question: it is for no other question."""

    digest: str
    value: Json


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A tool call without a result yet."""

    id: str
    turn: int
    tool: str
    arguments: dict[str, Json]
    seq: int
    auto: bool
    #: The question it waits for, and the answers it has had.
    asks: str | None = None
    answers: tuple[GivenAnswer, ...] = ()
    #: The hook point it is called at, and the variable whose function it is; see ToolCalled.
    hook: HookPoint | None = None
    variable: str = ""
    #: The replies of models to its own questions, and how many surfaces it has shown.
    consulted: tuple[GivenAnswer, ...] = ()
    surfaces: int = 0


#: before, reply, sending, after: functions are called at these boundaries, one after the other;
#: fetching: what comes from outside; computing, finishing, settling: functions of variables that
#: changed, before a reply, after an automatic tool and after the turn;
#: assembling: what is sent is put together; model: it answers; tools: they work; flushing:
#: documents are written; ending: its end is being recorded; done: it waits for others of its
#: group; approval: it waits for a person to decide.
Stage: TypeAlias = Literal[
    "before",
    "fetching",
    "computing",
    "finishing",
    "reply",
    "assembling",
    "model",
    "tools",
    "sending",
    "after",
    "settling",
    "flushing",
    "ending",
    "done",
    "approval",
]


class ActivationChanges(TypedDict, total=False):
    """The fields that change during an activation."""

    stage: Stage
    call: int
    seq: int
    missing: frozenset[str]
    refusals: int
    sent_back: int
    shown: Mapping[str, Json] | None
    reply: Json
    held: str
    next_agent: str
    hook_index: int
    edits: tuple[Mapping[str, Json], ...]
    asked: Mapping[str, Json] | None
    route: Route | None
    engine_index: int
    drafts: list[JsonDraft] | None
    candidates: tuple[list[JsonDraft], ...]
    board_input: BoardInput
    error: str
    flow: StepRun


@dataclass(frozen=True)
class Activation:
    """A turn under way. Its number identifies it in the run."""

    agent: str
    number: int
    stage: Stage = "assembling"
    #: Which model call of this turn it is, and the event that allowed it.
    call: int = 1
    seq: int = 0
    #: The calls of the last reply that have no result yet.
    missing: frozenset[str] = frozenset()
    refusals: int = 0
    #: How many of these came from an automatic tool: each of its calls has an id of its own.
    sent_back: int = 0
    #: The values in the prompt, until the model answers: a restart sends the same bytes even if
    #: variables have changed.
    shown: Mapping[str, Json] | None = None
    #: The event that forked its group; 0 if it is in none.
    fork: int = 0
    #: In a conversation: its last reply, parsed if it is structured, or what its function returned.
    reply: Json = None
    #: The text of a reply that people read only after its automatic tool has accepted it.
    held: str = ""
    #: Of turn 0: the agent that answers the user's message.
    next_agent: str = ""
    #: Whether another agent had its turn before.
    phase: bool = False
    #: The index of the function that is called at a hook point, and the changes so far.
    hook_index: int = 0
    edits: tuple[Mapping[str, Json], ...] = ()
    #: The values when the rules before a reply were last evaluated.
    asked: Mapping[str, Json] | None = None
    #: The next agent, if that was decided during the turn.
    route: Route | None = None
    #: On a board: the subscription that woke it, and the artifacts. In a flow: the step.
    step: str = ""
    inputs: tuple[Artifact, ...] = ()
    #: On a board: its name (its number counts turns of others, which the agent may not know of);
    #: how often its delivery was deferred; the engine that works; the artifacts of the last engine,
    #: and of each finished attempt; what components and providers gave; the error, if it failed.
    name: str = ""
    tries: int = 0
    engine_index: int = 0
    drafts: list[JsonDraft] | None = None
    candidates: tuple[list[JsonDraft], ...] = ()
    board_input: BoardInput | None = None
    error: str = ""
    #: In a flow: the attempt.
    flow: StepRun | None = None

    def replace(self, **changes: Unpack[ActivationChanges]) -> "Activation":
        """Return a changed copy. `dataclasses.replace` would set every field one by one."""
        twin: Activation = object.__new__(Activation)
        object.__setattr__(twin, "__dict__", self.__dict__ | changes)
        return twin


class OwnValues(NamedTuple):
    """The variables of a member of a group until the group joins.

    All values as it sees them, and the event of each value that it has set.
    """

    values: Mapping[str, Json]
    set_by: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Group:
    """Parallel activations; its identity is the event that forked."""

    fork: int
    name: str
    members: tuple[str, ...]
    #: The length of the conversation at the fork: members add after it.
    length: int
    #: The turns in the order they began.
    turns: tuple[int, ...] = ()
    failed: Mapping[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True, slots=True)
class Judging:
    """A condition that a model is judging, and the earlier judgements of the same decision."""

    agent: str
    scope: Literal["pre", "post"]
    rule: int
    seq: int
    verdicts: Mapping[int, bool] = field(default_factory=dict[int, bool])


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a run that still has hooks to call or documents to write."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Request:
    """A question to a person that is open."""

    id: str
    kind: Literal["chat", "ui"]
    agent: str
    tool: str | None
    call: str | None
    #: The turn that asks; 0 for a chat, which is between turns.
    turn: int
    payload: Json
    digest: str
    expires_at: int | None
    otherwise: Json
    seq: int
    opened_at: int
    sets: tuple[str, ...] = ()
    component: str = ""
    mode: str = ""
    addressee: str = ""


K = TypeVar("K")
V = TypeVar("V")


def without(mapping: Mapping[K, V], key: K) -> dict[K, V]:
    """Return a copy of a mapping that lacks one entry."""
    copy = dict(mapping)
    copy.pop(key, None)
    return copy


def _nothing() -> dict[Any, Any]:
    """Return an empty mapping; to call `dict[str, Json]` would take nine times as long."""
    return {}


def _no_messages() -> Log[Message]:
    return Log()


@dataclass
class State:
    """The state of a run after `seq` events.

    The engine copies a state for each event and changes the copy; all others only read it. The
    objects it refers to are never changed in place, so copies share them.
    """

    run: str
    seq: int = 0
    status: Status = "new"
    workflow: str = ""
    digest: str = ""
    app: str = ""
    user: str = ""
    #: The correlation or the collection: another run has it when this one has ended.
    name: str = ""
    started_at: int = 0
    #: The first words of the user, for lists.
    preview: str = ""
    #: The run this one was forked from, and the model that answers for all its agents, if any.
    forked_from: str = ""
    model: str | None = None
    variables: Mapping[str, Json] = field(default_factory=_nothing)
    #: The event that last set each variable.
    set_by: Mapping[str, int] = field(default_factory=_nothing)
    #: The conversation; beside it what the members of groups say and set until these join.
    messages: Log[Message] = field(default_factory=_no_messages)
    threads: Mapping[int, Log[Message]] = field(default_factory=_nothing)
    own: Mapping[int, OwnValues] = field(default_factory=_nothing)
    #: Everything that is open: activations by their numbers, tool calls, groups, timers, requests.
    active: Mapping[int, Activation] = field(default_factory=_nothing)
    calls: Mapping[str, OpenCall] = field(default_factory=_nothing)
    groups: Mapping[int, Group] = field(default_factory=_nothing)
    timers: Timers = field(default_factory=Timers)
    requests: Mapping[str, Request] = field(default_factory=_nothing)
    turns: int = 0
    #: How many turns each agent has taken.
    turn_counts: Mapping[str, int] = field(default_factory=_nothing)
    #: The agent that took the last turn.
    last_agent: str = ""
    #: The agent that spoke last, and how often in a row without user or another agent.
    last_speaker: tuple[str, int] = ("", 0)
    #: Handoffs since the last turn; more than there are agents means a cycle.
    handoffs_since_turn: int = 0
    #: The ids of the messages that were accepted; each is accepted once.
    message_ids: KeyLog = field(default_factory=KeyLog)
    spent: Spent = field(default_factory=Spent)
    #: Computed variables whose functions are to be called, by the turn that has its own; else 0.
    dirty: Mapping[int, frozenset[str]] = field(default_factory=_nothing)
    #: Entity variables whose documents are outdated, by the event that set each; and those that
    #: are being written, each with the event whose value is written.
    unwritten: Mapping[str, int] = field(default_factory=_nothing)
    writing: Mapping[str, int] = field(default_factory=_nothing)
    #: The variables that later runs of the user begin with.
    carried_values: tuple[str, ...] = ()
    #: The tools that servers offer, by server.
    offered: Mapping[str, list[dict[str, Json]]] = field(default_factory=_nothing)
    judging: Judging | None = None
    board: BoardState | None = None
    flow: FlowState | None = None
    stopping: bool = False
    ending: Ending | None = None
    outcome: Outcome | None = None
    reason: str = ""

    def copy(self) -> "State":
        """Return a copy that shares everything the state refers to."""
        twin: State = object.__new__(State)
        twin.__dict__ = self.__dict__.copy()
        return twin

    @property
    def turn(self) -> Activation | None:
        """The newest turn under way."""
        return self.active[max(self.active)] if self.active else None

    @property
    def due_at(self) -> int:
        """When the next timer fires or the next request expires; NEVER if none does."""
        at = self.timers.due_at
        for request in self.requests.values():
            if request.expires_at is not None and request.expires_at < at:
                at = request.expires_at
        return at

    def values_of(self, turn: int) -> Mapping[str, Json]:
        """Return the variables as a turn sees them; 0 is the run itself."""
        own = self.own.get(turn)
        return self.variables if own is None else own.values

    def preview_values(self, turn: int, values: Mapping[str, Json]) -> None:
        """Show a turn values whose events are about to be recorded."""
        own = self.own.get(turn)
        if own is None:
            self.variables = values
        else:
            self.own = {**self.own, turn: own._replace(values=values)}

    def count_turn(self, agent: str, number: int) -> None:
        """Count a turn that begins."""
        self.turns = number
        self.turn_counts = {**self.turn_counts, agent: self.turn_counts.get(agent, 0) + 1}

    def thread_of(self, turn: int) -> Log[Message]:
        """Return the conversation that a turn sees."""
        return self.threads.get(turn, self.messages)

    def update(self, active: Activation) -> None:
        """Store a turn that has changed."""
        self.active = {**self.active, active.number: active}

    def close_turns(self, *turns: int) -> None:
        """Close turns with their calls, requests and threads."""
        gone = frozenset(turns)
        self.active = {key: active for key, active in self.active.items() if key not in gone}
        if self.calls:
            self.calls = {key: call for key, call in self.calls.items() if call.turn not in gone}
        if self.requests:
            asked = self.requests.items()  # A chat request belongs to no turn.
            self.requests = {
                key: request
                for key, request in asked
                if request.turn not in gone or request.kind == "chat"
            }
        if self.threads:
            self.threads = {key: thread for key, thread in self.threads.items() if key not in gone}
            self.own = {key: own_values for key, own_values in self.own.items() if key not in gone}
        if self.dirty:
            self.dirty = {
                key: names for key, names in self.dirty.items() if key not in gone or not key
            }

    def close_call(self, call: OpenCall) -> None:
        """Close a call, and the request it may have opened."""
        self.calls = without(self.calls, call.id)
        if call.asks:
            self.requests = without(self.requests, call.asks)

    def add_message(self, message: Message, turn: int = 0) -> None:
        """Add to the conversation, or to the thread of a member of a group."""
        thread = self.threads.get(turn)
        if thread is None:
            self.messages = self.messages.added(message)
        else:
            self.threads = {**self.threads, turn: thread.added(message)}

    def say(
        self, agent: str, text: str, event: Event, requests: tuple[ToolRequest, ...] = ()
    ) -> None:
        """Add the message of an agent in its turn."""
        message = Message("agent", agent, text, event.seq, requests=requests)
        self.add_message(message, event.turn)

    def add_user_message(self, text: str, seq: int) -> None:
        self.add_message(Message("user", "", text, seq))
        self.preview = self.preview or text[:PREVIEW]
