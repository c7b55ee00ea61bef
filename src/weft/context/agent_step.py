"""Base classes for steps in code, and the objects they receive."""

from abc import abstractmethod
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
    """The failure of a step."""

    step: str
    attempt: int
    #: The name of the exception's class.
    type: str
    message: str
    stack: str
    at: datetime
    #: The hash of the state it received; the same for each attempt.
    input: str = ""


@dataclass(frozen=True, slots=True)
class PathResult:
    """The result of a path of a fork, for the join step."""

    status: Literal["success", "failed", "recovered"]
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Undone:
    """The step that a compensation undoes, its turn, and the state after it."""

    step: str
    turn: int
    state: Any


class Boards(Protocol):
    """Gives read access to the boards of the tenant, as the step's agent."""

    def __call__(self, name: str, /) -> BoardReader:
        """Return the reader of a board."""
        ...


def _no_board(name: str) -> BoardReader:
    raise UsageError(
        f"the board {name} is read only while a context is assembled",
        hint="declare it as a source of the step's context, or read it in its assembler",
    )


@dataclass(frozen=True, slots=True)
class StepContext:
    """What a step receives besides its state."""

    run: str
    step: str
    #: The number of the attempt, from 1 on.
    attempt: int
    #: Identical if this attempt is repeated after a crash, to make external effects idempotent.
    key: str
    #: In a failure path: the failure.
    failure: Failure | None = None
    #: In a join step: the result of each path.
    paths: Mapping[str, PathResult] = field(default_factory=dict[str, PathResult])
    #: In a compensation: the step it undoes.
    undoes: Undone | None = None
    #: The assembled context that the step declares.
    assembly: AssembledContext = field(default_factory=AssembledContext.empty)
    #: The variables that the step may read.
    variables: Mapping[str, Json] = field(default_factory=dict[str, Json])
    #: Reads boards while the context is assembled; the result is recorded.
    board: Boards = field(default=_no_board, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StepResult(Generic[StateT]):
    """The changes of a step, and its confidence from 0 to 1."""

    changes: "Mapping[str, Any] | StateT | None" = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """The reply of a model."""

    text: str
    #: A structured reply: an object of the step's `output_type`, or JSON; None for plain text.
    output: Any
    usage: Usage


#: What a step may return.
Changes: TypeAlias = Mapping[str, Any] | StateT | StepResult[StateT] | None


# Not an ABC: a class without one of the methods is a finding with a hint, not a TypeError.
class AgentStep(Generic[StateT]):
    """A step done by an agent: it builds the prompts, and converts the reply to changes.

    Each method is called once per attempt, and its result is recorded, so that a repeated call is
    sent the same messages. All methods but the prompts may be async.
    """

    #: The class of a structured reply; None: the reply is text.
    output_type: ClassVar[type[BaseModel] | None] = None
    #: The model (default: the model of the run), and the tools it may call.
    model: ClassVar[str | None] = None
    tools: ClassVar[Sequence[Callable[..., Any]]] = ()

    @abstractmethod
    def system_prompt(self) -> str:
        """Return the system prompt."""

    @abstractmethod
    def user_prompt(self, state: StateT) -> str:
        """Return the user prompt."""

    def build_messages(
        self,
        state: StateT,
        assembly: AssembledContext,
        context: StepContext,  # noqa: ARG002 - for those that override it
    ) -> Iterable[ChatMessage] | Awaitable[Iterable[ChatMessage]]:
        """Return the messages for the model: the prompts, with the context between them."""
        messages: list[ChatMessage] = [{"role": "system", "content": self.system_prompt()}]
        if not assembly.is_empty:
            text = f"Context:\n{assembly.to_prompt_string()}"
            messages.append({"role": "user", "content": text})
        return [*messages, {"role": "user", "content": self.user_prompt(state)}]

    @abstractmethod
    def apply(
        self, state: StateT, response: Response, assembly: AssembledContext
    ) -> Changes[StateT] | Awaitable[Changes[StateT]]:
        """Return the changes of the state that follow from the reply."""


@runtime_checkable
class ContextAssembler(Protocol[StateT_contra]):
    """Assembles the context of a step, instead of declared sources."""

    async def assemble(self, state: StateT_contra, context: StepContext) -> AssembledContext:
        """Return the context of the step."""
        ...
