"""Fences that models put around JSON."""

import pytest

from weft.engine.events.codec import read_json, unfenced


@pytest.mark.parametrize(
    "reply",
    [
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}\n```',
        '  \n```json  \n\n  {"a": 1}  \n\n  ```\n\n',
        '```json\r\n{"a": 1}\r\n```\r\n',
        '```JSON\n{"a": 1}\n```',
        '```json {"a": 1} ```',
        '```json{"a": 1}```',
        '```{"a": 1}```',
        '{"a": 1}',
        ' {"a": 1}\n',
    ],
)
def test_one_fence_around_a_reply_is_taken_off(reply):
    assert read_json(unfenced(reply).encode()) == {"a": 1}


def test_a_fence_inside_a_text_is_part_of_it():
    code = r"""{"code": "```python\nprint()\n```"}"""
    assert unfenced(code) is code
    assert unfenced(f"```json\n{code}\n```") == code


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   ",
        "```",
        "`````",
        "```json",
        'Here it is:\n```json\n{"a": 1}\n```',
        '```json\n{"a": 1}\n```\nAnything else?',
        '```json\n{"a": 1}',
        '{"a": 1}\n```',
        '```python\n{"a": 1}\n```',
        '```jsonc\n{"a": 1}\n```',
        '````json\n{"a": 1}\n````',
        "```json\n1\n```\n\n```json\n2\n```",
    ],
)
def test_anything_else_is_left_as_it_is(reply):
    assert unfenced(reply) == reply


def test_an_empty_fence_holds_nothing():
    assert unfenced("```json\n```") == ""
