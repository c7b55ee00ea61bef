"""Schemas in the form providers enforce, without losing what they say."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from support.cases import read_cases
from support.effort import TIMES
from support.schema_play import schemas
from weft.adapters.models.sample_values import sample_value
from weft.adapters.models.strict_schema import strict_schema
from weft.spec.type_meaning import json_schema
from weft.spec.type_parser import parse_type
from weft.spec.types import Ref

CASES = read_cases(__file__)


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
def test_schema_without_a_strict_form_is_sent_unchanged(type_: str):
    schema, enforced = strict(a=type_)
    assert not enforced
    assert schema["type"] == "object"
    assert "$schema" not in schema
    assert {"$schema", *schema["properties"]["a"]} >= {*json_schema(parse_type(type_), {})}


@pytest.mark.parametrize("schema", CASES["test_root_that_is_not_a_closed_object_is_not_enforced"])
def test_root_that_is_not_a_closed_object_is_not_enforced(schema: dict[str, Any]):
    sent, enforced = strict_schema(schema)
    assert not enforced
    assert sent


def test_notes_are_left_out_and_constants_stay():
    inner = {"const": None, "type": "null", "title": "A", "default": None, "description": "d"}
    schema, enforced = strict_schema({"type": "object", "properties": {"a": inner}})
    assert enforced
    assert schema["properties"]["a"] == {"const": None, "type": "null", "description": "d"}


@settings(max_examples=20 * TIMES, deadline=None)
@given(schemas(), st.integers())
def test_strict_schema_accepts_no_more_than_the_plain_one(schema: dict[str, Any], seed: int):
    """The strict form only ever asks for more."""
    closed, _ = strict_schema(schema)
    Draft202012Validator.check_schema(closed)
    value = sample_value(closed, Random(seed))
    Draft202012Validator(closed).validate(value)
    Draft202012Validator(schema).validate(value)
