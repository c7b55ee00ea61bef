"""What a tool server offers and answers, in Weft's words."""

import logging
import re
from collections.abc import Iterable
from typing import Final

from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    Tool,
)

from weft.errors import ToolError
from weft.findings import Json
from weft.ports.model import ToolSchema
from weft.ports.tool_servers import OfferedTool
from weft.runtime.variables.json_values import plain_json

LOG: Final = logging.getLogger("weft.mcp")

#: The names that every model provider accepts.
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")

#: Characters of an image and the like, as it is encoded, that go along with a result.
_MOST_BINARY: Final = 100_000


def read_tools(server: str, tools: Iterable[Tool]) -> list[OfferedTool]:
    """Return the tools of a server that models can call; the others are named in the log."""
    offered: list[OfferedTool] = []
    for tool in tools:
        if not _NAME.fullmatch(tool.name):
            LOG.warning(
                "the tool %.80r of the MCP server %s is left out: models accept names of up to 64"
                " letters, digits, - and _",
                tool.name,
                server,
            )
            continue
        schema = ToolSchema(tool.name, tool.description or "", tool.input_schema)
        reads = tool.annotations is not None and tool.annotations.read_only_hint is True
        offered.append(OfferedTool(schema, reads))
    return offered


def read_result(tool: str, result: CallToolResult) -> Json:
    """Return what a tool answered. Raises ToolError if that is more than a result may be."""
    answer = result.structured_content
    if answer is None:
        answer = _content(result.content)
    try:
        return plain_json(answer)
    except ValueError as error:
        raise ToolError(f"{tool} returned {error}") from error


def text_of(content: Iterable[ContentBlock]) -> str:
    return "\n".join(block.text for block in content if isinstance(block, TextContent))


def _content(content: list[ContentBlock]) -> Json:
    """Return text, or a list in which text and what is no text stand in their order."""
    if all(isinstance(block, TextContent) for block in content):
        return text_of(content)
    return [block.text if isinstance(block, TextContent) else _other(block) for block in content]


def _other(block: ImageContent | AudioContent | ResourceLink | EmbeddedResource) -> Json:
    match block:
        case ImageContent() | AudioContent():
            return {"type": block.type, "mime_type": block.mime_type, **_binary(block.data)}
        case ResourceLink():
            link = {"uri": block.uri, "name": block.name, "description": block.description or ""}
            return {"type": block.type, "mime_type": block.mime_type, **link}
        case EmbeddedResource(resource=held):
            binary = isinstance(held, BlobResourceContents)
            given = _binary(held.blob) if binary else {"text": held.text}
            return {"type": block.type, "mime_type": held.mime_type, "uri": held.uri, **given}


def _binary(data: str) -> dict[str, Json]:
    """Return data as it is encoded, or its size if it is too much for a conversation."""
    if len(data) <= _MOST_BINARY:
        return {"data": data}
    return {"left_out": f"{len(data) * 3 // 4:,} bytes are too many"}
