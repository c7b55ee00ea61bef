"""Forms in the terminal, spans of time, columns: the small parts of the verbs that run things."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cases import read_cases
from weft.cli.chat.form import ask_form, shown_payload
from weft.cli.commands.runs import milliseconds
from weft.cli.failure import CommandFailed
from weft.cli.streams import clean_lines, folded, padded, shortened, width
from weft.runtime.tools.forms import make_forms
from weft.spec.workflow import WorkflowSpec

CASES = read_cases(__file__)


def fill(schema, *lines: str, fault=lambda _: None, field_error=lambda _, __: None):
    """Fill a form in; return the answer, the prompts and what was shown."""
    left, prompts, shown = list(lines), [], []

    async def ask(prompt: str, *, secret: bool) -> str:
        prompts.append(prompt + ("*" if secret else ""))
        return left.pop(0)

    answer = asyncio.run(ask_form(schema, ask, shown.append, fault, field_error))
    assert not left
    return answer, prompts, shown


@pytest.mark.parametrize(("schema", "lines", "answer"), CASES["test_one_value"])
def test_one_value(schema, lines: list[str], answer: object):
    assert fill(schema, *lines)[0] == answer


FORM = {
    "type": "object",
    "$defs": {"Size": {"enum": ["S", "M"], "title": "Size"}},
    "properties": {
        "name": {"type": "string", "title": "Your name", "description": "As on the card."},
        "size": {"$ref": "#/$defs/Size", "default": "M"},
        "count": {"type": "integer"},
        "extra": {"type": "object"},
        "gift": {"type": "boolean", "default": False},
    },
    "required": ["name", "count"],
}


def test_a_whole_form():
    answer, prompts, shown = fill(FORM, "Ann", "", "3", "", "y")
    assert answer == {"name": "Ann", "size": "M", "count": 3, "gift": True}
    assert prompts == [
        "Your name: ",
        "Size (number or value, Enter for M): ",
        "count (integer): ",
        "extra (JSON, may be empty): ",
        "gift (y/n, Enter for n): ",
    ]
    assert shown == ["As on the card.", "  1  S", "  2  M"]


SECRET = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "password": {"type": "string", "writeOnly": True},
        "pin": {"$ref": "#/$defs/pin"},
        "login": {"type": "object", "properties": {"key": {"format": "password"}}},
    },
    "required": ["name", "password", "pin", "login"],
    "$defs": {"pin": {"type": "integer", "format": "password"}},
}


def test_secret_fields_are_asked_for_without_showing_them():
    answer, prompts, _ = fill(SECRET, "{ada", '{"no": 1}', "12", '{"key": "k"}')
    assert answer == {"name": "{ada", "password": '{"no": 1}', "pin": 12, "login": {"key": "k"}}
    assert prompts == ["name: ", "password: *", "pin (integer): *", "login (JSON): *"]


def test_an_answer_that_is_one_secret_is_asked_for_without_showing_it():
    assert fill({"type": "string", "format": "password"}, "hush")[1] == ["answer: *"]


def test_invalid_secret_value_is_not_repeated():
    tool = {"tool_type": "UI_Tool", "agent": "A", "file": "f.py", "function": "ask"}
    limits = {"name": {"type": "string", "minLength": 9}, "password": {"minLength": 9}}
    properties = {limit: {**SECRET["properties"][limit], **limits[limit]} for limit in limits}
    schema = {"type": "object", "properties": properties, "required": ["name", "password"]}
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
            "agents": [{"agent_name": "A"}],
            "tools": [
                {**tool, "ui": {"component": "C", "mode": "inline"}, "response_schema": schema}
            ],
        }
    )
    form = make_forms(spec)["ask"]
    unquoted = "password: the typed value is invalid"
    assert form.field_error("name", "ada") == "'ada' is too short"
    assert form.field_error("password", "hush") == "the typed value is invalid"
    assert form.answer_error({"name": "ada-lovelace", "password": "hush"}) == unquoted
    assert form.answer_error({"name": "ada-lovelace"}) == "'password' is a required property"
    assert form.answer_error("hush") == "the typed value is invalid"


def test_the_whole_answer_at_once():
    assert fill(FORM, '{"name": "Ann"}')[0] == {"name": "Ann"}


def test_a_brace_is_text_once_the_form_is_begun():
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    assert fill(schema, "x", "{y")[0] == {"a": "x", "b": "{y"}


def test_it_is_asked_again_until_it_fits():
    answers = iter(["too short", None])
    answer, _, shown = fill({"type": "string"}, "a", "long", fault=lambda _: next(answers))
    assert answer == "long"
    assert shown == ["invalid answer: too short"]


def test_only_the_field_at_fault_is_asked_again():
    wrong = {("name", "A"): "too short", ("count", 0): "0 is less than 1"}
    answer, prompts, shown = fill(
        FORM, "A", "Ann", "", "0", "3", "", "", field_error=lambda *given: wrong.get(given)
    )
    assert answer == {"name": "Ann", "size": "M", "count": 3, "gift": False}
    assert [prompt.partition(" (")[0] for prompt in prompts[:2]] == ["Your name: ", "Your name: "]
    assert [prompt.partition(" (")[0] for prompt in prompts[3:5]] == ["count", "count"]
    assert [item for item in shown if ": " in item] == [
        "name: too short",
        "count: 0 is less than 1",
    ]


def test_a_reference_that_leads_round_or_nowhere_is_any_value():
    round_ = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert fill(round_, "x")[0] == "x"
    assert fill({"$ref": "#/nowhere/at/all", "nowhere": 3}, "x")[0] == "x"
    assert fill({"$ref": "elsewhere.json"}, "x")[0] == "x"


def test_texts_before_a_form():
    assert shown_payload(None) == []
    assert shown_payload("one\ntwo") == ["one", "two"]
    assert shown_payload({"open": {"goal": "x"}, "empty": []}) == ["open:", "  goal: x"]
    assert shown_payload({"text": "one\ntwo", "list": ["\x1b[0m"]}) == [
        "text: one",
        "  two",
        "list:",
        "  - \\x1b[0m",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30d", 30 * 86_400_000), (" 12H ", 43_200_000), ("1.5m", 90_000), ("2w", 1_209_600_000)],
)
def test_spans_of_time(text: str, expected: int):
    assert milliseconds(text) == expected


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1e9d", "9999999d"])
def test_no_spans_of_time(text: str):
    with pytest.raises(CommandFailed, match="invalid span of time"):
        milliseconds(text)


def test_columns():
    assert width("世界a\u0301") == 5
    assert padded("世界", 6) == "世界  "
    assert shortened("世界世界", 8) == "世界世界"
    assert shortened("世界世界", 7) == "世界..."


@given(st.text(), st.integers(4, 60))
def test_shortened_text_fits(text: str, columns: int):
    assert width(shortened(text, columns)) <= columns


@given(st.text(), st.integers(16, 60), st.integers(1, 4))
def test_folded_text_fits_and_loses_only_its_end(text: str, columns: int, most: int):
    lines = folded(text, columns, most=most)
    assert 1 <= len(lines) <= most
    assert all(width(line) <= columns for line in lines)
    if not any(line.endswith("...") for line in lines):
        assert " ".join(lines).split() == text.split()


def test_folded_lines_stand_further_in():
    assert folded("  one two three four", 16) == ["  one two three", "    four"]


def test_lines_stay_lines():
    assert clean_lines("a\tb\r\n\x1b[0m") == "a   b\n\\x1b[0m"
