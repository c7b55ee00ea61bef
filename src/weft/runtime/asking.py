"""Asking a person from inside a tool."""

import asyncio
import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from weft.errors import UsageError
from weft.findings import Json
from weft.ports.tools import AskPerson, ShowPerson
from weft.runtime.variables.json_values import plain_json


@dataclass
class _Call:
    """The tool call under way; `ask` is None once it is over."""

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
    asking tool fails. If nobody answers for long, the run is let go and the tool is called anew
    when the answer is there; answers it has had come back at once, what else it did is done again.
    """
    ask, _ = _current(f"use_ui_tool({tool_id!r})")
    check_timeout(timeout)
    return await ask(tool_id, plain_json(payload), timeout, plain_json(otherwise))


async def show_ui_tool(tool_id: str, payload: Json = None) -> None:
    """Show a component to a person and go on at once: nobody answers it."""
    _, show = _current(f"show_ui_tool({tool_id!r})")
    await show(tool_id, plain_json(payload))


def _current(what: str) -> tuple[AskPerson, ShowPerson]:
    """Return how the tool call under way reaches a person; raises UsageError if there is none."""
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
    """Refuse a time to answer in that is none."""
    if seconds is not None and not (0 < seconds < math.inf):
        raise UsageError(
            f"the timeout of a question is a number of seconds above 0, not {seconds!r}",
            hint="leave timeout out to wait for as long as it takes",
        )


@contextmanager
def asking(ask: AskPerson, show: ShowPerson, mask: Callable[[str], str] = str) -> Generator[None]:
    """Let the tool that is called inside ask a person, until it has returned."""
    call = _Call(ask, show, mask, asyncio.get_running_loop())
    token = _call.set(call)
    try:
        yield
    finally:
        call.ask = None
        _call.reset(token)
