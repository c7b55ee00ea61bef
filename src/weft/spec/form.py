"""The form: a workflow described step by step by a person, from which a plan is made."""

import re
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import BeforeValidator, Field, StringConstraints, Tag
from pydantic_core import PydanticCustomError

from weft.spec import keys
from weft.spec.orchestrator import InitiatedBy
from weft.spec.part import TEXT_OR_OBJECT, Name, Part, Text, Words
from weft.spec.plan import PlannedField, PlannedStart, ScenarioStep, Several, Trigger
from weft.spec.scenario import ASKED
from weft.spec.type_field import TypeField

#: Where an outcome may lead besides steps.
END: Final = "end"
#: The outcome of an agent that asks the user back.
ASK_USER: Final = "ask_user"
#: The outcome of an agent that talks and has one way.
DONE: Final = "done"
StartWord: TypeAlias = Literal["chat", "form", "schedule", "webhook", "document"]
#: The trigger that each word for a start means.
TRIGGERS: Final[dict[StartWord, Trigger]] = {
    "chat": "chat",
    "form": "form_submit",
    "schedule": "schedule",
    "webhook": "webhook",
    "document": "database_condition",
}
INITIATED_BY: Final[dict[Trigger, InitiatedBy]] = {
    "chat": "user",
    "form_submit": "user",
    "schedule": "system",
    "database_condition": "system",
    "webhook": "external_event",
}


def _read_field(value: object) -> Any:  # noqa: ANN401 - as pydantic has it
    """Read a field: its name, `name: type`, or an object with the keys of a field."""
    if isinstance(value, str):
        name, colon, type_ = value.partition(":")
        return {"name": name.strip(), "type": type_.strip()} if colon else {"name": name}
    if isinstance(value, dict) and len(given := cast("dict[str, object]", value)) == 1:
        [(name, type_)] = given.items()
        return {"name": name, "type": type_}
    return cast("object", value)


def _check_person(value: object) -> object:
    if isinstance(value, str) and not re.search(ASKED, value):
        raise PydanticCustomError(
            "addressee", "not a person: write user, role:NAME, user:NAME or group:NAME"
        )
    return value


def _check_question(value: object) -> object:
    if isinstance(value, str):
        hint = "write question: {to: user, fields: [...]}"
        raise PydanticCustomError("question", "expected an object, found text", {"hint": hint})
    return value


#: Who is asked: the user of the run, or an addressee.
Person: TypeAlias = Annotated[
    str, StringConstraints(pattern=ASKED, max_length=200), BeforeValidator(_check_person)
]
FormField: TypeAlias = Annotated[
    PlannedField,
    BeforeValidator(_read_field, json_schema_input_type=Name | dict[Name, str] | PlannedField),
]


class FormStart(PlannedStart):
    """How a run starts, with its details."""

    fields: Several[FormField] = Field(
        default=(), description="What the form, the request or the document brings."
    )


class FormSource(Part):
    """Data that a workflow reads, or a service that it calls."""

    from_: Literal["database", "external", "file", "config"] = Field(alias="from")
    about: Text | None = Field(default=None, description="What it is.")
    collection: Name | None = None
    key: Name | None = Field(
        default=None, description="chat_id, user_id, app_id, or a value that a step writes."
    )
    shared: bool | None = Field(default=None, description="true: all documents, for everybody.")
    field: Name | None = None
    fields: Several[FormField] = ()
    type: TypeField | None = None
    url: Text | None = Field(
        default=None,
        description="Where a service is called, with POST, PUT, PATCH or DELETE before it if it "
        "changes something; of a file, its path.",
    )

    _taken = keys.allow_one("field", "fields")


class FormWatch(Part):
    """Words of the user that interrupt the work, wherever it is."""

    words: Several[Name]
    go_to: Name = Field(description="The step that takes over.")


class FormQuestion(Part):
    """What an agent must ask somebody before it decides."""

    to: Person = "user"
    fields: Annotated[Several[FormField], Field(min_length=1)]


class FormStep(Part):
    """A step: what an agent does, or what a person decides."""

    name: Name
    by: Literal["agent", "person"]
    who: Person | None = Field(
        default=None, description="Of a person: role:NAME, user:NAME, group:NAME, or user."
    )
    task: Words | None = Field(default=None, description="What is to be done.")
    asks_back: bool = Field(default=False, description="The agent may ask the user, and waits.")
    question: Annotated[FormQuestion | None, BeforeValidator(_check_question)] = Field(
        default=None, description="What the agent asks somebody before it decides."
    )
    reads: Several[Name] = Field(default=(), description="Values that it works with.")
    writes: Several[FormField] = Field(
        default=(), description="Values that it sets; of a person, what is filled in."
    )
    shows: Several[Name] = Field(default=(), description="Values that the person is shown.")
    tell: Words | None = Field(default=None, description="What the user of the run reads.")
    outcomes: dict[Name, Several[Name]] = Field(
        default={},
        description="What it can come to, and the step that follows, `user` or `end`; several "
        "steps work in parallel. A condition such as `amount > 500` also counts.",
    )

    _person = keys.allow_only_with("who", "by", "person", why="an agent has no addressee")
    _named = keys.require_with("who", "by", "person")
    _agent = keys.require_with("task", "by", "agent")
    _asks = keys.allow_only_with("asks_back", "by", "agent", why="a person is not a model")
    _question = keys.allow_only_with("question", "by", "agent", why='a person has "writes"')
    _shows = keys.allow_only_with("shows", "by", "person", why='an agent has "reads"')


class FormScenario(Part):
    """A way to try the workflow."""

    says: Several[ScenarioStep] = Field(
        default=(), description="What the user says, or keys of tests/*.yaml."
    )
    takes: dict[Name, Several[Name]] = Field(
        default={}, description="By step: what it comes to, in the order of its turns."
    )
    expect: Several[ScenarioStep] = ()


class Form(Part):
    """A workflow, as its author describes it."""

    workflow: Name = Field(description="PascalCase: the name of the package.")
    description: Words
    greeting: Words | None = Field(default=None, description="What the user reads first.")
    start: Annotated[
        Annotated[StartWord, Tag("text")] | Annotated[FormStart, Tag("object")], TEXT_OR_OBJECT
    ] = "chat"
    record: Name | None = Field(
        default=None, description="The collection in which the values of a case are kept."
    )
    key: Name | None = Field(
        default=None, description="How the record of a case is found; default: chat_id."
    )
    data: dict[Name, FormSource] = Field(default={}, description="By name: what is read.")
    never: Several[Text] = Field(default=(), description="What must never happen.")
    watch: FormWatch | None = None
    steps: Annotated[tuple[FormStep, ...], Field(min_length=1)]
    scenarios: tuple[FormScenario, ...] = ()

    _keyed = keys.allow_only_with("key", "record")
