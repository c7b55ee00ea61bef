"""What tests of services share: a server on this machine, and ways to ask it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

import pytest
from aiohttp import web

from support.model_play import StillClock, run
from weft.adapters.services.http_services import HttpServices
from weft.errors import PortError
from weft.ports.clock import Clock
from weft.ports.external import ServiceAnswer, ServiceRequest
from weft.ports.scope import Scope

ADA = Scope("shop", "ada")
SECRET = "canary-5f1c9"

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Service:
    """A server on this machine: gives its answers in order, the last one for ever.

    A number from 100 on is a status, a function makes the response, all else is sent as JSON.
    """

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.seen: list[web.BaseRequest] = []

    async def __aenter__(self) -> Self:
        self._runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        self.place = f"127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.seen.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(answer):
            return await answer(request)
        if isinstance(answer, int) and answer >= 100:
            return web.Response(status=answer)
        return web.json_response(answer)

    def url(self, path: str = "/orders?key=in-the-query") -> str:
        return f"http://{self.place}{path}"


def to(location: str, status: int = 302) -> Handler:
    async def redirect(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": location})

    return redirect


def with_headers(status: int, **headers: str) -> Handler:
    named = {name.replace("_", "-"): header for name, header in headers.items()}

    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=status, headers=named)

    return answer


def said(body: bytes, **rest: Any) -> Handler:
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body, **rest)

    return answer


def ask(url: str, **rest: Any) -> ServiceRequest:
    return ServiceRequest("orders", "find", url, **rest)


@asynccontextmanager
async def asking(
    *answers: Any, clock: Clock | None = None
) -> AsyncGenerator[tuple[Service, HttpServices], None]:
    """Open a service, and what may ask it."""
    async with Service(*answers) as service:
        services = HttpServices(clock or StillClock(), frozenset({service.place}))
        try:
            yield service, services
        finally:
            await services.close()


def get(
    *answers: Any, path: str = "/orders?key=in-the-query", **rest: Any
) -> tuple[ServiceAnswer | PortError, Service, StillClock]:
    """Ask a service once."""

    async def play() -> tuple[ServiceAnswer | PortError, Service, StillClock]:
        clock = StillClock()
        async with asking(*answers, clock=clock) as (service, services):
            try:
                return await services.ask(ADA, ask(service.url(path), **rest)), service, clock
            except PortError as error:
                return error, service, clock

    return run(play())


def failed(*answers: Any, **rest: Any) -> PortError:
    outcome, _, _ = get(*answers, **rest)
    assert isinstance(outcome, PortError)
    return outcome


def value(*answers: Any, **rest: Any) -> Any:
    outcome, _, _ = get(*answers, **rest)
    assert isinstance(outcome, ServiceAnswer), outcome
    return outcome.value


def broken_off(reply: bytes, url: str = "http://PLACE/", **rest: Any) -> PortError:
    """Ask a server that sends this and is gone."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        writer.close()

    async def play() -> PortError:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        services = HttpServices(StillClock(), frozenset({place}))
        with pytest.raises(PortError, match="broke off") as caught:
            await services.ask(ADA, ask(url.replace("PLACE", place), **rest))
        await services.close()
        server.close()
        return caught.value

    return run(play())


#: A header longer than any client reads.
TOO_LONG = b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"


def counting() -> Handler:
    """Say how often it was asked."""
    count = 0

    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        nonlocal count
        count += 1
        return web.json_response([count])

    return answer
