"""The types of engines and components: inputs, results, and the context of an activation."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeVar, cast, get_args

from pydantic import BaseModel, ValidationError

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
from weft.spec.providers import DefaultCorrelationProvider

ModelT = TypeVar("ModelT", bound=BaseModel)

#: The decisions of `before_schedule`.
VerdictKind = Literal["continue", "skip", "defer", "block"]


#: The longest deferral in seconds: a year.
LONGEST: Final = 31_536_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision of a component before an agent works; DEFER waits for `seconds`."""

    kind: VerdictKind = "continue"
    seconds: float = 1.0
    reason: str = ""

    def __post_init__(self) -> None:
        """Refuse unknown kinds and impossible times."""
        if self.kind not in get_args(VerdictKind):
            raise UsageError(
                f"{self.kind!r} is not a verdict", hint="use CONTINUE, SKIP, DEFER, BLOCK"
            )
        if not 0 <= self.seconds <= LONGEST:
            raise UsageError(f"cannot defer by {self.seconds} seconds")


CONTINUE: Final = Verdict()
SKIP: Final = Verdict("skip")
BLOCK: Final = Verdict("block")
DEFER: Final = Verdict("defer")


@dataclass(frozen=True, slots=True)
class EvalInputs:
    """The inputs of an engine."""

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
    """An artifact to publish, with its tags, visibility and partition."""

    artifact: Any
    tags: Sequence[str] = ()
    visibility: Visibility | Mapping[str, Any] | None = None
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class EvalResult:
    """The result of an engine: artifacts to publish, and additions to the state."""

    artifacts: Sequence[Any] = ()
    state: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of(cls, *artifacts: Any, **state: Any) -> "EvalResult":  # noqa: ANN401 - an author's own
        """Return a result with these artifacts."""
        return cls(artifacts, state)

    @classmethod
    def empty(cls) -> "EvalResult":
        """Return a result without artifacts."""
        return cls()


@dataclass(frozen=True, slots=True)
class EvalContext:
    """One activation of an agent, for its engines, components and providers."""

    agent: AgentInfo
    run: str
    correlation_id: str
    #: Does not change when the activation is repeated after a crash.
    key: str
    now: datetime
    board: BoardReader
    inputs: EvalInputs
    #: Shared by the components, providers and engines of one activation.
    state: dict[str, Any]
    items: tuple[Item, ...] = ()
    agent_context_provider: ContextProvider | None = None
    #: The variables of the workflow, and a way to ask the model.
    variables: Context | None = None

    async def context(self) -> list[Item]:
        """Return the items of the context provider, which is called once per activation."""
        return [dict(item) for item in self.items]

    async def ask(self, instruction: str, output: type[ModelT]) -> ModelT:
        """Ask the agent's model; the reply is recorded, counted and replayed."""
        if self.variables is None:
            raise ToolError("a model can be asked only while an engine runs")
        return await self.variables.ask(instruction, output=output)


class Engine(ABC):
    """The base of engines written as classes."""

    #: Replaces the agent's provider.
    context_provider: ContextProvider | None = None

    @abstractmethod
    async def evaluate(self, ctx: EvalContext, inputs: EvalInputs) -> Any:  # noqa: ANN401
        """Return an artifact, several, an EvalResult or None."""

    async def fetch_conversation_context(self, ctx: EvalContext) -> list[Item]:
        """Return the context of the activation; the provider is called once and recorded."""
        if ctx.items or ctx.variables is not None:
            return await ctx.context()
        provider = self.context_provider or ctx.agent_context_provider
        request = ContextRequest(ctx.agent, ctx, ctx.inputs, ctx.board, ctx.correlation_id)
        return (await (provider or DefaultCorrelationProvider())(request)).items


class Component:
    """Base class of components; methods that are not overridden are not called.

    `pre_consume(ctx, inputs)`, `pre_evaluate(ctx, inputs)` and `post_evaluate(ctx, result)` may
    return other inputs or another result; `post_publish(ctx, artifacts)` and `error(ctx, error)`
    are notified; `artifact_published(artifact)` may return another artifact, or BLOCK;
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
    """Return the result of an engine as drafts, and its additions to the state.

    Raises ToolError for anything that is not an artifact of the board.
    """
    if isinstance(returned, EvalResult):
        return [
            _draft(artifact, types, publishes) for artifact in returned.artifacts
        ], returned.state
    if returned is None:
        return [], {}
    several = cast("list[Any]", returned if isinstance(returned, list | tuple) else [returned])
    return [_draft(artifact, types, publishes) for artifact in several], {}


def _draft(returned: object, types: ArtifactTypes, publishes: Sequence[str]) -> JsonDraft:
    output = returned if isinstance(returned, Output) else Output(returned)
    type_, payload = _type_and_payload(output.artifact, types, publishes)
    fault = types.validation_error(type_, payload)
    if fault:
        raise ToolError(f"invalid artifact of type {type_}: {fault}")
    draft: JsonDraft = {"type": type_, "payload": payload}
    if output.tags:
        draft["tags"] = list(_tags(output))
    if output.visibility is not None:
        draft["visibility"] = _visibility(output.visibility)
    if output.partition:
        draft["partition_key"] = output.partition
    return draft


def _tags(output: Output) -> tuple[str, ...]:
    try:
        return name_list(output.tags)
    except ValueError as error:
        raise ToolError(f"invalid tags of an artifact: {error}") from error


def _visibility(given: object) -> dict[str, Json]:
    try:
        return policy_json(VISIBILITY.validate_python(given))
    except ValidationError as error:
        message = error.errors()[0]["msg"]
        raise ToolError(f"invalid visibility of an artifact: {message}") from error


def _type_and_payload(
    artifact: object, types: ArtifactTypes, publishes: Sequence[str]
) -> tuple[str, Any]:
    if isinstance(artifact, BaseModel):
        return type_name(artifact, types), artifact.model_dump(mode="json")
    if isinstance(artifact, Envelope):
        return artifact.type, artifact.payload
    if isinstance(artifact, dict) and artifact.keys() >= {"type", "payload"}:  # pyright: ignore[reportUnknownMemberType]
        name = str(artifact["type"])  # pyright: ignore[reportUnknownArgumentType]
        if name in types.schemas:
            return name, _json(artifact["payload"])  # pyright: ignore[reportUnknownArgumentType]
        raise ToolError(f"the board has no artifact type {name}")
    if isinstance(artifact, dict) and len(publishes) == 1:
        return publishes[0], _json(artifact)  # pyright: ignore[reportUnknownArgumentType]
    kind = type(cast("object", artifact)).__name__
    raise ToolError(f"a value of type {kind} is not an artifact; return an object of its type")


def _json(value: object) -> Any:  # noqa: ANN401 - JSON
    try:
        return plain_json(value)
    except ValueError as error:
        raise ToolError(f"an artifact is {error}") from error


def type_name(artifact: BaseModel, types: ArtifactTypes) -> str:
    """Return the name of an object's type on the board."""
    kind = type(artifact)
    for name in (qualified_name(kind), kind.__name__):
        if name in types.schemas:
            return name
    raise UnknownArtifactType(kind.__name__)
