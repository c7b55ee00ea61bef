"""Providers: which artifacts of the board an agent is shown, as data."""

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import AwareDatetime, Field

from weft.spec.part import JsonMap, Name, Names, Nearness, ObjectRef, Part, Text, Words

#: How many artifacts a provider returns by default, and at most.
DEFAULT_LIMIT = 50
MAX_LIMIT = 1000

#: How many artifacts an activation is given at most, whatever its provider gives.
MAX_ITEMS = 10_000

#: How many of the newest artifacts a semantic provider compares by default.
CANDIDATES = 200

#: How many may come before those that are asked for: more than a board has.
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


class CorrelatedProvider(Part):
    """The visible artifacts of the same correlation, newest first."""

    kind: Literal["correlated"] = "correlated"
    limit: Limit | None = Field(default=None, description="null: all of them.")


class FilteredProvider(Part):
    """The visible artifacts that a filter lets through, of the whole board unless it says so."""

    kind: Literal["filtered"] = "filtered"
    filters: FilterConfig = FilterConfig()
    limit: Limit | None = None
    include_state_keys: Names = Field(
        default=(), description="These entries of the activation's state are added to it."
    )


class RecentProvider(Part):
    """The newest visible artifacts of the whole board."""

    kind: Literal["recent"] = "recent"
    limit: Limit = 10


class WindowProvider(Part):
    """The visible artifacts of the last seconds, of the whole board."""

    kind: Literal["window"] = "window"
    seconds: float = Field(gt=0, le=3_153_600_000)
    limit: Limit = DEFAULT_LIMIT


class SemanticProvider(Part):
    """The visible artifacts whose texts are nearest in meaning to a query, the nearest first.

    Without a query it is what the artifacts say that have woken the agent. Needs embeddings.
    """

    kind: Literal["semantic"] = "semantic"
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


class StateProvider(Part):
    """What a component has put into the activation's state."""

    kind: Literal["state"] = "state"
    key: Name = "context_snapshot"


class CompositeProvider(Part):
    """What several providers give, one after the other, each artifact once."""

    kind: Literal["composite"] = "composite"
    providers: Annotated[tuple["Provider", ...], Field(min_length=1, max_length=20)]
    parallel: bool = Field(default=False, description="Ask all at once; the order stays the same.")
    limit: Limit | None = None


class RedactingProvider(Part):
    """What another provider gives, without some keys of the payloads, or with others."""

    kind: Literal["redacting"] = "redacting"
    provider: "Provider"
    drop: Names = ()
    transform: dict[Name, ObjectRef] = Field(
        default={}, description="By key: the function that its value is replaced by."
    )


class SummaryProvider(Part):
    """What another provider gives, as texts: one template for each type."""

    kind: Literal["summary"] = "summary"
    provider: "Provider"
    templates: dict[Name, Text] = Field(
        default={}, description="By type: `{field}` inserts a field of the payload."
    )


class EmptyProvider(Part):
    """Nothing."""

    kind: Literal["empty"] = "empty"


class CustomProvider(Part):
    """A provider written in Python."""

    kind: Literal["custom"] = "custom"
    provider: ObjectRef = Field(description="A class, made with `options`, or a function.")
    options: JsonMap = Field(default={}, description="What a class is made with.")


Provider: TypeAlias = Annotated[
    CorrelatedProvider
    | FilteredProvider
    | RecentProvider
    | WindowProvider
    | SemanticProvider
    | StateProvider
    | CompositeProvider
    | RedactingProvider
    | SummaryProvider
    | EmptyProvider
    | CustomProvider,
    Field(discriminator="kind"),
]


def milliseconds(time: datetime) -> int:
    """Return a time as journals count it."""
    return round(time.timestamp() * 1000)
