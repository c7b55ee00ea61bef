"""The model `you`: the person sees the prompt and types the reply."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from weft.cli.chat.form import AskLine
from weft.cli.chat.person import is_command, message_of
from weft.cli.streams import Streams, clean, clean_lines, counted, shortened
from weft.engine.events import ToolRequest
from weft.ids import suggestion
from weft.ports.model import ChatMessage, ModelReply, ModelRequest
from weft.runtime.tools.forms import resolved

#: How many of the last messages are shown, and how many lines of each.
_LAST: Final = 4
_LINES: Final = 12


async def _at_once(_request: ModelRequest) -> None:
    """Do nothing."""


class HumanModel:
    """Answers for every agent by asking the person, one request at a time."""

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
        #: Runs a line that begins with a slash.
        self._command = command
        #: Waits until the events before a request are printed.
        self._ready = ready
        #: Is called after the answer to a request, before the next one is shown.
        self._answered = answered
        self._asking = asyncio.Lock()

    async def __call__(self, request: ModelRequest) -> ModelReply:
        """Show a request, and return the typed reply; parallel agents wait for each other."""
        async with self._asking:
            await self._ready(request)
            reply = await self._typed(request)
            await self._answered(request)
            return reply

    async def _typed(self, request: ModelRequest) -> ModelReply:
        self._show(request)
        while True:
            typed = await self._ask(f"{request.agent} says: ")
            if typed.strip().lower() == "/prompt":
                self._show_messages(request.messages)
                continue
            if is_command(typed):
                await self._command(typed)
                continue
            try:
                return _reply(request, message_of(typed))
            except ValueError as error:
                self._streams.problem(clean(str(error)))

    def _show(self, request: ModelRequest) -> None:
        tell = self._streams.problem
        paint = self._streams.paint_error
        sent = request.messages
        count = counted(len(sent), "message")
        title = f"You answer for {request.agent}. The model is sent {count} (/prompt shows all):"
        tell(paint(title, "bold"))
        # The instructions are always shown whole: the person needs them to answer for the agent.
        instructions = [message for message in sent if message["role"] == "system"]
        self._show_messages(instructions)
        others = [message for message in sent if message["role"] != "system"]
        if len(others) > _LAST:
            tell(paint(f"  ... {len(others) - _LAST} earlier", "dim"))
        for message in others[-_LAST:]:
            for line in _message_lines(message, _LINES):
                tell(paint(f"  {shortened(line, self._streams.settings.columns - 2)}", "dim"))
        for tool in request.tools:
            names = ", ".join(tool.parameters.get("properties", {}))
            tell(clean(f"  !{tool.name} {{...}}    calls a tool; parameters: {names or 'none'}"))
        if request.output is not None:
            schema = request.output.schema
            fields = ", ".join(resolved(schema, schema).get("properties", {}))
            tell(clean(f"  The answer is a JSON object {request.output.name}: {fields}"))

    def _show_messages(self, messages: Iterable[ChatMessage]) -> None:
        """Print messages whole."""
        for message in messages:
            for line in _message_lines(message):
                self._streams.problem(self._streams.paint_error(f"  {line}", "dim"))


def _message_lines(message: ChatMessage, most: int | None = None) -> list[str]:
    """Return a message as lines, at most `most` of them."""
    text = message["content"] or ""
    calls = [
        f"calls {call['function']['name']}({call['function']['arguments']})"
        for call in message.get("tool_calls", ())
    ]
    lines = [*clean_lines(text).splitlines(), *map(clean, calls)]
    if most is not None and len(lines) > most:
        lines = [*lines[:most], f"... {counted(len(lines) - most, 'more line')}"]
    first, *rest = lines or [""]
    return [f"{message['role']}: {first}", *(f"    {line}" for line in rest)]


def _reply(request: ModelRequest, typed: str) -> ModelReply:
    """Return the typed reply; raises ValueError if it is invalid."""
    if typed.startswith("!"):
        return ModelReply("", (_call(request, typed[1:].strip()),))
    if request.output is None:
        if not typed.strip():
            raise ValueError("write a reply, or call a tool with !NAME {...}")
        return ModelReply(typed)
    error = _validation_error(request.output.schema, _json(typed))
    if error:
        raise ValueError(f"the reply is not a valid {request.output.name}: {error}")
    return ModelReply(typed)


def _call(request: ModelRequest, typed: str) -> ToolRequest:
    name, _, rest = typed.removeprefix("tool ").strip().partition(" ")
    known = {tool.name: tool for tool in request.tools}
    if name not in known:
        hint = suggestion(name, known)
        raise ValueError(f"{request.agent} has no tool {name}; {hint}")
    arguments: Any = _json(rest) if rest.strip() else {}
    error = _validation_error({"type": "object", **known[name].parameters}, arguments)
    if error:
        raise ValueError(f"{name}: {error}")
    return ToolRequest("you", name, arguments)


def _json(text: str) -> Any:  # noqa: ANN401 - validated with a schema
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"invalid JSON: {error}") from None


def _validation_error(schema: dict[str, Any], value: Any) -> str | None:  # noqa: ANN401
    # Deferred: it takes a while to load.
    from jsonschema.validators import Draft202012Validator  # noqa: PLC0415

    validator: Any = Draft202012Validator(schema)
    error = next(iter(validator.iter_errors(value)), None)
    if error is None:
        return None
    place = ".".join(map(str, error.absolute_path))
    return f"{place}: {error.message}" if place else str(error.message)
