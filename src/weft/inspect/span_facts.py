"""The attributes of spans, by the OpenTelemetry conventions for generative AI.

Content is what was sent to a model or a tool, and what came back.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from pydantic_core import to_json

from weft.engine import events as kinds
from weft.engine.events import Event, EventData, Usage
from weft.ports.model import ChatMessage

SpanKind: TypeAlias = Literal["run", "turn", "model", "tool", "provider", "retrieval"]
Facts: TypeAlias = dict[str, str | int | float | bool | Sequence[str]]

#: The operation of a kind of span, and the attribute with its name. `provide_context` and `weft.*`
#: are not in the conventions.
OPERATIONS: Final[Mapping[SpanKind, tuple[str, str]]] = {
    "run": ("invoke_workflow", "gen_ai.workflow.name"),
    "turn": ("invoke_agent", "gen_ai.agent.name"),
    "model": ("chat", "gen_ai.request.model"),
    "tool": ("execute_tool", "gen_ai.tool.name"),
    "provider": ("provide_context", "weft.provider.name"),
    "retrieval": ("retrieval", "gen_ai.data_source.id"),
}

#: Providers of models whose names differ in the conventions.
_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}


def model_facts(named: str) -> Facts:
    """Return the provider and the model of a name.

    >>> model_facts("google:gemini-3")
    {'gen_ai.request.model': 'gemini-3', 'gen_ai.provider.name': 'gcp.gemini'}
    """
    provider, _, model = ("", "", named) if "#" in named else named.partition(":")
    if not model:
        provider, model = "", provider
    facts: Facts = {"gen_ai.request.model": model} if model else {}
    if provider:
        facts["gen_ai.provider.name"] = _PROVIDERS.get(provider, provider)
    return facts


def reply_facts(
    reply: kinds.ModelReplied | kinds.ModelConsulted | kinds.ConditionJudged,
) -> Facts:
    """Return who answered, and what it took."""
    usage: Usage = reply.usage
    known = {
        "gen_ai.response.model": reply.model or None,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "weft.cost_usd": usage.cost_usd,
        "weft.answerer": reply.answerer,
    }
    return {name: value for name, value in known.items() if value is not None}


def content_facts(data: EventData) -> Facts:
    """Return the content of an event."""
    match data:
        case kinds.ToolCalled(arguments=arguments):
            return {"gen_ai.tool.call.arguments": _json(arguments)}
        case kinds.ToolReturned(value=value):
            return {"gen_ai.tool.call.result": _json(value)}
        case kinds.ModelReplied(text=text, tool_requests=calls, finish_reason=finish):
            parts = (_call(call.id, call.tool, call.arguments) for call in calls)
            said = {**_said("assistant", text, parts), "finish_reason": finish or "stop"}
            return {"gen_ai.output.messages": _json([said])}
        case kinds.ModelConsulted(text=text):
            return {"gen_ai.output.messages": _json([_said("assistant", text)])}
        case _:
            return {}


def prompt_facts(messages: Iterable[ChatMessage]) -> Facts:
    """Return what is sent to a model."""
    return {"gen_ai.input.messages": _json([_message(message) for message in messages])}


def _json(value: object) -> str:
    return to_json(value).decode()


def _message(message: ChatMessage) -> dict[str, Any]:
    if "tool_call_id" in message:
        answer = {"type": "tool_call_response", "id": message["tool_call_id"]}
        return {"role": "tool", "parts": [{**answer, "result": message["content"]}]}
    calls = (
        _call(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls", ())
    )
    return _said(message["role"], message["content"], calls)


def _said(role: str, text: str | None, calls: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    words = [{"type": "text", "content": text}] if text else []
    return {"role": role, "parts": [*words, *calls]}


def _call(id_: str, name: str, arguments: object) -> dict[str, Any]:
    return {"type": "tool_call", "id": id_, "name": name, "arguments": arguments}


class Read(NamedTuple):
    """Something that was read or asked, when it is over."""

    kind: SpanKind
    name: str
    at: int
    ms: float
    facts: Facts
    error: str = ""


def reads(event: Event, data: kinds.ContextFetched) -> Iterator[Read]:
    """Yield the variables, the providers of a board and the searches that were read for a turn."""
    notes = {name: cast("dict[str, Any]", data.found.get(name) or {}) for name in data.found}
    notes |= {name: {} for name in data.errors if name not in notes}
    # All variables are read at the same time.
    begun = round(event.at - max((note.get("ms", 0.0) for note in notes.values()), default=0.0))
    for name, note in notes.items():
        fault = "" if note.get("default") else data.errors.get(name, "")
        yield Read("provider", name, begun, note.get("ms", 0.0), {}, fault)
    for given in (data.board or {}).get("slices", ()):
        # A fallback has the error of the provider that it replaces.
        fault = "" if "instead_of" in given else given.get("error", "")
        facts: Facts = {"weft.items": len(given["items"])}
        yield Read("provider", given["provider"], given["started_at"], given["ms"], facts, fault)
    step = data.step or {}
    context = cast("dict[str, Any]", step.get("context") or {})
    for segment in context.get("segments", ()):
        if segment["kind"] == "retrieval":
            ms = step.get("ms", 0.0)  # That of the whole context.
            facts = {"weft.items": len(segment["hits"])}
            yield Read("retrieval", segment["name"], round(event.at - ms), ms, facts)
