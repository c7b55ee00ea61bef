import json

import pytest

from support.cases import read_cases
from weft.packages.text.index import MAX_DEPTH, MAX_ERRORS, MAX_NODES, line_column
from weft.packages.text.json_text import load, parse

CASES = read_cases(__file__)


def faults(text):
    """Every fault as code, line, column and message."""
    return [
        (fault.code, *line_column(text, fault.start), fault.message) for fault in load(text).errors
    ]


def only(text):
    (fault,) = faults(text)
    return fault


@pytest.mark.parametrize("text", CASES["test_valid_text_reads_the_same_both_ways"])
def test_valid_text_reads_the_same_both_ways(text):
    expected = json.loads(text)
    assert load(text).data == parse(text).data == expected
    assert load(text).errors == parse(text).errors == ()


def test_faultless_text_takes_the_quick_way_without_an_index():
    assert load('{"a": 1}').root is None
    assert parse('{"a": 1}').root is not None


@pytest.mark.parametrize(
    ("text", "line", "column", "message"), CASES["test_a_fault_that_ends_reading"]
)
def test_a_fault_that_ends_reading(text, line, column, message):
    assert only(text) == ("SCHEMA002", line, column, message)
    assert load(text).data is None


@pytest.mark.parametrize(
    ("text", "line", "column", "message"), CASES["test_reading_continues_after_a_fault"]
)
def test_reading_continues_after_a_fault(text, line, column, message):
    assert only(text) == ("SCHEMA002", line, column, message)
    assert load(text).data is None


def test_several_faults_are_found_in_one_look():
    text = "{\n  \"a\": True\n  b: 'x',\n}"
    assert [fault[:3] for fault in faults(text)] == [
        ("SCHEMA002", 2, 8),
        ("SCHEMA002", 2, 12),
        ("SCHEMA002", 3, 3),
        ("SCHEMA002", 3, 6),
        ("SCHEMA006", 3, 9),
    ]


def test_hints_say_what_to_write():
    (fault,) = load("[None]").errors
    assert fault.hint == ("write null",)
    assert fault.length == 4


def test_a_bracket_left_open_is_named():
    (fault,) = load('{"a": [1,\n 2').errors
    assert fault.cause == ("'[' was opened on line 1, column 7",)


def test_the_list_of_faults_is_bounded():
    found = load("[" + "x," * 1000 + "1]").errors
    assert len(found) == MAX_ERRORS + 1
    assert found[-1].message == "the file has more errors than are listed"


def test_every_duplicate_key_is_reported_with_both_places():
    text = '{"a": 1,\n "b": {"c": 1, "c": 2},\n "a": 3, "a": 4}'
    found = load(text).errors
    assert [(p.code, *line_column(text, p.start), p.length) for p in found] == [
        ("SCHEMA003", 2, 16, 3),
        ("SCHEMA003", 3, 2, 3),
        ("SCHEMA003", 3, 10, 3),
    ]
    assert found[0].cause == ("the first one is on line 2, column 8",)
    assert found[1].cause == ("the first one is on line 1, column 2",)
    assert load(text).data is None


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("[1, // why\n2]", 5),
        ("/* head */ [1, 2]", 1),
        ("[1, 2,]", 6),
        ("[1, 2 /* a\n b */ , ]", 7),
        ("[1,2,/* x */]", 6),
        ("[[1,2,],// x\n]", 6),
    ],
)
def test_comments_and_trailing_commas_are_one_warning(text, column):
    parsed = load(text)
    assert only(text)[:3] == ("SCHEMA006", 1, column)
    assert parsed.data in ([1, 2], [[1, 2]])


def test_a_comment_must_be_closed():
    assert only("[1, /* 2]") == ("SCHEMA002", 1, 5, "this comment is not closed")


def test_slashes_inside_text_are_not_a_comment():
    text = '{"url": "a//b /* c", "u": "\\u00e9"}'
    assert load(text).errors == parse(text).errors == ()


def nested(depth):
    return "[" * depth + "]" * depth


def test_depth_is_limited():
    assert load(nested(MAX_DEPTH)).errors == ()
    assert only(nested(MAX_DEPTH + 1))[:3] == ("SCHEMA004", 1, MAX_DEPTH + 1)


@pytest.mark.parametrize("depth", [5_000, 1_000_000])
def test_great_depth_is_a_finding_not_a_crash(depth):
    assert only("[" * depth)[:3] == ("SCHEMA004", 1, MAX_DEPTH + 1)
    assert only('{"a":' * depth)[0] == "SCHEMA004"


def test_many_shallow_containers_do_not_count_as_depth():
    text = "[" + ",".join(['{"a": []}'] * 200) + "]"
    assert load(text).errors == ()
    assert load(text).root is None


def test_the_number_of_values_is_limited():
    fits = "[" + ",".join("1" * (MAX_NODES - 1)) + "]"
    assert load(fits).errors == ()
    assert only(fits[:-1] + ",1]")[0] == "SCHEMA004"


@pytest.mark.parametrize(
    "number", ["9223372036854775808", "-9223372036854775809", "1" * 5000, "1e400", "-1E999"]
)
def test_numbers_out_of_range_are_refused(number):
    code, line, column, message = only(f"[0, {number}]")
    assert (code, line, column) == ("SCHEMA004", 1, 5)
    assert "out of range" in message


def test_the_index_gives_the_span_of_keys_and_values():
    text = '{\n  "a": [10, {"b": "x"}]\n}'
    root = parse(text).root

    def piece(node):
        return text[node.start : node.end]

    entry = root.children["a"]
    assert piece(root) == text
    assert text[entry.key_start : entry.key_end] == '"a"'
    assert piece(entry) == '[10, {"b": "x"}]'
    assert piece(entry.children[0]) == "10"
    assert entry.children[0].key_start == -1
    assert piece(entry.children[1].children["b"]) == '"x"'
