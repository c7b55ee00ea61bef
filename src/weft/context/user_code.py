"""The boundary around user code that runs on the event loop: models, providers, adapters.

with user_code:
    reply = await model.reply(request)
"""

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from types import TracebackType
from typing import Any, Final


class UserCodeStopped(Exception):
    """User code cancelled itself or tried to end the process."""


class _UserCode:
    """Turns what user code raises into an ordinary exception.

    Cancellation that Weft has requested passes, and so does an interrupt from the keyboard.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, Exception | KeyboardInterrupt):
            return
        if isinstance(error, asyncio.CancelledError | GeneratorExit):
            if _is_being_stopped():
                return
            name = type(error).__name__
            raise UserCodeStopped(f"the code raised {name} itself") from error
        if isinstance(error, SystemExit):
            fact = "the code called sys.exit(); a run cannot end the process"
            raise UserCodeStopped(fact) from error
        raise UserCodeStopped(f"{type(error).__name__}: {error}") from error


def _is_being_stopped() -> bool:
    """Return whether Weft has cancelled the task, or its coroutine is closed after the loop."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # No event loop is running.
        return True
    return task is None or task.cancelling() > 0


def describe_error(error: Exception) -> str:
    """Return the type and message of an exception that user code has raised."""
    if isinstance(error, UserCodeStopped):
        return str(error)
    return f"{type(error).__name__}: {error}"


def error_type(error: Exception) -> str:
    """Return the type of the exception that user code has raised."""
    raised = error.__cause__ if isinstance(error, UserCodeStopped) else error
    return type(raised).__name__


#: Stateless, so that one object serves every call.
user_code: Final = _UserCode()


async def call_user_code(function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - the function's result
    """Call an async function on the event loop, and a plain one in a thread: it may block."""
    with user_code:
        if is_async(function):
            return await function(*arguments)
        returned = await _call_in_thread(function, *arguments)
        return await returned if inspect.isawaitable(returned) else returned


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a function, or an object that can be called, is awaited."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - its own method may be async
    )


async def _call_in_thread(function: Callable[..., Any], *arguments: object) -> object:
    """Call a function in a daemon thread: if it never returns, the program can still exit."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[object] = loop.create_future()

    def settle(value: object, error: BaseException | None) -> None:
        if result.done():  # The call has timed out, and its result is no longer awaited.
            return
        if error is None:
            result.set_result(value)
        else:
            result.set_exception(error)

    def work() -> None:
        value, error = None, None
        try:
            value = context.run(function, *arguments)
        except StopIteration as stopped:  # A future cannot raise it.
            error = RuntimeError(f"the code raised StopIteration: {stopped}")
        except BaseException as raised:  # noqa: BLE001 - raised where it is awaited
            error = raised
        with suppress(RuntimeError):  # The event loop is closed.
            loop.call_soon_threadsafe(settle, value, error)

    context = copy_context()
    threading.Thread(target=work, name="weft-user-code", daemon=True).start()
    return await result
