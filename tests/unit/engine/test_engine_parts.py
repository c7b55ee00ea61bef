"""The small parts of the engine: the growing log, write rights, events as JSON."""

import json
from dataclasses import FrozenInstanceError, replace
from typing import get_args, get_type_hints

import pytest

from support.engine_play import workflow
from weft.engine.board import turn as board_mode
from weft.engine.compile import compile_workflow
from weft.engine.conversation import turn as conversation_mode
from weft.engine.conversation.routing import Route
from weft.engine.events import (
    KIND_NAMES,
    KINDS,
    Branched,
    Event,
    EventData,
    HandedOff,
    ModelReplied,
    RequestOpened,
    RunStarted,
    ToolRequest,
    TurnStarted,
    Usage,
)
from weft.engine.events.codec import decode, encode, read_json
from weft.engine.flow import turn as flow_mode
from weft.engine.flow.state import StepRun
from weft.engine.persistent import KeyLog, Log
from weft.engine.reduce import HANDLERS, reduce
from weft.engine.state import Activation, ActivationChanges, State
from weft.engine.variables.access import BY_TRIGGER, write_error
from weft.engine.variables.patterns import pattern
from weft.errors import ExpressionError
from weft.spec.workflow import WorkflowSpec
from weft.testing.store.kinds import EVERY_KIND


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


def test_log_tells_what_came_after_a_length():
    log = Log("ab")
    grown = log.added("c").added("d")
    assert (log.since(1), grown.since(1), grown.since(4)) == (["b"], ["b", "c", "d"], [])


def test_key_log_grows_and_keeps_every_earlier_state():
    one = KeyLog(["a"])
    two = one.added("b")
    three = two.added("c")
    other = two.added("d")
    assert [list(item) for item in (one, two, three, other)] == [
        ["a"],
        ["a", "b"],
        ["a", "b", "c"],
        ["a", "b", "d"],
    ]
    assert [len(item) for item in (one, two, three, other)] == [1, 2, 3, 3]
    assert [("b" in item, "c" in item, "d" in item) for item in (one, two, three, other)] == [
        (False, False, False),
        (True, False, False),
        (True, True, False),
        (True, False, True),
    ]


def test_key_log_finds_a_key_without_looking_through_all():
    class Counted(str):
        __slots__ = ()
        compared = 0

        def __eq__(self, other):
            Counted.compared += 1
            return super().__eq__(other)

        __hash__ = str.__hash__

    log = KeyLog(f"m{number}" for number in range(1000))
    assert Counted("m999") in log
    assert Counted("other") not in log
    assert Counted.compared < 20


def test_key_log_has_each_key_once_and_shares_what_it_has():
    log = KeyLog(["a", "b", "a"])
    assert log.added("b") is log
    assert log.added("c")._places is log._places
    assert repr(log) == "KeyLog(['a', 'b'])"
    assert log == KeyLog(["a"]).added("b")
    assert log != KeyLog(["b", "a"])
    assert log != ["a", "b"]
    assert hash(log) == hash(KeyLog(["a"]).added("b"))


CHANGES = {
    "stage": "tools",
    "call": 3,
    "seq": 9,
    "missing": frozenset({"c1"}),
    "refusals": 1,
    "sent_back": 2,
    "shown": {"a": 1},
    "reply": "x",
    "held": "text",
    "next_agent": "B",
    "hook_index": 2,
    "edits": ({"last": "x"},),
    "asked": {"a": 1},
    "route": Route("B", "chosen"),
    "engine_index": 1,
    "drafts": [],
    "candidates": ([],),
    "board_input": {"engines": [0]},
    "error": "x",
    "flow": StepRun("a"),
}


def test_a_changed_activation_is_what_replace_would_make():
    active = Activation("A", 2, fork=5)
    assert CHANGES.keys() == get_type_hints(ActivationChanges).keys()
    for some in ({}, *({name: value} for name, value in CHANGES.items()), CHANGES):
        assert active.replace(**some) == replace(active, **some)
        assert active == Activation("A", 2, fork=5)
    with pytest.raises(FrozenInstanceError):
        active.replace(call=2).call = 3


def test_a_copy_of_a_state_is_a_state_of_its_own_that_shares_what_it_refers_to():
    state = State("r", variables={"a": 1})
    twin = state.copy()
    assert twin == state
    assert twin.variables is state.variables
    twin.update(Activation("A", 1))
    twin.seq = 5
    assert (state.seq, state.active) == (0, {})


VARIABLES = {
    "open": {"type": "int", "source": {"type": "derived"}},
    "mine": {"type": "int", "source": {"type": "derived"}, "writers": ["save"]},
    "fixed": {"type": "int", "source": {"type": "static", "value": 1}},
    "hidden": {"type": "int", "source": {"type": "derived"}, "secret": True},
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
        ("mine", 3, BY_TRIGGER, None),
        # A tool of this name is no trigger.
        ("mine", 3, "trigger", "trigger is not among the writers of mine"),
        ("mine", 3, "other", "other is not among the writers of mine"),
        ("fixed", 3, "save", "fixed comes from static and cannot be set"),
        ("order", {"id": 1}, "save", None),
        ("gone", 3, "save", "there is no variable gone"),
        ("hidden", 3, "save", "hidden is secret and cannot be set"),
    ],
)
def test_writers_of_variables(name, value, writer, reason):
    assert write_error(workflow(variables=VARIABLES), {}, name, value, writer) == reason


@pytest.mark.parametrize(
    "data",
    [
        RunStarted("w", "d", "a", "u", {"x": [1, None]}, with_message=True),
        ModelReplied(1, "t", (ToolRequest("c", "look", {"a": 1}),), Usage(1, 2, None, 0.5), "m"),
        ModelReplied(2, "plain"),
        HandedOff("A", "B", "rule", 3),
        RequestOpened("q", "ui", "A", payload={"deep": {"er": "ü"}}, expires_at=5),
        *EVERY_KIND,
    ],
    ids=lambda item: type(item).__name__,
)
def test_events_survive_being_written(data):
    raw = encode(data)
    assert decode(KIND_NAMES[type(data)], raw) == data
    assert json.loads(raw)


def test_every_kind_of_event_has_one_name_for_ever():
    assert {kind: name for name, kind in KINDS.items()} == KIND_NAMES
    modes = (board_mode, conversation_mode, flow_mode)
    handled = {kind for table in (HANDLERS, *(mode.HANDLERS for mode in modes)) for kind in table}
    assert set(KINDS.values()) == set(get_args(EventData)) == set(handled)
    # Journals hold these words: they stay, whatever the classes are called.
    assert list(KINDS) == [
        "RunStarted", "RunForked", "MessageShown", "TurnStarted", "ContextAssembled",
        "ModelReplied", "ModelFailed", "OutputRefused", "ToolCalled", "ToolReturned", "ToolFailed",
        "ModelConsulted", "SurfaceShown", "MessageSent", "ContextFetched", "DocumentWritten",
        "ConditionJudged", "VariableSet", "VariableRefused", "RequestOpened", "RequestAnswered",
        "RequestExpired", "TurnEnded", "TurnFailed", "HandedOff", "Forked", "Joined", "Branched",
        "TimerSet", "TimerFired", "ArtifactPublished", "ArtifactArrived", "DeliveryMissed",
        "DeliveryDeferred", "BatchesFlushed", "StopRequested", "RunEnding", "RunEnded",
    ]  # fmt: skip


def test_unknown_event_fields_are_ignored():
    later = {"agent": "A", "fork": 3, "mood": "good"}
    assert decode("TurnStarted", json.dumps(later)) == TurnStarted("A", 3)


def test_missing_event_field_has_its_default():
    assert decode("TurnStarted", '{"agent": "A"}') == TurnStarted("A")
    early = '{"call": 1, "text": "x", "tool_requests": []}'
    assert decode("ModelReplied", early) == ModelReplied(1, "x")


@pytest.mark.parametrize(
    ("text", "said", "found"),
    [
        ("ref-[0-9]+", "see ref-12.", True),
        ("^done$", "done", True),
        ("^done$", "done\n", False),
        ("(?i)order", "ORDER", True),
        ("(x+x+)+y", "x" * 100_000, False),
    ],
)
def test_patterns_are_found_in_one_pass(text, said, found):
    assert pattern(text)(said) is found


@pytest.mark.parametrize(
    ("text", "reason", "offset"),
    [
        ("ab(", "unclosed group", 2),
        ("ä+(?=x)", "look-around, including look-ahead and look-behind, is not supported", 2),
        (r"(a)\1", "backreferences are not supported", 3),
        ("a\n(b", "unclosed group", 0),
        ("x{100000}{100000}", "exceeds size limit", 0),
        ("a" * 1001, "it is longer than 1000 characters", 1000),
    ],
)
def test_patterns_that_cannot_be_matched_in_one_pass_are_refused(text, reason, offset):
    with pytest.raises(ExpressionError, match=reason) as refused:
        pattern(text)
    assert refused.value.offset == offset
    assert refused.value.hint


@pytest.mark.parametrize("raw", [b"NaN", b"[1", b"[" * 190 + b"]" * 190, b"1, 2", b"1], [2"])
def test_json_that_no_event_could_hold_is_refused(raw):
    with pytest.raises(ValueError, match=r"(?s)."):
        read_json(raw)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"nope", "expected ident at line 1 column 2"),
        (b"", "EOF while parsing a value at line 1 column 0"),
        (b"1, 2", "trailing characters at line 1 column 2"),
        (b'{"a":\n x}', "expected value at line 2 column 2"),
        (b"[" * 190 + b"]" * 190, "it is nested too deeply"),
    ],
    ids=repr,
)
def test_json_error_has_its_place(raw, said):
    with pytest.raises(ValueError, match=f"^{said}$"):
        read_json(raw)


def test_json_is_read():
    assert read_json(b'{"a": [1, null]}') == {"a": [1, None]}


def test_event_of_another_mode_changes_nothing():
    agents = [{"agent_name": "A"}]
    spec = {"orchestrator": {"workflow_name": "W", "initial_agent": "A"}, "agents": agents}
    compiled = compile_workflow(WorkflowSpec.model_validate(spec))
    branched = Event(1, 0, "engine", 0, 0, Branched("a", "b", "case"))
    assert reduce(compiled, State("r"), branched) == (State("r", seq=1), [])
