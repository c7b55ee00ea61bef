"""Calling the functions of a package: in time, away from the event loop, with a JSON result."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from types import TracebackType
from typing import Any, Final, Self, cast

from weft.adapters.python_tools.failures import LOG, log_name, reporting_failures
from weft.adapters.python_tools.schemas import Signature
from weft.adapters.python_tools.threads import Job, Threads
from weft.errors import Ask, Refuse, RetryModel, ToolError, UsageError
from weft.findings import Json
from weft.ids import nearest
from weft.ports.model import ToolSchema
from weft.ports.tools import AskPerson, Call
from weft.runtime.tools.tool_api import ToolOptions, asking, options_of
from weft.runtime.variables.json_values import plain_json

_BY_NAME: Final = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long things may take, in seconds."""

    #: One call, unless the tool says otherwise.
    timeout: float = 60.0
    #: What a call has left to clean up after it was cancelled.
    grace: float = 2.0
    #: Before a failed call is made again; twice as long before each further one.
    pause: float = 0.2


class TimeLimit:
    """Time that runs out, except while somebody is asked."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self.seconds: Final = seconds
        self._left = seconds
        self._questions = 0
        self._over = False
        self._completed_in_time = True
        self._waiting: asyncio.Future[None] | None = None

    def __enter__(self) -> Self:
        self._run()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()

    async def ended(self, work: asyncio.Future[Any]) -> bool:
        """Wait until work has ended or the time is over; tell whether it has ended in time."""
        if not (work.done() or self._over):
            self._waiting = self._loop.create_future()
            work.add_done_callback(self._wake)
            try:
                await self._waiting
            finally:
                work.remove_done_callback(self._wake)
        return work.done() and self._completed_in_time

    def note_completion(self) -> None:
        """Check the time at the end of the work: code that blocks the event loop stops the timer.

        The work itself calls this, so that delays in other tasks do not count against it.
        """
        running = self._loop.time() - self._began
        self._completed_in_time = bool(self._questions) or running <= self._left

    def pausing(self, ask: AskPerson) -> AskPerson:
        """Return a way to ask that stops the clock; several questions may be open at once."""

        async def asked(tool: str, payload: Json, seconds: float | None, otherwise: Json) -> Json:
            if not self._questions:
                self._timer.cancel()
                self._left -= self._loop.time() - self._began
            self._questions += 1
            try:
                return await ask(tool, payload, seconds, otherwise)
            finally:
                self._questions -= 1
                if not self._questions and not self._over:
                    self._run()

        return asked

    def _run(self) -> None:
        self._began = self._loop.time()
        self._timer = self._loop.call_later(self._left, self._expire)

    def _expire(self) -> None:
        self._over = True
        self._wake()

    def _wake(self, _work: object = None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


@dataclass(frozen=True, slots=True)
class LinkedTool:
    """A function that can be called as a tool."""

    name: str
    function: Callable[..., Any]
    #: How it is called by models; None for what is called at boundaries only.
    signature: Signature | None
    options: ToolOptions
    #: Whether it is awaited on the event loop; anything else may block and gets a thread.
    on_loop: bool


def linked_hook(name: str, function: Callable[..., Any]) -> LinkedTool:
    """Return a function that is not called by models."""
    on_loop = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object may be called as well
    )
    return LinkedTool(name, function, None, options_of(function), on_loop)


class PythonTools:
    """The linked code of one package."""

    def __init__(self, tools: Mapping[str, LinkedTool], threads: Threads, limits: Limits) -> None:
        self._tools = tools
        self._threads = threads
        self._limits = limits

    def schema(self, tool: str) -> ToolSchema:
        signature = self._find(tool).signature
        if signature is None:
            raise UsageError(f"{tool} is called at boundaries and by no model")
        return signature.schema

    def validation_error(self, tool: str, arguments: Mapping[str, Json]) -> str | None:
        found = self._tools.get(tool)
        if found is None or found.signature is None:
            return None
        try:
            found.signature.read(arguments)
        except RetryModel as fault:
            return str(fault)
        except Exception:  # noqa: BLE001 - types of the author may fail in any way; the call says so
            return None
        return None

    async def call(self, call: Call) -> object:
        """Perform a call; the result of a tool or a hook is JSON.

        Raises RetryModel if the arguments do not fit; RetryModel and Refuse if the tool does; else
        ToolError. One whose cause is a TimeoutError says that the time was over.
        """
        if call.function is not None:
            return await self._attempt(linked_hook(call.name, call.function), call)
        tool = self._find(call.name)
        for attempt in range(tool.options.retries):
            with suppress(ToolError):
                return await self._attempt(tool, call)
            LOG.info("%s is called again", log_name(call))
            call.variables.restart()
            call.restart_questions()
            await asyncio.sleep(self._limits.pause * 2**attempt)
        return await self._attempt(tool, call)

    async def _attempt(self, tool: LinkedTool, call: Call) -> object:
        """Call the function once, within its time limit."""
        positional, named = _arguments(tool, call)
        work = partial(tool.function, *positional, **named)
        seconds = tool.options.timeout or call.timeout or self._limits.timeout
        with TimeLimit(seconds) as limit, asking(limit.pausing(call.ask), call.show, call.mask):
            if tool.on_loop:
                return await self._on_loop(call, work, limit)
            returned = await self._in_thread(call, work, limit)
            if inspect.isawaitable(returned):
                return await self._on_loop(call, lambda: returned, limit)
            return returned

    async def _on_loop(
        self, call: Call, begin: Callable[[], Awaitable[object]], limit: TimeLimit
    ) -> object:
        work = _call_on_loop(call, begin, limit)
        task = asyncio.create_task(work)
        try:
            in_time = await limit.ended(task)
        finally:
            if task.done():
                _forget(task)
            else:
                await self._stop(call, work, task)
        if not in_time:
            raise _too_slow(call, limit)
        if task.cancelled():
            raise ToolError(f"{call.name} cancelled itself and gave no result")
        try:
            return task.result()
        except GeneratorExit as error:  # Nothing has closed it: the code raised it.
            raise ToolError(f"{call.name} raised GeneratorExit and gave no result") from error

    async def _stop(
        self, call: Call, work: Coroutine[Any, Any, object], task: asyncio.Task[object]
    ) -> None:
        """Cancel a call; one that ignores its cancellation is closed."""
        task.add_done_callback(_forget)
        task.cancel()
        try:
            await asyncio.wait({task}, timeout=self._limits.grace)
        finally:
            if not task.done():
                LOG.warning("%s ignored its cancellation and was broken off", log_name(call))
                # It has failed already: what it raises now is not reported again.
                with suppress(ToolError, RetryModel, Refuse, Ask):
                    work.close()
                task.cancel()

    async def _in_thread(self, call: Call, work: Callable[[], object], limit: TimeLimit) -> object:
        """Call a function that may block; what it returns is JSON, or still to be awaited."""
        job = self._threads.start(
            partial(copy_context().run, partial(_call_in_thread, call, work, limit))
        )
        begun = True
        try:
            in_time = await limit.ended(job.result)
        finally:
            if job.result.done():
                _forget(job.result)
            else:
                begun = self._leave(call, job)
        if in_time:
            return job.result.result()
        raise _too_slow(call, limit) if begun else _too_busy(call, limit)

    def _leave(self, call: Call, job: Job) -> bool:
        running = self._threads.leave(job)
        if running:
            LOG.warning(
                "%s is left behind in its thread (threads left behind: %d)",
                log_name(call),
                self._threads.left_behind,
            )
        return running

    def _find(self, tool: str) -> LinkedTool:
        found = self._tools.get(tool)
        if found is None:
            near = nearest(tool, self._tools)
            hint = f"did you mean {near}?" if near else "look at the tools file of the package"
            raise UsageError(f"the package has no tool {tool}", hint=hint)
        return found


def _arguments(tool: LinkedTool, call: Call) -> tuple[Sequence[object], Mapping[str, object]]:
    """Return what a function is called with; raises RetryModel or ToolError if it does not fit."""
    if call.function is not None:
        return cast("Sequence[object]", call.arguments), {}
    if tool.signature is None or call.offered is not None:
        return (), _named_parameters(tool, call.offered or {})
    signature, given = tool.signature, cast("Mapping[str, Json]", call.arguments)
    named = signature.read(signature.named(given) if call.from_reply else given)
    named.update(dict.fromkeys(signature.injected, call.variables))
    return (), named


def _named_parameters(tool: LinkedTool, offered: Mapping[str, object]) -> Mapping[str, object]:
    """Return those of the offered values that a hook takes by name."""
    try:
        parameters = inspect.signature(tool.function).parameters.values()
    except (TypeError, ValueError) as error:
        raise ToolError(f"the parameters of {tool.name} cannot be read: {error}") from error
    if any(it.kind is Parameter.VAR_KEYWORD for it in parameters):
        return offered
    named = [it for it in parameters if it.kind in _BY_NAME]
    missing = [it.name for it in named if it.name not in offered and it.default is Parameter.empty]
    if missing:
        raise ToolError(
            f"{tool.name} takes {', '.join(missing)}, which is not given here; "
            f"available: {', '.join(offered) or 'nothing'}"
        )
    return {it.name: offered[it.name] for it in named if it.name in offered}


async def _call_on_loop(
    call: Call, begin: Callable[[], Awaitable[object]], limit: TimeLimit
) -> object:
    with reporting_failures(call):
        try:
            return _result(call, await begin())
        finally:
            limit.note_completion()


def _call_in_thread(call: Call, work: Callable[[], object], limit: TimeLimit) -> object:
    with reporting_failures(call):
        try:
            returned = work()
        except asyncio.CancelledError as error:  # Nothing else cancels code in a thread.
            raise ToolError(f"{call.name} cancelled itself and gave no result") from error
        except GeneratorExit as error:
            raise ToolError(f"{call.name} raised GeneratorExit and gave no result") from error
        finally:
            limit.note_completion()
        return returned if inspect.isawaitable(returned) else _result(call, returned)


def _result(call: Call, returned: object) -> object:
    """Return the result of a tool or a hook as JSON, that of other code unchanged."""
    if call.function is not None:
        return returned
    try:
        return plain_json(returned)
    except ValueError as error:
        raise ToolError(f"{call.name} returned {error}") from error


def _too_slow(call: Call, limit: TimeLimit) -> ToolError:
    return _late(f"{call.name} took longer than {_span(limit)} and was given up")


def _too_busy(call: Call, limit: TimeLimit) -> ToolError:
    return _late(f"{call.name} found no free thread within {_span(limit)}")


def _span(limit: TimeLimit) -> str:
    return f"{limit.seconds:g} second{'' if limit.seconds == 1 else 's'}"


def _late(fact: str) -> ToolError:
    error = ToolError(fact)
    error.__cause__ = TimeoutError(fact)
    return error


def _forget(work: asyncio.Future[Any]) -> None:
    """Take note of how work ended, so that nobody reports it as overlooked."""
    if not work.cancelled():
        work.exception()
