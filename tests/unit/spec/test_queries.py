"""Queries: what may be written, what it means, and which documents fit."""

import pytest

from support.cases import read_cases
from weft.errors import ExpressionError
from weft.spec.queries import (
    MAX_DEPTH,
    AllOf,
    AnyOf,
    FieldTest,
    equalities,
    is_field,
    matches_query,
    parse_query,
)

CASES = read_cases(__file__)


def test_a_query_is_tests_that_all_must_hold():
    query = {"status": "open", "total": {"$gt": 1, "$lte": 5}, "$or": [{"vip": True}, {}]}
    assert parse_query(query) == AllOf(
        (
            FieldTest("status", "$eq", "open"),
            FieldTest("total", "$gt", 1),
            FieldTest("total", "$lte", 5),
            AnyOf((AllOf((FieldTest("vip", "$eq", True),)), AllOf(()))),
        )
    )
    assert parse_query({"$and": [{"a": 1}]}) == AllOf(
        (AllOf((AllOf((FieldTest("a", "$eq", 1),)),)),)
    )
    assert parse_query({"a": {"b": 1}}) == AllOf((FieldTest("a", "$eq", {"b": 1}),))
    assert parse_query({"a": {}}) == AllOf((FieldTest("a", "$eq", {}),))


@pytest.mark.parametrize(("query", "message", "hint"), CASES["test_errors_are_reported"])
def test_errors_are_reported(query, message, hint):
    with pytest.raises(ExpressionError) as caught:
        parse_query(query)
    assert str(caught.value) == message
    assert (caught.value.hint or "").startswith(hint or "")


def test_a_query_has_a_depth():
    query: dict[str, object] = {"a": 1}
    for _ in range(MAX_DEPTH):
        query = {"$and": [query]}
    assert matches_query(parse_query(query), {"a": 1})
    with pytest.raises(ExpressionError, match="more than 8 levels deep"):
        parse_query({"$or": [query]})


def test_a_new_document_has_what_the_query_says():
    assert equalities({"a": 1, "b.c": {"$eq": [2]}}) == {"a": 1, "b.c": [2]}


@pytest.mark.parametrize("query", [{"a": {"$gt": 1}}, {"$and": [{"a": 1}]}])
def test_a_new_document_needs_equalities(query):
    with pytest.raises(ExpressionError, match="written by fields that equal something"):
        equalities(query)


def test_an_empty_query_names_no_document_to_write():
    with pytest.raises(ExpressionError, match="would fit any document") as caught:
        equalities({})
    assert caught.value.hint == 'write {"customer_id": "{customer_id}"}'


@pytest.mark.parametrize(
    ("name", "expected"), [("a.b c", True), ("ä", True), ("a.", False), ("$a", False)]
)
def test_fields(name, expected):
    assert is_field(name) is expected


DOCUMENT = {
    "n": 5,
    "half": 0.5,
    "text": "b",
    "yes": True,
    "nothing": None,
    "tags": ["a", "b"],
    "numbers": [1, 10],
    "empty": [],
    "address": {"city": "Rome", "zip": "1"},
    "lines": [{"sku": "x", "count": 1}, {"sku": "y"}, 7, [{"sku": "z"}]],
    "table": [[1, 2], [3]],
}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, True),
        ({"n": 5}, True),
        ({"n": 5.0}, True),
        ({"n": "5"}, False),
        ({"n": True}, False),
        ({"yes": True}, True),
        ({"yes": 1}, False),
        ({"text": "b"}, True),
        ({"text": "B"}, False),
        ({"nothing": None}, True),
        ({"other": None}, True),
        ({"n": None}, False),
        ({"n.deeper": None}, True),
        ({"tags": "a"}, True),
        ({"tags": ["a", "b"]}, True),
        ({"tags": ["b", "a"]}, False),
        ({"tags": ["a"]}, False),
        ({"tags": "c"}, False),
        ({"tags": None}, False),
        ({"empty": []}, True),
        ({"empty": None}, False),
        ({"empty.x": None}, False),
        ({"table": [3]}, True),
        ({"table": 3}, False),
        ({"table.1": 3}, True),
        ({"table.0.1": 2}, True),
        ({"table.2": None}, False),
        ({"table.01": [3]}, False),
        ({"address": {"city": "Rome", "zip": "1"}}, True),
        ({"address": {"zip": "1", "city": "Rome"}}, False),
        ({"address": {"city": "Rome"}}, False),
        ({"address": {"city": "Oslo", "zip": "1"}}, False),
        ({"address.city": "Rome"}, True),
        ({"address.street": None}, True),
        ({"lines.sku": "y"}, True),
        ({"lines.sku": "z"}, False),
        ({"lines.1.sku": "y"}, True),
        ({"lines.0.sku": "y"}, False),
        ({"lines.count": None}, True),
        ({"numbers.count": None}, False),
        ({"n": {"$ne": 5}}, False),
        ({"n": {"$ne": "5"}}, True),
        ({"other": {"$ne": 5}}, True),
        ({"other": {"$ne": None}}, False),
        ({"tags": {"$ne": "a"}}, False),
        ({"n": {"$in": [1, 5]}}, True),
        ({"n": {"$in": []}}, False),
        ({"other": {"$in": [None]}}, True),
        ({"tags": {"$in": ["z", "b"]}}, True),
        ({"n": {"$gt": 4}}, True),
        ({"n": {"$gt": 5}}, False),
        ({"n": {"$gte": 5}}, True),
        ({"n": {"$lt": 5.5}}, True),
        ({"n": {"$lt": 5}}, False),
        ({"n": {"$lte": 5}}, True),
        ({"n": {"$lte": 4}}, False),
        ({"n": {"$gt": "4"}}, False),
        ({"yes": {"$gte": 0}}, False),
        ({"nothing": {"$lte": 9}}, False),
        ({"other": {"$lt": 9}}, False),
        ({"text": {"$gt": "a"}}, True),
        ({"half": {"$gt": 0}}, True),
        ({"numbers": {"$gt": 5}}, True),
        ({"numbers": {"$gt": 5, "$lt": 2}}, True),
        ({"n": {"$exists": True}}, True),
        ({"n": {"$exists": False}}, False),
        ({"nothing": {"$exists": True}}, True),
        ({"other": {"$exists": False}}, True),
        ({"lines.count": {"$exists": True}}, True),
        ({"numbers.count": {"$exists": False}}, True),
        ({"$or": [{"n": 1}, {"text": "b"}]}, True),
        ({"$or": [{"n": 1}, {"text": "c"}]}, False),
        ({"$and": [{"n": 5}, {"text": "c"}]}, False),
        ({"n": 5, "text": "c"}, False),
    ],
)
def test_valid_values(query, expected):
    assert matches_query(parse_query(query), DOCUMENT) is expected
