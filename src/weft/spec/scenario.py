"""Scenarios: how a package is tried. They are files beside it, and no part of what runs."""

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Discriminator, Field, StringConstraints, Tag

from weft.spec import keys
from weft.spec.part import Addressee, JsonMap, JsonValue, Name, Names, Part, Seconds, Words

#: In an expected route: any number of other turns, or none.
ANY_TURNS: Final = "..."

#: Who is asked: the user of the run, or an addressee.
ASKED: Final = r"^user$|^(user|role|group):\S"
_Asked: TypeAlias = Annotated[str, StringConstraints(pattern=ASKED, max_length=200)]

_FORMS: Final[dict[type, str]] = {
    str: "text", dict: "object", list: "list", tuple: "list", type(None): "null",
}  # fmt: skip


def _by_form(expected: str) -> Discriminator:
    """Return what chooses a member of a union by the form of the value."""

    def form(value: object) -> str | None:
        return _FORMS.get(value.__class__)

    message = f"expected {expected}"
    return Discriminator(form, custom_error_type="form", custom_error_message=message)


_Said: TypeAlias = Annotated[str, Tag("text")]
_Call: TypeAlias = Annotated[
    _Said | Annotated[dict[Name, JsonMap], Tag("object")],
    _by_form("text, or a tool with its arguments"),
]
Reply: TypeAlias = Annotated[
    _Said
    | Annotated[JsonMap, Tag("object")]
    | Annotated[tuple[_Call, ...], Tag("list")]
    | Annotated[None, Tag("null")],
    _by_form("text, an object, a list of tool calls, or null"),
]


class ScenarioStep(Part):
    """What a person does, or that time passes."""

    say: Words | None = Field(default=None, description="The user of the run says this.")
    answer: Name | None = Field(
        default=None, description="Answer the open request of this tool or approval."
    )
    value: JsonValue = Field(default=None, description="The answer; by default one that fits.")
    cancel: Name | None = Field(default=None, description="Close this request without an answer.")
    wait: Seconds | None = Field(default=None, description="So many seconds pass.")
    stop: Literal["now", "after_turn"] | None = Field(default=None, description="Stop the run.")
    as_: Addressee | None = Field(
        default=None, alias="as", description="Who does it; by default the user of the run."
    )
    refused: bool = Field(default=False, description="It must be refused.")

    _one = keys.require_one("say", "answer", "cancel", "wait", "stop")
    _value = keys.allow_only_with("value", "answer")


class Expected(Part):
    """What must have happened at the end; what is left out is not compared."""

    route: Names | None = Field(
        default=None,
        description='Agents in the order of their turns, or steps of a flow; "..." is any turns.',
    )
    variables: dict[Name, JsonValue] = Field(
        default={},
        description="Values; of a board, the newest artifact of each type. Objects may have more.",
    )
    requests: dict[Name, _Asked] | None = Field(
        default=None, description="Each tool or approval that has asked, and whom; user: the user."
    )
    shown: tuple[Words, ...] = Field(
        default=(), description="What the user was shown, in any case."
    )
    never_shown: tuple[Words, ...] = Field(default=(), description="What the user was not shown.")
    outcome: Literal["completed", "failed", "cancelled", "max_turns", "waiting"] | None = Field(
        default=None, description="How the run ends; by default it must not fail."
    )


class ScenarioCase(Part):
    """One run."""

    user: Name | None = Field(default=None, description="The user of the run.")
    message: Words | None = Field(default=None, description="The message that starts it.")
    input: JsonMap | None = Field(
        default=None,
        description="The form, body or document that starts it; of a board, artifacts by type.",
    )
    values: dict[Name, JsonValue] = Field(
        default={}, description="Values at the start, and those that services return."
    )
    replies: Annotated[
        Annotated[Literal["sample"], Tag("text")]
        | Annotated[dict[Name, tuple[Reply, ...]], Tag("object")],
        _by_form("sample, or the replies of each agent"),
    ] = Field(
        default="sample",
        description="What the models reply, by agent: text, an object (a structured reply), a list "
        "of tool calls, or null (the model fails). `sample` makes up valid replies.",
    )
    steps: tuple[ScenarioStep, ...] = Field(default=(), description="What people do, in order.")
    expect: Expected = Expected()
    then: "ScenarioCase | None" = Field(
        default=None, description="Another run after this one, with the same documents."
    )


class Scenario(ScenarioCase):
    """A file in `tests`: what starts a run, what people and models say, and what must follow."""

    description: str = ""
    documents: dict[Name, tuple[JsonMap, ...]] = Field(
        default={}, description="The documents that there are, by collection."
    )
    tools: dict[Name, Annotated[tuple[JsonValue, ...], Field(min_length=1)]] = Field(
        default={}, description="Results of tools that are not called; the last one comes again."
    )
