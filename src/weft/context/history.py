"""The conversation as one agent may see it, cut to its limits without tearing anything apart."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pydantic_core import to_json

from weft.context.segment import Kind, LeftOut, Segment, over_budget
from weft.engine.log import Log
from weft.engine.state import Message
from weft.findings import Json
from weft.ports.model import ChatMessage, ChatToolCall
from weft.spec.agents import estimate_tokens


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """How much of the conversation an agent is sent, and which ingredient says so."""

    kind: Kind
    origin: str
    max_tokens: int
    max_messages: int | None = None


class Window(NamedTuple):
    """The part of the conversation that is sent, and why there is not more of it."""

    past: HistoryLimits
    messages: list[ChatMessage]
    #: What the messages were made of, one for one.
    sources: list[Message]
    tokens: int
    #: Why older messages were left out; None if none were.
    cut: str | None

    @property
    def entry(self) -> dict[str, Json]:
        """What a manifest says about it; first and last are the events of its ends."""
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
        """What a manifest says about the messages that are not sent."""
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
    """Take the newest part of a conversation that fits the limits.

    A reply that asks for tools and the results of these go together or not at all: models refuse
    the one without the other. The newest group is always taken, whatever its size. `replies`
    reaches back only so many of the agent's own: as many as it gave in the turn under way.
    """
    sources: list[Message] = []
    messages: list[ChatMessage] = []
    #: What is inside the limits; what is not may still become so when its group is complete.
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
    """Return what was said in a conversation, by whomever, as somebody beside it would hear it."""
    return [
        {"role": "assistant" if it.role == "agent" else "user", "content": it.text, "name": name}
        if (name := it.agent)
        else {"role": "user", "content": it.text}
        for it in history
        if it.role in ("user", "agent") and it.text and not it.to
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
    """Yield what an agent hears, newest first, and whether what belongs together is complete.

    Other agents are heard, not watched: their words are seen, their tools are not. Results of
    tools that worked side by side stand in the order they were asked for, whichever came first:
    what is sent must not depend on which was faster. What an agent was told to say again, and
    that it was, is between it and the engine.
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
    if message.role in ("user", "correction"):  # models know no third party
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
