"""Services of packages: started with the server, started again when they fail, and stopped."""

import asyncio
import inspect
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias, cast

from weft.adapters.python_tools.calling import reporting_failures
from weft.errors import ToolError
from weft.ports.tools import Call, Tools
from weft.server.background import stop
from weft.server.extensions.access import ExtensionHost

_log: Final = logging.getLogger("weft.server")

#: Seconds that `start` and `stop` of a service may take.
SECONDS: Final = 10.0

#: Seconds until a service that failed is started again: the first time, and at most.
_FIRST_WAIT: Final = 1.0
_LAST_WAIT: Final = 60.0

ServiceState: TypeAlias = Literal["starting", "running", "failed", "ended"]


class Service:
    """A service of a package: an object with `start` and `stop`, or an async function."""

    def __init__(self, name: str, made_by: object, tools: Tools, host: ExtensionHost) -> None:
        self.state: ServiceState = "starting"
        self.error = ""
        self._name = name
        self._made_by = cast("Callable[..., Any]", made_by)
        self._tools = tools
        self._host = host
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the service in a task of its own."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop the service, and wait for it."""
        if self._task is not None:
            await stop([self._task])

    async def _run(self) -> None:
        wait = _FIRST_WAIT
        while True:
            try:
                await self._serve()
            except Exception as error:  # noqa: BLE001 - it is the author's code
                self.state, self.error = "failed", str(error)
                # Messages of exceptions may quote secrets: operators see them, the log does not.
                _log.error("the service %s failed; it is started again in %g s", self._name, wait)
            else:
                self.state = "ended"
                return
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LAST_WAIT)

    async def _serve(self) -> None:
        if inspect.iscoroutinefunction(self._made_by):
            self._is_running()
            with reporting_failures(Call(self._name, log_name=f"the service {self._name}")):
                await self._made_by(*arguments_of(self._made_by, self._host))
            return
        made = await call_code(self._tools, self._name, self._made_by, self._host)
        start, stop = (self._method(made, name) for name in ("start", "stop"))
        await call_code(self._tools, f"{self._name}.start", start)
        self._is_running()
        try:
            await asyncio.Future[None]()
        finally:
            with suppress(ToolError):  # It is in the log.
                await call_code(self._tools, f"{self._name}.stop", stop)

    def _is_running(self) -> None:
        self.state, self.error = "running", ""

    def _method(self, made: object, name: str) -> Callable[..., Any]:
        found = getattr(made, name, None)
        if not callable(found):
            raise ToolError(f"{self._name} gives a {type(made).__name__} without a method {name}")
        return found


async def call_code(
    tools: Tools, name: str, function: Callable[..., Any], host: ExtensionHost | None = None
) -> Any:  # noqa: ANN401 - what the author's code returns
    """Call code of a package within a time limit; with a host if it takes one.

    Raises ToolError.
    """
    arguments = () if host is None else arguments_of(function, host)
    call = Call(
        name, function=function, arguments=arguments, timeout=SECONDS, log_name=f"the code {name}"
    )
    return await tools.call(call)


def arguments_of(function: Callable[..., Any], host: ExtensionHost) -> tuple[ExtensionHost, ...]:
    """Return what an entry point is called with: the host, if it has a parameter."""
    try:
        return (host,) if inspect.signature(function).parameters else ()
    except (TypeError, ValueError):  # Such as a function of an extension module.
        return ()
