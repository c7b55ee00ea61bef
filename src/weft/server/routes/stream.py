"""The events of a run as a server-sent stream: the same frames as on a socket."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack
from typing import Annotated, Final

from fastapi import Header, Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from weft.errors import AccessDenied, WeftError
from weft.server.actions import PEOPLE
from weft.server.context import ServerContext
from weft.server.identity import Principal, Unauthenticated
from weft.server.live.frames import Frame, as_sse
from weft.server.live.ring import Outlet
from weft.server.parameters import EventNumber, RunPath
from weft.server.routing import Caller, Context, Routes

_log: Final = logging.getLogger("weft.server")

routes: Final = Routes("runs")

MEDIA: Final = "text/event-stream"

#: A proxy may otherwise keep parts of the stream until they are many.
_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}
_PING: Final = b": ping\n\n"

LastEvent = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        max_length=16,
        pattern="^[0-9]*$",
        description="The last `id` that came; it wins over `after`.",
    ),
]


@routes.add("GET", "/api/runs/{run}/stream", roles=PEOPLE, answer=str, media=MEDIA)
async def stream(
    run: RunPath,
    request: Request,
    caller: Caller,
    context: Context,
    after: EventNumber = 0,
    last: LastEvent = None,
) -> Response:
    """Send the events of a run after a number as they are written, until it has ended.

    `id` is the number of an event, `event` its kind, `data` the same frame as on a socket.
    """
    with ExitStack() as stack:
        outlet = stack.enter_context(context.connected(caller))
        following = await context.feeds.follow(caller, run, outlet, int(last) if last else after)
        stack.callback(following.end)
        frames = sent(context, caller, request, outlet, lambda: following.is_finished)
        return Stream(frames, stack.pop_all())


class Stream(StreamingResponse):
    """A stream that ends what it has begun, also if nothing of it can be sent."""

    def __init__(self, frames: AsyncGenerator[bytes], stack: ExitStack) -> None:
        super().__init__(frames, media_type=MEDIA, headers=_HEADERS)
        self._stack = stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._stack:
            await super().__call__(scope, receive, send)


async def sent(
    context: ServerContext,
    caller: Principal,
    request: Request,
    outlet: Outlet,
    is_finished: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[bytes]:
    """Yield what an outlet has; it also ends when the caller is not known any more."""
    limits = context.settings.limits
    loop = asyncio.get_running_loop()
    checked_at = loop.time()
    taking: asyncio.Future[list[Frame]] | None = None
    try:
        while not is_finished() or outlet.has_more:
            # A ping must not interrupt it: what it has taken would be lost.
            taking = taking or asyncio.ensure_future(outlet.next())
            await asyncio.wait((taking,), timeout=limits.heartbeat_seconds)
            if not taking.done():
                yield _PING
            else:
                frames, taking = taking.result(), None
                if frames:
                    yield b"".join(map(as_sse, frames))
                elif outlet.closed is not None:  # Such as when the server stops.
                    return
            if loop.time() - checked_at >= limits.identity_seconds:
                checked_at = loop.time()
                if await context.authenticator.caller(request.headers) != caller:
                    return
    except (AccessDenied, Unauthenticated):  # The run was deleted, or the caller.
        return
    except WeftError as error:  # The client continues with its next request.
        _log.warning("the stream %s has ended: %s", request.url.path, error)
    finally:
        if taking is not None:
            taking.cancel()
