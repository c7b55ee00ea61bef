"""Models for tests: one follows a script, one calls a function. Nothing is sent anywhere.

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
from weft.context.view import View
from weft.engine.events import ToolRequest
from weft.errors import ModelError, UsageError
from weft.findings import Json
from weft.ids import nearest
from weft.ports.model import ModelReply, ModelRequest
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call in a script."""

    tool: str
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])


#: A part of a reply with tool calls: text, or a call, also as the tool with its arguments.
Part: TypeAlias = ScriptedCall | str | Mapping[str, Mapping[str, Json]]

#: One entry of a script: text, structured output, a tool call, several with text, a whole reply,
#: an error; None for any error.
Line: TypeAlias = (
    str | dict[str, Any] | ScriptedCall | Sequence[Part] | ModelReply | Exception | None
)


def call(tool: str, /, **arguments: Json) -> ScriptedCall:
    """Write a tool call into a script."""
    return ScriptedCall(tool, arguments)


class ScriptedModel:
    """Replies from a list, or from one list per agent, and records its requests.

    A list for all agents is read in the order of the calls; a text alone is its only line. At a
    step of a flow, an agent may have lines of its own: "Writer/draft" comes before "Writer".
    `requests` are all it was asked; `left` is the number of unused lines.

    A host refuses a script with an agent, a tool or an argument that its workflow does not have;
    `strict=False` lets a test play a model that makes such mistakes.
    """

    def __init__(
        self,
        script: str | Iterable[Line] | Mapping[str, str | Iterable[Line]],
        *,
        strict: bool = True,
    ) -> None:
        self._strict = strict
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
        """The number of unused lines."""
        return len(self._shared or ()) + sum(len(replies) for replies in self._by_agent.values())

    def require_known(self, workflow: Workflow) -> None:
        """Raise UsageError for an agent, a tool or an argument that the workflow does not have."""
        if not self._strict:
            return
        views = workflow.views
        for agent, lines in self._by_agent.items():
            own = [view for role, view in views.items() if _is_played_by(role, agent)]
            if not own:
                known = list(dict.fromkeys(re.split("[/#]", role)[0] for role in views))
                raise _unknown("agent", agent, known)
            _require_calls(workflow, lines, own, agent)
        _require_calls(workflow, self._shared or (), list(views.values()), "")

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Reply with the next line; raises ModelError when there is none."""
        self.requests.append(request)
        lines = self._lines_of(request.agent) if self._shared is None else self._shared
        if not lines:
            raise ModelError(
                f"the script has no line left for {request.agent}: this is request number "
                f"{len(self.requests)}; add a line to the script, or find out why it is asked again"
            )
        return _stream_words(_reply_of(lines.pop(0), request), on_text)

    def _lines_of(self, role: str) -> list[Line]:
        """Return the lines of a role, or else those of its agent."""
        known = self._by_agent
        return known[role] if role in known else known.get(role.partition("/")[0], [])


class FunctionModel:
    """Replies with the result of a function, sync or async."""

    def __init__(self, function: Callable[[ModelRequest], Line | Awaitable[Line]]) -> None:
        self.requests: list[ModelRequest] = []
        self._function = function

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Call the function."""
        self.requests.append(request)
        line = self._function(request)
        return _stream_words(_reply_of(await line if isawaitable(line) else line, request), on_text)


def _is_played_by(role: str, agent: str) -> bool:
    """Return whether the lines of an agent serve a role: the agent, its steps and engines."""
    return role == agent or re.split("[/#]", role)[0] == agent


def _require_calls(
    workflow: Workflow, lines: Sequence[Line], views: Sequence[View], agent: str
) -> None:
    tools = {schema.name for view in views for schema in view.tools}
    if workflow.spec.mcp_servers:  # The tools of servers are unknown before a run.
        return
    for line in lines:
        several = line if isinstance(line, list | tuple) else [line]
        for call_ in several:
            if not isinstance(call_, ScriptedCall):
                continue
            if call_.tool not in tools:
                raise _unknown("tool", call_.tool, sorted(tools), agent)
            error = workflow.tools.validation_error(call_.tool, call_.arguments)
            if error:
                raise UsageError(f"the script calls {call_.tool} with wrong arguments: {error}")


def _unknown(kind: str, name: str, known: Sequence[str], agent: str = "") -> UsageError:
    near = nearest(name, known)
    whose = f" of {agent}" if agent else ""
    hint = f"did you mean {near}?" if near else f"available: {', '.join(known) or 'none'}"
    return UsageError(f"the script names the {kind} {name}{whose}, which does not exist", hint=hint)


def _lines(script: str | Iterable[Line]) -> list[Line]:
    """Return the lines of a script; a text is one line."""
    return [script] if isinstance(script, str) else [_read_line(line) for line in script]


def _read_line(line: Line) -> Line:
    """Return a line whose calls are ScriptedCalls."""
    if line is None:
        return ModelError("the model fails, as the script says")
    if not isinstance(line, list | tuple):
        return line
    parts = [list(part.items()) if isinstance(part, dict) else [part] for part in line]
    return [
        ScriptedCall(*part) if isinstance(part, tuple) else part for each in parts for part in each
    ]


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
            text = "".join(part for part in line or () if isinstance(part, str))
            calls = [part for part in line or () if isinstance(part, ScriptedCall)]
            return _scripted(request, text=text, calls=calls)


def _scripted(
    request: ModelRequest, *, text: str = "", calls: Sequence[ScriptedCall] = ()
) -> ModelReply:
    requests = tuple(
        ToolRequest(f"call-{request.key}-{at}", call.tool, dict(call.arguments))
        for at, call in enumerate(calls)
    )
    return ModelReply(text, requests, usage=FREE, model=request.model, answerer="script")


def _stream_words(reply: ModelReply, on_text: Callable[[str], None] | None) -> ModelReply:
    """Stream the text word by word."""
    if on_text is not None:
        for piece in re.findall(r"\s*\S+|\s+", reply.text):
            on_text(piece)
    return reply
