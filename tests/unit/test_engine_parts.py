"""The small parts of the engine: the growing log, write rights, events as JSON."""

import json

import pytest

from engine_play import workflow
from weft.engine.codec import decode, encode
from weft.engine.events import (
    KINDS,
    HandedOff,
    ModelReplied,
    RequestOpened,
    RunStarted,
    ToolRequest,
    Usage,
)
from weft.engine.log import Log
from weft.engine.writes import refusal


def test_log_grows_and_keeps_every_earlier_state():
    one = Log("a")
    two = one.added("b")
    three = two.added("c")
    other = two.added("d")
    assert [list(log) for log in (one, two, three, other)] == [
        ["a"],
        ["a", "b"],
        ["a", "b", "c"],
        ["a", "b", "d"],
    ]
    assert [len(log) for log in (one, two, three, other)] == [1, 2, 3, 3]


def test_log_reads_from_both_ends():
    log = Log(range(5)).added(5)
    assert list(reversed(log)) == [5, 4, 3, 2, 1, 0]
    assert repr(Log("a")) == "Log(['a'])"
    assert Log("ab") == Log("a").added("b")
    assert Log("ab") != Log("ba")
    assert Log("ab") != ["a", "b"]
    assert hash(Log("ab")) == hash(Log("a").added("b"))


def test_log_shares_what_it_has():
    log = Log(range(1000))
    grown = log.added(1)
    assert grown._items is log._items


VARIABLES = {
    "open": {"type": "int", "source": {"type": "derived"}},
    "mine": {"type": "int", "source": {"type": "derived"}, "writers": ["save"]},
    "fixed": {"type": "int", "source": {"type": "static", "value": 1}},
    "order": {
        "type": "dict",
        "source": {"type": "entity", "collection": "orders", "search_by": "id"},
    },
}


@pytest.mark.parametrize(
    ("name", "value", "writer", "reason"),
    [
        ("open", 3, "save", None),
        ("open", None, "save", None),
        ("open", "x", "save", 'open: expected int, got "x"'),
        ("mine", 3, "save", None),
        ("mine", 3, "trigger", None),
        ("mine", 3, "other", "other is not among the writers of mine"),
        ("fixed", 3, "save", "fixed comes from static and cannot be set"),
        ("order", {"id": 1}, "save", None),
        ("gone", 3, "save", "there is no variable gone"),
    ],
)
def test_who_may_set_what(name, value, writer, reason):
    assert refusal(workflow(variables=VARIABLES), {}, name, value, writer=writer) == reason


@pytest.mark.parametrize(
    "data",
    [
        RunStarted("w", "d", "a", "u", {"x": [1, None]}, "hi"),
        ModelReplied(1, 1, "t", (ToolRequest("c", "look", {"a": 1}),), Usage(1, 2, None, 0.5), "m"),
        ModelReplied(2, 1, "plain"),
        HandedOff("A", "B", "rule", 3),
        RequestOpened("q", "ui", "A", payload={"deep": {"er": "ü"}}, expires_at=5),
    ],
)
def test_events_survive_being_written(data):
    raw = encode(data)
    assert decode(type(data).__name__, raw) == data
    assert json.loads(raw)


def test_every_kind_is_known_by_its_name():
    assert all(KINDS[name].__name__ == name for name in KINDS)
