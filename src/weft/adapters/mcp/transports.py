"""Transports of MCP servers: streamable HTTP, and programs started on this machine.

The library's own transport for programs is not used: it logs what a server prints, including
secrets, passes on more of our environment, and reads lines of unlimited length.
"""

import asyncio
import os
import re
import signal
import sys
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from httpx2 import AsyncClient, Response, Timeout
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from weft.errors import ToolError
from weft.ports.external import ServiceLogin, ToolServer
from weft.runtime.variables.json_values import MAX_BYTES

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


#: The most bytes of a message; it may contain a result twice, as text and as data.
MOST_BYTES: Final = 4 * MAX_BYTES

#: The variables a program inherits; its declaration gives it all others.
_INHERITED_VARIABLES: Final = ("PATH", "HOME", "LANG")

#: After so many invalid lines in a row a program is not considered a server.
_MAX_NOISE: Final = 100

#: The bytes of stderr and of an invalid line that are stored; the characters that are shown.
_STDERR_BYTES: Final = 8_192
_SHOWN_CHARACTERS: Final = 500

#: Seconds for a program to end after its input was closed, and again after SIGTERM.
_GRACE: Final = 1.0

#: Seconds to wait for the last output after a program has ended.
_LINGER: Final = 0.3

_Sender: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]


class _Pipes(asyncio.SubprocessProtocol):
    """The output of a program: lines of stdout, and the end of its stderr."""

    def __init__(self) -> None:
        self.stdout = asyncio.StreamReader(MOST_BYTES)
        self.stderr = b""
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        out = cast("asyncio.SubprocessTransport", transport).get_pipe_transport(1)
        self.stdout.set_transport(cast("asyncio.BaseTransport", out))  # so that it can be paused

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self.stdout.feed_data(data)
        else:
            self.stderr = (self.stderr + data)[-_STDERR_BYTES:]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        if fd == 1:
            self.stdout.feed_eof()
        elif fd == 2:
            self.silent.set()

    def process_exited(self) -> None:
        self.exited.set()


class Program:
    """One start of a program; `on_end` is called when its output has ended."""

    unusable = "did not start as an MCP server"
    remedy = "check its command"

    def __init__(
        self, server: ToolServer, environment: Mapping[str, str], on_end: Callable[[], None]
    ) -> None:
        self._command = server.command
        self._folder = server.folder or None
        inherited = {
            name: environment[name] for name in _INHERITED_VARIABLES if name in environment
        }
        self._environment = {**inherited, **server.env}
        self._on_end = on_end
        self._is_server = False
        self._ended = False
        self._pipes = _Pipes()
        self._noise: list[bytes] = []
        self._exit_code: int | None = None

    @asynccontextmanager
    async def open(self) -> "AsyncGenerator[TransportStreams, None]":
        """Start the program; on exit, end it and all its child processes."""
        transport = await self._start()
        stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
        sender, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
        outgoing, receiver = anyio.create_memory_object_stream[SessionMessage]()
        work = {
            asyncio.create_task(self._read(sender)),
            asyncio.create_task(_write(receiver, stdin)),
            asyncio.create_task(self._watch_exit()),
        }
        try:
            with sender, incoming, outgoing, receiver:
                yield incoming, outgoing
        finally:
            for task in work:
                task.cancel()
            await self._end(transport, stdin)

    def reasons(self, mask: Callable[[str], str]) -> list[str]:
        """Return why the program is unusable; `mask` removes secrets from a text.

        Texts are masked before they are shortened: half a secret would not be found.
        """
        if self._is_server and not self._ended:
            return []
        facts: list[str] = []
        if self._exit_code is not None:
            facts.append(f"its program ended with exit code {self._exit_code}")
        if self._noise:
            line = mask(self._noise[0].decode(errors="replace"))[:_SHOWN_CHARACTERS]
            facts.append(f"it printed {line!r}, which is not an MCP message")
        if stderr := mask(self._pipes.stderr.decode(errors="replace").strip()):
            facts.append(f"its stderr ends with: {stderr[-_SHOWN_CHARACTERS:]}")
        return facts

    async def _start(self) -> asyncio.SubprocessTransport:
        try:
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: self._pipes,
                *self._command,
                env=self._environment,
                cwd=self._folder,
                start_new_session=True,
            )
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ToolError(f"{self._command[0]} cannot be started: {reason}") from None
        except ValueError:  # Its text may quote the environment.
            raise ToolError("its command or environment holds a null character") from None
        return transport

    async def _read(self, messages: _Sender) -> None:
        with messages, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while len(self._noise) < _MAX_NOISE and (line := await self._line()):
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    self._noise.extend([line[:_STDERR_BYTES].strip()] if line.strip() else [])
                    await asyncio.sleep(
                        0
                    )  # Yield: a program that prints without end must not block the loop.
                else:
                    self._is_server = True
                    self._noise.clear()
                    await messages.send(SessionMessage(message))
            self._on_ended()

    async def _line(self) -> bytes:
        try:
            return await self._pipes.stdout.readline()
        except ValueError:
            self._noise.append(b"a line of more than %d bytes" % MOST_BYTES)
            return b""

    async def _watch_exit(self) -> None:
        """Detect an exit that stdout does not show, because another process holds it open."""
        await self._pipes.exited.wait()
        await asyncio.sleep(_LINGER)
        self._on_ended()

    def _on_ended(self) -> None:
        self._ended = True
        self._on_end()

    async def _end(
        self, transport: asyncio.SubprocessTransport, stdin: asyncio.WriteTransport
    ) -> None:
        exited = self._pipes.exited
        try:
            if self._ended and await _wait(exited, _LINGER):
                self._exit_code = transport.get_returncode()
            stdin.close()
            # Only a real server ends when its input is closed.
            grace = _GRACE if self._is_server and not self._ended else 0
            if not await _wait(exited, grace):
                _signal(transport, hard=False)
            if not await _wait(exited, _GRACE):
                _signal(transport, hard=True)
                await _wait(exited, _GRACE)
            await _wait(self._pipes.silent, _LINGER)
        finally:
            _signal(transport, hard=True)  # processes it started and left behind
            transport.close()


async def _write(
    messages: MemoryObjectReceiveStream[SessionMessage], stdin: asyncio.WriteTransport
) -> None:
    with messages:
        async for item in messages:
            # Not awaited: a program that hangs must not block its callers.
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(text.encode() + b"\n")


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event; return whether it happened in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def _signal(transport: asyncio.SubprocessTransport, *, hard: bool) -> None:
    """Send SIGTERM or SIGKILL to a program and all its child processes."""
    if sys.platform == "win32":
        transport.terminate()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(transport.get_pid(), signal.SIGKILL if hard else signal.SIGTERM)


#: Seconds of silence after which a response is abandoned.
_SILENCE: Final = 300.0

#: The login and the query of an address: either may be secret.
_PRIVATE: Final = re.compile(r"(?<=//)[^/]*@|\?.*")


class Address:
    """One connection to an address; `refused` is the status of its last response if an error."""

    unusable = "cannot be reached as an MCP server"
    remedy = "check its url and its login"

    def __init__(self, server: ToolServer) -> None:
        self.refused: int | None = None
        self._server = server

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["TransportStreams", None]:
        timeout = Timeout(self._server.timeout, read=max(_SILENCE, 2 * self._server.timeout))
        async with (
            # Proxies and passwords of the environment are not for this server.
            AsyncClient(
                headers=_headers(self._server.login),
                timeout=timeout,
                trust_env=False,
                event_hooks={"response": [self._note_status]},
            ) as client,
            streamable_http_client(
                self._server.url, http_client=client, max_sse_event_size=MOST_BYTES
            ) as streams,
        ):
            yield streams

    def reasons(self, mask: Callable[[str], str]) -> list[str]:
        """Return the address, and the status of the last response if it was an error."""
        facts = [f"its address is {mask(_PRIVATE.sub('', self._server.url))}"]
        if self.refused is not None:
            facts.append(f"it answered with HTTP {self.refused}")
        return facts

    async def _note_status(self, response: Response) -> None:
        self.refused = response.status_code if response.is_error else None


def _headers(login: ServiceLogin | None) -> dict[str, str]:
    if login is None:
        return {}
    if not (login.secret.isascii() and login.secret.isprintable()):
        raise ToolError("the secret of its login has characters that no header may have")
    match login.kind:
        case "bearer":
            return {login.header: f"Bearer {login.secret}"}
        case "basic":
            return {login.header: f"Basic {b64encode(login.secret.encode()).decode()}"}
        case "header":
            return {login.header: login.secret}
