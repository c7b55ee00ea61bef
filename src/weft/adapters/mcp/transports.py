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


#: A message longer than this is none; results may stand in one twice, as text and as data.
MOST_BYTES: Final = 4 * MAX_BYTES

#: What a program gets of our environment; all else its declaration gives it.
_INHERITED: Final = ("PATH", "HOME", "LANG")

#: So many lines in a row that are no messages come from a program that is no server.
_MOST_NOISE: Final = 100

#: What is kept of stderr and of a line that is no message, in bytes; what is shown, in characters.
_KEPT: Final = 8_192
_SHOWN: Final = 500

#: Seconds a program has to end after its input was closed, and again after it was told to.
_GRACE: Final = 1.0

#: Seconds between its end and the last of what it wrote.
_LINGER: Final = 0.3

_Sender: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]


class _Pipes(asyncio.SubprocessProtocol):
    """What comes out of a program: lines to be read, and the end of its stderr."""

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
            self.stderr = (self.stderr + data)[-_KEPT:]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        if fd == 1:
            self.stdout.feed_eof()
        elif fd == 2:
            self.silent.set()

    def process_exited(self) -> None:
        self.exited.set()


class Program:
    """One start of a program; `on_end` is called when it will say nothing more."""

    unusable = "did not start as an MCP server"
    remedy = "check its command"

    def __init__(
        self, server: ToolServer, environment: Mapping[str, str], on_end: Callable[[], None]
    ) -> None:
        self._command = server.command
        self._folder = server.folder or None
        inherited = {name: environment[name] for name in _INHERITED if name in environment}
        self._environment = {**inherited, **server.env}
        self._on_end = on_end
        self._speaks = False
        self._ended = False
        self._pipes = _Pipes()
        self._noise: list[bytes] = []
        self._exit_code: int | None = None

    @asynccontextmanager
    async def open(self) -> "AsyncGenerator[TransportStreams, None]":
        """Start the program; leaving ends it and all that it has started."""
        transport = await self._start()
        stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
        sender, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
        outgoing, receiver = anyio.create_memory_object_stream[SessionMessage]()
        work = {
            asyncio.create_task(self._read(sender)),
            asyncio.create_task(_write(receiver, stdin)),
            asyncio.create_task(self._notice_exit()),
        }
        try:
            with sender, incoming, outgoing, receiver:
                yield incoming, outgoing
        finally:
            for task in work:
                task.cancel()
            await self._end(transport, stdin)

    def reasons(self, mask: Callable[[str], str]) -> list[str]:
        """Say why the program is of no use; `mask` takes the secrets out of a text.

        It does so before anything is shortened: half a secret would not be found.
        """
        if self._speaks and not self._ended:
            return []
        facts: list[str] = []
        if self._exit_code is not None:
            facts.append(f"its program ended with exit code {self._exit_code}")
        if self._noise:
            line = mask(self._noise[0].decode(errors="replace"))[:_SHOWN]
            facts.append(f"it printed {line!r}, which is no message of MCP")
        if stderr := mask(self._pipes.stderr.decode(errors="replace").strip()):
            facts.append(f"its stderr ends with: {stderr[-_SHOWN:]}")
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
            while len(self._noise) < _MOST_NOISE and (line := await self._line()):
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    self._noise.extend([line[:_KEPT].strip()] if line.strip() else [])
                    await asyncio.sleep(0)  # One that talks without end is not all we hear.
                else:
                    self._speaks = True
                    self._noise.clear()
                    await messages.send(SessionMessage(message))
            self._notice_end()

    async def _line(self) -> bytes:
        try:
            return await self._pipes.stdout.readline()
        except ValueError:
            self._noise.append(b"a line of more than %d bytes" % MOST_BYTES)
            return b""

    async def _notice_exit(self) -> None:
        """Notice an end that the output does not show, since somebody else holds it open."""
        await self._pipes.exited.wait()
        await asyncio.sleep(_LINGER)
        self._notice_end()

    def _notice_end(self) -> None:
        self._ended = True
        self._on_end()

    async def _end(
        self, transport: asyncio.SubprocessTransport, stdin: asyncio.WriteTransport
    ) -> None:
        exited = self._pipes.exited
        try:
            if self._ended and await _within(exited, _LINGER):
                self._exit_code = transport.get_returncode()
            stdin.close()
            # Only a server knows what it means that its input is closed.
            grace = _GRACE if self._speaks and not self._ended else 0
            if not await _within(exited, grace):
                _signal(transport, hard=False)
            if not await _within(exited, _GRACE):
                _signal(transport, hard=True)
                await _within(exited, _GRACE)
            await _within(self._pipes.silent, _LINGER)
        finally:
            _signal(transport, hard=True)  # whatever it started and left behind
            transport.close()


async def _write(
    messages: MemoryObjectReceiveStream[SessionMessage], stdin: asyncio.WriteTransport
) -> None:
    with messages:
        async for item in messages:
            # Without waiting until it is read: a program that hangs must not hold up anybody.
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(text.encode() + b"\n")


async def _within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event for a while; tell whether it came."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def _signal(transport: asyncio.SubprocessTransport, *, hard: bool) -> None:
    """Tell a program and all that it has started to end, or make them."""
    if sys.platform == "win32":
        transport.terminate()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(transport.get_pid(), signal.SIGKILL if hard else signal.SIGTERM)


#: Seconds of silence after which an answer is given up even if nobody waits for it any more.
_SILENCE: Final = 300.0

#: What stands in front of a host, and a query: either may be secret.
_PRIVATE: Final = re.compile(r"(?<=//)[^/]*@|\?.*")


class Address:
    """One connection to an address; `refused` is the status of its last answer if that says no."""

    unusable = "cannot be reached as an MCP server"
    remedy = "check its url and its login"

    def __init__(self, server: ToolServer) -> None:
        self.refused: int | None = None
        self._server = server

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["TransportStreams", None]:
        timeout = Timeout(self._server.timeout, read=max(_SILENCE, 2 * self._server.timeout))
        async with (
            # Proxies and passwords that stand in the environment or in files are not for it.
            AsyncClient(
                headers=_headers(self._server.login),
                timeout=timeout,
                trust_env=False,
                event_hooks={"response": [self._note]},
            ) as client,
            streamable_http_client(
                self._server.url, http_client=client, max_sse_event_size=MOST_BYTES
            ) as streams,
        ):
            yield streams

    def reasons(self, mask: Callable[[str], str]) -> list[str]:
        """Say where the server is, and what its last answer was if it was a refusal."""
        facts = [f"its address is {mask(_PRIVATE.sub('', self._server.url))}"]
        if self.refused is not None:
            facts.append(f"it answered with HTTP {self.refused}")
        return facts

    async def _note(self, response: Response) -> None:
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
