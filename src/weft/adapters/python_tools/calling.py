"""Calls the functions of a package: with a time limit, off the event loop, with JSON results."""

import asyncio
import inspect
import logging
import traceback
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from types import TracebackType
from typing import Any, Final, Self, cast

from weft.adapters.python_tools.modules import ROOT
from weft.adapters.python_tools.schemas import Signature
from weft.adapters.python_tools.threads import Job, Threads
from weft.errors import Ask, Refuse, RetryModel, ToolError, UsageError
from weft.findings import Json
from weft.ids import suggestion
from weft.ports.model import ToolSchema
from weft.ports.tools import AskPerson, Call
from weft.runtime.tools.tool_api import ToolOptions, asking, options_of
from weft.runtime.variables.json_values import plain_json

_BY_NAME: Final = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits in seconds."""

    #: One call, unless the tool declares its own limit.
    timeout: float = 60.0
    #: The time for clean-up after a cancellation.
    grace: float = 2.0
    #: The wait before the first retry; it doubles with each further one.
    pause: float = 0.2


class TimeLimit:
    """A time limit that is paused while a person is asked."""

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
        """Wait until the work ends or the time is over; return whether it ended in time."""
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
        """Return an `ask` that pauses the clock; several questions may be open at once."""

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
    #: Its signature for models; None for hooks.
    signature: Signature | None
    options: ToolOptions
    #: Whether it runs on the event loop; other functions may block and run in a thread.
    on_loop: bool


def linked_hook(name: str, function: Callable[..., Any]) -> LinkedTool:
    """Return a function that models cannot call."""
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
            raise UsageError(f"{tool} is a hook, which models cannot call")
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

        Raises RetryModel for invalid arguments; RetryModel and Refuse if the tool does; else
        ToolError, with a TimeoutError as its cause after the time limit.
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
        except GeneratorExit as error:  # Weft did not close it: the code raised it.
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
                # It has already failed: later exceptions are not reported.
                with suppress(ToolError, RetryModel, Refuse, Ask):
                    work.close()
                task.cancel()

    async def _in_thread(self, call: Call, work: Callable[[], object], limit: TimeLimit) -> object:
        """Call a function that may block; its result is JSON, or an awaitable."""
        job = self._threads.start(
            partial(copy_context().run, partial(_call_in_thread, call, work, limit)), call.app
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
            hint = suggestion(tool, self._tools, "check the tools file of the package")
            raise UsageError(f"the package has no tool {tool}", hint=hint)
        return found


def _arguments(tool: LinkedTool, call: Call) -> tuple[Sequence[object], Mapping[str, object]]:
    """Return the arguments of a call; raises RetryModel or ToolError if they are invalid."""
    if call.function is not None:
        return cast("Sequence[object]", call.arguments), {}
    if tool.signature is None or call.offered is not None:
        return (), _named_parameters(tool, call.offered or {})
    signature, given = tool.signature, cast("Mapping[str, Json]", call.arguments)
    named = signature.read(signature.named(given) if call.from_reply else given)
    named.update(dict.fromkeys(signature.injected, call.variables))
    return (), named


def _named_parameters(tool: LinkedTool, offered: Mapping[str, object]) -> Mapping[str, object]:
    """Return the offered values that a hook takes by name."""
    try:
        parameters = inspect.signature(tool.function).parameters.values()
    except (TypeError, ValueError) as error:
        raise ToolError(f"the parameters of {tool.name} cannot be read: {error}") from error
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters):
        return offered
    named = [parameter for parameter in parameters if parameter.kind in _BY_NAME]
    missing = [
        parameter.name
        for parameter in named
        if parameter.name not in offered and parameter.default is Parameter.empty
    ]
    if missing:
        raise ToolError(
            f"{tool.name} takes {', '.join(missing)}, which is not given here; "
            f"available: {', '.join(offered) or 'nothing'}"
        )
    return {
        parameter.name: offered[parameter.name] for parameter in named if parameter.name in offered
    }


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
    """Return the result of a tool or hook as JSON, other results unchanged."""
    if call.function is not None:
        return returned
    try:
        return plain_json(returned)
    except ValueError as error:
        raise ToolError(f"{call.name} returned {error}") from error


def _too_slow(call: Call, limit: TimeLimit) -> ToolError:
    return _late(f"{call.name} took longer than {_span(limit)} and was abandoned")


def _too_busy(call: Call, limit: TimeLimit) -> ToolError:
    return _late(f"{call.name} found no free thread within {_span(limit)}")


def _span(limit: TimeLimit) -> str:
    return f"{limit.seconds:g} second{'' if limit.seconds == 1 else 's'}"


def _late(fact: str) -> ToolError:
    error = ToolError(fact)
    error.__cause__ = TimeoutError(fact)
    return error


def _forget(work: asyncio.Future[Any]) -> None:
    """Retrieve the outcome of abandoned work, so that asyncio does not report it."""
    if not work.cancelled():
        work.exception()


LOG: Final = logging.getLogger("weft.tools")

#: The most characters of a message for an agent; some contain whole documents.
_MAX_CHARACTERS: Final = 2_000


@contextmanager
def reporting_failures(call: Call) -> Generator[None]:
    """Log an exception and turn it into ToolError; the signals of tools pass, and cancellation."""
    try:
        yield
    except (RetryModel, Refuse, Ask, ToolError, CancelledError, GeneratorExit):
        raise
    except (SystemExit, KeyboardInterrupt) as error:
        raise ToolError(
            f"{call.name} tried to end the process, which a tool must not do"
        ) from error
    except BaseException as error:  # extension modules may raise other classes than Exception
        _report(call, error)
        raise ToolError(
            f"{call.name} failed: {describe_error(error, place=_place(error))}"
        ) from error


def log_name(call: Call) -> str:
    """Return the name of a call in the log."""
    return call.log_name or (f"the tool {call.name}" if call.function is None else call.name)


def describe_error(error: BaseException, *, place: str = "") -> str:
    """Return type, place and message of an exception."""
    name = type(error).__name__ + (f" at {place}" if place else "")
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the author's own text fails to be made
        text = "its message cannot be read"
    return f"{name}: {text[:_MAX_CHARACTERS]}" if text else name


def _place(error: BaseException) -> str:
    """Return the innermost line of the package's files in a traceback."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        path = frame.f_code.co_filename.partition("/")[2]
        if path and str(frame.f_globals.get("__name__")).startswith(f"{ROOT}."):
            place = f"{path}:{line}"
    return place


def _report(call: Call, error: BaseException) -> None:
    # Messages of exceptions often quote arguments, so only the type and the places are logged.
    place, kind = _place(error), type(error).__name__
    where = f" at {place}" if place else ""
    which = f" (attempt {call.attempt})" if call.attempt else ""
    if place:
        LOG.warning("%s failed with %s%s%s", log_name(call), kind, where, which)
        LOG.debug("%s failed in:\n%s", log_name(call), _frames(error))
    else:  # Code of a program: only the traceback has its place.
        LOG.warning("%s failed with %s%s\n%s", log_name(call), kind, which, _frames(error))


def _frames(error: BaseException) -> str:
    """Return the frames of an error from the first one outside of Weft."""
    trace = error.__traceback__
    while trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith("weft."):
        trace = trace.tb_next
    return "".join(traceback.format_tb(trace)).rstrip()
