"""The WebSocket `/api/ws`: one connection for any number of runs.

It is a plain ASGI application: a framework costs memory for every socket that is open.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send

from weft.errors import UsageError, WeftError
from weft.server.board_view import BoardView, place_of
from weft.server.context import ServerContext
from weft.server.identity import KNOWN, Principal, TooMany, Unauthenticated, authorize
from weft.server.live.commands import (
    Follow,
    FollowBoard,
    InvalidCommand,
    Pong,
    Unfollow,
    parse_command,
)
from weft.server.live.feeds import Following
from weft.server.live.frames import PING, ack_frame, joined
from weft.server.live.ring import UNREADABLE, Outlet
from weft.server.problems import problem_answer, problem_of

_log: Final = logging.getLogger("weft.server")

#: How many runs and boards one socket follows, and how many frames wait besides those of runs.
MOST_FOLLOWED: Final = 5_000
MOST_WAITING: Final = 1_000

#: The codes with which a socket is closed (RFC 6455), beside 1012 when the server stops.
NO_TEXT: Final = (1003, "messages are JSON text")
NOT_VALID: Final = (1008, "the key, token or session is not valid any more")
CHANGED: Final = (1008, "the rights of the caller have changed; connect again")
SILENT: Final = (1011, "no answer to a ping")
BUG: Final = (1011, "the server failed; its log says why")


def socket_route(context: ServerContext) -> WebSocketRoute:
    """Return the route of the socket."""
    return WebSocketRoute("/api/ws", _SocketApp(context))


class _SocketApp:
    def __init__(self, context: ServerContext) -> None:
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept a socket of a caller that is known, and serve it."""
        context, headers = self._context, Headers(raw=scope["headers"])
        await receive()
        with ExitStack() as stack:
            try:
                caller = authorize(await context.authenticator.caller(headers), KNOWN)
                outlet = stack.enter_context(context.connected(caller))
            except Exception as error:  # noqa: BLE001 - becomes an answer
                found = problem_of(error, context.folders)
                await problem_answer(found, {"connection": "close"})(scope, receive, send)
            else:
                await _Socket(context, caller, headers, outlet, send).serve(receive)


class _Socket:
    """One open socket. What it is sent goes through its outlet."""

    __slots__ = (
        "_abandoned", "_boards", "_caller", "_check", "_checked_at", "_context", "_headers",
        "_is_busy", "_is_silent", "_outlet", "_runs", "_send", "_task", "_timer",
    )  # fmt: skip

    def __init__(
        self,
        context: ServerContext,
        caller: Principal,
        headers: Headers,
        outlet: Outlet,
        send: Send,
    ) -> None:
        self._context = context
        self._caller = caller
        self._headers = headers
        self._outlet = outlet
        self._send = send
        self._runs: dict[str, Following] = {}
        self._boards: dict[str, asyncio.Task[None]] = {}
        self._task = asyncio.current_task()
        self._abandoned = False
        #: Whether a command is under way, and whether nothing has come since the last ping.
        self._is_busy = False
        self._is_silent = False
        self._check: asyncio.Task[None] | None = None
        self._checked_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def serve(self, receive: Receive) -> None:
        """Send and receive until one side ends it. Commands under way are not interrupted."""
        await self._send({"type": "websocket.accept"})
        self._checked_at = asyncio.get_running_loop().time()
        pump = asyncio.create_task(self._pump())
        self._wait_for_beat()
        try:
            while (message := await receive())["type"] == "websocket.receive":
                self._is_silent = False
                text: str | None = message.get("text")
                if text is None:
                    self._outlet.close(*NO_TEXT)
                elif self._outlet.closed is None:
                    self._is_busy = True
                    await self._take(text)
                    self._is_busy = False
        except asyncio.CancelledError:
            if not self._abandoned or self._task is None:
                raise
            self._task.uncancel()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            for following in self._runs.values():
                following.end()
            for task in (pump, self._check, *self._boards.values()):
                if task is not None:
                    task.cancel()

    # -- sending

    async def _pump(self) -> None:
        """Send what the outlet has, until it is closed."""
        outlet, send = self._outlet, self._send
        try:
            try:
                while outlet.closed is None:
                    if frames := await outlet.next():
                        await send({"type": "websocket.send", "text": joined(frames)})
            except WeftError as error:
                _log.warning("a socket cannot be served: %s", error)
                outlet.close(*UNREADABLE)
            code, reason = outlet.closed or BUG
            await send({"type": "websocket.close", "code": code, "reason": reason})
        except OSError:  # The client has gone.
            pass
        except Exception:  # noqa: BLE001 - a bug closes one socket
            _log.exception("a socket failed")
            await send({"type": "websocket.close", "code": BUG[0], "reason": BUG[1]})

    # -- the heartbeat

    def _wait_for_beat(self) -> None:
        seconds = self._context.settings.limits.heartbeat_seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._beat)

    def _beat(self) -> None:
        """Ping the client, or close the socket if it has not answered the last ping."""
        self._wait_for_beat()
        if self._outlet.closed is not None:  # What was to be sent before could not be sent.
            self._abandon()
            return
        if self._is_silent and not self._is_busy:
            self._outlet.close(*SILENT)
            return
        self._is_silent = True
        self._outlet.put(PING)
        now = asyncio.get_running_loop().time()
        if now - self._checked_at >= self._context.settings.limits.identity_seconds:
            self._checked_at = now
            self._check = asyncio.create_task(self._check_caller())

    async def _check_caller(self) -> None:
        """Close the socket if the caller is not known any more, or has other rights."""
        try:
            caller = await self._context.authenticator.caller(self._headers)
        except Unauthenticated:
            self._outlet.close(*NOT_VALID)
        except WeftError as error:  # It is checked again soon.
            _log.warning("a caller cannot be checked: %s", error)
        else:
            if caller != self._caller:
                self._outlet.close(*CHANGED)

    def _abandon(self) -> None:
        """End a socket whose client does not even read that it is closed."""
        self._abandoned = True
        if self._task is not None:
            self._task.cancel()

    # -- receiving

    async def _take(self, text: str) -> None:
        """Perform a command and acknowledge it."""
        if self._outlet.waiting > MOST_WAITING:  # It sends and does not read.
            self._abandon()
            return
        id_: str | None = None
        try:
            command = parse_command(text)
            id_ = command.id
            if isinstance(command, Pong):
                return
            result = await self._perform(command)
        except InvalidCommand as error:
            self._outlet.put(ack_frame(error.id, error.problem))
        except Exception as error:  # noqa: BLE001 - becomes an answer
            self._outlet.put(ack_frame(id_, problem_of(error, self._context.folders, self._caller)))
        else:
            self._outlet.put(ack_frame(id_, None, **result))

    async def _perform(self, command: Any) -> Mapping[str, object]:  # noqa: ANN401 - a command
        match command:
            case Follow(run=run, after=after):
                self._require_room()
                following = await self._context.feeds.follow(self._caller, run, self._outlet, after)
                self._end(self._runs.pop(run, None))
                self._runs[run] = following
                return {"run": run}
            case FollowBoard(workflow=workflow, after=after):
                self._require_room()
                return await self._follow_board(workflow, after)
            case Unfollow(run=run, workflow=workflow):
                if (run is None) == (workflow is None):
                    raise UsageError("name what is not followed any more: a run, or a workflow")
                self._end(self._runs.pop(run or "", None))
                if (task := self._boards.pop(workflow or "", None)) is not None:
                    task.cancel()
                return {}
            case _:
                return await command.perform(self._context, self._caller)

    def _end(self, following: Following | None) -> None:
        if following is not None:
            following.end()

    def _require_room(self) -> None:
        if len(self._runs) + len(self._boards) >= MOST_FOLLOWED:
            raise TooMany(f"the socket follows {MOST_FOLLOWED} runs", hint="unfollow some of them")

    async def _follow_board(self, workflow: str, after: str | None) -> Mapping[str, object]:
        place_of(after)  # Raises if it is not valid.
        board = BoardView(self._context.host, self._caller, workflow)
        await board.require()
        if (before := self._boards.pop(workflow, None)) is not None:
            before.cancel()
        self._boards[workflow] = asyncio.create_task(board.send(after, self._outlet))
        return {"workflow": workflow}
