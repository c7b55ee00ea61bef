"""The model `you`: what would be sent to a model is shown, and the person answers for it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from weft.cli.chat.form import AskLine
from weft.cli.chat.slash_commands import is_command, said
from weft.cli.streams import Streams
from weft.cli.text import clean, clean_lines, counted, shortened
from weft.engine.events import ToolRequest
from weft.ids import nearest
from weft.ports.model import ChatMessage, ModelReply, ModelRequest
from weft.runtime.tools.forms import resolved

#: How many of the last messages are shown, and how much of each.
_LAST: Final = 4
_LINES: Final = 12


async def _at_once(_request: ModelRequest) -> None:
    """Wait for nothing."""


class HumanModel:
    """Answers for every agent by asking the person: for one after the other."""

    def __init__(
        self,
        ask: AskLine,
        streams: Streams,
        command: Callable[[str], Awaitable[None]],
        ready: Callable[[ModelRequest], Awaitable[None]] = _at_once,
        answered: Callable[[ModelRequest], Awaitable[None]] = _at_once,
    ) -> None:
        self._ask = ask
        self._streams = streams
        #: Carries out a line that begins with a slash.
        self._command = command
        #: Waits until the person can understand a request.
        self._ready = ready
        #: Takes note that a request is answered, before the next one is shown.
        self._answered = answered
        self._asking = asyncio.Lock()

    async def __call__(self, request: ModelRequest) -> ModelReply:
        """Show a request, and return the reply that was typed.

        Agents that take their turns side by side wait for each other.
        """
        async with self._asking:
            await self._ready(request)
            reply = await self._typed(request)
            await self._answered(request)
            return reply

    async def _typed(self, request: ModelRequest) -> ModelReply:
        self._show(request)
        while True:
            typed = await self._ask(f"{request.agent} says: ")
            if is_command(typed):
                await self._command(typed)
                continue
            try:
                return _reply(request, said(typed))
            except ValueError as error:
                self._streams.problem(clean(str(error)))

    def _show(self, request: ModelRequest) -> None:
        tell = self._streams.problem
        paint = self._streams.paint_error
        sent = request.messages
        count = counted(len(sent), "message")
        tell(paint(f"You answer for {request.agent}. It is sent {count}:", "bold"))
        if len(sent) > _LAST:
            tell(paint(f"  ... {len(sent) - _LAST} earlier", "dim"))
        for message in sent[-_LAST:]:
            for line in _message_lines(message):
                tell(paint(f"  {shortened(line, self._streams.settings.columns - 2)}", "dim"))
        for tool in request.tools:
            names = ", ".join(tool.parameters.get("properties", {}))
            tell(clean(f"  !{tool.name} {{...}}    calls a tool; it takes: {names or 'nothing'}"))
        if request.output is not None:
            schema = request.output.schema
            fields = ", ".join(resolved(schema, schema).get("properties", {}))
            tell(clean(f"  The answer is JSON of the form {request.output.name}: {fields}"))


def _message_lines(message: ChatMessage) -> list[str]:
    text = message["content"] or ""
    calls = [
        f"calls {it['function']['name']}({it['function']['arguments']})"
        for it in message.get("tool_calls", ())
    ]
    lines = [*clean_lines(text).splitlines(), *(clean(it) for it in calls)]
    cut = [f"... {counted(len(lines) - _LINES, 'more line')}"] if len(lines) > _LINES else []
    first, *rest = [*lines[:_LINES], *cut] or [""]
    return [f"{message['role']}: {first}", *(f"    {line}" for line in rest)]


def _reply(request: ModelRequest, typed: str) -> ModelReply:
    """Read what was typed; raises ValueError with what is wrong with it."""
    if typed.startswith("!"):
        return ModelReply("", (_call(request, typed[1:].strip()),))
    if request.output is None:
        if not typed.strip():
            raise ValueError("an agent says something, or calls a tool with !NAME {...}")
        return ModelReply(typed)
    fault = _fault(request.output.schema, _json(typed))
    if fault:
        raise ValueError(f"that does not fit {request.output.name}: {fault}")
    return ModelReply(typed)


def _call(request: ModelRequest, typed: str) -> ToolRequest:
    name, _, rest = typed.removeprefix("tool ").strip().partition(" ")
    known = {tool.name: tool for tool in request.tools}
    if name not in known:
        near = nearest(name, known)
        there = f"did you mean {near}?" if near else f"available: {', '.join(known) or 'none'}"
        raise ValueError(f"{request.agent} has no tool {name}; {there}")
    arguments: Any = _json(rest) if rest.strip() else {}
    fault = _fault({"type": "object", **known[name].parameters}, arguments)
    if fault:
        raise ValueError(f"{name}: {fault}")
    return ToolRequest("you", name, arguments)


def _json(text: str) -> Any:  # noqa: ANN401 - looked at with a schema
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"this is not JSON: {error}") from None


def _fault(schema: dict[str, Any], value: Any) -> str | None:  # noqa: ANN401
    # Only here is it needed, and it takes a while to load.
    from jsonschema.validators import Draft202012Validator  # noqa: PLC0415

    validator: Any = Draft202012Validator(schema)
    error = next(iter(validator.iter_errors(value)), None)
    if error is None:
        return None
    place = ".".join(str(it) for it in error.absolute_path)
    return f"{place}: {error.message}" if place else str(error.message)
