"""The board: typed artifacts, who may see them, and the agents that consume and publish them."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AwareDatetime, Field, StringConstraints, Tag

from weft.spec import keys
from weft.spec.part import (
    READ_NAMES,
    TEXT_OR_OBJECT,
    YEAR,
    JsonMap,
    Name,
    Names,
    Nearness,
    ObjectRef,
    Part,
    Seconds,
    Text,
    Words,
)
from weft.spec.providers import Provider


class PublicVisibility(Part):
    """Every agent of the board sees it."""

    kind: Literal["public"] = "public"


class PrivateVisibility(Part):
    """Only the named agents see it."""

    kind: Literal["private"] = "private"
    agents: Annotated[tuple[Name, ...], Field(min_length=1, max_length=100), READ_NAMES]


class LabelledVisibility(Part):
    """Only agents that have all of the labels see it."""

    kind: Literal["labelled"] = "labelled"
    labels: Annotated[tuple[Name, ...], Field(min_length=1, max_length=100), READ_NAMES]


class TenantVisibility(Part):
    """Only agents that work for the tenant see it; null is the tenant it was published in."""

    kind: Literal["tenant"] = "tenant"
    tenant: Name | None = None


class AfterVisibility(Part):
    """Hidden for some time after it was published; then visible as `then` says."""

    kind: Literal["after"] = "after"
    seconds: float = Field(ge=0, le=3_153_600_000, allow_inf_nan=False)
    then: "Visibility" = PublicVisibility()


Visibility: TypeAlias = Annotated[
    PublicVisibility | PrivateVisibility | LabelledVisibility | TenantVisibility | AfterVisibility,
    Field(discriminator="kind"),
]

PUBLIC = PublicVisibility()


#: The artifact type of schedules.
TICK: Final = "Tick"

#: Hours and minutes.
TIME_OF_DAY: Final = "^([01][0-9]|2[0-3]):[0-5][0-9]$"

HookName: TypeAlias = Literal[
    "before_schedule",
    "pre_consume",
    "pre_evaluate",
    "post_evaluate",
    "artifact_published",
    "post_publish",
    "error",
]


class ArtifactType(Part):
    """An artifact type with its own schema instead of a model of the package."""

    name: Name
    description: Text = ""
    schema_: JsonMap = Field(alias="schema", description="JSON Schema of the payload.")


class Join(Part):
    """Artifacts that belong together by a key."""

    by: (
        Annotated[
            Annotated[Name, Tag("text")] | Annotated[dict[Name, Name], Tag("object")],
            TEXT_OR_OBJECT,
        ]
        | None
    ) = Field(
        default=None, description="The field of the payload that is the key, or one for each type."
    )
    function: ObjectRef | None = Field(
        default=None, description="In place of `by`: a function of the payload that returns it."
    )
    within_seconds: Seconds | None = None
    within_count: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="How many artifacts of the subscription may come in between."
    )

    _one_key = keys.require_one("by", "function", why="a join has one key")


class Batch(Part):
    """Artifacts, or joined groups, that are processed together."""

    size: Annotated[int, Field(ge=1, le=10_000)] | None = None
    timeout_seconds: Seconds | None = None

    _ends = keys.require_any("size", "timeout_seconds", why="the batch is never full")


class Subscription(Part):
    """What wakes an agent: one artifact of each type; a type listed twice needs two."""

    types: Annotated[tuple[Name, ...], Field(min_length=1, max_length=50)]
    where: Words | None = Field(
        default=None,
        description="A condition over the fields of the payload, or a function of it.",
    )
    semantic_match: Words | None = Field(
        default=None,
        description="A description in words that the artifact must be near to in meaning; needs "
        "embeddings.",
    )
    threshold: Nearness | None = Field(
        default=None, description="How near, for semantic_match; null: 0.5."
    )
    tags: Names = Field(default=(), description="The artifact has one of these.")
    from_agents: Names = Field(default=(), description="One of these published it.")
    mode: Literal["both", "events", "direct"] = Field(
        default="both", description="events: published artifacts; direct: only those it is given."
    )
    priority: int = Field(default=0, ge=-1000, le=1000, description="Higher comes first.")
    join: Join | None = None
    batch: Batch | None = None
    activation: Words | None = Field(
        default=None,
        description="A condition over how many artifacts of each type the correlation has; what "
        "came waits until it holds.",
    )
    context: Provider | None = Field(default=None, description="Instead of the agent's provider.")
    scope: Literal["correlation", "partition", "all"] = Field(
        default="correlation", description="Which artifacts may be collected together."
    )

    _compared = keys.allow_only_with("threshold", "semantic_match")


class Publication(Part):
    """What an agent publishes."""

    type: Name
    visibility: Annotated[
        Annotated[Visibility, Tag("object")] | Annotated[ObjectRef, Tag("text")], TEXT_OR_OBJECT
    ] = Field(default=PUBLIC, description="Fixed, or a function of the payload that returns it.")
    tags: Names = ()
    fan_out: int = Field(default=1, ge=1, le=100, description="How many each time.")
    where: Words | None = Field(
        default=None, description="What does not fulfil it is not published."
    )
    validate_: Words | None = Field(
        default=None, alias="validate", description="If one does not fulfil it, the turn fails."
    )


class ModelEngine(Part):
    """The agent's language model produces the artifacts."""

    kind: Literal["model"] = "model"
    model: Name | None = None
    instructions: Text = ""
    context: Provider | None = Field(default=None, description="Instead of the agent's provider.")


class FunctionEngine(Part):
    """A function, or a class with `evaluate`, produces the artifacts."""

    kind: Literal["function"] = "function"
    function: ObjectRef
    options: JsonMap = Field(default={}, description="What a class is made with.")
    context: Provider | None = Field(default=None, description="Instead of the agent's provider.")


Engine: TypeAlias = Annotated[ModelEngine | FunctionEngine, Field(discriminator="kind")]


class Component(Part):
    """An object whose hooks are called around activations, or for the whole board."""

    component: ObjectRef = Field(description="A class, made with `options`.")
    options: JsonMap = Field(default={}, description="What the class is made with.")
    priority: int = Field(default=0, ge=-1000, le=1000, description="Higher comes first.")
    hooks: tuple[HookName, ...] = Field(min_length=1, description="Which of its hooks are called.")


class Schedule(Part):
    """When a schedule (UTC) wakes an agent, with an artifact of the type Tick."""

    every_seconds: Seconds | None = None
    daily: Annotated[str, StringConstraints(pattern=TIME_OF_DAY)] | None = None
    at: AwareDatetime | None = None
    cron: Name | None = Field(
        default=None, description="Five fields: minute hour day month weekday."
    )
    delay_seconds: float = Field(default=0, ge=0, le=YEAR, description="Before the first.")
    max_repeats: Annotated[int, Field(ge=1)] | None = None

    _one_time = keys.require_one("every_seconds", "daily", "at", "cron")


class BestOf(Part):
    """An agent works several times, and the best result is used."""

    n: int = Field(ge=2, le=10)
    score: ObjectRef = Field(description="A function of the artifacts of one result; most is best.")


class BoardAgent(Part):
    """What an agent consumes and publishes; agents.json declares the agent itself."""

    agent: Name
    labels: Names = ()
    consumes: tuple[Subscription, ...] = ()
    publishes: tuple[Publication, ...] = ()
    engines: tuple[Engine, ...] = Field(
        default=(), description="One after the other, each gets what the one before made."
    )
    context: Provider | None = Field(
        default=None, description="null: the visible artifacts of the correlation."
    )
    fallback: Provider | None = Field(
        default=None, description="Serves when the provider fails or takes too long."
    )
    context_config: JsonMap = Field(
        default={}, description="What providers written in Python find in `request.config`."
    )
    components: tuple[Component, ...] = ()
    schedule: Schedule | None = None
    best_of: BestOf | None = None
    max_concurrency: int = Field(default=2, ge=1, le=64)
    prevent_self_trigger: bool = Field(
        default=True, description="What it published itself does not wake it."
    )


class Board(Part):
    """The artifact types, the agents, and the settings of a board."""

    artifacts: tuple[
        Annotated[
            Annotated[Name, Tag("text")] | Annotated[ArtifactType, Tag("object")], TEXT_OR_OBJECT
        ],
        ...,
    ] = Field(description="Types that may be published: models of the package, or JSON Schemas.")
    agents: tuple[BoardAgent, ...] = ()
    components: tuple[Component, ...] = Field(
        default=(), description="Their board hooks are called for all agents."
    )
    max_concurrency: int = Field(default=16, ge=1, le=64, description="Of all agents, in one run.")
    max_wakes_per_input: int = Field(
        default=1000,
        ge=1,
        le=1_000_000,
        description="How often one agent is woken at most for each artifact from outside.",
    )
    idle_seconds: Seconds = Field(
        default=86_400, description="A correlation that nothing happens in for so long is over."
    )
    shared: bool = Field(
        default=False,
        description="Whether all users of a tenant share its correlations and artifacts; "
        "otherwise each user has their own.",
    )
