"""Lines that begin with a slash: what a person may want in the middle of a run."""

from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias

from weft.cli.streams import Streams
from weft.cli.text import clean

#: Prints what is known of a run.
Inspecting: TypeAlias = Callable[[], Awaitable[None]]

SLASH_COMMANDS: Final = """\
  /inspect   what happened so far, and why
  /stop      end the run
  /quit      leave; the run waits and can be continued
  /help      this list
  //text     say something that begins with a slash
  text\\      a backslash at the end of a line continues it in the next"""


def is_command(text: str) -> bool:
    """Tell whether a line is a command and nothing to be said."""
    return text.startswith("/") and not text.startswith("//")


def said(text: str) -> str:
    """Return what a line says that is no command: of two slashes at its beginning, one."""
    return text[1:] if text.startswith("//") else text


async def run_command(
    text: str, streams: Streams, inspect: Inspecting
) -> Literal["stop", "quit", "again"]:
    """Carry out a command; to end a run or to leave it is up to whoever asked."""
    match text.strip().lower():
        case "/stop":
            return "stop"
        case "/quit" | "/exit":
            return "quit"
        case "/inspect":
            await inspect()
        case "/help":
            streams.problem(SLASH_COMMANDS)
        case _:
            streams.problem(f"unknown command {clean(text)}; available:\n{SLASH_COMMANDS}")
    return "again"
