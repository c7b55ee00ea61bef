"""The state of a run: a fold of its journal, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, TypedDict, Unpack

from weft.engine.events import Outcome, ToolRequest, Usage
from weft.engine.log import Log
from weft.findings import Json

#: How much of the first message a list shows.
PREVIEW: Final = 120

#: new: no event yet; running: something is to be done; waiting: for a person; ended.
Status: TypeAlias = Literal["new", "running", "waiting", "ended"]


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of the conversation."""

    role: Literal["user", "agent", "tool"]
    #: The agent that spoke, or whose tool answered; empty for the user.
    agent: str
    text: str
    seq: int
    requests: tuple[ToolRequest, ...] = ()
    #: The call a tool's message answers.
    call: str | None = None
    #: The one agent that hears it: a correction of what it said. Empty for all.
    to: str = ""


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """What a person answered, and the hash of what was asked: it is for no other question."""

    digest: str
    value: Json


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A tool call without a result yet."""

    id: str
    tool: str
    arguments: dict[str, Json]
    seq: int
    auto: bool
    #: The question it waits for, and the answers it has had.
    asks: str | None = None
    answers: tuple[GivenAnswer, ...] = ()


class TurnChanges(TypedDict, total=False):
    """What changes in the course of a turn."""

    stage: Literal["assembling", "model", "tools", "ending"]
    call: int
    seq: int
    calls: Mapping[str, OpenCall]
    missing: frozenset[str]
    refusals: int
    sent_back: int


@dataclass(frozen=True)
class Turn:
    """The turn under way."""

    agent: str
    number: int
    #: assembling: what is sent is put together; model: it answers; tools: they work; ending.
    stage: Literal["assembling", "model", "tools", "ending"] = "assembling"
    #: Which model call of this turn it is, and the event that allowed it.
    call: int = 1
    seq: int = 0
    #: Calls without a result, and those the last reply asked for that are still to come.
    calls: Mapping[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    missing: frozenset[str] = frozenset()
    refusals: int = 0
    #: How many of these came from an automatic tool: each of its calls has an id of its own.
    sent_back: int = 0

    def changed(self, **changes: Unpack[TurnChanges]) -> "Turn":
        """Return the turn as it is afterwards. `replace` would set every field one by one."""
        twin: Turn = object.__new__(Turn)
        twin.__dict__.update(self.__dict__)
        twin.__dict__.update(changes)
        return twin


@dataclass(frozen=True, slots=True)
class Request:
    """A question to a person that is open."""

    id: str
    kind: Literal["chat", "ui"]
    agent: str
    tool: str | None
    call: str | None
    payload: Json
    digest: str
    expires_at: int | None
    otherwise: Json
    seq: int
    opened_at: int


@dataclass(frozen=True, slots=True)
class Spent:
    """What the models of a run took so far; what nobody knows makes the sums incomplete."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    #: How many calls have no known price, and how many have tokens that nobody counted.
    unpriced: int = 0
    uncounted: int = 0

    def plus(self, usage: Usage) -> "Spent":
        """Add one call."""
        return Spent(
            calls=self.calls + 1,
            input_tokens=self.input_tokens + (usage.input_tokens or 0),
            output_tokens=self.output_tokens + (usage.output_tokens or 0),
            cost_usd=self.cost_usd + (usage.cost_usd or 0.0),
            unpriced=self.unpriced + (usage.cost_usd is None),
            uncounted=self.uncounted + (None in (usage.input_tokens, usage.output_tokens)),
        )


@dataclass
class State:
    """Everything that is known about a run after `seq` events.

    The engine makes one copy for each event and writes on that; whoever else holds a state only
    reads it. What a state refers to is never changed in place, so that copies may share it.
    """

    run: str
    seq: int = 0
    status: Status = "new"
    workflow: str = ""
    digest: str = ""
    app: str = ""
    user: str = ""
    started_at: int = 0
    #: The first words of the user, for lists.
    preview: str = ""
    #: The run this one was forked from, and the model that answers for all its agents, if any.
    parent: str = ""
    model: str | None = None
    variables: Mapping[str, Json] = field(default_factory=dict[str, Json])
    #: The event that last set each variable.
    set_by: Mapping[str, int] = field(default_factory=dict[str, int])
    messages: Log[Message] = field(default_factory=Log[Message])
    turn: Turn | None = None
    turns: int = 0
    #: How many turns each agent has taken.
    turn_counts: Mapping[str, int] = field(default_factory=dict[str, int])
    #: The agent that spoke last, and how often in a row without user or another agent.
    last_speaker: tuple[str, int] = ("", 0)
    #: Handoffs since the last turn; more than there are agents is a circle.
    handoffs_since_turn: int = 0
    requests: Mapping[str, Request] = field(default_factory=dict[str, Request])
    #: The messages that were let in, by what their senders call them: each counts once.
    message_ids: Log[str] = field(default_factory=Log[str])
    spent: Spent = field(default_factory=Spent)
    stopping: bool = False
    outcome: Outcome | None = None
    reason: str = ""

    def copy(self) -> "State":
        """Return a state of its own that shares everything it refers to."""
        twin: State = object.__new__(State)
        twin.__dict__.update(self.__dict__)
        return twin

    def add_message(self, message: Message) -> None:
        """Add to the conversation."""
        self.messages = self.messages.added(message)

    def add_user_message(self, text: str, seq: int) -> None:
        """Add what the user says."""
        self.add_message(Message("user", "", text, seq))
        self.preview = self.preview or text[:PREVIEW]
