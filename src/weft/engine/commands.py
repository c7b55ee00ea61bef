"""Commands: what the engine asks the runtime to do. It does nothing itself."""

from typing import NamedTuple, TypeAlias

from weft.engine.events import EventData, Values
from weft.engine.events.kinds import HookPoint
from weft.engine.state import GivenAnswer


class Record(NamedTuple):
    """Record an event that follows from another.

    It belongs to the turn of the event it follows from, unless it names another.
    """

    data: EventData
    turn: int | None = None


class Start(NamedTuple):
    """Start a turn of an agent. The turn gets its number when its event is written."""

    agent: str
    fork: int = 0
    #: On a board, the subscription whose next artifacts wake it. In a flow, the step with its lane,
    #: the attempt, and the turn that it undoes.
    step: str = ""
    lane: str = ""
    attempt: int = 1
    undoes: int = 0


class Assemble(NamedTuple):
    """Assemble the context of a model call."""

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
    #: The hook point it is called at, and the variable whose function it is; see ToolCalled.
    hook: HookPoint | None = None
    variable: str = ""


class Fetch(NamedTuple):
    """Read what a turn needs from outside; turn 0 is the run itself."""

    agent: str
    turn: int
    #: The variables to read, and whether the tools of servers are asked for.
    names: tuple[str, ...]
    servers: bool
    seq: int
    #: Whether providers and components of the board are asked as well, or the code of a step.
    board: bool = False
    flow: bool = False


class WriteDocument(NamedTuple):
    """Write the document of an entity variable as of an event."""

    name: str
    seq: int


class Judge(NamedTuple):
    """Ask a model whether the condition of a handoff holds."""

    agent: str
    rule: int
    seq: int


Effect: TypeAlias = CallModel | CallTool | Fetch | WriteDocument | Judge
Command: TypeAlias = Record | Start | Assemble | Effect
