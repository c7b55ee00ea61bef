"""Schemas in the form providers enforce, without losing what they say."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from support.schema_play import schemas
from weft.adapters.models.sample_values import sample_value
from weft.adapters.models.strict_schema import strict_schema
from weft.spec.type_meaning import json_schema
from weft.spec.type_parser import parse_type
from weft.spec.types import Ref


def strict(**fields: str) -> tuple[dict[str, Any], bool]:
    models = {"M": {name: parse_type(text) for name, text in fields.items()}}
    return strict_schema(json_schema(Ref("M"), models))


def test_everything_is_required_and_closed():
    schema, enforced = strict(a="str", b="optional[int]", c="list[M]")
    assert enforced
    assert schema["required"] == ["a", "b", "c"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["c"]["items"] == {"$ref": "#/$defs/M"}
    assert schema["$defs"]["M"]["required"] == ["a", "b", "c"]
    assert "$schema" not in schema


@pytest.mark.parametrize(
    ("literal", "types"),
    [
        ("literal['a', 'b']", "string"),
        ("literal[1, 2]", "integer"),
        ("literal['a', 1]", ["integer", "string"]),
        ("literal[true]", "boolean"),
    ],
)
def test_literals_name_their_type(literal: str, types: object):
    schema, enforced = strict(a=literal)
    assert enforced
    assert schema["properties"]["a"]["type"] == types


@pytest.mark.parametrize("type_", ["any", "dict[str]", "list[any]", "str | any"])
def test_what_strict_form_cannot_say_is_sent_as_it_is(type_: str):
    schema, enforced = strict(a=type_)
    assert not enforced
    assert schema["type"] == "object"
    assert "$schema" not in schema
    assert {"$schema", *schema["properties"]["a"]} >= {*json_schema(parse_type(type_), {})}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"type": "object"},
        {"type": "object", "properties": {}, "additionalProperties": True},
        {"enum": [[1]]},
        {"$ref": "#/$defs/Gone"},
        {"type": "array", "items": {"type": "string"}},
        {"anyOf": [{"type": "object", "properties": {}}, {"type": "null"}]},
    ],
)
def test_a_root_that_is_no_closed_object_is_not_enforced(schema: dict[str, Any]):
    sent, enforced = strict_schema(schema)
    assert not enforced
    assert sent


def test_notes_are_left_out_and_constants_stay():
    inner = {"const": None, "type": "null", "title": "A", "default": None, "description": "d"}
    schema, enforced = strict_schema({"type": "object", "properties": {"a": inner}})
    assert enforced
    assert schema["properties"]["a"] == {"const": None, "type": "null", "description": "d"}


@settings(max_examples=40, deadline=None)
@given(schemas(), st.integers())
def test_what_fits_the_strict_schema_fits_the_plain_one(schema: dict[str, Any], seed: int):
    """The strict form only ever asks for more."""
    closed, _ = strict_schema(schema)
    Draft202012Validator.check_schema(closed)
    value = sample_value(closed, Random(seed))
    Draft202012Validator(closed).validate(value)
    Draft202012Validator(schema).validate(value)
