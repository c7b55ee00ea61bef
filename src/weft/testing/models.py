"""Models for tests: one that follows a script, one that is a function. Nothing is sent anywhere.

model = ScriptedModel(["Hello.", call("lookup", order="A1"), {"approved": True}])
model = ScriptedModel({"Router": ["BILLING"], "Billing": [call("refund"), "Done."]})
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from weft.adapters.models.usage import FREE
from weft.engine.events import ToolRequest
from weft.errors import ModelError
from weft.findings import Json
from weft.ports.model import ModelReply, ModelRequest


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call in a script."""

    tool: str
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])


#: One entry of a script: text, structured output, one or more tool calls, a whole reply, an error.
Line: TypeAlias = (
    str | dict[str, Any] | ScriptedCall | Sequence[ScriptedCall] | ModelReply | Exception
)


def call(tool: str, /, **arguments: Json) -> ScriptedCall:
    """Write a tool call into a script."""
    return ScriptedCall(tool, arguments)


class ScriptedModel:
    """Answers from a list, or from one list per agent, and remembers what it was asked.

    A list for all agents is read in the order of the calls; a text alone is its only line. At a
    step of a flow, an agent may have lines of its own: "Writer/draft" comes before "Writer".
    `requests` are all it was asked; `left` is how many lines nobody has asked for.
    """

    def __init__(self, script: str | Iterable[Line] | Mapping[str, str | Iterable[Line]]) -> None:
        self.requests: list[ModelRequest] = []
        self._shared: list[Line] | None = None
        self._by_agent: dict[str, list[Line]] = {}
        if isinstance(script, Mapping):
            by_agent = cast("Mapping[str, str | Iterable[Line]]", script)
            self._by_agent = {agent: _lines(lines) for agent, lines in by_agent.items()}
        else:
            self._shared = _lines(script)

    @property
    def left(self) -> int:
        """How many lines of the script have not been used."""
        return len(self._shared or ()) + sum(len(it) for it in self._by_agent.values())

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Answer with the next line; raises ModelError when there is none."""
        self.requests.append(request)
        lines = self._lines_of(request.agent) if self._shared is None else self._shared
        if not lines:
            raise ModelError(
                f"the script has no line left for {request.agent}: this is request number "
                f"{len(self.requests)}; add a line to the script, or find out why it is asked again"
            )
        return _spoken(_reply_of(lines.pop(0), request), on_text)

    def _lines_of(self, role: str) -> list[Line]:
        """Return the lines of a role; those of its agent where it has none of its own."""
        known = self._by_agent
        return known[role] if role in known else known.get(role.partition("/")[0], [])


class FunctionModel:
    """Answers with what a function, sync or async, makes of the request."""

    def __init__(self, function: Callable[[ModelRequest], Line | Awaitable[Line]]) -> None:
        self.requests: list[ModelRequest] = []
        self._function = function

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Ask the function."""
        self.requests.append(request)
        line = self._function(request)
        return _spoken(_reply_of(await line if isawaitable(line) else line, request), on_text)


def _lines(script: str | Iterable[Line]) -> list[Line]:
    """Return the lines of a script: letter by letter nobody means a text."""
    return [script] if isinstance(script, str) else list(script)


def _reply_of(line: Line, request: ModelRequest) -> ModelReply:
    match line:
        case ModelError():
            raise line
        case Exception():
            raise ModelError(f"{type(line).__name__}: {line}") from line
        case ModelReply():
            return line if line.model else replace(line, model=request.model)
        case str():
            return _scripted(request, text=line)
        case dict():
            return _scripted(request, text=json.dumps(line, ensure_ascii=False))
        case ScriptedCall():
            return _scripted(request, calls=(line,))
        case _:
            return _scripted(request, calls=line)


def _scripted(
    request: ModelRequest, *, text: str = "", calls: Sequence[ScriptedCall] = ()
) -> ModelReply:
    requests = tuple(
        ToolRequest(f"call-{request.key}-{at}", it.tool, dict(it.arguments))
        for at, it in enumerate(calls)
    )
    return ModelReply(text, requests, usage=FREE, model=request.model, answerer="script")


def _spoken(reply: ModelReply, on_text: Callable[[str], None] | None) -> ModelReply:
    """Say the text word by word to whoever listens, as a stream would."""
    if on_text is not None:
        for piece in re.findall(r"\s*\S+|\s+", reply.text):
            on_text(piece)
    return reply
