"""The conversation as one agent sees it, cut to its limits between groups of messages."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pydantic_core import to_json

from weft.context.segment import Kind, LeftOut, Segment, over_budget
from weft.engine.message import Message
from weft.engine.persistent import Log
from weft.findings import Json
from weft.ports.model import ChatMessage, ChatToolCall
from weft.spec.agents import estimate_tokens


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """The limits of the conversation for an agent, and the ingredient that sets them."""

    kind: Kind
    origin: str
    max_tokens: int
    max_messages: int | None = None


class Window(NamedTuple):
    """The part of the conversation that is sent, and why older messages are left out."""

    past: HistoryLimits
    messages: list[ChatMessage]
    #: The events of the messages, one for one.
    sources: list[Message]
    tokens: int
    #: Why older messages were left out; None if none were.
    cut: str | None

    @property
    def entry(self) -> dict[str, Json]:
        """The entry in the manifest; `first` and `last` are the events at its ends."""
        return {
            "kind": self.past.kind,
            "origin": self.past.origin,
            "tokens": self.tokens,
            "messages": len(self.messages),
            "first": self.sources[0].seq,
            "last": self.sources[-1].seq,
        }

    @property
    def left_out(self) -> LeftOut:
        """The entry in the manifest for messages that are not sent."""
        return {
            "kind": self.past.kind,
            "origin": self.past.origin,
            "before": self.sources[0].seq,
            "reason": self.cut,
        }

    def slices(self) -> Iterator[Segment]:
        """Yield the messages one by one."""
        for sent, source in zip(self.messages, self.sources, strict=True):
            text = "\n".join(_texts(sent))
            yield Segment(
                kind=self.past.kind,
                origin=f"event {source.seq}",
                text=text,
                tokens=_size(sent),
                role=sent["role"],
            )


def window(
    history: Log[Message], agent: str, past: HistoryLimits, replies: int | None = None
) -> Window:
    """Return the newest part of a conversation that fits the limits.

    A reply that calls tools and their results are kept together, because models refuse the one
    without the other. The newest group is always included. `replies`
    reaches back only so many of the agent's own: as many as it gave in the turn under way.
    """
    sources: list[Message] = []
    messages: list[ChatMessage] = []
    #: The messages inside the limits; a message outside is included if its group is.
    kept = kept_tokens = tokens = 0
    cut: str | None = None
    for message, complete in _heard(history, agent, replies):
        sent = _as_sent(message, agent)
        sources.append(message)
        messages.append(sent)
        tokens += _size(sent)
        if complete:
            cut = _reason(past, tokens, len(messages)) if kept else None
            if cut:
                break
            kept, kept_tokens = len(messages), tokens
    return Window(
        past=past,
        messages=messages[:kept][::-1],
        sources=sources[:kept][::-1],
        tokens=kept_tokens,
        cut=cut,
    )


def conversation(history: Log[Message]) -> list[ChatMessage]:
    """Return the conversation for an outside observer: all texts, with the speakers' names."""
    return [
        {
            "role": "assistant" if message.role == "agent" else "user",
            "content": message.text,
            "name": name,
        }
        if (name := message.agent)
        else {"role": "user", "content": message.text}
        for message in history
        if message.role in ("user", "agent") and message.text and not message.to
    ]


def _reason(past: HistoryLimits, tokens: int, count: int) -> str | None:
    if tokens > past.max_tokens:
        return over_budget(past.max_tokens)
    if past.max_messages is not None and count > past.max_messages:
        messages = "1 message" if past.max_messages == 1 else f"{past.max_messages} messages"
        return f"over the limit of {messages}"
    return None


def _heard(
    history: Log[Message], agent: str, replies: int | None
) -> Iterator[tuple[Message, bool]]:
    """Yield the messages an agent sees, newest first, and whether their group is complete.

    The texts of other agents are included, their tool calls are not. Results of parallel tool calls
    are in the order of the calls, so that the prompt does not depend on which was faster. Requests
    to correct a reply are seen only by the agent itself.
    """
    if replies == 0:
        return
    spoken = 0
    corrected = ""
    results: dict[str | None, Message] = {}
    for message in reversed(history):
        if message.to and message.to != agent:
            corrected = message.to
            continue
        if corrected and message.agent == corrected:
            corrected = ""
            continue
        own = message.agent == agent
        if message.role == "tool":
            if own:
                results[message.call] = message
            continue
        if own and message.requests:
            for request in reversed(message.requests):
                if request.id in results:  # A damaged journal may lack one.
                    yield results.pop(request.id), False
        if message.text or (own and message.requests):
            yield message, True
        spoken += own
        if spoken == replies:
            return


def _as_sent(message: Message, agent: str) -> ChatMessage:
    if message.role in ("user", "correction"):  # Models have no role for other agents.
        return {"role": "user", "content": message.text}
    if message.role == "tool":
        return {"role": "tool", "content": message.text, "tool_call_id": message.call or ""}
    if message.agent != agent:
        return {"role": "user", "content": f"{message.agent}: {message.text}"}
    if not message.requests:
        return {"role": "assistant", "content": message.text}
    calls: list[ChatToolCall] = [
        {
            "id": request.id,
            "type": "function",
            "function": {"name": request.tool, "arguments": to_json(request.arguments).decode()},
        }
        for request in message.requests
    ]
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}


def _size(message: ChatMessage) -> int:
    size = estimate_tokens(message["content"] or "")
    if "tool_calls" in message:
        for call in message["tool_calls"]:
            size += estimate_tokens(call["function"]["name"]) + estimate_tokens(
                call["function"]["arguments"]
            )
    return size


def _texts(message: ChatMessage) -> Iterator[str]:
    if message["content"]:
        yield message["content"]
    for call in message.get("tool_calls", ()):
        yield f"{call['function']['name']}({call['function']['arguments']})"
