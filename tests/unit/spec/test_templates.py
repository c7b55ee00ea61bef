import pytest

from weft.spec.templates import (
    Reference,
    parse_template,
    read_foreign_placeholders,
    references,
)
from weft.spec.variables import DatabaseSource


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("plain", ("plain",)),
        ("{name}", (Reference("name", 1),)),
        ("Hello {name}!", ("Hello ", Reference("name", 7), "!")),
        ("{a}{b}", (Reference("a", 1), Reference("b", 4))),
        ("{{name}}", ("{name}",)),
        ("see {{a}} and {b}", ("see {a} and ", Reference("b", 15))),
        ("{{{a}}}", ("{{a}}",)),
        ("{{a}", ("{", Reference("a", 2))),
        ("{a}}", (Reference("a", 1), "}")),
        ("${a}", ("$", Reference("a", 2))),
        ('{"a": 1, "b": {"c": []}}', ('{"a": 1, "b": {"c": []}}',)),
        ('{"domain": {a}}', ('{"domain": ', Reference("a", 12), "}")),
        ("{ a } {1a} {a.b} {} {a-b}", ("{ a } {1a} {a.b} {} {a-b}",)),
        ("{é}", ("{é}",)),
    ],
)
def test_parts_of_a_template(text, parts):
    assert parse_template(text) == parts


def test_references_come_in_order_with_the_place_of_the_name():
    text = "{b} {{x}} {a} {b}"
    assert references(text) == (Reference("b", 1), Reference("a", 11), Reference("b", 15))
    assert all(text[found.offset :].startswith(found.name) for found in references(text))


def test_many_escapes_take_linear_time():
    text = "{{a}}" * 40_000
    assert parse_template(text) == ("{a}" * 40_000,)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("{{user_id}}", "{user_id}"),
        ("${user_id}", "{user_id}"),
        ("a {{ user_id }} b ${ x }", "a {user_id} b {x}"),
        ("{user_id} $5 {} {{}} ${}", "{user_id} $5 {} {{}} ${}"),
    ],
)
def test_placeholders_of_other_languages_are_read(text, read):
    assert read_foreign_placeholders(text) == read


def test_queries_read_placeholders_of_other_languages_at_any_depth():
    query = {"a": ["{{x}}", 3, None], "b": {"$gt": "${y}"}}
    source = DatabaseSource(collection="C", query_template=query)
    assert source.query_template == {"a": ["{x}", 3, None], "b": {"$gt": "{y}"}}
