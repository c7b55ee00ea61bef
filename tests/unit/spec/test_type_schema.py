"""Types as JSON Schema; that values and schemas agree is tested as a property."""

import json

import pytest

from weft.errors import ExpressionError
from weft.spec.type_meaning import json_schema
from weft.spec.type_parser import parse_type

MODELS = {
    "Item": {"name": parse_type("str"), "count": parse_type("int")},
    "Order": {
        "items": parse_type("list[Item]"),
        "note": parse_type("optional[str]"),
        "free": parse_type("any"),
    },
    "Node": {"next": parse_type("optional[Node]")},
    "Left": {"c": parse_type("Left | Right | int")},
    "Right": {"c": parse_type("Left | Right | int")},
}


def test_json_schema_of_every_form():
    assert json_schema(parse_type("any"), {}) == {
        "$schema": "https://json-schema.org/draft/2020-12/schema"
    }
    text = 'dict[list[optional[str]]] | literal["a", 1, true] | int | float | bool'
    assert json_schema(parse_type(text), {}) == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "anyOf": [
            {
                "type": "object",
                "additionalProperties": {
                    "type": "array",
                    "items": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
            },
            {"enum": ["a", 1, True]},
            {"type": "integer"},
            {"type": "number"},
            {"type": "boolean"},
        ],
    }


def test_json_schema_holds_the_models_that_are_reached_and_no_others():
    schema = json_schema(parse_type("optional[Order]"), MODELS)
    assert schema["anyOf"] == [{"$ref": "#/$defs/Order"}, {"type": "null"}]
    assert list(schema["$defs"]) == ["Item", "Order"]
    assert schema["$defs"]["Order"] == {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "free": {},
        },
        "required": ["items", "free"],
        "additionalProperties": False,
    }


def test_json_schema_of_a_recursive_model_is_finite_and_always_written_alike():
    schema = json_schema(parse_type("Left | Node"), MODELS)
    assert list(schema["$defs"]) == ["Left", "Node", "Right"]
    turned = dict(reversed(MODELS.items()))
    assert json.dumps(json_schema(parse_type("Left | Node"), turned)) == json.dumps(schema)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("list[Itm]", "the model Itm is not declared", "did you mean Item?"),
        ("Qqqq", "the model Qqqq is not declared", "declare it among the models"),
    ],
)
def test_json_schema_refuses_a_model_that_is_not_declared(text, message, hint):
    with pytest.raises(ExpressionError) as caught:
        json_schema(parse_type(text), MODELS)
    assert (str(caught.value), caught.value.hint) == (message, hint)
