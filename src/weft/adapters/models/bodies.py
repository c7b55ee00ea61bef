"""The body of a request to a chat completions endpoint, with nothing encoded twice."""

from typing import Any, Final

from pydantic_core import PydanticSerializationError, to_json

from weft.adapters.models.strict_schema import strict_schema
from weft.errors import ModelError
from weft.ports.model import ModelRequest, OutputSchema, ToolSchema

#: How many sets of tools and outputs one model is asked with before the encoded ones are dropped.
MOST_TAILS: Final = 512

#: What is encoded once: the tools and the output, kept so that their identities stay theirs.
_Tail = tuple[tuple[ToolSchema, ...], OutputSchema | None, bytes]


class BodyWriter:
    """Writes the requests to one model."""

    def __init__(self, model: str) -> None:
        self._head = b'{"model":' + to_json(model) + b',"messages":'
        self._tails: dict[tuple[int, int, bool], _Tail] = {}

    def body(self, request: ModelRequest, *, stream: bool) -> bytes:
        """Return a request as JSON."""
        try:
            messages = to_json(list(request.messages))
        except PydanticSerializationError as error:
            raise ModelError(f"a message cannot be written as JSON: {error}") from error
        return b"".join((self._head, messages, self._tail(request, stream=stream)))

    def _tail(self, request: ModelRequest, *, stream: bool) -> bytes:
        """Return all that follows the messages: the same for every call of an agent.

        Schemas cannot be hashed cheaply, so they are known by identity: whoever asks with the same
        objects each time pays for encoding them once.
        """
        key = (id(request.tools), id(request.output), stream)
        known = self._tails.get(key)
        if known is None:
            if len(self._tails) >= MOST_TAILS:
                self._tails.clear()
            encoded = _encode_tail(request.tools, request.output, stream=stream)
            known = self._tails[key] = (request.tools, request.output, encoded)
        return known[2]


def _encode_tail(
    tools: tuple[ToolSchema, ...], output: OutputSchema | None, *, stream: bool
) -> bytes:
    fields: dict[str, Any] = {}
    if tools:
        fields["tools"] = [{"type": "function", "function": tool} for tool in tools]
        fields["tool_choice"] = "auto"
    if output is not None:
        schema, strict = strict_schema(output.schema)
        described = {"name": output.name, "schema": schema, "strict": strict}
        fields["response_format"] = {"type": "json_schema", "json_schema": described}
    if stream:
        fields["stream"] = True
        fields["stream_options"] = {"include_usage": True}
    return b"," + to_json(fields)[1:] if fields else b"}"
