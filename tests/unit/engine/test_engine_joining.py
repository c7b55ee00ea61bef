"""Joining: which of the values count that members of a group have set side by side."""

import pytest

from support.engine_play import Play, workflow
from weft.engine.conversation.groups import join_values
from weft.engine.events import VariableRefused, VariableSet


def joined(rule, was, first, second):
    """Let two members of a group set one variable; return what it is then, and what was refused."""
    group = {"name": "Team", "members": ["B", "C"], "next": "A"}
    rules = [{"source_agent": "A", "target_agent": "Team"}]
    source = {"type": "derived", "default": was}
    variables = {"v": {"type": "any", "source": source, "merge": rule}}
    play = Play(workflow(["A", "B", "C"], rules, variables, orchestrator={"parallel": [group]}))
    play.start()
    play.reply("go")
    play.take(VariableSet("v", first, "tool:t"), turn=2)
    play.take(VariableSet("v", second, "tool:t"), turn=3)
    state = play.state.copy()
    refused = [value.data for value in join_values(play.compiled, state, (2, 3))]
    return state.variables["v"], [
        item.error for item in refused if isinstance(item, VariableRefused)
    ]


@pytest.mark.parametrize(
    ("rule", "was", "first", "second", "value"),
    [
        ("append", ["a"], ["a", "b"], ["a", "c"], ["a", "b", "c"]),
        ("append", None, ["b"], ["c"], ["b", "c"]),
        ("merge", {"k": 1}, {"k": 1, "b": 2}, {"k": 3}, {"k": 3, "b": 2}),
        ("merge", None, {"b": 2}, {"c": 3}, {"b": 2, "c": 3}),
        ("merge", None, "same", "same", "same"),
        (None, 0, 1, 1, 1),
    ],
)
def test_parallel_values_are_merged_as_declared(rule, was, first, second, value):
    assert joined(rule, was, first, second) == (value, [])


@pytest.mark.parametrize(
    ("rule", "was", "first", "second", "told"),
    [
        (None, 0, 1, 2, "B has set it in parallel; declare merge for it"),
        ("merge", None, {"b": 2}, 3, "B has set it in parallel"),
        ("append", ["a"], ["a", "b"], ["c"], "the list was changed, not extended"),
    ],
)
def test_conflicting_values_are_refused_and_the_first_counts(rule, was, first, second, told):
    value, (fault,) = joined(rule, was, first, second)
    assert value == first
    assert told in fault
