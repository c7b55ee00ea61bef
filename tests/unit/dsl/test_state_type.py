"""The class of a state becomes variables, and the classes inside of it models."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from itertools import count
from typing import Annotated, Any, Literal, NamedTuple, Optional
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel
from typing_extensions import TypedDict

from weft.dsl.state_type import Append, Merge, StateTypes, require_class
from weft.errors import CheckFailed
from weft.spec.types import print_type


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(Enum):
    NONE = None
    HALF = 0.5
    WORD = "word"


class Inner(BaseModel):
    """An inner thing."""

    name: str = Field(description="What it is called.")
    of: "Inner | None" = None


class Pair(NamedTuple):
    left: int
    right: str


class Typed(TypedDict):
    size: int


class Names(RootModel[list[str]]): ...


class Box(RootModel["list[Box]"]): ...


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"


def typed(annotation: Any) -> str:
    class State(BaseModel):
        field: annotation

    return print_type(StateTypes([State]).variables(State)["field"].type)


@pytest.mark.parametrize(
    ("annotation", "type_"),
    [
        (str, "str"),
        (int, "int"),
        (float, "float"),
        (bool, "bool"),
        (Any, "any"),
        (object, "any"),
        (bytes, "str"),
        (datetime, "str"),
        (date, "str"),
        (timedelta, "str"),
        (UUID, "str"),
        (Decimal, "float | str"),
        (None, "any"),
        (Optional[int], "optional[int]"),  # noqa: UP045 - as people write it
        (int | str, "int | str"),
        (int | str | None, "optional[int | str]"),
        (list, "list"),
        (list[int], "list[int]"),
        (set[str], "list[str]"),
        (tuple[int, ...], "list[int]"),
        (tuple[int, str], "list[int | str]"),
        (dict, "dict"),
        (dict[str, int], "dict[int]"),
        (dict[str, Any], "dict"),
        (dict[str, list[Inner]], "dict[list[Inner]]"),
        (Literal["a", 3], 'literal["a", 3]'),
        (Literal["a"] | None, 'optional[literal["a"]]'),
        (Colour, 'literal["red", "blue"]'),
        (Level, "literal[1, 2]"),
        (Mixed, 'optional[literal["word"] | float]'),
        (Inner, "Inner"),
        (Inner | None, "optional[Inner]"),
        (Pair, "list[int | str]"),
        (Typed, "Typed"),
        (Names, "list[str]"),
        (Box, "list[list]"),
        (Annotated[Cat | Dog, Field(discriminator="kind")], "Cat | Dog"),
        (Annotated[str, Field(min_length=3)], "str"),
        (list[int | None], "list[optional[int]]"),
    ],
)
def test_every_annotation_has_a_type(annotation, type_):
    assert typed(annotation) in (type_, type_.replace("list[list]", "list"))


class Defaults(BaseModel):
    plain: int = 3
    made: list[str] = Field(default_factory=lambda: ["a"])
    colour: Colour = Colour.BLUE
    inner: Inner = Inner(name="x")
    nothing: str | None = None
    needed: str = Field(description="Given at the start.")
    follows: str = Field(default_factory=lambda data: data["needed"])


def test_defaults_are_what_a_run_begins_with():
    variables = StateTypes([Defaults]).variables(Defaults)
    assert {name: variable.source.default for name, variable in variables.items()} == {
        "plain": 3,
        "made": ["a"],
        "colour": "blue",
        "inner": {"name": "x", "of": None},
        "nothing": None,
        "needed": None,
        "follows": None,
    }
    assert {variable.source.type for variable in variables.values()} == {"derived"}
    assert variables["needed"].description == "Given at the start."


def test_reducers_are_merges():
    class State(BaseModel):
        notes: Annotated[list[str], Append] = []
        marks: Annotated[dict[str, int], Merge] = {}
        other: list[str] = []

    variables = StateTypes([State]).variables(State)
    assert [variable.merge for variable in variables.values()] == ["append", "merge", None]


def test_classes_inside_are_models_each_once():
    class State(BaseModel):
        inner: Inner
        box: dict[str, Typed]

    types = StateTypes([State, Inner])
    types.variables(State)
    assert types.name(Inner) == "Inner"
    models = list(types.models())
    assert [model.name for model in models] == ["Inner", "Typed"]
    assert models[0].description == "An inner thing."
    assert models[0].fields["name"].description == "What it is called."
    assert print_type(models[0].fields["of"].type) == "optional[Inner]"


def test_names_of_models_are_written_as_types_need_them():
    def make() -> type[BaseModel]:
        class Inner(BaseModel):
            size: int

        return Inner

    class my_thing(BaseModel):  # noqa: N801 - as some write it
        size: int

    class State(BaseModel):
        first: Inner
        second: make()
        third: my_thing

    types = StateTypes([State])
    types.variables(State)
    names = [model.name for model in types.models()]
    assert len(set(names)) == 3
    assert names[2] == "MyThing"
    assert all(name.isidentifier() and name[0].isupper() for name in names)


def test_a_state_that_holds_itself_is_a_model():
    class Node(BaseModel):
        next: "Node | None" = None

    types = StateTypes([Node])
    assert print_type(types.variables(Node)["next"].type) == "optional[Node]"
    assert [model.name for model in types.models()] == ["Node"]


class Callback(BaseModel):
    call: Callable[[], int]


numbers = count()


class Counting(BaseModel):
    number: int = Field(default_factory=lambda: next(numbers))


class Odd(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    thing: Any = object()


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (Callback, "cannot be written as JSON"),
        (Counting, "the default of number is another one each time"),
        (Odd, "the default of thing cannot be written as JSON"),
    ],
)
def test_unstorable_values_are_refused(state, told):
    with pytest.raises(CheckFailed, match=told) as raised:
        StateTypes([state]).variables(state)
    assert raised.value.findings[0].code == "FLOW034"


@pytest.mark.parametrize("value", [dict, 3, "Draft", Inner(name="x")])
def test_a_state_is_a_class_of_pydantic(value):
    with pytest.raises(CheckFailed, match=r"the state is"):
        require_class(value, "the state")
