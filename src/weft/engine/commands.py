"""Commands: what the engine wants done. It does nothing itself."""

from typing import NamedTuple, TypeAlias

from weft.engine.events import EventData, Values
from weft.engine.state import GivenAnswer


class Record(NamedTuple):
    """Something follows from what happened: put it down in the journal.

    It belongs to the turn of what it follows from, unless it names another.
    """

    data: EventData
    turn: int | None = None


class Start(NamedTuple):
    """Let an agent take a turn. The turn gets its number when its event is written."""

    agent: str
    fork: int = 0


class Assemble(NamedTuple):
    """Put together what an agent is to see."""

    agent: str
    turn: int
    call: int


class CallModel(NamedTuple):
    """Ask the model of an agent. `seq` makes the key by which a repetition is recognised."""

    agent: str
    turn: int
    call: int
    seq: int


class CallTool(NamedTuple):
    """Call a tool, with the answers people already gave to its questions."""

    id: str
    agent: str
    turn: int
    tool: str
    arguments: Values
    seq: int
    answers: tuple[GivenAnswer, ...] = ()


Command: TypeAlias = Record | Start | Assemble | CallModel | CallTool
