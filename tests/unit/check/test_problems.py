"""What a model refuses, where the location has steps that are not in the data."""

import pytest
from pydantic import ValidationError

from weft.check.problems import find_problems
from weft.packages.edit.rewrite import Rewrite
from weft.packages.reader import drop_unknown_keys
from weft.spec.agents import ModelSettings
from weft.spec.part import Part
from weft.spec.tools import LifecycleTool, McpServer


class Left(Part):
    x: int


class Right(Part):
    y: int


class Whole(Part):
    either: Left | Right | None = None


def test_members_of_a_union_without_tags_are_all_named():
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate({"either": {"x": "text"}}, strict=True)
    found = {(problem.code, problem.path) for problem in find_problems(caught.value, Whole)}
    assert ("SCHEMA007", ("either", "Left", "x")) in found
    assert ("SCHEMA009", ("either", "Right", "y")) in found


def test_a_key_that_only_one_member_of_a_union_does_not_know_is_kept():
    data = {"either": {"x": "text"}}
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate(data, strict=True)
    unknown = [
        problem for problem in find_problems(caught.value, Whole) if problem.code == "SCHEMA008"
    ]
    assert [item.path for item in unknown] == [("either", "Right", "x")]
    assert drop_unknown_keys(Rewrite(data, {}), unknown, ()) is False
    assert data == {"either": {"x": "text"}}


@pytest.mark.parametrize(
    ("model", "data", "path", "message"),
    [
        (McpServer, {"env": {"A": 5}}, ("env", "A"), "expected text, found 5"),
        (McpServer, {"env": {"A": {"secret": "X"}}}, ("env", "A", "secret"), "unknown key"),
        (McpServer, {"env": {"A": {}}}, ("env", "A", "secret_env"), "the key "),
        (LifecycleTool, {"trigger": "before_cht"}, ("trigger",), '"before_cht" is not one of '),
        (ModelSettings, {"seed": "cache"}, ("seed",), "a seed is a whole number, or "),
        (ModelSettings, {"seed": True}, ("seed",), "a seed is a whole number, or "),
    ],
)
def test_value_outside_a_union_is_one_problem(model, data, path, message):
    whole = {McpServer: {"name": "m"}, LifecycleTool: {"file": "a.py", "function": "f"}}
    with pytest.raises(ValidationError) as caught:
        model.model_validate({**whole.get(model, {}), **data}, strict=True)
    (found,) = find_problems(caught.value, model)
    assert found.path == path
    assert found.message.startswith(message)
