"""Parts of the board by themselves: queues, policies, schedules, and what few boards come to."""

from datetime import UTC, datetime

import pytest

from support.board_world import RUN, World, engine_result, linked, never
from support.cases import read_cases
from weft.engine.board import correlation as board_module
from weft.engine.board import joins
from weft.engine.board.rules import holds, next_cron, next_time, parse_cron
from weft.engine.board.state import (
    Artifact,
    BoardState,
    Delayed,
    Delivery,
    JoinWindow,
    OpenWindows,
    PendingBatch,
)
from weft.engine.board.visibility import (
    HIDDEN,
    Audience,
    Identity,
    denial,
    may_see,
    stored_audience,
)
from weft.engine.commands import Fetch
from weft.engine.events import (
    ArtifactArrived,
    ArtifactPublished,
    ContextFetched,
    DeliveryMissed,
    Event,
    RunEnded,
    StopRequested,
    TimerFired,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from weft.engine.persistent import Fifo, SharedDict
from weft.engine.reduce import fold, pending
from weft.errors import ExpressionError
from weft.runtime.runs.decision import NewEvent
from weft.spec.board import Schedule
from weft.spec.condition_parser import parse_condition
from weft.spec.workflow import WorkflowSpec

CASES = read_cases(__file__)


class Around:
    """Has a hook before, after and around what goes wrong; the world says what they come to."""

    def error(self, ctx, error): ...

    def post_publish(self, ctx, artifacts): ...


OBJECTS = {"local:never": never, "local:Around": Around}


def world_of(agent, variables=None, **run):
    """Return a world with one agent, which consumes and publishes notes."""
    spec = {
        "variables": variables or {},
        "orchestrator": {"workflow_name": "Board"},
        "agents": [{"agent_name": "Ann"}],
        "board": {
            "artifacts": [{"name": "Note", "schema": {}}],
            "agents": [
                {
                    "agent": "Ann",
                    "engines": [{"kind": "function", "function": "local:never"}],
                    "context": {"kind": "empty"},
                    "consumes": [{"types": ["Note"]}],
                    "publishes": [{"type": "Note"}],
                    **agent,
                }
            ],
        },
    }
    return World(linked(WorkflowSpec.model_validate(spec), OBJECTS), **run)


NOTE = {"type": "Note", "payload": {"text": "tea"}}
AROUND = {"components": [{"component": "local:Around", "hooks": ["error", "post_publish"]}]}


# -- queues


def test_a_queue_gives_what_came_first_and_keeps_its_earlier_states():
    first = Fifo([1, 2])
    grown = first.added(3, 4)
    rest = grown.rest(2)
    assert (list(first), list(grown), list(rest)) == ([1, 2], [1, 2, 3, 4], [3, 4])
    assert (rest[0], rest[1], len(rest)) == (3, 4, 2)
    assert rest == Fifo([3, 4])
    assert rest != Fifo([4, 3])
    assert rest != [3, 4]
    assert hash(rest) == hash(Fifo([3, 4]))
    assert repr(rest) == "Fifo([3, 4])"


def test_a_long_queue_lets_go_of_what_was_taken():
    queue = Fifo(range(1000))
    for number in range(1000):
        assert queue[0] == number
        queue = queue.added(1000 + number).rest()
        assert len(queue._items) < 2600
    assert list(queue) == list(range(1000, 2000))


# -- who may see what

ANN = Identity("Ann", frozenset({"red", "blue"}), "app")


@pytest.mark.parametrize(("policy", "now", "told"), CASES["test_a_policy_lets_see_or_says_why_not"])
def test_a_policy_lets_see_or_says_why_not(policy, now, told):
    declared = stored_audience(policy, created_at=0, tenant="app")
    assert denial(declared, ANN, now) == told
    assert may_see(declared, ANN, now) is (told is None)


@pytest.mark.parametrize(
    "policy",
    [
        {},
        {"kind": "later"},
        {"kind": "private"},
        {"kind": "private", "agents": []},
        {"kind": "private", "agents": ["Ann", 3]},
        {"kind": "labelled", "labels": "red"},
        {"kind": "tenant", "tenant": 5},
        {"kind": "after"},
        {"kind": "after", "seconds": "soon"},
        {"kind": "after", "seconds": 1, "then": "public"},
        {"kind": "after", "seconds": -1},
        {"kind": "after", "seconds": float("inf")},
        {"kind": "after", "seconds": 0, "then": {"kind": "secret"}},
    ],
)
def test_malformed_policy_hides_the_artifact(policy):
    seen = stored_audience(policy, created_at=0, tenant="app")
    assert seen == HIDDEN
    assert denial(seen, ANN, 10**15) == "its visibility cannot be read, so it is hidden"


def test_a_policy_that_a_later_version_knows_hides():
    assert not may_see(Audience(0, "everybody"), ANN, 0)


# -- schedules


def at(text):
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("cron", "after", "due"), CASES["test_a_cron_expression_names_the_next_minute"]
)
def test_a_cron_expression_names_the_next_minute(cron, after, due):
    found = next_cron(cron, datetime.fromisoformat(after).replace(tzinfo=UTC))
    assert (found and found.strftime("%Y-%m-%dT%H:%M")) == due
    assert next_time(Schedule(cron=cron), at(after)) == (due and at(due))


@pytest.mark.parametrize(
    ("cron", "told"),
    [
        ("* * * *", "has 4 fields, not five"),
        ("x * * * *", "'x' is not a field of a cron expression"),
        ("60 * * * *", "'60' is out of range"),
        ("5-3 * * * *", "'5-3' is out of range"),
        ("*/0 * * * *", "is out of range"),
        ("* * 0 * *", "'0' is out of range"),
    ],
)
def test_invalid_cron_expression_is_refused(cron, told):
    with pytest.raises(ExpressionError, match=told):
        parse_cron(cron)


def test_times_of_schedules_follow_each_other():
    noon = at("2026-01-01T12:00")
    hourly = Schedule(every_seconds=3600, delay_seconds=5)
    assert next_time(hourly, noon) == noon + 5000
    assert next_time(hourly, noon, noon) == noon + 3_600_000
    assert next_time(hourly, noon + 9_000_000, noon) == noon + 10_800_000
    assert next_time(hourly, noon - 1, noon) == noon, "the clock went back"
    once = Schedule(at=datetime(2026, 1, 2, tzinfo=UTC))
    assert next_time(once, noon) == at("2026-01-02T00:00")
    assert next_time(once, noon, noon) is None
    daily = Schedule(daily="11:30")
    assert next_time(daily, noon) == at("2026-01-02T11:30")


def test_a_run_that_keeps_a_schedule_is_over_with_it():
    world = world_of({"schedule": {"every_seconds": 60, "max_repeats": 2}}, schedule="Ann")
    for _ in range(2):
        world.pass_time(60_000)
        while world.effects:
            (name, effect), *_ = world.effects.items()
            world.finish(name, ToolReturned(effect.id, engine_result([])))
    ended = world.events[-1].data
    assert (ended.outcome, ended.reason) == ("completed", "the schedule has ended")


# -- what few boards come to


def test_a_run_that_collects_ends_when_it_is_quiet_after_much(monkeypatch):
    monkeypatch.setattr(board_module, "LONG", 5)
    world = world_of({}, collects="Ann.0")
    world.publish(NOTE)
    (name,) = world.effects
    world.finish(name, ToolReturned(name, engine_result([])))
    assert world.state.reason == "all artifacts were handled"


def only_call(world, what):
    """Return the id of the one call that is under way."""
    (name,) = world.effects
    assert name.startswith(f"{what}-")
    return name


def test_an_id_that_was_given_in_two_correlations_is_worked_on_twice(monkeypatch):
    """Of two processes that publish under one name at once, none sees the other."""
    monkeypatch.setattr(World, "_check", lambda _: None)  # It tells artifacts apart by their ids.
    world = world_of({"consumes": [{"types": ["Note"], "scope": "all"}]}, collects="Ann.0")
    for correlation in ("c1", "c2"):
        letter = ArtifactArrived(
            f"{correlation}.3.Ann.0", "same", "Note", {"text": "tea"}, "user:ada", "Ann.0", "",
            correlation, world.now,
        )  # fmt: skip
        world.write(NewEvent("mail", letter))
    assert len(world.effects) == 2
    made = engine_result([{"type": "Note", "payload": {"text": "made"}}])
    for name in list(world.effects):
        world.finish(name, ToolReturned(name, made))
    published = [
        event.data.id for event in world.events if isinstance(event.data, ArtifactPublished)
    ]
    assert len(set(published)) == 2


def artifact(id_):
    return Artifact(id_, "Note", {}, "user:ada", (), "", RUN, 0)


PAIR = {"types": ["Note", "Note"], "join": {"by": "k", "within_count": 2}}


def publish_note(world, key):
    return world.publish({"type": "Note", "payload": {"k": key}})


def missed(world):
    return [
        event.data.artifacts for event in world.events if isinstance(event.data, DeliveryMissed)
    ]


def test_a_window_in_which_too_many_others_came_is_closed():
    world = world_of({"consumes": [PAIR]})
    first = publish_note(world, "a")
    for key in "bbc":  # That of b is complete.
        publish_note(world, key)
    assert missed(world) == []
    publish_note(world, "d")
    assert missed(world) == [(first,)]
    publish_note(world, "e")
    assert missed(world) == [(first,)], "what was complete is not closed again"
    (open_windows,) = world.state.board.joins.values()
    assert list(open_windows.windows) == ['"c"', '"d"', '"e"']


def test_a_window_of_a_count_and_a_time_goes_with_its_timer():
    join = {"by": "k", "within_count": 2, "within_seconds": 5}
    world = world_of({"consumes": [{"types": ["Note", "Note"], "join": join}]})
    first = publish_note(world, "a")
    for key in "bcde":
        publish_note(world, key)
    assert missed(world) == [(first,)]
    assert [timer.partition(":")[0] for timer in world.state.timers] == ["idle", *["window"] * 4]
    world.pass_time(5000)
    assert len(missed(world)) == 5
    assert world.state.board.joins == {}


def test_end_of_a_run_lists_unfinished_deliveries():
    waiting = JoinWindow({"Note": Fifo([artifact("e")])})
    board = BoardState(
        RUN,
        joins={"Ann.2": OpenWindows(SharedDict({"k": waiting}), SharedDict(), Fifo())},
        batches={"Ann.3": PendingBatch(Fifo([(artifact("f"),)]))},
        deferred=SharedDict({"defer:1": ("Ann.0", Delivery((artifact("a"), artifact("b")), 1))}),
        delayed=SharedDict({"visible:2": Delayed(artifact("c"), {"Ann.0": "", "Ann.1": ""})}),
        queues={"Ann.1": Fifo([Delivery((artifact("d"),), 3)])},
    )
    assert list(joins.unfinished_deliveries(board)) == [
        DeliveryMissed("Ann.2", ("e",), "unfinished"),
        DeliveryMissed("Ann.3", ("f",), "unfinished"),
        DeliveryMissed("Ann.1", ("d",), "unfinished"),
        DeliveryMissed("Ann.0", ("a", "b"), "unfinished"),
        DeliveryMissed("Ann.0", ("c",), "unfinished"),
        DeliveryMissed("Ann.1", ("c",), "unfinished"),
    ]


def test_a_timer_whose_window_or_batch_is_gone_changes_nothing():
    board, event = BoardState(RUN), Event(9, 9, "clock", 0, 0, TimerFired("x"))
    assert joins.close_window(board, "window:Ann.0:1") == (board, [])
    assert joins.close_batch(board, "batch:Ann.0:1", event) is board


def test_a_payload_without_fields_fulfils_no_condition():
    condition = parse_condition("n > 0")
    assert holds(condition, 5) == "the payload has no fields"
    assert holds(condition, {"n": 1}) is True
    assert isinstance(holds(condition, {"n": "x"}), str)


def test_failing_error_hook_does_not_stop_the_board():
    world = world_of({**AROUND, "max_concurrency": 1})
    world.publish(NOTE)
    world.publish(NOTE)
    first = only_call(world, "engine")
    world.finish(first, ToolFailed(first, "it broke"))
    error = only_call(world, "error")  # Its component is told.
    world.finish(error, ToolFailed(error, "this as well"))
    assert only_call(world, "engine") != first
    assert [event.data.why for event in world.events if isinstance(event.data, DeliveryMissed)] == [
        "failed"
    ]


def test_published_artifacts_stay_when_a_later_hook_fails():
    world = world_of(AROUND)
    world.publish(NOTE)
    made = engine_result([{"type": "Note", "payload": {"text": "made"}}])
    engine = only_call(world, "engine")
    world.finish(engine, ToolReturned(engine, made))
    after = only_call(world, "post_publish")
    world.finish(after, ToolFailed(after, "it broke"))
    published = [event for event in world.events if isinstance(event.data, ArtifactPublished)]
    assert len(published) == 2
    assert not [event for event in world.events if isinstance(event.data, DeliveryMissed)]
    assert not world.state.active


@pytest.mark.parametrize("what", ["engine", "post_publish"])
def test_a_call_whose_event_was_cut_off_is_called_all_the_same(what):
    """As where a fork was taken right before it."""
    world = world_of(AROUND)
    world.publish(NOTE)
    engine = only_call(world, "engine")
    world.finish(engine, ToolReturned(engine, engine_result([])))
    cut = next(
        at for at, event in enumerate(world.events)
        if isinstance(event.data, ToolCalled) and event.data.id.startswith(f"{what}-")
    )  # fmt: skip
    compiled = world.workflow.compiled
    state = fold(compiled, RUN, world.events[:cut])
    called = [event.data for event in pending(compiled, state)]
    assert called == [world.events[cut].data]


def test_nothing_happens_on_a_board_that_is_over():
    world = world_of({})
    world.write(NewEvent("user:ada", RunEnded("cancelled", "enough")))
    before = len(world.events)
    world.publish(NOTE)
    assert len(world.events) == before


def test_overdue_join_window_is_closed():
    """Its timer may fire late: no process was there."""
    pair = {"types": ["Note", "Note"], "join": {"by": "text", "within_seconds": 2}}
    world = world_of({"consumes": [pair]})
    first = world.publish(NOTE)
    (timer,) = set(world.state.timers) - {"idle"}
    world.now += 2000
    world.publish(NOTE)
    missed = [event.data for event in world.events if isinstance(event.data, DeliveryMissed)]
    assert [(delivery.artifacts, delivery.why) for delivery in missed] == [((first,), "expired")]
    assert timer not in world.state.timers
    assert not world.effects, "the second waits for another"


def test_overdue_batch_is_closed_by_the_next_event():
    world = world_of({"consumes": [{"types": ["Note"], "batch": {"timeout_seconds": 2}}]})
    first = world.publish(NOTE)
    world.now += 2000
    world.publish(NOTE)
    assert list(world.started) == [("Ann.0", first)]
    world.pass_time(2000)
    assert len(world.started) == 2


def test_the_time_of_one_batch_is_not_that_of_another():
    slow, quick = ({"types": ["Note"], "batch": {"timeout_seconds": number}} for number in (5, 1))
    world = world_of({"consumes": [slow, quick]})
    world.publish(NOTE)
    world.pass_time(1000)
    assert [item for item, _ in world.started] == ["Ann.1"]


def test_a_board_whose_run_is_prepared_begins_when_that_is_done():
    """What is published before waits for it."""
    source = {"type": "file", "path": "a.json"}
    world = world_of({}, variables={"a": {"type": "any", "source": source}})
    world.publish(NOTE)
    assert [type(effect) for effect in world.effects.values()] == [Fetch]
    (name,) = world.effects
    world.finish(name, ContextFetched({}, {}))
    assert only_call(world, "engine")


def test_a_board_that_is_to_stop_after_the_turn_begins_no_other():
    world = world_of({"max_concurrency": 1})
    first, second = world.publish(NOTE), world.publish(NOTE)
    world.write(NewEvent("user:ada", StopRequested("after_turn", "ada")))
    assert world.state.status == "running"
    engine = only_call(world, "engine")
    world.finish(engine, ToolReturned(engine, engine_result([])))
    assert world.state.reason == "stopped on request after the turn"
    assert list(world.started) == [("Ann.0", first)]
    assert world.lost == {("Ann.0", second): 1}
