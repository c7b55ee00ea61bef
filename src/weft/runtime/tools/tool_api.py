"""The API for the code of tools: the `tool` decorator, and questions to people."""

import asyncio
import math
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias, TypeVar, overload

from weft.errors import UsageError
from weft.findings import Json
from weft.ids import suggestion
from weft.ports.tools import AskPerson, ShowPerson
from weft.runtime.variables.json_values import plain_json

#: read: the tool can be repeated safely; write: it changes something outside.
Effect: TypeAlias = Literal["read", "write"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_ATTRIBUTE: Final = "weft_tool"

_EXAMPLE: Final = 'write it like @tool(effect="read", timeout=10, retries=2)'


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """The options of a tool."""

    effect: Effect = "write"
    #: The time limit of a call in seconds; None is the default of all tools.
    timeout: float | None = None
    #: How often a failed call is repeated.
    retries: int = 0


#: The options of a function without the decorator.
NO_OPTIONS: Final = ToolOptions()


@overload
def tool(function: FunctionT, /) -> FunctionT: ...
@overload
def tool(
    *, effect: Effect = "write", timeout: float | None = None, retries: int = 0
) -> Callable[[FunctionT], FunctionT]: ...
def tool(function: Any = None, /, **given: Any) -> Any:
    """Declare the effect of a tool, its time limit and its retries.

    Without brackets, it only marks the function as a tool.
    """
    if function is not None and not callable(function):
        raise UsageError(
            f"options of a tool are given by name; {function!r} has none", hint=_EXAMPLE
        )
    _refuse_unknown(given)
    options = ToolOptions(**given)
    _check(options)

    def mark(function: FunctionT) -> FunctionT:
        vars(function)[_ATTRIBUTE] = options
        return function

    return mark if function is None else mark(function)


def options_of(function: Callable[..., Any]) -> ToolOptions:
    """Return the declared options of a tool."""
    return getattr(function, _ATTRIBUTE, NO_OPTIONS)


def _refuse_unknown(given: Mapping[str, Any]) -> None:
    known = [field.name for field in fields(ToolOptions)]
    for name in given:
        if name not in known:
            hint = suggestion(name, known)
            raise UsageError(f"a tool has no option {name}", hint=hint)


def _check(options: ToolOptions) -> None:
    if options.effect not in ("read", "write"):
        raise UsageError(
            f"a tool has the effect read or write, not {options.effect!r}",
            hint='write effect="read" if calling it twice does no harm, else effect="write"',
        )
    if options.timeout is not None and not _is_time(options.timeout):
        raise UsageError(
            f"the timeout of a tool is a number of seconds above 0, not {options.timeout!r}",
            hint="leave timeout out to use the default",
        )
    if not isinstance(options.retries, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(
            f"the retries of a tool are a whole number, not {options.retries!r}", hint=_EXAMPLE
        )
    if options.retries < 0 or (options.retries and options.effect != "read"):
        raise UsageError(
            f"a tool with effect {options.effect} cannot have retries={options.retries}",
            hint='write effect="read" if calling it twice does no harm; write is the default',
        )


def _is_time(seconds: object) -> bool:
    return isinstance(seconds, int | float) and 0 < seconds < math.inf


@dataclass
class _Call:
    """The current tool call; `ask` is None after it has ended."""

    ask: AskPerson | None
    show: ShowPerson
    mask: Callable[[str], str]
    loop: asyncio.AbstractEventLoop


_call: ContextVar[_Call | None] = ContextVar("weft_tool_call", default=None)


async def use_ui_tool(
    tool_id: str,
    payload: Json = None,
    *,
    timeout: float | None = None,  # noqa: ASYNC109 - how long a person has, perhaps days
    otherwise: Json = None,
    chat_id: str | None = None,  # noqa: ARG001 - the run is known
    workflow_name: str | None = None,  # noqa: ARG001 - so is the workflow
    display: str | None = None,  # noqa: ARG001 - the tools file says where it is shown
) -> Json:
    """Show a component to a person and return the answer.

    After `timeout` seconds without an answer `otherwise` is returned, or, if it is None, the
    asking tool fails. If there is no answer for long, the run leaves memory and the tool is called
    again when the answer arrives: earlier answers are returned at once, other effects are repeated.
    """
    ask, _ = _current(f"use_ui_tool({tool_id!r})")
    check_timeout(timeout)
    return await ask(tool_id, plain_json(payload), timeout, plain_json(otherwise))


async def show_ui_tool(tool_id: str, payload: Json = None) -> None:
    """Show a component to a person without waiting for an answer."""
    _, show = _current(f"show_ui_tool({tool_id!r})")
    await show(tool_id, plain_json(payload))


def _current(what: str) -> tuple[AskPerson, ShowPerson]:
    """Return the current tool call; raises UsageError if there is none."""
    call = _call.get()
    if call is None or call.ask is None:
        raise UsageError(
            f"{what} was called outside of a tool call",
            hint="call it from an async tool, and wait for its answer before the tool returns",
        )
    if asyncio.get_running_loop() is not call.loop:
        raise UsageError(
            f"{what} was called in an event loop of the tool's own",
            hint="write the tool as an async function, and await it there",
        )
    return call.ask, call.show


def masked_output(text: str) -> str:
    """Return what the running tool prints, with its secrets masked."""
    call = _call.get()
    return text if call is None else call.mask(text)


def check_timeout(seconds: float | None) -> None:
    """Refuse an invalid time limit."""
    if seconds is not None and not (0 < seconds < math.inf):
        raise UsageError(
            f"the timeout of a question is a number of seconds above 0, not {seconds!r}",
            hint="leave timeout out to wait without a limit",
        )


@contextmanager
def asking(ask: AskPerson, show: ShowPerson, mask: Callable[[str], str] = str) -> Generator[None]:
    """Allow the tool that is called inside to ask people until it returns."""
    call = _Call(ask, show, mask, asyncio.get_running_loop())
    token = _call.set(call)
    try:
        yield
    finally:
        call.ask = None
        _call.reset(token)
