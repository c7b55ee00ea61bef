"""Variables: every value an agent may see, with its type, its one source and its permissions."""

from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import AfterValidator, Field

from weft.spec import keys
from weft.spec.part import Addressee, JsonMap, JsonValue, Name, Part, Text
from weft.spec.templates import read_foreign_placeholders
from weft.spec.triggers import Trigger
from weft.spec.type_field import ModelField, TypeField

RefreshStrategy: TypeAlias = Literal["once", "per_phase", "on_demand"]
WriteStrategy: TypeAlias = Literal["immediate", "on_phase_transition", "on_workflow_end"]
Merge: TypeAlias = Literal["append", "merge"]
FileFormat: TypeAlias = Literal["text", "json", "yaml"]
_DEFAULT = Field(default=None, description="The value when nothing is found.")


def _read_placeholders(value: JsonValue) -> JsonValue:
    """Read the placeholders of a query as authors of other systems write them."""
    match value:
        case str():
            return read_foreign_placeholders(value)
        case list():
            return [_read_placeholders(item) for item in value]
        case dict():
            return {key: _read_placeholders(item) for key, item in value.items()}
        case _:
            return value


#: A query or a body. It contains no literal braces, so `{{name}}` and `${name}` mean `{name}`.
_Template: TypeAlias = Annotated[JsonMap, AfterValidator(_read_placeholders)]


class StaticSource(Part):
    """A constant that ships with the workflow."""

    type: Literal["static"] = "static"
    value: JsonValue


class EnvironmentSource(Part):
    """An environment variable of the deployment; absent in production."""

    type: Literal["environment"] = "environment"
    env_var: Name
    default: JsonValue = _DEFAULT
    required: bool = Field(default=False, description="The run does not start without it.")


class DatabaseSource(Part):
    """A document, its fields, or a list of documents; read, never written."""

    type: Literal["database"] = "database"
    database: Name | None = Field(default=None, description="null takes the workspace's database.")
    collection: Name
    search_by: Name | None = Field(
        default=None, description="Find the document whose field of this name equals the run's."
    )
    query_template: _Template | None = Field(
        default=None, description="Find it by a query instead; `{name}` inserts a variable."
    )
    field: Name | None = Field(default=None, description="Take this field, as a dotted path.")
    fields: tuple[Name, ...] = Field(default=(), description="Take an object of these fields.")
    find: Literal["one", "many"] = Field(
        default="one",
        description="one: the document that was written last; many: a list, each document with "
        "what is taken of it.",
    )
    limit: int = Field(default=20, ge=1, le=1000, description="How many of many.")
    order: Name | None = Field(
        default=None,
        description="Field that many are sorted by, `-FIELD` for the greatest first; null: the "
        "last written first.",
    )
    refresh_strategy: RefreshStrategy = "once"
    default: JsonValue = _DEFAULT

    _limited = keys.allow_only_with("limit", "find", "many")
    _ordered = keys.allow_only_with("order", "find", "many")
    _one_search = keys.require_one(
        "search_by", "query_template", why="a document is found in one way"
    )
    _one_result = keys.allow_one("field", "fields")


class EntitySource(Part):
    """A document that the workflow reads and writes."""

    type: Literal["entity"] = "entity"
    database: Name | None = Field(default=None, description="null takes the workspace's database.")
    collection: Name
    search_by: Name
    document: dict[str, ModelField] = Field(
        default={}, alias="schema", description="The fields of the document and their types."
    )
    write_strategy: WriteStrategy = "immediate"
    on_error: Literal["fail", "warn"] = Field(
        default="fail",
        description="When the document cannot be written. fail: the run fails; warn: the error is "
        "recorded and the run continues.",
    )
    default: JsonValue = _DEFAULT


class ServiceAuth(Part):
    """Authentication at a service. The secret is named by its environment variable."""

    type: Literal["bearer", "basic", "header"]
    secret_env: Name = Field(description="Environment variable that holds the secret.")
    header: Name = Field(default="Authorization", description="The header, for type header.")

    _own_header = keys.allow_only_with("header", "type", "header", why="other types have their own")


class ServiceCache(Part):
    """How long an answer of a service is reused."""

    ttl_seconds: float = Field(gt=0)


class ServiceRetry(Part):
    """How often a failed call is tried again, and after how long."""

    attempts: int = Field(default=3, ge=1, le=10)
    backoff_seconds: float = Field(default=1.0, ge=0)


#: All methods of services but GET change something, so only tools call them.
Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
_WRITING: Final = get_args(Method)[1:]


class ExternalSource(Part):
    """The answer of an HTTP service: read with GET, or called by a tool with another method."""

    type: Literal["external"] = "external"
    service: Name = Field(description="What the service is called, for readers of runs.")
    operation: Name = Field(description="What it is asked for, for readers of runs.")
    url: Text = Field(
        description="`{name}` inserts a variable, encoded for an address; one at the beginning is "
        "the first part of the address as it is."
    )
    method: Method = Field(
        default="GET",
        description="Another than GET is sent only when a tool calls `refresh`.",
    )
    body: _Template | None = Field(
        default=None, description="Sent as JSON; `{name}` inserts a variable, alone with its type."
    )
    approval: Literal["never", "write"] = Field(
        default="write", description="write: a person must approve each call that is not GET."
    )
    for_: Addressee | None = Field(
        default=None,
        alias="for",
        description="Who approves, as with UI tools. null: the user whose run it is.",
    )
    auth: ServiceAuth | None = None
    cache: ServiceCache | None = None
    retry: ServiceRetry | None = None
    field: Name | None = Field(default=None, description="Take this dotted path of the answer.")
    timeout_seconds: float = Field(default=10.0, gt=0, le=300, description="For each attempt.")
    max_bytes: int = Field(default=1_000_000, ge=1, le=100_000_000)
    refresh_strategy: RefreshStrategy = "once"
    default: JsonValue = _DEFAULT

    _sent = keys.allow_only_with("body", "method", *_WRITING, why="GET has no body")
    _approved = keys.allow_only_with("approval", "method", *_WRITING, why="GET changes nothing")
    _unkept = keys.refuse_with("cache", "method", *_WRITING)
    _called = keys.refuse_with("refresh_strategy", "method", *_WRITING, why="only tools call it")


class ComputedSource(Part):
    """A value computed from other variables whenever one of them changes."""

    type: Literal["computed"] = "computed"
    computation: Text = Field(
        description="A condition over the inputs, or a pure function as `module:function`."
    )
    inputs: tuple[Name, ...]
    persist_to: Name | None = Field(
        default=None, description="Entity variable whose document keeps the value as well."
    )


class Transition(Part):
    """One allowed change of a state, and the event that triggers it."""

    from_: JsonValue = Field(alias="from")
    to: JsonValue
    trigger: Trigger | None = None


class DerivedSource(Part):
    """A value that events set; with transitions, a state machine."""

    type: Literal["derived"] = "derived"
    default: JsonValue = Field(default=None, description="The value at the start of a run.")
    triggers: tuple[Trigger, ...] = Field(default=(), description="Any of them may set it.")
    transitions: tuple[Transition, ...] = Field(
        default=(), description="If there are any, every other change is refused."
    )
    persist: bool = Field(default=False, description="Carry the value into the user's later runs.")


class FileSource(Part):
    """The content of a file inside the package or workspace."""

    type: Literal["file"] = "file"
    path: Name
    format: FileFormat = "text"
    default: JsonValue = _DEFAULT


Source: TypeAlias = Annotated[
    StaticSource
    | EnvironmentSource
    | DatabaseSource
    | EntitySource
    | ExternalSource
    | ComputedSource
    | DerivedSource
    | FileSource,
    Field(discriminator="type"),
]


def is_call(source: Source) -> bool:
    """Return whether a source is called by tools and never read: it changes something."""
    return isinstance(source, ExternalSource) and source.method != "GET"


class Variable(Part):
    """One declared value of the shared context."""

    type: TypeField
    description: str = ""
    source: Source
    readers: tuple[Name, ...] | None = Field(
        default=None, description="Agents that may see it; null means every agent."
    )
    writers: tuple[Name, ...] | None = Field(
        default=None,
        description="Agents and tools that may set it besides its triggers; null means all tools.",
    )
    routing: bool | None = Field(
        default=None,
        description="May be used in handoff conditions; null: environment and derived ones may.",
    )
    secret: bool = Field(
        default=False, description="A reference resolved by adapters; never shown or stored."
    )
    merge: Merge | None = Field(
        default=None,
        description="What counts when members of a group set it in parallel. append: what each "
        "has added to the list; merge: the keys each has set; null: the second is refused.",
    )
