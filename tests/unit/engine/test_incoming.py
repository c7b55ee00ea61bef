"""Which mail a run still wants, what is due when, and what a batch says about it."""

from dataclasses import replace

import pytest

from support.engine_play import Play, workflow
from weft.engine.board.state import BoardState
from weft.engine.compile import compile_workflow
from weft.engine.events import (
    ArtifactArrived,
    ArtifactPublished,
    Event,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    RunForked,
    RunStarted,
    StopRequested,
    TimerFired,
    TimerSet,
    ToolRequest,
)
from weft.engine.incoming import accepts, due_events
from weft.engine.persistent import KeyLog
from weft.engine.reduce import reduce
from weft.engine.rows import Mail, MailTaken, batch, board_index_changes
from weft.engine.state import State
from weft.engine.timers import NEVER
from weft.spec.workflow import WorkflowSpec

LOOK = {"agent": "A", "function": "look"}
ARRIVED = ArtifactArrived("r.1.Ann.0", "a1", "Idea", {}, "Bob", "Ann.0", "", "c1", 5)


def asking(expires_at: int | None) -> Play:
    """Return a run whose tool asks a person something."""
    play = Play(workflow(tools=[LOOK]))
    play.start()
    play.reply("", ToolRequest("c1", "look", {}))
    play.take(RequestOpened("q1", "ui", "A", "look", "c1", expires_at=expires_at))
    return play


def test_an_idle_chat_is_never_due():
    play = Play(workflow())
    play.start(message=None)
    assert play.state.requests
    assert play.state.due_at == NEVER
    assert due_events(play.state, NEVER) == []
    written = batch(State("r"), play.state, play.events, id="b")
    assert (written.due_at, written.held, written.direct) == (NEVER, False, False)


def test_timers_and_requests_are_due_by_time_and_id():
    play = asking(expires_at=5000)
    for id_, at in (("late", 7000), ("b", 5000), ("z", 4000)):
        play.take(TimerSet(id_, at, "trigger"), turn=0)
    assert play.state.due_at == 4000
    assert due_events(play.state, 3999) == []
    found = [(event.at, event.data, event.turn) for event in due_events(play.state, 5000)]
    assert found == [
        (4000, TimerFired("z"), 0),
        (5000, TimerFired("b"), 0),
        (5000, RequestExpired("q1"), 1),
    ]
    assert [event.data.id for event in due_events(play.state, 9000)] == ["z", "b", "q1", "late"]
    assert asking(expires_at=None).state.due_at == NEVER


def test_removed_timer_is_not_due():
    play = asking(expires_at=5000)
    play.take(TimerSet("t", 4000, "trigger"), turn=0)
    play.take(RequestAnswered("q1", "yes", "user"))
    assert play.state.due_at == 4000
    assert accepts(play.state, TimerFired("t"))
    assert not accepts(play.state, TimerFired("other"))
    assert not accepts(play.state, RequestExpired("q1"))
    assert accepts(asking(5000).state, RequestExpired("q1"))


def test_a_batch_says_when_its_run_needs_attention():
    play = asking(expires_at=5000)
    mails = [Mail("app", "r", id_, "user:ada", StopRequested("now", "ada")) for id_ in ("m1", "m2")]
    waiting = batch(State("r"), play.state, play.events, id="b", taken=mails)
    assert waiting.due_at == 5000
    assert waiting.changes[-2:] == (MailTaken("m1"), MailTaken("m2"))
    play.take(RequestAnswered("q1", "yes", "user"))
    left = batch(State("r"), play.state, play.events, id="b")
    assert left.due_at == play.events[-1].at, "a run with work that no process holds is due now"
    held = batch(State("r"), play.state, play.events, id="b", held=True, direct=True)
    assert (held.due_at, held.held, held.direct) == (NEVER, True, True)


def test_a_message_is_wanted_once_and_an_answer_while_its_request_is_open():
    play = Play(workflow())
    play.start(message=None)
    request = next(iter(play.state.requests))
    message = RequestAnswered(request, "hi", "user", message_id="m1")
    assert accepts(play.state, message)
    assert accepts(play.state, RequestAnswered(request, "hi", "user"))
    play.take(message, turn=0)
    play.reply("hello")
    (again,) = play.state.requests
    assert not accepts(play.state, RequestAnswered(again, "hi", "user", message_id="m1"))
    assert accepts(play.state, RequestAnswered(again, "hi", "user", message_id="m2"))
    assert not accepts(play.state, RequestAnswered("other", "hi", "user"))


def test_an_artifact_and_a_letter_are_wanted_once():
    published = ArtifactPublished("Idea", {}, "user:ada", "a1")
    chat, board = State("r"), State("r", board=BoardState("c"))
    known = State("r", board=BoardState("c", ids=KeyLog(("a1", ARRIVED.mail))))
    for data in (published, ARRIVED):
        assert [accepts(state, data) for state in (chat, board, known)] == [False, True, False]


@pytest.mark.parametrize("data", [StopRequested("now", "ada"), RequestAnswered("r:1", "hi", "ada")])
def test_a_run_that_has_ended_wants_nothing(data):
    play = Play(workflow())
    play.start(message=None)
    assert accepts(play.state, data)
    play.take(StopRequested("now", "ada"), turn=0)
    assert play.state.status == "ended"
    assert not accepts(play.state, data)


def test_a_run_has_the_name_of_its_correlation_and_a_fork_has_none():
    compiled = workflow()
    start = RunStarted("W", "d", "app", "ada", {}, correlation="order-1")
    event = Event(1, 10, "t", 0, 0, start)
    state, _ = reduce(compiled, State("r"), event)
    assert batch(State("r"), state, [event], id="b").row.name == "order-1"
    named = event._replace(data=replace(start, name="ada/order-1"))
    assert reduce(compiled, State("r"), named)[0].name == "ada/order-1"
    state, _ = reduce(compiled, state, Event(2, 11, "t", 0, 0, RunForked("r", 1)))
    assert state.name == ""


@pytest.mark.parametrize(("shared", "owner"), [(False, "user:ada"), (True, "")])
def test_board_belongs_to_its_user_unless_it_is_shared(shared, owner):
    board = {"artifacts": [{"name": "Idea", "schema": {"type": "object"}}], "shared": shared}
    spec = {"orchestrator": {"workflow_name": "W"}, "board": board}
    compiled = compile_workflow(WorkflowSpec.model_validate(spec))
    start = RunStarted("W", "d", "app", "ada", {})
    state, _ = reduce(compiled, State("r"), Event(1, 10, "t", 0, 0, start))
    assert (state.board.correlation, state.board.owner) == ("r", owner)


def test_a_deadline_of_a_group_that_is_gone_is_not_set():
    play = Play(workflow())
    play.start()
    play.take(TimerSet("deadline:99", 9, "deadline"), cause=99, turn=0)
    assert play.state.timers == {}


def test_an_artifact_for_a_collection_is_mail_that_begins_its_run():
    state = State(
        "r", app="app", user="ada", workflow="W", digest="d", board=BoardState("c1", "user:ada")
    )
    data = ArtifactPublished(
        "Idea", {"x": 1}, "Bob", "a1", wakes={"Ann.0": "k"}, forwarded_to={"W~all": "Ann.0"}
    )
    artifact, mail = board_index_changes(state, [Event(7, 50, "engine", 3, 0, data)])
    assert artifact.owner == "user:ada"
    name = "W/user:ada/W~all"
    start = RunStarted("W", "d", "app", "ada", {}, correlation="W~all", collects="Ann.0", name=name)
    arrived = ArtifactArrived(
        "r.7.Ann.0", "a1", "Idea", {"x": 1}, "Bob", "Ann.0", "k", "c1", 50, visible_at=50
    )
    assert mail == Mail("app", name, "r.7.Ann.0", "mail", arrived, start)
    state.forked_from = "other"
    assert len(list(board_index_changes(state, [Event(7, 50, "engine", 3, 0, data)]))) == 1
