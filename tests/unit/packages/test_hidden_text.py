"""Lines as they may be shown: what may be a secret is covered, and nothing moves."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.packages.text.hidden import COVER, shown_text

KEY = "9f2c81d07be4"


def shown(file, text):
    """Return all lines of a file as they may be shown."""
    lines = shown_text(file, text)
    return "\n".join(lines.line(number + 1) for number in range(text.count("\n") + 1))


def definition(name, **more):
    return {"definitions": {name: {"source": {"value": KEY}, **more}}}


@pytest.mark.parametrize(
    "data",
    [
        definition("api_key"),
        definition("anything", secret=True),
        {"definitions": [{"name": "api_key", "source": {"default": KEY}}]},
        {"static_variables": [{"name": "x", "secret": True, "value": KEY}]},
        {"definitions": {"x": {"source": {"value": [{"password": KEY}]}}}},
        {"definitions": {"x": {"source": {"url": f"https://example.org/?api_key={KEY}"}}}},
        {"agents": [{"content": f"use sk-{KEY}{KEY} for it"}]},
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_value_that_may_be_secret_is_covered(data, indent):
    text = json.dumps(data, indent=indent)
    covered = shown("a.json", text)
    assert KEY not in covered
    assert COVER in covered
    assert len(covered) == len(text)


@pytest.mark.parametrize(
    "data",
    [
        {"definitions": {"password": {"description": "hidden", "source": {"type": "static"}}}},
        {"definitions": {"password": {"source": {"value": None}}}},
        {"definitions": {"x": {"secret": True, "source": {"type": "environment", "env_var": "E"}}}},
        definition("order"),
    ],
)
def test_anything_else_stays(data):
    text = json.dumps(data, indent=2)
    assert shown("a.json", text) == text


def test_a_value_of_several_lines():
    text = (
        "definitions:\n  pass_phrase:\n    secret: true\n    value: |\n      one\n      two\nx: y\n"
    )
    covered = shown("a.yaml", text).split("\n")
    assert [line.strip(" " + COVER) for line in covered[3:7]] == ["value:", "", "", "x: y"]


def test_carriage_returns_are_not_part_of_a_line():
    assert shown("a.json", '{"a": 1,\r\n"b": 2}') == '{"a": 1,\n"b": 2}'


@pytest.mark.parametrize(
    "text",
    [
        f'{{"api_key": {{"source": {{"value": "{KEY}}}}}',
        f'{{"api_key": {{\n"source": {{\n"value": "{KEY}\n',
        f"api_key:\n  value: {KEY}\n bad: [",
        f'{{"value": "sk-{KEY}{KEY}',
    ],
)
def test_a_line_of_a_file_that_cannot_be_read(text):
    assert KEY not in shown("a.yaml" if text.startswith("api") else "a.json", text)


def test_a_fault_is_still_shown():
    text = '{"agents": [\n{"agent_name": "A" "b": 1}]}'
    assert shown("a.json", text) == text


def test_values_read_before_a_fault_are_masked():
    text = json.dumps(definition("pin", secret=True), indent=2) + " }"
    assert KEY not in shown("a.json", text)


def test_lines_of_code():
    assert KEY not in shown("a.py", f'api_key = "{KEY}"')
    code = "def f(token: str, context_variables):\n    return token"
    assert shown("a.py", code) == code


def test_a_line_that_is_not_there():
    assert shown_text("a.py", "x").line(2) is None


@given(st.text(), st.sampled_from(["a.json", "a.yaml", "a.py"]))
def test_lines_and_columns_stay(text, file):
    lines = shown_text(file, text)
    for number, line in enumerate(text.split("\n"), start=1):
        assert len(lines.line(number) or "") in {len(line), len(line.removesuffix("\r"))}
