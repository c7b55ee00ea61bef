"""What engines and components get and give: inputs, results, and the context of an activation."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeVar, cast, get_args

from pydantic import BaseModel, ValidationError

from weft.context.providers import DefaultCorrelationProvider
from weft.context.slices import (
    AgentInfo,
    BoardReader,
    ContextProvider,
    ContextRequest,
    Envelope,
    Item,
)
from weft.dsl.parts import qualified_name
from weft.engine.board.publishing import VISIBILITY, JsonDraft, policy_json
from weft.errors import ToolError, UsageError
from weft.findings import Json
from weft.runtime.board.code import ArtifactTypes
from weft.runtime.tools.context_variables import Context
from weft.runtime.variables.json_values import plain_json
from weft.spec.board import Visibility
from weft.spec.part import name_list

ModelT = TypeVar("ModelT", bound=BaseModel)

#: What a component may decide before an agent works.
VerdictKind = Literal["continue", "skip", "defer", "block"]


#: The longest time that something may be put off, in seconds: a year.
LONGEST: Final = 31_536_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a component decides before an agent works; `seconds` is how long defer puts it off."""

    kind: VerdictKind = "continue"
    seconds: float = 1.0
    reason: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        if self.kind not in get_args(VerdictKind):
            raise UsageError(
                f"{self.kind!r} is not a verdict", hint="use CONTINUE, SKIP, DEFER, BLOCK"
            )
        if not 0 <= self.seconds <= LONGEST:
            raise UsageError(f"nothing can be put off by {self.seconds} seconds")


CONTINUE: Final = Verdict()
SKIP: Final = Verdict("skip")
BLOCK: Final = Verdict("block")
DEFER: Final = Verdict("defer")


@dataclass(frozen=True, slots=True)
class EvalInputs:
    """What an engine works on."""

    artifacts: tuple[Envelope, ...]
    state: dict[str, Any] = field(default_factory=dict[str, Any])

    def first_as(self, model: type[ModelT]) -> ModelT | None:
        """Return the first artifact of a type as an object, if there is one."""
        return next(iter(self.all_as(model)), None)

    def all_as(self, model: type[ModelT]) -> list[ModelT]:
        """Return all artifacts of a type as objects."""
        names = {model.__name__, qualified_name(model)}
        return [
            model.model_validate(artifact.payload)
            for artifact in self.artifacts
            if artifact.type in names
        ]


@dataclass(frozen=True, slots=True)
class Output:
    """An artifact with what its agent says of it beside its payload."""

    artifact: Any
    tags: Sequence[str] = ()
    visibility: Visibility | Mapping[str, Any] | None = None
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class EvalResult:
    """What an engine came to: artifacts to publish, and what it adds to the state."""

    artifacts: Sequence[Any] = ()
    state: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of(cls, *artifacts: Any, **state: Any) -> "EvalResult":  # noqa: ANN401 - an author's own
        """Return a result with these artifacts."""
        return cls(artifacts, state)

    @classmethod
    def empty(cls) -> "EvalResult":
        """Return a result without anything to publish."""
        return cls()


@dataclass(frozen=True, slots=True)
class EvalContext:
    """One activation, as its engines, components and providers see it."""

    agent: AgentInfo
    run: str
    correlation_id: str
    #: The same whenever the activation is repeated after a crash.
    key: str
    now: datetime
    board: BoardReader
    inputs: EvalInputs
    #: What components, providers and engines of one activation share.
    state: dict[str, Any]
    items: tuple[Item, ...] = ()
    agent_context_provider: ContextProvider | None = None
    #: The variables of the workflow, and a way to ask the model.
    variables: Context | None = None

    async def context(self) -> list[Item]:
        """Return what the provider gave for this activation; it was asked once."""
        return [dict(it) for it in self.items]

    async def ask(self, instruction: str, output: type[ModelT]) -> ModelT:
        """Ask the agent's model something; recorded, counted and replayed."""
        if self.variables is None:
            raise ToolError("a model can be asked while an engine works, not before")
        return await self.variables.ask(instruction, output=output)


class Engine(ABC):
    """The base of engines written as classes."""

    #: Instead of the agent's provider.
    context_provider: ContextProvider | None = None

    @abstractmethod
    async def evaluate(self, ctx: EvalContext, inputs: EvalInputs) -> Any:  # noqa: ANN401
        """Return an artifact, several, an EvalResult or None."""

    async def fetch_conversation_context(self, ctx: EvalContext) -> list[Item]:
        """Return the context of the activation: what its provider gave, asked once and recorded."""
        if ctx.items or ctx.variables is not None:
            return await ctx.context()
        provider = self.context_provider or ctx.agent_context_provider
        request = ContextRequest(ctx.agent, ctx, ctx.inputs, ctx.board, ctx.correlation_id)
        return (await (provider or DefaultCorrelationProvider())(request)).items


class Component:
    """The base of components; whatever is not overridden is not called.

    `pre_consume(ctx, inputs)`, `pre_evaluate(ctx, inputs)` and `post_evaluate(ctx, result)` may
    return other inputs or another result; `post_publish(ctx, artifacts)` and `error(ctx, error)`
    are told; `artifact_published(artifact)` may return another artifact, or BLOCK;
    `before_schedule(ctx, inputs)` returns CONTINUE, SKIP, DEFER or BLOCK.
    """

    priority: int = 0


class UnknownArtifactType(ToolError):
    """An engine returned an object whose class is not a type of the board."""

    def __init__(self, type_: str) -> None:
        super().__init__(f"{type_} is not a type of the board")
        self.type = type_


def drafts_of(
    returned: object, types: ArtifactTypes, publishes: Sequence[str]
) -> tuple[list[JsonDraft], dict[str, Any]]:
    """Return what an engine gave as drafts, and what it adds to the state.

    Raises ToolError for anything that is not an artifact of the board.
    """
    if isinstance(returned, EvalResult):
        return [
            _draft(artifact, types, publishes) for artifact in returned.artifacts
        ], returned.state
    if returned is None:
        return [], {}
    several = cast("list[Any]", returned if isinstance(returned, list | tuple) else [returned])
    return [_draft(it, types, publishes) for it in several], {}


def _draft(it: object, types: ArtifactTypes, publishes: Sequence[str]) -> JsonDraft:
    output = it if isinstance(it, Output) else Output(it)
    type_, payload = _type_and_payload(output.artifact, types, publishes)
    fault = types.validation_error(type_, payload)
    if fault:
        raise ToolError(f"an artifact of the type {type_} does not fit: {fault}")
    draft: JsonDraft = {"type": type_, "payload": payload}
    if output.tags:
        draft["tags"] = list(_tags(output))
    if output.visibility is not None:
        draft["visibility"] = _visibility(output.visibility)
    if output.partition:
        draft["partition"] = output.partition
    return draft


def _tags(output: Output) -> tuple[str, ...]:
    try:
        return name_list(output.tags)
    except ValueError as error:
        raise ToolError(f"the tags of an artifact cannot be used: {error}") from error


def _visibility(given: object) -> dict[str, Json]:
    try:
        return policy_json(VISIBILITY.validate_python(given))
    except ValidationError as error:
        told = error.errors()[0]["msg"]
        raise ToolError(f"the visibility of an artifact cannot be used: {told}") from error


def _type_and_payload(
    it: object, types: ArtifactTypes, publishes: Sequence[str]
) -> tuple[str, Any]:
    if isinstance(it, BaseModel):
        return type_name(it, types), it.model_dump(mode="json")
    if isinstance(it, Envelope):
        return it.type, it.payload
    if isinstance(it, dict) and it.keys() >= {"type", "payload"}:  # pyright: ignore[reportUnknownMemberType]
        name = str(it["type"])  # pyright: ignore[reportUnknownArgumentType]
        if name in types.schemas:
            return name, _json(it["payload"])  # pyright: ignore[reportUnknownArgumentType]
        raise ToolError(f"there are no artifacts of the type {name}")
    if isinstance(it, dict) and len(publishes) == 1:
        return publishes[0], _json(it)  # pyright: ignore[reportUnknownArgumentType]
    told = type(cast("object", it)).__name__
    raise ToolError(f"a value of type {told} is not an artifact; return an object of its type")


def _json(value: object) -> Any:  # noqa: ANN401 - JSON
    try:
        return plain_json(value)
    except ValueError as error:
        raise ToolError(f"an artifact is {error}") from error


def type_name(it: BaseModel, types: ArtifactTypes) -> str:
    """Return what the type of an object is called on the board."""
    kind = type(it)
    for name in (qualified_name(kind), kind.__name__):
        if name in types.schemas:
            return name
    raise UnknownArtifactType(kind.__name__)
