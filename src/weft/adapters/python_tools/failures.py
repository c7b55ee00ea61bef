"""What went wrong in a tool: told to the agent, and to the operator without any values."""

import logging
import traceback
from asyncio import CancelledError
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from weft.adapters.python_tools.modules import ROOT
from weft.errors import Ask, Refuse, RetryModel, ToolError
from weft.ports.tools import Call

LOG: Final = logging.getLogger("weft.tools")

#: An agent is told this much of a message; some carry whole documents.
_MOST_TOLD: Final = 2_000


@contextmanager
def reporting_failures(call: Call) -> Generator[None]:
    """Log an exception and turn it into ToolError; the signals of tools pass, and cancellation."""
    try:
        yield
    except (RetryModel, Refuse, Ask, ToolError, CancelledError, GeneratorExit):
        raise
    except (SystemExit, KeyboardInterrupt) as error:
        raise ToolError(f"{call.name} tried to end the process, which no tool may do") from error
    except BaseException as error:  # libraries in other languages raise what is no Exception
        _report(call, error)
        raise ToolError(f"{call.name} failed: {told(error, place=_place(error))}") from error


def log_name(call: Call) -> str:
    """Return the name of a call in the log."""
    return call.log_name or (f"the tool {call.name}" if call.function is None else call.name)


def told(error: BaseException, *, place: str = "") -> str:
    """Say what an exception says: its type, its place and its message, in one line if it is one."""
    name = type(error).__name__ + (f" at {place}" if place else "")
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the author's own text fails to be made
        text = "its message cannot be read"
    return f"{name}: {text[:_MOST_TOLD]}" if text else name


def _place(error: BaseException) -> str:
    """Return the innermost line of the package's own files that an error came through."""
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
    else:  # Code of a program: only the traceback says where it is.
        LOG.warning("%s failed with %s%s\n%s", log_name(call), kind, which, _frames(error))


def _frames(error: BaseException) -> str:
    """Return the places an error came through, from the first on that is not the platform's."""
    trace = error.__traceback__
    while trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith("weft."):
        trace = trace.tb_next
    return "".join(traceback.format_tb(trace)).rstrip()
