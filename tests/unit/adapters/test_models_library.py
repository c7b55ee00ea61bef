"""Models through pydantic-ai, with its own stand-ins for a provider."""

import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from types import ModuleType
from typing import Any, Self

import pytest
from pydantic_ai import exceptions
from pydantic_ai.messages import (
    FinishReason,
    ModelMessage,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.usage import RequestUsage

from support.model_play import LOOKUP, StillClock, ask, called, run, said
from weft.adapters.models.library import LibraryModel, as_messages
from weft.adapters.models.providers import THROUGH_LIBRARY, Library
from weft.adapters.models.registry import ModelRegistry, open_library
from weft.engine.events import NO_USAGE, ToolRequest, Usage
from weft.errors import ModelError, UsageError
from weft.ports.model import ModelReply, ModelRequest, OutputSchema
from weft.spec.agents import ModelSettings

VERDICT = OutputSchema(
    "Verdict",
    {
        "$schema": "x",
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"],
        "additionalProperties": False,
    },
)


class Provider:
    """Answers with what it is given, and keeps what it was asked."""

    def __init__(
        self,
        *parts: Any,
        usage: RequestUsage | None = None,
        fault: Any = None,
        finish: FinishReason | None = None,
    ) -> None:
        self.parts = parts
        self.usage = usage
        self.finish: FinishReason | None = finish
        self.fault = fault
        self.messages: list[ModelMessage] = []
        self.info: AgentInfo | None = None

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.messages, self.info = messages, info
        if self.fault is not None:
            raise self.fault
        usage = RequestUsage(unmeasured_requests=1) if self.usage is None else self.usage
        return ModelResponse(parts=list(self.parts), usage=usage, finish_reason=self.finish)


def answer(
    provider: Provider,
    request: ModelRequest | None = None,
    secrets: tuple[str, ...] = (),
    **rest: Any,
) -> ModelReply:
    model = LibraryModel(FunctionModel(provider, model_name="claude", **rest), secrets=secrets)
    return run(model.reply(request or ask()))


def test_text_and_usage():
    usage = RequestUsage(input_tokens=10, output_tokens=4, cache_read_tokens=3)
    reply = answer(Provider(ThinkingPart("hm"), TextPart("Good "), TextPart("day"), usage=usage))
    assert reply == ModelReply("Good day", usage=Usage(10, 4, 3), model="claude")


def test_missing_usage_is_unknown():
    assert answer(Provider(TextPart("x"))).usage == NO_USAGE


@pytest.mark.parametrize(
    ("finish", "kept"),
    [(None, ""), ("stop", ""), ("tool_call", ""), ("length", "length"), ("error", "error")],
)
def test_why_a_reply_ends_is_kept(finish: FinishReason | None, kept: str):
    assert answer(Provider(TextPart("x"), finish=finish)).finish_reason == kept


def test_tools_are_described_and_called():
    provider = Provider(
        ToolCallPart("lookup", '{"order": "A1"}', tool_call_id="c1"),
        ToolCallPart("lookup", {"order": "B2"}, tool_call_id="c2"),
        ToolCallPart("lookup", None, tool_call_id="c3"),
    )
    reply = answer(provider, ask(tools=(LOOKUP,)))
    assert reply.tool_requests == (
        ToolRequest("c1", "lookup", {"order": "A1"}),
        ToolRequest("c2", "lookup", {"order": "B2"}),
        ToolRequest("c3", "lookup", {}),
    )
    assert provider.info is not None
    (tool,) = provider.info.function_tools
    assert tool.name == "lookup"
    assert tool.description == "Find an order."
    assert tool.parameters_json_schema == LOOKUP.parameters


def test_arguments_that_cannot_be_read_are_an_error():
    with pytest.raises(ModelError, match="arguments for lookup cannot be read") as caught:
        answer(Provider(ToolCallPart("lookup", '{"x', tool_call_id="c")), ask(tools=(LOOKUP,)))
    assert caught.value.retryable


def test_output_is_asked_for_as_the_model_can_give_it():
    native = Provider(TextPart('{"ok": true}'))
    profile = {"supports_json_schema_output": True, "default_structured_output_mode": "native"}
    reply = answer(native, ask(output=VERDICT), profile=profile)
    assert json.loads(reply.text) == {"ok": True}
    assert native.info is not None
    shape = native.info.model_request_parameters.output_object
    assert shape is not None
    assert shape.name == "Verdict"
    assert "$schema" not in shape.json_schema
    assert native.info.output_tools == []


@pytest.mark.parametrize("arguments", ['{"ok":true}', {"ok": True}])
def test_output_through_a_tool_is_the_text(arguments: Any):
    provider = Provider(
        TextPart("Here:"), ToolCallPart("final_result", arguments, tool_call_id="f")
    )
    reply = answer(provider, ask(output=VERDICT, tools=(LOOKUP,)))
    assert reply.text == '{"ok":true}'
    assert reply.tool_requests == ()
    assert provider.info is not None
    assert [tool.name for tool in provider.info.output_tools] == ["final_result"]


def test_a_tool_of_that_name_without_output_is_a_tool():
    reply = answer(Provider(ToolCallPart("final_result", "{}", tool_call_id="f")))
    assert reply.tool_requests == (ToolRequest("f", "final_result", {}),)


async def words(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
    for word in ("Good ", "day", ""):
        yield word


async def calls(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[DeltaToolCalls]:
    yield {0: DeltaToolCall(name="lookup", json_args='{"order"', tool_call_id="c1")}
    yield {0: DeltaToolCall(json_args=': "A1"}')}


def test_text_is_streamed():
    heard: list[str] = []
    model = LibraryModel(FunctionModel(stream_function=words, model_name="claude"))
    reply = run(model.reply(ask(), heard.append))
    assert [item for item in heard if item] == ["Good ", "day"]
    assert reply.text == "Good day"
    assert reply.model == "claude"


def test_streamed_tool_calls_are_not_shown_as_text():
    heard: list[str] = []
    model = LibraryModel(FunctionModel(stream_function=calls, model_name="claude"))
    reply = run(model.reply(ask(tools=(LOOKUP,)), heard.append))
    # No words, but it is not silent while it puts a call together.
    assert len(heard) > 1
    assert set(heard) == {""}
    assert reply.tool_requests == (ToolRequest("c1", "lookup", {"order": "A1"}),)


def http(status: int, category: Any = None, **rest: Any) -> exceptions.ModelHTTPError:
    return exceptions.ModelHTTPError.for_category(
        category, status_code=status, model_name="claude", body={"message": "no sk-1"}, **rest
    )


@pytest.mark.parametrize(
    ("error", "retryable", "after"),
    [
        (http(429, exceptions.ModelRateLimitError, retry_after=5.0), True, 5.0),
        (http(429, exceptions.ModelQuotaExceededError), False, None),
        (http(500, exceptions.ModelServerError), True, None),
        (http(529, exceptions.ModelOverloadedError), True, None),
        (http(408), True, None),
        (http(401, exceptions.ModelAuthenticationError), False, None),
        (http(404, exceptions.ModelNotFoundError), False, None),
        (exceptions.ModelConnectionError("claude", "reset"), True, None),
        (exceptions.ModelRateLimitError("claude", "slow down", retry_after=2.0), True, 2.0),
        (exceptions.ModelAPIError("claude", "something"), False, None),
        (exceptions.UnexpectedModelBehavior("garbage"), True, None),
        (exceptions.ContentFilterError("withheld"), False, None),
        (exceptions.UserError("native output is not supported"), False, None),
    ],
)
def test_errors_say_whether_to_try_again(error: Exception, retryable: bool, after: float | None):
    with pytest.raises(ModelError) as caught:
        answer(Provider(fault=error), secrets=("sk-1",))
    assert caught.value.retryable is retryable
    assert caught.value.after_seconds == after
    assert str(caught.value).startswith("claude: ")
    assert "sk-1" not in str(caught.value)


def test_a_conversation_is_translated():
    messages = [
        said("system", "You help."),
        said("user", "Where is A1?"),
        called("c1", "lookup", '{"order": "A1"}'),
        said("tool", "on its way", tool_call_id="c1"),
        said("tool", "lost", tool_call_id="c0"),
        said("assistant", "Soon."),
        said("user", None),
    ]
    first, second, third, fourth, fifth = as_messages(messages)
    assert [type(part) for part in first.parts] == [SystemPromptPart, UserPromptPart]
    (call,) = second.parts
    assert isinstance(call, ToolCallPart)
    assert (call.tool_name, call.args, call.tool_call_id) == ("lookup", '{"order": "A1"}', "c1")
    result, lost = third.parts
    assert isinstance(result, ToolReturnPart)
    assert (result.tool_name, result.content, result.tool_call_id) == ("lookup", "on its way", "c1")
    assert isinstance(lost, ToolReturnPart)
    assert lost.tool_name == "unknown"
    assert [type(part) for part in fourth.parts] == [TextPart]
    assert fifth.parts[0].content == ""


def test_an_agent_that_speaks_first_hears_something():
    (only,) = as_messages([said("system", "You greet.")])
    assert [part.content for part in only.parts] == ["You greet.", "Begin."]
    assert len(as_messages([])) == 1


def test_a_conversation_may_end_with_the_agent():
    first, last = as_messages([said("user", "Hello"), said("assistant", "Hi")])
    assert isinstance(last, ModelResponse)
    assert len(first.parts) == 1


def test_a_conversation_may_begin_with_the_agent():
    first, last = as_messages([said("assistant", "Hi"), said("user", "Hello")])
    assert isinstance(first, ModelResponse)
    assert [type(part) for part in last.parts] == [UserPromptPart]


EVERYTHING = ModelSettings(
    temperature=0.2,
    top_p=0.9,
    max_tokens=100,
    seed=7,
    stop=("END",),
    reasoning_effort="low",
    extra_body={"a": 1},
)
THINKS = {"supports_thinking": True}


@pytest.mark.parametrize("stream", [False, True])
def test_settings_are_passed_on(stream: bool):
    asked: list[AgentInfo] = []

    async def speak(_messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        asked.append(info)
        yield "x"

    def reply(_messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(info)
        return ModelResponse(parts=[TextPart("x")])

    inner = FunctionModel(reply, stream_function=speak, profile=THINKS)
    heard: list[str] = []
    run(LibraryModel(inner).reply(ask(settings=EVERYTHING), heard.append if stream else None))
    (info,) = asked
    assert info.model_settings == {
        "temperature": 0.2,
        "top_p": 0.9,
        "max_tokens": 100,
        "seed": 7,
        "stop_sequences": ["END"],
        "extra_body": {"a": 1},
    }
    assert info.model_request_parameters.thinking == "low"


@pytest.mark.parametrize(
    ("effort", "level"), [("none", False), ("minimal", "minimal"), ("high", "high")]
)
def test_an_effort_is_what_the_library_calls_thinking(effort: Any, level: Any):
    provider = Provider(TextPart("x"))
    answer(provider, ask(settings=ModelSettings(reasoning_effort=effort)), profile=THINKS)
    assert provider.info is not None
    assert provider.info.model_request_parameters.thinking == level


def test_without_settings_none_are_passed_on():
    provider = Provider(TextPart("x"))
    answer(provider, ask(settings=ModelSettings()))
    answer(provider, ask())
    assert provider.info is not None
    assert not provider.info.model_settings


class Deaf(FunctionModel):
    """Takes no seed and no text to stop at."""

    unsupported_settings = frozenset({"seed", "stop_sequences", "top_k"})


class Somewhere(FunctionModel):
    """Of a provider that is named."""

    where = ""

    @property
    def system(self) -> str:
        return self.where


@pytest.mark.parametrize(
    ("kind", "where", "profile", "refused"),
    [
        (Deaf, "", THINKS, "seed, stop"),
        (FunctionModel, "", {}, "reasoning_effort"),
        (
            FunctionModel,
            "",
            {**THINKS, "anthropic_disallows_sampling_settings": True},
            "temperature, top_p",
        ),
        (
            FunctionModel,
            "",
            {**THINKS, "bedrock_disallows_sampling_settings": True},
            "temperature, top_p",
        ),
        (Somewhere, "mistral", {"thinking_always_enabled": True}, "reasoning_effort"),
        (Somewhere, "bedrock", THINKS, "reasoning_effort"),
        (Somewhere, "bedrock", {"thinking_always_enabled": True}, "reasoning_effort"),
    ],
)
def test_unsupported_setting_is_refused(
    kind: Any, where: str, profile: Any, refused: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Somewhere, "where", where)
    provider = Provider(TextPart("x"))
    model = LibraryModel(kind(provider, model_name="claude", profile=profile))
    said = f"claude does not take {refused}: take that out of the model_settings"
    with pytest.raises(ModelError, match=said) as caught:
        run(model.reply(ask(settings=EVERYTHING)))
    assert not caught.value.retryable
    assert provider.info is None


def test_reasoning_model_refuses_to_stop_reasoning():
    always = {"supports_thinking": True, "thinking_always_enabled": True}
    answer(Provider(TextPart("x")), ask(settings=EVERYTHING), profile=always)
    with pytest.raises(ModelError, match="does not take reasoning_effort"):
        answer(Provider(), ask(settings=ModelSettings(reasoning_effort="none")), profile=always)


class Counting(FunctionModel):
    """Counts how often it was opened and closed."""

    entered = 0

    async def __aenter__(self) -> Self:
        Counting.entered += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        Counting.entered -= 1


async def test_a_model_is_opened_once_and_closed_once():
    model = LibraryModel(Counting(Provider(TextPart("x"))))
    await model.close()
    await model.reply(ask())
    await model.reply(ask())
    assert Counting.entered == 1
    await model.close()
    await model.close()
    assert Counting.entered == 0


def install(monkeypatch: pytest.MonkeyPatch, make: Callable[..., Any]) -> list[dict[str, Any]]:
    """Put a provider in place of anthropic's, and return what it is opened with."""
    opened: list[dict[str, Any]] = []

    def provider(**given: Any) -> dict[str, Any]:
        opened.append(given)
        return given

    models, providers = ModuleType("models"), ModuleType("providers")
    models.AnthropicModel = make
    providers.AnthropicProvider = provider
    monkeypatch.setitem(sys.modules, "pydantic_ai.models.anthropic", models)
    monkeypatch.setitem(sys.modules, "pydantic_ai.providers.anthropic", providers)
    return opened


async def test_a_provider_is_opened_with_its_settings(monkeypatch: pytest.MonkeyPatch):
    made: list[dict[str, Any]] = []

    def make(name: str, **rest: Any) -> FunctionModel:
        made.append(rest)
        return FunctionModel(
            Provider(TextPart("hi"), usage=RequestUsage(input_tokens=10**6)), model_name=name
        )

    opened = install(monkeypatch, make)
    settings = {"ANTHROPIC_API_KEY": "k", "OTHER": "x"}
    models = ModelRegistry(clock=StillClock(), random=None, settings=settings)  # type: ignore[arg-type]
    reply = await models.model("anthropic:claude-sonnet-4-5").reply(ask())
    await models.close()
    assert reply.text == "hi"
    assert opened == [{"api_key": "k"}]
    assert made[0]["settings"] == {"max_retries": 0}
    assert reply.usage.cost_usd is not None
    assert reply.usage.cost_usd > 0


def test_library_without_retries_gets_no_retry_option(monkeypatch: pytest.MonkeyPatch):
    made: list[dict[str, Any]] = []

    def make(name: str, **rest: Any) -> FunctionModel:
        made.append(rest)
        return FunctionModel(Provider(), model_name=name)

    install(monkeypatch, make)
    quiet = replace(THROUGH_LIBRARY["anthropic"], repeats=False)
    open_library("x:m", quiet, "m", {"ANTHROPIC_API_KEY": "k"})
    assert made[0]["settings"] is None


def test_a_library_that_is_not_there_is_named_with_what_to_install():
    missing = Library("anthropic_of_nowhere", "M", "P", (("api_key", "K"),), "x")
    with pytest.raises(UsageError, match="x:m needs a library that is not installed") as caught:
        open_library("x:m", missing, "m", {"K": "k"})
    assert caught.value.hint == 'install it: pip install "weft-agents[anthropic_of_nowhere]"'
