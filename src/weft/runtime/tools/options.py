"""What an author may say about a tool beyond its signature."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias, TypeVar, overload

from weft.errors import UsageError
from weft.ids import nearest

#: read: calling it once more does no harm; write: it changes something outside.
Effect: TypeAlias = Literal["read", "write"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_ATTRIBUTE: Final = "weft_tool"

_EXAMPLE: Final = 'write it like @tool(effect="read", timeout=10, retries=2)'


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """How a tool is called."""

    effect: Effect = "write"
    #: Seconds one call may take; None takes what holds for all tools.
    timeout: float | None = None
    #: How often a call that failed is made again.
    retries: int = 0


#: What holds for a function without the decorator.
NO_OPTIONS: Final = ToolOptions()


@overload
def tool(function: FunctionT, /) -> FunctionT: ...
@overload
def tool(
    *, effect: Effect = "write", timeout: float | None = None, retries: int = 0
) -> Callable[[FunctionT], FunctionT]: ...
def tool(function: Any = None, /, **given: Any) -> Any:
    """Say what a tool does to the world, how long it may take, and how often it is tried again.

    Without brackets it says nothing but that the function is a tool.
    """
    if function is not None and not callable(function):
        raise UsageError(
            f"what is said about a tool is said by name, and {function!r} has none", hint=_EXAMPLE
        )
    _refuse_unknown(given)
    options = ToolOptions(**given)
    _check(options)

    def mark(function: FunctionT) -> FunctionT:
        vars(function)[_ATTRIBUTE] = options
        return function

    return mark if function is None else mark(function)


def options_of(function: Callable[..., Any]) -> ToolOptions:
    """Return what the author said about a tool."""
    return getattr(function, _ATTRIBUTE, NO_OPTIONS)


def _refuse_unknown(given: Mapping[str, Any]) -> None:
    known = [it.name for it in fields(ToolOptions)]
    for name in given:
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else f"available: {', '.join(known)}"
            raise UsageError(f"nothing is known of a tool as {name}", hint=hint)


def _check(options: ToolOptions) -> None:
    if options.effect not in ("read", "write"):
        raise UsageError(
            f"a tool has the effect read or write, not {options.effect!r}",
            hint='write effect="read" if calling it twice does no harm, else effect="write"',
        )
    if options.timeout is not None and not _is_time(options.timeout):
        raise UsageError(
            f"the timeout of a tool is a number of seconds above 0, not {options.timeout!r}",
            hint="leave timeout out to take the usual one",
        )
    if not isinstance(options.retries, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(
            f"the retries of a tool are a whole number, not {options.retries!r}", hint=_EXAMPLE
        )
    if options.retries < 0 or (options.retries and options.effect != "read"):
        raise UsageError(
            f"a tool with effect {options.effect} cannot have retries={options.retries}",
            hint='write effect="read" if calling it twice does no harm; '
            "write is taken where nothing is said",
        )


def _is_time(seconds: object) -> bool:
    return isinstance(seconds, int | float) and 0 < seconds < math.inf
