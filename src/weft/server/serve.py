"""One server: opens a host, listens, and stops without losing what is under way."""

import asyncio
import gc
import json
import logging
import os
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import uvicorn
from fastapi import FastAPI
from starlette.routing import Mount

from weft.adapters.system_clock import SystemClock
from weft.app.folders import LOCAL, LOCAL_USER, SERVER_ROLES, server_file
from weft.app.hosts import open_host
from weft.errors import SetupError
from weft.ports.clock import Clock
from weft.server.app import guarded, make_app
from weft.server.auth.authenticator import Authenticator
from weft.server.auth.keys import ApiKeys
from weft.server.auth.sessions import Sessions
from weft.server.auth.tokens import TokenVerifier
from weft.server.auth.users import Users
from weft.server.background import running
from weft.server.context import ServerContext
from weft.server.extensions.routers import ExtensionRoutes
from weft.server.http.protocol import SEND_BUFFER, limited_protocol
from weft.server.identity import Principal
from weft.server.metrics import Metrics
from weft.server.settings import Limits, ServerSettings, settings_in_force
from weft.server.starts.changes import watch_documents
from weft.server.starts.schedules import Schedules
from weft.server.webhooks import WebhookSender

T = TypeVar("T")

_log: Final = logging.getLogger("weft.server")

#: The person at this machine: the tenant `local`, with all roles.
LOCAL_PRINCIPAL: Final = Principal(LOCAL.app, LOCAL_USER, frozenset(SERVER_ROLES))

#: Connections that wait to be accepted, and seconds that answers under way may take at the end.
_BACKLOG: Final = 2048
_ANSWER_SECONDS: Final = 5


@dataclass(frozen=True, slots=True)
class Opened:
    """A server that listens."""

    context: ServerContext
    url: str
    #: The address for a person: with a token that is valid once, if the person is at this machine.
    page: str
    stop: Callable[[], None]


@asynccontextmanager
async def open_server(
    workspace: Path,
    settings: ServerSettings,
    environment: Mapping[str, str],
    *,
    journal: str | None = None,
    works: bool = True,
    clock: Clock | None = None,
    default_model: str = "",
) -> AsyncGenerator[Opened]:
    """Open a server and listen; inside the block it answers.

    Raises SetupError if it cannot listen, or must not.
    """
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        host = await stack.enter_async_context(
            await open_host(
                workspace,
                journal=journal,
                environment=environment,
                works=works,
                default_model=default_model,
            )
        )
        keys = ApiKeys(host.records, clock)
        verifier = None if settings.oidc is None else TokenVerifier(settings.oidc, clock)
        await _require_identity(settings, keys)
        if settings.refuses_remote_clients:
            _log.warning(
                "requests of other machines are refused: set WEFT_HOSTS to the names of this server"
            )
        listener = stack.enter_context(_listener(settings))
        context = ServerContext(
            host=host,
            records=host.records,
            clock=clock,
            workspace=workspace,
            settings=settings,
            environment=environment,
            authenticator=Authenticator(
                keys,
                Sessions(host.records, clock, keys),
                Users(host.records, clock),
                verifier,
            ),
            metrics=Metrics(host, works=works),
            works=works,
            settings_shown=settings_in_force(
                workspace, environment, settings, journal=journal, works=works
            ),
        )
        url = _url(settings, listener)
        app = make_app(context)
        for service in _services(context, app):
            await stack.enter_async_context(service)
        if works:
            await host.recover()
        page = f"{url}/"
        if settings.is_loopback:
            page += f"#token={context.authenticator.sessions.one_time_token(LOCAL_PRINCIPAL)}"
            stack.enter_context(_server_file(workspace, url, keys))
        server = _Server(
            uvicorn.Config(
                guarded(app),
                http=limited_protocol(_within_descriptors(settings.limits)),
                ws="websockets-sansio",
                ws_max_size=settings.limits.frame_bytes,
                ws_per_message_deflate=False,
                ws_ping_interval=None,  # Sockets have a heartbeat of their own.
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                backlog=_BACKLOG,
                timeout_graceful_shutdown=_ANSWER_SECONDS,
            )
        )
        running = asyncio.create_task(server.serve([listener]))
        try:
            while not server.started and not running.done():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            yield Opened(context, url, page, server.stop)
        finally:
            context.is_stopping = True
            context.feeds.stop()
            server.stop()
            await running


def _services(context: ServerContext, app: FastAPI) -> Iterator[AbstractAsyncContextManager[None]]:
    """Yield what works beside the routes, in the order in which it begins.

    Starts begin runs also where other processes work on them.
    """
    routes = ExtensionRoutes(context.extensions.router, context.authenticator, context.folders)
    app.router.routes.append(Mount("/x", app=routes))
    yield running(context.feeds.sweep())
    yield context.extensions.working()
    yield running(Schedules(context.starts).run())
    yield running(watch_documents(context.starts))
    yield running(WebhookSender(context.host, context.clock, context.starts.logs).run())


class _Server(uvicorn.Server):
    """A server whose process handles its signals itself."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    def stop(self) -> None:
        """Accept nothing more, and end when the answers under way are sent."""
        self.should_exit = True


@contextmanager
def _listener(settings: ServerSettings) -> Generator[socket.socket]:
    """Return a socket that is bound to the address of a server."""
    name = settings.host.strip("[]")
    try:
        found = socket.getaddrinfo(name, settings.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise SetupError(
            f"{settings.host} is not an address of this machine", hint="use --host 127.0.0.1"
        ) from error
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # A client that does not read must not hold megabytes in the system.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        try:
            listener.bind(address)
        except OSError as error:
            raise SetupError(
                f"cannot listen on {settings.host}:{settings.port}: "
                f"{(error.strerror or str(error)).lower()}",
                hint="stop the program that uses the port, or use another one: --port 8766",
            ) from error
        yield listener


def _url(settings: ServerSettings, listener: socket.socket) -> str:
    port = listener.getsockname()[1]
    host = "127.0.0.1" if settings.host == "0.0.0.0" else settings.host  # noqa: S104 - compared
    return f"http://{f'[{host}]' if ':' in host and '[' not in host else host}:{port}"


async def _require_identity(settings: ServerSettings, keys: ApiKeys) -> None:
    if settings.is_loopback or settings.oidc is not None or await keys.exist():
        return
    raise SetupError(
        f"a server on {settings.host} can be reached from other machines, and knows no callers",
        hint="make a key first: weft keys create --role administrator; or set WEFT_OIDC_ISSUER",
    )


@contextmanager
def _server_file(workspace: Path, url: str, keys: ApiKeys) -> Generator[None]:
    """Write where the server is, with a key that only this user can read."""
    file = server_file(workspace, url)
    text = json.dumps({"url": url, "key": keys.create_for_process(LOCAL_PRINCIPAL)})
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(text)
    except OSError:  # Such as a read-only workspace: programs then need --server and a key.
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            if json.loads(file.read_text(encoding="utf-8")).get("url") == url:
                file.unlink()


def run_server(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the fastest event loop that is installed."""
    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def _within_descriptors(limits: Limits) -> Limits:
    """Return limits with which connections that say nothing leave descriptors for others."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return limits
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return limits
    return replace(limits, half_open=max(min(limits.half_open, most // 4), 1))


def _names_bug(record: logging.LogRecord) -> bool:
    """Tell whether a line of uvicorn names a bug.

    What clients send is no reason for a line, nor what is cut off at the end: `weft.http` says so.
    """
    return record.exc_info is not None and isinstance(record.exc_info[1], Exception)


def prepare_process() -> None:
    """Allow as many connections as the system does, and collect garbage more rarely.

    Many long-lived connections make each collection expensive, and find nothing.
    """
    logging.getLogger("uvicorn.error").addFilter(_names_bug)
    gc.set_threshold(50_000, 20, 20)
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
