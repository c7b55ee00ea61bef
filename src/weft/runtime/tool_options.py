"""What an author may say about a tool beyond its signature."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar

from weft.errors import UsageError

#: read: calling it once more does no harm; write: it changes something outside.
Effect: TypeAlias = Literal["read", "write"]

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_ATTRIBUTE: Final = "weft_tool"


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


def tool(
    *, effect: Effect = "write", timeout: float | None = None, retries: int = 0
) -> Callable[[FunctionT], FunctionT]:
    """Say what a tool does to the world, how long it may take, and how often it is tried again."""
    options = ToolOptions(effect, timeout, retries)
    _check(options)

    def mark(function: FunctionT) -> FunctionT:
        vars(function)[_ATTRIBUTE] = options
        return function

    return mark


def options_of(function: Callable[..., Any]) -> ToolOptions:
    """Return what the author said about a tool."""
    return getattr(function, _ATTRIBUTE, NO_OPTIONS)


def _check(options: ToolOptions) -> None:
    if options.effect not in ("read", "write"):
        raise UsageError(
            f"a tool has the effect read or write, not {options.effect!r}",
            hint='write effect="read" if calling it twice does no harm, else effect="write"',
        )
    if options.timeout is not None and not (0 < options.timeout < math.inf):
        raise UsageError(
            f"the timeout of a tool is a number of seconds above 0, not {options.timeout!r}",
            hint="leave timeout out to take the usual one",
        )
    if options.retries < 0 or (options.retries and options.effect != "read"):
        raise UsageError(
            f"a tool with effect {options.effect} cannot have retries={options.retries}",
            hint='write effect="read" if calling it twice does no harm; '
            "write is taken where nothing is said",
        )
