"""Providers: which artifacts of the board an agent is shown, as data."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    dataclass_transform,
)

from pydantic import AwareDatetime, Field, GetCoreSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

from weft.spec import keys
from weft.spec.part import JsonMap, Name, Names, Nearness, ObjectRef, Part, Text, Words

#: How many artifacts a provider returns by default, and at most.
DEFAULT_LIMIT = 50
MAX_LIMIT = 1000

#: The most artifacts that an activation receives from its provider.
MAX_ITEMS = 10_000

#: How many of the newest artifacts a semantic provider compares by default.
CANDIDATES = 200

#: The largest offset; no board has more artifacts.
MAX_OFFSET = 2**53


Limit: TypeAlias = Annotated[int, Field(ge=1, le=MAX_LIMIT)]


class TagFilter(Part):
    """Which tags an artifact must have."""

    include: Names = Field(default=(), description="At least one of these.")
    exclude: Names = Field(default=(), description="None of these.")
    all_of: Names = Field(default=(), description="All of these.")


class FilterConfig(Part):
    """Selects artifacts: every given condition must hold, with one entry of each list."""

    types: Names = ()
    tags: TagFilter = TagFilter()
    producers: Names = ()
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    correlation_id: Name | None = None
    partition: Name | None = None
    text: Words | None = Field(default=None, description="Occurs in the payload, in any case.")
    limit: Limit | None = None
    order: Literal["-created_at", "created_at"] = Field(
        default="-created_at", description="-created_at: newest first."
    )


SliceT_co = TypeVar("SliceT_co", covariant=True)

#: In programs, functions and objects stand where files have their names.
Code: TypeAlias = Callable[..., Any]


class _OrCode:
    """Accepts code beside what a file may have."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        file = handler(source)
        program = core_schema.no_info_wrap_validator_function(
            lambda value, check: value if callable(value) else check(value), file
        )
        return core_schema.json_or_python_schema(file, program)


_CODE: Final = _OrCode()


class ProviderRequest(Protocol[SliceT_co]):
    """The request to a provider, which reads the board as one agent sees it."""

    async def select(self, provider: "SelectingProvider", /) -> SliceT_co:
        """Return the artifacts that a declared provider selects."""
        ...


@dataclass_transform(kw_only_default=False, field_specifiers=(Field,))
class _InOrder(type(Part)):
    """Values may be given in the order of the fields."""

    model_fields: dict[str, FieldInfo]

    if not TYPE_CHECKING:  # pragma: no branch - type checkers read the fields instead
        # An __init__ of the class would also be called by validation, which is strict without one.
        def __call__(cls, *values: Any, **fields: Any) -> Any:  # noqa: ANN401 - of the class's fields
            names = [name for name in cls.model_fields if name != "kind"]
            if values and names[0] == "providers":
                values = (values,)
            return super().__call__(
                **dict(zip(names[: len(values)], values, strict=True)), **fields
            )


class SelectingProvider(Part, metaclass=_InOrder):
    """A provider that is called like one that is written in code."""

    async def __call__(self, request: ProviderRequest[SliceT_co]) -> SliceT_co:
        """Return the artifacts that it selects."""
        return await request.select(self)


class DefaultCorrelationProvider(SelectingProvider):
    """The visible artifacts of the same correlation, newest first."""

    kind: Literal["correlated"] = Field(default="correlated", kw_only=True)
    limit: Limit | None = Field(default=None, description="null: all of them.")


class FilteredContextProvider(SelectingProvider):
    """The visible artifacts that match a filter, of the whole board unless it says otherwise."""

    kind: Literal["filtered"] = Field(default="filtered", kw_only=True)
    filters: FilterConfig = FilterConfig()
    limit: Limit | None = None
    include_state_keys: Names = Field(
        default=(), description="These entries of the activation's state are added to it."
    )


class RecentProvider(SelectingProvider):
    """The newest visible artifacts of the whole board."""

    kind: Literal["recent"] = Field(default="recent", kw_only=True)
    limit: Limit = 10


class TimeWindowProvider(SelectingProvider):
    """The visible artifacts of the last seconds, of the whole board."""

    kind: Literal["window"] = Field(default="window", kw_only=True)
    seconds: float = Field(gt=0, le=3_153_600_000)
    limit: Limit = DEFAULT_LIMIT


class SemanticContextProvider(SelectingProvider):
    """The visible artifacts whose texts are most similar to a query, the most similar first.

    The default query is the text of the artifacts that woke the agent. Needs embeddings.
    """

    kind: Literal["semantic"] = Field(default="semantic", kw_only=True)
    query: Words | None = Field(default=None, description="A fixed text.")
    query_field: Name | None = Field(
        default=None, description="The field of the artifacts that have woken the agent."
    )
    limit: Limit = 10
    threshold: Nearness = Field(default=0.3, description="How near they must be.")
    filters: FilterConfig = Field(
        default=FilterConfig(),
        description="Which artifacts are compared; `limit` says how many of the newest, else 200.",
    )

    _one_query = keys.allow_one("query", "query_field")


class StateDelegatingProvider(SelectingProvider):
    """What a component has put into the activation's state."""

    kind: Literal["state"] = Field(default="state", kw_only=True)
    key: Name = "context_snapshot"


class CompositeProvider(SelectingProvider):
    """The results of several providers in order, each artifact once."""

    kind: Literal["composite"] = Field(default="composite", kw_only=True)
    providers: Annotated[tuple["Inner", ...], Field(min_length=1, max_length=20)]
    parallel: bool = Field(default=False, description="Ask all at once; the order stays the same.")
    limit: Limit | None = None

    if TYPE_CHECKING:

        def __init__(
            self, *providers: Code, parallel: bool = False, limit: int | None = None
        ) -> None: ...


class RedactingProvider(SelectingProvider):
    """The result of another provider, with keys of the payloads dropped or replaced."""

    kind: Literal["redacting"] = Field(default="redacting", kw_only=True)
    provider: "Inner"
    drop: Names = ()
    transform: dict[Name, Annotated[ObjectRef, _CODE]] = Field(
        default={}, description="By key: the function that its value is replaced by."
    )

    if TYPE_CHECKING:

        def __init__(
            self,
            provider: Code,
            *,
            drop: Iterable[str] = (),
            transform: Mapping[str, Callable[[Any], Any]] = ...,
        ) -> None: ...


class SummarisingProvider(SelectingProvider):
    """The result of another provider as texts, with one template per type."""

    kind: Literal["summary"] = Field(default="summary", kw_only=True)
    provider: "Inner"
    templates: dict[Name, Text] = Field(
        default={}, description="By type: `{field}` inserts a field of the payload."
    )

    if TYPE_CHECKING:

        def __init__(self, provider: Code, templates: Mapping[str, str] = ...) -> None: ...


class EmptyProvider(SelectingProvider):
    """Nothing."""

    kind: Literal["empty"] = Field(default="empty", kw_only=True)


class CustomProvider(Part):
    """A provider written in Python."""

    kind: Literal["custom"] = "custom"
    provider: ObjectRef = Field(description="A class, made with `options`, or a function.")
    options: JsonMap = Field(default={}, description="What a class is made with.")


Provider: TypeAlias = Annotated[
    DefaultCorrelationProvider
    | FilteredContextProvider
    | RecentProvider
    | TimeWindowProvider
    | SemanticContextProvider
    | StateDelegatingProvider
    | CompositeProvider
    | RedactingProvider
    | SummarisingProvider
    | EmptyProvider
    | CustomProvider,
    Field(discriminator="kind"),
]

Inner: TypeAlias = Annotated[Provider, _CODE]


def with_inner(provider: Provider, change: Callable[[Any], Any]) -> Provider:
    """Return a provider whose inner providers are changed."""
    match provider:
        case CompositeProvider(providers=inner):
            return provider.model_copy(update={"providers": tuple(map(change, inner))})
        case RedactingProvider(provider=inner) | SummarisingProvider(provider=inner):
            return provider.model_copy(update={"provider": change(inner)})
        case _:
            return provider


def milliseconds(time: datetime) -> int:
    """Return a time as journals count it."""
    return round(time.timestamp() * 1000)
