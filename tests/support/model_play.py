"""What tests of models share: requests, a clock that only tells, models that do as told."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from weft.errors import ModelError
from weft.ports.model import ChatMessage, ModelReply, ModelRequest, OutputSchema, ToolSchema
from weft.spec.agents import ModelSettings

T = TypeVar("T")

LOOKUP = ToolSchema(
    "lookup",
    "Find an order.",
    {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
)


def run(coroutine: Coroutine[Any, Any, T], seconds: float = 20.0) -> T:
    """Run to the end, but not for ever."""

    async def bounded() -> T:
        return await asyncio.wait_for(coroutine, seconds)

    return asyncio.run(bounded())


def ask(
    *messages: ChatMessage,
    agent: str = "Helper",
    tools: tuple[ToolSchema, ...] = (),
    output: OutputSchema | None = None,
    key: str = "run1:7",
    turn: int = 1,
    call: int = 1,
    settings: ModelSettings | None = None,
) -> ModelRequest:
    """Return a request; without messages, one with a greeting."""
    sent: Sequence[ChatMessage] = messages or ({"role": "user", "content": "Hello"},)
    return ModelRequest(
        model="mock",
        run="run1",
        agent=agent,
        turn=turn,
        call=call,
        key=key,
        messages=sent,
        tools=tools,
        output=output,
        settings=settings,
    )


def said(role: str, content: str | None, **more: Any) -> ChatMessage:
    """Return a message."""
    return {"role": role, "content": content, **more}  # type: ignore[typeddict-item]


def called(id_: str, tool: str, arguments: str = "{}") -> ChatMessage:
    """Return an assistant's message that calls a tool."""
    function = {"name": tool, "arguments": arguments}
    return said(
        "assistant", None, tool_calls=[{"id": id_, "type": "function", "function": function}]
    )


class StillClock:
    """A clock whose time passes only while somebody waits; it remembers the waits in seconds."""

    def __init__(self) -> None:
        self.time = 1_000_000
        self.waits: list[float] = []

    def now(self) -> int:
        return self.time

    def new_id(self) -> str:
        return f"id{self.time}"

    async def sleep_until(self, at: int) -> None:
        self.waits.append((at - self.time) / 1000)
        self.time = at
        await asyncio.sleep(0)


class Canned:
    """Does one thing after another: replies, fails, or runs a coroutine function."""

    def __init__(self, *acts: Any) -> None:
        self.acts = list(acts)
        self.requests: list[ModelRequest] = []
        self.listened: list[bool] = []

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        self.requests.append(request)
        self.listened.append(on_text is not None)
        act = self.acts.pop(0)
        if isinstance(act, Exception):
            raise act
        return act if isinstance(act, ModelReply) else await act(on_text)


def passing(text: str = "busy", after: float | None = None) -> ModelError:
    """Return an error after which another attempt may help."""
    return ModelError(text, retryable=True, after_seconds=after)
