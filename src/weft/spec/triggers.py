"""Triggers: the events that set a derived variable. Every one is decidable from the journal."""

from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    StringConstraints,
    Tag,
    model_serializer,
)
from pydantic_core import CoreSchema, PydanticCustomError

from weft.spec import keys
from weft.spec.part import FunctionRef, JsonMap, JsonValue, Name, Part


def _not_blank(value: object) -> object:
    """Refuse a blank text, which would match everything or nothing; the pattern is for editors."""
    if isinstance(value, str) and not value.strip():
        raise PydanticCustomError(
            "blank_match", "the text to look for is blank: write what must be said"
        )
    return value


_Sought: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"\S", max_length=200_000), BeforeValidator(_not_blank)
]


class Equals(Part):
    """The whole text, ignoring case and surrounding blanks."""

    equals: _Sought


class Exact(Part):
    """The whole text, compared exactly."""

    exact: _Sought


class Contains(Part):
    """A part of the text, in any case."""

    contains: _Sought


class Regex(Part):
    """A regular expression that is found somewhere in the text."""

    regex: _Sought


_MODES = ("equals", "exact", "contains", "regex")


def _mode(value: object) -> str | None:
    """Return the only key of a match; None for no key or several, which refuses the value."""
    if isinstance(value, Part):
        keys = set(type(value).model_fields)
    else:
        keys = set(cast("dict[str, object]", value)) if isinstance(value, dict) else set[str]()
    named = [mode for mode in _MODES if mode in keys]
    return named[0] if len(named) == 1 else None


Match: TypeAlias = Annotated[
    Annotated[Equals, Tag("equals")]
    | Annotated[Exact, Tag("exact")]
    | Annotated[Contains, Tag("contains")]
    | Annotated[Regex, Tag("regex")],
    Discriminator(
        _mode,
        custom_error_type="match_mode",
        custom_error_message=(
            "a match is an object with exactly one of equals, exact, contains, regex, "
            'such as {"equals": "DONE"}'
        ),
    ),
]

_VALUE = Field(default=True, description="What the variable is set to.")


class AgentTextTrigger(Part):
    """Fires when the named agent ends its turn with a reply that matches.

    Text beside a tool call does not count, because the turn continues.
    """

    type: Literal["agent_text"] = "agent_text"
    agent: Name
    match: Match
    value: JsonValue = _VALUE
    ui_hidden: bool = Field(default=False, description="The matched message is not shown to users.")


class UserTextTrigger(Part):
    """Fires when the user says a text that matches."""

    type: Literal["user_text"] = "user_text"
    match: Match
    value: JsonValue = _VALUE
    ui_hidden: bool = Field(default=False, description="The matched message is not shown to users.")


class UiResponseTrigger(Part):
    """Takes the variable's value from a person's answer to a UI tool."""

    type: Literal["ui_response"] = "ui_response"
    tool: Name
    response_key: Name = Field(description="Dotted path into the answer.")


class ToolCallTrigger(Part):
    """Fires when a tool is called."""

    type: Literal["tool_call"] = "tool_call"
    tool: Name
    argument: Name | None = Field(
        default=None, description="Take the value from this argument instead of `value`."
    )
    value: JsonValue = _VALUE


class ToolResponseTrigger(Part):
    """Fires when a tool has returned."""

    type: Literal["tool_response"] = "tool_response"
    tool: Name
    response_key: Name | None = Field(
        default=None, description="Take the value from this dotted path of the result."
    )
    argument: Name | None = Field(
        default=None, description="Take the value from this argument of the call."
    )
    value: JsonValue = _VALUE

    _one_value = keys.allow_one("response_key", "argument")


class HandoffTrigger(Part):
    """Fires when one agent hands off to another; null means any."""

    type: Literal["handoff"] = "handoff"
    source_agent: Name | None = None
    target_agent: Name | None = None
    value: JsonValue = _VALUE


LifecyclePoint: TypeAlias = Literal["before_chat", "after_chat", "before_agent", "after_agent"]


class LifecycleTrigger(Part):
    """Fires at the start or end of the run or of an agent's turn."""

    type: Literal["lifecycle"] = "lifecycle"
    event: LifecyclePoint
    agent: Name | None = Field(default=None, description="Only at this agent's turns.")
    value: JsonValue = _VALUE


class AgentTurnCountTrigger(Part):
    """Fires when an agent has taken its n-th turn."""

    type: Literal["agent_turn_count"] = "agent_turn_count"
    agent: Name
    count: int = Field(ge=1)
    value: JsonValue = _VALUE


class TimerExpiredTrigger(Part):
    """Fires a while after the run started."""

    type: Literal["timer_expired"] = "timer_expired"
    after_seconds: float = Field(gt=0)
    value: JsonValue = _VALUE


class FunctionTrigger(Part):
    """Calls an approved, pure function of the package after each turn to get the value."""

    type: Literal["function"] = "function"
    function: FunctionRef


#: Why a tool failed. refused: it declines; retry: its arguments do not fit.
ToolFault: TypeAlias = Literal["error", "timeout", "refused", "retry", "unknown"]


class ToolFailedTrigger(Part):
    """Fires when a tool has failed."""

    type: Literal["tool_failed"] = "tool_failed"
    tool: Name | None = Field(default=None, description="null means any tool.")
    kind: ToolFault | None = Field(default=None, description="Only for failures of this kind.")
    response_key: Literal["kind", "message"] | None = Field(
        default=None, description="Take the kind or the message of the failure as the value."
    )
    value: JsonValue = _VALUE


class ModelFailedTrigger(Part):
    """Fires when the model of an agent has given no usable answer, after all attempts."""

    type: Literal["model_failed"] = "model_failed"
    agent: Name | None = Field(default=None, description="null means any agent.")
    response_key: Literal["message"] | None = Field(
        default=None, description="Take the message of the failure as the value."
    )
    value: JsonValue = _VALUE


#: The prefix of trigger types that plug-ins add.
CUSTOM: Final = "x:"


class CustomTrigger(Part):
    """A trigger of a plug-in: `{"type": "x:NAME", ...}`; its class declares the other fields."""

    type: Literal["x"] = "x"
    name: Name
    settings: JsonMap = Field(default={})

    @model_serializer
    def _flat(self) -> dict[str, Any]:
        return {"type": f"{CUSTOM}{self.name}", **self.settings}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe the written form for editors."""
        del schema, handler
        kind = {"type": "string", "pattern": f"^{CUSTOM}."}
        return {"type": "object", "properties": {"type": kind}, "required": ["type"]}


def _custom(value: object) -> object:
    """Split a trigger of a plug-in into its name and its settings."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    kind = fields.get("type")
    if not isinstance(kind, str) or not kind.startswith(CUSTOM):
        return cast("object", value)
    settings = {key: value for key, value in fields.items() if key != "type"}
    return {"type": "x", "name": kind.removeprefix(CUSTOM), "settings": settings}


#: Triggers whose value always comes with the event.
BringsValue: TypeAlias = UiResponseTrigger | FunctionTrigger | CustomTrigger

Trigger: TypeAlias = Annotated[
    AgentTextTrigger
    | UserTextTrigger
    | UiResponseTrigger
    | ToolCallTrigger
    | ToolResponseTrigger
    | HandoffTrigger
    | LifecycleTrigger
    | AgentTurnCountTrigger
    | TimerExpiredTrigger
    | FunctionTrigger
    | ToolFailedTrigger
    | ModelFailedTrigger
    | CustomTrigger,
    Field(discriminator="type"),
    BeforeValidator(_custom),
]
