"""Events about calls of tools and about questions to people; `events` has the union of all."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from weft.engine.events.context import Values
from weft.findings import Json
from weft.spec.tools import HookType

#: The code of a board. engine: the function that works in place of a model; publish: what decides
#: about artifacts before they are published; post_publish, error: components that hear of both.
BoardHook: TypeAlias = Literal["engine", "publish", "post_publish", "error"]

#: The code of a flow. step: the function of a step; apply: what turns a reply into changes.
StepHook: TypeAlias = Literal["step", "apply"]

#: Where the engine calls code that no model has asked for: around runs, turns and messages
#: (`HookType`), and the code of boards and flows. computed, trigger: the function of a variable;
#: handoff: the tool by which a model hands off, which the engine performs itself.
HookPoint: TypeAlias = Literal[HookType, "computed", "trigger", "handoff", BoardHook, StepHook]

BOARD_HOOKS: Final[frozenset[str]] = frozenset(get_args(BoardHook))
STEP_HOOKS: Final[frozenset[str]] = frozenset(get_args(StepHook))

#: Why a tool gave no result. refused: it declines; retry: the model should give other arguments.
FailureKind: TypeAlias = Literal["error", "timeout", "refused", "retry", "unknown"]


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A tool is about to be called."""

    id: str
    tool: str
    arguments: Values
    #: Called with the fields of a structured output, not because the model asked.
    auto: bool = False
    #: The hook point it is called at; None if the model asked for it. The arguments of such a call
    #: follow from the state and are not stored.
    hook: HookPoint | None = None
    #: The variable whose function it is, at the hook points `computed` and `trigger`.
    variable: str = ""


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool gave its result."""

    id: str
    value: Json
    #: How far it said last it had come: a share from 0 to 1, and words.
    progress: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """A tool gave no result; the agent is told why."""

    id: str
    error: str
    kind: FailureKind = "error"
    #: Of the code of a step: type, message and stack of what it raised.
    exception: Values | None = None


@dataclass(frozen=True, slots=True)
class SurfaceShown:
    """A tool shows a person something and waits for nobody."""

    call: str
    number: int
    tool: str
    component: str
    mode: Literal["inline", "artifact"]
    payload: Json


@dataclass(frozen=True, slots=True)
class RequestOpened:
    """A person is asked something."""

    id: str
    kind: Literal["chat", "ui"]
    agent: str
    #: The tool that asks, its call, and which of its questions this is.
    tool: str | None = None
    call: str | None = None
    number: int = 0
    payload: Json = None
    #: Hash of tool and payload: the answer is to this question and to no other.
    digest: str = ""
    expires_at: int | None = None
    #: What holds when nobody answers in time; None fails the asking tool.
    otherwise: Json = None
    #: The variables that its answer sets.
    sets: tuple[str, ...] = ()
    #: What shows it, and where.
    component: str = ""
    mode: str = ""
    #: Who is asked, as `role:NAME`; empty for the user whose run it is.
    addressee: str = ""


@dataclass(frozen=True, slots=True)
class RequestAnswered:
    """A person answered."""

    id: str
    value: Json
    user: str
    #: What the sender calls the message this was; None for an answer to a named question.
    message_id: str | None = None
    #: The role or group as whose member the user answered; empty where none was needed.
    role: str = ""


@dataclass(frozen=True, slots=True)
class RequestExpired:
    """Nobody answered in time."""

    id: str
