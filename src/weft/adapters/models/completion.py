"""Chat completions as providers send them, whole or streamed, read into replies."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from annotated_types import MinLen
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from weft.adapters.models.provider_errors import as_object, provider_error
from weft.engine.events import CUT, NO_USAGE, ToolRequest, Usage
from weft.errors import ModelError
from weft.findings import Json
from weft.ports.model import ModelReply, ModelRequest

#: How many bytes of a response an error quotes.
QUOTED: Final = 300

#: The finish reasons of a complete reply, with or without tool calls.
_NORMAL_FINISHES: Final = frozenset(
    {"stop", "end_turn", "tool_calls", "tool_call", "function_call"}
)


@dataclass(frozen=True, slots=True)
class _Function:
    name: str
    arguments: str | dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    function: _Function
    id: str | None = None


@dataclass(frozen=True, slots=True)
class _Message:
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


@dataclass(frozen=True, slots=True)
class _Choice:
    message: _Message
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Completion:
    """The fields of a completion that are read; all others are ignored."""

    choices: Annotated[list[_Choice], MinLen(1)]
    model: str | None = None
    usage: Any = None


_COMPLETION: Final = TypeAdapter(_Completion)

#: A tool call as received: id (may be empty), tool, arguments.
RawCall = tuple[str, str, str | dict[str, Any]]


def read_completion(raw: bytes, request: ModelRequest) -> ModelReply:
    """Return the reply in a whole completion; raises ModelError if there is none."""
    try:
        whole = _COMPLETION.validate_json(raw)
    except ValidationError as error:
        raise malformed_reply(error, raw) from None
    choice = whole.choices[0]
    message = choice.message
    calls = [
        (call.id or "", call.function.name, call.function.arguments or "")
        for call in message.tool_calls or ()
    ]
    return make_reply(
        request,
        text=message.content or message.refusal or "",
        calls=calls,
        finish=choice.finish_reason,
        usage=whole.usage,
        model=whole.model or "",
    )


def malformed_reply(error: ValidationError, raw: bytes) -> ModelError:
    """Return the error of an invalid response; a retry may help."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    start = raw[:QUOTED].decode("utf-8", "replace").strip()
    where = f" at {place}" if place else ""
    return ModelError(
        f"the reply is not a chat completion{where}: {first['msg']}. It begins: {start!r}. "
        "Check that the base URL is that of an OpenAI-compatible interface.",
        retryable=True,
    )


def make_reply(
    request: ModelRequest,
    *,
    text: str,
    calls: Sequence[RawCall],
    finish: str | None,
    usage: Json,
    model: str,
) -> ModelReply:
    if finish == "content_filter" and not text and not calls:
        raise ModelError("the provider's content filter withheld the reply: change the prompt")
    return ModelReply(
        text=text,
        tool_requests=tool_requests(calls, request.key, finish) if calls else (),
        usage=_read_usage(usage),
        model=model,
        finish_reason=unusual_finish(finish),
    )


def unusual_finish(finish: str | None) -> str:
    """Return the finish reason, unless the reply is complete."""
    return "" if finish is None or finish in _NORMAL_FINISHES else finish


def tool_requests(
    calls: Sequence[RawCall], key: str, finish: str | None
) -> tuple[ToolRequest, ...]:
    """Read the tool calls; one without an id of its own gets one."""
    requests: dict[str, ToolRequest] = {}
    for at, (given, tool, arguments) in enumerate(calls):
        id_ = given
        if not id_ or id_ in requests:
            id_ = f"call_{re.sub('[^A-Za-z0-9]', '_', key)}_{at}"
        requests[id_] = ToolRequest(id_, tool, _parse_arguments(tool, arguments, finish))
    return tuple(requests.values())


def _parse_arguments(tool: str, given: str | dict[str, Any], finish: str | None) -> dict[str, Any]:
    """Parse arguments; providers may send an empty text for a tool without parameters."""
    if isinstance(given, dict):
        return given
    try:
        value: Json = from_json(given.strip() or "{}", allow_inf_nan=False)
    except ValueError as error:
        fault = "the reply was truncated (token limit)" if finish == CUT else str(error)
    else:
        fields = as_object(value)
        if fields is not None:
            return fields
        fault = "they are not a JSON object"
    raise ModelError(
        f"the arguments for {tool} cannot be read: {fault}. They begin: {given[:QUOTED]!r}. "
        "If it happens again, use a model that calls tools more reliably.",
        retryable=True,
    )


def _read_usage(usage: Json) -> Usage:
    """Return the usage as far as the provider reports it."""
    fields = as_object(usage)
    if fields is None:
        return NO_USAGE
    details = as_object(fields.get("prompt_tokens_details")) or {}
    return Usage(
        input_tokens=_token_count(fields.get("prompt_tokens")),
        output_tokens=_token_count(fields.get("completion_tokens")),
        cached_tokens=_token_count(details.get("cached_tokens")),
    )


def _token_count(value: Json) -> int | None:
    return value if type(value) is int and value >= 0 else None


@dataclass(frozen=True, slots=True)
class _FunctionPart:
    name: str | None = None
    arguments: str | None = None


@dataclass(frozen=True, slots=True)
class _CallPart:
    index: int | None = None
    id: str | None = None
    function: _FunctionPart | None = None


@dataclass(frozen=True, slots=True)
class _Delta:
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_CallPart] | None = None


@dataclass(frozen=True, slots=True)
class _ChoicePart:
    delta: _Delta | None = None
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Chunk:
    choices: list[_ChoicePart] | None = None
    model: str | None = None
    usage: Any = None
    error: Any = None


_CHUNK: Final = TypeAdapter(_Chunk)
_NO_DELTA: Final = _Delta()
_NO_FUNCTION: Final = _FunctionPart()


class _OpenCall:
    """A tool call whose arguments are still being received."""

    def __init__(self) -> None:
        self.id = ""
        self.tool = ""
        self.arguments: list[str] = []


class StreamReader:
    """Reads a streamed completion: passes text on, and builds the reply."""

    def __init__(self, request: ModelRequest, on_text: Callable[[str], None]) -> None:
        self.done = False
        self._request = request
        self._on_text = on_text
        self._buffer: list[bytes] = []
        self._text: list[str] = []
        self._calls: dict[int, _OpenCall] = {}
        self._finish: str | None = None
        self._usage: Any = None
        self._model = ""

    def feed(self, data: bytes) -> None:
        """Process bytes; an incomplete line waits for the next ones.

        Every `data` line is one event: no provider splits an event over several lines.
        """
        self._buffer.append(data)
        if b"\n" not in data:
            return
        *lines, rest = b"".join(self._buffer).split(b"\n")
        self._buffer = [rest]
        for line in lines:
            if line.startswith(b"data:") and not self.done:
                self._on_event(line[5:].strip())

    def reply(self) -> ModelReply:
        """Return the reply; raises ModelError if the stream ended early."""
        if not self.done and self._finish is None:
            raise ModelError(
                "the stream of the reply ended early. If it happens again, something "
                "between here and the provider closes connections too early.",
                retryable=True,
            )
        ordered = [self._calls[at] for at in sorted(self._calls)]
        return make_reply(
            self._request,
            text="".join(self._text),
            calls=[(call.id, call.tool, "".join(call.arguments)) for call in ordered],
            finish=self._finish,
            usage=self._usage,
            model=self._model,
        )

    def _on_event(self, raw: bytes) -> None:
        if raw == b"[DONE]":
            self.done = True
            return
        try:
            chunk = _CHUNK.validate_json(raw)
        except ValidationError as error:
            raise malformed_reply(error, raw) from None
        if chunk.error:
            raise provider_error(raw)
        self._model = chunk.model or self._model
        self._usage = chunk.usage or self._usage
        for choice in (chunk.choices or ())[:1]:
            self._finish = choice.finish_reason or self._finish
            self._on_delta(choice.delta or _NO_DELTA)

    def _on_delta(self, delta: _Delta) -> None:
        text = delta.content or delta.refusal or ""
        self._text.append(text)
        self._on_text(text)  # Empty: the model produces something else.
        for piece in delta.tool_calls or ():
            self._on_call_part(piece)

    def _on_call_part(self, piece: _CallPart) -> None:
        """Add a part to its call; without an index it belongs to the last one, unless named."""
        function = piece.function or _NO_FUNCTION
        name = function.name or ""
        index = piece.index
        if index is None:
            index = len(self._calls) if name or not self._calls else max(self._calls)
        call = self._calls.setdefault(index, _OpenCall())
        call.id = call.id or piece.id or ""
        call.tool = call.tool or name
        call.arguments.append(function.arguments or "")
