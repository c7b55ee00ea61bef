"""A conversation in the form of pydantic-ai."""

from collections.abc import Sequence
from typing import Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from weft.ports.model import ChatMessage

#: What an agent hears that speaks first: these providers refuse to answer to nothing.
_BEGIN: Final = "Begin."


def as_messages(messages: Sequence[ChatMessage]) -> list[ModelMessage]:
    """Translate a conversation; what is said to the model between two replies goes together."""
    translated: list[ModelMessage] = []
    waiting: list[ModelRequestPart] = []
    tools: dict[str, str] = {}
    for message in messages:
        if message["role"] != "assistant":
            waiting.append(_heard(message, tools))
            continue
        if waiting:
            translated.append(ModelRequest(parts=waiting))
            waiting = []
        translated.append(ModelResponse(parts=_spoken(message)))
        for call in message.get("tool_calls", ()):
            tools[call["id"]] = call["function"]["name"]
    if not any(message["role"] != "system" for message in messages):
        waiting.append(UserPromptPart(_BEGIN))
    if waiting:
        translated.append(ModelRequest(parts=waiting))
    return translated


def _heard(message: ChatMessage, tools: dict[str, str]) -> ModelRequestPart:
    content = message["content"] or ""
    match message["role"]:
        case "system":
            return SystemPromptPart(content)
        case "tool":
            call = message.get("tool_call_id", "")
            return ToolReturnPart(tools.get(call, "unknown"), content, tool_call_id=call)
        case _:
            return UserPromptPart(content)


def _spoken(message: ChatMessage) -> list[ModelResponsePart]:
    parts: list[ModelResponsePart] = []
    if message["content"]:
        parts.append(TextPart(message["content"]))
    for call in message.get("tool_calls", ()):
        function = call["function"]
        parts.append(ToolCallPart(function["name"], function["arguments"], tool_call_id=call["id"]))
    return parts
