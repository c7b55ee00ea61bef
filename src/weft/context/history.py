"""The conversation as one agent may see it, cut to a budget without tearing anything apart."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pydantic_core import to_json

from weft.engine.log import Log
from weft.engine.state import Message
from weft.ports.model import ChatMessage, ChatToolCall

#: Characters that make one token, roughly, in any language; used where nobody counts exactly.
CHARACTERS_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class Window:
    """The part of the conversation that is sent, and how much of it was left out."""

    messages: list[ChatMessage]
    tokens: int
    #: Numbers of the events the first and the last message come from; 0 if there is none.
    first: int
    last: int
    #: Whether older messages were left out because the budget was used up.
    cut: bool


def estimate(text: str) -> int:
    """Return about how many tokens a text takes."""
    return (len(text) + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN


def window(history: Log[Message], agent: str, budget: int) -> Window:
    """Take the newest part of a conversation that fits a budget of tokens.

    A reply that asks for tools and the results of these go together or not at all: models refuse
    the one without the other. The newest group is always taken, whatever its size.
    """
    taken: list[list[Message]] = []
    tokens = 0
    cut = False
    for group in _groups(history, agent):
        size = sum(estimate(message.text) for message in group)
        if taken and tokens + size > budget:
            cut = True
            break
        taken.append(group)
        tokens += size
    messages = [message for group in reversed(taken) for message in group]
    return Window(
        messages=[_as_sent(message, agent) for message in messages],
        tokens=tokens,
        first=messages[0].seq if messages else 0,
        last=messages[-1].seq if messages else 0,
        cut=cut,
    )


def _groups(history: Log[Message], agent: str) -> Iterator[list[Message]]:
    """Yield what belongs together, newest first.

    Other agents are heard, not watched: their words are seen, their tools are not.
    """
    results: list[Message] = []
    for message in reversed(history):
        if message.role == "tool":
            if message.agent == agent:
                results.append(message)
        elif message.role == "agent" and message.agent == agent and message.requests:
            yield [message, *reversed(results)]
            results = []
        elif message.text:
            yield [message]


def _as_sent(message: Message, agent: str) -> ChatMessage:
    if message.role == "user":
        return {"role": "user", "content": message.text}
    if message.role == "tool":
        return {"role": "tool", "content": message.text, "tool_call_id": message.call or ""}
    if message.agent != agent:
        return {"role": "user", "content": f"{message.agent}: {message.text}"}
    if not message.requests:
        return {"role": "assistant", "content": message.text}
    calls: list[ChatToolCall] = [
        {
            "id": it.id,
            "type": "function",
            "function": {"name": it.tool, "arguments": to_json(it.arguments).decode()},
        }
        for it in message.requests
    ]
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}
