"""Types in files: the object forms of older packages, and the pydantic field."""

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from support.cases import read_cases
from weft.errors import ExpressionError
from weft.spec.type_field import TypeField, read_type
from weft.spec.type_parser import parse_type
from weft.spec.types import (
    MAX_DIGITS,
    MAX_LENGTH,
    ListOf,
    LiteralOf,
    OptionalOf,
    Scalar,
    print_type,
)

CASES = read_cases(__file__)

STR = Scalar("str")


@pytest.mark.parametrize(("form", "written"), CASES["test_object_forms_of_older_packages"])
def test_object_forms_of_older_packages(form, written):
    assert print_type(read_type(form)) == written


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (5, "a type is written as text"),
        (["str"], "a type is written as text"),
        (None, "null is not a type on its own"),
        ({}, "an object that describes a type names it under the key type"),
        ({"type": 1}, "an object that describes a type names it under the key type"),
        ({"type": "strng"}, '"strng" is not a type'),
        ({"type": "str", "items": "int"}, "the key items does not belong to the type str"),
        ({"type": "list", "values": "int"}, "the key values does not belong to the type list"),
        (
            {"type": "literal", "values": ["a"], "enum": ["a"]},
            "the key enum does not belong to the type literal",
        ),
        ({"type": "list", "items": "strng"}, 'items: "strng" is not a type'),
        (
            {"type": "list", "items": {"type": "union", "options": ["str", "strng"]}},
            'items: options[1]: "strng" is not a type',
        ),
        ({"type": "list", "items": None}, "null is not a type on its own"),
        ({"type": "union", "variants": []}, "variants must be a list with at least one item"),
        ({"type": "union", "variants": "str"}, "variants must be a list with at least one item"),
        ({"type": "union", "variants": ["int", "int"]}, "duplicate int in the union"),
        ({"type": "literal", "values": ["a", "a"]}, 'duplicate "a" in the literal'),
        (
            {"type": "literal", "values": [1.5]},
            "a literal lists only text, whole numbers, true and false",
        ),
        (
            {"type": "literal", "values": [10**MAX_DIGITS]},
            f"a number in a literal has at most {MAX_DIGITS} digits",
        ),
        (
            {"type": "literal", "values": ["x" * MAX_LENGTH]},
            f"the type is longer than {MAX_LENGTH} characters",
        ),
    ],
)
def test_wrong_object_forms(form, message):
    with pytest.raises(ExpressionError) as caught:
        read_type(form)
    assert str(caught.value) == message


def test_object_forms_keep_the_offset_and_the_hint_of_the_inner_text():
    with pytest.raises(ExpressionError) as caught:
        read_type({"type": "list", "items": "int | strng"})
    assert (caught.value.offset, caught.value.hint) == (6, "did you mean str?")


def test_object_forms_are_limited_in_depth():
    form: object = "int"
    for _ in range(5000):
        form = {"type": "list", "items": form}
    with pytest.raises(ExpressionError, match="levels deep"):
        read_type(form)


class Field(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    type: TypeField


def test_a_pydantic_field_reads_text_and_writes_the_normal_form():
    field = Field.model_validate_json('{"type": "string | null"}')
    assert field.type == OptionalOf(STR)
    assert field.model_dump() == {"type": "optional[str]"}
    assert field.model_dump_json() == '{"type":"optional[str]"}'
    assert Field.model_validate(field.model_dump()) == field


def test_a_pydantic_field_takes_a_built_type_and_brings_it_to_the_normal_form():
    assert Field(type=ListOf(STR)).type == ListOf(STR)
    assert Field(type=OptionalOf(OptionalOf(STR))).type == OptionalOf(STR)
    with pytest.raises(ValidationError, match="duplicate"):
        Field(type=LiteralOf(("a", "a")))


@pytest.mark.parametrize(
    ("given", "message", "offset", "hint"),
    [
        ("list[strng]", '"strng" is not a type', 5, "did you mean str?"),
        ("{offset}", "expected a type, found {", 0, None),
        ('literal["{hint}" "{offset}"]', 'expected ] or a comma, found "{offset}"', 17, None),
        (5, "a type is written as text", 0, 'for example "list[str]"'),
    ],
)
def test_a_pydantic_field_reports_place_and_remedy(given, message, offset, hint):
    with pytest.raises(ValidationError) as caught:
        Field.model_validate({"type": given})
    (error,) = caught.value.errors()
    assert error["type"] == "type_language"
    assert error["loc"] == ("type",)
    assert error["msg"] == message
    assert (error["ctx"]["offset"], error["ctx"]["hint"]) == (offset, hint)


def test_a_pydantic_field_is_text_in_json_schema():
    for mode in ("validation", "serialization"):
        schema = Field.model_json_schema(mode=mode)["properties"]["type"]
        assert schema["type"] == "string"
        assert "list[T]" in schema["description"]
        for example in schema["examples"]:
            assert print_type(parse_type(example)) == example
