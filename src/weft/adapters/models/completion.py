"""A completion as a provider sends it, whole, and as a reply."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from annotated_types import MinLen
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from weft.adapters.models.json_objects import as_object
from weft.engine.events import CUT, NO_USAGE, ToolRequest, Usage
from weft.errors import ModelError
from weft.findings import Json
from weft.ports.model import ModelReply, ModelRequest

#: How much of what a provider sent a message quotes.
QUOTED: Final = 300

#: How providers call it that a reply was simply done, or goes on with tools.
_ORDINARY: Final = frozenset({"stop", "end_turn", "tool_calls", "tool_call", "function_call"})


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
    """The part of a completion that is read; what else there is does not matter."""

    choices: Annotated[list[_Choice], MinLen(1)]
    model: str | None = None
    usage: Any = None


_COMPLETION: Final = TypeAdapter(_Completion)

#: A tool call as it came: identity (perhaps none), tool, arguments.
RawCall = tuple[str, str, str | dict[str, Any]]


def read_completion(raw: bytes, request: ModelRequest) -> ModelReply:
    """Return the reply in a whole completion; raises ModelError if there is none."""
    try:
        whole = _COMPLETION.validate_json(raw)
    except ValidationError as error:
        raise malformed(error, raw) from None
    choice = whole.choices[0]
    message = choice.message
    calls = [
        (it.id or "", it.function.name, it.function.arguments or "")
        for it in message.tool_calls or ()
    ]
    return make_reply(
        request,
        text=message.content or message.refusal or "",
        calls=calls,
        finish=choice.finish_reason,
        usage=whole.usage,
        model=whole.model or "",
    )


def malformed(error: ValidationError, raw: bytes) -> ModelError:
    """Say what is wrong with something a provider sent; another attempt may bring a better one."""
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
        raise ModelError("the provider's content filter withheld the reply: change what is asked")
    return ModelReply(
        text=text,
        tool_requests=tool_requests(calls, request.key, finish) if calls else (),
        usage=_read_usage(usage),
        model=model,
        finish=unusual(finish),
    )


def unusual(finish: str | None) -> str:
    """Return why a reply ends where it ends, unless it was simply done."""
    return "" if finish is None or finish in _ORDINARY else finish


def tool_requests(
    calls: Sequence[RawCall], key: str, finish: str | None
) -> tuple[ToolRequest, ...]:
    """Read the tool calls; one without an identity of its own is given one."""
    requests: dict[str, ToolRequest] = {}
    for at, (given, tool, arguments) in enumerate(calls):
        id_ = given
        if not id_ or id_ in requests:
            id_ = f"call_{re.sub('[^A-Za-z0-9]', '_', key)}_{at}"
        requests[id_] = ToolRequest(id_, tool, _arguments(tool, arguments, finish))
    return tuple(requests.values())


def _arguments(tool: str, given: str | dict[str, Any], finish: str | None) -> dict[str, Any]:
    """Read arguments; providers send none at all for a tool that takes none."""
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
        fault = "they are no JSON object"
    raise ModelError(
        f"the arguments for {tool} cannot be read: {fault}. They begin: {given[:QUOTED]!r}. "
        "If that goes on, use a model that calls tools more reliably.",
        retryable=True,
    )


def _read_usage(usage: Json) -> Usage:
    """Return what a call took as far as the provider says it understandably."""
    fields = as_object(usage)
    if fields is None:
        return NO_USAGE
    details = as_object(fields.get("prompt_tokens_details")) or {}
    return Usage(
        input_tokens=_count(fields.get("prompt_tokens")),
        output_tokens=_count(fields.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")),
    )


def _count(value: Json) -> int | None:
    return value if type(value) is int and value >= 0 else None
