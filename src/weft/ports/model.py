"""Language models: what is sent to one and what comes back.

Messages have the shape of chat completions, the common denominator of the field; an adapter for
anything else translates.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NotRequired, Protocol

from typing_extensions import TypedDict  # pydantic reads this one in every version of Python

from weft.engine.events import NO_USAGE, Answerer, ToolRequest, Usage
from weft.spec.agents import ModelSettings


class ChatFunction(TypedDict):
    """The function of a tool call in a message."""

    name: str
    arguments: str


class ChatToolCall(TypedDict):
    """A tool call in a message."""

    id: str
    type: str
    function: ChatFunction


class ChatMessage(TypedDict):
    """One message as sent."""

    role: str
    content: str | None
    #: The speaker, for readers of the request; it is not sent to models.
    name: NotRequired[str]
    tool_calls: NotRequired[list[ChatToolCall]]
    tool_call_id: NotRequired[str]


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """The shape a reply must have."""

    name: str
    schema: dict[str, Any]


class ModelRequest(NamedTuple):
    """One model call: `call` counts the calls of a turn.

    `key` is the same when the call is repeated after a crash.
    """

    model: str
    run: str
    agent: str
    turn: int
    call: int
    key: str
    messages: Sequence[ChatMessage]
    tools: tuple[ToolSchema, ...] = ()
    output: OutputSchema | None = None
    #: The hash of what a tool or a rule asks on its own; empty for the reply of an agent.
    question: str = ""
    #: How the model is asked: those of the agent and the workflow in one, the seed a number.
    settings: ModelSettings | None = None
    #: Told before each wait for another attempt: which one it is, in how many seconds, and why.
    on_retry: Callable[[str], None] | None = None
    #: The tenant of the run: tenants share the limits of a model fairly.
    app: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One answer."""

    text: str
    tool_requests: tuple[ToolRequest, ...] = ()
    usage: Usage = NO_USAGE
    model: str = ""
    answerer: Answerer = "model"
    #: Why the reply ends where it ends, in the provider's word; empty where it was simply done.
    finish_reason: str = ""
    #: Of a fallback: which model was to answer and why it did not; empty where that one answered.
    instead_of: str = ""
    #: What went wrong at each attempt before this one, in order.
    retries: tuple[str, ...] = ()


class Model(Protocol):
    """Something that answers."""

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Answer a request; `on_text` is given pieces of the text as they come.

        Empty ones say that the model is at work on something else, such as the call of a tool.

        Raises ModelError, which says whether trying again may help.
        """
        ...
