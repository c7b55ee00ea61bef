"""Fences that models put around JSON."""

import pytest

from support.cases import read_cases
from weft.engine.events.codec import read_json, unfenced

CASES = read_cases(__file__)


@pytest.mark.parametrize("reply", CASES["test_one_fence_around_a_reply_is_taken_off"])
def test_one_fence_around_a_reply_is_taken_off(reply):
    assert read_json(unfenced(reply).encode()) == {"a": 1}


def test_a_fence_inside_a_text_is_part_of_it():
    code = r"""{"code": "```python\nprint()\n```"}"""
    assert unfenced(code) is code
    assert unfenced(f"```json\n{code}\n```") == code


@pytest.mark.parametrize("reply", CASES["test_anything_else_is_left_as_it_is"])
def test_anything_else_is_left_as_it_is(reply):
    assert unfenced(reply) == reply


def test_an_empty_fence_holds_nothing():
    assert unfenced("```json\n```") == ""
