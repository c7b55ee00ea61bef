"""A tool server for tests: a program over stdio, or over HTTP with `--http`; writes its port.

Its tools do what their names say. It shows them in pages of three.
"""

import asyncio
import base64
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import (
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

Context = ServerRequestContext[Any, Any]
Result = CallToolResult
PAGE = 3


def text(said: str) -> Result:
    return Result(content=[TextContent(text=said)])


async def echo(context: Context, text_: str = "", **rest: Any) -> Result:
    return text(json.dumps(rest) if rest else text_)


async def add(context: Context, a: int, b: int) -> Result:
    return Result(content=[TextContent(text=str(a + b))], structured_content={"sum": a + b})


async def slow(context: Context, seconds: float, words: str = "step") -> Result:
    for step in (1, 2):
        await context.session.report_progress(step, 4, f"{words} {step}")
    await context.session.report_progress(3, None, "somewhere")
    await asyncio.sleep(seconds)
    return text("awake")


async def die(context: Context, words: str = "") -> Result:
    sys.stderr.write(words)
    sys.stderr.flush()
    os._exit(3)


async def fail(context: Context, words: str) -> Result:
    return Result(content=[TextContent(text=words)], is_error=True)


async def crash(context: Context) -> Result:
    raise ValueError("crashed inside")


async def big(context: Context, length: int) -> Result:
    await context.session.report_progress(1, 1)
    return text("x" * length)


async def mixed(context: Context, length: int) -> Result:
    data = base64.b64encode(bytes(length)).decode()
    held = BlobResourceContents(uri="file:///b", blob=data, mime_type="application/pdf")
    note = TextResourceContents(uri="file:///t", text="noted", mime_type="text/plain")
    return Result(
        content=[
            TextContent(text="look"),
            ImageContent(data=data, mime_type="image/png"),
            EmbeddedResource(resource=held),
            EmbeddedResource(resource=note),
            ResourceLink(name="more", uri="file:///m"),
        ]
    )


async def whoami(context: Context) -> Result:
    """Tell the identity of the process and its environment."""
    return Result(content=[], structured_content={"pid": os.getpid(), "env": dict(os.environ)})


TOOLS: dict[str, Callable[..., Awaitable[Result]]] = {
    item.__name__: item for item in (echo, add, slow, die, fail, crash, big, mixed, whoami)
}
NAMES = [*TOOLS, "no name for a model"]


def described(name: str) -> Tool:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    reads = ToolAnnotations(read_only_hint=True) if name == "add" else None
    return Tool(name=name, description=f"It is {name}", input_schema=schema, annotations=reads)


async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    start = int(params.cursor) if params and params.cursor else 0
    after = str(start + PAGE) if start + PAGE < len(NAMES) else None
    return ListToolsResult(
        tools=[described(name) for name in NAMES[start : start + PAGE]], next_cursor=after
    )


async def call_tool(context: Context, params: CallToolRequestParams) -> Result:
    return await TOOLS[params.name](context, **(params.arguments or {}))


SERVER = Server("tests", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio() -> None:
    async with stdio_server() as (incoming, outgoing):
        await SERVER.run(incoming, outgoing, SERVER.create_initialization_options())


def serve_http() -> None:
    """Serve whoever sends one of the LOGINS; the port is chosen by the system."""
    served = SERVER.streamable_http_app()
    logins = {tuple(word.encode().split(b"=", 1)) for word in os.environ["LOGINS"].split("|")}

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and logins.isdisjoint(map(tuple, scope["headers"])):
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await served(scope, receive, send)

    # Named by its protocol, or else every answer would wait for a moment to be sent.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # Whoever reads the port may connect at once.
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(guarded, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    if sys.argv[1:] == ["--http"]:
        serve_http()
    else:
        asyncio.run(serve_stdio())
