"""What holds for every run the engine can be led through."""

from hypothesis import given, settings
from hypothesis import strategies as st

from engine_play import Play, workflow
from weft.engine.codec import decode, encode
from weft.engine.commands import CallModel, CallTool
from weft.engine.events import (
    Event,
    ModelFailed,
    ModelReplied,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    StopAsked,
    ToolFailed,
    ToolRequest,
    ToolReturned,
    VariableSet,
)
from weft.engine.reduce import fold, pending, reduce
from weft.engine.state import State

VARIABLES = {
    "ready": {
        "type": "bool",
        "source": {
            "type": "derived",
            "default": False,
            "triggers": [{"type": "agent_text", "agent": "A", "match": {"equals": "GO"}}],
        },
    },
    "topic": {
        "type": 'literal["x", "y"]',
        "source": {
            "type": "derived",
            "default": "x",
            "triggers": [
                {"type": "tool_call", "tool": "look", "argument": "topic"},
                {"type": "ui_response", "tool": "look", "response_key": "topic"},
            ],
        },
    },
}
BOOK = workflow(
    handoffs=[
        {"source_agent": "A", "target_agent": "B", "condition": "ready"},
        {"source_agent": "B", "target_agent": "A", "condition": 'topic == "y"'},
        {"source_agent": "B", "target_agent": "terminate"},
    ],
    variables=VARIABLES,
    tools=[{"agent": "A", "function": "look"}],
    orchestrator={"max_turns": 8},
)


@st.composite
def journals(draw):
    """Lead a run through random results, answers, questions and stops."""
    play = Play(BOOK)
    play.start(message=draw(st.sampled_from([None, "hello"])))
    for number in range(draw(st.integers(0, 25))):
        if play.state.status == "ended":
            break
        play.take(draw(_next(play, number)))
    return play


def _next(play, number):
    choices = []
    for command in pending(play.state):
        match command:
            case CallModel(turn=turn, call=call):
                request = ToolRequest(f"c{number}", "look", {"topic": "y"})
                choices += [
                    ModelReplied(turn, call, "GO"),
                    ModelReplied(turn, call, "hm"),
                    ModelReplied(turn, call, "", (request, ToolRequest(f"d{number}", "nope", {}))),
                    ModelFailed(turn, call, "down"),
                ]
            case CallTool(id=id_):
                opened = RequestOpened(f"q{number}", "ui", "A", tool="look", call=id_)
                choices += [ToolReturned(id_, "ok"), ToolFailed(id_, "no"), opened]
    for id_ in play.state.requests:
        choices += [RequestAnswered(id_, {"topic": "y"}, "u"), RequestExpired(id_)]
    choices += [StopAsked("after_turn", "u"), VariableSet("topic", "y", "tool:look")]
    return st.sampled_from(choices)


@settings(max_examples=200, deadline=None)
@given(journals(), st.data())
def test_folding_a_prefix_and_the_rest_is_folding_all(play, data):
    cut = data.draw(st.integers(0, len(play.events)))
    state = fold(BOOK, "r", play.events[:cut])
    for event in play.events[cut:]:
        state, _ = reduce(BOOK, state, event)
    assert state == play.state == fold(BOOK, "r", play.events)


@settings(max_examples=100, deadline=None)
@given(journals())
def test_events_written_and_read_fold_to_the_same_state(play):
    read = [
        Event(it.seq, it.at, it.actor, it.cause, decode(type(it.data).__name__, encode(it.data)))
        for it in play.events
    ]
    assert fold(BOOK, "r", read) == play.state


@settings(max_examples=200, deadline=None)
@given(journals(), st.data())
def test_reduce_leaves_its_input_alone(play, data):
    cut = data.draw(st.integers(0, len(play.events) - 1))
    state = fold(BOOK, "r", play.events[:cut])
    before, messages = state.copy(), list(state.messages)
    reduce(BOOK, state, play.events[cut])
    reduce(BOOK, state, play.events[cut])
    assert state == before
    assert list(state.messages) == messages


@settings(max_examples=200, deadline=None)
@given(journals(), st.data())
def test_delivering_a_result_or_answer_twice_is_harmless(play, data):
    kinds = (ModelReplied, ToolReturned, ToolFailed, RequestAnswered, RequestExpired, ModelFailed)
    results = [event for event in play.events if isinstance(event.data, kinds)]
    if not results:
        return
    again = data.draw(st.sampled_from(results))
    before = play.state.copy()
    assert play.take(again.data) == []
    before.seq = play.state.seq
    assert play.state == before


@settings(max_examples=200, deadline=None)
@given(journals())
def test_a_run_that_is_not_over_has_something_to_do_or_somebody_to_wait_for(play):
    state: State = play.state
    if state.status == "running":
        assert list(pending(state))
    elif state.status == "waiting":
        assert state.requests
    else:
        assert state.outcome
        assert not state.requests
        assert list(pending(state)) == []
