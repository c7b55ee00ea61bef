"""What authors of steps write, and what they are given: agents with own prompts, assemblers."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

from pydantic import BaseModel

from weft.context.slices import BoardReader
from weft.context.step_context import AssembledContext
from weft.engine.events import Usage
from weft.errors import UsageError
from weft.findings import Json
from weft.ports.model import ChatMessage

StateT = TypeVar("StateT")
StateT_contra = TypeVar("StateT_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a step has failed."""

    step: str
    attempt: int
    #: The name of the exception's class.
    type: str
    message: str
    stack: str
    at: datetime
    #: The hash of the state it was given: the same for each attempt.
    input: str = ""


@dataclass(frozen=True, slots=True)
class PathResult:
    """How a path of a fork has come out, for the step that joins."""

    status: Literal["success", "failed", "recovered"]
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Undone:
    """What a compensation undoes: the step, its turn, and the state right after it."""

    step: str
    turn: int
    state: Any


class Boards(Protocol):
    """The boards of the tenant, as the agent of a step sees them."""

    def __call__(self, name: str, /) -> BoardReader:
        """Return one of them, to be read."""
        ...


def _no_board(name: str) -> BoardReader:
    raise UsageError(
        f"the board {name} is read only while a context is assembled",
        hint="declare it as a source of the step's context, or read it in its assembler",
    )


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step is given beside its state."""

    run: str
    step: str
    #: The number of the attempt, from 1 on.
    attempt: int
    #: The same when this attempt is repeated after a crash: what it does outside is done once.
    key: str
    #: In a path that is taken after a failure: what has failed.
    failure: Failure | None = None
    #: In the step that joins a fork: how each path has come out.
    paths: Mapping[str, PathResult] = field(default_factory=dict[str, PathResult])
    #: In a compensation: what it undoes.
    undoes: Undone | None = None
    #: What its declared context came to.
    assembly: AssembledContext = field(default_factory=AssembledContext.empty)
    #: All variables that it may read.
    variables: Mapping[str, Json] = field(default_factory=dict[str, Json])
    #: Reads boards while the context is assembled; what is shown is recorded, and stays so.
    board: Boards = field(default=_no_board, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StepResult(Generic[StateT]):
    """What a step changes, and how sure it is of that, from 0 to 1."""

    changes: "Mapping[str, Any] | StateT | None" = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """The reply of a model."""

    text: str
    #: A structured reply: an object of the step's `output_type`, else as JSON; None of plain text.
    output: Any
    usage: Usage


#: What a step may return.
Changes: TypeAlias = Mapping[str, Any] | StateT | StepResult[StateT] | None


class AgentStep(ABC, Generic[StateT]):
    """A step that an agent does: it writes the prompts, and makes changes of the reply.

    Each method is called once for each attempt, and what it returns is recorded: what a model is
    sent never depends on when it is asked for. All but the prompts may be async.
    """

    #: The class of a structured reply; None: the reply is text.
    output_type: ClassVar[type[BaseModel] | None] = None
    #: The model that answers, unless it is that of the run; and the tools it may call.
    model: ClassVar[str | None] = None
    tools: ClassVar[Sequence[Callable[..., Any]]] = ()

    @abstractmethod
    def system_prompt(self) -> str:
        """Say who the agent is."""

    @abstractmethod
    def user_prompt(self, state: StateT) -> str:
        """Say what it is to do."""

    def build_messages(
        self,
        state: StateT,
        assembly: AssembledContext,
        context: StepContext,  # noqa: ARG002 - for those that override it
    ) -> Iterable[ChatMessage] | Awaitable[Iterable[ChatMessage]]:
        """Return what the model is sent: the prompts, and between them the context, if any."""
        messages: list[ChatMessage] = [{"role": "system", "content": self.system_prompt()}]
        if not assembly.is_empty:
            text = f"Context:\n{assembly.to_prompt_string()}"
            messages.append({"role": "user", "content": text})
        return [*messages, {"role": "user", "content": self.user_prompt(state)}]

    @abstractmethod
    def apply(
        self, state: StateT, response: Response, assembly: AssembledContext
    ) -> Changes[StateT] | Awaitable[Changes[StateT]]:
        """Return what the reply changes in the state."""


@runtime_checkable
class ContextAssembler(Protocol[StateT_contra]):
    """Puts the context of a step together, in place of what the step declares."""

    async def assemble(self, state: StateT_contra, context: StepContext) -> AssembledContext:
        """Return what the step is shown beside its state."""
        ...
