"""What went wrong in a tool: told to the agent, and to the operator without any values."""

import logging
import traceback
from asyncio import CancelledError
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from weft.errors import Ask, Refuse, RetryModel, ToolError

LOG: Final = logging.getLogger("weft.tools")

#: An agent is told this much of a message; some carry whole documents.
_MOST_TOLD: Final = 2_000


@contextmanager
def explained(tool: str) -> Generator[None]:
    """Turn whatever a tool raises into ToolError; its signals pass, and so does cancellation."""
    try:
        yield
    except (RetryModel, Refuse, Ask, ToolError, CancelledError, GeneratorExit):
        raise
    except (SystemExit, KeyboardInterrupt) as error:
        raise ToolError(f"{tool} tried to end the process, which no tool may do") from error
    except BaseException as error:  # libraries in other languages raise what is no Exception
        _report(tool, error)
        raise ToolError(f"{tool} failed: {told(error)}") from error


def told(error: BaseException) -> str:
    """Say what an exception says: its type and its message, in one line if it is one."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the author's own text fails to be made
        text = "its message cannot be read"
    return f"{name}: {text[:_MOST_TOLD]}" if text else name


def _report(tool: str, error: BaseException) -> None:
    # Messages of exceptions often quote arguments, so only the type and the places are logged.
    places = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    LOG.warning("the tool %s failed with %s\n%s", tool, type(error).__name__, places)
