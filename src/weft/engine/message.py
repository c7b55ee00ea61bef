"""One entry of a conversation."""

from typing import Literal, NamedTuple

from weft.engine.events import ToolRequest


class Message(NamedTuple):
    """One entry of the conversation."""

    #: correction: tells an agent why its reply was refused.
    role: Literal["user", "agent", "tool", "correction"]
    #: The agent that spoke, or whose tool answered; empty for the user.
    agent: str
    text: str
    seq: int
    requests: tuple[ToolRequest, ...] = ()
    #: The call a tool's message answers.
    call: str | None = None
    #: The only agent that gets it, for a correction; empty for all.
    to: str = ""
