"""Commands: what the engine wants done. It does nothing itself."""

from typing import NamedTuple, TypeAlias

from weft.engine.events import EventData, Values
from weft.engine.state import GivenAnswer


class Record(NamedTuple):
    """Something follows from what happened: put it down in the journal."""

    data: EventData
    actor: str = "engine"


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
    tool: str
    arguments: Values
    seq: int
    answers: tuple[GivenAnswer, ...] = ()


Command: TypeAlias = Record | Assemble | CallModel | CallTool
