"""What an author may say about a tool, and what counts as JSON."""

import datetime as dt
import enum
import json
from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_core import from_json, to_json

from weft.errors import UsageError
from weft.runtime.tools.tool_api import NO_OPTIONS, ToolOptions, options_of, tool
from weft.runtime.variables.json_values import MAX_BYTES, own_copy, plain_json

SECONDS = "the timeout of a tool is a number of seconds above 0"


def test_options_are_kept_with_the_function():
    @tool(effect="read", timeout=2.5, retries=2)
    def find(): ...

    @tool()
    def save(): ...

    assert options_of(find) == ToolOptions("read", 2.5, 2)
    assert options_of(save) == NO_OPTIONS == ToolOptions("write", None, 0)
    assert options_of(print) == NO_OPTIONS


def test_a_tool_may_be_marked_without_brackets():
    @tool
    def save(number: int) -> int:
        return number + 1

    assert save(1) == 2
    assert options_of(save) == NO_OPTIONS


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"efect": "read"}, "a tool has no option efect"),
        ({"colour": "red"}, "a tool has no option colour"),
        ({"timeout": -1}, f"{SECONDS}, not -1"),
        ({"timeout": "10"}, f"{SECONDS}, not '10'"),
        ({"retries": "2"}, "the retries of a tool are a whole number, not '2'"),
        ({"effect": "delete"}, "a tool has the effect read or write, not 'delete'"),
        ({"timeout": 0}, f"{SECONDS}, not 0"),
        ({"timeout": float("nan")}, f"{SECONDS}, not nan"),
        ({"timeout": float("inf")}, f"{SECONDS}, not inf"),
        ({"retries": 1}, "a tool with effect write cannot have retries=1"),
        ({"effect": "read", "retries": -1}, "a tool with effect read cannot have retries=-1"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(options, fact):
    with pytest.raises(UsageError) as caught:
        tool(**options)
    assert str(caught.value) == fact
    assert caught.value.hint


def test_misspelt_option_gets_a_suggestion():
    hints = []
    for name in ("efect", "colour"):
        with pytest.raises(UsageError) as caught:
            tool(**{name: "read"})
        hints.append(caught.value.hint)
    assert hints == ["did you mean effect?", "available: effect, timeout, retries"]


def test_an_option_without_a_name_is_refused():
    with pytest.raises(UsageError, match="given by name; 'read' has none") as caught:
        tool("read")
    assert "effect=" in caught.value.hint


def test_retries_without_an_effect_say_what_is_missing():
    with pytest.raises(UsageError) as caught:
        tool(retries=1)
    assert caught.value.hint == (
        'write effect="read" if calling it twice does no harm; write is the default'
    )


class Colour(enum.Enum):
    RED = "red"


class Order(BaseModel):
    number: int
    at: dt.date


@dataclass
class Size:
    width: Decimal


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        ((1, 2.5, True, "ä"), [1, 2.5, True, "ä"]),
        ({1: {2}}, {"1": [2]}),
        (Colour.RED, "red"),
        (Order(number=1, at=dt.date(2026, 1, 2)), {"number": 1, "at": "2026-01-02"}),
        ([Size(Decimal("1.50"))], [{"width": "1.50"}]),
        (2**70, 2**70),
    ],
)
def test_json_values_are_translated(value, plain):
    assert plain_json(value) == plain


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("inf"), "float that is not JSON: it holds a number that is not finite"),
        ({"a": [float("nan")]}, "dict that is not JSON: it holds a number that is not finite"),
        ([object()], "list that is not JSON: it holds a value of type object"),
        (b"\xff", "bytes that is not JSON: it holds a value of type bytes"),
        ("\ud800", "str that is not JSON: it holds text that is not valid Unicode"),
        ({(1, 2): 3}, "dict that is not JSON: keys must be str, int, float, bool or None"),
        (
            (n for n in "ab"),
            "generator that is not JSON: it holds a value of type generator, which may have no end",
        ),
        ("x" * MAX_BYTES, "str that is too large: it has 4,194,306 bytes, and 4,194,304 are"),
        (nested(190), "list that is not JSON: it is nested too deeply"),
        (nested(20_000), "list that is not JSON: it is nested too deeply"),
        (10**5000, "int that is not JSON: Exceeds the limit"),
    ],
    ids=lambda item: item if isinstance(item, str) and "JSON" in item else "",
)  # fmt: skip
def test_non_json_values_are_refused(value, reason):
    with pytest.raises(ValueError, match=r"is not JSON|is too large") as caught:
        plain_json(value)
    assert str(caught.value).startswith(f"a value of type {reason}")


def test_recursive_value_is_refused():
    ring: list = []
    ring.append(ring)
    with pytest.raises(ValueError, match="it contains itself"):
        plain_json(ring)


def test_the_limit_itself_is_allowed():
    text = "x" * (MAX_BYTES - 2)
    assert plain_json(text) == text


def test_accepted_json_can_be_read_inside_an_event():
    value = plain_json(nested(180))
    assert from_json(to_json({"data": {"value": value}})) == {"data": {"value": value}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)  # fmt: skip


@given(json_values)
def test_json_stays_as_it_is_and_shares_nothing(value):
    plain, copy = plain_json(value), own_copy(value)
    assert plain == copy == value
    assert json.dumps(plain) == json.dumps(copy) == json.dumps(value)
    if isinstance(value, dict | list):
        assert plain is not value
        assert copy is not value
