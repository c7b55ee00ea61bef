"""What holds for every run the engine can be led through."""

from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from support.engine_play import Play, workflow
from weft.engine.commands import CallModel, CallTool
from weft.engine.events import (
    KIND_NAMES,
    ModelFailed,
    ModelReplied,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    StopRequested,
    TimerFired,
    ToolFailed,
    ToolRequest,
    ToolReturned,
    VariableSet,
)
from weft.engine.events.codec import decode, encode
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
ALONE = workflow(
    handoffs=[
        {"source_agent": "A", "target_agent": "B", "condition": "ready"},
        {"source_agent": "B", "target_agent": "A", "condition": 'topic == "y"'},
        {"source_agent": "B", "target_agent": "terminate"},
    ],
    variables=VARIABLES,
    tools=[{"agent": "A", "function": "look"}],
    orchestrator={"max_turns": 8},
)


def side_by_side(**group):
    """Return a workflow that begins with a group and comes back to it while the topic is y."""
    return workflow(
        agents=("A", "B", "C"),
        handoffs=[
            {"source_agent": "C", "target_agent": "Both", "condition": 'topic == "y"'},
            {"source_agent": "C", "target_agent": "terminate"},
        ],
        variables=VARIABLES,
        tools=[{"agent": "A", "function": "look"}],
        orchestrator={
            "initial_agent": "Both",
            "max_turns": 12,
            "parallel": [{"name": "Both", "members": ["A", "B"], "next": "C", **group}],
        },
    )


BOOKS = [
    ALONE,
    side_by_side(),
    side_by_side(merge="first", on_failure="continue"),
    side_by_side(merge="majority", on_failure="continue", deadline_seconds=1),
    side_by_side(merge="collect", deadline_seconds=1),
    side_by_side(merge="custom", function="m:join", on_failure="continue", deadline_seconds=1),
]


@st.composite
def journals(draw):
    """Lead a run through random results, answers, questions and stops."""
    play = Play(draw(st.sampled_from(BOOKS)))
    play.start(message=draw(st.sampled_from([None, "hello"])))
    for number in range(draw(st.integers(0, 25))):
        if play.state.status == "ended":
            break
        data, turn = draw(_next(play, number))
        play.take(data, turn=turn)
    return play


def _next(play, number):
    choices = []
    for command in pending(play.compiled, play.state):
        match command:
            case CallModel(turn=turn, call=call):
                request = ToolRequest(f"c{number}", "look", {"topic": "y"})
                replies = [
                    ModelReplied(call, "GO"),
                    ModelReplied(call, "hm"),
                    ModelReplied(call, "", (request, ToolRequest(f"d{number}", "nope", {}))),
                    ModelFailed(call, "down"),
                ]
                choices += [(reply, turn) for reply in replies]
            case CallTool(id=id_, turn=turn):
                opened = RequestOpened(f"q{number}", "ui", "A", tool="look", call=id_)
                results = [ToolReturned(id_, "ok"), ToolFailed(id_, "no"), opened]
                choices += [(result, turn) for result in results]
    for id_, request in play.state.requests.items():
        answers = [RequestAnswered(id_, {"topic": "y"}, "u"), RequestExpired(id_)]
        choices += [(answer, request.turn) for answer in answers]
    choices += [(TimerFired(id_), 0) for id_ in play.state.timers]
    choices += [(StopRequested("after_turn", "u"), 0)]
    choices += [
        (VariableSet("topic", "y", "tool:look"), item) for item in play.state.active or (0,)
    ]
    return st.sampled_from(choices)


@settings(max_examples=60 * TIMES, deadline=None)
@given(journals(), st.data())
def test_folding_a_prefix_and_the_rest_is_folding_all(play, data):
    cut = data.draw(st.integers(0, len(play.events)))
    state = fold(play.compiled, "r", play.events[:cut])
    for event in play.events[cut:]:
        state, _ = reduce(play.compiled, state, event)
    assert state == play.state == fold(play.compiled, "r", play.events)


@settings(max_examples=40 * TIMES, deadline=None)
@given(journals())
def test_events_written_and_read_fold_to_the_same_state(play):
    read = [
        event._replace(data=decode(KIND_NAMES[type(event.data)], encode(event.data)))
        for event in play.events
    ]
    assert fold(play.compiled, "r", read) == play.state


@settings(max_examples=60 * TIMES, deadline=None)
@given(journals(), st.data())
def test_reduce_leaves_its_input_alone(play, data):
    cut = data.draw(st.integers(0, len(play.events) - 1))
    state = fold(play.compiled, "r", play.events[:cut])
    before, known = state.copy(), deepcopy(vars(state))
    reduce(play.compiled, state, play.events[cut])
    reduce(play.compiled, state, play.events[cut])
    assert state == before
    assert vars(state) == known


@settings(max_examples=60 * TIMES, deadline=None)
@given(journals(), st.data())
def test_delivering_a_result_or_answer_twice_is_harmless(play, data):
    kinds = (
        ModelReplied, ToolReturned, ToolFailed, RequestAnswered, RequestExpired, ModelFailed,
        TimerFired,
    )  # fmt: skip
    results = [event for event in play.events if isinstance(event.data, kinds)]
    if not results:
        return
    again = data.draw(st.sampled_from(results))
    state, commands = reduce(
        play.compiled, play.state, again._replace(seq=play.state.seq + 1, cause=0)
    )
    assert commands == []
    state.seq = play.state.seq
    assert state == play.state


@settings(max_examples=60 * TIMES, deadline=None)
@given(journals())
def test_a_run_that_is_not_over_has_something_to_do_or_somebody_to_wait_for(play):
    state: State = play.state
    if state.status == "running":
        assert list(pending(play.compiled, state))
    elif state.status == "waiting":
        assert state.requests
    else:
        assert state.outcome
        assert not state.requests
        assert list(pending(play.compiled, state)) == []


@settings(max_examples=60 * TIMES, deadline=None)
@given(journals())
def test_all_that_is_open_belongs_to_a_turn_or_group_that_is(play):
    state: State = play.state
    assert {call.turn for call in state.calls.values()} <= state.active.keys()
    assert {request.turn for request in state.requests.values()} <= {0, *state.active}
    assert {timer.owner for timer in state.timers.values()} <= state.groups.keys()
    assert {value.fork for value in state.active.values()} <= {0, *state.groups}
    assert state.threads.keys() == {value.number for value in state.active.values() if value.fork}


@settings(max_examples=80 * TIMES, deadline=None)
@given(journals(), st.data())
def test_a_damaged_journal_is_folded_without_an_error(play, data):
    """Whatever was lost or swapped: a run that cannot be shown could not be repaired either."""
    damaged = list(play.events)
    at = data.draw(st.integers(1, max(1, len(damaged) - 2)))
    damaged[at : at + 2] = damaged[at : at + 2][::-1]
    drop = data.draw(st.integers(1, len(damaged)))
    damaged[drop : drop + 1] = []
    state = fold(play.compiled, "r", damaged)
    list(pending(play.compiled, state))
