"""Models of providers with their own interface, called through the classes of pydantic-ai."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from pydantic_ai import exceptions
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as RequestMessage
from pydantic_ai.models import Model as AnyModel
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings as LibrarySettings
from pydantic_ai.tools import ToolDefinition
from pydantic_core import to_json

from weft.adapters.models.completion import RawCall, tool_requests, unusual_finish
from weft.adapters.models.strict_schema import strict_schema
from weft.engine.events import NO_USAGE, Usage
from weft.errors import ModelError
from weft.ports.model import ChatMessage, ModelReply, ModelRequest
from weft.spec.agents import ModelSettings

#: The library's names of settings that have another name here.
_NAMES: Final = {"stop": "stop_sequences", "reasoning_effort": "thinking"}

#: Models of these profiles take neither temperature nor top_p.
_NO_SAMPLING: Final = (
    "anthropic_disallows_sampling_settings",
    "bedrock_disallows_sampling_settings",
)


def library_settings(
    model: AnyModel[Any], settings: ModelSettings | None
) -> LibrarySettings | None:
    """Translate settings; raises ModelError if the library would leave one of them out.

    It maps an effort that a model does not know to the nearest one it does.
    """
    if settings is None:
        return None
    refused = list(_unsupported_settings(model, settings))
    if refused:
        raise ModelError(
            f"{model.model_name} does not take {', '.join(refused)}: "
            "take that out of the model_settings of the agent and of the workflow"
        )
    made = {_NAMES.get(name, name): value for name, value in settings if value is not None}
    if settings.stop is not None:
        made["stop_sequences"] = list(settings.stop)
    if settings.reasoning_effort == "none":
        made["thinking"] = False
    return cast("LibrarySettings", made)


def _unsupported_settings(model: AnyModel[Any], settings: ModelSettings) -> Iterator[str]:
    profile = cast("Mapping[str, object]", model.profile)
    not_sent: set[str] = set(model.unsupported_settings)
    if any(profile.get(flag) for flag in _NO_SAMPLING):
        not_sent |= {"temperature", "top_p"}
    if not _supports_effort(model.system, profile, settings.reasoning_effort):
        not_sent.add("thinking")
    for name, value in settings:
        if value is not None and _NAMES.get(name, name) in not_sent:
            yield name


def _supports_effort(system: str, profile: Mapping[str, object], effort: str | None) -> bool:
    # Two providers have models that think and are sent no effort.
    if system == "bedrock" and not profile.get("bedrock_thinking_variant"):
        return False
    if profile.get("thinking_always_enabled"):
        return effort != "none" and system != "mistral"
    return bool(profile.get("supports_thinking"))


#: The tool by which a model without native structured output returns it.
_OUTPUT_TOOL: Final = "final_result"

#: Errors after which a retry may help; errors with a status are decided by the status.
_TRANSIENT_ERRORS: Final = (
    exceptions.ModelRateLimitError,
    exceptions.ModelUnavailableError,
    exceptions.ModelServerError,
    exceptions.ModelConnectionError,
    exceptions.ModelRequestTimeout,
)
_TRANSIENT_STATUS: Final = frozenset({408, 409, 425, 429})

#: The message to an agent that speaks first: these providers refuse an empty conversation.
_BEGIN: Final = "Begin."


class LibraryModel:
    """One model of a provider, opened with its first call. Close it."""

    def __init__(self, model: AnyModel[Any], *, secrets: Sequence[str] = ()) -> None:
        self._model = model
        self._secrets = secrets
        self._open = False

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Call the model; `on_text` receives the text as it arrives."""
        messages, parameters = as_messages(request.messages), _request_parameters(request)
        settings = library_settings(self._model, request.settings)
        try:
            await self._open_once()
            if on_text is None:
                whole = await model_request(
                    self._model,
                    messages,
                    model_settings=settings,
                    model_request_parameters=parameters,
                )
            else:
                whole = await self._stream(messages, settings, parameters, on_text)
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            raise self._to_model_error(error) from error
        return _to_reply(whole, request)

    async def close(self) -> None:
        if self._open:
            self._open = False
            await self._model.__aexit__(None, None, None)

    async def _open_once(self) -> None:
        if not self._open:
            self._open = True
            await self._model.__aenter__()

    async def _stream(
        self,
        messages: list[ModelMessage],
        settings: LibrarySettings | None,
        parameters: ModelRequestParameters,
        on_text: Callable[[str], None],
    ) -> ModelResponse:
        async with model_request_stream(
            self._model,
            messages,
            model_settings=settings,
            model_request_parameters=parameters,
        ) as stream:
            async for event in stream:
                match event:
                    case PartStartEvent(part=TextPart(content=text)) if text:
                        on_text(text)
                    case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
                        on_text(text)
                    case _:
                        on_text("")  # The model produces something other than text.
            return stream.get()

    def _to_model_error(self, error: exceptions.AgentRunError | exceptions.UserError) -> ModelError:
        """Return the provider's error without secrets."""
        text = f"{self._model.model_name}: {error}"
        for secret in self._secrets:
            text = text.replace(secret, "(key)")
        after = error.retry_after if isinstance(error, exceptions.ModelAPIError) else None
        return ModelError(text, retryable=_is_transient(error), after_seconds=after)


def _is_transient(error: exceptions.AgentRunError | exceptions.UserError) -> bool:
    if isinstance(error, exceptions.ModelQuotaExceededError | exceptions.ContentFilterError):
        return False
    if isinstance(error, exceptions.ModelHTTPError):
        return error.status_code in _TRANSIENT_STATUS or error.status_code >= 500
    # An invalid reply may be valid next time.
    return isinstance(error, (*_TRANSIENT_ERRORS, exceptions.UnexpectedModelBehavior))


def _request_parameters(request: ModelRequest) -> ModelRequestParameters:
    """Describe tools and output; the library knows how each model is asked for the output."""
    tools = [
        ToolDefinition(
            name=tool.name, parameters_json_schema=tool.parameters, description=tool.description
        )
        for tool in request.tools
    ]
    output = request.output
    if output is None:
        return ModelRequestParameters(function_tools=tools)
    shape, _ = strict_schema(output.schema)
    as_tool = ToolDefinition(
        name=_OUTPUT_TOOL,
        parameters_json_schema=shape,
        description="Give the reply in this form.",
        kind="output",
    )
    return ModelRequestParameters(
        function_tools=tools,
        output_mode="auto",
        output_object=OutputObjectDefinition(shape, name=output.name),
        output_tools=[as_tool],
    )


def _to_reply(whole: ModelResponse, request: ModelRequest) -> ModelReply:
    texts = [part.content for part in whole.parts if isinstance(part, TextPart)]
    calls: list[RawCall] = []
    for part in whole.parts:
        if not isinstance(part, ToolCallPart):
            continue
        arguments = part.args if isinstance(part.args, str) else part.args_as_dict()
        if part.tool_name == _OUTPUT_TOOL and request.output is not None:
            texts = [arguments if isinstance(arguments, str) else to_json(arguments).decode()]
        else:
            calls.append((part.tool_call_id, part.tool_name, arguments))
    return ModelReply(
        text="".join(texts),
        tool_requests=tool_requests(calls, request.key, whole.finish_reason),
        usage=_read_usage(whole),
        model=whole.model_name or "",
        finish_reason=unusual_finish(whole.finish_reason),
    )


def _read_usage(whole: ModelResponse) -> Usage:
    usage = whole.usage
    if usage.unmeasured_requests or not usage.has_values():
        return NO_USAGE
    return Usage(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)


def as_messages(messages: Sequence[ChatMessage]) -> list[ModelMessage]:
    """Translate a conversation; messages between two replies become one request."""
    translated: list[ModelMessage] = []
    waiting: list[ModelRequestPart] = []
    tools: dict[str, str] = {}
    for message in messages:
        if message["role"] != "assistant":
            waiting.append(_incoming_part(message, tools))
            continue
        if waiting:
            translated.append(RequestMessage(parts=waiting))
            waiting = []
        translated.append(ModelResponse(parts=_reply_parts(message)))
        for call in message.get("tool_calls", ()):
            tools[call["id"]] = call["function"]["name"]
    if not any(message["role"] != "system" for message in messages):
        waiting.append(UserPromptPart(_BEGIN))
    if waiting:
        translated.append(RequestMessage(parts=waiting))
    return translated


def _incoming_part(message: ChatMessage, tools: dict[str, str]) -> ModelRequestPart:
    content = message["content"] or ""
    match message["role"]:
        case "system":
            return SystemPromptPart(content)
        case "tool":
            call = message.get("tool_call_id", "")
            return ToolReturnPart(tools.get(call, "unknown"), content, tool_call_id=call)
        case _:
            return UserPromptPart(content)


def _reply_parts(message: ChatMessage) -> list[ModelResponsePart]:
    parts: list[ModelResponsePart] = []
    if message["content"]:
        parts.append(TextPart(message["content"]))
    for call in message.get("tool_calls", ()):
        function = call["function"]
        parts.append(ToolCallPart(function["name"], function["arguments"], tool_call_id=call["id"]))
    return parts
